"""Reading what is committed: how far a log is stable, which transactions in it are aborted, and what a consumer returns."""

from collections.abc import Iterable

from kspec.spec.transactions.log.partition import (
    AbortedTransaction,
    LoggedBatch,
    LoggedMarker,
    PartitionTransactions,
    TransactionalEntry,
)
from kspec.spec.transactions.protocol import TransactionProtocol
from kspec.spec.values import Offset, ProducerId


def on_high_watermark(state: PartitionTransactions, high_watermark: Offset) -> PartitionTransactions:
    """The state when the high watermark has moved: transactions whose markers are committed are over for everybody.

    **Kafka:** `ProducerStateManager.onHighWatermarkUpdated`.
    """
    if not state.unreplicated:
        return state
    return state._replace(unreplicated=tuple(one for one in state.unreplicated if one.last_offset >= high_watermark))


def last_stable_offset(
    protocol: TransactionProtocol, state: PartitionTransactions, log_start: Offset, high_watermark: Offset
) -> Offset:
    """The offset up to which everything is decided: what is below is committed, or never will be.

    **Kafka:** `UnifiedLog.fetchLastStableOffsetMetadata`, `maybeIncrementFirstUnstableOffset`.
    """
    first = protocol.first_unstable(
        tuple(one.first_offset for one in state.ongoing), tuple(one.first_offset for one in state.unreplicated)
    )
    return high_watermark if first is None else min(max(first, log_start), high_watermark)


def aborted_between(
    protocol: TransactionProtocol, aborted: Iterable[AbortedTransaction], fetch_offset: Offset, upper_bound: Offset
) -> tuple[AbortedTransaction, ...]:
    """The aborted transactions that a consumer has to know for the records between two offsets, the second exclusive.

    `aborted`: those of the log in the order of their markers, at least all whose marker is not below the first offset.

    **Kafka:** `TransactionIndex.collectAbortedTxns`, `LocalLog.collectAbortedTransactions`.
    """
    found = []
    for one in aborted:
        if protocol.is_aborted_within(one.first_offset, one.last_offset, fetch_offset, upper_bound):
            found.append(one)
        if protocol.ends_search(one.last_stable_offset, upper_bound):
            break
    return tuple(found)


def committed_batches(
    entries: tuple[TransactionalEntry, ...], aborted: tuple[AbortedTransaction, ...]
) -> tuple[LoggedBatch, ...]:
    """The batches that a consumer returns of those that it has fetched below the last stable offset.

    A producer's batches are left out from the first offset of an aborted transaction up to its marker.

    **Kafka:** `CompletedFetch.nextFetchedRecord`, `consumeAbortedTransactionsUpTo`.
    """
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    aborting: frozenset[ProducerId] = frozenset()
    found: list[LoggedBatch] = []
    for entry in entries:
        aborting |= {one.producer_id for one in waiting if one.first_offset <= entry.last_offset}
        waiting = [one for one in waiting if one.first_offset > entry.last_offset]
        match entry:
            case LoggedMarker(committed=committed):
                aborting = aborting if committed else aborting - {entry.producer_id}
            case _ if not (entry.is_transactional and entry.batch.producer_id in aborting):
                found.append(entry)
    return tuple(found)
