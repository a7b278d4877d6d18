"""A log as segment files: when a new segment begins, and which segments retention deletes."""

from typing import NamedTuple

from kspec.spec.values import Offset, TimestampMs

LARGEST_RELATIVE_OFFSET = 2**31 - 1
"""An index keeps offsets as four bytes, counted from the segment's base offset."""

NO_LIMIT = -1


class ActiveSegment(NamedTuple):
    """The segment that is appended to: its size in bytes, times in ms.

    `first_timestamp`: the largest timestamp of its first batch, `NO_TIMESTAMP` without one. `created`: when it was opened.
    `indexes_full`: an index has as many entries as segment.index.bytes allows.
    """

    base_offset: Offset
    size: int
    first_timestamp: int
    created: TimestampMs
    indexes_full: bool = False


class IncomingBatches(NamedTuple):
    """Batches that are to be appended: their size in bytes, largest timestamp in ms, and last offset."""

    size: int
    max_timestamp: int
    last_offset: Offset


def must_roll(
    segment: ActiveSegment, incoming: IncomingBatches, segment_bytes: int, segment_ms: int, now: TimestampMs
) -> bool:
    """Whether a new segment begins with these batches.

    It does if they do not fit within `segment_bytes`; if the segment spans more than `segment_ms`, by the timestamps of
    batches where its first one has a timestamp, else by the clock; if an index is full; or if the last offset is too far
    from the segment's base. An empty segment goes on except in the last case: rolling would give it the same name.

    **Kafka:** `LogSegment.shouldRoll`, `timeWaitedForRoll`, `LocalLog.roll`. **Leaves out:** segment.jitter.ms, which the
    caller takes off `segment_ms`.
    """
    too_far = incoming.last_offset - segment.base_offset > LARGEST_RELATIVE_OFFSET
    if segment.size == 0:
        return too_far
    since = incoming.max_timestamp - segment.first_timestamp if segment.first_timestamp >= 0 else now - segment.created
    return too_far or segment.indexes_full or since > segment_ms or segment.size > segment_bytes - incoming.size


def new_segment_base(batches_end: Offset, incoming: IncomingBatches, first_offset: Offset) -> Offset:
    """The base offset of the segment that begins with these batches, the first of which lies at `first_offset`.

    It is `batches_end`, where the last batch before ends; so a start can tell that a segment is missing (`continues`). A gap
    may lie between the two, and the log's end within it: a log that is truncated to an offset ends there, whatever was
    before. Only if the gap is too long for an index the segment begins after it. What lies before is then flushed, and the
    recovery point noted, before anything is appended.

    **Kafka:** `UnifiedLog.maybeRoll` begins it at the first offset, or at the log's end: `LocalLog.roll`.
    """
    return batches_end if incoming.last_offset - batches_end <= LARGEST_RELATIVE_OFFSET else first_offset


def continues(end_before: Offset, base_offset: Offset, compacts: bool) -> bool:
    """Whether a segment follows on the one before, which has been read up to its end.

    A disk may have kept a later file and lost the end of an earlier one, just between two batches. What was not flushed and
    follows such a gap is deleted. A log that is or was compacted (`compacts`) may have gaps anywhere; no log has an offset
    in two segments.

    **Kafka:** `LogLoader.recoverLog` does not look: such a gap would stay in the log.
    """
    return end_before <= base_offset if compacts else end_before == base_offset


def is_too_long(end_before: Offset, base_offset: Offset) -> bool:
    """Whether a gap between two segments may be too long for an index, and so be there on purpose (`new_segment_base`)."""
    return base_offset - end_before > LARGEST_RELATIVE_OFFSET // 2


class IndexedBatch(NamedTuple):
    """The batch at a position in a segment file, by its header: its first and last offset and largest timestamp (ms)."""

    base_offset: Offset
    last_offset: Offset
    max_timestamp: int


def names_batch(entry_offset: Offset, segment_base: Offset, batch: IndexedBatch) -> bool:
    """Whether an entry of an offset index may stand for the batch at its position: nobody who begins there misses a record.

    The entry's offset is the last one of the batch. Kafka before 4.0 notes the last one of several that were appended
    together, with the position of the first.

    **Kafka:** `LogSegment.append`. `OffsetIndex.sanityCheck` looks at the last entry alone, and at no batch.
    """
    return segment_base <= batch.base_offset <= batch.last_offset <= entry_offset


def dates_batch(entry_timestamp: int, entry_offset: Offset, batch: IndexedBatch) -> bool:
    """Whether an entry of a time index may stand for the batch with its offset: it has the largest timestamp of the batch.

    **Kafka:** `LogSegment.append`, `TimeIndex.maybeAppend`. `TimeIndex.sanityCheck` looks at the first and last entry alone.
    """
    return batch.base_offset <= entry_offset <= batch.last_offset and entry_timestamp == batch.max_timestamp


class StoredSegment(NamedTuple):
    """A segment as retention sees it: bytes, and its largest timestamp in ms (of its file, if no batch has one)."""

    base_offset: Offset
    size: int
    largest_timestamp: int


class Retention(NamedTuple):
    """retention.ms and retention.bytes, `NO_LIMIT` without. `deletes`: cleanup.policy has "delete"; else only the log start
    counts.
    """

    milliseconds: int
    size: int
    deletes: bool = True


def deletable_segments(
    segments: tuple[StoredSegment, ...],
    log_start: Offset,
    log_end: Offset,
    high_watermark: Offset,
    retention: Retention,
    now: TimestampMs,
) -> int:
    """The number of segments, from the first one on, that may be deleted. The log then starts where the next one does.

    First those that lie below the log start; then as many as keep the log at or above `retention.size`; then those whose
    newest record is older than `retention.milliseconds`. Only committed records are deleted, and an empty last segment is
    kept. If all segments may go, a new one begins at the log's end first.

    **Kafka:** `UnifiedLog.deleteOldSegments`, `deletableSegments`, since 3.0.
    """
    committed = _may_go(segments, log_end, high_watermark)
    gone = _below_start(segments, log_start, committed, 0)
    if not retention.deletes:
        return gone
    gone = _beyond_size(segments, retention, committed, gone)
    return _too_old(segments, retention, now, committed, gone)


def deletable_segments_by_age_first(
    segments: tuple[StoredSegment, ...],
    log_start: Offset,
    log_end: Offset,
    high_watermark: Offset,
    retention: Retention,
    now: TimestampMs,
) -> int:
    """As `deletable_segments`, but in another order: the oldest, then what is too much, then those below the log start.

    So an old segment behind a younger one stays until the next time.

    **Kafka:** `Log.deleteOldSegments` in 2.1 to 2.8 (KAFKA-12177).
    """
    committed, gone = _may_go(segments, log_end, high_watermark), 0
    if retention.deletes:
        gone = _too_old(segments, retention, now, committed, gone)
        gone = _beyond_size(segments, retention, committed, gone)
    return _below_start(segments, log_start, committed, gone)


def _may_go(segments: tuple[StoredSegment, ...], log_end: Offset, high_watermark: Offset) -> tuple[bool, ...]:
    """Whether each segment is committed, and not an empty last one."""
    ends = (*(segment.base_offset for segment in segments[1:]), log_end)
    kept = len(segments) - 1 if segments and segments[-1].size == 0 else None
    return tuple(high_watermark >= end and number != kept for number, end in enumerate(ends[: len(segments)]))


def _below_start(segments: tuple[StoredSegment, ...], log_start: Offset, committed: tuple[bool, ...], gone: int) -> int:
    while gone < len(segments) - 1 and segments[gone + 1].base_offset <= log_start and committed[gone]:
        gone += 1
    return gone


def _beyond_size(segments: tuple[StoredSegment, ...], retention: Retention, committed: tuple[bool, ...], gone: int) -> int:
    if retention.size == NO_LIMIT:
        return gone
    excess = sum(segment.size for segment in segments[gone:]) - retention.size
    while gone < len(segments) and excess >= segments[gone].size and committed[gone]:
        excess -= segments[gone].size
        gone += 1
    return gone


def _too_old(
    segments: tuple[StoredSegment, ...], retention: Retention, now: TimestampMs, committed: tuple[bool, ...], gone: int
) -> int:
    if retention.milliseconds == NO_LIMIT:
        return gone
    while gone < len(segments) and now - segments[gone].largest_timestamp > retention.milliseconds and committed[gone]:
        gone += 1
    return gone


def deletable_segments_by_policy(
    segments: tuple[StoredSegment, ...],
    log_start: Offset,
    log_end: Offset,
    high_watermark: Offset,
    retention: Retention,
    now: TimestampMs,
) -> int:
    """As `deletable_segments_by_age_first`, but none where cleanup.policy is "compact" alone, even before the log start.

    **Kafka:** `Log.deleteOldSegments` in 1.0 to 2.0.
    """
    if not retention.deletes:
        return 0
    return deletable_segments_by_age_first(segments, log_start, log_end, high_watermark, retention, now)


def deletable_segments_even_uncommitted(
    segments: tuple[StoredSegment, ...],
    log_start: Offset,
    log_end: Offset,
    high_watermark: Offset,
    retention: Retention,
    now: TimestampMs,
) -> int:
    """As `deletable_segments_by_policy`, but records that are not committed are deleted, too (KAFKA-5634).

    **Kafka:** `Log.deleteOldSegments` up to 0.11.
    """
    return deletable_segments_by_policy(segments, log_start, log_end, log_end, retention, now)


def needs_index_entry(bytes_since_entry: int, index_interval_bytes: int) -> bool:
    """Whether the next batch gets an entry in the indexes. **Kafka:** `LogSegment.append`."""
    return bytes_since_entry > index_interval_bytes
