"""Compaction of a partition's segments. The rules are in `spec.log.compaction`. Kafka: `Cleaner`, `LogCleaner`."""

from collections.abc import Sequence

from impl.records.batch import HEADER_SIZE, BatchHeader, header_at
from impl.records.record import StoredRecord, batch_of, records_of
from impl.storage.partition import PartitionFiles
from impl.storage.segment import Segment
from spec.log.compaction import (
    DirtySegment,
    EmptyBatch,
    SegmentSize,
    empty_batch,
    first_dirty_offset,
    first_uncleanable_offset,
    group,
    is_cleanable,
    keeps_record,
    new_delete_horizon,
)
from spec.log.segments import LARGEST_RELATIVE_OFFSET
from spec.values import UNKNOWN_OFFSET, Offset

NO_TIMESTAMP = -1
HAS_HORIZON = 0x40
CODEC = 0x07


def compact(files: PartitionFiles, checkpointed: Offset, high_watermark: Offset, now_ms: int) -> Offset | None:
    """Compact a log if it is worth it: the end of the compacted part, for `cleaner-offset-checkpoint`; none if it is not.

    `checkpointed` is what that file says, `UNKNOWN_OFFSET` if it lists none.
    """
    config, log = files.config, files.log
    start = first_dirty_offset(checkpointed, log.start_offset, log.end_offset)
    inactive = files.segments[:-1]
    dirty = [segment for segment in inactive if _end(files, segment) > start]
    ages = [DirtySegment(segment.base_offset, segment.largest_timestamp) for segment in dirty]
    active_base = files.segments[-1].base_offset
    end = first_uncleanable_offset(high_watermark, active_base, ages, config.min_compaction_lag_ms, now_ms)
    dirty = [segment for segment in dirty if _end(files, segment) <= end]
    clean_bytes = sum(segment.size for segment in inactive if _end(files, segment) <= start)
    dirty_bytes = sum(segment.size for segment in dirty)
    oldest = dirty[0].first_timestamp if dirty else NO_TIMESTAMP
    ratio = config.min_cleanable_dirty_ratio
    if not is_cleanable(clean_bytes, dirty_bytes, ratio, oldest, config.max_compaction_lag_ms, now_ms):
        return None
    mapped_end = _end(files, dirty[-1])
    latest = _latest_offsets(dirty, start)
    todo = [segment for segment in inactive if segment.base_offset < mapped_end]
    sizes = tuple(
        SegmentSize(one.base_offset, _end(files, one), one.size, max(len(one.offsets), len(one.times))) for one in todo
    )
    for count in group(sizes, config.segment_bytes, config.segment_index_bytes // 12, LARGEST_RELATIVE_OFFSET):
        _clean(files, todo[:count], latest, mapped_end, high_watermark, now_ms)
        del todo[:count]
    return mapped_end


def _end(files: PartitionFiles, segment: Segment) -> Offset:
    """Where the next segment begins: there may be a gap before it."""
    number = files.segments.index(segment) + 1
    return files.segments[number].base_offset if number < len(files.segments) else files.log.end_offset


def _latest_offsets(segments: Sequence[Segment], start: Offset) -> dict[bytes, Offset]:
    """The last offset of each key from `start` on. **Kafka:** `Cleaner.buildOffsetMap`."""
    latest: dict[bytes, Offset] = {}
    for segment in segments:
        for header in segment.headers():
            if header.next_offset > start and not header.control:
                for record in records_of(segment.log.read(header.position, header.size)):
                    if record.key is not None and record.offset >= start:
                        latest[record.key] = record.offset
    return latest


def _clean(
    files: PartitionFiles,
    segments: Sequence[Segment],
    latest: dict[bytes, Offset],
    mapped_end: Offset,
    high_watermark: Offset,
    now_ms: int,
) -> None:
    """Write what stays of some segments into one, and put it in their place. **Kafka:** `Cleaner.cleanSegments`."""
    cleaned = files.new_cleaned(segments[0].base_offset, now_ms)
    last_offsets = files.last_offsets
    for segment in segments:
        for header in segment.headers():
            last = last_offsets.get(header.producer_id, UNKNOWN_OFFSET)
            stays = empty_batch(header.last_offset, last, high_watermark)
            batch = segment.log.read(header.position, header.size)
            left = compacted(batch, latest, mapped_end, stays, files.config.delete_retention_ms, now_ms)
            if left:
                kept = header_at(left)
                cleaned.append([(kept.leader_epoch, kept, left)], kept.base_offset)
    files.replace(segments, cleaned, now_ms)


def compacted(
    batch: bytes, latest: dict[bytes, Offset], mapped_end: Offset, empty: EmptyBatch, retention_ms: int, now_ms: int
) -> bytes:
    """What stays of one batch: itself, if all records stay; a batch at the same offsets; or nothing.

    **Kafka:** `MemoryRecords.filterTo`, `buildRetainedRecordsInto`.
    """
    header = header_at(batch)
    if header.control or header.base_offset >= mapped_end:
        return batch
    horizon = NO_TIMESTAMP if header.delete_horizon is None else header.delete_horizon
    records = list(records_of(batch))
    kept = [record for record in records if _stays(record, latest, mapped_end, horizon, now_ms)]
    if not kept:
        return _empty(header) if empty is EmptyBatch.STAYS else b""
    new_horizon = new_delete_horizon(horizon, any(one.value is None for one in kept), now_ms, retention_ms)
    if len(kept) == len(records) and new_horizon == horizon:
        return batch
    base_timestamp, attributes = kept[0].timestamp, header.attributes
    if new_horizon >= 0:
        base_timestamp, attributes = new_horizon, attributes | HAS_HORIZON
    newest = header.max_timestamp if header.log_append_time else max(record.timestamp for record in kept)
    return batch_of(header._replace(base_timestamp=base_timestamp, max_timestamp=newest, attributes=attributes), kept)


def _stays(record: StoredRecord, latest: dict[bytes, Offset], mapped_end: Offset, horizon: int, now_ms: int) -> bool:
    has_key, has_value = record.key is not None, record.value is not None
    of_key = latest.get(record.key or b"", UNKNOWN_OFFSET) if has_key else UNKNOWN_OFFSET
    return keeps_record(record.offset, of_key, has_key, has_value, mapped_end, horizon, now_ms)


def _empty(header: BatchHeader) -> bytes:
    """The header alone, uncompressed. **Kafka:** `DefaultRecordBatch.writeEmptyHeader`."""
    attributes = header.attributes & ~(CODEC | HAS_HORIZON)
    batch = batch_of(header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP), ())
    assert len(batch) == HEADER_SIZE, "an empty batch is its header"
    return batch
