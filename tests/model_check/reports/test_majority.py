"""Majority and ISR under the same failures: the tables of the page, and what they are made of."""

import pytest

from kspec.model_check.reports.majority import (
    GOES_ON,
    LOSES,
    SCHEMES,
    STANDS_STILL,
    as_markdown,
    awaited,
    latencies,
    lost_disks,
    tolerated,
)
from tests.model_check.reports.majority_page import PAGE, rewritten

MAJORITY, WITHOUT_DIRECTORIES, ISR_1, ISR_2, ELIGIBLE, UNCLEAN = SCHEMES


@pytest.mark.parametrize("count", range(1, 6))
def test_a_majority_outlives_less_than_half_and_an_isr_all_but_those_that_it_must_have(count: int) -> None:
    assert tolerated(MAJORITY, count) == tolerated(WITHOUT_DIRECTORIES, count) == (count - 1) // 2
    assert tolerated(ISR_1, count) == count - 1
    assert tolerated(ISR_2, count) == tolerated(ELIGIBLE, count) == max(count - 2, 0)


def test_an_isr_waits_for_the_last_one_in_sync_unless_the_election_is_unclean() -> None:
    assert awaited(MAJORITY, 3) == (2, 2, GOES_ON)
    assert awaited(ISR_1, 3) == (1, 3, GOES_ON)
    assert awaited(ELIGIBLE, 3) == (1, 2, GOES_ON)
    assert awaited(UNCLEAN, 3) == (1, 1, LOSES)


def test_an_empty_disk_votes_only_where_directories_are_not_known() -> None:
    assert [lost_disks(MAJORITY, 3, disks) for disks in (1, 2, 3)] == [GOES_ON, STANDS_STILL, STANDS_STILL]
    assert lost_disks(WITHOUT_DIRECTORIES, 3, 1) == LOSES
    assert (lost_disks(ISR_2, 3, 1), lost_disks(ELIGIBLE, 3, 1)) == (LOSES, GOES_ON)


def test_a_slow_follower_delays_an_isr_and_not_a_majority() -> None:
    alike, slow = (latencies(2, by_majority=False, slow=factor).times[0] for factor in (1.0, 10.0))
    assert slow > 5 * alike
    alike, slow = (latencies(2, by_majority=True, slow=factor).times[0] for factor in (1.0, 10.0))
    assert slow < 1.5 * alike


@pytest.mark.nightly
def test_the_page_has_the_tables_of_today() -> None:
    text = PAGE.read_text(encoding="utf-8")
    tables = as_markdown()
    assert all(table in text for table in tables)
    assert rewritten(text, tables) == text
    assert rewritten(text.replace("| 0 | 0 | 1 | 1 | 2 |", "| 9 | 9 | 9 | 9 | 9 |"), tables) == text
