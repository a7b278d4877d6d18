"""Conditional writes of partition nodes, and the rules of the controllers that made them (rules A8, L1, L3 to L5, L12)."""

import pytest

from kspec.spec.releases.zookeeper import ZK_0_10, ZK_1_1, ZK_2_1, ZK_2_2
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    LeaderAndIsr,
    PartitionEpoch,
    PartitionId,
)
from kspec.spec.zookeeper.node import ConditionalWrite, PartitionNode, isr_write, was_written, write_partition, written_node
from kspec.spec.zookeeper.protocol import LiveBroker, ZkControllerProtocol
from kspec.spec.zookeeper.rules import (
    check_controller_epoch,
    check_request_epoch,
    elect_for_reassignment,
    elect_for_shutdown,
    elect_offline,
    elect_preferred,
)
from tests.spec.controller_driver import ids, order

REPLICAS = order(1, 2, 3)


def role(leader: int, *isr: int, epoch: int = 5) -> LeaderAndIsr:
    return LeaderAndIsr(BrokerId(leader), Epoch(epoch), ids(*isr))


NODE = PartitionNode(role(1, 1, 2), Epoch(3), PartitionEpoch(7))


# ---- ZooKeeper


@pytest.mark.parametrize(
    ("expected", "checked", "error"),
    [
        (7, NO_EPOCH, Error.NONE),
        (7, 4, Error.NONE),
        (6, NO_EPOCH, Error.INVALID_UPDATE_VERSION),
        (8, 4, Error.INVALID_UPDATE_VERSION),
        (7, 3, Error.STALE_CONTROLLER_EPOCH),
    ],
)
def test_conditional_writes(expected: int, checked: int, error: Error) -> None:
    write = ConditionalWrite(PartitionId(0), role(2, 2), Epoch(4), PartitionEpoch(expected), Epoch(checked))
    result = write_partition(NODE, Epoch(4), write)
    assert result.error == error
    assert result.node == (PartitionNode(role(2, 2), Epoch(4), PartitionEpoch(8)) if error == Error.NONE else NODE)


def test_a_leader_writes_its_isr_once() -> None:
    write = isr_write(PartitionId(0), role(1, 1), NODE.controller_epoch, NODE.partition_epoch)
    assert write.checked_controller_epoch == NO_EPOCH
    written = write_partition(NODE, Epoch(9), write).node
    assert written == written_node(write)
    again = write_partition(written, Epoch(9), write)
    assert (again.error, again.node) == (Error.INVALID_UPDATE_VERSION, written)


def test_a_write_whose_confirmation_was_lost_is_recognized() -> None:
    write = isr_write(PartitionId(0), role(1, 1), Epoch(3), PartitionEpoch(7))
    assert was_written(written_node(write), write)
    assert not was_written(NODE, write)
    assert not was_written(written_node(write)._replace(controller_epoch=Epoch(4)), write)


# ---- what changed between versions


@pytest.mark.parametrize(
    ("rules", "unclean", "isr"),
    [(ZK_0_10, False, (1,)), (ZK_0_10, True, ()), (ZK_1_1, False, (1,)), (ZK_1_1, True, (1,))],
)
def test_the_last_in_sync_replica(rules: ZkControllerProtocol, unclean: bool, isr: tuple[int, ...]) -> None:
    assert rules.remove_from_isr(role(1, 1), BrokerId(1), unclean) == role(NO_LEADER, *isr, epoch=6)
    assert rules.remove_from_isr(role(1, 1, 2), BrokerId(2), unclean) == role(1, 1, epoch=6)
    assert rules.remove_from_isr(role(1, 1, 2), BrokerId(1), unclean) == role(NO_LEADER, 2, epoch=6)


def test_who_may_write() -> None:
    assert [rules.checked_epoch(Epoch(4)) for rules in (ZK_0_10, ZK_1_1, ZK_2_1, ZK_2_2)] == [NO_EPOCH, NO_EPOCH, 4, 4]


def test_broker_epochs() -> None:
    before, after = LiveBroker(BrokerId(1), BrokerEpoch(10)), LiveBroker(BrokerId(1), BrokerEpoch(20))
    assert (ZK_2_1.epoch_of(after), ZK_2_2.epoch_of(after)) == (NO_BROKER_EPOCH, 20)
    assert (ZK_2_1.has_bounced(before, after), ZK_2_2.has_bounced(before, after)) == (False, True)
    assert not ZK_2_2.has_bounced(after, after)


@pytest.mark.parametrize(("known", "claimed", "stale"), [(3, 2, True), (3, 3, False), (3, 4, False)])
def test_whom_a_broker_obeys(known: int, claimed: int, stale: bool) -> None:
    error = check_controller_epoch(Epoch(known), Epoch(claimed))
    assert error == (Error.STALE_CONTROLLER_EPOCH if stale else Error.NONE)


@pytest.mark.parametrize(("claimed", "stale"), [(10, True), (20, False), (30, False), (-1, False)])
def test_requests_for_another_run(claimed: int, stale: bool) -> None:
    error = check_request_epoch(BrokerEpoch(20), BrokerEpoch(claimed))
    assert error == (Error.STALE_BROKER_EPOCH if stale else Error.NONE)


# ---- elections


@pytest.mark.parametrize(
    ("state", "online", "unclean", "elected"),
    [
        pytest.param(role(1, 1, 2, 3), ids(2, 3), False, role(2, 2, 3, epoch=6), id="first online in sync"),
        pytest.param(role(1, 1, 3), ids(2, 3), True, role(3, 3, epoch=6), id="in sync before others"),
        pytest.param(role(1, 1), ids(2, 3), False, None, id="nobody in sync"),
        pytest.param(role(1, 1), ids(2, 3), True, role(2, 2, epoch=6), id="anybody"),
        pytest.param(role(1, 1), ids(4), True, None, id="nobody at all"),
    ],
)
def test_when_the_leader_is_gone(
    state: LeaderAndIsr, online: frozenset[BrokerId], unclean: bool, elected: LeaderAndIsr | None
) -> None:
    assert elect_offline(REPLICAS, state, online, unclean) == elected


def test_the_preferred_leader() -> None:
    assert elect_preferred(REPLICAS, role(2, 1, 2), ids(1, 2)) == role(1, 1, 2, epoch=6)
    assert elect_preferred(REPLICAS, role(2, 1, 2), ids(2)) is None
    assert elect_preferred(REPLICAS, role(2, 2), ids(1, 2)) is None


def test_the_leader_after_a_reassignment() -> None:
    assert elect_for_reassignment(order(3, 2), role(1, 1, 2, 3), ids(1, 2)) == role(2, 1, 2, 3, epoch=6)
    assert elect_for_reassignment(order(3), role(1, 1, 2, 3), ids(1, 2)) is None


def test_the_leader_during_a_controlled_shutdown() -> None:
    live, leaving = ids(1, 2, 3), ids(1, 2)
    assert elect_for_shutdown(REPLICAS, role(1, 1, 2, 3), live, leaving) == role(3, 3, epoch=6)
    assert elect_for_shutdown(REPLICAS, role(1, 1, 2), live, leaving) is None
