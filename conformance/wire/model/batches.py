"""Record batches as parts of bytes, with holes for the times and the id of the producer."""

from typing import NamedTuple

from conformance.wire.exchange import Checked, Fixed, Hole, Records
from impl.records.batch import CRC_START
from impl.records.record import new_batch

NOW = Hole("now")
"""The time when the case begins, in ms."""

CRC_AT, BASE_TIME_AT, MAX_TIME_AT, PRODUCER_AT, EPOCH_AT = 17, 27, 35, 43, 51


class Shape(NamedTuple):
    """A batch: how many records, `time` of the first after `NOW` (ms), and `step` between them, and its producer.

    `base_offset` and `leader_epoch` are what the client claims; `flags` are attributes beside the codec.
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
    value: bytes = b"v"


PLAIN = Shape()
"""One record, now, of a producer that is not idempotent."""


def plain_bytes(shape: Shape) -> bytes:
    """The batch with 0 wherever a hole will be."""
    records = [(shape.step * number, b"k", shape.value) for number in range(shape.records)]
    return new_batch(
        records,
        base_offset=shape.base_offset,
        leader_epoch=shape.leader_epoch,
        codec=shape.codec,
        attributes=shape.flags,
        producer_epoch=shape.producer_epoch,
        base_sequence=shape.sequence,
    )


def with_holes(shape: Shape, raw: bytes) -> tuple[object, ...]:
    """The parts of a batch, whose bytes may have been changed: the checksum fits them when the holes are filled."""
    producer = Fixed(shape.producer, "int64") if shape.producer else raw[PRODUCER_AT:EPOCH_AT]
    first, last = Hole("now", shape.time), Hole("now", shape.time + shape.step * (shape.records - 1))
    checked = Checked((raw[CRC_START:BASE_TIME_AT], Fixed(first, "int64"), Fixed(last, "int64"), producer, raw[EPOCH_AT:]))
    return raw[:CRC_AT], checked


def batch(shape: Shape = PLAIN) -> Records:
    """One batch as a producer makes it."""
    return Records(with_holes(shape, plain_bytes(shape)))
