"""A controller as a process has it: the core, the metadata log, sockets and timers. Effects are carried out here alone."""

import asyncio
import logging
import socket
import time
from collections.abc import Sequence

from kspec.impl.broker.calls import Ask, BrokerEffect, Effect, Respond
from kspec.impl.broker.replicas import id_bytes
from kspec.impl.config.controller import ControllerConfig
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.dispatch import controller_handlers
from kspec.impl.controller.timing import start_timers
from kspec.impl.metadata.active import StepRecorder
from kspec.impl.metadata.log import MetadataLog
from kspec.impl.metadata.records import LogRecord
from kspec.impl.server import clock
from kspec.impl.server.broker import RequestSender
from kspec.impl.server.files import BrokerFailureError, closing, open_directory
from kspec.impl.server.network.channels import Channels
from kspec.impl.server.process import NewLoop, begin, event_loop, say_ready, warn_about, warn_if_open
from kspec.impl.server.shell import Shell
from kspec.impl.storage import RealDisk
from kspec.impl.trace.steps import TraceWriter
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.values import Message, refused_whatever
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.state import check_active
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.values import DirectoryId, Epoch

LOG = logging.getLogger("kspec.controller")

LONGEST_RESIGNATION_S, RESIGNATION_POLL_S = 2.0, 0.02
"""The longest wait for others to know that this controller resigns, and the pause between two looks (s)."""


class ControllingShell(Shell):
    """A shell around a controller, which may have a broker beside it."""

    controller: ControllerCore

    def append_metadata(self, records: Sequence[LogRecord]) -> list[Effect] | None:
        """Append what the controller has decided."""
        return self.controller.append(records, self.now())

    def metadata_not_stored(self) -> None:
        """The controller forgets."""
        self.controller.not_stored()

    def answer(self, effect: Respond) -> None:
        """Send an answer: that of the active controller when all is committed that it may rest on."""
        term = effect.call.term
        if term is None:
            super().answer(effect)
        elif not self._decides_in(term):
            self._refuse(effect)
        elif effect.released or self.controller.all_committed:
            super().answer(effect)
        else:
            self.controller.hold(effect)

    def _decides_in(self, term: Epoch) -> bool:
        return self.controller.is_active and self.controller.voter.epoch == term

    def _refuse(self, effect: Respond) -> None:
        error = check_active(is_active=False)
        super().answer(Respond(effect.call, refused_whatever(effect.message, error.value), effect.is_long))

    def refuse(self, effects: list[Effect]) -> None:
        """Answer those who wait for a change of the metadata that was not stored, here or because another one decides."""
        if self.failure is not None:
            super().refuse(effects)
            return
        for effect in effects:
            match effect:
                case Respond():
                    self._refuse(effect)
                case _:
                    pass

    def take_snapshot(self) -> None:
        """Take a snapshot of the metadata log if it has become long, and all of it is committed."""
        if self.controller.all_committed and self.failure is None:
            super().take_snapshot()
            self.controller.voter.snapshot_taken()


class ControllerShell(ControllingShell):
    """The shell around the core."""

    kind = "controller"

    def __init__(self, core: ControllerCore, metadata_log: MetadataLog) -> None:
        super().__init__(core, CONTROLLER_APIS, metadata_log)
        self.core = self.controller = core
        core.after_commit = self.take_snapshot
        self.handlers = controller_handlers(core)
        self.channels: RequestSender | None = None
        """To the other controllers, once an event loop runs."""

    def carry_out_other(self, effect: BrokerEffect) -> None:
        """A controller has no files but the metadata log, and asks other controllers."""
        match effect:
            case Ask():
                assert self.channels is not None, "no event loop runs yet"
                self.channels.ask(effect)
            case _:
                raise AssertionError(f"a controller has no {effect}")

    def answered(self, asked: Ask, answer: Message | None) -> None:
        """The answer to a request of this process, or none."""
        if self.failure is None:
            self.carry_out(asked.take(answer, self.now()))
        self.set_timer()

    def metadata_stored(self, records: Sequence[LogRecord]) -> list[Effect]:
        """Count what was decided."""
        self.core.stored(records)
        return []


class RunningController:
    """A controller from its start to its stop. Raises: `ConfigError`, `StorageError`, `BrokerFailureError`."""

    def __init__(
        self,
        config: ControllerConfig,
        rules: Controller,
        listening: socket.socket,
        note: StepRecorder | None = None,
        may_format: bool = True,
        quorum: QuorumProtocol | None = None,
    ) -> None:
        self.config = config
        self._disk = RealDisk()
        self._listening = listening
        now = clock.now()
        self.directory = open_directory(config, self._disk, may_format)
        self.metadata_log = MetadataLog(self._disk, config.log_dir, now)
        self.core = ControllerCore(config, rules, self.metadata_log, quorum=quorum)
        self.core.deciding.note = self.core.voter.note = note
        self.core.cluster_id = self.directory.cluster_id
        self.core.voter.directory = DirectoryId(id_bytes(self.directory.directory_id))
        if config.advertised is config.listener:  # whose port the operating system may have chosen
            self.core.port = self._listening.getsockname()[1]
        self.core.host = self.core.host or socket.gethostname()  # others cannot reach it at every address
        self.shell = ControllerShell(self.core, self.metadata_log)
        self._channels: Channels | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> str:
        """Begin as a voter, and serve from now on; the address of the controller. The only voter leads in a new epoch."""
        now = clock.now()
        largest = self.config.number("socket.request.max.bytes")
        self.shell.channels = self._channels = Channels(loop, self.core.place_of, largest, self.shell.answered)
        self.shell.carry_out(self.core.start(now))
        if self.shell.failure is not None:
            raise BrokerFailureError(self.shell.complaint)
        start_timers(self.core, now)
        self.shell.listen(loop, self._listening)
        warn_if_open(LOG, self._listening)
        host, port = self.config.listener.host, self._listening.getsockname()[1]
        return f"{host}:{port}"

    async def resign(self) -> None:
        """Give up the office, if this controller has it, and tell the others. Kafka: `KafkaRaftClient.shutdown`."""
        if len(self.core.voter.voters) == 1:
            return
        self.shell.carry_out(self.core.voter.resign(clock.now()))
        end = time.monotonic() + LONGEST_RESIGNATION_S
        while self.core.voter.has_resigned and self.shell.failure is None and time.monotonic() < end:
            await asyncio.sleep(RESIGNATION_POLL_S)

    def stop(self) -> None:
        """Stop in order. The log is on the disk already."""
        self.shell.stop_listening()
        if self._channels is not None:
            self._channels.close()
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
    quorum: QuorumProtocol | None = None,
) -> None:
    """Run a controller until SIGTERM or SIGINT. With a trace, each step of a rule is written."""
    warn_about(LOG, config.ignored)
    with event_loop(new_loop, trace) as loop:
        note = trace.note if trace is not None else None
        running = RunningController(config, rules, listening, note, may_format, quorum)
        stopped = asyncio.Event()
        running.shell.on_failure = stopped.set
        begin(loop, stopped.set)
        try:
            address = running.start(loop)
            LOG.info("controller %d of cluster %s serves on %s", config.node_id, running.core.cluster_id, address)
            say_ready(address)
            loop.run_until_complete(stopped.wait())
            loop.run_until_complete(running.resign())
        finally:
            running.stop()
