"""Starting and stopping a broker: its folder, its registration, its partitions, its listener."""

import asyncio
import gc
import logging
import resource
import shutil
import signal
import socket
import sys
import uuid
from collections.abc import Callable, Mapping
from typing import NamedTuple

from impl.broker.calls import Note
from impl.broker.cluster import Cluster
from impl.broker.core import Core
from impl.broker.replicas import Replicas, id_text
from impl.config.broker import BrokerConfig, is_loopback
from impl.config.properties import ConfigError
from impl.metadata.log import MetadataLog
from impl.server.broker import Broker, now_ms
from impl.server.housekeeping import Housekeeping
from impl.storage import LogDirectory, RealDisk
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


MOST_FILES = 100_000

COLLECTED_AFTER = (20_000, 20, 50)
"""How many values are made between two looks for circles of garbage. A request makes many values, and hardly a circle."""

MOST_SHUTDOWN_REQUESTS = 3
"""The controller allows the stop when it has moved the leaders, and the broker knows: at the second request."""


class BrokerFailureError(Exception):
    """The broker cannot go on: one line that says why."""


class Rules(NamedTuple):
    """The rules that a broker follows: those of its release, possibly with one weakened."""

    broker: BrokerProtocol
    controller: Controller


class RunningBroker:
    """A broker from its start to its stop."""

    def __init__(self, config: BrokerConfig, rules: Rules, note: Note | None = None) -> None:
        self.config = config
        self._path = config.log_dir
        self._disk = RealDisk()
        self._listening = _bound(config)
        now = now_ms()
        self.directory = self._open_directory()
        self.metadata_log = MetadataLog(self._disk, self._path, now)
        cluster = Cluster(rules.controller, self.metadata_log.epoch, self.metadata_log.image(), config.node_id, now)
        self.core = Core(config, rules.broker, cluster)
        self.core.note = cluster.note = note
        self.core.cluster_id = self.directory.cluster_id
        self.core.log_dir = str(self._path)
        self.core.disk_space = self._disk_space
        self.replicas = Replicas(self.core, self.directory)
        self.broker = Broker(self.core, self.replicas, self.metadata_log)
        self.lifecycle = BrokerLifecycle(
            BrokerId(config.node_id),
            Incarnation(uuid.uuid4().int),
            previous_broker_epoch=self.directory.previous_broker_epoch,
        )
        cluster.endpoint = self._endpoint()
        cluster.rack = config["broker.rack"]
        self._join()
        self.broker.carry_out(self.broker.groups.load(now_ms()))

    def _open_directory(self) -> LogDirectory:
        meta = self._path / META_PROPERTIES
        cluster_id = self.config["cluster.id"]
        if cluster_id is None:
            cluster_id = (
                read_meta(self._disk, str(self._path))["cluster.id"] if meta.exists() else id_text(uuid.uuid4().bytes)
            )
        return LogDirectory.open(str(self._path), self._disk, cluster_id, self.config.node_id)

    def _disk_space(self) -> tuple[int, int]:
        usage = shutil.disk_usage(self._path)
        return usage.total, usage.free

    def _endpoint(self) -> Message:
        told = self.config.advertised or self.config.listener
        port = told.port or self._listening.getsockname()[1]
        host = told.host or socket.gethostname()
        return Message(name=told.name, host=host, port=port, security_protocol=0)

    # ---- joining the cluster, and leaving it

    def _join(self) -> None:
        """Register, recover the logs, and be unfenced: only then do partitions get their leader."""
        self._communicate()
        self._communicate()
        self.broker.carry_out(self.replicas.apply(now_ms()))
        self.lifecycle = set_ready_to_unfence(self.lifecycle).state
        self._communicate()
        if self.lifecycle.state != BrokerState.RUNNING:
            raise ConfigError(f"the controller does not unfence broker {self.config.node_id}: {self.lifecycle.state.value}")
        for stray in self.replicas.strays():
            LOG.warning("%s-%d lies in the folder, and no topic has it; it is left alone", *stray)

    def _communicate(self) -> None:
        """Send the next request of the lifecycle to the controller in this process, and take its answer."""
        core, now = self.core, now_ms()
        applied = Offset(core.cluster.image.spec.end_offset - 1)
        for effect in next_communication(self.lifecycle, applied).effects:
            assert isinstance(effect, SendToController)
            registers = effect.message.__class__.__name__ == "BrokerRegistrationRequest"
            handler = handle_broker_registration if registers else handle_broker_heartbeat
            answer, records = core.cluster.decide(handler, effect.message, now)
            self.broker.carry_out(core.change_metadata(records))
            if self.broker.failure is not None:
                raise BrokerFailureError(f"the metadata log cannot be written: {self.broker.failure}")
            take = handle_broker_registration_response if registers else handle_broker_heartbeat_response
            self.lifecycle = take(core.protocol, self.lifecycle, answer, now).state

    def start(self, loop: asyncio.AbstractEventLoop) -> str:
        """Serve from now on; the address of the broker."""
        self.housekeeping = Housekeeping(self.broker, self.directory, loop)
        self.broker.listen(loop, self._listening)
        host = self._listening.getsockname()[0]
        if not is_loopback(host):
            LOG.warning("listening on %s: nobody is authenticated, and everybody who reaches it may do everything", host)
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
        self.lifecycle = begin_controlled_shutdown(self.lifecycle).state
        for _ in range(MOST_SHUTDOWN_REQUESTS):
            if self.lifecycle.state == BrokerState.PENDING_CONTROLLED_SHUTDOWN:
                self._communicate()
        self.lifecycle = stop(self.lifecycle).state
        high_watermarks = self.replicas.high_watermarks()
        self.metadata_log.close()
        self.directory.close(high_watermarks, self.lifecycle.broker_epoch)
        LOG.info("stopped")


def _bound(config: BrokerConfig) -> socket.socket:
    listener = config.listener
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((listener.host, listener.port))
    except OSError as error:
        sock.close()
        raise ConfigError(f"cannot listen on {listener.host}:{listener.port}: {error.strerror or error}") from error
    sock.listen(config["socket.listen.backlog.size"])
    sock.setblocking(False)
    return sock


def run(
    config: BrokerConfig, rules: Rules, new_loop: Callable[[], asyncio.AbstractEventLoop], trace: TraceWriter | None = None
) -> None:
    """Run a broker until SIGTERM or SIGINT. With a trace, each step of a rule is written."""
    raise_file_limit()
    running = RunningBroker(config, rules, trace.note if trace is not None else None)
    loop = new_loop()
    gc.freeze()
    gc.set_threshold(*COLLECTED_AFTER)
    stopped = asyncio.Event()
    running.broker.on_failure = stopped.set
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    try:
        address = running.start(loop)
        if config["metrics.listener"] is not None:
            loop.run_until_complete(running.broker.metrics.serve(config["metrics.listener"]))
        LOG.info("broker %d of cluster %s serves on %s", config.node_id, running.core.cluster_id, address)
        sys.stdout.write(f"ready {address}\n")
        sys.stdout.flush()
        loop.run_until_complete(stopped.wait())
    finally:
        try:
            if running.broker.failure is not None:
                running.abandon()
            running.stop()
        finally:
            loop.close()
            if trace is not None:
                trace.close()


def raise_file_limit() -> None:
    """Open as many files as the system allows this process: each partition has some, and each connection one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def warn_about(config: BrokerConfig, given: Mapping[str, str]) -> None:
    """Say which settings mean nothing here."""
    for name in config.unknown:
        LOG.warning("%s=%s is not known, and ignored", name, given[name])
