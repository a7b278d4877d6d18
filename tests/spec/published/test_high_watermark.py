"""The high watermark in the published models: which fetches count, whom it waits for."""

import pytest
from hypothesis import given

from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import NO_FETCH, FetchPosition, FetchResponse
from kspec.spec.published.fetch import apply_fetch_response
from kspec.spec.published.high_watermark import (
    has_record_to_commit,
    holds_back_high_watermark,
    replicated_by_last_epoch,
    replicated_by_leader_epoch,
    replicated_by_offset,
)
from kspec.spec.values import BrokerId, Epoch, Error, LeaderAndIsr, Offset, Record
from tests.limits.turns import Turns
from tests.spec.strategies import brokers, fetches, offsets, record_logs, roles

ROLE = LeaderAndIsr(BrokerId(1), Epoch(5), frozenset({BrokerId(1), BrokerId(2)}))
LOG = RecordLog((Record(1, Epoch(3)), Record(2, Epoch(3)), Record(3, Epoch(5))))


def fetch(offset: int, *, epoch: int = 5, last: int = 3) -> FetchPosition:
    return FetchPosition(Epoch(epoch), Offset(offset), Epoch(last))


# ---- has a follower replicated up to an offset?


@pytest.mark.parametrize(("offset", "replicated"), [(0, True), (1, True), (2, True), (3, False)])
@pytest.mark.parametrize("epoch", [4, 5, 6])
@pytest.mark.parametrize("last", [2, 3])
def test_by_offset_alone(offset: int, replicated: bool, epoch: int, last: int) -> None:
    assert replicated_by_offset(ROLE, LOG, fetch(2, epoch=epoch, last=last), Offset(offset)) is replicated


@pytest.mark.parametrize(
    ("offset", "last", "replicated"),
    [
        pytest.param(2, 3, True, id="the epoch of the leader's record before the offset"),
        pytest.param(2, 2, False, id="another epoch"),
        pytest.param(3, 3, False, id="not reached"),
        pytest.param(1, 3, True, id="an earlier offset with the same epoch before it"),
        pytest.param(0, 2, True, id="before offset 0 there is no record to differ"),
    ],
)
def test_by_offset_and_last_epoch(offset: int, last: int, replicated: bool) -> None:
    assert replicated_by_last_epoch(ROLE, LOG, fetch(2, last=last), Offset(offset)) is replicated


def test_the_last_epoch_compared_is_that_of_the_leaders_record_before_the_offset() -> None:
    assert replicated_by_last_epoch(ROLE, LOG, fetch(3, last=5), Offset(3))
    assert not replicated_by_last_epoch(ROLE, LOG, fetch(3, last=5), Offset(2))


@pytest.mark.parametrize(("epoch", "replicated"), [(4, False), (5, True), (6, False), (-1, False)])
def test_by_offset_and_leader_epoch(epoch: int, replicated: bool) -> None:
    assert replicated_by_leader_epoch(ROLE, LOG, fetch(2, epoch=epoch), Offset(2)) is replicated
    assert replicated_by_leader_epoch(ROLE, LOG, fetch(2, epoch=epoch), Offset(1)) is replicated
    assert not replicated_by_leader_epoch(ROLE, LOG, fetch(2, epoch=epoch), Offset(3))


@given(roles(), record_logs(), fetches(), offsets)
def test_both_epoch_rules_only_refuse_what_the_offset_rule_accepts(
    role: LeaderAndIsr, log: RecordLog, last_fetch: FetchPosition, offset: Offset
) -> None:
    by_epoch = [rule(role, log, last_fetch, offset) for rule in (replicated_by_last_epoch, replicated_by_leader_epoch)]
    assert replicated_by_offset(role, log, last_fetch, offset) or by_epoch == [False, False]


@given(roles(), record_logs(), offsets)
def test_who_never_fetched_has_replicated_nothing(role: LeaderAndIsr, log: RecordLog, offset: Offset) -> None:
    for rule in (replicated_by_offset, replicated_by_last_epoch, replicated_by_leader_epoch):
        assert not rule(role, log, NO_FETCH, offset)


# ---- whom the leader waits for


@pytest.mark.parametrize(
    ("follower", "has_replicated", "holds_back"),
    [(2, False, True), (2, True, False), (3, False, False), (3, True, False)],
)
def test_in_sync_replicas_that_lag_hold_the_high_watermark_back(
    follower: int, has_replicated: bool, holds_back: bool
) -> None:
    assert holds_back_high_watermark(ROLE, BrokerId(follower), has_replicated) is holds_back


@given(roles(), brokers)
def test_to_replicate_never_holds_back(role: LeaderAndIsr, follower: BrokerId) -> None:
    assert not holds_back_high_watermark(role, follower, True)
    assert holds_back_high_watermark(role, follower, False) == (follower in role.isr)


@pytest.mark.parametrize(("high_watermark", "has_record"), [(0, True), (2, True), (3, False)])
def test_the_high_watermark_stops_at_the_log_end(high_watermark: int, has_record: bool) -> None:
    assert has_record_to_commit(LOG, Offset(high_watermark)) is has_record


def test_an_empty_log_has_nothing_to_commit() -> None:
    assert not has_record_to_commit(EMPTY_LOG, Offset(0))


def advanced(log: RecordLog, high_watermark: Offset, fetched: dict[BrokerId, FetchPosition]) -> Offset:
    """A leader's high watermark, moved on while nobody holds it back."""
    turns = Turns()
    while has_record_to_commit(log, high_watermark):
        turns.go()
        following = Offset(high_watermark + 1)
        if any(
            holds_back_high_watermark(ROLE, follower, replicated_by_leader_epoch(ROLE, log, last, following))
            for follower, last in fetched.items()
        ):
            break
        high_watermark = following
    return high_watermark


@given(record_logs(), fetches(), fetches())
def test_it_becomes_the_lowest_end_offset_of_the_in_sync_replicas_that_fetch_in_this_epoch(
    log: RecordLog, of_2: FetchPosition, of_3: FetchPosition
) -> None:
    start = log.start_offset
    reached = advanced(log, start, {BrokerId(2): of_2, BrokerId(3): of_3})
    counted = of_2.fetch_offset if of_2.current_leader_epoch == ROLE.leader_epoch else start
    assert reached == max(start, min(counted, log.end_offset))


@given(record_logs(), fetches(), fetches())
def test_it_never_moves_back_and_never_passes_the_log_end(log: RecordLog, of_2: FetchPosition, of_3: FetchPosition) -> None:
    first = advanced(log, log.start_offset, {BrokerId(2): of_2})
    second = advanced(log, first, {BrokerId(2): of_3})
    assert log.start_offset <= first <= second <= log.end_offset


# ---- a follower's


def test_a_followers_may_move_back() -> None:
    assert apply_fetch_response(LOG, FetchResponse(Error.NONE, LOG.end_offset, high_watermark=Offset(3)))[1] == 3
    assert apply_fetch_response(LOG, FetchResponse(Error.NONE, LOG.end_offset, high_watermark=Offset(1)))[1] == 1
