"""A controller as a process has it: the core, the metadata log, sockets and timers. Effects are carried out here alone."""

import asyncio
import logging
import socket
from collections.abc import Sequence

from kspec.impl.broker.calls import BrokerEffect, Effect
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.dispatch import controller_handlers
from kspec.impl.controller.timing import start_timers
from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.metadata.records import LogRecord
from kspec.impl.server import clock
from kspec.impl.server.files import BrokerFailureError, closing, open_directory
from kspec.impl.server.process import NewLoop, begin, event_loop, say_ready, warn_about, warn_if_open
from kspec.impl.server.shell import Shell
from kspec.impl.storage import RealDisk
from kspec.impl.trace.steps import TraceWriter
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.spec.controller.protocol import Controller

LOG = logging.getLogger("kspec.controller")


class ControllerShell(Shell):
    """The shell around the core."""

    kind = "controller"

    def __init__(self, core: ControllerCore, metadata_log: MetadataLog) -> None:
        super().__init__(core, CONTROLLER_APIS, metadata_log)
        self.core = core
        self.handlers = controller_handlers(core)

    def carry_out_other(self, effect: BrokerEffect) -> None:
        """A controller has no files but the metadata log, and asks nobody."""
        raise AssertionError(f"a controller has no {effect}")

    def metadata_stored(self, records: Sequence[LogRecord]) -> list[Effect]:
        """Those who wait for records are answered."""
        return self.core.stored(records, self.now())

    def metadata_not_stored(self) -> None:
        """The core forgets."""
        self.core.not_stored()


class RunningController:
    """A controller from its start to its stop. Raises: `ConfigError`, `StorageError`, `BrokerFailureError`."""

    def __init__(
        self,
        config: ControllerConfig,
        rules: Controller,
        listening: socket.socket,
        note: StepRecorder | None = None,
        may_format: bool = True,
    ) -> None:
        self.config = config
        self._disk = RealDisk()
        self._listening = listening
        now = clock.now()
        self.directory = open_directory(config, self._disk, may_format)
        self.metadata_log = MetadataLog(self._disk, config.log_dir, now)
        self.core = ControllerCore(config, rules, self.metadata_log, self.metadata_log.image(), now)
        self.core.deciding.note = note
        self.core.cluster_id = self.directory.cluster_id
        self.core.port = self._listening.getsockname()[1]
        self.shell = ControllerShell(self.core, self.metadata_log)

    def start(self, loop: asyncio.AbstractEventLoop) -> str:
        """Lead the metadata log in a new epoch, and serve from now on; the address of the controller."""
        now = clock.now()
        self.shell.carry_out(self.core.lead(now))
        if self.shell.failure is not None:
            raise BrokerFailureError(self.shell.complaint)
        start_timers(self.core, now)
        self.shell.listen(loop, self._listening)
        warn_if_open(LOG, self._listening)
        return f"{self.core.host}:{self.core.port}"

    def stop(self) -> None:
        """Stop in order. The log is on the disk already."""
        self.shell.stop_listening()
        with closing(self.shell.complaint):
            self.metadata_log.close()
            self.directory.close({}, None)
        if self.shell.failure is not None:
            raise BrokerFailureError(self.shell.complaint)
        LOG.info("stopped")


def run_controller(
    config: ControllerConfig,
    rules: Controller,
    listening: socket.socket,
    new_loop: NewLoop,
    trace: TraceWriter | None = None,
    may_format: bool = True,
) -> None:
    """Run a controller until SIGTERM or SIGINT. With a trace, each step of a rule is written."""
    warn_about(LOG, config.ignored)
    with event_loop(new_loop, trace) as loop:
        running = RunningController(config, rules, listening, trace.note if trace is not None else None, may_format)
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
