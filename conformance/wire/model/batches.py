"""Record batches as parts of bytes, with holes for the times and the id of the producer."""

from typing import NamedTuple

from kspec.conformance.wire.exchange import ChecksummedBytes, Hole, NumberHole, RecordParts
from kspec.impl.records.batch import CRC_START
from kspec.impl.records.record import new_batch

NOW = Hole("now")
"""The time when the case begins, in ms."""

CRC_AT, BASE_TIME_AT, MAX_TIME_AT, PRODUCER_AT, EPOCH_AT = 17, 27, 35, 43, 51


class BatchShape(NamedTuple):
    """A batch: how many records, `time` of the first after `NOW` (ms), and `step` between them, and its producer.

    `base_offset` and `leader_epoch` are what the client claims; `flags` are attributes beside the codec. `value` is that of
    all records; without one each record tells its time.
    """

    records: int = 1
    time: int = 0
    step: int = 1
    producer: Hole | None = None
    producer_epoch: int = -1
    sequence: int = -1
    base_offset: int = 0
    leader_epoch: int = -1
    codec: int = 0
    flags: int = 0
    value: bytes | None = None


PLAIN = BatchShape()
"""One record, now, of a producer that is not idempotent."""


def value_at(time: int) -> bytes:
    """The value of a record that tells its time (ms after `NOW`)."""
    return b"at %d" % time


def plain_bytes(shape: BatchShape) -> bytes:
    """The batch with 0 wherever a hole will be."""
    records = [
        (shape.step * number, b"k", value_at(shape.time + shape.step * number) if shape.value is None else shape.value)
        for number in range(shape.records)
    ]
    return new_batch(
        records,
        base_offset=shape.base_offset,
        leader_epoch=shape.leader_epoch,
        codec=shape.codec,
        attributes=shape.flags,
        producer_epoch=shape.producer_epoch,
        base_sequence=shape.sequence,
    )


def with_holes(shape: BatchShape, raw: bytes) -> tuple[object, ...]:
    """The parts of a batch, whose bytes may have been changed: the checksum fits them when the holes are filled."""
    producer = NumberHole(shape.producer, "int64") if shape.producer else raw[PRODUCER_AT:EPOCH_AT]
    times = (shape.time, shape.time + shape.step * (shape.records - 1))
    first, last = Hole("now", shape.time), Hole("now", max(times))
    checked = ChecksummedBytes(
        (raw[CRC_START:BASE_TIME_AT], NumberHole(first, "int64"), NumberHole(last, "int64"), producer, raw[EPOCH_AT:])
    )
    return raw[:CRC_AT], checked


def batch(shape: BatchShape = PLAIN) -> RecordParts:
    """One batch as a producer makes it."""
    return RecordParts(with_holes(shape, plain_bytes(shape)))
