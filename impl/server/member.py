"""Starting and stopping a broker that is a member of a cluster: its controller is another process."""

import asyncio
import logging
import socket
import uuid

from impl.broker.calls import CONTROLLER
from impl.broker.cluster import ClusterView
from impl.broker.core import Core
from impl.broker.replicas import Replicas, id_bytes
from impl.config.broker import BrokerConfig
from impl.config.properties import ConfigError
from impl.metadata.image import ClusterImage
from impl.replica.member import Member
from impl.replica.membership import Introduction
from impl.replica.metadata_copy import MetadataCopy
from impl.server.broker import Broker
from impl.server.clock import now_ms
from impl.server.housekeeping import Housekeeping
from impl.server.network.channels import Address, Channels
from impl.server.process import NewLoop, begin, event_loop, say_ready, warn_if_open
from impl.server.startup import BrokerFailureError, disk_space, endpoint_of, open_directory
from impl.storage import LogDirectory, RealDisk
from impl.trace.steps import TraceWriter
from impl.wire.values import Message
from spec.broker.protocol import BrokerProtocol
from spec.broker.rules.lifecycle import BrokerLifecycle
from spec.values import Incarnation

LOG = logging.getLogger("kspec.broker")

LONGEST_STOP_SECONDS = 300.0
"""How long the controller's leave to stop is waited for. Kafka: `BrokerServer.shutdown`, five minutes."""


def controller_address(config: BrokerConfig) -> Address:
    """Where the controller is reached. Raises: `ConfigError`."""
    voters: tuple[str, ...] = config["controller.quorum.voters"] or ()
    if len(voters) != 1:
        raise ConfigError("controller.quorum.voters must name one controller as ID@HOST:PORT, such as 100@127.0.0.1:9093")
    _, at, address = voters[0].partition("@")
    host, colon, port = address.rpartition(":")
    if not at or not colon or not port.isdigit():
        raise ConfigError(f"controller.quorum.voters must have the form ID@HOST:PORT, not {voters[0]!r}")
    return host.strip("[]"), int(port)


def member_core(config: BrokerConfig, protocol: BrokerProtocol, endpoint: Message, directory: LogDirectory) -> Core:
    """The core of a broker that is a member of a cluster, before it has read any metadata."""
    cluster = ClusterView(ClusterImage(), config.node_id)
    cluster.endpoint = endpoint
    cluster.rack = config["broker.rack"]
    core = Core(config, protocol, cluster)
    core.cluster_id = directory.cluster_id
    core.log_dir = directory.path
    return core


def new_member(core: Core, replicas: Replicas, copy: MetadataCopy, incarnation: Incarnation) -> Member:
    """The parts of a broker that talk to others, for a new incarnation of it."""
    cluster, directory = core.cluster, replicas.directory
    lifecycle = BrokerLifecycle(cluster.self_id, incarnation, previous_broker_epoch=directory.previous_broker_epoch)
    log_dirs = [id_bytes(directory.directory_id)]
    introduction = Introduction(core.cluster_id, [cluster.endpoint], [], log_dirs, cluster.rack)
    return Member(core, replicas, copy, lifecycle, introduction)


class RunningMember:
    """A broker of a cluster from its start to its stop."""

    def __init__(
        self,
        config: BrokerConfig,
        protocol: BrokerProtocol,
        listening: socket.socket,
        loop: asyncio.AbstractEventLoop,
        trace: TraceWriter | None = None,
    ) -> None:
        self._loop = loop
        self._controller = controller_address(config)
        self.config = config
        path = config.log_dir
        disk = RealDisk()
        self._listening = listening
        if config["cluster.id"] is None and not (path / "meta.properties").exists():
            raise ConfigError("cluster.id must be given for a new log directory of a broker that is a member of a cluster")
        self.directory = open_directory(config, disk)
        self._copy = MetadataCopy(disk, path, now_ms())
        core = member_core(config, protocol, endpoint_of(config, self._listening), self.directory)
        core.note = core.cluster.note = trace.note if trace is not None else None
        core.disk_space = disk_space(path)
        self.core = core
        self.replicas = Replicas(core, self.directory)
        self.member = new_member(core, self.replicas, self._copy, Incarnation(uuid.uuid4().int))
        self.broker = Broker(core, self.replicas, self._copy)
        self.broker.on_serve = self._serve
        self.broker.on_stop = self._end
        self.broker.on_failure = self._end
        self.broker.channels = Channels(loop, self._address_of, config["socket.request.max.bytes"], self.broker.answered)
        self.ended = asyncio.Event()
        self._stopping = False

    def _address_of(self, node: int) -> Address | None:
        if node == CONTROLLER:
            return self._controller
        endpoint = self.core.cluster.image.endpoints.get(node)
        return None if endpoint is None else (endpoint.host, endpoint.port)

    def start(self) -> None:
        """Begin to join the cluster."""
        self.housekeeping = Housekeeping(self.broker, self.directory, self._loop)
        self.broker.use(self._loop)
        self.broker.carry_out(self.member.start(now_ms()))

    def _serve(self) -> None:
        self.broker.listen(self._loop, self._listening)
        endpoint = self.core.cluster.endpoint
        warn_if_open(LOG, self._listening)
        address = f"{endpoint.host}:{endpoint.port}"
        LOG.info("broker %d of cluster %s serves on %s", self.config.node_id, self.core.cluster_id, address)
        say_ready(address)

    def stop(self) -> None:
        """Ask for leave to stop; a second time, or after a while, stop without it."""
        if self._stopping:
            self.broker.carry_out(self.member.membership.stop_anyway(now_ms()))
            return
        self._stopping = True
        LOG.info("stopping")
        self._loop.call_later(LONGEST_STOP_SECONDS, self.stop)
        self.broker.carry_out(self.member.stop(now_ms()))

    def _end(self) -> None:
        self.ended.set()

    def close(self) -> None:
        """Close the connections, flush everything, and note that the stop was clean; after a failure leave all as it is."""
        self.housekeeping.stop()
        self.broker.metrics.stop()
        self.broker.stop_listening()
        if self.broker.channels is not None:
            self.broker.channels.close()
        if self.broker.failure is not None:
            raise BrokerFailureError(f"the metadata log cannot be written: {self.broker.failure}")
        self._copy.close()
        epoch = self.member.membership.lifecycle.broker_epoch
        self.directory.close(self.replicas.high_watermarks(), epoch, self.replicas.logs_loaded)
        LOG.info("stopped")


def run_member(
    config: BrokerConfig,
    protocol: BrokerProtocol,
    listening: socket.socket,
    new_loop: NewLoop,
    trace: TraceWriter | None = None,
) -> None:
    """Run a broker of a cluster until SIGTERM or SIGINT."""
    with event_loop(new_loop, trace) as loop:
        running = RunningMember(config, protocol, listening, loop, trace)
        begin(loop, running.stop)
        running.start()
        if config["metrics.listener"] is not None:
            loop.run_until_complete(running.broker.metrics.serve(config["metrics.listener"]))
        loop.run_until_complete(running.ended.wait())
        running.close()
