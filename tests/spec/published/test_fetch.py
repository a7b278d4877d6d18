"""Fetching: who is served with what, who is refused with which error, and what the follower makes of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.rules.fencing import check_leader_epoch
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import FetchPosition, FetchResponse
from kspec.spec.published.fetch import (
    answer_fetch,
    apply_fetch_response,
    fetch_fenced_by_last_epoch,
    fetch_fenced_by_leader_epoch,
    fetch_request,
    fetch_without_fencing,
)
from kspec.spec.values import NO_EPOCH, BrokerId, Epoch, Error, LeaderAndIsr, Offset, Record
from tests.limits.turns import Turns
from tests.spec.strategies import epochs, epochs_or_none, fetches, offsets, record_logs, roles

LEADER, FOLLOWER = BrokerId(1), BrokerId(2)
ROLE = LeaderAndIsr(LEADER, Epoch(5), frozenset({LEADER, FOLLOWER}))
RECORDS = (Record(1, Epoch(3)), Record(2, Epoch(3)), Record(3, Epoch(5)))
LOG = RecordLog(RECORDS, Offset(10))


def request(offset: int, last_fetched_epoch: int = -1, current_leader_epoch: int = 5) -> FetchPosition:
    return FetchPosition(Epoch(current_leader_epoch), Offset(offset), Epoch(last_fetched_epoch))


# ---- the request


def test_a_fetch_names_the_followers_epoch_its_end_and_its_last_records_epoch() -> None:
    assert fetch_request(ROLE, LOG, Offset(13)) == FetchPosition(Epoch(5), Offset(13), Epoch(5))


def test_a_fetch_sent_before_the_log_grew_names_the_record_that_was_last_then() -> None:
    assert fetch_request(ROLE, LOG, Offset(12)) == FetchPosition(Epoch(5), Offset(12), Epoch(3))


@pytest.mark.parametrize("log", [EMPTY_LOG, RecordLog(start_offset=Offset(10)), LOG.truncate_to(Offset(10))])
def test_a_fetch_into_an_empty_log_has_no_last_epoch(log: RecordLog) -> None:
    assert fetch_request(ROLE, log, log.end_offset).last_fetched_epoch == NO_EPOCH


# ---- fencing


@pytest.mark.parametrize(
    ("claimed", "error"),
    [
        (-1, Error.NONE),
        (0, Error.FENCED_LEADER_EPOCH),
        (4, Error.FENCED_LEADER_EPOCH),
        (5, Error.NONE),
        (6, Error.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_leader_epoch_of_a_request(claimed: int, error: Error) -> None:
    assert check_leader_epoch(ROLE, Epoch(claimed)) == error
    assert fetch_fenced_by_leader_epoch(ROLE, LOG, request(13, 5, current_leader_epoch=claimed)) == error


@given(roles(), epochs)
def test_of_two_replicas_in_different_epochs_the_older_is_fenced(role: LeaderAndIsr, claimed: Epoch) -> None:
    there = check_leader_epoch(role, claimed)
    back = check_leader_epoch(role._replace(leader_epoch=claimed), role.leader_epoch)
    verdicts = {there, back}
    same = {Error.NONE}
    assert verdicts == (same if claimed == role.leader_epoch else {Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH})


@given(roles(), record_logs(), fetches())
def test_without_fencing_everyone_is_served(role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition) -> None:
    assert fetch_without_fencing(role, log, fetch) == Error.NONE


@given(roles(), record_logs(), fetches())
def test_fencing_by_leader_epoch_looks_at_nothing_else(role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition) -> None:
    verdict = fetch_fenced_by_leader_epoch(role, log, fetch)
    assert verdict == fetch_fenced_by_leader_epoch(
        role, EMPTY_LOG, FetchPosition(fetch.current_leader_epoch, Offset(0), NO_EPOCH)
    )
    assert (verdict == Error.NONE) == (fetch.current_leader_epoch in (NO_EPOCH, role.leader_epoch))


@pytest.mark.parametrize(
    ("offset", "last_fetched_epoch", "error"),
    [
        pytest.param(11, 3, Error.NONE, id="the same epoch"),
        pytest.param(12, 3, Error.NONE, id="the same epoch, further on"),
        pytest.param(13, 3, Error.LOG_TRUNCATION, id="an older epoch"),
        pytest.param(13, 5, Error.NONE, id="at the end"),
        pytest.param(12, 4, Error.LOG_TRUNCATION, id="an epoch that the leader does not have"),
        pytest.param(14, 5, Error.LOG_TRUNCATION, id="a record that the leader does not have"),
        pytest.param(10, 4, Error.NONE, id="from the very start: no record before"),
        pytest.param(1, 4, Error.LOG_TRUNCATION, id="a record before the leader's first"),
    ],
)
def test_fencing_by_the_epoch_of_the_last_record(offset: int, last_fetched_epoch: int, error: Error) -> None:
    assert fetch_fenced_by_last_epoch(ROLE, LOG, request(offset, last_fetched_epoch)) == error


@given(roles(), record_logs(), fetches(), epochs_or_none)
def test_fencing_by_last_epoch_ignores_leader_epochs(
    role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition, claimed: Epoch
) -> None:
    verdict = fetch_fenced_by_last_epoch(role, log, fetch)
    assert verdict == fetch_fenced_by_last_epoch(role, log, fetch._replace(current_leader_epoch=claimed))
    assert verdict in (Error.NONE, Error.LOG_TRUNCATION)


# ---- the answer


def answered(asked: FetchPosition, *, self_id: int = 1, verdict: Error = Error.NONE, max_records: int = 9) -> FetchResponse:
    return answer_fetch(BrokerId(self_id), ROLE, LOG, Offset(11), asked, max_records, verdict)


def served(offset: int, records: tuple[Record, ...]) -> FetchResponse:
    high_watermark = Offset(11)
    return FetchResponse(Error.NONE, Offset(offset), records, high_watermark, LOG.start_offset, high_watermark)


@pytest.mark.parametrize(("offset", "records"), [(10, RECORDS), (11, RECORDS[1:]), (12, RECORDS[2:]), (13, ())])
def test_a_leader_sends_what_it_has_beyond_its_high_watermark_too(offset: int, records: tuple[Record, ...]) -> None:
    assert answered(request(offset)) == served(offset, records)


@pytest.mark.parametrize("offset", [-1, 0, 9, 14, 99])
def test_outside_the_log_a_fetch_is_out_of_range(offset: int) -> None:
    response = answered(request(offset))
    assert (response.error, response.records) == (Error.OFFSET_OUT_OF_RANGE, ())


@pytest.mark.parametrize("max_records", [0, 1, 2])
def test_a_response_holds_no_more_records_than_fit(max_records: int) -> None:
    assert answered(request(10), max_records=max_records).records == RECORDS[:max_records]


@pytest.mark.parametrize("offset", [10, 13, 99])
def test_who_does_not_lead_serves_nobody(offset: int) -> None:
    response = answered(request(offset), self_id=2)
    assert (response.error, response.records) == (Error.NOT_LEADER_OR_FOLLOWER, ())


@pytest.mark.parametrize("verdict", [Error.FENCED_LEADER_EPOCH, Error.UNKNOWN_LEADER_EPOCH, Error.LOG_TRUNCATION])
@pytest.mark.parametrize("offset", [10, 13, 99])
def test_a_fenced_fetch_gets_the_fences_error_and_no_records(verdict: Error, offset: int) -> None:
    response = answered(request(offset), verdict=verdict)
    assert (response.error, response.records) == (verdict, ())


@given(roles(), record_logs(), fetches(), st.sampled_from(Error))
def test_records_come_with_success_only(role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition, verdict: Error) -> None:
    response = answer_fetch(LEADER, role, log, Offset(0), fetch, 2, verdict)
    may_read = verdict == Error.NONE and role.leader == LEADER
    in_range = log.start_offset <= fetch.fetch_offset <= log.end_offset
    assert (response.error == Error.NONE) == (may_read and in_range)
    assert response.records == (log.read(fetch.fetch_offset, 2) if response.error == Error.NONE else ())


# ---- what the follower makes of it


@pytest.mark.parametrize(
    ("records", "leaders", "high_watermark"),
    [
        pytest.param((), 13, 12, id="nothing new, and the leader's high watermark lies beyond"),
        pytest.param(RECORDS[2:], 13, 13, id="a record that is committed"),
        pytest.param(RECORDS[2:], 11, 11, id="a record that is not, and a high watermark that goes back"),
    ],
)
def test_a_follower_appends_then_takes_the_high_watermark(
    records: tuple[Record, ...], leaders: int, high_watermark: int
) -> None:
    log = LOG.truncate_to(Offset(12))
    response = FetchResponse(Error.NONE, Offset(12), records, Offset(leaders))
    assert apply_fetch_response(log, response) == (log.append(records), high_watermark)


@given(record_logs(in_order=True), offsets, offsets, st.integers(1, 3))
def test_a_follower_that_fetches_until_nothing_comes_holds_the_leaders_records(
    leader_log: RecordLog, kept: Offset, high_watermark: Offset, max_records: int
) -> None:
    log = leader_log.truncate_to(max(kept, leader_log.start_offset))
    role = LeaderAndIsr(LEADER, Epoch(9), frozenset({LEADER, FOLLOWER}))
    committed = max(leader_log.start_offset, Offset(min(high_watermark, leader_log.end_offset)))
    turns = Turns()
    while True:
        turns.go()
        asked = fetch_request(role, log, log.end_offset)
        verdict = fetch_fenced_by_leader_epoch(role, leader_log, asked)
        response = answer_fetch(LEADER, role, leader_log, committed, asked, max_records, verdict)
        assert response.error == Error.NONE
        log, followed = apply_fetch_response(log, response)
        if not response.records:
            break
    assert log.records == leader_log.records
    assert log.agreement_end(leader_log) == leader_log.end_offset
    assert followed == committed


@pytest.mark.parametrize(
    ("claimed", "leads", "offset", "error"),
    [
        pytest.param(4, False, 99, Error.FENCED_LEADER_EPOCH, id="the epoch is looked at first"),
        pytest.param(5, False, 99, Error.NOT_LEADER_OR_FOLLOWER, id="then the role"),
        pytest.param(5, True, 99, Error.OFFSET_OUT_OF_RANGE, id="then the offset"),
    ],
)
def test_a_refused_fetch_names_the_first_reason_and_tells_nothing_else(
    claimed: int, leads: bool, offset: int, error: Error
) -> None:
    role = ROLE if leads else ROLE._replace(leader=FOLLOWER)
    asked = FetchPosition(Epoch(claimed), Offset(offset), NO_EPOCH)
    verdict = fetch_fenced_by_leader_epoch(role, LOG, asked)
    assert answer_fetch(LEADER, role, LOG, Offset(12), asked, 1, verdict) == FetchResponse(error)
