"""The fetcher's rules one by one, by release where they differ: T1-T6, T8, T10, T11, B3, B5 of docs/rules.md."""

import pytest

from kspec.spec.broker.rules.fetcher import (
    NOT_FETCHING,
    FetchState,
    FetchStatus,
    OnError,
    Reset,
    Start,
    Truncation,
    after_reset,
    after_truncation,
    awake,
    backing_off,
    failed,
    forget_last_epoch_if_first_is_empty,
    is_fetching,
    keep_high_watermark,
    keep_last_epoch_if_empty,
    may_truncate_by,
    name_both_epochs,
    name_leader_epoch,
    name_no_epoch,
    needs_no_answer,
    on_fetch_error,
    reset_by_leader_end,
    reset_by_leader_start,
    restarts_with_epoch,
    restarts_with_leader,
    start_at_high_watermark,
    start_by_asking,
    start_by_fetching,
    started,
    take_all,
    take_high_watermark_first,
    take_up_to_epoch,
    takes_same_epoch,
    takes_same_offset,
    takes_same_offset_when_ready,
    truncation_and_fetch,
    truncation_by_answer,
)
from kspec.spec.log.record_log import EMPTY_LOG
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Error, MonotonicMs, Offset, Record
from tests.spec.broker_driver import EPOCH, OTHER, THIRD, log_of

LOG = log_of(0, 1, 1)
FETCHING = FetchState(FetchStatus.FETCHING, OTHER, EPOCH, Offset(3), Epoch(1))
TRUNCATING = FETCHING._replace(status=FetchStatus.TRUNCATING, fetch_offset=Offset(1))


# ---- starting: B5, T1, T2


def test_up_to_0_10_a_follower_starts_at_its_high_watermark() -> None:
    assert start_at_high_watermark(LOG, Offset(2)) == Start(Offset(2), FetchStatus.FETCHING, Offset(2))


def test_from_0_11_it_keeps_all_and_asks_first() -> None:
    assert start_by_asking(LOG, Offset(2)) == Start(Offset(3), FetchStatus.TRUNCATING, Offset(2))


def test_from_2_8_it_fetches_at_once_and_names_its_last_epoch() -> None:
    assert start_by_fetching(LOG, Offset(2)) == Start(Offset(3), FetchStatus.FETCHING, Offset(3), Epoch(1))
    assert start_by_fetching(EMPTY_LOG, Offset(0)) == start_by_asking(EMPTY_LOG, Offset(0))


def test_the_last_epoch_named_is_that_of_the_history_even_without_a_record() -> None:
    assert start_by_fetching(LOG.open_epoch(EPOCH), Offset(2)).last_fetched_epoch == EPOCH


def test_to_be_added_again_in_the_same_epoch_changes_nothing() -> None:
    start = start_by_fetching(LOG, Offset(2))
    assert started(FETCHING, THIRD, EPOCH, start) is FETCHING
    assert started(NOT_FETCHING, OTHER, EPOCH, start) == FETCHING
    later = started(FETCHING, THIRD, Epoch(6), start)
    assert (later.leader, later.leader_epoch, later.fetch_offset) == (THIRD, 6, 3)


# ---- B3


@pytest.mark.parametrize(
    ("leader", "epoch", "by_leader", "by_epoch"),
    [(OTHER, 5, False, False), (OTHER, 6, False, True), (THIRD, 6, True, True)],
)
def test_who_starts_anew(leader: int, epoch: int, by_leader: bool, by_epoch: bool) -> None:
    assert restarts_with_leader(OTHER, EPOCH, OTHER if leader == OTHER else THIRD, Epoch(epoch)) == by_leader
    assert restarts_with_epoch(OTHER, EPOCH, OTHER if leader == OTHER else THIRD, Epoch(epoch)) == by_epoch


def test_what_a_fetch_names_by_release() -> None:
    assert name_no_epoch(FETCHING) == (NO_EPOCH, 3, NO_EPOCH)
    assert name_leader_epoch(FETCHING) == (EPOCH, 3, NO_EPOCH)
    assert name_both_epochs(FETCHING) == (EPOCH, 3, 1)


# ---- truncating: T3, T4, T5


def test_without_an_epoch_there_is_nothing_to_ask() -> None:
    assert needs_no_answer(TRUNCATING, EMPTY_LOG)
    assert not needs_no_answer(TRUNCATING, LOG)
    assert not needs_no_answer(FETCHING, EMPTY_LOG)


@pytest.mark.parametrize(
    ("end", "offset", "complete"),
    [
        (UNDEFINED_EPOCH_END, 1, True),  # the initial fetch offset
        (EpochEndOffset(NO_EPOCH, Offset(2)), 2, True),  # an answer of before 2.0
        (EpochEndOffset(Epoch(1), Offset(2)), 2, True),
        (EpochEndOffset(Epoch(1), Offset(9)), 3, True),
        (EpochEndOffset(Epoch(0), Offset(5)), 1, True),
    ],
)
def test_where_to_truncate(end: EpochEndOffset, offset: int, complete: bool) -> None:
    status = FetchStatus.FETCHING if complete else FetchStatus.TRUNCATING
    assert truncation_by_answer(TRUNCATING, LOG, end) == Truncation(Offset(offset), status)
    assert truncation_and_fetch(TRUNCATING, LOG, end) == Truncation(Offset(offset), FetchStatus.FETCHING)


def test_an_epoch_that_the_follower_does_not_know_is_not_the_last_answer() -> None:
    log, end = log_of(0, 2, 4), EpochEndOffset(Epoch(3), Offset(2))
    assert truncation_by_answer(TRUNCATING, log, end) == Truncation(Offset(2), FetchStatus.TRUNCATING)
    assert truncation_and_fetch(TRUNCATING, log, end) == Truncation(Offset(2), FetchStatus.FETCHING)


def test_after_a_truncation_the_fetcher_is_at_the_end_with_the_epoch_there() -> None:
    after = after_truncation(TRUNCATING, Truncation(Offset(1), FetchStatus.FETCHING), LOG.truncate_to(Offset(1)))
    assert (after.status, after.fetch_offset, after.last_fetched_epoch) == (FetchStatus.FETCHING, 1, 0)


def test_an_answer_about_epochs_counts_in_the_epoch_in_which_it_was_asked() -> None:
    assert may_truncate_by(TRUNCATING, EPOCH)
    assert not may_truncate_by(TRUNCATING, Epoch(4))
    assert not may_truncate_by(FETCHING, EPOCH)


# ---- which answers count: T6


@pytest.mark.parametrize(
    ("fetcher", "offset", "epoch", "by_offset", "when_ready", "by_epoch"),
    [
        (FETCHING, 3, EPOCH, True, True, True),
        (FETCHING, 2, EPOCH, False, False, False),
        (FETCHING, 3, Epoch(4), True, True, False),  # KAFKA-18991
        (TRUNCATING, 1, EPOCH, True, False, False),
        (NOT_FETCHING, -1, NO_EPOCH, False, False, False),
        (failed(FETCHING), -1, NO_EPOCH, False, False, False),
    ],
)
def test_which_answers_count(
    fetcher: FetchState, offset: int, epoch: Epoch, by_offset: bool, when_ready: bool, by_epoch: bool
) -> None:
    assert takes_same_offset(fetcher, Offset(offset), epoch) == by_offset
    assert takes_same_offset_when_ready(fetcher, Offset(offset), epoch) == when_ready
    assert takes_same_epoch(fetcher, Offset(offset), epoch) == by_epoch


# ---- what is taken: T8


def test_records_of_a_later_epoch_are_left_out_with_all_after_them() -> None:
    records = tuple(Record(0, Epoch(epoch)) for epoch in (4, 5, 6, 5))
    assert take_up_to_epoch(records, EPOCH) == records[:2]
    assert take_up_to_epoch(records[:2], EPOCH) == records[:2]
    assert take_all(records, EPOCH) == records


def test_an_empty_answer_tells_no_epoch() -> None:
    assert keep_last_epoch_if_empty(FETCHING, ()) == 1
    assert forget_last_epoch_if_first_is_empty(FETCHING, ()) == NO_EPOCH
    assert forget_last_epoch_if_first_is_empty(FETCHING._replace(answered=True), ()) == 1
    assert forget_last_epoch_if_first_is_empty(FETCHING, (Record(0, EPOCH),)) == EPOCH


def test_the_high_watermark_of_a_follower_that_is_to_truncate() -> None:
    assert keep_high_watermark(LOG, Offset(1), Offset(3)) == 1
    assert take_high_watermark_first(LOG, Offset(1), Offset(3)) == 3


# ---- errors: T10


@pytest.mark.parametrize(
    ("error", "asked_in", "what"),
    [
        (Error.FENCED_LEADER_EPOCH, EPOCH, OnError.FAIL),
        (Error.FENCED_LEADER_EPOCH, Epoch(4), OnError.BACK_OFF),
        (Error.UNKNOWN_LEADER_EPOCH, EPOCH, OnError.BACK_OFF),
        (Error.NOT_LEADER_OR_FOLLOWER, EPOCH, OnError.BACK_OFF),
        (Error.OFFSET_OUT_OF_RANGE, EPOCH, OnError.FIND_OFFSET),
    ],
)
def test_what_an_error_asks_for(error: Error, asked_in: Epoch, what: OnError) -> None:
    assert on_fetch_error(FETCHING, error, asked_in) == what


def test_a_fetcher_backs_off_once_and_wakes_in_time() -> None:
    waiting = backing_off(FETCHING, MonotonicMs(200))
    assert backing_off(waiting, MonotonicMs(900)).delayed_until == 200
    assert awake(waiting, MonotonicMs(199)) is waiting
    assert awake(waiting, MonotonicMs(200)) == FETCHING


def test_a_failed_partition_is_not_fetched() -> None:
    assert not is_fetching(failed(FETCHING))
    assert not is_fetching(NOT_FETCHING)
    assert is_fetching(TRUNCATING)


# ---- out of range: T11


def test_a_longer_log_is_cut_at_the_leaders_end() -> None:
    assert reset_by_leader_end(LOG, Offset(2)) == Reset(Offset(2))
    assert reset_by_leader_end(LOG, Offset(3)) == Reset(Offset(3), finding_start=True)


def test_a_log_that_ends_before_the_leaders_starts_is_thrown_away() -> None:
    assert reset_by_leader_start(LOG, Offset(7)) == Reset(Offset(7), restarted=True)
    assert reset_by_leader_start(LOG, Offset(2)) == Reset(Offset(3))


def test_the_fetcher_goes_on_where_the_log_ends_now() -> None:
    finding = after_reset(FETCHING, reset_by_leader_end(LOG, Offset(9)), LOG)
    assert finding.status == FetchStatus.FINDING_START
    after = after_reset(finding, reset_by_leader_start(LOG, Offset(7)), LOG.restart_at(Offset(7)))
    assert (after.status, after.fetch_offset, after.last_fetched_epoch) == (FetchStatus.FETCHING, 7, NO_EPOCH)
