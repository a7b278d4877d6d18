"""EndTxn, and transactions that the coordinator ends itself: the end is decided, and written before any marker is sent."""

from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.step import Step
from kspec.spec.transactions.effects import NO_REQUEST, AppendTransaction, CoordinatedTransaction, TransactionStep
from kspec.spec.transactions.metadata import (
    AT_REST,
    PREPARED,
    TransactionMetadata,
    TransactionState,
    bumps_epoch,
    is_exhausted,
    is_timed_out,
    with_pending,
)
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.transactions.refusals import grant, refuse
from kspec.spec.values import (
    LAST_PRODUCER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Error,
    Instant,
    ProducerId,
    RequestNumber,
)

COMMITS = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
"""The states of a transaction that is committed, or is going to be."""


def handle_end_txn(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    number: RequestNumber,
    request: EndTxnRequest,
    fresh: ProducerId,
    now: Instant,
) -> TransactionStep:
    """Commit or abort the producer's transaction. The answer is given when the decision is in the log.

    From version 2 on the producer has the next epoch afterwards, or the id `fresh` when the epochs are used up, and a
    repeated request is known by the epoch before. Without that a repeated one cannot be told from the end of the next
    transaction (KAFKA-17754).

    Errors: `INVALID_REQUEST`, `INVALID_PRODUCER_ID_MAPPING`, `PRODUCER_FENCED`, `CONCURRENT_TRANSACTIONS`,
    `INVALID_TXN_STATE`; later those of `answer_for_append`.

    **Kafka:** `TransactionCoordinator.endTransaction`, `endTransactionWithTV1`.
    """
    metadata = state.metadata
    if not request.transactional_id or metadata is None:
        missing = Error.INVALID_PRODUCER_ID_MAPPING if request.transactional_id else Error.INVALID_REQUEST
        return Step(state, (refuse(number, request, missing),))
    check = check_end_with_bump if bumps_epoch(request.client_level) else check_end
    error = check(coordinator, metadata, request)
    if error is not None:
        answer = grant(number, request, metadata) if error == Error.NONE else refuse(number, request, error)
        return Step(state, (answer,))
    target = _ended(coordinator, metadata, request.committed, request.client_level, fresh, now)
    append = AppendTransaction(target, state.coordinator_epoch, number, request)
    return Step(state._replace(metadata=with_pending(metadata, target)), (append,))


def check_end(coordinator: TransactionCoordinator, metadata: TransactionMetadata, request: EndTxnRequest) -> Error | None:
    """The answer to an EndTxn before version 2, `None` if the open transaction is to be ended.

    Errors: those of `handle_end_txn`; `NONE` if the last transaction ended so.

    **Kafka:** `TransactionCoordinator.endTransactionWithTV1`.
    """
    if metadata.producer_id != request.producer_id:
        return Error.INVALID_PRODUCER_ID_MAPPING
    if not coordinator.protocol.may_end(True, request.producer_epoch, metadata.producer_epoch):
        return Error.PRODUCER_FENCED
    if metadata.pending is not None:
        return Error.CONCURRENT_TRANSACTIONS
    if metadata.state == TransactionState.ONGOING:
        return None
    if metadata.state == TransactionState.EMPTY or request.committed != (metadata.state in COMMITS):
        return Error.INVALID_TXN_STATE
    return Error.CONCURRENT_TRANSACTIONS if metadata.state in PREPARED else Error.NONE


def check_end_with_bump(
    coordinator: TransactionCoordinator, metadata: TransactionMetadata, request: EndTxnRequest
) -> Error | None:
    """As `check_end`, from version 2 on. A transaction without partitions may be aborted: it has an epoch, too.

    **Kafka:** `TransactionCoordinator.endTransaction`.
    """
    is_pending = metadata.pending is not None
    if is_pending and coordinator.protocol.pending_first:
        return Error.CONCURRENT_TRANSACTIONS
    is_own = request.producer_epoch == metadata.producer_epoch
    is_repeated = is_repeated_end(metadata, request)
    if metadata.producer_id != request.producer_id and not _is_before_rotation(metadata, request):
        return Error.INVALID_PRODUCER_ID_MAPPING
    if metadata.state in PREPARED:
        is_own = False
    elif metadata.state in (TransactionState.ONGOING, TransactionState.EMPTY):
        is_repeated = False
    if not (is_own or is_repeated):
        return Error.PRODUCER_FENCED
    if is_pending:
        return Error.CONCURRENT_TRANSACTIONS
    if metadata.state == TransactionState.ONGOING:
        return None
    return _answer_at_rest(coordinator, metadata, request.committed, is_repeated)


def is_repeated_end(metadata: TransactionMetadata, request: EndTxnRequest) -> bool:
    """Whether an EndTxn names the epoch before: it has been carried out, and its answer was lost.

    **Kafka:** `retryOnEpochBump`, `retryOnOverflow` in `TransactionCoordinator.endTransaction`.
    """
    return metadata.producer_epoch == request.producer_epoch + 1 or _is_before_rotation(metadata, request)


def _is_before_rotation(metadata: TransactionMetadata, request: EndTxnRequest) -> bool:
    is_id_before = metadata.previous_producer_id == request.producer_id
    return is_id_before and request.producer_epoch == LAST_PRODUCER_EPOCH - 1 and metadata.producer_epoch == 0


def _answer_at_rest(
    coordinator: TransactionCoordinator, metadata: TransactionMetadata, committed: bool, is_repeated: bool
) -> Error | None:
    """The answer if no transaction is open, or its end is decided; `None`: an empty one is to be aborted."""
    is_same = metadata.state != TransactionState.EMPTY and committed == (metadata.state in COMMITS)
    if metadata.state in PREPARED and is_same:
        return Error.CONCURRENT_TRANSACTIONS
    if metadata.state in AT_REST and is_repeated and is_same:
        return Error.NONE
    if metadata.state in AT_REST and not is_repeated and not committed:
        return None
    was_overtaken = committed and metadata.state in (TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
    return coordinator.protocol.overtaken_commit(is_repeated) if was_overtaken else Error.INVALID_TXN_STATE


def _ended(
    coordinator: TransactionCoordinator,
    metadata: TransactionMetadata,
    committed: bool,
    client_level: int,
    fresh: ProducerId,
    now: Instant,
    is_fence: bool = False,
) -> TransactionMetadata:
    """The state in which the end is decided. **Kafka:** `TransactionMetadata.prepareAbortOrCommit`."""
    ended = metadata._replace(
        state=TransactionState.PREPARE_COMMIT if committed else TransactionState.PREPARE_ABORT,
        previous_producer_id=metadata.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        start_ms=now.timestamp if metadata.state in AT_REST else metadata.start_ms,
        updated_ms=now.timestamp,
        client_level=client_level if bumps_epoch(client_level) else 0,
    )
    if not bumps_epoch(client_level):
        return ended
    rotates = is_exhausted(metadata.producer_epoch) and coordinator.protocol.rotates(is_fence)
    return ended._replace(
        producer_epoch=coordinator.protocol.epoch_after(metadata.producer_epoch, not committed),
        last_producer_epoch=metadata.producer_epoch,
        next_producer_id=fresh if rotates else NO_PRODUCER_ID,
    )


# ---- by the coordinator itself


def fence(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    fresh: ProducerId,
    now: Instant,
    number: RequestNumber = NO_REQUEST,
    request: InitProducerIdRequest | None = None,
) -> TransactionStep:
    """Abort an open transaction with an epoch above its producer's, so that the producer cannot go on.

    Before version 2 the epoch is raised in memory at once, and stays so if the log refuses the record. `number` and
    `request`: a producer that starts anew, and is told `CONCURRENT_TRANSACTIONS` when the abort is in the log.

    **Kafka:** `TransactionMetadata.prepareFenceProducerEpoch`, then `TransactionCoordinator.endTransaction`, not from a
    client. **Leaves out:** that a client's EndTxn may come between the two.
    """
    metadata, level = state.metadata, coordinator.settings.cluster_level
    assert metadata is not None
    assert metadata.state == TransactionState.ONGOING
    fenced = coordinator.protocol.fence(metadata.producer_epoch, metadata.failed_fence)
    epoch = coordinator.protocol.bumps_from(metadata.producer_epoch, fenced) if bumps_epoch(level) else fenced
    raised = epoch != metadata.producer_epoch or not bumps_epoch(level)
    before = metadata._replace(
        producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH if raised else metadata.last_producer_epoch
    )
    target = _ended(coordinator, before, False, level, fresh, now, is_fence=True)
    append = AppendTransaction(target, state.coordinator_epoch, number, request, raised)
    return Step(state._replace(metadata=with_pending(before, target)), (append,))


def on_timeout(
    coordinator: TransactionCoordinator, state: CoordinatedTransaction, fresh: ProducerId, now: Instant
) -> TransactionStep:
    """A transaction that has been open for too long is aborted, and its producer fenced (KAFKA-6119).

    **Kafka:** `TransactionCoordinator.abortTimedOutTransactions`, every ten seconds.
    """
    if state.metadata is None or not is_timed_out(state.metadata, now.timestamp):
        return Step(state)
    return fence(coordinator, state, fresh, now)
