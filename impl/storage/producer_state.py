"""The state of producers as their files keep it, beside the segments: `OFFSET.snapshot`.

A snapshot holds of each producer the last batch only. It tells the state at the offset in its name, so that a start reads
only the batches from there on.
"""

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

import crc32c

from impl.records.batch import BatchHeader
from spec.log.producers import ProducerBatch
from spec.values import NO_PRODUCER_ID, NO_SEQUENCE, Offset, ProducerEpoch, ProducerId

VERSION = 1

_FRONT = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class SnapshotError(Exception):
    """Bytes that are no snapshot of producers."""


class ProducerState(NamedTuple):
    """A producer's last batch, in the order of the file. Offsets and sequences are -1 without one.

    `timestamp`: the largest of the batch, in ms. `transaction_start`: the first offset of an open transaction, -1 without.
    Kafka: `ProducerStateEntry`.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp: int
    coordinator_epoch: int = -1
    transaction_start: int = -1

    def as_batch(self) -> ProducerBatch:
        """The batch as `spec.log.producers` wants it."""
        count = self.offset_delta + 1
        first = (self.last_sequence - self.offset_delta) % 2**31
        return ProducerBatch(
            self.producer_id, self.producer_epoch, first, count, Offset(self.last_offset - self.offset_delta)
        )


class ProducerStates:
    """The states of all producers of a partition, by producer id. Kafka: `ProducerStateManager`."""

    def __init__(self, states: Iterable[ProducerState] = ()) -> None:
        self.by_id = {state.producer_id: state for state in states}

    def remember(self, header: BatchHeader) -> None:
        """A batch was appended. **Kafka:** `ProducerStateManager.update`, `ProducerAppendInfo.append`."""
        if header.producer_id == NO_PRODUCER_ID:
            return
        before = self.by_id.get(header.producer_id)
        if header.control:
            self.by_id[header.producer_id] = after_marker(before, header)
            return
        start = -1
        if header.transactional:
            known = before.transaction_start if before and before.producer_epoch == header.producer_epoch else -1
            start = known if known >= 0 else header.base_offset
        self.by_id[header.producer_id] = ProducerState(
            header.producer_id,
            header.producer_epoch,
            (header.base_sequence + header.last_offset_delta) % 2**31,
            header.last_offset,
            header.last_offset_delta,
            header.max_timestamp,
            before.coordinator_epoch if before else -1,
            start,
        )


def after_marker(before: ProducerState | None, header: BatchHeader) -> ProducerState:
    """The state after a marker that ends a transaction: the batches stay known, unless its epoch is a new one.

    **Leaves out:** the coordinator epoch in the marker.
    """
    if before is None or before.producer_epoch != header.producer_epoch:
        before = ProducerState(header.producer_id, header.producer_epoch, NO_SEQUENCE, Offset(-1), 0, -1)
    return before._replace(timestamp=header.max_timestamp, transaction_start=-1)


def to_bytes(states: Iterable[ProducerState]) -> bytes:
    """The content of a snapshot. **Kafka:** `ProducerStateManager.writeSnapshot`."""
    entries = [_ENTRY.pack(*state) for state in states]
    rest = _COUNT.pack(len(entries)) + b"".join(entries)
    return _FRONT.pack(VERSION, crc32c.crc32c(rest)) + rest


def from_bytes(content: bytes) -> tuple[ProducerState, ...]:
    """The states in a snapshot. **Kafka:** `ProducerStateManager.readSnapshot`.

    Raises: `SnapshotError` for another version, a wrong checksum, or a wrong length.
    """
    if len(content) < _FRONT.size + _COUNT.size:
        raise SnapshotError(f"{len(content)} bytes are too few for a snapshot")
    version, crc = _FRONT.unpack_from(content)
    if version != VERSION:
        raise SnapshotError(f"version {version} is not {VERSION}")
    rest = memoryview(content)[_FRONT.size :]
    if crc32c.crc32c(rest) != crc:
        raise SnapshotError("the checksum is wrong")
    (count,) = _COUNT.unpack_from(rest)
    entries = rest[_COUNT.size :]
    if count < 0 or len(entries) != count * _ENTRY.size:
        raise SnapshotError(f"{len(entries)} bytes are not {count} entries")
    return tuple(
        ProducerState(ProducerId(fields[0]), ProducerEpoch(fields[1]), fields[2], Offset(fields[3]), *fields[4:])
        for fields in _ENTRY.iter_unpack(entries)
    )
