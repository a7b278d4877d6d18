"""The record of a step is in the log and committed, or it is not: only then a step counts, and somebody is answered.

One step at a time is on its way for a transactional id (`TransactionMetadata.pending`). Others are refused meanwhile, with
an error upon which clients ask again.
"""

from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.write_txn_markers import TransactionMarker
from kspec.spec.step import Step
from kspec.spec.transactions.effects import (
    AppendTransaction,
    CoordinatedTransaction,
    SendMarkers,
    TransactionEffect,
    TransactionStep,
    WaitingCompletion,
)
from kspec.spec.transactions.metadata import (
    PREPARED,
    TransactionMetadata,
    TransactionState,
    bumps_epoch,
    to_complete,
    with_pending,
)
from kspec.spec.transactions.protocol import TransactionCoordinator
from kspec.spec.transactions.refusals import answer_for_append, grant, refuse
from kspec.spec.values import Error, Instant

COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
"""The markers are written."""


def on_appended(
    coordinator: TransactionCoordinator,
    state: CoordinatedTransaction,
    append: AppendTransaction,
    error: Error,
    now: Instant,
) -> TransactionStep:
    """A record is committed (`NONE`), or the log has refused it, or it was not committed in time and yet may be.

    Nothing counts that was written under another coordinator epoch, or of an id that is not known any more. The end of a
    transaction is answered before markers are sent. The record that completes one is tried again until it is in the log.

    Errors in answers: `NOT_COORDINATOR`, and those of `answer_for_append`.

    **Kafka:** `updateCacheCallback` in `TransactionStateManager.appendTransactionToLog`, `sendTxnMarkersCallback`.
    """
    metadata = state.metadata
    is_current = coordinator.protocol.counts_append(append.coordinator_epoch, state.coordinator_epoch)
    if metadata is None or not is_current:
        return Step(state, _refused(append, Error.NOT_COORDINATOR))
    told = answer_for_append(error)
    if told == Error.NONE:
        return _written(state, append, now)
    if append.target.state in COMPLETE and told == Error.COORDINATOR_NOT_AVAILABLE:
        return Step(state, (append,))
    after = metadata._replace(pending=None, failed_fence=metadata.failed_fence or append.raised)
    return Step(state._replace(metadata=after), _refused(append, told))


def _refused(append: AppendTransaction, error: Error) -> tuple[TransactionEffect, ...]:
    return () if append.request is None else (refuse(append.number, append.request, error),)


def _written(state: CoordinatedTransaction, append: AppendTransaction, now: Instant) -> TransactionStep:
    """The step of a record that is committed. **Kafka:** `TransactionMetadata.completeTransitionTo`."""
    target = append.target
    if target.state == TransactionState.DEAD:
        return Step(state._replace(metadata=None))
    if target.state not in PREPARED:
        answer = () if append.request is None else (grant(append.number, append.request, target),)
        return Step(state._replace(metadata=target), answer)
    sending = send_markers(state._replace(metadata=target), now)
    answers: tuple[TransactionEffect, ...] = ()
    match append.request:
        case EndTxnRequest():
            answers = (grant(append.number, append.request, to_complete(target, now.timestamp)),)
        case InitProducerIdRequest():
            answers = (refuse(append.number, append.request, Error.CONCURRENT_TRANSACTIONS),)
    return Step(sending.state, (*answers, *sending.effects))


# ---- markers


def send_markers(state: CoordinatedTransaction, now: Instant) -> TransactionStep:
    """Send the markers of a transaction whose end is decided; without partitions it is complete at once.

    **Kafka:** `TransactionMarkerChannelManager.addTxnMarkersToSend`.
    """
    metadata = state.metadata
    assert metadata is not None
    target = to_complete(metadata, now.timestamp)
    waiting = with_pending(metadata, target)._replace(failed_fence=False)
    sent = state._replace(metadata=waiting, completion=WaitingCompletion(state.coordinator_epoch, target))
    if not metadata.partitions:
        return complete_if_written(sent)
    return Step(sent, (SendMarkers(marker_of(metadata, state)),))


def marker_of(metadata: TransactionMetadata, state: CoordinatedTransaction) -> TransactionMarker:
    """The marker for all partitions of a transaction that have none yet. **Kafka:** `addTxnMarkersToBrokerQueue`."""
    return TransactionMarker(
        metadata.producer_id,
        metadata.producer_epoch,
        state.coordinator_epoch,
        metadata.state == TransactionState.PREPARE_COMMIT,
        metadata.partitions,
        metadata.client_level if bumps_epoch(metadata.client_level) else 0,
    )


def complete_if_written(state: CoordinatedTransaction) -> TransactionStep:
    """Write that a transaction is over if all its markers are. **Kafka:** `maybeWriteTxnCompletion`."""
    metadata, completion = state.metadata, state.completion
    if metadata is None or metadata.partitions or completion is None:
        return Step(state)
    append = AppendTransaction(completion.target, completion.coordinator_epoch)
    return Step(state._replace(completion=None), (append,))
