"""Idempotent producers: the state that a leader keeps of each, in order to recognise duplicates and gaps.

Only a leader checks, and only batches of clients. A follower takes the state from the leader's batches. The state follows
from the log: after a truncation it is the fold of the batches that are left.
"""

from bisect import bisect_left
from functools import reduce
from operator import attrgetter
from typing import NamedTuple

from kspec.spec.log.batch import AnyBatch
from kspec.spec.values import (
    NO_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    UNKNOWN_OFFSET,
    Epoch,
    Error,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
)

LAST_SEQUENCE = 2**31 - 1
"""Followed by 0."""

BATCHES_REMEMBERED = 5
"""Kafka: `ProducerStateEntry.NUM_BATCHES_TO_RETAIN`; a producer may have that many requests in flight."""


class ProducerBatch(NamedTuple):
    """The fields of a batch at `base_offset` by which its producer is recognised. Kafka: `BatchMetadata`."""

    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    first_sequence: int
    record_count: int
    base_offset: Offset = Offset(0)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, `NO_SEQUENCE` if the batch has none.

        A group coordinator writes such batches in transactions. **Kafka:** `DefaultRecordBatch.lastSequence`.
        """
        if self.first_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.first_sequence + self.record_count - 1) % (LAST_SEQUENCE + 1)

    @property
    def last_offset(self) -> Offset:
        """The offset of the last record. **Kafka:** `RecordBatch.lastOffset`."""
        return Offset(self.base_offset + self.record_count - 1)


def producer_batch(batch: AnyBatch, base_offset: Offset) -> ProducerBatch:
    """The fields of a batch by which its producer is recognised, if the batch lies at `base_offset`."""
    return ProducerBatch(batch.producer_id, batch.producer_epoch, batch.first_sequence, batch.record_count, base_offset)


class ProducerEntry(NamedTuple):
    """The state of one producer: its epoch, and its last batches in that epoch, at most five.

    `transaction_start`: the first offset of its open transaction. `coordinator_epoch`: that of the coordinator which ended
    its last one. Both are set by `spec.transactions.log.partition`.

    Kafka: `ProducerStateEntry`. **Leaves out:** the time of the last batch, which a broker reads in its files.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    batches: tuple[ProducerBatch, ...] = ()
    transaction_start: Offset = UNKNOWN_OFFSET
    coordinator_epoch: Epoch = NO_EPOCH

    @property
    def last_sequence(self) -> int:
        """The last sequence number, `NO_SEQUENCE` without a batch. **Kafka:** `ProducerStateEntry.lastSeq`."""
        return self.batches[-1].last_sequence if self.batches else NO_SEQUENCE


Producers = tuple[ProducerEntry, ...]
"""The state of all producers of a partition, in order of their ids. Kafka: `ProducerStateManager`."""


def entry_of(producers: Producers, producer_id: ProducerId) -> ProducerEntry:
    """The state of one producer; an empty entry if there is none. **Kafka:** `ProducerStateManager.lastEntry`."""
    return _entry_at(producers, _place_of(producers, producer_id), producer_id)


def _place_of(producers: Producers, producer_id: ProducerId) -> int:
    """The place at which a producer stands, or would stand."""
    return bisect_left(producers, producer_id, key=attrgetter("producer_id"))


def _entry_at(producers: Producers, place: int, producer_id: ProducerId) -> ProducerEntry:
    """The state of a producer that stands at this place if there is one; else an empty entry."""
    there = producers[place : place + 1]
    return there[0] if there and there[0].producer_id == producer_id else ProducerEntry(producer_id)


def with_entry(producers: Producers, entry: ProducerEntry) -> Producers:
    """The state of all producers with that of one. **Kafka:** `ProducerStateManager.update`."""
    place = _place_of(producers, entry.producer_id)
    after = place + any(one.producer_id == entry.producer_id for one in producers[place : place + 1])
    return (*producers[:place], entry, *producers[after:])


def duplicate_of(entry: ProducerEntry, batch: ProducerBatch) -> ProducerBatch | None:
    """The remembered batch of which this is a duplicate: same producer epoch, and exactly the same sequence numbers.

    **Kafka:** `ProducerStateEntry.findDuplicateBatch`, asked before any other check; since 1.0 (KAFKA-5494).
    """
    if batch.producer_epoch != entry.producer_epoch:
        return None
    wanted = (batch.first_sequence, batch.last_sequence)
    return next((known for known in entry.batches if (known.first_sequence, known.last_sequence) == wanted), None)


def duplicate_of_last(entry: ProducerEntry, batch: ProducerBatch) -> ProducerBatch | None:
    """As `duplicate_of`, but only the last batch is remembered. **Kafka:** `ProducerIdEntry.isDuplicate`, 0.11."""
    return duplicate_of(entry._replace(batches=entry.batches[-1:]), batch)


def duplicate_of_none(entry: ProducerEntry, batch: ProducerBatch) -> ProducerBatch | None:
    """No batch is a duplicate: producers have no ids. **Kafka:** up to 0.10, before KIP-98."""
    return None


def check_producer_epoch(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """Whether a producer has not been replaced by a later instance of itself.

    Errors: `INVALID_PRODUCER_EPOCH`.

    **Kafka:** `ProducerAppendInfo.checkProducerEpoch`.
    """
    return Error.INVALID_PRODUCER_EPOCH if batch.producer_epoch < entry.producer_epoch else Error.NONE


def next_sequence(entry: ProducerEntry) -> int:
    """The first sequence number of a producer's next batch in its epoch. **Kafka:** `ProducerAppendInfo.inSequence`."""
    return following_sequence(entry.last_sequence)


def following_sequence(sequence: int) -> int:
    """The sequence number behind another one: 0 behind the last. **Kafka:** `DefaultRecordBatch.incrementSequence`."""
    return 0 if sequence == LAST_SEQUENCE else sequence + 1


def check_sequence(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """Whether a batch is the next one of its producer.

    A new epoch starts at 0, and so does an epoch after its last sequence number. Any sequence of an unknown producer is
    accepted, because its earlier records may have been deleted. So is a retry of one that was: see `rebuilt_from`.

    Errors: `OUT_OF_ORDER_SEQUENCE_NUMBER`, also for a duplicate that is no longer remembered.

    **Kafka:** `ProducerAppendInfo.checkSequence`, `inSequence`.
    """
    if entry.producer_epoch == NO_PRODUCER_EPOCH:
        return Error.NONE
    if batch.producer_epoch != entry.producer_epoch:
        return Error.NONE if batch.first_sequence == 0 else Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    following = next_sequence(entry)
    return Error.NONE if batch.first_sequence == following else Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def check_batch(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """Whether a leader appends a client's batch that is no duplicate: the producer epoch is looked at first.

    **Kafka:** `ProducerAppendInfo.maybeValidateDataBatch` for `AppendOrigin.CLIENT`, since 2.5 (KIP-360).
    """
    error = check_producer_epoch(entry, batch)
    return error if error != Error.NONE else check_sequence(entry, batch)


def check_known_producer(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """As `check_batch`, but an unknown producer begins at sequence 0.

    Errors: `UNKNOWN_PRODUCER_ID` where it does not.

    **Kafka:** `ProducerAppendInfo.checkSequence` (KAFKA-5793), 1.1 to 2.4.
    """
    unknown = entry.producer_epoch == NO_PRODUCER_EPOCH and batch.first_sequence != 0
    return Error.UNKNOWN_PRODUCER_ID if unknown else check_batch(entry, batch)


def check_not_older(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """As `check_known_producer`, but a batch that ends before all that are remembered is told apart from other gaps.

    Errors: `DUPLICATE_SEQUENCE_NUMBER` for that one, except where it ends with sequence number 0.

    **Kafka:** `ProducerAppendInfo.isDuplicate`, `checkSequence` in 1.0.
    """
    error = check_known_producer(entry, batch)
    oldest = entry.batches[0].first_sequence if entry.batches else NO_SEQUENCE
    is_older = batch.producer_epoch == entry.producer_epoch and 0 != batch.last_sequence < oldest != LAST_SEQUENCE
    return Error.DUPLICATE_SEQUENCE_NUMBER if is_older and error == Error.OUT_OF_ORDER_SEQUENCE_NUMBER else error


def check_first_sequence(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """As `check_known_producer`, with the error of any other gap. Errors: `OUT_OF_ORDER_SEQUENCE_NUMBER`.

    **Kafka:** `ProducerAppendInfo.validateAppend` in 0.11.
    """
    error = check_known_producer(entry, batch)
    return Error.OUT_OF_ORDER_SEQUENCE_NUMBER if error == Error.UNKNOWN_PRODUCER_ID else error


def append_unchecked(entry: ProducerEntry, batch: ProducerBatch) -> Error:
    """Every batch is appended: there are no sequence numbers. **Kafka:** up to 0.10, before KIP-98."""
    return Error.NONE


def remember(producers: Producers, batch: ProducerBatch) -> Producers:
    """The state once a batch is in the log: it has the batch, and the batch's epoch, even if that is lower than before.

    A batch without a producer id changes nothing.

    **Kafka:** `ProducerAppendInfo.appendDataBatch`, `ProducerStateManager.update`; the same on leader and follower.
    """
    if batch.producer_id <= NO_PRODUCER_ID:
        return producers
    entry = entry_of(producers, batch.producer_id)
    known = entry.batches if entry.producer_epoch == batch.producer_epoch else ()
    batches = (*known, batch)[-BATCHES_REMEMBERED:]
    return with_entry(producers, entry._replace(producer_epoch=batch.producer_epoch, batches=batches))


def rebuilt_from(batches: tuple[ProducerBatch, ...]) -> Producers:
    """The state after all batches of a log, in order: used after a truncation, and after a start without a snapshot.

    Batches below the log start are not among them, so their retries are no duplicates any more.

    **Kafka:** `UnifiedLog.rebuildProducerState`.
    """
    return reduce(remember, batches, ())


def is_expired(last_timestamp: int, in_transaction: bool, now: TimestampMs, expiration_ms: int) -> bool:
    """Whether a producer has been silent for so long that it is forgotten. All times are in ms.

    Parameters: the largest timestamp of its last batch; whether it has an open transaction; producer.id.expiration.ms.

    **Kafka:** `ProducerStateManager.isProducerExpired`.
    """
    return not in_transaction and now - last_timestamp >= expiration_ms


def keep_deleted(producers: Producers, log_start: Offset) -> Producers:
    """The state when the log start has moved to this offset: as it was, also of producers whose records are all deleted.

    **Kafka:** `ProducerStateManager.onLogStartOffsetIncremented`, since 2.4 (KAFKA-7190).
    """
    return producers


def forget_deleted(producers: Producers, log_start: Offset) -> Producers:
    """The state when the log start has moved to this offset: without the producers whose records are all deleted.

    Their next batch has a sequence number that the broker does not expect (`check_known_producer`).

    **Kafka:** `ProducerStateManager.truncateHead`, `isProducerRetained`, up to 2.3.
    """
    return tuple(entry for entry in producers if not entry.batches or entry.batches[-1].last_offset >= log_start)


def forget(producers: Producers, gone: tuple[ProducerId, ...]) -> Producers:
    """The state without some producers. **Kafka:** `ProducerStateManager.removeExpiredProducers`."""
    return tuple(entry for entry in producers if all(entry.producer_id != one for one in gone))
