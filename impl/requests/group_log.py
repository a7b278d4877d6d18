"""The partitions of `__consumer_offsets` that this broker leads: the groups in them, and the records that keep them."""

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias, assert_never

from kspec.impl.broker.calls import Effect
from kspec.impl.broker.replica import Replica
from kspec.impl.coordinator.records import KIND_SIZE, KINDS_OF_OFFSETS, decode, encode, end_of_transaction
from kspec.impl.records.batch import TRANSACTIONAL, BatchHeader, header_at, headers
from kspec.impl.records.reading import record_places
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.requests.coordinator_log import CoordinatorLog
from kspec.spec.coordinator.effects import PersistRecords, PersistTransactionalOffsets
from kspec.spec.coordinator.loading import entries_needed
from kspec.spec.coordinator.records import LogEntry, OffsetCommitRecord, TransactionalCommit
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
from kspec.spec.releases.names import coordinator_of
from kspec.spec.transactions.log.partition import NO_GUARD
from kspec.spec.values import Error, GroupId, Instant, Offset

TOPIC = "__consumer_offsets"
StoredRecords: TypeAlias = PersistRecords | PersistTransactionalOffsets
"""Records that a step of a group stores."""

LARGE_PIECE = 1 << 16
"""Bytes of a log from which it is worth it to find out which commits are needed."""


class Shard:
    """The groups of one partition that this broker leads. Kafka: `CoordinatorContext`."""

    def __init__(self, replica: Replica, groups: tuple[CoordinatedGroup, ...], committed: Offset) -> None:
        self.replica = replica
        self.groups = {group.latest.group_id: group for group in groups}
        self.committed = committed
        """The high watermark, as far as the groups have been told of it."""
        self.unsettled = {group_id for group_id, group in self.groups.items() if group.latest.pending_offsets}
        """The groups of whose offsets a transaction is open."""
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
        if group.latest.pending_offsets:
            self.unsettled.add(group_id)
        else:
            self.unsettled.discard(group_id)
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


class GroupLog(CoordinatorLog[LoadedGroups, Shard]):
    """The groups of this broker, by the partition of `__consumer_offsets` that keeps them."""

    topic, things = TOPIC, "groups"

    def nothing_read(self, replica: Replica) -> LoadedGroups:
        """No group, of a log that is committed so far."""
        return LoadedGroups(replica.partition.local.high_watermark)

    def read(self, loaded: LoadedGroups, content: bytes) -> LoadedGroups:
        """The groups after one more stretch."""
        rules = coordinator_of(self._core.protocol.name)
        return load_groups(loaded, _entries_in(content, loaded.committed), rules.counts_at_end)

    def new_shard(self, replica: Replica, loaded: LoadedGroups) -> Shard:
        """The groups of which there is something to know."""
        return Shard(replica, loaded.known(), loaded.committed)

    def append(
        self, replica: Replica, stored: StoredRecords, now: Instant, guard: int = NO_GUARD
    ) -> tuple[Error, list[Effect]]:
        """Append records of a group, as one batch: whether the log takes them, and what follows.

        `guard`: the one under which the transaction was verified that they are of.
        """
        batch = memoryview(batch_of(stored, now))
        return self._core.append_own(replica, header_at(batch), batch, now, guard)


def batch_of(stored: StoredRecords, now: Instant) -> bytes:
    """The batch of records of a group. Offsets of a transaction are in one of its producer, without a sequence number.

    **Kafka:** `CoordinatorContext.maybeAllocateNewBatch`.
    """
    match stored:
        case PersistRecords(records):
            return new_batch([(now.timestamp, *encode(record)) for record in records])
        case PersistTransactionalOffsets(producer_epoch, commits):
            return new_batch(
                [(now.timestamp, *encode(one.commit)) for one in commits],
                attributes=TRANSACTIONAL,
                producer_id=commits[0].producer_id,
                producer_epoch=producer_epoch,
            )
        case _:
            assert_never(stored)


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
