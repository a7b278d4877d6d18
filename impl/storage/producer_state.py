"""The state of producers as their files keep it, beside the segments: `OFFSET.snapshot`.

It tells the state at the offset in its name, so that a start reads only the batches from there on. Kafka writes the last
batch of each producer. Here the batches before it, up to five in all, are entries before that one: Kafka takes the last
entry of a producer, and a start here still knows all batches that a producer may send again.
"""

from collections import deque
from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

import crc32c

from kspec.impl.records.batch import BatchHeader
from kspec.spec.log.checkpoint_files import LARGEST
from kspec.spec.log.producers import BATCHES_REMEMBERED, ProducerBatch, is_expired
from kspec.spec.values import NO_PRODUCER_ID, NO_SEQUENCE, Offset, ProducerEpoch, ProducerId, TimestampMs

VERSION = 1

_FRONT = Struct(">hI")
_COUNT = Struct(">i")
_ENTRY = Struct(">qhiqiqiq")


class SnapshotError(Exception):
    """Bytes that are no snapshot of producers."""


class ProducerState(NamedTuple):
    """A producer's batch, in the order of the file. Offsets and sequences are -1 without one.

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
    """The states of all producers of a partition: of each its last batches in its epoch, at most five.

    Kafka: `ProducerStateManager`.
    """

    def __init__(self, states: Iterable[ProducerState] = ()) -> None:
        self._known: dict[int, deque[ProducerState]] = {}
        for state in states:
            self._add(state)

    def _add(self, state: ProducerState) -> None:
        known = self._known.get(state.producer_id)
        if known is None or known[-1].producer_epoch != state.producer_epoch:
            known = self._known[state.producer_id] = deque(maxlen=BATCHES_REMEMBERED)
        known.append(state)

    def last(self) -> list[ProducerState]:
        """The last batch of each producer."""
        return [known[-1] for known in self._known.values()]

    def time_of(self, header: BatchHeader) -> int:
        """The largest timestamp (ms) of the remembered batch with these sequence numbers, -1 if there is none."""
        wanted = ((header.base_sequence + header.last_offset_delta) % 2**31, header.last_offset_delta)
        known = self._known.get(header.producer_id, ())
        return next((one.timestamp for one in known if (one.last_sequence, one.offset_delta) == wanted), -1)

    def batches(self) -> tuple[ProducerBatch, ...]:
        """The remembered batches of all producers, in order of the offsets."""
        states = [state for known in self._known.values() for state in known if state.last_offset >= 0]
        return tuple(sorted((state.as_batch() for state in states), key=lambda batch: batch.base_offset))

    def for_snapshot(self) -> list[ProducerState]:
        """The entries of a snapshot: the batches of each producer, the last one last."""
        return [
            state if state is known[-1] else state._replace(transaction_start=-1)
            for known in self._known.values()
            for state in known
        ]

    def times(self) -> dict[int, int]:
        """The largest timestamp of each producer's last batch (ms), by the producer's id."""
        return {state.producer_id: state.timestamp for state in self.last()}

    def expire(self, now_ms: TimestampMs, expiration_ms: int) -> tuple[ProducerId, ...]:
        """Forget the producers that have been silent for too long; their ids.

        **Kafka:** `ProducerStateManager.removeExpiredProducers`.
        """
        gone = tuple(
            state.producer_id
            for state in self.last()
            if is_expired(state.timestamp, state.transaction_start >= 0, now_ms, expiration_ms)
        )
        for producer_id in gone:
            del self._known[producer_id]
        return gone

    def remember(self, header: BatchHeader) -> None:
        """A batch was appended. **Kafka:** `ProducerStateManager.update`, `ProducerAppendInfo.append`."""
        producer_id = header.producer_id
        if producer_id <= NO_PRODUCER_ID:
            return
        known = self._known.get(producer_id)
        before = known[-1] if known else None
        if header.control:
            after = after_marker(before, header)
            if known and after.producer_epoch == known[-1].producer_epoch:
                known[-1] = after
            else:
                self._add(after)
            return
        start, delta = -1, header.last_offset_delta
        if header.transactional:
            open_since = before.transaction_start if before and before.producer_epoch == header.producer_epoch else -1
            start = open_since if open_since >= 0 else header.base_offset
        self._add(
            ProducerState(
                producer_id,
                header.producer_epoch,
                (header.base_sequence + delta) % 2**31,
                Offset(header.base_offset + delta),
                delta,
                header.max_timestamp,
                before.coordinator_epoch if before else -1,
                start,
            )
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


def from_bytes(content: bytes, end_offset: int = LARGEST) -> tuple[ProducerState, ...]:
    """The states in a snapshot of the log up to an offset. **Kafka:** `ProducerStateManager.readSnapshot`.

    Raises: `SnapshotError` for another version, a wrong checksum, a wrong length, or a batch that the log did not have yet.
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
    states = tuple(
        ProducerState(ProducerId(fields[0]), ProducerEpoch(fields[1]), fields[2], Offset(fields[3]), *fields[4:])
        for fields in _ENTRY.iter_unpack(entries)
    )
    if any(state.last_offset >= end_offset for state in states):
        raise SnapshotError(f"it has a batch that does not end before {end_offset}")
    return states
