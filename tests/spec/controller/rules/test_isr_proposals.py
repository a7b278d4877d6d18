"""Checks of the controller on a proposed ISR, and their order (rules A3, A4)."""

from typing import Any

import pytest

from kspec.spec.controller.rules.isr_proposals import (
    active_is_eligible,
    anybody_is_eligible,
    check_proposal,
    check_proposer,
    controller_knows_best,
    controller_may_be_behind,
    ineligible_error,
    moved_away_as_fenced,
    moved_away_as_new_leader,
    proposed_isr,
    same_broker_epoch_is_eligible,
)
from kspec.spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from kspec.spec.metadata import BrokerRegistration, LeaderRecoveryState, PartitionRegistration
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, Incarnation, PartitionEpoch, PartitionId
from tests.spec.controller_driver import ids, order

RECOVERING, RECOVERED = LeaderRecoveryState.RECOVERING, LeaderRecoveryState.RECOVERED
PARTITION = PartitionRegistration(order(1, 2, 3), ids(1, 2), BrokerId(1), Epoch(5), PartitionEpoch(7))


def members(*brokers: int) -> frozenset[IsrMember]:
    return frozenset(IsrMember(BrokerId(broker)) for broker in brokers)


def request(**fields: Any) -> AlterPartitionRequest:
    made = AlterPartitionRequest(BrokerId(1), BrokerEpoch(10), PartitionId(0), Epoch(5), PartitionEpoch(7), members(1, 2, 3))
    return made._replace(**fields)


def test_the_ids_of_a_proposal() -> None:
    assert proposed_isr(request()) == ids(1, 2, 3)


@pytest.mark.parametrize(
    ("leader_epoch", "partition_epoch", "ahead"),
    [(5, 7, False), (4, 6, False), (6, 7, True), (5, 8, True), (6, 6, True), (4, 8, True)],
)
def test_a_leader_ahead_of_the_controller(leader_epoch: int, partition_epoch: int, ahead: bool) -> None:
    proposal = request(leader_epoch=leader_epoch, partition_epoch=partition_epoch)
    assert controller_may_be_behind(PARTITION, proposal) == (Error.NOT_CONTROLLER if ahead else Error.NONE)
    assert controller_knows_best(PARTITION, proposal) == Error.NONE


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({}, Error.NONE),
        ({"leader_epoch": 4}, Error.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 6}, Error.FENCED_LEADER_EPOCH),
        ({"broker": 2}, Error.INVALID_REQUEST),
        ({"partition_epoch": 6}, Error.INVALID_UPDATE_VERSION),
        ({"leader_epoch": 4, "broker": 2, "partition_epoch": 6}, Error.FENCED_LEADER_EPOCH),
        ({"broker": 2, "partition_epoch": 6}, Error.INVALID_REQUEST),
    ],
)
def test_who_may_propose(fields: dict[str, Any], error: Error) -> None:
    assert check_proposer(PARTITION, request(**fields)) == error


@pytest.mark.parametrize(
    ("isr", "recovery", "before", "valid"),
    [
        pytest.param((1, 2, 3), RECOVERED, RECOVERED, True, id="replicas"),
        pytest.param((1, 4), RECOVERED, RECOVERED, False, id="no replica"),
        pytest.param((2, 3), RECOVERED, RECOVERED, False, id="without the leader"),
        pytest.param((1,), RECOVERED, RECOVERING, True, id="has recovered"),
        pytest.param((1,), RECOVERING, RECOVERING, True, id="recovering, alone"),
        pytest.param((1, 2), RECOVERING, RECOVERING, False, id="recovering, not alone"),
        pytest.param((1,), RECOVERING, RECOVERED, False, id="recovering again"),
    ],
)
def test_what_may_be_proposed(
    isr: tuple[int, ...], recovery: LeaderRecoveryState, before: LeaderRecoveryState, valid: bool
) -> None:
    proposal = request(isr=members(*isr), recovery=recovery)
    error = Error.NONE if valid else Error.INVALID_REQUEST
    assert check_proposal(PARTITION._replace(recovery=before), proposal) == error


def test_a_member_is_proposed_once() -> None:
    twice = members(1) | {IsrMember(BrokerId(1), BrokerEpoch(10))}
    assert check_proposal(PARTITION, request(isr=twice)) == Error.INVALID_REQUEST


@pytest.mark.parametrize(
    ("registered", "broker_epoch", "active_rule", "run_rule"),
    [
        pytest.param({}, 10, True, True, id="active, the same run"),
        pytest.param({}, -1, True, True, id="active, run unknown"),
        pytest.param({}, 9, True, False, id="active, another run"),
        pytest.param({"fenced": True}, 10, False, False, id="fenced"),
        pytest.param({"in_controlled_shutdown": True}, 10, False, False, id="shutting down"),
        pytest.param({"broker": 5}, 10, False, False, id="not registered"),
    ],
)
def test_who_is_eligible(registered: dict[str, Any], broker_epoch: int, active_rule: bool, run_rule: bool) -> None:
    entry = BrokerRegistration(BrokerId(2), BrokerEpoch(10), Incarnation(1), fenced=False)._replace(**registered)
    member = IsrMember(BrokerId(2), BrokerEpoch(broker_epoch))
    assert anybody_is_eligible((entry,), member)
    assert active_is_eligible((entry,), member) is active_rule
    assert same_broker_epoch_is_eligible((entry,), member) is run_rule


@pytest.mark.parametrize("understands", [True, False])
def test_errors_that_older_leaders_do_not_understand(understands: bool) -> None:
    proposal = request(understands_ineligible_replica=understands)
    assert ineligible_error(proposal) == (Error.INELIGIBLE_REPLICA if understands else Error.OPERATION_NOT_ATTEMPTED)
    moved = Error.NEW_LEADER_ELECTED if understands else Error.FENCED_LEADER_EPOCH
    assert moved_away_as_new_leader(proposal) == moved
    assert moved_away_as_fenced(proposal) == Error.FENCED_LEADER_EPOCH
