"""Transactional ids are described and listed; producer ids are taken where they are needed."""

import pytest

from kspec.spec.controller.topics.producer_ids import ProducerIds, check_available, one_taken
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.messages.transactions.end_txn import EndTxnRequest
from kspec.spec.messages.transactions.list_transactions import ListTransactionsRequest
from kspec.spec.step import Step
from kspec.spec.transactions.administration import describe_transaction, list_transactions
from kspec.spec.transactions.effects import CoordinatedTransaction, TransactionStep
from kspec.spec.transactions.loading import is_current_term
from kspec.spec.transactions.producers import needs_fresh_id, takes_fresh_id
from kspec.spec.transactions.refusals import check_transactional_id
from kspec.spec.transactions.rules.coordination import coordinates_at_once, coordinates_what_is_committed
from kspec.spec.values import (
    LAST_PRODUCER_EPOCH,
    Epoch,
    Error,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TransactionalId,
)
from tests.spec.transactions.driver import ID, TIMEOUT_MS, A, B, TransactionDriver

NOW = TimestampMs(5_000)


def drivers() -> tuple[TransactionDriver, TransactionDriver]:
    """One producer whose transaction is open since time 0, and one that has none."""
    open_one, idle = TransactionDriver(), TransactionDriver()
    open_one.initialise()
    open_one.add(B, A)
    idle.initialise()
    return open_one, idle


def test_a_transaction_is_described() -> None:
    open_one, _ = drivers()
    found = describe_transaction(Error.NONE, ID, open_one.metadata)
    assert (found.error, found.state, found.timeout_ms, found.start_ms) == (Error.NONE, "Ongoing", TIMEOUT_MS, 0)
    assert (found.producer_id, found.producer_epoch, found.partitions) == (11, 0, (A, B))


def test_why_one_is_not_described() -> None:
    open_one, _ = drivers()
    assert describe_transaction(Error.NOT_COORDINATOR, TransactionalId(""), None).error == Error.INVALID_REQUEST
    assert describe_transaction(Error.NOT_COORDINATOR, ID, open_one.metadata).error == Error.NOT_COORDINATOR
    assert describe_transaction(Error.NONE, ID, None).error == Error.TRANSACTIONAL_ID_NOT_FOUND


@pytest.mark.parametrize(
    ("request_", "states", "unknown"),
    [
        (ListTransactionsRequest(), ("Ongoing", "Empty"), ()),
        (ListTransactionsRequest(states=("Empty", "Sleeping")), ("Empty",), ("Sleeping",)),
        (ListTransactionsRequest(states=("ongoing",)), (), ("ongoing",)),
        (ListTransactionsRequest(producer_ids=frozenset({ProducerId(12)})), (), ()),
        (ListTransactionsRequest(producer_ids=frozenset({ProducerId(11)})), ("Ongoing", "Empty"), ()),
        (ListTransactionsRequest(longer_than_ms=0), ("Ongoing", "Empty"), ()),
        (ListTransactionsRequest(longer_than_ms=4_999), ("Ongoing", "Empty"), ()),
        (ListTransactionsRequest(longer_than_ms=5_000), ("Empty",), ()),
    ],
)
def test_what_passes_the_filters(
    request_: ListTransactionsRequest, states: tuple[str, ...], unknown: tuple[str, ...]
) -> None:
    """One that has not begun has begun at -1: it passes every duration up to the present time, as in Kafka."""
    known = tuple(one.metadata for one in drivers())
    found = list_transactions(request_, False, known, NOW)
    assert found.error == Error.NONE
    assert tuple(one.state for one in found.transactions) == states
    assert found.unknown_states == unknown


def test_why_nothing_is_listed() -> None:
    unreadable = ListTransactionsRequest(states=("Sleeping",), is_pattern_readable=False)
    refused = list_transactions(unreadable, False, (), NOW)
    assert (refused.error, refused.unknown_states) == (Error.INVALID_REGULAR_EXPRESSION, ())
    assert list_transactions(unreadable, True, (), NOW).error == Error.COORDINATOR_LOAD_IN_PROGRESS


def test_a_new_id_is_needed_for_a_new_name_and_after_the_last_epoch() -> None:
    driver = TransactionDriver()
    end = EndTxnRequest(ID, ProducerId(1), ProducerEpoch(0), True)
    assert needs_fresh_id(None, InitProducerIdRequest(transactional_id=TransactionalId("new")))
    assert not needs_fresh_id(None, end)
    assert not needs_fresh_id(None, None)
    driver.initialise()
    assert not needs_fresh_id(driver.metadata, end)
    driver.force(producer_epoch=ProducerEpoch(LAST_PRODUCER_EPOCH - 1))
    assert needs_fresh_id(driver.metadata, end)
    assert needs_fresh_id(driver.metadata, None)


class NotingDriver(TransactionDriver):
    """Notes of each step whether it has taken the id that was offered last."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[bool] = []

    def take(self, step: TransactionStep) -> None:
        """Note, and carry out."""
        self.taken.append(takes_fresh_id(step, ProducerId(self.fresh)))
        super().take(step)


def test_an_id_is_taken_by_who_needs_it() -> None:
    driver = NotingDriver()
    driver.initialise()
    assert driver.taken[0]
    driver.taken.clear()
    driver.initialise()
    driver.add(A)
    assert not any(driver.taken)
    driver.taken.clear()
    driver.force(producer_epoch=ProducerEpoch(LAST_PRODUCER_EPOCH - 1))
    driver.end(committed=True)
    assert driver.taken[0]
    assert driver.metadata.next_producer_id == driver.fresh


def test_ids_are_at_hand_or_not() -> None:
    ids = ProducerIds(ProducerId(7), ProducerId(8))
    assert check_available(ids) == Error.NONE
    assert check_available(one_taken(ids)) == Error.COORDINATOR_LOAD_IN_PROGRESS


def test_a_log_is_acted_on_once_all_that_was_read_is_committed() -> None:
    assert coordinates_what_is_committed(Offset(3), Offset(3))
    assert not coordinates_what_is_committed(Offset(4), Offset(3))
    assert coordinates_at_once(Offset(4), Offset(3)), "up to 4.4"


def test_what_was_loaded_counts_in_its_epoch() -> None:
    assert is_current_term(Epoch(1), Epoch(1))
    assert not is_current_term(Epoch(1), Epoch(2))


def test_a_request_names_a_transactional_id() -> None:
    assert check_transactional_id("a") == Error.NONE
    assert check_transactional_id("") == check_transactional_id(None) == Error.INVALID_REQUEST


def test_a_step_without_a_record_takes_no_id() -> None:
    assert not takes_fresh_id(Step(CoordinatedTransaction(ID, Epoch(0))), ProducerId(1))
