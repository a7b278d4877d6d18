"""A broker as a process has it: the core, its files, its sockets, its timers. Effects are carried out here alone."""

import logging
from collections.abc import Callable
from typing import Protocol

from impl.broker.calls import (
    AppendMetadata,
    Ask,
    CopyMetadata,
    CutMetadata,
    Drop,
    Effect,
    NoResponse,
    Respond,
    Serve,
    Stop,
    Store,
    StoreTogether,
    Then,
)
from impl.broker.core import Core
from impl.broker.replicas import Replicas
from impl.metadata.log import MetadataLog
from impl.replica.metadata_copy import MetadataCopy
from impl.requests.dispatch import handlers_of
from impl.requests.groups import Groups
from impl.server.metrics import Metrics
from impl.server.shell import Shell
from impl.storage import StorageError
from impl.wire.values import Message, refused
from spec.broker.effects import LogDeleted
from spec.controller.topics.cluster import NOT_STORED

LOG = logging.getLogger("kspec.broker")


class Asking(Protocol):
    """What sends the requests of this process to others."""

    def ask(self, asked: Ask) -> None:
        """Send a request; the answer comes later."""

    def close(self) -> None:
        """Close all connections."""


class Broker(Shell):
    """The shell around the core."""

    def __init__(self, core: Core, replicas: Replicas, metadata: MetadataLog | MetadataCopy) -> None:
        super().__init__(core, core.apis)
        self.core = core
        self.replicas = replicas
        self._metadata = metadata
        self.channels: Asking | None = None
        """To other processes, if there are any."""
        self.on_serve: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.groups = Groups(core)
        self.handlers = handlers_of(core, self.groups)
        if core.elsewhere is not None:
            core.role_changed.append(self.groups.role_changed)
        self.metrics = Metrics(core, self.connections, self.counts)

    # ---- effects

    def carry_out(self, effects: list[Effect]) -> None:
        """Carry out effects in their order, each complete before the next, with all that follows from it."""
        for number, effect in enumerate(effects):
            if isinstance(effect, Store):
                self._store(effect)
            elif isinstance(effect, StoreTogether):
                self.replicas.in_threads(self._store, effect.stores)
            elif isinstance(effect, Respond):
                self.respond(effect.call, effect.message)
            elif isinstance(effect, Then):
                self.carry_out(effect.effects())
            elif isinstance(effect, NoResponse):
                self.connection_of(effect.call).answer(effect.call.place, [])
            elif isinstance(effect, Drop):
                self.connection_of(effect.call).close()
            elif isinstance(effect, AppendMetadata):
                if not self._append_metadata(effect):
                    self._refuse(effects[number + 1 :])
                    return
                self.carry_out(self.replicas.apply(self.now()))
            elif isinstance(effect, Ask):
                assert self.channels is not None, "there is no other process"
                self.channels.ask(effect)
            elif isinstance(effect, (CopyMetadata, CutMetadata)):
                self._copy_metadata(effect)
            elif isinstance(effect, Serve):
                self.on_serve()
            elif isinstance(effect, Stop):
                self.on_stop()

    def answered(self, asked: Ask, answer: Message | None) -> None:
        """The answer to a request of this process, or none."""
        self.carry_out(asked.take(answer, self.now()))
        self.set_timer()

    def _copy_metadata(self, effect: CopyMetadata | CutMetadata) -> None:
        """Store what was fetched of the metadata log. If that fails, the broker ends, and fetches it again at its start."""
        copy = self._metadata
        assert isinstance(copy, MetadataCopy)
        try:
            if isinstance(effect, CopyMetadata):
                copy.append(effect.batches, self.now())
            elif effect.snapshot is not None:
                copy.begin_with(effect.end_offset, *effect.snapshot, self.now())
            else:
                copy.cut(effect.end_offset)
        except (OSError, StorageError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        LOG.critical("the metadata log cannot be written, so the broker ends: %s", error)
        self.failure = error
        self.on_failure()

    def _append_metadata(self, effect: AppendMetadata) -> bool:
        """Whether the records are stored. If not, what was decided is forgotten, and the broker ends."""
        log = self._metadata
        assert isinstance(log, MetadataLog)
        if self.failure is None:
            try:
                stored = log.append(effect.records)
            except (OSError, StorageError) as error:
                self._fail(error)
            else:
                self.core.deciding.stored(stored)
                self._take_snapshot(log)
                return True
        self.core.deciding.not_stored()
        return False

    def _take_snapshot(self, log: MetadataLog) -> None:
        """Take a snapshot of the metadata log if it has become long; without one it is only longer."""
        if log.size >= self.core.config["metadata.log.max.record.bytes.between.snapshots"]:
            try:
                log.take_snapshot(self.core.cluster.image, self.now())
            except (OSError, StorageError) as error:
                LOG.error("no snapshot of the metadata log could be taken: %s", error)

    def _refuse(self, effects: list[Effect]) -> None:
        """Answer those who wait for a change of the metadata that was not stored."""
        for effect in effects:
            if isinstance(effect, Respond):
                self.respond(effect.call, refused(effect.message, NOT_STORED.value))

    def _store(self, effect: Store) -> None:
        replica = effect.replica
        try:
            if isinstance(effect.change, LogDeleted):
                replica.files.delete(self.now())
            else:
                replica.files.apply(effect.change, effect.payloads, self.now())
        except (OSError, StorageError) as error:
            LOG.error("%s-%d is offline: %s", *replica.place, error)
            replica.offline = True
            if effect.on_failure is not None:
                effect.on_failure()
