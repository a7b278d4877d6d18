"""The in-sync replicas: who may leave and join, on whose word."""

import pytest
from hypothesis import given

from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.published.isr import (
    join_after_epoch_start,
    join_at_high_watermark,
    may_join_isr,
    may_leave_isr,
    with_replica,
    without_replica,
)
from kspec.spec.values import BrokerId, Epoch, LeaderAndIsr, Offset, Record
from tests.spec.strategies import brokers, offsets, record_logs, roles

ROLE = LeaderAndIsr(BrokerId(1), Epoch(5), frozenset({BrokerId(1), BrokerId(2)}))
LOG = RecordLog((Record(1, Epoch(3)), Record(2, Epoch(3)), Record(3, Epoch(5))))


@pytest.mark.parametrize(
    ("follower", "has_replicated_all", "may_leave"),
    [(2, False, True), (2, True, False), (3, False, False), (3, True, False)],
)
def test_a_member_that_does_not_keep_up_may_leave(follower: int, has_replicated_all: bool, may_leave: bool) -> None:
    assert may_leave_isr(ROLE, BrokerId(follower), has_replicated_all) is may_leave


@pytest.mark.parametrize(
    ("follower", "has_replicated_committed", "may_join"),
    [(3, True, True), (3, False, False), (2, True, False), (2, False, False)],
)
def test_who_is_out_and_has_what_is_committed_may_join(
    follower: int, has_replicated_committed: bool, may_join: bool
) -> None:
    assert may_join_isr(ROLE, BrokerId(follower), has_replicated_committed) is may_join


@given(roles(), record_logs(), offsets)
def test_up_to_2_0_a_follower_joins_at_any_high_watermark(
    role: LeaderAndIsr, log: RecordLog, high_watermark: Offset
) -> None:
    assert join_at_high_watermark(role, log, high_watermark)


@pytest.mark.parametrize(
    ("log", "high_watermark", "may_join"),
    [
        pytest.param(LOG, 1, False, id="amid an earlier epoch"),
        pytest.param(LOG, 2, True, id="where the leader's epoch starts"),
        pytest.param(LOG, 3, True, id="at the end"),
        pytest.param(LOG.truncate_to(Offset(2)), 1, False, id="no record of the epoch yet, below the end"),
        pytest.param(LOG.truncate_to(Offset(2)), 2, True, id="no record of the epoch yet, at the end"),
        pytest.param(LOG.open_epoch(Epoch(6)), 0, False, id="an opened epoch is no record"),
        pytest.param(EMPTY_LOG, 0, True, id="an empty log"),
    ],
)
def test_since_2_1_a_follower_joins_once_the_leaders_epoch_is_reached(
    log: RecordLog, high_watermark: int, may_join: bool
) -> None:
    assert join_after_epoch_start(ROLE, log, Offset(high_watermark)) is may_join


@given(record_logs(in_order=True), offsets)
def test_what_an_earlier_leader_committed_lies_before_a_joining_followers_end(
    log: RecordLog, high_watermark: Offset
) -> None:
    """A joining follower has the leader's log up to its high watermark: up to the leader's epoch, or all of it."""
    latest = log.records[-1].leader_epoch if log.records else Epoch(0)
    role = ROLE._replace(leader_epoch=latest)
    reached = min(max(high_watermark, log.start_offset), log.end_offset)
    later = [record.leader_epoch for record in log.read(reached, 99)]
    assert join_after_epoch_start(role, log, reached) == all(epoch == latest for epoch in later)


# ---- the proposal


@given(roles(), brokers)
def test_a_proposal_changes_one_membership_and_nothing_else(role: LeaderAndIsr, replica: BrokerId) -> None:
    smaller, larger = without_replica(role, replica), with_replica(role, replica)
    assert smaller == LeaderAndIsr(role.leader, role.leader_epoch, role.isr - {replica})
    assert larger == LeaderAndIsr(role.leader, role.leader_epoch, role.isr | {replica})
    assert role in (smaller, larger)
