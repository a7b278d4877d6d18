"""Compaction of transactions: what was aborted goes, and a marker after it."""

from kspec.spec.transactions.log.compaction import (
    CleanedTransactions,
    empties_marker,
    is_last_of_producer,
    read_batch,
    read_marker,
    with_aborted,
)
from kspec.spec.transactions.log.partition import AbortedTransaction
from kspec.spec.values import Offset, ProducerEpoch, ProducerId, TimestampMs

ONE, TWO, THREE = ProducerId(1), ProducerId(2), ProducerId(3)


def aborted(producer: ProducerId, first: int, last: int) -> AbortedTransaction:
    return AbortedTransaction(producer, Offset(first), Offset(last), Offset(last + 1))


FIRST, LATER = aborted(ONE, 2, 4), aborted(ONE, 6, 8)


def test_batches_of_an_aborted_transaction_go_up_to_its_marker() -> None:
    state = with_aborted(CleanedTransactions(), (LATER, FIRST))
    before = read_batch(state, ONE, Offset(1), True)
    assert not before.may_go, "it is of a transaction before"
    ended = read_marker(before.state, ONE, True, Offset(1))
    assert not ended.may_go, "a batch of its transaction is there"
    within = read_batch(ended.state, ONE, Offset(2), True)
    assert within.may_go
    assert not read_batch(within.state, ONE, Offset(3), False).may_go
    assert not read_batch(within.state, TWO, Offset(3), True).may_go
    marked = read_marker(within.state, ONE, False, Offset(4))
    assert (marked.may_go, marked.noted) == (False, FIRST)
    assert not read_batch(marked.state, ONE, Offset(5), True).may_go, "the next transaction"
    assert read_batch(marked.state, ONE, Offset(7), True).may_go


def test_a_marker_goes_whose_transaction_is_gone() -> None:
    state = with_aborted(CleanedTransactions(), (FIRST,))
    assert read_marker(state, ONE, False, Offset(4)).may_go
    assert read_marker(state, ONE, False, Offset(4)).noted is None
    assert read_marker(state, TWO, True, Offset(4)).may_go
    assert read_marker(state, TWO, False, Offset(4)).may_go
    assert read_marker(state, ONE, None, Offset(4)).may_go, "it was emptied before"


def test_a_transaction_that_a_later_segment_names_again() -> None:
    state = with_aborted(CleanedTransactions(), (FIRST,))
    state = with_aborted(read_batch(state, ONE, Offset(2), True).state, (FIRST, LATER))
    assert state.waiting == (LATER,)
    assert len(read_batch(state, THREE, Offset(7), True).state.aborting) == 1, "of one producer one is open at a time"


def test_a_marker_waits_for_its_time() -> None:
    assert not empties_marker(True, -1, TimestampMs(10))
    assert not empties_marker(True, 11, TimestampMs(10))
    assert empties_marker(True, 10, TimestampMs(10))
    assert not empties_marker(False, 10, TimestampMs(10))


def test_the_last_batch_that_tells_of_a_producer() -> None:
    new, old = ProducerEpoch(1), ProducerEpoch(0)
    assert is_last_of_producer(False, Offset(3), new, Offset(3), new)
    assert not is_last_of_producer(False, Offset(2), new, Offset(3), new)
    assert not is_last_of_producer(True, Offset(4), new, Offset(3), new), "its records tell of it"
    assert is_last_of_producer(True, Offset(4), new, Offset(-1), new)
    assert not is_last_of_producer(True, Offset(4), old, Offset(-1), new)
    assert not is_last_of_producer(False, Offset(4), new, Offset(-1), new)
