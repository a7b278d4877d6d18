"""Compaction: of the records with one key only the last one stays.

A cleaner reads the dirty part of a log, notes the last offset of each key in it, and writes the log up to there anew,
without the records that have a later one. Offsets do not change; so gaps arise. A record without a value is a tombstone: it
stays until all consumers have had delete.retention.ms to see it.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from kspec.spec.values import NO_SEQUENCE, UNKNOWN_OFFSET, Offset, TimestampMs

UNKNOWN_TIME = -1


def first_dirty_offset(
    checkpointed: Offset, log_start: Offset, log_end: Offset, first_segment: Offset = UNKNOWN_OFFSET
) -> Offset:
    """The first offset of a log that was not compacted yet.

    `checkpointed`: the offset in `cleaner-offset-checkpoint`, `UNKNOWN_OFFSET` if it lists none. One outside the log counts
    for nothing. `first_segment`: the base offset of the first segment, `UNKNOWN_OFFSET` if the log starts with it; here it
    does not matter.

    **Kafka:** `LogCleanerManager.cleanableOffsets`, since 2.4.
    """
    return checkpointed if log_start <= checkpointed <= log_end else log_start


def first_dirty_offset_even_beyond(
    checkpointed: Offset, log_start: Offset, log_end: Offset, first_segment: Offset = UNKNOWN_OFFSET
) -> Offset:
    """As `first_dirty_offset`, but one beyond the end counts: a log that was truncated is not compacted until it is there.

    And the log counts from its first segment on, of which records may have been deleted.

    **Kafka:** `LogCleanerManager.cleanableOffsets` up to 2.3.
    """
    return max(checkpointed, log_start if first_segment == UNKNOWN_OFFSET else first_segment)


NO_BOUND = Offset(2**63 - 1)


def committed_end(high_watermark: Offset, first_unstable: Offset) -> Offset:
    """The offset at which compaction ends at the latest: the last stable offset.

    Parameters: the high watermark; the first offset of an open transaction, `UNKNOWN_OFFSET` without.

    **Kafka:** `LogCleanerManager.cleanableOffsets`, since 3.1 (KAFKA-13194).
    """
    return high_watermark if first_unstable == UNKNOWN_OFFSET else min(high_watermark, first_unstable)


def unbounded_without_transaction(high_watermark: Offset, first_unstable: Offset) -> Offset:
    """As `committed_end`, but only an open transaction is a bound: without one, uncommitted records are compacted, too.

    **Kafka:** `LogCleanerManager.cleanableOffsets` up to 3.0.
    """
    return NO_BOUND if first_unstable == UNKNOWN_OFFSET else first_unstable


class DirtySegment(NamedTuple):
    """A segment after the first dirty offset: its largest timestamp in ms."""

    base_offset: Offset
    largest_timestamp: int


def first_uncleanable_offset(
    stable_end: Offset, active_base: Offset, dirty: Iterable[DirtySegment], min_lag: int, now: TimestampMs
) -> Offset:
    """The end of the part that may be compacted.

    It ends at `stable_end` (`committed_end`), at the active segment, and at the first segment with a record younger than
    min.compaction.lag.ms.

    **Kafka:** `LogCleanerManager.cleanableOffsets`, since 0.10.1.
    """
    young = (one.base_offset for one in dirty if min_lag > 0 and one.largest_timestamp > now - min_lag)
    return min(stable_end, active_base, next(young, active_base))


def first_uncleanable_offset_without_lag(
    stable_end: Offset, active_base: Offset, dirty: Iterable[DirtySegment], min_lag: int, now: TimestampMs
) -> Offset:
    """As `first_uncleanable_offset`, but however young the records are. **Kafka:** `Cleaner.clean` in 0.10.0."""
    return first_uncleanable_offset(stable_end, active_base, (), min_lag, now)


def is_cleanable(
    clean_bytes: int, cleanable_bytes: int, min_ratio: float, oldest_dirty: int, max_lag: int, now: TimestampMs
) -> bool:
    """Whether a log is worth compacting now.

    Either more than `min_ratio` (min.cleanable.dirty.ratio) of its bytes before the uncleanable part are dirty; or the first
    record of the dirty part (`oldest_dirty`, its timestamp in ms, -1 without) is older than max.compaction.lag.ms.

    **Kafka:** `LogCleanerManager.grabFilthiestCompactedLog`, `LogToClean`, `maxCompactionDelay`, since 2.3 (KIP-354).
    """
    if cleanable_bytes <= 0:
        return False
    overdue = oldest_dirty >= 0 and now - oldest_dirty > max_lag
    return overdue or cleanable_bytes / (clean_bytes + cleanable_bytes) > min_ratio


def is_cleanable_by_ratio(
    clean_bytes: int, cleanable_bytes: int, min_ratio: float, oldest_dirty: int, max_lag: int, now: TimestampMs
) -> bool:
    """As `is_cleanable`, but however old the dirty part is. **Kafka:** `grabFilthiestCompactedLog` up to 2.2."""
    return is_cleanable(clean_bytes, cleanable_bytes, min_ratio, UNKNOWN_TIME, max_lag, now)


def keeps_record(
    offset: Offset,
    latest_of_key: Offset,
    has_key: bool,
    has_value: bool,
    mapped_end: Offset,
    delete_horizon: int,
    now: TimestampMs,
) -> bool:
    """Whether a record stays.

    Parameters: its offset; the last offset of its key in the dirty part, `UNKNOWN_OFFSET` if it has none there; whether it
    has key and value; the end of the part whose keys were noted; the time in ms from which the tombstones of its batch may
    go (`horizon_of_batch`), -1 if they stay; the time. A record without a key goes.

    **Kafka:** `Cleaner.shouldRetainRecord`, since 0.10.1.
    """
    beyond = offset >= mapped_end
    return beyond or keeps_record_even_beyond(offset, latest_of_key, has_key, has_value, mapped_end, delete_horizon, now)


def keeps_record_even_beyond(
    offset: Offset,
    latest_of_key: Offset,
    has_key: bool,
    has_value: bool,
    mapped_end: Offset,
    delete_horizon: int,
    now: TimestampMs,
) -> bool:
    """As `keeps_record`, but records beyond the part whose keys were noted are judged, too.

    So a tombstone may go there before the records that it deletes.

    **Kafka:** `Cleaner.shouldRetainMessage` in 0.10.0.
    """
    is_tombstone_due = not has_value and 0 <= delete_horizon <= now
    return has_key and offset >= latest_of_key and not is_tombstone_due


class EmptyBatch(Enum):
    """Treatment of a batch without any record left. Kafka: `RecordFilter.BatchRetention`."""

    STAYS = "its header stays"
    GOES = "nothing stays"


def empty_batch(
    last_offset: Offset,
    last_of_producer: Offset,
    uncleanable: Offset,
    last_sequence: int = NO_SEQUENCE,
    last_sequence_of_producer: int = NO_SEQUENCE,
) -> EmptyBatch:
    """Whether the header of a batch stays when all its records go.

    It does for the last batch of a producer (`last_of_producer` is the last offset of that, `UNKNOWN_OFFSET` without), so
    that its sequence numbers stay known; and for the last batch before the first offset that is not compacted this time
    (`uncleanable`), so that a follower that fetches there is told where the log goes on. The last sequence numbers, of the
    batch and of its producer, do not matter here.

    **Kafka:** `Cleaner.cleanInto`, `checkBatchRetention` (KAFKA-17076, since 3.9.2 and 4.0).
    """
    if last_offset + 1 == uncleanable:
        return EmptyBatch.STAYS
    return empty_batch_of_producer(last_offset, last_of_producer, uncleanable)


def empty_batch_of_producer(
    last_offset: Offset,
    last_of_producer: Offset,
    uncleanable: Offset,
    last_sequence: int = NO_SEQUENCE,
    last_sequence_of_producer: int = NO_SEQUENCE,
) -> EmptyBatch:
    """As `empty_batch`, but only for the last batch of a producer.

    **Kafka:** `Cleaner.cleanInto`, 2.3 to 3.9.1.
    """
    is_last = last_of_producer != UNKNOWN_OFFSET and last_offset == last_of_producer
    return EmptyBatch.STAYS if is_last else EmptyBatch.GOES


def empty_batch_of_sequence(
    last_offset: Offset,
    last_of_producer: Offset,
    uncleanable: Offset,
    last_sequence: int = NO_SEQUENCE,
    last_sequence_of_producer: int = NO_SEQUENCE,
) -> EmptyBatch:
    """As `empty_batch_of_producer`, but for each batch that ends with the last sequence number of its producer.

    An earlier epoch of the producer may have one. A batch without sequence numbers is such a one, too, if the producer's
    last has none.

    **Kafka:** `Cleaner.cleanInto`, 0.11 to 2.2.
    """
    is_last = last_of_producer != UNKNOWN_OFFSET and last_sequence == last_sequence_of_producer
    return EmptyBatch.STAYS if is_last else EmptyBatch.GOES


def empty_batch_goes(
    last_offset: Offset,
    last_of_producer: Offset,
    uncleanable: Offset,
    last_sequence: int = NO_SEQUENCE,
    last_sequence_of_producer: int = NO_SEQUENCE,
) -> EmptyBatch:
    """Nothing stays of a batch when all its records go. **Kafka:** up to 0.10, before KIP-98."""
    return EmptyBatch.GOES


def new_delete_horizon(delete_horizon: int, has_tombstone: bool, now: TimestampMs, retention: int) -> int:
    """The delete horizon of a batch that stays, in ms: set when a tombstone in it is compacted for the first time.

    `retention`: delete.retention.ms. -1 without tombstone.

    **Kafka:** `MemoryRecords.filterTo`, since 3.1 (KIP-534).
    """
    return now + retention if delete_horizon < 0 and has_tombstone else delete_horizon


def no_new_delete_horizon(delete_horizon: int, has_tombstone: bool, now: TimestampMs, retention: int) -> int:
    """Batches have no delete horizon, see `horizon_of_segment`. **Kafka:** up to 3.0."""
    return delete_horizon


def horizon_of_batch(delete_horizon: int, segment_written: int, clean_written: int, retention: int) -> int:
    """The time in ms from which the tombstones of a batch may go, -1 if they stay: the batch's delete horizon.

    Parameters: the delete horizon, -1 if the batch has none; when the batch's segment was written last, and when the last
    segment before the dirty part, -1 without, which do not matter here; delete.retention.ms.

    **Kafka:** `Cleaner.shouldRetainRecord`, since 3.1 (KIP-534). **Leaves out:** batches in the formats before 2, for which
    `horizon_of_segment` is right.
    """
    return delete_horizon


def horizon_of_segment(delete_horizon: int, segment_written: int, clean_written: int, retention: int) -> int:
    """As `horizon_of_batch`, but a tombstone's age is that of its segment, when the last compacted one was written.

    So those in the last compacted segment stay until a later one is compacted: for ever in a log that is not written to.

    **Kafka:** `Cleaner.clean`, `cleanSegments` up to 3.0.
    """
    return segment_written if segment_written + retention <= clean_written else UNKNOWN_TIME


class SegmentSize(NamedTuple):
    """A segment that is to be compacted: bytes of batches, entries in its larger index, and its offsets (end exclusive)."""

    base_offset: Offset
    end_offset: Offset
    size: int
    index_entries: int


def group(segments: tuple[SegmentSize, ...], segment_bytes: int, index_entries: int, most_offsets: int) -> tuple[int, ...]:
    """The numbers of segments, in order, that are made into one: as many as fit within a segment's limits.

    **Kafka:** `Cleaner.groupSegmentsBySize`, since 3.0 (KAFKA-12889).
    """
    return _grouped(segments, segment_bytes, index_entries, most_offsets, counts_empty=False)


def group_by_offsets_of_all(
    segments: tuple[SegmentSize, ...], segment_bytes: int, index_entries: int, most_offsets: int
) -> tuple[int, ...]:
    """As `group`, but the offsets of an empty segment count, too: many of them stay apart, and each costs a file.

    **Kafka:** `Cleaner.groupSegmentsBySize` up to 2.8.
    """
    return _grouped(segments, segment_bytes, index_entries, most_offsets, counts_empty=True)


def _grouped(
    segments: tuple[SegmentSize, ...], segment_bytes: int, index_entries: int, most_offsets: int, *, counts_empty: bool
) -> tuple[int, ...]:
    counts: list[int] = []
    first, size, entries = Offset(0), 0, 0
    for segment in segments:
        size, entries = size + segment.size, entries + segment.index_entries
        counts_offsets = counts_empty or segment.size > 0
        too_far = counts_offsets and segment.end_offset - 1 - first > most_offsets
        if counts and size <= segment_bytes and entries <= index_entries and not too_far:
            counts[-1] += 1
        else:
            counts.append(1)
            first, size, entries = segment.base_offset, segment.size, segment.index_entries
    return tuple(counts)
