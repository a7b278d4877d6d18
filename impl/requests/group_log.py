"""The partitions of `__consumer_offsets` that this broker leads: the groups in them, and the records that keep them."""

import logging
from collections import deque
from collections.abc import Iterator

from kspec.impl.broker.calls import Effect
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.coordinator.records import KIND_SIZE, KINDS_OF_OFFSETS, decode, encode, end_of_transaction
from kspec.impl.records.batch import BatchHeader, header_at, headers
from kspec.impl.records.reading import record_places
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.storage.segment import FileSlice
from kspec.spec.broker.partition import leads
from kspec.spec.coordinator.loading import entries_needed
from kspec.spec.coordinator.records import GroupRecord, LogEntry, OffsetCommitRecord, TransactionalCommit
from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.coordinator.runtime import (
    CoordinatedGroup,
    LoadedGroups,
    LoggedEntry,
    LogPosition,
    is_forgotten,
    load_groups,
    unknown_group,
    waits_for,
)
from kspec.spec.values import Error, GroupId, Instant, Offset

LOG = logging.getLogger("kspec.broker")

TOPIC = "__consumer_offsets"
LOADED_AT_ONCE = 1 << 20
"""Bytes of a log that is loaded at once; a longer one is loaded in a thread."""

READ_BYTES = 8 << 20
"""Bytes of a longer log that are read at a time."""


LARGE_PIECE = 1 << 16
"""Bytes of a log from which it is worth it to find out which commits are needed."""


class Shard:
    """The groups of one partition that this broker leads. Kafka: `CoordinatorContext`."""

    def __init__(self, replica: Replica, groups: tuple[CoordinatedGroup, ...], committed: Offset) -> None:
        self.replica = replica
        self.groups = {group.latest.group_id: group for group in groups}
        self.committed = committed
        """The high watermark, as far as the groups have been told of it."""
        ends = sorted((write.end, group.latest.group_id) for group in groups for write in group.writes)
        self.awaited: deque[tuple[Offset, GroupId]] = deque(ends)
        """The offsets to be committed, in order, with the groups that wait for them."""

    @property
    def index(self) -> int:
        """The number of the partition."""
        return self.replica.place.partition

    @property
    def position(self) -> LogPosition:
        """The end of the log, and how far it is committed."""
        return LogPosition(self.replica.partition.local.log.end_offset, self.committed)

    def group(self, group_id: GroupId) -> CoordinatedGroup:
        """A group as it is now."""
        return self.groups.get(group_id) or unknown_group(group_id)

    def keep(self, group: CoordinatedGroup) -> None:
        """A group as it is from now on."""
        group_id = group.latest.group_id
        last = waits_for(group)
        if last > waits_for(self.group(group_id)):
            self.awaited.append((last, group_id))
        if is_forgotten(group):
            self.groups.pop(group_id, None)
        else:
            self.groups[group_id] = group

    def commit(self, committed: Offset) -> list[GroupId]:
        """More is committed: the groups that have waited for that."""
        self.committed = committed
        found: dict[GroupId, None] = {}
        while self.awaited and self.awaited[0][0] <= committed:
            found[self.awaited.popleft()[1]] = None
        return list(found)


class ShardLoad:
    """The groups of one partition while they are read from its log, piece by piece. Kafka: `CoordinatorState.LOADING`.

    The log may change meanwhile. Where its start has moved, reading goes on from there: what is gone counts as far as it has
    been read, as it does for a coordinator that had read all of it. If the log was cut, all is read anew. Whatever goes
    wrong ends the load.
    """

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self.error: Exception | None = None
        self._begin()

    def _begin(self) -> None:
        local = self.replica.partition.local
        self.groups = LoadedGroups(local.high_watermark)
        self._offset = local.log.start_offset
        self._cuts = self.replica.files.cuts
        self._is_at_end = False

    @property
    def is_over(self) -> bool:
        """Whether all has been read, or something could not be."""
        return self.error is not None or (self._is_at_end and not self._is_cut)

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
        except Exception as error:  # whatever it is: a load that does not end would refuse its groups for ever
            self.error = error
            return None
        self._offset = piece.next_offset
        self._is_at_end = self._offset >= end or not piece.length
        return piece

    def decode(self, piece: FileSlice | None) -> "LoadedGroups | Exception":
        """The groups with what a stretch of the log says. It changes nothing, so a thread may do it."""
        try:
            return (
                self.groups if piece is None else load_groups(self.groups, _entries_in(piece.bytes(), self.groups.committed))
            )
        except Exception as error:
            return error

    def take(self, found: "LoadedGroups | Exception") -> None:
        """Keep the groups that a piece has given, or the error, unless the log that it was read from is no more."""
        if self._is_cut:
            return
        if isinstance(found, Exception):
            self.error = found
        else:
            self.groups = found


class GroupLog:
    """The groups of this broker, by the partition of `__consumer_offsets` that keeps them."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self.shards: dict[int, Shard] = {}
        self._loading: dict[int, ShardLoad] = {}

    @property
    def partitions(self) -> int:
        """The number of the topic's partitions; none before it is created."""
        topic = self._core.cluster.image.topics.get(TOPIC)
        return len(topic.partitions) if topic is not None else 0

    def shard_of(self, group_id: GroupId) -> Shard | None:
        """The partition that keeps a group, if this broker coordinates it."""
        if not self.partitions:
            return None
        shard = self.shards.get(partition_for(group_id, self.partitions))
        return shard if shard is not None and self.is_led(shard.replica) else None

    def is_led(self, replica: Replica) -> bool:
        """Whether this broker leads a partition, and can write to it."""
        return (
            self._core.replicas.get(replica.place) is replica
            and not replica.offline
            and leads(self._core.broker(replica), replica.partition)
        )

    def led(self) -> list[Shard]:
        """The partitions that this broker coordinates."""
        return [shard for shard in self.shards.values() if self.is_led(shard.replica)]

    def resigned(self, index: int) -> Shard | None:
        """A partition that this broker has coordinated, and does not any more.

        A new epoch in which it still leads changes nothing: its log has stayed as it was.

        **Kafka:** `CoordinatorRuntime.scheduleUnloadOperation`, `scheduleLoadOperation` of a coordinator that is active.
        """
        loading = self._loading.get(index)
        if loading is not None and not self.is_led(loading.replica):
            del self._loading[index]
        shard = self.shards.get(index)
        if shard is None or self.is_led(shard.replica):
            return None
        shard.replica.on_high_watermark = None
        return self.shards.pop(index)

    def begin_loading(self, replica: Replica) -> "ShardLoad | None":
        """A partition that this broker coordinates since now, unless it does so, or loads it, already."""
        index = replica.place.partition
        if index in self.shards or not self.is_led(replica):
            return None
        known = self._loading.get(index)
        if known is not None and known.replica is replica:
            return None
        self._loading[index] = loading = ShardLoad(replica)
        return loading

    def is_loading(self, group_id: GroupId) -> bool:
        """Whether the log of the partition that keeps a group is being read."""
        loading = self._loading.get(partition_for(group_id, self.partitions)) if self.partitions else None
        return loading is not None and self.is_led(loading.replica)

    def loads_any(self) -> bool:
        """Whether a log is being read, so that not all groups are known."""
        return any(self.is_led(loading.replica) for loading in self._loading.values())

    def is_wanted(self, loading: "ShardLoad") -> bool:
        """Whether what is being loaded is still to be coordinated by this broker; if not, it is forgotten."""
        index = loading.replica.place.partition
        if self._loading.get(index) is not loading:
            return False
        if self.is_led(loading.replica):
            return True
        del self._loading[index]
        return False

    def loaded(self, loading: "ShardLoad") -> Shard | None:
        """All of a log has been read: its groups. None if it could not be read.

        A log that cannot be read has no coordinator; the others do not suffer. Kafka: `CoordinatorState.FAILED`.
        """
        index = loading.replica.place.partition
        del self._loading[index]
        if loading.error is not None:
            why = str(loading.error) or type(loading.error).__name__
            LOG.error("%s-%d cannot be read, so its groups have no coordinator: %s", *loading.replica.place, why)
            return None
        self.shards[index] = shard = Shard(loading.replica, loading.groups.known(), loading.groups.committed)
        return shard

    def append(self, replica: Replica, records: tuple[GroupRecord, ...], now: Instant) -> tuple[Error, list[Effect]]:
        """Append records of a group, as one batch: whether the log takes them, and what follows."""
        batch = memoryview(new_batch([(now.timestamp, *encode(record)) for record in records]))
        return self._core.append_own(replica, header_at(batch), batch, now)


def _entries_in(content: bytes, committed: Offset) -> Iterator[LoggedEntry]:
    """The entries about groups in batches of the log, without commits that others make needless: those are not decoded.

    Where something is not committed yet, or of a transaction, all are given.
    """
    places = record_places(content) if len(content) >= LARGE_PIECE else None
    if places and places[-1][0] <= committed:
        keys = [content[key : key + size] for _, key, size, _, _ in places]
        offsets = [
            key if value_size >= 0 and key[:KIND_SIZE] in KINDS_OF_OFFSETS else None
            for key, (_, _, _, _, value_size) in zip(keys, places, strict=True)
        ]
        for number in entries_needed(offsets):
            end, _, _, value, size = places[number]
            entry = decode(keys[number], content[value : value + size] if size >= 0 else None)
            if entry is not None:
                yield LoggedEntry(Offset(end), entry)
        return
    view = memoryview(content)
    for header in headers(view):
        yield from _entries_of(header, view[header.position : header.position + header.size])


def _entries_of(header: BatchHeader, batch: memoryview) -> Iterator[LoggedEntry]:
    """Entries about groups in a batch of the log. **Kafka:** `CoordinatorLoaderImpl.processMemoryRecords`."""
    for record in records_of(batch):
        entry: LogEntry | None
        if header.control:
            entry = end_of_transaction(header.producer_id, record.key or b"")
        else:
            entry = decode(record.key or b"", record.value)
            if header.transactional and isinstance(entry, OffsetCommitRecord):
                entry = TransactionalCommit(header.producer_id, entry)
        if entry is not None:
            yield LoggedEntry(Offset(record.offset + 1), entry)
