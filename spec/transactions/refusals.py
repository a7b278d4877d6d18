"""Answers to requests about transactions, and the errors that they carry."""

from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.effects import AnswerTransaction, TransactionRequest, TransactionResponse
from kspec.spec.transactions.metadata import TransactionMetadata
from kspec.spec.values import Error, RequestNumber

NOT_AVAILABLE = frozenset(
    {
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.NOT_ENOUGH_REPLICAS,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        Error.REQUEST_TIMED_OUT,
    }
)
"""Errors of the log after which a client asks the same coordinator again."""

NOT_LEADING = frozenset({Error.NOT_LEADER_OR_FOLLOWER, Error.KAFKA_STORAGE_ERROR})
"""Errors of the log after which a client looks for the coordinator."""

TOO_LARGE = frozenset({Error.MESSAGE_TOO_LARGE, Error.RECORD_LIST_TOO_LARGE})
"""Errors of the log that no client can do anything about."""


def answer_for_append(error: Error) -> Error:
    """The error in the answer to a request whose record the log has refused, or that was not committed in time.

    **Kafka:** `TransactionStateManager.appendTransactionToLog`.
    """
    if error in NOT_AVAILABLE:
        return Error.COORDINATOR_NOT_AVAILABLE
    if error in NOT_LEADING:
        return Error.NOT_COORDINATOR
    return Error.UNKNOWN_SERVER_ERROR if error in TOO_LARGE else error


def refuse(number: RequestNumber, request: TransactionRequest, error: Error) -> AnswerTransaction:
    """The answer to a request that is not granted, or that asks for nothing else than that it is.

    Errors: any; `COORDINATOR_LOAD_IN_PROGRESS` and `NOT_COORDINATOR` before a handler is asked. An older client is told
    `INVALID_PRODUCER_EPOCH` in place of `PRODUCER_FENCED`.

    **Kafka:** `KafkaApis.handleInitProducerIdRequest`, `handleEndTxnRequest` and the like (KAFKA-9911).
    """
    told = Error.INVALID_PRODUCER_EPOCH if error == Error.PRODUCER_FENCED and not request.knows_fenced else error
    return AnswerTransaction(number, _refusal(request, told))


def _refusal(request: TransactionRequest, error: Error) -> TransactionResponse:
    match request:
        case InitProducerIdRequest():
            return InitProducerIdResponse(error)
        case AddPartitionsToTxnRequest():
            return AddPartitionsToTxnResponse(tuple((partition, error) for partition in sorted(request.partitions)))
        case AddOffsetsToTxnRequest():
            return AddOffsetsToTxnResponse(error)
        case _:
            return EndTxnResponse(error)


def grant(number: RequestNumber, request: TransactionRequest, metadata: TransactionMetadata) -> AnswerTransaction:
    """The answer to a request that is granted, with the producer's id and epoch from now on."""
    match request:
        case InitProducerIdRequest():
            granted = InitProducerIdResponse(Error.NONE, metadata.producer_id, metadata.producer_epoch)
            return AnswerTransaction(number, granted)
        case EndTxnRequest():
            return AnswerTransaction(number, EndTxnResponse(Error.NONE, metadata.producer_id, metadata.producer_epoch))
        case _:
            return refuse(number, request, Error.NONE)


def check_transactional_id(transactional_id: str | None) -> Error:
    """Whether a request names a transactional id. Errors: `INVALID_REQUEST` for an empty one, or none.

    It is looked at before it matters who coordinates the id.

    **Kafka:** `TransactionCoordinator.handleAddPartitionsToTransaction`, `endTransaction`.
    """
    return Error.NONE if transactional_id else Error.INVALID_REQUEST


def check_added(
    asked: frozenset[TopicPartition], refused: frozenset[tuple[TopicPartition, Error]]
) -> tuple[tuple[TopicPartition, Error], ...]:
    """The errors of all partitions of a request, some of which are unknown or not allowed: then none is added.

    Errors: those given; `OPERATION_NOT_ATTEMPTED` for the others.

    **Kafka:** `KafkaApis.handleAddPartitionsToTxnRequest`, for clients.
    """
    known = dict(refused)
    other = Error.OPERATION_NOT_ATTEMPTED if refused else Error.NONE
    return tuple((partition, known.get(partition, other)) for partition in sorted(asked))
