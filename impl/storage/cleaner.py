"""Compaction of a partition's segments. The rules are in `spec.log.compaction`. Kafka: `Cleaner`, `LogCleaner`.

It goes on from batch to batch, so that who asks for it can do something else between two of them.
"""

from collections.abc import Generator, Sequence
from typing import TypeVar

from kspec.impl.records.batch import HEADER_SIZE, BatchHeader, header_at
from kspec.impl.records.record import StoredRecord, batch_of, records_of
from kspec.impl.storage.partition import PartitionFiles
from kspec.impl.storage.producer_state import LastBatch
from kspec.impl.storage.segment import Segment
from kspec.spec.log.compaction import (
    DirtySegment,
    EmptyBatch,
    SegmentSize,
)
from kspec.spec.log.producers import ProducerBatch
from kspec.spec.log.segments import LARGEST_RELATIVE_OFFSET
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.releases.upkeep import NEWEST as RULES
from kspec.spec.transactions.log.compaction import (
    CleanedBatch,
    CleanedTransactions,
    is_last_of_producer,
    read_batch,
    read_marker,
    with_aborted,
)
from kspec.spec.transactions.log.reading import aborted_between
from kspec.spec.values import NO_SEQUENCE, NO_TIMESTAMP, UNKNOWN_OFFSET, Instant, Offset, TimestampMs

HAS_HORIZON = 0x40
CODEC = 0x07


R = TypeVar("R")

Steps = Generator[None, None, R]
"""Work that pauses after each batch, and then has a result."""


class _CutShortError(Exception):
    """Segments were cut, deleted or closed while they were being compacted."""


def at_once(steps: Steps[R]) -> R:
    """The result of work, without pauses."""
    while True:
        try:
            next(steps)
        except StopIteration as ended:
            result: R = ended.value
            return result


def compact(files: PartitionFiles, checkpointed: Offset, stable_end: Offset, now: Instant) -> Steps[Offset | None]:
    """Compact a log if it is worth it: the end of the compacted part, for `cleaner-offset-checkpoint`; none if it is not.

    `checkpointed` is what that file says, `UNKNOWN_OFFSET` if it lists none. `stable_end`: the last stable offset. Nothing
    comes of it, either, if segments that are being compacted are cut or deleted meanwhile.

    **Kafka:** `LogCleanerManager.abortCleaning`.
    """
    config, log = files.config, files.log
    first_segment = files.segments[0].base_offset
    start = RULES.first_dirty_offset(checkpointed, log.start_offset, log.end_offset, first_segment)
    inactive = files.segments[:-1]
    dirty = [segment for segment in inactive if _end(files, segment) > start]
    ages = [DirtySegment(segment.base_offset, segment.largest_timestamp) for segment in dirty]
    active_base = files.segments[-1].base_offset
    bound = RULES.compacted_end(stable_end, UNKNOWN_OFFSET)
    end = RULES.first_uncleanable_offset(bound, active_base, ages, config.min_compaction_lag_ms, now.timestamp)
    dirty = [segment for segment in dirty if _end(files, segment) <= end]
    clean_bytes = sum(segment.size for segment in inactive if _end(files, segment) <= start)
    dirty_bytes = sum(segment.size for segment in dirty)
    oldest = dirty[0].first_timestamp if dirty else NO_TIMESTAMP
    ratio = config.min_cleanable_dirty_ratio
    if not RULES.is_cleanable(clean_bytes, dirty_bytes, ratio, oldest, config.max_compaction_lag_ms, now.timestamp):
        return None
    mapped_end = _end(files, dirty[-1])
    todo = [segment for segment in inactive if segment.base_offset < mapped_end]
    try:
        latest = yield from _latest_offsets(files, dirty, start)
        yield from _clean_all(files, todo, latest, mapped_end, end, now)
    except _CutShortError:
        return None
    return mapped_end


def _clean_all(
    files: PartitionFiles,
    todo: list[Segment],
    latest: dict[bytes, Offset],
    mapped_end: Offset,
    end: Offset,
    now: Instant,
) -> Steps[None]:
    config = files.config
    sizes = tuple(
        SegmentSize(one.base_offset, _end(files, one), one.size, max(len(one.offsets), len(one.times))) for one in todo
    )
    transactions = _Transactions(files)
    for count in RULES.group(sizes, config.segment_bytes, config.segment_index_bytes // 12, LARGEST_RELATIVE_OFFSET):
        yield from _clean(files, todo[:count], latest, mapped_end, end, transactions, now)
        del todo[:count]


class _Transactions:
    """The transactions in the part of a log that is being read."""

    def __init__(self, files: PartitionFiles) -> None:
        self._files = files
        self._state = CleanedTransactions()

    def enter(self, segment: Segment) -> None:
        """Go on with a segment."""
        start = segment.base_offset
        found = aborted_between(TRANSACTIONS_NEXT, self._files.aborted(start), start, _end(self._files, segment))
        self._state = with_aborted(self._state, found)

    def read(self, segment: Segment, header: BatchHeader) -> CleanedBatch:
        """Go on with a batch: whether it may go."""
        if header.control:
            marker = segment.marker(header)
            ended = None if marker is None else marker.committed
            found = read_marker(TRANSACTIONS_NEXT, self._state, header.producer_id, ended, header.last_offset)
        else:
            found = read_batch(self._state, header.producer_id, header.last_offset, header.transactional)
        self._state = found.state
        return found


def _end(files: PartitionFiles, segment: Segment) -> Offset:
    """The beginning of the next segment: there may be a gap before it."""
    number = files.segments.index(segment) + 1
    return files.segments[number].base_offset if number < len(files.segments) else files.log.end_offset


class _SegmentsBefore:
    """Some segments of a log, as they are at first."""

    def __init__(self, files: PartitionFiles, segments: Sequence[Segment]) -> None:
        self._files = files
        self._sizes = {segment.base_offset: (segment, segment.size) for segment in segments}

    def check(self) -> None:
        """Raises: `_CutShortError`, unless all of them are still as they were."""
        present = {one.base_offset: one for one in self._files.segments}
        for base, (segment, size) in self._sizes.items():
            if present.get(base) is not segment or segment.size != size:
                raise _CutShortError


def _latest_offsets(files: PartitionFiles, segments: Sequence[Segment], start: Offset) -> Steps[dict[bytes, Offset]]:
    """The last offset of each key from `start` on. **Kafka:** `Cleaner.buildOffsetMap`."""
    latest: dict[bytes, Offset] = {}
    unchanged, transactions = _SegmentsBefore(files, segments), _Transactions(files)
    for segment in segments:
        transactions.enter(segment)
        for header in segment.headers():
            yield
            unchanged.check()
            is_aborted = transactions.read(segment, header).may_go
            if header.next_offset > start and not header.control and not is_aborted:
                for record in records_of(segment.log.read(header.position, header.size)):
                    if record.key is not None and record.offset >= start:
                        latest[record.key] = record.offset
    return latest


def _clean(
    files: PartitionFiles,
    segments: Sequence[Segment],
    latest: dict[bytes, Offset],
    mapped_end: Offset,
    uncleanable: Offset,
    transactions: _Transactions,
    now: Instant,
) -> Steps[None]:
    """Write what stays of some segments into one, and put it in their place. **Kafka:** `Cleaner.cleanSegments`."""
    cleaned = files.inside.new_cleaned(segments[0].base_offset, files.config, now.timestamp)
    written = False
    try:
        yield from _write_rest(files, segments, cleaned, latest, mapped_end, uncleanable, transactions, now)
        written = True
    finally:
        if not written:
            files.inside.drop_cleaned(cleaned)
    files.replace(segments, cleaned, now)


def _write_rest(
    files: PartitionFiles,
    segments: Sequence[Segment],
    cleaned: Segment,
    latest: dict[bytes, Offset],
    mapped_end: Offset,
    uncleanable: Offset,
    transactions: _Transactions,
    now: Instant,
) -> Steps[None]:
    last_batches, unchanged = files.states.last_batches(), _SegmentsBefore(files, segments)
    for segment in segments:
        transactions.enter(segment)
        for header in segment.headers():
            yield
            unchanged.check()
            read = transactions.read(segment, header)
            if read.noted is not None:
                cleaned.aborted.append(read.noted)
            stays = _if_empty(header, last_batches.get(header.producer_id), uncleanable)
            batch = segment.batch(header)
            if header.control:
                left = _left_of_marker(batch, read.may_go, stays, files.config.delete_retention_ms, now.timestamp)
            elif read.may_go:
                left = _empty(header) if stays is EmptyBatch.STAYS else b""
            else:
                left = compacted(batch, latest, mapped_end, stays, files.config.delete_retention_ms, now.timestamp)
            if left:
                kept = header_at(left)
                cleaned.append([(kept.leader_epoch, kept, left)], kept.base_offset)


def _if_empty(header: BatchHeader, last: LastBatch | None, uncleanable: Offset) -> EmptyBatch:
    """The treatment of a batch without any record left."""
    of_producer, sequence = UNKNOWN_OFFSET, NO_SEQUENCE
    if last is not None:
        own = header.control, header.last_offset, header.producer_epoch
        if is_last_of_producer(*own, last.last_offset, last.producer_epoch):
            of_producer, sequence = header.last_offset, last.last_sequence
    batch = ProducerBatch(header.producer_id, header.producer_epoch, header.base_sequence, header.last_offset_delta + 1)
    return RULES.empty_batch(header.last_offset, of_producer, uncleanable, batch.last_sequence, sequence)


def _left_of_marker(batch: bytes, may_go: bool, empty: EmptyBatch, retention_ms: int, now_ms: TimestampMs) -> bytes:
    """The rest of a control batch: itself, with the time from which it may go; or its header; or nothing.

    **Kafka:** `MemoryRecords.filterTo`, `containsMarkerForEmptyTxn`.
    """
    header = header_at(batch)
    horizon = NO_TIMESTAMP if header.delete_horizon is None else header.delete_horizon
    if not header.record_count or TRANSACTIONS_NEXT.empties_marker(may_go, horizon, now_ms):
        return _empty(header) if empty is EmptyBatch.STAYS else b""
    new_horizon = RULES.new_delete_horizon(horizon, may_go, now_ms, retention_ms)
    return batch if new_horizon == horizon else _with_horizon(header, list(records_of(batch)), new_horizon)


def compacted(
    batch: bytes, latest: dict[bytes, Offset], mapped_end: Offset, empty: EmptyBatch, retention_ms: int, now_ms: TimestampMs
) -> bytes:
    """The rest of one batch of records: itself, if all of them stay; a batch at the same offsets; or nothing.

    **Kafka:** `MemoryRecords.filterTo`, `buildRetainedRecordsInto`.
    """
    header = header_at(batch)
    if header.base_offset >= mapped_end:
        return batch
    horizon = NO_TIMESTAMP if header.delete_horizon is None else header.delete_horizon
    # The newest release does not ask when segments were written.
    due = RULES.tombstone_horizon(horizon, NO_TIMESTAMP, NO_TIMESTAMP, retention_ms)
    records = list(records_of(batch))
    kept = [record for record in records if _stays(record, latest, mapped_end, due, now_ms)]
    if not kept:
        return _empty(header) if empty is EmptyBatch.STAYS else b""
    new_horizon = RULES.new_delete_horizon(horizon, any(one.value is None for one in kept), now_ms, retention_ms)
    if len(kept) == len(records) and new_horizon == horizon:
        return batch
    return _with_horizon(header, kept, new_horizon)


def _with_horizon(header: BatchHeader, kept: list[StoredRecord], horizon: int) -> bytes:
    """A batch with these records, and with a delete horizon (ms) unless that is -1."""
    base_timestamp, attributes = kept[0].timestamp, header.attributes
    if horizon >= 0:
        base_timestamp, attributes = horizon, attributes | HAS_HORIZON
    newest = header.max_timestamp if header.log_append_time else max(record.timestamp for record in kept)
    return batch_of(header._replace(base_timestamp=base_timestamp, max_timestamp=newest, attributes=attributes), kept)


def _stays(record: StoredRecord, latest: dict[bytes, Offset], mapped_end: Offset, horizon: int, now_ms: TimestampMs) -> bool:
    has_key, has_value = record.key is not None, record.value is not None
    of_key = latest.get(record.key or b"", UNKNOWN_OFFSET) if has_key else UNKNOWN_OFFSET
    return RULES.keeps_record(record.offset, of_key, has_key, has_value, mapped_end, horizon, now_ms)


def _empty(header: BatchHeader) -> bytes:
    """The header alone, uncompressed. **Kafka:** `DefaultRecordBatch.writeEmptyHeader`."""
    attributes = header.attributes & ~(CODEC | HAS_HORIZON)
    batch = batch_of(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP), ())
    assert len(batch) == HEADER_SIZE, "an empty batch is its header"
    return batch
