"""A controller as a process has it: the core, the metadata log, sockets and timers. Effects are carried out here alone."""

import asyncio
import logging
import socket
import uuid

from impl.broker.calls import Effect, Note
from impl.broker.replicas import id_text
from impl.config.controller import ControllerConfig
from impl.controller.core import ControllerCore
from impl.controller.dispatch import controller_handlers
from impl.controller.features import first_records
from impl.controller.timing import start_timers
from impl.metadata.log import MetadataLog
from impl.metadata.records import LogRecord
from impl.server.clock import now_ms
from impl.server.process import NewLoop, begin, event_loop, say_ready, warn_if_open
from impl.server.shell import Shell
from impl.server.startup import BrokerFailureError
from impl.storage import LogDirectory, RealDisk
from impl.storage.small_files import META_PROPERTIES, read_meta
from impl.trace.steps import TraceWriter
from impl.wire.apis import CONTROLLER_APIS
from spec.controller.protocol import Controller
from spec.values import Epoch

LOG = logging.getLogger("kspec.controller")


FIRST_EPOCH = Epoch(1)
"""The first controller epoch: nobody is elected in epoch 0, in which observers begin. Kafka: `QuorumState.initialize`."""


class ControllerShell(Shell):
    """The shell around the core."""

    kind = "controller"

    def __init__(self, core: ControllerCore, metadata_log: MetadataLog) -> None:
        super().__init__(core, CONTROLLER_APIS, metadata_log)
        self.core = core
        self.handlers = controller_handlers(core)

    def carry_out_other(self, effect: Effect) -> None:
        """A controller has no files but the metadata log, and asks nobody."""
        raise AssertionError(f"a controller has no {effect}")

    def metadata_stored(self, records: list[LogRecord]) -> list[Effect]:
        """Those who wait for records are answered."""
        return self.core.stored(records, self.now())

    def metadata_not_stored(self) -> None:
        """The core forgets."""
        self.core.not_stored()


class RunningController:
    """A controller from its start to its stop. Raises: `ConfigError`, `StorageError`, `BrokerFailureError`."""

    def __init__(
        self, config: ControllerConfig, rules: Controller, listening: socket.socket, note: Note | None = None
    ) -> None:
        self.config = config
        self._disk = RealDisk()
        self._listening = listening
        now = now_ms()
        self.directory = self._open_directory()
        self.metadata_log = MetadataLog(self._disk, config.log_dir, now)
        self.metadata_log.epoch = max(self.metadata_log.epoch, FIRST_EPOCH)
        self.core = ControllerCore(config, rules, self.metadata_log, self.metadata_log.image(), now)
        self.core.cluster.note = note
        self.core.cluster_id = self.directory.cluster_id
        self.core.port = self._listening.getsockname()[1]
        self.shell = ControllerShell(self.core, self.metadata_log)

    def _open_directory(self) -> LogDirectory:
        path, cluster_id = self.config.log_dir, self.config["cluster.id"]
        if cluster_id is None:
            known = (path / META_PROPERTIES).exists()
            cluster_id = read_meta(self._disk, str(path))["cluster.id"] if known else id_text(uuid.uuid4().bytes)
        return LogDirectory.open(str(path), self._disk, cluster_id, self.config.node_id)

    def start(self, loop: asyncio.AbstractEventLoop) -> str:
        """Lead the metadata log in a new epoch, and serve from now on; the address of the controller.

        **Kafka:** `QuorumController.claim`, `CompleteActivationEvent`.
        """
        now = now_ms()
        self.core.stored(self.metadata_log.begin_epoch(self.config.node_id, now), now)
        if not self.core.finalized_features:
            self.shell.carry_out(self.core.change_metadata(first_records(self.core)))
        if self.shell.failure is not None:
            raise BrokerFailureError(f"the metadata log cannot be written: {self.shell.failure}")
        start_timers(self.core, now)
        self.shell.listen(loop, self._listening)
        warn_if_open(LOG, self._listening)
        return f"{self.core.host}:{self.core.port}"

    def stop(self) -> None:
        """Stop in order. The log is on the disk already."""
        self.shell.stop_listening()
        self.metadata_log.close()
        self.directory.close({}, None)
        if self.shell.failure is not None:
            raise BrokerFailureError(f"the metadata log cannot be written: {self.shell.failure}")
        LOG.info("stopped")


def run_controller(
    config: ControllerConfig,
    rules: Controller,
    listening: socket.socket,
    new_loop: NewLoop,
    trace: TraceWriter | None = None,
) -> None:
    """Run a controller until SIGTERM or SIGINT. With a trace, each step of a rule is written."""
    for name, value in config.unknown.items():
        LOG.warning("%s=%s is not known, and ignored", name, value)
    with event_loop(new_loop, trace) as loop:
        running = RunningController(config, rules, listening, trace.note if trace is not None else None)
        stopped = asyncio.Event()
        running.shell.on_failure = stopped.set
        begin(loop, stopped.set)
        try:
            address = running.start(loop)
            LOG.info("controller %d of cluster %s serves on %s", config.node_id, running.core.cluster_id, address)
            say_ready(address)
            loop.run_until_complete(stopped.wait())
        finally:
            running.stop()
