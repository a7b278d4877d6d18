"""AddPartitionsToTxn and AddOffsetsToTxn: a transaction begins, and grows; and a leader asks what belongs to it."""

from kspec.spec.coordinator.rules.hashing import partition_for
from kspec.spec.messages.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kspec.spec.messages.transactions.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse
from kspec.spec.step import Step
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.effects import (
    AnswerTransaction,
    AppendTransaction,
    CoordinatedTransaction,
    TransactionStep,
)
from kspec.spec.transactions.metadata import (
    PREPARED,
    TransactionMetadata,
    TransactionState,
    to_ongoing,
    with_pending,
)
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.transactions.refusals import refuse
from kspec.spec.values import Error, Instant, ProducerEpoch, ProducerId, RequestNumber

CONSUMER_OFFSETS = "__consumer_offsets"


def handle_add_partitions_to_txn(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    number: RequestNumber,
    request: AddPartitionsToTxnRequest,
    now: Instant,
) -> TransactionStep:
    """Add partitions to the producer's transaction; it begins if none is open. With `verify_only` nothing is added.

    Errors, the same for all partitions: `INVALID_REQUEST`, `INVALID_PRODUCER_ID_MAPPING`, `PRODUCER_FENCED`,
    `CONCURRENT_TRANSACTIONS`; later those of `answer_for_append`. With `verify_only`, `TRANSACTION_ABORTABLE` for a
    partition that is not in the transaction (`INVALID_TXN_STATE` before 3.8).

    **Kafka:** `TransactionCoordinator.handleAddPartitionsToTransaction`, `handleVerifyPartitionsInTransaction`.
    """
    if request.verify_only:
        return Step(state, (_verified(coordinator, state, number, request),))
    return _add(coordinator, state, number, request, request.partitions, request.client_level, now)


def handle_add_offsets_to_txn(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    number: RequestNumber,
    request: AddOffsetsToTxnRequest,
    now: Instant,
) -> TransactionStep:
    """Add the partition that holds a group's offsets to the producer's transaction.

    Errors: those of `handle_add_partitions_to_txn`.

    **Kafka:** `KafkaApis.handleAddOffsetsToTxnRequest`.
    """
    partition = partition_for(request.group_id, coordinator.settings.offsets_partitions)
    added = frozenset({TopicPartition(CONSUMER_OFFSETS, partition)})
    return _add(coordinator, state, number, request, added, 0, now)


def _add(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    number: RequestNumber,
    request: AddPartitionsToTxnRequest | AddOffsetsToTxnRequest,
    added: frozenset[TopicPartition],
    client_level: int,
    now: Instant,
) -> TransactionStep:
    metadata = state.metadata
    if not request.transactional_id or metadata is None:
        missing = Error.INVALID_PRODUCER_ID_MAPPING if request.transactional_id else Error.INVALID_REQUEST
        return Step(state, (refuse(number, request, missing),))
    error = check_adds(coordinator, metadata, request.producer_id, request.producer_epoch)
    is_there = metadata.state == TransactionState.ONGOING and added <= metadata.partitions
    if error != Error.NONE or is_there:
        return Step(state, (refuse(number, request, error),))
    target = to_ongoing(metadata, added, client_level, now.timestamp)
    append = AppendTransaction(target, state.coordinator_epoch, number, request)
    return Step(state._replace(metadata=with_pending(metadata, target)), (append,))


def check_adds(
    coordinator: TransactionCoordinator,
    metadata: TransactionMetadata,
    producer_id: ProducerId,
    producer_epoch: ProducerEpoch,
) -> Error:
    """Whether a producer may add to its transaction now.

    A step that is being written is looked at first, since it may give the producer another id (KAFKA-18660); before 4.0,
    last. Errors: `CONCURRENT_TRANSACTIONS`, `INVALID_PRODUCER_ID_MAPPING`, `PRODUCER_FENCED`.

    **Kafka:** `TransactionCoordinator.handleAddPartitionsToTransaction`.
    """
    is_pending = metadata.pending is not None
    if is_pending and coordinator.protocol.pending_first:
        return Error.CONCURRENT_TRANSACTIONS
    error = check_producer(metadata, producer_id, producer_epoch)
    if error != Error.NONE:
        return error
    return Error.CONCURRENT_TRANSACTIONS if is_pending or metadata.state in PREPARED else Error.NONE


def check_producer(metadata: TransactionMetadata, producer_id: ProducerId, producer_epoch: ProducerEpoch) -> Error:
    """Whether this is the present producer of a transactional id.

    Errors: `INVALID_PRODUCER_ID_MAPPING` for another id, `PRODUCER_FENCED` for another epoch.
    """
    if metadata.producer_id != producer_id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    return Error.NONE if metadata.producer_epoch == producer_epoch else Error.PRODUCER_FENCED


def _verified(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    number: RequestNumber,
    request: AddPartitionsToTxnRequest,
) -> AnswerTransaction:
    """The answer to a leader. A step that is being written does not matter: the log has the last word (KAFKA-14904)."""
    metadata = state.metadata
    if not request.transactional_id or metadata is None:
        missing = Error.INVALID_PRODUCER_ID_MAPPING if request.transactional_id else Error.INVALID_REQUEST
        return refuse(number, request, missing)
    error = check_producer(metadata, request.producer_id, request.producer_epoch)
    if error == Error.NONE and metadata.state in PREPARED:
        error = Error.CONCURRENT_TRANSACTIONS
    if error != Error.NONE:
        return refuse(number, request, error)
    unverified = coordinator.protocol.unverified
    found = ((one, Error.NONE if one in metadata.partitions else unverified) for one in sorted(request.partitions))
    return AnswerTransaction(number, AddPartitionsToTxnResponse(tuple(found)))
