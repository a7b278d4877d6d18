"""Decisions of the leader of a partition about transactions."""

from kspec.spec.values import LAST_PRODUCER_EPOCH, Offset, TimestampMs


def never_verified(is_ongoing: bool) -> bool:
    """Whether the coordinator is asked before a batch is appended, of whether its transaction is open in the log: never.

    **Kafka:** up to 3.5.
    """
    return False


def verified_at_first(is_ongoing: bool) -> bool:
    """As `never_verified`, but a batch that would begin a transaction is. **Kafka:** since 3.6 (KIP-890 part 1)."""
    return not is_ongoing


def is_this_guard(known: int, given: int) -> bool:
    """Whether a batch was verified since its producer's last transaction: by the guards of the producer, and of the batch.

    **Kafka:** `VerificationGuard.verify` (KAFKA-14884).
    """
    return given != 0 and given == known


def keeps_guard(bumps_epoch: bool, is_marker: bool, epoch: int, guard_epoch: int) -> bool:
    """Whether a verification goes on after a batch or marker: if the marker ends the transaction before, by the epochs.

    **Kafka:** `UnifiedLog.updateProducers`.
    """
    return bumps_epoch and is_marker and epoch == guard_epoch


def keeps_guard_of_later(bumps_epoch: bool, is_marker: bool, epoch: int, guard_epoch: int) -> bool:
    """As `keeps_guard`, but a verification goes on after the marker of any earlier epoch: a fence raises the epoch twice.

    **Kafka:** no release.
    """
    return is_marker and (epoch < guard_epoch or keeps_guard(bumps_epoch, is_marker, epoch, guard_epoch))


def is_lowest(first_sequence: int, lowest: int) -> bool:
    """Whether a batch may be the first of its transaction, by the lowest sequence number that was to be verified.

    **Kafka:** `ProducerAppendInfo.checkSequence` (KAFKA-14920).
    """
    return first_sequence <= lowest


def ends_not_later(epoch: int, known: int, bumps_epoch: bool, is_open: bool) -> bool:
    """Whether a marker is taken, of its epoch, the producer's epoch in the log, whether each transaction has an epoch of its
    own, and whether one is open in the log: unless the epoch is smaller.

    **Kafka:** `ProducerAppendInfo.checkProducerEpoch` up to 4.1.
    """
    return epoch >= known


def ends_earlier(epoch: int, known: int, bumps_epoch: bool, is_open: bool) -> bool:
    """As `ends_not_later`, but one with an epoch of its own is larger, unless it is repeated.

    **Kafka:** since 4.2 (KIP-1228, KAFKA-19999).
    """
    return epoch > known or (epoch == known and not (bumps_epoch and is_open))


def ends_earlier_or_last(epoch: int, known: int, bumps_epoch: bool, is_open: bool) -> bool:
    """As `ends_earlier`, but the largest epoch is taken. **Kafka:** since 4.3 (KAFKA-20090)."""
    return ends_earlier(epoch, known, bumps_epoch, is_open) or epoch == known == LAST_PRODUCER_EPOCH


def is_later_coordinator(coordinator_epoch: int, known: int) -> bool:
    """Whether a marker's coordinator is not an earlier one than that of the marker before.

    **Kafka:** `ProducerAppendInfo.checkCoordinatorEpoch`.
    """
    return coordinator_epoch >= known


def goes_without_batches(has_batches: bool) -> bool:
    """Whether a marker may go in a compaction that has read batches of its transaction, or has not: a log that has a batch
    without the marker has a transaction that is open, and a consumer that has read the batch waits for the marker.

    **Kafka:** `CleanedTransactionMetadata.onControlBatchRead`.
    """
    return not has_batches


def goes_after_horizon(may_go: bool, delete_horizon: int, now_ms: TimestampMs) -> bool:
    """Whether a marker that may go does so now. `delete_horizon`: of its batch (ms), -1 before a compaction has seen that it
    may go. A consumer that has read batches of the transaction has had until then to read the marker.

    **Kafka:** `Cleaner.cleanInto`, `checkBatchRetention`.
    """
    return may_go and 0 <= delete_horizon <= now_ms


def is_aborted_within(first: int, last: int, fetched: int, end: int) -> bool:
    """Whether a consumer has to know an aborted transaction, of its first and last offset, to read between two.

    **Kafka:** `TransactionIndex.collectAbortedTxns`.
    """
    return last >= fetched and first < end


def ends_search(stable: int, end: int) -> bool:
    """Whether no aborted transaction behind an entry of the index is about records below `end`: the log was stable up to
    there, when the entry was written.

    **Kafka:** `TransactionIndex.collectAbortedTxns`.
    """
    return stable >= end


def first_unstable(ongoing: tuple[Offset, ...], unreplicated: tuple[Offset, ...]) -> Offset | None:
    """The first offset of a transaction that is open, or whose end is not committed; `None` if there is none.

    **Kafka:** `ProducerStateManager.firstUnstableOffset`.
    """
    return min((*ongoing, *unreplicated), default=None)
