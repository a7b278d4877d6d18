"""ListTransactions: the transactional ids of a coordinator, as far as they pass some filters."""

from dataclasses import dataclass

from kspec.spec.values import Error, ProducerId, TransactionalId

NO_DURATION = -1
"""A filter that passes transactions however long they have been open."""


@dataclass(frozen=True, slots=True)
class ListTransactionsRequest:
    """The filters; an empty one passes everything. Kafka: `ListTransactionsRequestData`.

    `longer_than_ms`: open for longer than this (ms). `is_pattern_readable`: whether the pattern of the request is one;
    which ids match it is for the caller to find out.
    """

    states: tuple[str, ...] = ()
    producer_ids: frozenset[ProducerId] = frozenset()
    longer_than_ms: int = NO_DURATION
    is_pattern_readable: bool = True


@dataclass(frozen=True, slots=True)
class ListedTransaction:
    """A transactional id in the list. Kafka: `ListTransactionsResponseData.TransactionState`."""

    transactional_id: TransactionalId
    producer_id: ProducerId
    state: str


@dataclass(frozen=True, slots=True)
class ListTransactionsResponse:
    """The list, and the states of the filter that there are not. Kafka: `ListTransactionsResponseData`."""

    error: Error
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()
