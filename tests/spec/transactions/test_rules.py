"""Decisions of leaders about transactions, one by one."""

import pytest

from kspec.spec.transactions.clients import ErrorMeaning, meaning_for_offsets
from kspec.spec.transactions.rules import partitions
from kspec.spec.values import LAST_PRODUCER_EPOCH, Error, Offset


def test_a_batch_is_verified_that_would_begin_a_transaction() -> None:
    assert [partitions.verified_at_first(is_ongoing) for is_ongoing in (True, False)] == [False, True]
    assert not partitions.never_verified(is_ongoing=False)


def test_a_guard_counts_while_it_is_the_present_one() -> None:
    assert partitions.is_this_guard(1, 1)
    assert not partitions.is_this_guard(2, 1)
    assert not partitions.is_this_guard(0, 0)


def test_a_guard_outlives_the_marker_of_the_transaction_before() -> None:
    assert partitions.keeps_guard(bumps_epoch=True, is_marker=True, epoch=1, guard_epoch=1)
    assert not partitions.keeps_guard(bumps_epoch=True, is_marker=True, epoch=1, guard_epoch=0)
    assert not partitions.keeps_guard(bumps_epoch=True, is_marker=False, epoch=1, guard_epoch=1)
    assert not partitions.keeps_guard(bumps_epoch=False, is_marker=True, epoch=1, guard_epoch=1)


def test_a_guard_outlives_the_markers_of_earlier_epochs_too() -> None:
    keeps = partitions.keeps_guard_of_later
    assert keeps(bumps_epoch=True, is_marker=True, epoch=1, guard_epoch=2)
    assert keeps(bumps_epoch=False, is_marker=True, epoch=1, guard_epoch=2)
    assert keeps(bumps_epoch=True, is_marker=True, epoch=1, guard_epoch=1)
    assert not keeps(bumps_epoch=False, is_marker=True, epoch=1, guard_epoch=1), (
        "before version 2 it may be this transaction's"
    )
    assert not keeps(bumps_epoch=True, is_marker=True, epoch=2, guard_epoch=1)
    assert not keeps(bumps_epoch=True, is_marker=False, epoch=1, guard_epoch=2)


def test_the_lowest_sequence_number_begins() -> None:
    assert partitions.is_lowest(0, 0)
    assert not partitions.is_lowest(1, 0)


@pytest.mark.parametrize(
    ("epoch", "known", "bumps", "is_open", "taken"),
    [
        (0, 1, False, True, (False, False, False)),
        (1, 1, False, True, (True, True, True)),
        (1, 1, True, True, (True, False, False)),
        (1, 1, True, False, (True, True, True)),
        (2, 1, True, True, (True, True, True)),
        (LAST_PRODUCER_EPOCH, LAST_PRODUCER_EPOCH, True, True, (True, False, True)),
    ],
)
def test_the_epoch_of_a_marker(epoch: int, known: int, bumps: bool, is_open: bool, taken: tuple[bool, bool, bool]) -> None:
    rules = (partitions.ends_not_later, partitions.ends_earlier, partitions.ends_earlier_or_last)
    assert tuple(rule(epoch, known, bumps, is_open) for rule in rules) == taken


def test_an_earlier_coordinator_is_fenced() -> None:
    assert partitions.is_later_coordinator(1, 1)
    assert not partitions.is_later_coordinator(0, 1)


def test_the_first_unstable_offset() -> None:
    assert partitions.first_unstable((), ()) is None
    assert partitions.first_unstable((Offset(4), Offset(6)), (Offset(2),)) == 2


def test_a_producer_aborts_when_it_is_in_the_group_no_more() -> None:
    assert meaning_for_offsets(Error.ILLEGAL_GENERATION) == ErrorMeaning.ABORT
    assert meaning_for_offsets(Error.UNKNOWN_MEMBER_ID) == ErrorMeaning.ABORT
    assert meaning_for_offsets(Error.INVALID_PRODUCER_EPOCH) == ErrorMeaning.FATAL
    assert meaning_for_offsets(Error.CONCURRENT_TRANSACTIONS) == ErrorMeaning.AGAIN
