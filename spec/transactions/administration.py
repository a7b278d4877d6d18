"""The handlers that look at transactional ids, and list them."""

from kspec.spec.messages.transactions.describe_transactions import DescribedTransaction
from kspec.spec.messages.transactions.list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from kspec.spec.transactions.metadata import TransactionMetadata, TransactionState
from kspec.spec.values import Error, TimestampMs, TransactionalId

NAMES = frozenset(state.value for state in TransactionState)
"""The names of all states. Kafka: `TransactionState.ALL_STATES`."""


def describe_transaction(
    coordinated: Error, transactional_id: TransactionalId, metadata: TransactionMetadata | None
) -> DescribedTransaction:
    """The state of a transactional id as it is in memory; `coordinated`: whether this broker coordinates it.

    Errors: `INVALID_REQUEST` (an empty id), `coordinated`, `TRANSACTIONAL_ID_NOT_FOUND`.

    **Kafka:** `TransactionCoordinator.handleDescribeTransactions`.
    """
    if not transactional_id:
        return DescribedTransaction(Error.INVALID_REQUEST, transactional_id)
    if coordinated != Error.NONE:
        return DescribedTransaction(coordinated, transactional_id)
    if metadata is None:
        return DescribedTransaction(Error.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    return DescribedTransaction(
        Error.NONE,
        transactional_id,
        metadata.state.value,
        metadata.timeout_ms,
        metadata.start_ms,
        metadata.producer_id,
        metadata.producer_epoch,
        tuple(sorted(metadata.partitions)),
    )


def list_transactions(
    request: ListTransactionsRequest, is_loading: bool, known: tuple[TransactionMetadata, ...], now: TimestampMs
) -> ListTransactionsResponse:
    """The transactional ids that pass the filters, of those that the broker knows and that match the pattern, if any.

    `is_loading`: whether the broker reads the log of some, so that it does not know all. No transaction is in a state whose
    name is none. One that is not open passes every duration: its start is -1.

    Errors: `COORDINATOR_LOAD_IN_PROGRESS`, `INVALID_REGULAR_EXPRESSION` (the pattern is none).

    **Kafka:** `TransactionStateManager.listTransactionStates` (KIP-664, KIP-994, KIP-1152).
    """
    if is_loading:
        return ListTransactionsResponse(Error.COORDINATOR_LOAD_IN_PROGRESS)
    if not request.is_pattern_readable:
        return ListTransactionsResponse(Error.INVALID_REGULAR_EXPRESSION)
    listed = (
        ListedTransaction(one.transactional_id, one.producer_id, one.state.value)
        for one in known
        if (not request.states or one.state.value in request.states)
        and (not request.producer_ids or one.producer_id in request.producer_ids)
        and (request.longer_than_ms < 0 or now - one.start_ms > request.longer_than_ms)
    )
    unknown = tuple(state for state in request.states if state not in NAMES)
    return ListTransactionsResponse(Error.NONE, unknown, tuple(listed))
