"""A broker as a process has it: the core, its files, its sockets, its timers. Effects are carried out here alone."""

import logging
from collections.abc import Callable
from typing import Protocol

from impl.broker.calls import (
    Ask,
    CopyMetadata,
    CopySnapshot,
    CutMetadata,
    Effect,
    Serve,
    Stop,
    Store,
    StoreTogether,
)
from impl.broker.core import Core
from impl.broker.joining import joined
from impl.broker.replica import Replica
from impl.broker.replicas import Replicas
from impl.metadata.files import MetadataFiles
from impl.metadata.records import LogRecord
from impl.replica.metadata_copy import MetadataCopy
from impl.requests.dispatch import handlers_of
from impl.requests.groups import Groups
from impl.server.metrics import Metrics
from impl.server.shell import Shell
from impl.storage import StorageError
from impl.wire.values import Message
from spec.broker.effects import LogDeleted

LOG = logging.getLogger("kspec.broker")


class Asking(Protocol):
    """What sends the requests of this process to others."""

    def ask(self, asked: Ask) -> None:
        """Send a request; the answer comes later."""

    def close(self) -> None:
        """Close all connections."""


class Broker(Shell):
    """The shell around the core."""

    kind = "broker"

    def __init__(self, core: Core, replicas: Replicas, metadata: MetadataFiles) -> None:
        super().__init__(core, core.apis, metadata)
        self.core = core
        self.replicas = replicas
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

    def together(self, effects: list[Effect]) -> list[Effect]:
        """What is to be stored comes first, joined by partition: one large write takes half as long as many small ones."""
        stores: dict[Replica, list[Store]] = {}
        rest: list[Effect] = []
        for effect in effects:
            if isinstance(effect, Store):
                stores.setdefault(effect.replica, []).append(effect)
            else:
                rest.append(effect)
        return [*(joined(of_one) for of_one in stores.values()), *rest]

    def carry_out_other(self, effect: Effect) -> None:
        """What a broker does with its files, and with others."""
        if isinstance(effect, Store):
            self._store(effect)
        elif isinstance(effect, StoreTogether):
            self.replicas.in_threads(self._store, effect.stores)
        elif isinstance(effect, Ask):
            assert self.channels is not None, "there is no other process"
            self.channels.ask(effect)
        elif isinstance(effect, (CopyMetadata, CopySnapshot, CutMetadata)):
            self._copy_metadata(effect)
        elif isinstance(effect, Serve):
            self.on_serve()
        elif isinstance(effect, Stop):
            self.on_stop()

    def answered(self, asked: Ask, answer: Message | None) -> None:
        """The answer to a request of this process, or none.

        Files that cannot be opened or written end the broker: by metadata it may have taken only a part of what they say.
        **Kafka:** `LogManager.handleLogDirFailure`, which halts a broker without another log directory.
        """
        try:
            self.carry_out(asked.take(answer, self.now()))
        except (OSError, StorageError) as error:
            self.fail(error, "a partition cannot be opened or written")
        self.set_timer()

    def _copy_metadata(self, effect: CopyMetadata | CopySnapshot | CutMetadata) -> None:
        """Store what was fetched of the metadata log. If that fails, the broker ends, and fetches it again at its start."""
        copy = self.metadata
        assert isinstance(copy, MetadataCopy)
        try:
            if isinstance(effect, CopyMetadata):
                copy.append(effect.batches, self.now())
            elif isinstance(effect, CopySnapshot):
                copy.begin_with(effect.snapshot, effect.content, self.now())
            else:
                copy.cut(effect.end_offset)
        except (OSError, StorageError) as error:
            self.fail(error)
        else:
            self.take_snapshot()

    def metadata_stored(self, records: list[LogRecord]) -> list[Effect]:
        """The partitions follow."""
        self.core.deciding.stored(records)
        return self.replicas.apply(self.now())

    def metadata_not_stored(self) -> None:
        """The controller in this process forgets."""
        self.core.deciding.not_stored()

    def _store(self, effect: Store) -> None:
        """Change the files. Those of a partition that is offline stay as they are until the next start."""
        replica = effect.replica
        if replica.offline:
            if effect.on_failure is not None:
                effect.on_failure()
            return
        try:
            if isinstance(effect.change, LogDeleted):
                replica.files.delete(self.now())
            else:
                replica.files.apply(effect.change, effect.payloads, self.now(), effect.separately)
        except (OSError, StorageError) as error:
            LOG.error("%s-%d is offline: %s", *replica.place, error)
            replica.offline = True
            if effect.on_failure is not None:
                effect.on_failure()
