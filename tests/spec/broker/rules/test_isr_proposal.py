"""ISR changes by request: what the leader assumes, what the controller takes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.rules.isr.announcement import apply_news, apply_partition, is_newer_partition
from kspec.spec.broker.rules.isr.proposal import (
    LeaderIsr,
    PartitionIsr,
    Proposal,
    committed_isr,
    maximal_isr,
    nothing_pending,
    propose,
    propose_as_if_granted,
)
from kspec.spec.controller.rules.isr_writer import check_partition_epoch
from kspec.spec.published.async_isr import (
    change_isr,
    high_watermark_of,
    may_propose_expand,
    may_propose_shrink,
)
from kspec.spec.values import NO_PARTITION_EPOCH, BrokerId, Error, Offset, PartitionEpoch
from tests.spec.strategies import brokers, isrs, offsets

partition_epochs = st.integers(0, 5).map(PartitionEpoch)


def replicas(*ids: int) -> frozenset[BrokerId]:
    return frozenset(BrokerId(replica) for replica in ids)


def known(*isr: int, epoch: int = 3) -> LeaderIsr:
    """A leader that has proposed nothing."""
    return LeaderIsr(replicas(*isr), PartitionEpoch(epoch), frozenset(), NO_PARTITION_EPOCH)


def partition(*isr: int, epoch: int) -> PartitionIsr:
    return PartitionIsr(replicas(*isr), PartitionEpoch(epoch))


# ---- proposing


def test_an_unanswered_expansion_counts_at_once_but_is_not_committed() -> None:
    leader, request = propose(known(1, 2), replicas(1, 2, 3))
    assert request == partition(1, 2, 3, epoch=3)
    assert maximal_isr(leader) == {1, 2, 3}
    assert committed_isr(leader) == {1, 2}
    assert (leader.partition_epoch, leader.pending_epoch) == (3, 3)


def test_an_unanswered_shrink_does_not_count_yet() -> None:
    leader, request = propose(known(1, 2), replicas(1))
    assert request == partition(1, epoch=3)
    assert maximal_isr(leader) == committed_isr(leader) == {1, 2}


@given(isrs, isrs, partition_epochs)
def test_whichever_way_a_proposal_ends_the_isr_was_counted(
    isr: frozenset[BrokerId], proposed: frozenset[BrokerId], epoch: PartitionEpoch
) -> None:
    before = LeaderIsr(isr, epoch, frozenset(), NO_PARTITION_EPOCH)
    assert nothing_pending(before)
    leader, request = propose(before, proposed)
    granted = apply_partition(leader, change_isr(PartitionIsr(isr, epoch), request.isr))
    assert maximal_isr(leader) == committed_isr(before) | committed_isr(granted)
    assert not nothing_pending(leader)
    assert nothing_pending(granted)


def test_proposals_add_up() -> None:
    """A second proposal does not take back the first: either may still be granted."""
    leader = propose(propose(known(1), replicas(1, 2)).leader, replicas(1, 3)).leader
    assert leader.pending_isr == {1, 2, 3}


def test_a_leader_that_takes_its_proposal_for_granted_counts_too_few() -> None:
    assumed = propose_as_if_granted(known(1, 2), replicas(1))
    assert assumed == Proposal(known(1), partition(1, epoch=3))
    assert maximal_isr(assumed.leader) == {1}
    assert nothing_pending(assumed.leader)


def test_a_leader_knows_whether_it_has_proposed() -> None:
    assert nothing_pending(known(1, 2))
    assert not nothing_pending(propose(known(1, 2, epoch=0), replicas(1)).leader)


@pytest.mark.parametrize(("replica", "may"), [(1, False), (2, True), (3, False)])
def test_a_leader_may_drop_any_member_but_itself(replica: int, may: bool) -> None:
    assert may_propose_shrink(known(1, 2), BrokerId(1), BrokerId(replica)) is may


@pytest.mark.parametrize(
    ("replica", "end_offset", "may"),
    [
        pytest.param(3, 4, False, id="below the high watermark"),
        pytest.param(3, 5, True, id="at the high watermark"),
        pytest.param(3, 6, True, id="above it"),
        pytest.param(2, 6, False, id="a member"),
    ],
)
def test_a_leader_may_admit_who_has_reached_its_high_watermark(replica: int, end_offset: int, may: bool) -> None:
    assert may_propose_expand(known(1, 2), BrokerId(replica), Offset(end_offset), Offset(5)) is may


@given(isrs, brokers, brokers, offsets, offsets)
def test_no_replica_may_be_both_dropped_and_admitted(
    isr: frozenset[BrokerId], self_id: BrokerId, replica: BrokerId, end_offset: Offset, high_watermark: Offset
) -> None:
    leader = LeaderIsr(isr, PartitionEpoch(0), frozenset(), NO_PARTITION_EPOCH)
    shrink = may_propose_shrink(leader, self_id, replica)
    assert not (shrink and may_propose_expand(leader, replica, end_offset, high_watermark))


# ---- the high watermark


@pytest.mark.parametrize(("isr", "high_watermark"), [((1,), 9), ((1, 2), 7), ((1, 3), 4), ((1, 2, 3), 4)])
def test_the_high_watermark_is_the_lowest_end_offset_of_who_counts(isr: tuple[int, ...], high_watermark: int) -> None:
    ends = {BrokerId(1): Offset(9), BrokerId(2): Offset(7), BrokerId(3): Offset(4)}
    assert high_watermark_of(BrokerId(1), ends, replicas(*isr)) == high_watermark


@given(st.fixed_dictionaries({BrokerId(replica): offsets for replica in range(1, 5)}), isrs, isrs)
def test_to_wait_for_more_replicas_never_raises_the_high_watermark(
    ends: dict[BrokerId, Offset], isr: frozenset[BrokerId], more: frozenset[BrokerId]
) -> None:
    counted = isr | {BrokerId(1)}
    assert high_watermark_of(BrokerId(1), ends, counted | more) <= high_watermark_of(BrokerId(1), ends, counted)


# ---- the controller, and its announcements


def test_a_granted_proposal_refuses_the_same_one_again() -> None:
    request = propose(known(1, 2), replicas(1)).request
    state = change_isr(partition(1, 2, epoch=3), request.isr)
    assert state == partition(1, epoch=4)
    assert check_partition_epoch(state.partition_epoch, request.partition_epoch) == Error.INVALID_UPDATE_VERSION


@pytest.mark.parametrize(("announced", "newer"), [(2, False), (3, False), (4, True)])
def test_a_leader_takes_later_announcements_only(announced: int, newer: bool) -> None:
    assert is_newer_partition(known(1, 2), partition(1, epoch=announced)) is newer


@given(isrs, isrs, partition_epochs)
def test_an_announcement_replaces_all_that_the_leader_assumed(
    isr: frozenset[BrokerId], announced: frozenset[BrokerId], epoch: PartitionEpoch
) -> None:
    leader = propose(known(1, 2, epoch=0), isr).leader
    assert apply_partition(leader, PartitionIsr(announced, epoch)) == LeaderIsr(
        announced, epoch, frozenset(), PartitionEpoch(-1)
    )


def test_a_late_announcement_drops_a_newer_proposal_unless_it_must_be_news() -> None:
    """The answer to a first proposal told partition epoch 4 already, and a second one was made on top of that."""
    leader = propose(known(1, 3, epoch=4), replicas(1, 2, 3)).leader
    late = partition(1, 3, epoch=4)
    assert maximal_isr(apply_partition(leader, late)) == replicas(1, 3)
    assert apply_news(leader, late) is leader
    assert maximal_isr(apply_news(leader, partition(1, epoch=5))) == replicas(1)
