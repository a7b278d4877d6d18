"""Errors as a producer takes them: it asks again, aborts, gives up, or numbers its records anew."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.log.producers import following_sequence
from kspec.spec.messages.produce import ACKS_NONE
from kspec.spec.values import LAST_PRODUCER_EPOCH, Error, ProducerEpoch, ProducerId


class ErrorMeaning(Enum):
    """The meaning of an answer for a producer. Kafka: `TransactionManager.TxnRequestHandler`."""

    DONE = "the request is granted"
    AGAIN = "the producer asks again"
    ABORT = "the transaction has to be aborted"
    FATAL = "the producer can do nothing more"


RETRIABLE = frozenset(
    {
        Error.COORDINATOR_LOAD_IN_PROGRESS,
        Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_COORDINATOR,
        Error.CONCURRENT_TRANSACTIONS,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_LEADER_OR_FOLLOWER,
    }
)
"""Errors that go away by themselves, or with another coordinator or leader."""

ABORTABLE = frozenset({Error.TRANSACTION_ABORTABLE})
"""Errors of requests to the coordinator that an abort cures."""

ABORTABLE_FOR_OFFSETS = frozenset({*ABORTABLE, Error.ILLEGAL_GENERATION, Error.UNKNOWN_MEMBER_ID, Error.FENCED_INSTANCE_ID})
"""Errors of TxnOffsetCommit requests that an abort cures: who commits is not in the group any more (KIP-447)."""

ABORTABLE_FOR_RECORDS = frozenset({*ABORTABLE, Error.INVALID_PRODUCER_EPOCH, Error.OUT_OF_ORDER_SEQUENCE_NUMBER})
"""Errors of Produce requests that an abort cures, or that tells whether the producer is fenced (KIP-588)."""


def meaning_for_transaction(error: Error) -> ErrorMeaning:
    """The meaning of an answer to InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn and EndTxn.

    **Kafka:** `TransactionManager.InitProducerIdHandler`, `AddPartitionsToTxnHandler`, `EndTxnHandler`.
    """
    return _meaning(error, ABORTABLE)


def meaning_for_offsets(error: Error) -> ErrorMeaning:
    """The meaning of an answer to TxnOffsetCommit. **Kafka:** `TransactionManager.TxnOffsetCommitHandler`."""
    return _meaning(error, ABORTABLE_FOR_OFFSETS)


def meaning_for_records(error: Error) -> ErrorMeaning:
    """The meaning of an answer to Produce. **Kafka:** `Sender.completeBatch`, `TransactionManager.handleFailedBatch`."""
    return _meaning(error, ABORTABLE_FOR_RECORDS)


def _meaning(error: Error, abortable: frozenset[Error]) -> ErrorMeaning:
    if error == Error.NONE:
        return ErrorMeaning.DONE
    if error in RETRIABLE:
        return ErrorMeaning.AGAIN
    return ErrorMeaning.ABORT if error in abortable else ErrorMeaning.FATAL


# ---- records of producers without transactions


class ProducerNumbers(NamedTuple):
    """An idempotent producer's id and epoch, and the sequence number of its next record in a partition.

    Kafka: `ProducerIdAndEpoch`, `TxnPartitionEntry.nextSequence`.
    """

    producer_id: ProducerId
    producer_epoch: ProducerEpoch = ProducerEpoch(0)
    sequence: int = 0


def is_done_when_sent(acks: int) -> bool:
    """Whether a producer is done with a record as soon as it is sent, since nobody answers.

    **Kafka:** `Sender.sendProduceRequest`.
    """
    return acks == ACKS_NONE


def sends_again(error: Error, retries: bool) -> bool:
    """Whether a producer with retries sends a record again after this error.

    **Kafka:** `Sender.canRetry`, `TransactionManager.canRetry`, `RetriableException`.

    **Leaves out:** `delivery.timeout.ms`, and an out-of-order batch behind another one that is under way.
    """
    return retries and meaning_for_records(error) == ErrorMeaning.AGAIN


def numbered_behind(numbers: ProducerNumbers) -> ProducerNumbers:
    """The numbers behind a record. **Kafka:** `TransactionManager.incrementSequenceNumber`."""
    return numbers._replace(sequence=following_sequence(numbers.sequence))


def numbered_anew(numbers: ProducerNumbers, fresh: ProducerId) -> ProducerNumbers:
    """The numbers after a record has failed: those of the next epoch, or of another id if the epochs are used up.

    `fresh`: an id that nobody has had.

    **Kafka:** `TransactionManager.requestIdempotentEpochBumpForPartition`, `bumpIdempotentProducerEpoch`.
    """
    if numbers.producer_epoch == LAST_PRODUCER_EPOCH:
        return ProducerNumbers(fresh)
    return ProducerNumbers(numbers.producer_id, ProducerEpoch(numbers.producer_epoch + 1))
