"""Control batches: the markers that end transactions. And batches as `spec` sees them."""

from struct import Struct
from struct import error as struct_error

from kspec.impl.records.batch import TRANSACTIONAL, BatchHeader, Buffer
from kspec.impl.records.compression import CompressionError
from kspec.impl.records.record import RecordError, new_batch, records_of
from kspec.spec.log.batch import Batch, EndMarker
from kspec.spec.values import Epoch, ProducerEpoch, ProducerId, TimestampMs

CONTROL = 0x20
ABORT, COMMIT = 0, 1
"""Kinds of control records that end a transaction. Kafka: `ControlRecordType`."""

KEY_VERSION = VALUE_VERSION = 0
_KEY, _VALUE = Struct(">hh"), Struct(">hi")


def marker_batch(producer_id: ProducerId, producer_epoch: ProducerEpoch, marker: EndMarker, timestamp: TimestampMs) -> bytes:
    """The control batch of one marker. **Kafka:** `MemoryRecords.withEndTransactionMarker`."""
    key = _KEY.pack(KEY_VERSION, COMMIT if marker.committed else ABORT)
    value = _VALUE.pack(VALUE_VERSION, marker.coordinator_epoch)
    attributes = TRANSACTIONAL | CONTROL
    return new_batch(
        [(timestamp, key, value)], attributes=attributes, producer_id=producer_id, producer_epoch=producer_epoch
    )


def marker_of(header: BatchHeader, batch: Buffer) -> EndMarker | None:
    """The marker in a batch, none if it is no control batch, or one about something else, or one that was emptied.

    `batch`: its bytes alone. **Kafka:** `EndTransactionMarker.deserialize`.
    """
    if not header.control or not header.record_count:
        return None
    try:
        record = next(records_of(batch), None)
        if record is None or record.key is None or record.value is None:
            return None
        _, kind = _KEY.unpack_from(record.key)
        _, coordinator_epoch = _VALUE.unpack_from(record.value)
    except (RecordError, CompressionError, struct_error):
        return None
    return EndMarker(kind == COMMIT, Epoch(coordinator_epoch)) if kind in (ABORT, COMMIT) else None


def batch_for_spec(header: BatchHeader, marker: EndMarker | None = None) -> Batch:
    """A batch as `spec` sees it; its records lie elsewhere."""
    return Batch(
        header.last_offset_delta + 1,
        header.leader_epoch,
        0,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.transactional,
        marker,
    )


def batch_in(header: BatchHeader, buffer: Buffer) -> Batch:
    """As `batch_for_spec`, with the marker if it is a control batch. Its bytes lie in the buffer where the header says."""
    if not header.control:
        return batch_for_spec(header)
    return batch_for_spec(header, marker_of(header, memoryview(buffer)[header.position : header.position + header.size]))
