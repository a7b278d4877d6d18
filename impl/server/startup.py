"""Starting and stopping a broker: its folder, its registration, its partitions, its listener."""

import asyncio
import logging
import socket
import uuid
from functools import partial
from typing import NamedTuple

from kspec.impl.broker.calls import CONTROLLER
from kspec.impl.broker.cluster import ClusterKnowledge
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replicas import Replicas, id_bytes
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.controller.timing import start_timers
from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.files import MetadataFiles
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.records import reading
from kspec.impl.replica.controllers import KnownControllers
from kspec.impl.replica.member import ClusterMember, MetadataReader
from kspec.impl.replica.membership import Introduction
from kspec.impl.replica.metadata_copy import MetadataCopy
from kspec.impl.replica.metadata_follower import MetadataFollower
from kspec.impl.server import clock
from kspec.impl.server.broker import BrokerShell
from kspec.impl.server.combined import CombinedShell, LocalMetadata, new_controller
from kspec.impl.server.files import BrokerFailureError, closing, disk_space, open_directory
from kspec.impl.server.housekeeping import Housekeeping
from kspec.impl.server.network.channels import Address, Channels
from kspec.impl.server.process import NewLoop, begin, event_loop, keep_loaded, say_ready, warn_about, warn_if_open
from kspec.impl.storage import Disk, LogDirectory, RealDisk
from kspec.impl.trace.steps import TraceWriter
from kspec.impl.wire.values import Message
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle
from kspec.spec.controller.protocol import Controller
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.values import DirectoryId, Incarnation

LOG = logging.getLogger("kspec.broker")

LONGEST_STOP_SECONDS = 300.0
"""The longest wait for the controller's leave to shut down. Kafka: `BrokerServer.shutdown`, five minutes."""


class BrokerRules(NamedTuple):
    """The rules that a broker follows: those of its release, possibly with one weakened. `quorum`: those of a controller as
    a voter.
    """

    broker: BrokerProtocol
    controller: Controller
    quorum: QuorumProtocol


def endpoint_of(config: BrokerConfig, listening: socket.socket) -> Message:
    """The endpoint of this broker that others are told."""
    told = config.advertised or config.listener
    port = told.port or listening.getsockname()[1]
    host = told.host or socket.gethostname()
    return Message(name=told.name, host=host, port=port, security_protocol=0)


def member_core(config: BrokerConfig, protocol: BrokerProtocol, endpoint: Message, directory: LogDirectory) -> BrokerCore:
    """The core of a broker, before it has read any metadata."""
    cluster = ClusterKnowledge(ClusterImage(), config.node_id)
    cluster.endpoint = endpoint
    cluster.rack = config.word("broker.rack")
    core = BrokerCore(config, protocol, cluster)
    core.cluster_id = directory.cluster_id
    core.log_dir = directory.path
    return core


def new_member(core: BrokerCore, replicas: Replicas, metadata: MetadataReader, incarnation: Incarnation) -> ClusterMember:
    """The parts of a broker that talk to others, for a new incarnation of it."""
    cluster, directory = core.cluster, replicas.directory
    lifecycle = BrokerLifecycle(cluster.self_id, incarnation, previous_broker_epoch=directory.previous_broker_epoch)
    log_dirs = [id_bytes(directory.directory_id)]
    introduction = Introduction(core.cluster_id, [cluster.endpoint], [], log_dirs, cluster.rack)
    return ClusterMember(core, replicas, metadata, lifecycle, introduction)


class RunningBroker:
    """A broker from its start to its stop.

    `may_format`: whether a new log directory is formatted, if the controller is in the same process, which makes a cluster.

    Raises: `ConfigError`, `StorageError`, `BrokerFailureError`.
    """

    metadata: MetadataFiles
    """The metadata log: the controller's own, or a copy."""

    def __init__(
        self,
        config: BrokerConfig,
        rules: BrokerRules,
        listening: socket.socket,
        note: StepRecorder | None = None,
        may_format: bool = True,
    ) -> None:
        self.config = config
        self.controllers = KnownControllers(config.places)
        is_alone = config.has_controller_elsewhere
        disk = RealDisk()
        self._listening = listening
        self.directory = open_directory(config, disk, may_format and not is_alone)
        self.core = core = member_core(config, rules.broker, endpoint_of(config, listening), self.directory)
        core.note = core.cluster.note = note
        core.disk_space = disk_space(config.log_dir)
        self.replicas = Replicas(core, self.directory)
        self.broker = self._broker_alone(disk) if is_alone else self._combined(rules, disk)
        self.broker.on_serve = self._serve
        self.broker.on_stop = self.broker.on_failure = self._end
        self._loop: asyncio.AbstractEventLoop | None = None
        self._housekeeping: Housekeeping | None = None
        self._stopping = False
        self.serves = False
        self.ended = asyncio.Event()
        self.decided = asyncio.Event()
        """It serves, or has ended before."""

    def _member(self, metadata: MetadataReader) -> ClusterMember:
        self.member = new_member(self.core, self.replicas, metadata, Incarnation(uuid.uuid4().int))
        return self.member

    def _broker_alone(self, disk: Disk) -> BrokerShell:
        self.metadata = copy = MetadataCopy(disk, self.config.log_dir, clock.now())
        own = DirectoryId(id_bytes(self.directory.directory_id))
        self._member(MetadataFollower(self.core, copy, self.controllers, own))
        return BrokerShell(self.core, self.replicas, copy)

    def _combined(self, rules: BrokerRules, disk: Disk) -> BrokerShell:
        core, now = self.core, clock.now()
        self.metadata = log = MetadataLog(disk, self.config.log_dir, now)
        controller = new_controller(core, rules.controller, log, now, rules.quorum)
        controller.voter.directory = DirectoryId(id_bytes(self.directory.directory_id))
        controller.deciding.note = controller.voter.note = core.note
        shell = CombinedShell(core, self.replicas, log, controller, self._member(LocalMetadata(core)))
        shell.carry_out(controller.start(now))
        if shell.failure is not None:
            raise BrokerFailureError(shell.complaint)
        start_timers(controller, now)
        return shell

    def _leave_controllers(self) -> None:
        """Wait no longer for a controller that is not asked any more."""
        channels = self.broker.channels
        if isinstance(channels, Channels):
            channels.leave(CONTROLLER, self.controllers.place)

    def _address_of(self, node: int) -> Address | None:
        if node == CONTROLLER:
            return self.controllers.place
        endpoint = self.core.cluster.image.endpoints.get(node)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    # ---- joining the cluster, and leaving it

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to join the cluster."""
        self._loop = loop
        self._housekeeping = Housekeeping(self.broker, self.directory, loop)
        channels = Channels(loop, self._address_of, self.config.number("socket.request.max.bytes"), self.broker.answered)
        self.broker.channels = channels
        self.controllers.on_change = partial(loop.call_soon, self._leave_controllers)
        self.broker.use(loop)
        reading.load_when_worth_it()
        self.join()

    def join(self) -> None:
        """Ask the controller what it can, and to be registered, and begin to read the metadata log."""
        self.broker.carry_out(self.member.start(clock.now()))

    def _serve(self) -> None:
        assert self._loop is not None
        keep_loaded()
        self.broker.listen(self._loop, self._listening)
        warn_if_open(LOG, self._listening)
        LOG.info("broker %d of cluster %s serves on %s", self.config.node_id, self.core.cluster_id, self.address)
        self.serves = True
        self.decided.set()

    @property
    def address(self) -> str:
        """The address that clients are told."""
        return f"{self.core.cluster.endpoint.host}:{self.core.cluster.endpoint.port}"

    def stop(self) -> None:
        """Ask for leave to stop; a second time, or after a while, stop without it."""
        if self._stopping:
            self.broker.carry_out(self.member.membership.stop_anyway(clock.now()))
            return
        self._stopping = True
        LOG.info("stopping")
        assert self._loop is not None
        self._loop.call_later(LONGEST_STOP_SECONDS, self.stop)
        self.broker.carry_out(self.member.stop(clock.now()))

    def _end(self) -> None:
        self.decided.set()
        self.ended.set()

    def close(self) -> None:
        """Close the connections, flush everything, and note that the stop was clean; after a failure leave all as it is.

        Raises: `BrokerFailureError`, if nobody has asked for the stop.
        """
        if self._housekeeping is not None:
            self._housekeeping.stop()
        self.broker.metrics.stop()
        self.broker.stop_listening()
        if self.broker.channels is not None:
            self.broker.channels.close()
        if self.broker.failure is not None:
            raise BrokerFailureError(self.broker.complaint)
        epoch = self.member.membership.lifecycle.broker_epoch
        with closing():
            self.metadata.close()
            self.directory.close(self.replicas.high_watermarks(), epoch, self.replicas.logs_loaded)
        if self.broker.complaint:
            raise BrokerFailureError(self.broker.complaint)
        LOG.info("stopped")


def run(
    config: BrokerConfig,
    rules: BrokerRules,
    listening: socket.socket,
    new_loop: NewLoop,
    trace: TraceWriter | None = None,
    may_format: bool = True,
) -> None:
    """Run a broker until SIGTERM or SIGINT. With a trace, each step of a rule is written."""
    warn_about(LOG, config.ignored)
    with event_loop(new_loop, trace) as loop:
        running = RunningBroker(config, rules, listening, trace.note if trace is not None else None, may_format)
        begin(loop, running.stop)
        running.start(loop)
        try:
            metrics_at = config.word("metrics.listener")
            if metrics_at is not None:
                loop.run_until_complete(running.broker.metrics.serve(metrics_at))
            loop.run_until_complete(running.decided.wait())
            if running.serves:
                say_ready(running.address)
            loop.run_until_complete(running.ended.wait())
        finally:
            running.close()
