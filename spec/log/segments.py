"""A log as segment files: when a new segment begins, and which segments retention deletes."""

from typing import NamedTuple

from spec.values import Offset

NO_TIMESTAMP = -1
"""Kafka: `RecordBatch.NO_TIMESTAMP`."""

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
    created: int
    indexes_full: bool = False


class Incoming(NamedTuple):
    """Batches that are to be appended: their size in bytes, largest timestamp in ms, and last offset."""

    size: int
    max_timestamp: int
    last_offset: Offset


def must_roll(segment: ActiveSegment, incoming: Incoming, segment_bytes: int, segment_ms: int, now: int) -> bool:
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


def new_segment_base(batches_end: Offset, incoming: Incoming, first_offset: Offset) -> Offset:
    """The base offset of the segment that begins with these batches, the first of which lies at `first_offset`.

    It is `batches_end`, where the last batch before ends; so a start can tell that a segment is missing (`continues`). A gap
    may lie between the two, and the log's end within it: a log that is truncated to an offset ends there, whatever was
    before. Only if the gap is too long for an index the segment begins after it. What lies before is then flushed, and the
    recovery point noted, before anything is appended.

    **Kafka:** `UnifiedLog.maybeRoll` begins it at the first offset, or at the log's end: `LocalLog.roll`.
    """
    return batches_end if incoming.last_offset - batches_end <= LARGEST_RELATIVE_OFFSET else first_offset


def continues(end_before: Offset, base_offset: Offset, compacts: bool) -> bool:
    """Whether a segment that was not flushed follows on the one before, which has been checked up to its end.

    A disk may have kept a later file and lost the end of an earlier one, just between two batches. What follows such a gap
    is deleted. A compacted log (`compacts`) may have gaps anywhere, and is trusted.

    **Kafka:** `LogLoader.recoverLog` does not look: such a gap would stay in the log.
    """
    return compacts or end_before == base_offset


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
    now: int,
) -> int:
    """How many of a log's segments, from the first one on, may be deleted. The log then starts where the next one does.

    First those that lie below the log start; then as many as keep the log at or above `retention.size`; then those whose
    newest record is older than `retention.milliseconds`. Only committed records are deleted, and an empty last segment is
    kept. If all segments may go, a new one begins at the log's end first.

    **Kafka:** `UnifiedLog.deleteOldSegments`, `deletableSegments`.
    """
    ends = (*(segment.base_offset for segment in segments[1:]), log_end)
    last = len(segments) - 1

    def may_go(number: int) -> bool:
        return high_watermark >= ends[number] and not (number == last and segments[number].size == 0)

    gone = 0
    while gone < last and ends[gone] <= log_start and may_go(gone):
        gone += 1
    if not retention.deletes:
        return gone
    if retention.size != NO_LIMIT:
        excess = sum(segment.size for segment in segments[gone:]) - retention.size
        while gone <= last and excess >= segments[gone].size and may_go(gone):
            excess -= segments[gone].size
            gone += 1
    if retention.milliseconds != NO_LIMIT:
        while gone <= last and now - segments[gone].largest_timestamp > retention.milliseconds and may_go(gone):
            gone += 1
    return gone


def needs_index_entry(bytes_since_entry: int, index_interval_bytes: int) -> bool:
    """Whether the next batch gets an entry in the indexes. **Kafka:** `LogSegment.append`."""
    return bytes_since_entry > index_interval_bytes
