"""Becoming leader or follower, and starting again."""

import pytest
from hypothesis import given

from spec.broker.rules.isr.announcement import is_later_leader_epoch
from spec.broker.rules.leadership import has_caught_up, is_leader, start_leading, start_leading_with_epoch_entry
from spec.log.record_log import EMPTY_LOG, RecordLog
from spec.published.replica import NO_ROLE, role_after_restart
from spec.values import NO_LEADER, BrokerId, Epoch, LeaderAndIsr, Offset, Record
from tests.spec.strategies import epochs, record_logs, roles

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


def test_who_is_named_leads() -> None:
    assert is_leader(BrokerId(1), ROLE)
    assert not is_leader(BrokerId(2), ROLE)
    assert not is_leader(BrokerId(1), NO_ROLE)
    assert NO_ROLE.leader == NO_LEADER


@given(record_logs(), epochs)
def test_before_kafka_7415_a_new_leader_leaves_its_log_alone(log: RecordLog, epoch: Epoch) -> None:
    assert start_leading(log, epoch) == log


def test_a_new_leader_notes_where_its_epoch_starts() -> None:
    log = EMPTY_LOG.append((Record(0, Epoch(1)), Record(0, Epoch(1))))
    leading = start_leading_with_epoch_entry(log, Epoch(3))
    assert (leading.latest_epoch, leading.end_offset, leading.records) == (3, 2, log.records)
    assert leading.end_offset_for_epoch(Epoch(2)) == (1, 2)
    assert leading.end_offset_for_epoch(Epoch(3)) == (3, 2)
    assert leading.append((Record(0, Epoch(3)),)).epoch_history.pairs == ((1, 0), (3, 2))


def test_a_new_leader_of_an_empty_log_notes_it_too() -> None:
    assert start_leading_with_epoch_entry(EMPTY_LOG, Epoch(0)).end_offset_for_epoch(Epoch(0)) == (0, Offset(0))


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


@pytest.mark.parametrize(("read", "acts"), [(8, False), (9, True), (10, True)])
def test_a_starting_broker_acts_once_it_knows_what_was_committed(read: int, acts: bool) -> None:
    assert has_caught_up(Offset(read), Offset(9)) == acts
