"""Becoming leader or follower, and starting again."""

import pytest
from hypothesis import given

from kspec.spec.broker.rules.isr.announcement import is_later_leader_epoch
from kspec.spec.published.replica import NO_ROLE, role_after_restart
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr
from tests.spec.strategies import roles

ROLE = LeaderAndIsr(BrokerId(1), Epoch(5), frozenset({BrokerId(1), BrokerId(2)}))


@pytest.mark.parametrize(("announced", "newer"), [(4, False), (5, False), (6, True)])
def test_only_a_higher_epoch_is_taken(announced: int, newer: bool) -> None:
    assert is_later_leader_epoch(ROLE.leader_epoch, Epoch(announced)) is newer


@given(roles())
def test_a_replica_without_a_role_accepts_every_announcement(announced: LeaderAndIsr) -> None:
    assert is_later_leader_epoch(NO_ROLE.leader_epoch, announced.leader_epoch)


@given(roles(), roles())
def test_of_two_announcements_at_most_one_is_later_than_the_other(one: LeaderAndIsr, other: LeaderAndIsr) -> None:
    assert [
        is_later_leader_epoch(one.leader_epoch, other.leader_epoch),
        is_later_leader_epoch(other.leader_epoch, one.leader_epoch),
    ].count(True) == (one.leader_epoch != other.leader_epoch)


@given(roles(), roles())
def test_after_a_restart_a_replica_accepts_the_present_state_and_nothing_older(
    partition: LeaderAndIsr, announced: LeaderAndIsr
) -> None:
    role = role_after_restart(partition)
    assert is_later_leader_epoch(role.leader_epoch, announced.leader_epoch) == (
        announced.leader_epoch >= partition.leader_epoch
    )


@given(roles())
def test_after_a_restart_a_replica_leads_nothing_and_trusts_nobody(partition: LeaderAndIsr) -> None:
    role = role_after_restart(partition)
    assert (role.leader, role.isr) == (NO_LEADER, frozenset())
