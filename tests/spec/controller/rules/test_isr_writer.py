"""The writer of a partition's ISR."""

import pytest

from kspec.spec.controller.rules.isr_writer import check_partition_epoch, check_writer
from kspec.spec.values import BrokerId, Epoch, Error, LeaderAndIsr, PartitionEpoch

STATE = LeaderAndIsr(BrokerId(1), Epoch(5), frozenset({BrokerId(1), BrokerId(2)}))


@pytest.mark.parametrize(
    ("leader", "leader_epoch", "error"),
    [
        pytest.param(1, 5, Error.NONE, id="the leader, in its epoch"),
        pytest.param(1, 4, Error.FENCED_LEADER_EPOCH, id="the leader, in an older epoch"),
        pytest.param(1, 6, Error.FENCED_LEADER_EPOCH, id="the leader, in an epoch still to come"),
        pytest.param(2, 5, Error.INVALID_REQUEST, id="another replica, in the current epoch"),
        pytest.param(2, 4, Error.FENCED_LEADER_EPOCH, id="a former leader"),
    ],
)
def test_only_the_true_leader_changes_the_isr(leader: int, leader_epoch: int, error: Error) -> None:
    assert check_writer(STATE, BrokerId(leader), Epoch(leader_epoch)) == error


@pytest.mark.parametrize(
    ("known", "error"),
    [(2, Error.INVALID_UPDATE_VERSION), (3, Error.NONE), (4, Error.INVALID_UPDATE_VERSION)],
)
def test_a_change_is_taken_on_top_of_the_present_state_only(known: int, error: Error) -> None:
    assert check_partition_epoch(PartitionEpoch(3), PartitionEpoch(known)) == error
