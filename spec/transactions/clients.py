"""Errors as a producer of transactions takes them: it asks again, aborts, or gives up."""

from enum import Enum

from kspec.spec.values import Error


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
