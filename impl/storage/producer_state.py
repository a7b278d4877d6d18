"""The state of producers as their files keep it, beside the segments: `OFFSET.snapshot`.

It tells the state at the offset in its name, so that a start reads only the batches from there on. Kafka writes the last
batch of each producer. Here the batches before it, up to five in all, are entries before that one: Kafka takes the last
entry of a producer, and a start here still knows all batches that a producer may send again.
"""

from collections import deque
from collections.abc import Iterable
from operator import attrgetter
from struct import Struct
from typing import NamedTuple

import crc32c

from kspec.impl.records.batch import BatchHeader
from kspec.impl.records.markers import batch_for_spec
from kspec.spec.log.batch import EndMarker
from kspec.spec.log.checkpoint_files import LARGEST
from kspec.spec.log.producers import BATCHES_REMEMBERED, ProducerBatch, ProducerEntry, entry_of, forget, is_expired
from kspec.spec.releases.transactions.history import TRANSACTIONS_NEXT
from kspec.spec.transactions.log.partition import (
    AbortedTransaction,
    OpenTransaction,
    PartitionTransactions,
    logged,
    with_entry_of_log,
)
from kspec.spec.values import NO_PRODUCER_ID, NO_SEQUENCE, Epoch, Offset, ProducerEpoch, ProducerId, TimestampMs

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
        if self.last_sequence == NO_SEQUENCE:
            first = NO_SEQUENCE
        return ProducerBatch(
            self.producer_id, self.producer_epoch, first, count, Offset(self.last_offset - self.offset_delta)
        )


class LastBatch(NamedTuple):
    """The last batch of a producer, for compaction: its last offset, -1 if the log has only a marker of this epoch.

    Kafka: `LastRecord`.
    """

    last_offset: Offset
    last_sequence: int
    producer_epoch: ProducerEpoch


class ProducerStates:
    """The states of all producers of a partition: of each its last batches in its epoch, at most five.

    What transactions change is said by `spec.transactions.log`; of producers without any nothing is kept for that.

    Kafka: `ProducerStateManager`.
    """

    def __init__(self, states: Iterable[ProducerState] = ()) -> None:
        self._known: dict[int, deque[ProducerState]] = {}
        for state in states:
            self._add(state)
        begun = [one for one in self.last() if one.transaction_start >= 0 or one.coordinator_epoch >= 0]
        self._transactional = {one.producer_id for one in begun}
        self._log = PartitionTransactions(
            tuple(sorted(map(_entry_of, begun))),
            tuple(
                OpenTransaction(Offset(one.transaction_start), one.producer_id)
                for one in sorted(begun, key=attrgetter("transaction_start"))
                if one.transaction_start >= 0
            ),
        )

    def _add(self, state: ProducerState) -> None:
        known = self._known.get(state.producer_id)
        if known is None or known[-1].producer_epoch != state.producer_epoch:
            known = self._known[state.producer_id] = deque(maxlen=BATCHES_REMEMBERED)
        known.append(state)

    def last(self) -> list[ProducerState]:
        """The last batch of each producer."""
        return [known[-1] for known in self._known.values()]

    def last_batches(self) -> dict[ProducerId, LastBatch]:
        """The last batch of each producer, for compaction. **Kafka:** `UnifiedLog.lastRecordsOfActiveProducers`."""
        return {one.producer_id: LastBatch(one.last_offset, one.last_sequence, one.producer_epoch) for one in self.last()}

    def time_of(self, header: BatchHeader) -> int:
        """The largest timestamp (ms) of the remembered batch with these sequence numbers, -1 if there is none."""
        wanted = ((header.base_sequence + header.last_offset_delta) % 2**31, header.last_offset_delta)
        known = self._known.get(header.producer_id, ())
        return next((one.timestamp for one in known if (one.last_sequence, one.offset_delta) == wanted), -1)

    def transactions(self) -> PartitionTransactions:
        """The producers, open transactions, and those whose end was read and may not be committed yet."""
        entries = []
        for _, known in sorted(self._known.items()):
            entry = entry_of(self._log.producers, known[-1].producer_id)
            batches = tuple(one.as_batch() for one in known if one.last_offset >= 0)
            entries.append(entry._replace(producer_epoch=known[-1].producer_epoch, batches=batches))
        return self._log._replace(producers=tuple(entries))

    def for_snapshot(self) -> list[ProducerState]:
        """The entries of a snapshot: the batches of each producer, the last one last."""
        return [
            self._with_transaction(state) if state is known[-1] else state
            for known in self._known.values()
            for state in known
        ]

    def _with_transaction(self, state: ProducerState) -> ProducerState:
        entry = entry_of(self._log.producers, state.producer_id)
        return state._replace(transaction_start=entry.transaction_start, coordinator_epoch=entry.coordinator_epoch)

    def times(self) -> dict[int, int]:
        """The largest timestamp of each producer's last batch (ms), by the producer's id."""
        return {state.producer_id: state.timestamp for state in self.last()}

    def expire(self, now_ms: TimestampMs, expiration_ms: int) -> tuple[ProducerId, ...]:
        """Forget the producers that have been silent for too long; their ids.

        **Kafka:** `ProducerStateManager.removeExpiredProducers`.
        """
        open_now = {one.producer_id for one in self._log.ongoing}
        gone = tuple(
            state.producer_id
            for state in self.last()
            if is_expired(state.timestamp, state.producer_id in open_now, now_ms, expiration_ms)
        )
        for producer_id in gone:
            del self._known[producer_id]
        if not self._transactional.isdisjoint(gone):
            self._transactional.difference_update(gone)
            self._log = self._log._replace(producers=forget(self._log.producers, gone))
        return gone

    def remember(self, header: BatchHeader, marker: EndMarker | None = None) -> AbortedTransaction | None:
        """A batch was appended; the transaction that it has aborted, if it is the marker of one.

        A control batch without a marker, as compaction leaves one, changes nothing.

        **Kafka:** `ProducerStateManager.update`, `completeTxn`, `ProducerAppendInfo.append`.
        """
        producer_id = header.producer_id
        if producer_id <= NO_PRODUCER_ID or (header.control and marker is None):
            return None
        aborted: tuple[AbortedTransaction, ...] = ()
        if header.transactional or marker is not None or producer_id in self._transactional:
            self._transactional.add(producer_id)
            entry = logged(batch_for_spec(header, marker), header.base_offset)
            after = with_entry_of_log(TRANSACTIONS_NEXT, self._log, entry)
            aborted, self._log = after.aborted, after._replace(aborted=())
        if marker is None:
            self._add_batch(header)
        else:
            self._add_marker(header)
        return aborted[0] if aborted else None

    def _add_batch(self, header: BatchHeader) -> None:
        delta = header.last_offset_delta
        self._add(
            ProducerState(
                header.producer_id,
                header.producer_epoch,
                NO_SEQUENCE if header.base_sequence == NO_SEQUENCE else (header.base_sequence + delta) % 2**31,
                Offset(header.base_offset + delta),
                delta,
                header.max_timestamp,
            )
        )

    def _add_marker(self, header: BatchHeader) -> None:
        """The batches stay known, unless the marker's epoch is a new one."""
        known = self._known.get(header.producer_id)
        if known and known[-1].producer_epoch == header.producer_epoch:
            known[-1] = known[-1]._replace(timestamp=header.max_timestamp)
        else:
            self._add(
                ProducerState(header.producer_id, header.producer_epoch, NO_SEQUENCE, Offset(-1), 0, header.max_timestamp)
            )

    def forget_ended(self) -> None:
        """Forget the transactions that have ended so far: nobody asks for them any more."""
        if self._log.unreplicated:
            self._log = self._log._replace(unreplicated=())


def _entry_of(state: ProducerState) -> ProducerEntry:
    return ProducerEntry(
        state.producer_id,
        state.producer_epoch,
        transaction_start=Offset(state.transaction_start),
        coordinator_epoch=Epoch(state.coordinator_epoch),
    )


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
