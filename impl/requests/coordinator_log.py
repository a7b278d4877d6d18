"""The partitions of an internal topic that this broker leads, and so coordinates: loaded from their logs, and given up.

The same for every coordinator: one of groups has `__consumer_offsets`, one of transactions `__transaction_state`.
"""

import logging
from abc import ABC, abstractmethod
from functools import partial
from typing import Generic, Protocol, TypeVar

from kspec.impl.broker.calls import Effect, aside
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.storage.segment import FileSlice
from kspec.spec.broker.partition import leads
from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.values import Instant, Offset

LOG = logging.getLogger("kspec.broker")

LOADED_AT_ONCE = 1 << 20
"""Bytes of a log that is loaded at once; a longer one is loaded in a thread."""

READ_BYTES = 8 << 20
"""Bytes of a longer log that are read at a time."""


class LoadedShard(Protocol):
    """The things of one partition."""

    replica: Replica


LoadedT = TypeVar("LoadedT")
ShardT = TypeVar("ShardT", bound=LoadedShard)


class LogReader(Protocol[LoadedT]):
    """Reads the log of a coordinator."""

    def nothing_read(self, replica: Replica) -> LoadedT:
        """State before any of it has been read."""

    def read(self, loaded: LoadedT, content: bytes) -> LoadedT:
        """State after one more stretch. It changes nothing, so a thread may do it."""


class PartitionLoad(Generic[LoadedT]):
    """One partition while it is read from its log, piece by piece. Kafka: `CoordinatorState.LOADING`.

    The log may change meanwhile. Where its start has moved, reading goes on from there: what is gone counts as far as it has
    been read, as it does for a coordinator that had read all of it. If the log was cut, all is read anew. Whatever goes
    wrong ends the load.
    """

    def __init__(self, replica: Replica, reader: LogReader[LoadedT]) -> None:
        self.replica = replica
        self.error: Exception | None = None
        self._reader = reader
        self._begin()

    def _begin(self) -> None:
        self.loaded = self._reader.nothing_read(self.replica)
        self._offset = self.replica.partition.local.log.start_offset
        self._cuts = self.replica.files.cuts
        self._is_at_end = False

    @property
    def is_over(self) -> bool:
        """Whether all has been read, or something could not be."""
        return self.error is not None or (self._is_at_end and not self._is_cut)

    @property
    def end(self) -> Offset:
        """The offset up to which the log has been read."""
        return self._offset

    @property
    def _is_cut(self) -> bool:
        return self.replica.files.cuts != self._cuts

    def next_piece(self) -> FileSlice | None:
        """The next stretch of the log; none if nothing is left, or it could not be found."""
        if self._is_cut:
            self._begin()
        files = self.replica.files
        try:
            offset, end = max(self._offset, files.log.start_offset), files.log.end_offset
            piece = files.read(offset, end, READ_BYTES, at_least_one=True)
        except Exception as error:  # whatever it is: a load that does not end would refuse what it coordinates for ever
            self.error = error
            return None
        self._offset = piece.next_offset
        self._is_at_end = self._offset >= end or not piece.length
        return piece

    def decode(self, piece: FileSlice | None) -> "LoadedT | Exception":
        """State with what a stretch of the log says. It changes nothing, so a thread may do it."""
        try:
            return self.loaded if piece is None else self._reader.read(self.loaded, piece.bytes())
        except Exception as error:
            return error

    def take(self, found: "LoadedT | Exception") -> None:
        """Keep what a piece has given, or the error, unless the log that it was read from is no more."""
        if self._is_cut:
            return
        if isinstance(found, Exception):
            self.error = found
        else:
            self.loaded = found


class CoordinatorLog(ABC, Generic[LoadedT, ShardT]):
    """Things that this broker coordinates, by the partition that keeps them."""

    topic: str
    """The name of the internal topic."""
    things: str
    """The name of its things, for messages."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self.shards: dict[int, ShardT] = {}
        self._loading: dict[int, PartitionLoad[LoadedT]] = {}

    @abstractmethod
    def nothing_read(self, replica: Replica) -> LoadedT:
        """State of a partition before its log is read."""

    @abstractmethod
    def read(self, loaded: LoadedT, content: bytes) -> LoadedT:
        """State after one more stretch of it."""

    @abstractmethod
    def new_shard(self, replica: Replica, loaded: LoadedT) -> ShardT:
        """A partition of which all has been read."""

    @property
    def partitions(self) -> int:
        """The number of the topic's partitions; none before it is created."""
        topic = self._core.cluster.image.topics.get(self.topic)
        return len(topic.partitions) if topic is not None else 0

    def shard_of(self, key: str) -> ShardT | None:
        """The partition that keeps something, by its name, if this broker coordinates it."""
        if not self.partitions:
            return None
        shard = self.shards.get(partition_for(key, self.partitions))
        return shard if shard is not None and self.is_led(shard.replica) else None

    def is_led(self, replica: Replica) -> bool:
        """Whether this broker leads a partition, and can write to it."""
        return (
            self._core.replicas.get(replica.place) is replica
            and not replica.offline
            and leads(self._core.broker(replica), replica.partition)
        )

    def keeps(self, shard: ShardT) -> bool:
        """Whether what was loaded still counts.

        A new epoch in which the broker still leads changes nothing: its log has stayed as it was.
        """
        return self.is_led(shard.replica)

    def led(self) -> list[ShardT]:
        """The partitions that this broker coordinates."""
        return [shard for shard in self.shards.values() if self.is_led(shard.replica)]

    def resigned(self, index: int) -> ShardT | None:
        """A partition that this broker has coordinated, and does not any more.

        **Kafka:** `CoordinatorRuntime.scheduleUnloadOperation`, `scheduleLoadOperation` of a coordinator that is active.
        """
        loading = self._loading.get(index)
        if loading is not None and not self.is_led(loading.replica):
            del self._loading[index]
        shard = self.shards.get(index)
        if shard is None or self.keeps(shard):
            return None
        shard.replica.on_high_watermark = None
        return self.shards.pop(index)

    def begin_loading(self, replica: Replica) -> "PartitionLoad[LoadedT] | None":
        """A partition that this broker coordinates since now, unless it does so, or loads it, already."""
        index = replica.place.partition
        if index in self.shards or not self.is_led(replica):
            return None
        known = self._loading.get(index)
        if known is not None and known.replica is replica:
            return None
        self._loading[index] = loading = PartitionLoad(replica, self)
        return loading

    def is_loading(self, key: str) -> bool:
        """Whether the log of the partition that keeps something is being read."""
        loading = self._loading.get(partition_for(key, self.partitions)) if self.partitions else None
        return loading is not None and self.is_led(loading.replica)

    def loads_any(self) -> bool:
        """Whether a log is being read, so that not all is known."""
        return any(self.is_led(loading.replica) for loading in self._loading.values())

    def is_wanted(self, loading: "PartitionLoad[LoadedT]") -> bool:
        """Whether what is being loaded is still to be coordinated by this broker; if not, it is forgotten."""
        index = loading.replica.place.partition
        if self._loading.get(index) is not loading:
            return False
        if self.is_led(loading.replica):
            return True
        del self._loading[index]
        return False

    def loaded(self, loading: "PartitionLoad[LoadedT]") -> ShardT | None:
        """All of a log has been read: what it keeps. None if it could not be read.

        A log that cannot be read has no coordinator; the others do not suffer. Kafka: `CoordinatorState.FAILED`.
        """
        index = loading.replica.place.partition
        del self._loading[index]
        if loading.error is not None:
            why = str(loading.error) or type(loading.error).__name__
            LOG.error("%s-%d cannot be read, so its %s have no coordinator: %s", *loading.replica.place, self.things, why)
            return None
        self.shards[index] = shard = self.new_shard(loading.replica, loading.loaded)
        return shard


class CoordinatorRole(ABC, Generic[LoadedT, ShardT]):
    """A coordinator: partitions of its log come to this broker and leave it, and what they keep with them."""

    log: CoordinatorLog[LoadedT, ShardT]

    @abstractmethod
    def activate(self, shard: ShardT, now: Instant) -> list[Effect]:
        """A partition has been loaded."""

    @abstractmethod
    def unload(self, shard: ShardT, now: Instant) -> list[Effect]:
        """A partition is not this broker's any more."""

    def role_changed(self, replica: Replica, now: Instant) -> list[Effect]:
        """This broker leads a partition of the topic, or does not any more.

        **Kafka:** `GroupCoordinatorService.onElection`, `onResignation`; the same of `TransactionCoordinator`.
        """
        if replica.place.topic != self.log.topic:
            return []
        effects = self._resign(replica.place.partition, now)
        loading = self.log.begin_loading(replica)
        if loading is None:
            return effects
        if replica.files.size <= LOADED_AT_ONCE:
            while not loading.is_over:
                loading.take(loading.decode(loading.next_piece()))
        return effects + self.go_on_loading(loading, now)

    def go_on_loading(self, loading: PartitionLoad[LoadedT], now: Instant) -> list[Effect]:
        """Read the next piece of a log, which a thread decodes; or, when all is read, coordinate what it keeps."""
        if not self.log.is_wanted(loading):
            return []
        if not loading.is_over:

            def take(found: LoadedT | Exception, later: Instant) -> list[Effect]:
                loading.take(found)
                return self.go_on_loading(loading, later)

            return [aside(None, partial(loading.decode, loading.next_piece()), take)]
        return self.all_read(loading, now)

    def all_read(self, loading: PartitionLoad[LoadedT], now: Instant) -> list[Effect]:
        """All of a log has been read, or it cannot be."""
        shard = self.log.loaded(loading)
        return [] if shard is None else self.activate(shard, now)

    def _resign(self, index: int, now: Instant) -> list[Effect]:
        shard = self.log.resigned(index)
        return [] if shard is None else self.unload(shard, now)

    def resign_if_offline(self, shard: ShardT, now: Instant) -> list[Effect]:
        """Records could not be stored: whoever waits for them is told so."""
        return self._resign(shard.replica.place.partition, now) if shard.replica.offline else []
