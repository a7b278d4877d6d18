"""The controller: who may be elected, and what becomes of the in-sync replicas."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.published.election import (
    fail_broker_emptying_isr,
    may_elect_cleanly,
    may_elect_uncleanly,
    may_fail,
    may_lead_next,
)
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr, next_epoch
from kspec.spec.zookeeper.decisions import elect_cleanly, elect_uncleanly, fail_broker
from tests.spec.strategies import brokers, roles


def partition(leader: int, *isr: int) -> LeaderAndIsr:
    return LeaderAndIsr(BrokerId(leader), Epoch(4), frozenset(BrokerId(replica) for replica in isr))


def after(leader: int, *isr: int) -> LeaderAndIsr:
    """The partition in the next epoch."""
    return partition(leader, *isr)._replace(leader_epoch=Epoch(5))


@pytest.mark.parametrize(
    ("state", "candidate", "cleanly", "uncleanly"),
    [
        pytest.param(partition(1, 1, 2), 1, False, False, id="leads already"),
        pytest.param(partition(1, 1, 2), 2, True, False, id="in sync"),
        pytest.param(partition(1, 1, 2), 3, False, False, id="out of sync, and somebody leads"),
        pytest.param(partition(-1, 2), 2, True, False, id="in sync, and nobody leads"),
        pytest.param(partition(-1, 2), 3, False, True, id="out of sync, and nobody leads"),
        pytest.param(partition(-1), 3, False, True, id="nobody in sync"),
    ],
)
def test_candidates(state: LeaderAndIsr, candidate: int, cleanly: bool, uncleanly: bool) -> None:
    assert may_elect_cleanly(state, BrokerId(candidate)) is cleanly
    assert may_elect_uncleanly(state, BrokerId(candidate)) is uncleanly


@pytest.mark.parametrize(
    ("state", "replica", "by_clean_elections", "with_unclean_ones"),
    [
        pytest.param(partition(1, 1, 2), 1, True, True, id="leads now"),
        pytest.param(partition(1, 2), 1, True, True, id="leads now, out of sync"),
        pytest.param(partition(1, 1, 2), 2, True, True, id="in sync"),
        pytest.param(partition(1, 1, 2), 3, False, False, id="out of sync, and somebody leads"),
        pytest.param(partition(-1, 2), 3, False, True, id="out of sync, and nobody leads"),
    ],
)
def test_next_leaders(state: LeaderAndIsr, replica: int, by_clean_elections: bool, with_unclean_ones: bool) -> None:
    assert may_lead_next(state, BrokerId(replica), unclean=False) is by_clean_elections
    assert may_lead_next(state, BrokerId(replica), unclean=True) is with_unclean_ones


@given(roles(), brokers, st.booleans())
def test_the_next_leader_leads_now_or_is_elected(state: LeaderAndIsr, replica: BrokerId, unclean: bool) -> None:
    elected = may_elect_cleanly(state, replica) or (unclean and may_elect_uncleanly(state, replica))
    assert may_lead_next(state, replica, unclean) == (state.leader == replica or elected)


@given(roles(), brokers)
def test_an_election_is_clean_or_unclean(state: LeaderAndIsr, candidate: BrokerId) -> None:
    assert not (may_elect_cleanly(state, candidate) and may_elect_uncleanly(state, candidate))


def test_a_clean_election_keeps_the_isr() -> None:
    assert elect_cleanly(partition(1, 1, 2), BrokerId(2)) == after(2, 1, 2)


def test_an_unclean_election_leaves_the_leader_alone_in_sync() -> None:
    assert elect_uncleanly(partition(-1, 2), BrokerId(3)) == after(3, 3)


@given(roles(), brokers)
def test_every_decision_opens_the_next_epoch(state: LeaderAndIsr, broker: BrokerId) -> None:
    decisions = (elect_cleanly, elect_uncleanly, fail_broker, fail_broker_emptying_isr)
    assert next_epoch(state.leader_epoch) == state.leader_epoch + 1
    assert {decide(state, broker).leader_epoch for decide in decisions} == {state.leader_epoch + 1}


@given(roles(), brokers)
def test_after_an_election_the_leader_is_in_sync(state: LeaderAndIsr, candidate: BrokerId) -> None:
    if may_elect_cleanly(state, candidate):
        assert elect_cleanly(state, candidate).leader in elect_cleanly(state, candidate).isr
    assert elect_uncleanly(state, candidate).leader in elect_uncleanly(state, candidate).isr


@pytest.mark.parametrize(
    ("state", "broker", "changes"),
    [
        pytest.param(partition(1, 1, 2), 1, True, id="the leader"),
        pytest.param(partition(1, 2), 1, True, id="the leader, out of sync"),
        pytest.param(partition(1, 1, 2), 2, True, id="an in-sync replica"),
        pytest.param(partition(1, 1, 2), 3, False, id="a replica out of sync"),
        pytest.param(partition(-1, 2), 2, True, id="an in-sync replica of a partition without a leader"),
    ],
)
def test_failures_that_change_the_partition(state: LeaderAndIsr, broker: int, changes: bool) -> None:
    assert may_fail(state, BrokerId(broker)) is changes


@pytest.mark.parametrize(
    ("state", "broker", "keeping_the_last", "emptying"),
    [
        pytest.param(partition(1, 1, 2), 1, after(-1, 2), after(-1, 2), id="the leader"),
        pytest.param(partition(1, 1, 2), 2, after(1, 1), after(1, 1), id="a follower"),
        pytest.param(partition(1, 1), 1, after(-1, 1), after(-1, 1), id="the leader, alone in sync"),
        pytest.param(partition(1, 2), 1, after(-1, 2), after(-1, 2), id="the leader, out of sync"),
        pytest.param(partition(-1, 1, 2), 1, after(-1, 2), after(-1, 2), id="one of two, and nobody leads"),
        pytest.param(partition(-1, 2), 2, after(-1, 2), after(-1), id="the last one, and nobody leads"),
    ],
)
def test_failures(state: LeaderAndIsr, broker: int, keeping_the_last: LeaderAndIsr, emptying: LeaderAndIsr) -> None:
    assert fail_broker(state, BrokerId(broker)) == keeping_the_last
    assert fail_broker_emptying_isr(state, BrokerId(broker)) == emptying


@given(roles(), st.lists(brokers, max_size=6))
def test_failures_never_empty_the_isr_in_kafka(state: LeaderAndIsr, failing: list[BrokerId]) -> None:
    before = state.isr
    for broker in failing:
        state = fail_broker(state, broker)
        assert state.leader != broker
    assert bool(state.isr) == bool(before)
    assert state.isr <= before


def test_all_brokers_failing_leave_no_leader() -> None:
    state = partition(1, 1, 2, 3)
    for broker in (3, 1, 2):
        state = fail_broker(state, BrokerId(broker))
    assert state.leader == NO_LEADER
    assert state.isr == {2}
