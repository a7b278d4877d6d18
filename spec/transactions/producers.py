"""InitProducerId of a producer of transactions: it gets an id and an epoch, and whoever had them before is fenced."""

from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.step import Step
from kspec.spec.transactions.effects import AppendTransaction, CoordinatedTransaction, TransactionRequest, TransactionStep
from kspec.spec.transactions.ending import fence
from kspec.spec.transactions.metadata import (
    PREPARED,
    TransactionMetadata,
    TransactionState,
    is_exhausted,
    to_epoch_after,
    to_new_id,
    with_pending,
)
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.transactions.refusals import refuse
from kspec.spec.values import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    Error,
    Instant,
    ProducerEpoch,
    ProducerId,
    RequestNumber,
)

NamedProducer = tuple[ProducerId, ProducerEpoch]
"""The id and the epoch that a producer says it has."""


def handle_init_producer_id(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    number: RequestNumber,
    request: InitProducerIdRequest,
    fresh: ProducerId,
    now: Instant,
) -> TransactionStep:
    """Give a producer the next epoch of its id, or another id (`fresh`) when the epochs are used up.

    An open transaction is aborted with an epoch that no client is told; the producer asks again. A step that needs no
    fresh id leaves it to be offered again.

    Errors: `INVALID_REQUEST`, `INVALID_TRANSACTION_TIMEOUT`, `CONCURRENT_TRANSACTIONS`, `PRODUCER_FENCED`; later those of
    `answer_for_append`.

    **Kafka:** `TransactionCoordinator.handleInitProducerId`, `prepareInitProducerIdTransit`. **Leaves out:** KIP-939.
    """
    error = check_init_producer_id(coordinator, request)
    if error != Error.NONE:
        return Step(state, (refuse(number, request, error),))
    metadata = state.metadata
    if metadata is None:
        metadata = TransactionMetadata(state.transactional_id, fresh, request.timeout_ms, updated_ms=now.timestamp)
    named = coordinator.protocol.named_by(_named(request))
    error = _check_named(metadata, named)
    if error != Error.NONE:
        return Step(state, (refuse(number, request, error),))
    if metadata.state == TransactionState.ONGOING:
        return fence(coordinator, state._replace(metadata=metadata), fresh, now, number, request)
    target = _next(metadata, named, fresh, request.timeout_ms, now)
    if target is None:
        return Step(state, (refuse(number, request, Error.PRODUCER_FENCED),))
    append = AppendTransaction(target, state.coordinator_epoch, number, request)
    return Step(state._replace(metadata=with_pending(metadata, target)), (append,))


def check_init_producer_id(coordinator: TransactionCoordinator, request: InitProducerIdRequest) -> Error:
    """Whether a request can be granted whatever is known of its transactional id.

    Errors: `INVALID_REQUEST` for an empty id, or one of id and epoch without the other; `INVALID_TRANSACTION_TIMEOUT`.

    **Kafka:** `KafkaApis.handleInitProducerIdRequest`, `TransactionStateManager.validateTransactionTimeoutMs`.
    """
    names_half = (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH)
    if not request.transactional_id or names_half:
        return Error.INVALID_REQUEST
    in_bounds = 0 < request.timeout_ms <= coordinator.settings.max_timeout_ms
    return Error.NONE if in_bounds else Error.INVALID_TRANSACTION_TIMEOUT


def _named(request: InitProducerIdRequest) -> NamedProducer | None:
    return None if request.producer_id == NO_PRODUCER_ID else (request.producer_id, request.producer_epoch)


def _check_named(metadata: TransactionMetadata, named: NamedProducer | None) -> Error:
    if metadata.pending is not None:
        return Error.CONCURRENT_TRANSACTIONS
    if named is not None and not _is_known(metadata, *named):
        return Error.PRODUCER_FENCED
    return Error.CONCURRENT_TRANSACTIONS if metadata.state in PREPARED else Error.NONE


def _is_known(metadata: TransactionMetadata, named_id: ProducerId, named_epoch: ProducerEpoch) -> bool:
    """Whether the id that a producer names is its own, or was until the epochs were used up.

    **Kafka:** `TransactionCoordinator.isValidProducerId`.
    """
    is_new = metadata.producer_epoch == NO_PRODUCER_EPOCH
    was_rotated = named_id == metadata.previous_producer_id and is_exhausted(named_epoch)
    return is_new or named_id == metadata.producer_id or was_rotated


def _next(
    metadata: TransactionMetadata, named: NamedProducer | None, fresh: ProducerId, timeout_ms: int, now: Instant
) -> TransactionMetadata | None:
    epoch = None if named is None else named[1]
    if is_exhausted(metadata.producer_epoch) and (epoch is None or epoch == metadata.producer_epoch):
        return to_new_id(metadata, fresh, epoch is not None, timeout_ms, now.timestamp)
    return to_epoch_after(metadata, epoch, timeout_ms, now.timestamp)


# ---- ids that nobody has had


def needs_fresh_id(metadata: TransactionMetadata | None, request: TransactionRequest | None) -> bool:
    """Whether a step may give the producer another id, so that one has to be at hand; no request: a fence.

    A handler that has been given one need not take it (`takes_fresh_id`).

    **Kafka:** `TransactionCoordinator.handleInitProducerId`, `prepareInitProducerIdTransit`, `endTransaction`, each of which
    calls `ProducerIdManager.generateProducerId`.
    """
    if metadata is not None:
        return is_exhausted(metadata.producer_epoch)
    match request:
        case InitProducerIdRequest():
            return True
    return False


def takes_fresh_id(step: TransactionStep, fresh: ProducerId) -> bool:
    """Whether a step has taken the id that it was offered: nobody else may have it then, whatever becomes of the step."""
    for effect in step.effects:
        match effect:
            case AppendTransaction(target):
                return fresh in (target.producer_id, target.next_producer_id)
    return False
