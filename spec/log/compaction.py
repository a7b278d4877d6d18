"""Compaction: of the records with one key only the last one stays.

A cleaner reads the dirty part of a log, notes the last offset of each key in it, and writes the log up to there anew,
without the records that have a later one. Offsets do not change; so gaps arise. A record without a value is a tombstone: it
stays until all consumers have had delete.retention.ms to see it.
"""

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from spec.values import UNKNOWN_OFFSET, Offset


def first_dirty_offset(checkpointed: Offset, log_start: Offset, log_end: Offset) -> Offset:
    """Where the part of a log begins that was not compacted yet.

    `checkpointed`: the offset in `cleaner-offset-checkpoint`, `UNKNOWN_OFFSET` if it lists none. One outside the log counts
    for nothing.

    **Kafka:** `LogCleanerManager.cleanableOffsets`.
    """
    return checkpointed if log_start <= checkpointed <= log_end else log_start


class DirtySegment(NamedTuple):
    """A segment after the first dirty offset: its largest timestamp in ms."""

    base_offset: Offset
    largest_timestamp: int


def first_uncleanable_offset(
    stable_end: Offset, active_base: Offset, dirty: Iterable[DirtySegment], min_lag: int, now: int
) -> Offset:
    """Where the part ends that may be compacted.

    It ends at the last stable offset, at the active segment, and at the first segment with a record younger than
    min.compaction.lag.ms.

    **Kafka:** `LogCleanerManager.cleanableOffsets`.
    """
    young = (one.base_offset for one in dirty if min_lag > 0 and one.largest_timestamp > now - min_lag)
    return min(stable_end, active_base, next(young, active_base))


def is_cleanable(
    clean_bytes: int, cleanable_bytes: int, min_ratio: float, oldest_dirty: int, max_lag: int, now: int
) -> bool:
    """Whether a log is worth compacting now.

    Either more than `min_ratio` (min.cleanable.dirty.ratio) of its bytes before the uncleanable part are dirty; or the first
    record of the dirty part (`oldest_dirty`, its timestamp in ms, -1 without) is older than max.compaction.lag.ms.

    **Kafka:** `LogCleanerManager.grabFilthiestCompactedLog`, `LogToClean`, `maxCompactionDelay`.
    """
    if cleanable_bytes <= 0:
        return False
    overdue = oldest_dirty >= 0 and now - oldest_dirty > max_lag
    return overdue or cleanable_bytes / (clean_bytes + cleanable_bytes) > min_ratio


def keeps_record(
    offset: Offset, latest_of_key: Offset, has_key: bool, has_value: bool, mapped_end: Offset, delete_horizon: int, now: int
) -> bool:
    """Whether a record stays.

    Parameters: its offset; the last offset of its key in the dirty part, `UNKNOWN_OFFSET` if it has none there; whether it
    has key and value; the end of the part whose keys were noted; the delete horizon of its batch in ms, -1 if it has none
    yet; the time. A record without a key goes.

    **Kafka:** `Cleaner.shouldRetainRecord`.
    """
    if offset >= mapped_end:
        return True
    is_tombstone_due = not has_value and 0 <= delete_horizon <= now
    return has_key and offset >= latest_of_key and not is_tombstone_due


class EmptyBatch(Enum):
    """What becomes of a batch without any record left. Kafka: `RecordFilter.BatchRetention`."""

    STAYS = "its header stays"
    GOES = "nothing stays"


def empty_batch(last_offset: Offset, last_of_producer: Offset, high_watermark: Offset) -> EmptyBatch:
    """Whether the header of a batch stays when all its records go.

    It does for the last batch of a producer (`last_of_producer` is the last offset of that, `UNKNOWN_OFFSET` without), so
    that its sequence numbers stay known; and for the batch before the high watermark, so that the log's end stays.

    **Kafka:** `Cleaner.cleanInto`, `checkBatchRetention`. **Leaves out:** aborted transactions and their markers.
    """
    is_last = last_of_producer != UNKNOWN_OFFSET and last_offset == last_of_producer
    return EmptyBatch.STAYS if is_last or last_offset + 1 == high_watermark else EmptyBatch.GOES


def new_delete_horizon(delete_horizon: int, has_tombstone: bool, now: int, retention: int) -> int:
    """The delete horizon of a batch that stays, in ms: set when a tombstone in it is compacted for the first time.

    `retention`: delete.retention.ms. -1 without tombstone.

    **Kafka:** `MemoryRecords.filterTo` (KIP-534).
    """
    return now + retention if delete_horizon < 0 and has_tombstone else delete_horizon


class SegmentSize(NamedTuple):
    """A segment that is to be compacted: bytes of batches, entries in its larger index, and its offsets (end exclusive)."""

    base_offset: Offset
    end_offset: Offset
    size: int
    index_entries: int


def group(segments: tuple[SegmentSize, ...], segment_bytes: int, index_entries: int, most_offsets: int) -> tuple[int, ...]:
    """How many segments, in order, are made into one: as many as fit within a segment's limits.

    **Kafka:** `Cleaner.groupSegmentsBySize`.
    """
    counts: list[int] = []
    first, size, entries = Offset(0), 0, 0
    for segment in segments:
        size, entries = size + segment.size, entries + segment.index_entries
        too_far = segment.size > 0 and segment.end_offset - 1 - first > most_offsets
        if counts and size <= segment_bytes and entries <= index_entries and not too_far:
            counts[-1] += 1
        else:
            counts.append(1)
            first, size, entries = segment.base_offset, segment.size, segment.index_entries
    return tuple(counts)
