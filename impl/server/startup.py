"""Starting and stopping a broker: its folder, its registration, its partitions, its listener."""

import asyncio
import logging
import shutil
import socket
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from impl.broker.calls import Note
from impl.broker.cluster import Cluster
from impl.broker.core import Core
from impl.broker.replicas import Replicas, id_text
from impl.config.broker import BrokerConfig
from impl.config.properties import ConfigError
from impl.metadata.log import MetadataLog
from impl.server.broker import Broker
from impl.server.clock import now_ms
from impl.server.housekeeping import Housekeeping
from impl.server.process import NewLoop, begin, event_loop, say_ready, warn_if_open
from impl.storage import Disk, LogDirectory, RealDisk
from impl.storage.small_files import META_PROPERTIES, read_meta
from impl.trace.steps import TraceWriter
from impl.wire.values import Message
from spec.broker.lifecycle import (
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    set_ready_to_unfence,
    stop,
)
from spec.broker.protocol import BrokerProtocol
from spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration
from spec.controller.protocol import Controller
from spec.step import SendToController
from spec.values import BrokerId, Incarnation, Offset

LOG = logging.getLogger("kspec.broker")


MOST_SHUTDOWN_REQUESTS = 3
"""The controller allows the stop when it has moved the leaders, and the broker knows: at the second request."""


class BrokerFailureError(Exception):
    """The broker cannot go on: one line that says why."""


class Rules(NamedTuple):
    """The rules that a broker follows: those of its release, possibly with one weakened."""

    broker: BrokerProtocol
    controller: Controller


def open_directory(config: BrokerConfig, disk: Disk) -> LogDirectory:
    """The log directory, locked; a new one is formatted. Raises: `StorageError`."""
    path = config.log_dir
    cluster_id = config["cluster.id"]
    if cluster_id is None:
        known = (path / META_PROPERTIES).exists()
        cluster_id = read_meta(disk, str(path))["cluster.id"] if known else id_text(uuid.uuid4().bytes)
    return LogDirectory.open(str(path), disk, cluster_id, config.node_id)


def disk_space(path: Path) -> Callable[[], tuple[int, int]]:
    """How many bytes the disk of a folder has, and how many are free."""

    def usage() -> tuple[int, int]:
        found = shutil.disk_usage(path)
        return found.total, found.free

    return usage


def endpoint_of(config: BrokerConfig, listening: socket.socket) -> Message:
    """What others are told of this broker's listener."""
    told = config.advertised or config.listener
    port = told.port or listening.getsockname()[1]
    host = told.host or socket.gethostname()
    return Message(name=told.name, host=host, port=port, security_protocol=0)


class RunningBroker:
    """A broker from its start to its stop."""

    def __init__(self, config: BrokerConfig, rules: Rules, listening: socket.socket, note: Note | None = None) -> None:
        self.config = config
        self._path = config.log_dir
        self._disk = RealDisk()
        self._listening = listening
        now = now_ms()
        self.directory = open_directory(config, self._disk)
        self.metadata_log = MetadataLog(self._disk, self._path, now)
        cluster = Cluster(rules.controller, self.metadata_log.epoch, self.metadata_log.image(), config.node_id, now)
        self.core = Core(config, rules.broker, cluster)
        self.core.note = cluster.note = note
        self.core.cluster_id = self.directory.cluster_id
        self.core.log_dir = str(self._path)
        self.core.disk_space = disk_space(self._path)
        self.replicas = Replicas(self.core, self.directory)
        self.broker = Broker(self.core, self.replicas, self.metadata_log)
        self.lifecycle = BrokerLifecycle(
            BrokerId(config.node_id),
            Incarnation(uuid.uuid4().int),
            previous_broker_epoch=self.directory.previous_broker_epoch,
        )
        cluster.endpoint = endpoint_of(config, self._listening)
        cluster.rack = config["broker.rack"]
        self._join()
        self.broker.carry_out(self.broker.groups.load(now_ms()))

    # ---- joining the cluster, and leaving it

    def _join(self) -> None:
        """Register, recover the logs, and be unfenced: only then do partitions get their leader."""
        self._communicate()
        self._communicate()
        self.broker.carry_out(self.replicas.apply(now_ms()))
        self.lifecycle = self.core.step(set_ready_to_unfence, None, self.lifecycle).state
        self._communicate()
        if self.lifecycle.state != BrokerState.RUNNING:
            raise ConfigError(f"the controller does not unfence broker {self.config.node_id}: {self.lifecycle.state.value}")

    def _communicate(self) -> None:
        """Send the next request of the lifecycle to the controller in this process, and take its answer."""
        core, now = self.core, now_ms()
        applied = Offset(core.cluster.image.spec.end_offset - 1)
        for effect in core.step(next_communication, None, self.lifecycle, applied).effects:
            assert isinstance(effect, SendToController)
            registers = effect.message.__class__.__name__ == "BrokerRegistrationRequest"
            handler = handle_broker_registration if registers else handle_broker_heartbeat
            answer, records = core.deciding.decide(handler, effect.message, now)
            self.broker.carry_out(core.change_metadata(records))
            if self.broker.failure is not None:
                raise BrokerFailureError(f"the metadata log cannot be written: {self.broker.failure}")
            take = handle_broker_registration_response if registers else handle_broker_heartbeat_response
            self.lifecycle = core.step(take, core.protocol, self.lifecycle, answer, now).state

    def start(self, loop: asyncio.AbstractEventLoop) -> str:
        """Serve from now on; the address of the broker."""
        self.housekeeping = Housekeeping(self.broker, self.directory, loop)
        self.broker.listen(loop, self._listening)
        warn_if_open(LOG, self._listening)
        return f"{self.core.cluster.endpoint.host}:{self.core.cluster.endpoint.port}"

    def abandon(self) -> None:
        """End at once, and leave the folder as a kill would: what could not be written is not there."""
        self.housekeeping.stop()
        self.broker.metrics.stop()
        self.broker.stop_listening()
        raise BrokerFailureError(f"the metadata log cannot be written: {self.broker.failure}")

    def stop(self) -> None:
        """Stop in order: leave the cluster, close the connections, flush everything, and note that the stop was clean."""
        self.housekeeping.stop()
        self.broker.metrics.stop()
        self.broker.stop_listening()
        self.core.begin_shutdown()
        self.lifecycle = self.core.step(begin_controlled_shutdown, None, self.lifecycle).state
        for _ in range(MOST_SHUTDOWN_REQUESTS):
            if self.lifecycle.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                self._communicate()
        self.lifecycle = self.core.step(stop, None, self.lifecycle).state
        high_watermarks = self.replicas.high_watermarks()
        self.metadata_log.close()
        self.directory.close(high_watermarks, self.lifecycle.broker_epoch)
        LOG.info("stopped")


def run(
    config: BrokerConfig,
    rules: Rules,
    listening: socket.socket,
    new_loop: NewLoop,
    trace: TraceWriter | None = None,
) -> None:
    """Run a broker until SIGTERM or SIGINT. With a trace, each step of a rule is written."""
    with event_loop(new_loop, trace) as loop:
        running = RunningBroker(config, rules, listening, trace.note if trace is not None else None)
        stopped = asyncio.Event()
        running.broker.on_failure = stopped.set
        begin(loop, stopped.set)
        try:
            address = running.start(loop)
            if config["metrics.listener"] is not None:
                loop.run_until_complete(running.broker.metrics.serve(config["metrics.listener"]))
            LOG.info("broker %d of cluster %s serves on %s", config.node_id, running.core.cluster_id, address)
            say_ready(address)
            loop.run_until_complete(stopped.wait())
        finally:
            if running.broker.failure is not None:
                running.abandon()
            running.stop()


def warn_about(config: BrokerConfig, given: Mapping[str, str]) -> None:
    """Say which settings mean nothing here."""
    for name in config.unknown:
        LOG.warning("%s=%s is not known, and ignored", name, given[name])
