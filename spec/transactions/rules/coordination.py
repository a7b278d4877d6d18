"""Decisions of the transaction coordinator."""

from typing import TypeVar

from kspec.spec.values import LAST_PRODUCER_EPOCH, Error, ProducerEpoch

NamedT = TypeVar("NamedT")


def names_nobody(named: NamedT | None) -> NamedT | None:
    """A producer that asks for its id again counts as a new one. **Kafka:** before 2.5."""
    return None


def names_itself(named: NamedT | None) -> NamedT | None:
    """A producer that asks for its id again may say which it had. **Kafka:** since 2.5 (KIP-360)."""
    return named


def ends_not_below(is_from_client: bool, asked: int, known: int) -> bool:
    """Whether an EndTxn of one epoch may end the transaction of another: if it is not smaller.

    **Kafka:** `TransactionCoordinator.endTransaction` up to 2.5.
    """
    return asked >= known


def ends_its_own(is_from_client: bool, asked: int, known: int) -> bool:
    """As `ends_not_below`, but a client ends transactions of its own epoch alone.

    **Kafka:** `TransactionCoordinator.endTransactionWithTV1`, since 2.6 (KAFKA-9600).
    """
    return asked == known if is_from_client else asked >= known


def next_fence(epoch: ProducerEpoch, has_failed: bool) -> ProducerEpoch:
    """The epoch with which a producer is fenced: the next one, also after a fence that the log has refused.

    **Kafka:** `TransactionMetadata.prepareFenceProducerEpoch` up to 2.5.
    """
    return ProducerEpoch(epoch + 1)


def next_fence_once(epoch: ProducerEpoch, has_failed: bool) -> ProducerEpoch:
    """As `next_fence`, but an epoch that nobody has been told is taken again.

    **Kafka:** since 2.6 (KAFKA-9666).
    """
    return epoch if has_failed else next_fence(epoch, has_failed)


def next_fence_within_bounds(epoch: ProducerEpoch, has_failed: bool) -> ProducerEpoch:
    """As `next_fence_once`, but the largest epoch stays.

    **Kafka:** since 4.3 (KAFKA-20090).
    """
    return epoch if epoch == LAST_PRODUCER_EPOCH else next_fence_once(epoch, has_failed)


def bumps_from_fence(epoch: ProducerEpoch, fence: ProducerEpoch) -> ProducerEpoch:
    """The epoch from which the end of a fenced transaction goes on, of the producer's and the fence's: the fence's.

    **Kafka:** `TransactionCoordinator.endTransaction` in 4.0, which raises the epoch twice.
    """
    return fence


def bumps_from_epoch(epoch: ProducerEpoch, fence: ProducerEpoch) -> ProducerEpoch:
    """As `bumps_from_fence`, but the producer's: the end is the fence. **Kafka:** since 4.1 (KAFKA-19367)."""
    return epoch


def rotates_for_clients(is_fence: bool) -> bool:
    """Whether a producer whose epochs are used up gets another id at the end of a transaction: unless it is fenced.

    **Kafka:** `TransactionCoordinator.endTransaction` up to 4.2.
    """
    return not is_fence


def rotates_always(is_fence: bool) -> bool:
    """As `rotates_for_clients`, also if it is fenced. **Kafka:** since 4.3 (KAFKA-20090)."""
    return True


def following_epoch(epoch: ProducerEpoch, aborts: bool) -> ProducerEpoch:
    """The epoch of a producer after a transaction of version 2, committed or aborted: the next one.

    **Kafka:** `TransactionMetadata.prepareAbortOrCommit`, 4.0 to 4.2.
    """
    return ProducerEpoch(epoch + 1)


def next_epoch_of_producer(epoch: ProducerEpoch, aborts: bool) -> ProducerEpoch:
    """As `following_epoch`, but an abort leaves the largest as it is. **Kafka:** since 4.3 (KAFKA-20090)."""
    return epoch if aborts and epoch == LAST_PRODUCER_EPOCH else ProducerEpoch(epoch + 1)


def forgets_by_id(answered_epoch: int, sent_epoch: int) -> bool:
    """Whether a late answer to markers ends the sending: of the coordinator epochs of the answered ones, and of those sent
    last. **Kafka:** `TransactionMarkerChannelManager.removeMarkersForTxnId` up to 3.7.
    """
    return True


def forgets_by_epoch(answered_epoch: int, sent_epoch: int) -> bool:
    """As `forgets_by_id`, but an answer of an earlier coordinator epoch ends nothing that was sent later.

    **Kafka:** `TransactionMarkerChannelManager.removeMarkersForTxn`, since 3.8 (KAFKA-16352).
    """
    return answered_epoch == sent_epoch


def coordinates_at_once(read_to: int, committed: int) -> bool:
    """Whether a log that has been read up to an offset may be acted on: at once, whatever of it is committed.

    **Kafka:** `TransactionStateManager.loadTransactionMetadata`.
    """
    return True


def coordinates_what_is_committed(read_to: int, committed: int) -> bool:
    """As `coordinates_at_once`, but all of it must be committed.

    Its end may have been written by the coordinator before, and be lost with this broker: a marker that is sent by a record
    which nobody has afterwards cannot be taken back, and the next coordinator may end the transaction otherwise.

    **Kafka:** no release.
    """
    return committed >= read_to


def is_same_coordinator(written_epoch: int, epoch: int) -> bool:
    """Whether a record that has been written counts, of the coordinator epochs when it was written and now.

    **Kafka:** `TransactionStateManager.appendTransactionToLog`, `updateCacheCallback`.
    """
    return written_epoch == epoch


def is_invalid_state(was_retried: bool) -> Error:
    """The answer to a commit of a transaction that was aborted; whether it comes from the epoch before.

    **Kafka:** `TransactionCoordinator.endTransaction` up to 4.4.
    """
    return Error.INVALID_TXN_STATE


def is_fenced_by_abort(was_retried: bool) -> Error:
    """As `is_invalid_state`, but a producer whose transaction the coordinator has aborted meanwhile is fenced.

    **Kafka:** after 4.4 (KAFKA-20785).
    """
    return Error.PRODUCER_FENCED if was_retried else Error.INVALID_TXN_STATE
