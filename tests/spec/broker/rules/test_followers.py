"""A leader's state of a follower: rules S1-S5, E2, E3, E5 of docs/rules.md."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.rules.fencing import accept_any_replica_epoch, check_replica_epoch
from kspec.spec.broker.rules.followers import (
    NEVER_FETCHED,
    UNKNOWN_FOLLOWER,
    Follower,
    FollowerFetch,
    FollowerState,
    after_fetch,
    assign,
    follower_of,
    forget,
    is_caught_up,
    keep_offsets,
    knows_followers_if_it_led,
    knows_followers_if_no_epoch_was_missed,
    reset_follower,
    with_follower,
)
from kspec.spec.broker.rules.isr.membership import (
    any_replica_is_eligible,
    eligible_in_its_broker_epoch,
    eligible_while_active,
    has_reached_epoch_start,
    has_reached_high_watermark,
    joins_at_any_isr_size,
    joins_under_min_isr_if_caught_up,
    out_of_sync,
)
from kspec.spec.values import NO_BROKER_EPOCH, UNKNOWN_OFFSET, BrokerEpoch, BrokerId, Epoch, Error, MonotonicMs, Offset
from tests.spec.broker_driver import ALL_UP, EVERYBODY, OTHER, SELF, THIRD, fetched, registered, run_of

LAG = 30_000
offsets = st.integers(-1, 6).map(Offset)
times = st.integers(0, 9)
states = st.builds(FollowerState, offsets, offsets, offsets, times, times, st.just(BrokerEpoch(1)))


def noted(state: FollowerState, now: int, end: int, leader_end: int) -> FollowerState:
    return after_fetch(state, FollowerFetch(MonotonicMs(now), Offset(end), Offset(0), Offset(leader_end), BrokerEpoch(1)))


# ---- S1


def test_a_fetch_from_the_leaders_end_catches_up_now() -> None:
    assert noted(UNKNOWN_FOLLOWER, 100, 5, 5).caught_up_time == 100


def test_one_record_behind_is_not_caught_up() -> None:
    """Neither by this fetch, nor by where the leader ended at the fetch before, nor by its end once the time is over."""
    behind = noted(UNKNOWN_FOLLOWER, 100, 4, 5)
    assert behind.caught_up_time == 0
    assert noted(behind, 200, 4, 9).caught_up_time == 0
    assert not is_caught_up(behind, Offset(5), MonotonicMs(LAG + 1), LAG)
    assert is_caught_up(behind, Offset(4), MonotonicMs(LAG + 1), LAG)


def test_a_fetch_from_where_the_leader_ended_before_caught_up_then() -> None:
    before = noted(UNKNOWN_FOLLOWER, 100, 3, 5)
    assert before.caught_up_time == 0
    assert noted(before, 200, 5, 9).caught_up_time == 100
    assert noted(before, 200, 4, 9).caught_up_time == 0


def test_the_followers_end_may_go_down() -> None:
    assert noted(fetched(9), 100, 3, 9).end_offset == 3


@given(states, st.integers(9, 12), offsets, offsets)
def test_neither_time_nor_the_leaders_end_goes_back(state: FollowerState, now: int, end: Offset, leader_end: Offset) -> None:
    after = after_fetch(state, FollowerFetch(MonotonicMs(now), end, Offset(0), leader_end, BrokerEpoch(2)))
    assert after.caught_up_time >= state.caught_up_time
    assert after.leader_end_offset >= state.leader_end_offset
    assert (after.end_offset, after.fetch_time, after.broker_epoch) == (end, now, 2)


# ---- S2


@pytest.mark.parametrize(
    ("broker_epoch", "error"),
    [(19, Error.NOT_LEADER_OR_FOLLOWER), (20, Error.NONE), (21, Error.NONE), (NO_BROKER_EPOCH, Error.NONE)],
)
def test_a_fetch_of_an_earlier_run_is_refused(broker_epoch: int, error: Error) -> None:
    assert check_replica_epoch(ALL_UP, OTHER, BrokerEpoch(broker_epoch)) == error
    assert accept_any_replica_epoch(ALL_UP, OTHER, BrokerEpoch(broker_epoch)) == Error.NONE


def test_a_fetch_of_an_unknown_broker_is_not_checked() -> None:
    assert check_replica_epoch((), OTHER, BrokerEpoch(0)) == Error.NONE


# ---- S3, E5


def test_a_follower_at_the_leaders_end_never_falls_behind() -> None:
    assert is_caught_up(fetched(5), Offset(5), MonotonicMs(10**9), LAG)


@pytest.mark.parametrize(("now", "caught_up"), [(LAG + 7, True), (LAG + 8, False)])
def test_a_follower_behind_has_until_the_lag_is_over(now: int, caught_up: bool) -> None:
    assert is_caught_up(fetched(4, caught_up_time=7), Offset(5), MonotonicMs(now), LAG) == caught_up


def test_out_of_sync_are_members_that_fell_behind_or_are_unknown_but_never_the_leader() -> None:
    followers = (Follower(OTHER, fetched(5)), Follower(THIRD, fetched(4)))
    isr = frozenset({*EVERYBODY, BrokerId(4)})
    assert out_of_sync(isr, SELF, followers, Offset(5), MonotonicMs(10**9), LAG) == {THIRD, BrokerId(4)}
    assert out_of_sync(frozenset({SELF, OTHER}), SELF, followers, Offset(5), MonotonicMs(10**9), LAG) == frozenset()


# ---- S4, S5


@given(states, times, st.booleans())
def test_a_new_leader_knows_nothing_of_its_followers(state: FollowerState, now: int, in_isr: bool) -> None:
    time = now if in_isr else 0
    assert forget(state, MonotonicMs(now), in_isr) == FollowerState(
        UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET, MonotonicMs(0), MonotonicMs(time), NEVER_FETCHED
    )


@given(states, times, st.booleans(), offsets)
def test_a_leader_that_led_keeps_its_followers_offsets(state: FollowerState, now: int, in_isr: bool, end: Offset) -> None:
    after, time = keep_offsets(state, MonotonicMs(now), in_isr, end), now if in_isr else 0
    kept = (state.end_offset, state.start_offset, state.broker_epoch)
    assert (after.end_offset, after.start_offset, after.broker_epoch) == kept
    assert (after.leader_end_offset, after.fetch_time, after.caught_up_time) == (end, time, time)
    assert reset_follower(state, MonotonicMs(now), in_isr, end, knows_followers=True) == after
    assert reset_follower(state, MonotonicMs(now), in_isr, end, knows_followers=False) == forget(
        state, MonotonicMs(now), in_isr
    )


@pytest.mark.parametrize(
    ("led", "epoch", "as_released", "repaired"),
    [(True, 6, True, True), (True, 7, True, False), (False, 6, False, False)],
)
def test_who_led_two_epochs_ago_may_not_rely_on_what_it_knew(
    led: bool, epoch: int, as_released: bool, repaired: bool
) -> None:
    assert knows_followers_if_it_led(led, Epoch(5), Epoch(epoch)) == as_released
    assert knows_followers_if_no_epoch_was_missed(led, Epoch(5), Epoch(epoch)) == repaired


# ---- E2


@pytest.mark.parametrize(
    ("end", "by_high_watermark", "by_epoch_start"), [(3, False, False), (4, True, False), (6, True, True)]
)
def test_a_follower_has_to_reach_the_epoch_start_too(end: int, by_high_watermark: bool, by_epoch_start: bool) -> None:
    state = fetched(end)
    assert has_reached_high_watermark(state.end_offset, Offset(4), Offset(6)) == by_high_watermark
    assert has_reached_epoch_start(state.end_offset, Offset(4), Offset(6)) == by_epoch_start
    assert not has_reached_epoch_start(state.end_offset, Offset(7), Offset(0))


# ---- E3


@pytest.mark.parametrize(
    ("changes", "broker_epoch", "active", "in_epoch"),
    [
        ({}, run_of(OTHER), True, True),
        ({}, NO_BROKER_EPOCH, True, True),
        ({}, NEVER_FETCHED, True, False),
        ({}, run_of(OTHER) - 1, True, False),
        ({"fenced": True}, run_of(OTHER), False, False),
        ({"in_controlled_shutdown": True}, run_of(OTHER), False, False),
    ],
)
def test_who_may_be_in_sync(changes: dict[str, bool], broker_epoch: int, active: bool, in_epoch: bool) -> None:
    brokers = (registered(SELF), registered(OTHER, **changes))
    assert any_replica_is_eligible(brokers, OTHER, BrokerEpoch(broker_epoch))
    assert eligible_while_active(brokers, OTHER, BrokerEpoch(broker_epoch)) == active
    assert eligible_in_its_broker_epoch(brokers, OTHER, BrokerEpoch(broker_epoch)) == in_epoch


def test_an_unregistered_broker_may_not_be_in_sync() -> None:
    assert not eligible_in_its_broker_epoch(ALL_UP, BrokerId(4), NO_BROKER_EPOCH)


@pytest.mark.parametrize(
    ("caught_up", "under", "repaired"), [(True, True, True), (False, True, False), (False, False, True)]
)
def test_below_min_isr_the_repaired_rule_asks_for_more(caught_up: bool, under: bool, repaired: bool) -> None:
    assert joins_at_any_isr_size(UNKNOWN_FOLLOWER, caught_up, under)
    assert joins_under_min_isr_if_caught_up(UNKNOWN_FOLLOWER, caught_up, under) == repaired


# ---- the set of followers


def test_an_assignment_keeps_whom_it_knows_in_order_of_ids() -> None:
    followers = (Follower(OTHER, fetched(5)), Follower(THIRD, fetched(4)))
    assert assign(followers, SELF, (BrokerId(4), THIRD, SELF)) == (Follower(THIRD, fetched(4)), Follower(BrokerId(4)))


def test_a_follower_is_found_and_changed_by_its_id() -> None:
    followers = (Follower(OTHER), Follower(THIRD))
    changed = with_follower(followers, THIRD, fetched(2))
    assert (follower_of(changed, OTHER), follower_of(changed, THIRD)) == (UNKNOWN_FOLLOWER, fetched(2))
    assert follower_of(changed, SELF) is None
