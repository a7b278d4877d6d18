"""A broker as a process has it: the core, its files, its sockets, its timers. Effects are carried out here alone."""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, assert_never, cast

from kspec.impl.broker.calls import (
    Ask,
    BrokerEffect,
    Call,
    CopyMetadata,
    CopySnapshot,
    CutMetadata,
    Effect,
    Serve,
    Stop,
    Store,
    StoredPartition,
    StoreTogether,
    stores_among,
)
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.joining import joined
from kspec.impl.broker.replicas import Replicas
from kspec.impl.metadata.files import MetadataFiles
from kspec.impl.metadata.records import LogRecord
from kspec.impl.replica.metadata_copy import MetadataCopy
from kspec.impl.requests.dispatch import handlers_of
from kspec.impl.requests.groups import Groups
from kspec.impl.requests.transactions.coordinator import Transactions
from kspec.impl.server.metrics import Metrics
from kspec.impl.server.network.connection import Connection
from kspec.impl.server.own_requests import OwnRequest
from kspec.impl.server.shell import Shell
from kspec.impl.storage import StorageError
from kspec.impl.wire.values import Message
from kspec.spec.broker.effects import LogDeleted

LOG = logging.getLogger("kspec.broker")


class RequestSender(Protocol):
    """The sender of this process's requests to others."""

    def ask(self, asked: Ask) -> None:
        """Send a request; the answer comes later."""

    def close(self) -> None:
        """Close all connections."""


class BrokerShell(Shell):
    """The shell around the core."""

    kind = "broker"

    def __init__(self, core: BrokerCore, replicas: Replicas, metadata: MetadataFiles) -> None:
        super().__init__(core, core.apis, metadata)
        self.core = core
        self.replicas = replicas
        self.channels: RequestSender | None = None
        """To other processes, once an event loop runs."""
        self.on_serve: Callable[[], None] = lambda: None
        self.on_stop: Callable[[], None] = lambda: None
        self.groups = Groups(core)
        self.transactions = Transactions(core)
        self.handlers = handlers_of(core, self.groups, self.transactions)
        self.metrics = Metrics(core, self.connections, self.counts)

    # ---- effects

    def together(self, effects: list[Effect]) -> list[Effect]:
        """Batches to be stored come first, joined by partition: one large write takes half as long as many small ones."""
        stores, rest = stores_among(effects)
        by_partition: dict[StoredPartition, list[Store]] = {}
        for store in stores:
            by_partition.setdefault(store.replica, []).append(store)
        return [*map(joined, by_partition.values()), *rest]

    def carry_out_other(self, effect: BrokerEffect) -> None:
        """Carry out a broker's effects on its files, and on others."""
        match effect:
            case Store():
                self._store(effect)
            case StoreTogether():
                self.replicas.in_threads(self._store, effect.stores)
            case Ask():
                self.ask(effect)
            case CopyMetadata() | CopySnapshot() | CutMetadata():
                self._copy_metadata(effect)
            case Serve():
                self.on_serve()
            case Stop():
                self.complaint = self.complaint or effect.why
                self.on_stop()
            case _:
                assert_never(effect)

    def ask(self, asked: Ask) -> None:
        """Send a request to another process, or handle it here if it is for this broker."""
        if asked.channel.node == self.core.node_id:
            self._ask_itself(asked)
            return
        assert self.channels is not None, "no event loop runs yet"
        self.channels.ask(asked)

    def _ask_itself(self, asked: Ask) -> None:
        api = next((one for one in self.apis.values() if one.name == asked.api), None)
        if api is None:
            self.answered(asked, None)
            return
        request = OwnRequest(api, asked.message, partial(self.answered, asked))
        self.on_request(cast(Connection, request), request.header, api.name, request.message)

    def respond(self, call: Call, message: Message, is_long: bool = False) -> None:
        """Send the answer of a request, or take it if the request is this broker's own."""
        match call.peer:
            case OwnRequest():
                call.peer.take(message)
            case _:
                super().respond(call, message, is_long)

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
            match effect:
                case CopyMetadata():
                    copy.append(effect.batches, self.now())
                case CopySnapshot():
                    copy.begin_with(effect.snapshot, effect.content, self.now())
                case CutMetadata():
                    copy.cut(effect.end_offset)
                case _:
                    assert_never(effect)
        except (OSError, StorageError) as error:
            self.fail(error)
        else:
            self.take_snapshot()

    def append_metadata(self, records: Sequence[LogRecord]) -> list[Effect] | None:
        """A member of a cluster writes no metadata: its controller does."""
        raise AssertionError("this broker does not lead the metadata log")

    def metadata_stored(self, records: Sequence[LogRecord]) -> list[Effect]:
        """A member of a cluster writes no metadata: its controller does."""
        raise AssertionError("this broker does not lead the metadata log")

    def metadata_not_stored(self) -> None:
        """A member of a cluster writes no metadata: its controller does."""
        raise AssertionError("this broker does not lead the metadata log")

    def _store(self, effect: Store) -> None:
        """Change the files. Those of a partition that is offline stay as they are until the next start."""
        replica = effect.replica
        if replica.offline:
            if effect.on_failure is not None:
                effect.on_failure()
            return
        try:
            match effect.change:
                case LogDeleted():
                    replica.files.delete(self.now().monotonic)
                case change:
                    replica.files.apply(change, effect.payloads, self.now(), effect.separately)
        except (OSError, StorageError) as error:
            LOG.error("%s-%d is offline: %s", *replica.place, error)
            replica.fail()
            if effect.on_failure is not None:
                effect.on_failure()
