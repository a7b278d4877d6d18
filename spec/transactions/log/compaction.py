"""Compaction of a log with transactions: what was aborted goes, and a marker once nothing of its transaction is left.

A cleaner reads a part of the log in order, and with it the index of aborted transactions. A marker that ends nothing any
more goes after delete.retention.ms, as tombstones do: a consumer that has read the transaction's records may not have read
its end yet.
"""

from collections.abc import Iterable
from typing import NamedTuple

from kspec.spec.transactions.log.partition import AbortedTransaction
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import UNKNOWN_OFFSET, Offset, ProducerEpoch, ProducerId


class AbortingTransaction(NamedTuple):
    """An aborted transaction of which the cleaner has passed the first offset, and maybe read a batch."""

    aborted: AbortedTransaction
    has_batches: bool = False


class CleanedTransactions(NamedTuple):
    """The transactions in the part of a log that is being read. Kafka: `CleanedTransactionMetadata`.

    `waiting`: aborted ones that begin further on, in order of their first offsets. `committed`: the producers of batches
    whose transaction is not aborted, and has not ended so far.
    """

    waiting: tuple[AbortedTransaction, ...] = ()
    aborting: tuple[AbortingTransaction, ...] = ()
    committed: frozenset[ProducerId] = frozenset()


def with_aborted(state: CleanedTransactions, found: Iterable[AbortedTransaction]) -> CleanedTransactions:
    """The state with the aborted transactions of the next segment; those that are known are named again by a later one.

    **Kafka:** `CleanedTransactionMetadata.addAbortedTransactions`.
    """
    known = {one.aborted for one in state.aborting}
    waiting = (set(state.waiting) | set(found)) - known
    return state._replace(waiting=tuple(sorted(waiting, key=lambda one: (one.first_offset, one.last_offset))))


def _up_to(state: CleanedTransactions, offset: Offset) -> CleanedTransactions:
    """**Kafka:** `CleanedTransactionMetadata.consumeAbortedTxnsUpTo`."""
    if not state.waiting or state.waiting[0].first_offset > offset:
        return state
    begun = tuple(one for one in state.waiting if one.first_offset <= offset)
    open_now = {one.aborted.producer_id for one in state.aborting}
    added = tuple(AbortingTransaction(one) for one in begun if one.producer_id not in open_now)
    return state._replace(waiting=state.waiting[len(begun) :], aborting=(*state.aborting, *added))


class CleanedBatch(NamedTuple):
    """The state after a batch or a marker, and whether it may go.

    `noted`: an aborted transaction that stays in the index.
    """

    state: CleanedTransactions
    may_go: bool
    noted: AbortedTransaction | None = None


def read_batch(
    state: CleanedTransactions, producer_id: ProducerId, last_offset: Offset, is_transactional: bool
) -> CleanedBatch:
    """Read a batch of records: all of them may go if its transaction was aborted.

    **Kafka:** `CleanedTransactionMetadata.onBatchRead`.
    """
    state = _up_to(state, last_offset)
    if not is_transactional:
        return CleanedBatch(state, False)
    if all(one.aborted.producer_id != producer_id for one in state.aborting):
        return CleanedBatch(state._replace(committed=state.committed | {producer_id}), False)
    aborting = tuple(
        one._replace(has_batches=True) if one.aborted.producer_id == producer_id else one for one in state.aborting
    )
    return CleanedBatch(state._replace(aborting=aborting), True)


def read_marker(
    protocol: TransactionProtocol,
    state: CleanedTransactions,
    producer_id: ProducerId,
    committed: bool | None,
    offset: Offset,
) -> CleanedBatch:
    """Read a marker: it may go if no batch of its transaction was read. `committed`: `None` for one that is emptied already.

    **Kafka:** `CleanedTransactionMetadata.onControlBatchRead`.
    """
    state = _up_to(state, offset)
    if committed is None:
        return CleanedBatch(state, True)
    if committed:
        may_go = protocol.marker_goes(producer_id in state.committed)
        return CleanedBatch(state._replace(committed=state.committed - {producer_id}), may_go)
    ended = next((one for one in state.aborting if one.aborted.producer_id == producer_id), None)
    left = tuple(one for one in state.aborting if one.aborted.producer_id != producer_id)
    may_go = protocol.marker_goes(ended is not None and ended.has_batches)
    noted = None if ended is None or may_go else ended.aborted
    return CleanedBatch(state._replace(aborting=left), may_go, noted)


def is_last_of_producer(
    is_marker: bool, last_offset: Offset, producer_epoch: ProducerEpoch, known_last: Offset, known_epoch: ProducerEpoch
) -> bool:
    """Whether a batch is the last that tells of its producer, so that its header stays.

    Parameters: whether it is a marker; its last offset and epoch; the offset of the producer's last record, `UNKNOWN_OFFSET`
    if the log has only a marker of its epoch; the producer's epoch.

    **Kafka:** `Cleaner.cleanInto`, `isBatchLastRecordOfProducer`.
    """
    if known_last != UNKNOWN_OFFSET:
        return last_offset == known_last
    return is_marker and producer_epoch == known_epoch
