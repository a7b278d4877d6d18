"""The controller of the ZooKeeper era, driven by plain code (rules A3, L3 to L7, L12)."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from kspec.spec.messages.zookeeper_era.controlled_shutdown import ControlledShutdownRequest
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.metadata import NOBODY
from kspec.spec.releases.zookeeper import ZK_0_10, ZK_1_1, ZK_2_1, ZK_2_2, ZK_RELEASES
from kspec.spec.step import Reply, Send
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    LeaderAndIsr,
    MonotonicMs,
    PartitionEpoch,
    PartitionId,
)
from kspec.spec.zookeeper.controller import (
    ZkControllerState,
    ZkPartition,
    ZkStep,
    handle_alter_partition,
    handle_controlled_shutdown,
    handle_elect_leaders,
    on_broker_change,
    on_failover,
    on_new_partition,
    on_reassignment,
    on_reassignment_progress,
    refresh,
    refuse_alter_partition,
    zk_partition_of,
)
from kspec.spec.zookeeper.node import ConditionalWrite, NodeCreation, PartitionNode, isr_write, write_partition
from kspec.spec.zookeeper.protocol import LiveBroker, ZkController, ZkControllerProtocol, ZkControllerSettings
from tests.spec.controller_driver import ids, order

PARTITION = PartitionId(0)
NOW = MonotonicMs(0)
by_version = pytest.mark.parametrize("rules", ZK_RELEASES, ids=lambda rules: rules.name)


@dataclass
class ZooKeeper:
    """The partition's node, the brokers' ephemeral nodes, and a controller that works on them."""

    rules: ZkControllerProtocol = ZK_2_2
    unclean: bool = False
    epochs: dict[int, int] = field(default_factory=lambda: {1: 10, 2: 20, 3: 30})
    node: PartitionNode = field(
        default_factory=lambda: PartitionNode(LeaderAndIsr(BrokerId(1), Epoch(0), ids(1, 2, 3)), Epoch(1), PartitionEpoch(0))
    )
    controller_epoch: Epoch = field(default_factory=lambda: Epoch(1))
    replicas: tuple[BrokerId, ...] = order(1, 2, 3)
    sent: list[tuple[int, Any]] = field(default_factory=list)
    state: ZkControllerState = field(default_factory=lambda: ZkControllerState(Epoch(0)))

    def __post_init__(self) -> None:
        entry = ZkPartition(PARTITION, self.replicas, self.node)
        self.take(on_failover(self.controller, self.controller_epoch, self.live(), (entry,)))

    def live(self) -> tuple[LiveBroker, ...]:
        return tuple(LiveBroker(BrokerId(broker), BrokerEpoch(self.epochs[broker])) for broker in sorted(self.epochs))

    def take(self, step: ZkStep) -> Error:
        """Carry out effects in order, until a write is refused; then the new state is not taken either."""
        for effect in step.effects:
            if isinstance(effect, ConditionalWrite):
                result = write_partition(self.node, self.controller_epoch, effect)
                self.node = result.node
                if result.error != Error.NONE:
                    return result.error
            elif isinstance(effect, NodeCreation):
                self.node = effect.node
            else:
                to = effect.to if isinstance(effect, Send) else BrokerId(0)
                self.sent.append((to, effect.message))
        self.state = step.state
        assert zk_partition_of(self.state, PARTITION).node == self.node
        return Error.NONE

    @property
    def controller(self) -> ZkController:
        return ZkController(self.rules, ZkControllerSettings(self.unclean))

    def change(self, **epochs: int | None) -> None:
        """Brokers come, bounce or go: `b1=11` registers broker 1 with that epoch, `b1=None` takes it away."""
        for name, epoch in epochs.items():
            self.epochs.pop(int(name[1:]), None)
            if epoch is not None:
                self.epochs[int(name[1:])] = epoch
        self.sent.clear()
        self.take(on_broker_change(self.controller, self.state, self.live()))

    def told(self, kind: type) -> list[int]:
        return [to for to, message in self.sent if isinstance(message, kind)]

    @property
    def role(self) -> tuple[int, frozenset[BrokerId], int]:
        return self.node.state.leader, self.node.state.isr, self.node.state.leader_epoch


# ---- creation


@by_version
def test_a_new_partition_is_led_by_its_first_online_replica(rules: ZkControllerProtocol) -> None:
    zookeeper = ZooKeeper(rules)
    zookeeper.state = zookeeper.state._replace(partitions=(), shutting_down=ids(2))
    zookeeper.sent.clear()
    assert zookeeper.take(on_new_partition(ZkController(rules), zookeeper.state, PARTITION, order(2, 3, 1))) == Error.NONE
    assert (zookeeper.role, zookeeper.node.partition_epoch) == ((3, ids(1, 3), 0), 0)
    assert zookeeper.told(LeaderAndIsrRequest) == [1, 3]


def test_a_new_partition_waits_for_a_replica_that_is_online() -> None:
    state = ZkControllerState(Epoch(1), (LiveBroker(BrokerId(1), BrokerEpoch(10)),))
    assert on_new_partition(ZkController(ZK_2_2), state, PARTITION, order(2, 3)) == (state, ())


# ---- brokers come and go


@by_version
def test_the_leader_goes(rules: ZkControllerProtocol) -> None:
    zookeeper = ZooKeeper(rules)
    zookeeper.change(b1=None)
    assert zookeeper.role == (2, ids(2, 3), 1)
    assert zookeeper.told(LeaderAndIsrRequest) == [2, 3, 2, 3]
    request = zookeeper.sent[0][1]
    assert (request.controller_epoch, request.leader, request.partition_epoch) == (1, 2, 1)
    assert request.broker_epoch == (20 if rules == ZK_2_2 else NO_BROKER_EPOCH)


@by_version
def test_a_follower_goes(rules: ZkControllerProtocol) -> None:
    zookeeper = ZooKeeper(rules)
    zookeeper.change(b3=None)
    assert zookeeper.role == (1, ids(1, 2), 1)


@pytest.mark.parametrize(
    ("rules", "unclean", "isr", "back"),
    [
        (ZK_0_10, False, ids(3), NO_LEADER),
        (ZK_0_10, True, NOBODY, 1),
        (ZK_1_1, True, ids(3), 1),
        (ZK_1_1, False, ids(3), -1),
    ],
)
def test_the_last_one_goes(rules: ZkControllerProtocol, unclean: bool, isr: frozenset[BrokerId], back: int) -> None:
    """Rule L5: it stays in the ISR, so that nobody else may lead; up to 1.0 not if unclean elections are allowed."""
    zookeeper = ZooKeeper(rules, unclean)
    zookeeper.change(b1=None)
    zookeeper.change(b2=None)
    zookeeper.change(b3=None)
    assert zookeeper.role[:2] == (NO_LEADER, isr)
    zookeeper.change(b1=11)
    assert zookeeper.role[0] == back
    zookeeper.change(b3=31)
    assert zookeeper.role[0] == (back if back == 1 else 3)


def test_a_broker_that_comes_is_told() -> None:
    zookeeper = ZooKeeper()
    zookeeper.change(b3=None)
    zookeeper.change(b3=31)
    assert zookeeper.told(LeaderAndIsrRequest) == [3]
    assert zookeeper.role == (1, ids(1, 2), 1)


def test_a_quick_restart_goes_unnoticed_up_to_2_1() -> None:
    """KIP-380: the controller looks only after the broker is back."""
    for rules, role in ((ZK_2_1, (1, ids(1, 2, 3), 0)), (ZK_2_2, (2, ids(2, 3), 1))):
        zookeeper = ZooKeeper(rules)
        zookeeper.change(b1=11)
        assert zookeeper.role == role
    assert zookeeper.sent[-1][0] == 1
    assert zookeeper.sent[-1][1].broker_epoch == 11


def test_a_broker_without_replicas_matters_to_nobody() -> None:
    zookeeper = ZooKeeper(epochs={1: 10, 2: 20, 3: 30, 4: 40})
    zookeeper.change(b4=None)
    assert zookeeper.sent == []
    assert zookeeper.role == (1, ids(1, 2, 3), 0)


def test_a_change_without_a_change() -> None:
    zookeeper = ZooKeeper()
    step = on_broker_change(ZkController(zookeeper.rules), zookeeper.state, zookeeper.live())
    assert (step.state, step.effects) == (zookeeper.state, ())


# ---- conditional writes


def test_a_decision_on_an_old_state_is_made_again() -> None:
    """The leader has changed its ISR meanwhile; nothing was announced of the decision that ignored it."""
    zookeeper = ZooKeeper()
    shrunk = LeaderAndIsr(BrokerId(1), Epoch(0), ids(1, 3))
    zookeeper.node = write_partition(
        zookeeper.node, Epoch(1), isr_write(PARTITION, shrunk, Epoch(1), PartitionEpoch(0))
    ).node
    before, zookeeper.sent = zookeeper.state, []
    live = zookeeper.live()[1:]
    assert zookeeper.take(on_broker_change(ZkController(ZK_2_2), before, live)) == Error.INVALID_UPDATE_VERSION
    assert (zookeeper.state, zookeeper.sent) == (before, [])
    again = refresh(before, PARTITION, zookeeper.node)
    assert zookeeper.take(on_broker_change(ZkController(ZK_2_2), again, live)) == Error.NONE
    assert zookeeper.role == (3, ids(3), 1)


@pytest.mark.parametrize(("rules", "error"), [(ZK_1_1, Error.NONE), (ZK_2_1, Error.STALE_CONTROLLER_EPOCH)])
def test_a_controller_that_has_been_replaced(rules: ZkControllerProtocol, error: Error) -> None:
    zookeeper = ZooKeeper(rules)
    zookeeper.controller_epoch = Epoch(2)
    assert zookeeper.take(on_broker_change(ZkController(rules), zookeeper.state, zookeeper.live()[1:])) == error


def test_a_controller_does_not_touch_what_a_later_one_has_decided() -> None:
    zookeeper = ZooKeeper(ZK_1_1)
    zookeeper.state = refresh(zookeeper.state, PARTITION, zookeeper.node._replace(controller_epoch=Epoch(2)))
    step = on_broker_change(ZkController(ZK_1_1), zookeeper.state, zookeeper.live()[1:])
    assert not any(isinstance(effect, ConditionalWrite) for effect in step.effects)


def test_a_new_controller_announces_what_is_and_repairs_what_it_can() -> None:
    zookeeper = ZooKeeper(epochs={2: 20, 3: 30}, controller_epoch=Epoch(2))
    assert zookeeper.told(LeaderAndIsrRequest) == [2, 3, 2, 3]
    assert zookeeper.role == (2, ids(2, 3), 1)
    assert zookeeper.node.controller_epoch == 2


def test_a_partition_is_as_it_was_read_last() -> None:
    zookeeper = ZooKeeper()
    other = zk_partition_of(zookeeper.state, PARTITION)._replace(partition_id=PartitionId(PARTITION + 1))
    state = zookeeper.state._replace(partitions=(*zookeeper.state.partitions, other))
    read = zookeeper.node._replace(controller_epoch=Epoch(7))
    state = refresh(state, PARTITION, read)
    assert zk_partition_of(state, PARTITION).node == read
    assert zk_partition_of(state, other.partition_id) == other


# ---- controlled shutdown


def shut_down(zookeeper: ZooKeeper, broker: int, epoch: int = NO_BROKER_EPOCH) -> Any:
    zookeeper.sent.clear()
    request = ControlledShutdownRequest(BrokerId(broker), BrokerEpoch(epoch))
    zookeeper.take(handle_controlled_shutdown(zookeeper.controller, zookeeper.state, request, NOW))
    return zookeeper.sent[-1][1]


def test_controlled_shutdown_of_the_leader() -> None:
    zookeeper = ZooKeeper()
    assert shut_down(zookeeper, 1) == (Error.NONE, NOBODY)
    assert zookeeper.role == (2, ids(2, 3), 1)
    zookeeper.change(b1=None)
    assert zookeeper.role == (2, ids(2, 3), 1)


def test_controlled_shutdown_of_a_follower_stops_its_fetching_first() -> None:
    zookeeper = ZooKeeper()
    assert shut_down(zookeeper, 3) == (Error.NONE, NOBODY)
    assert zookeeper.told(StopReplicaRequest) == [3]
    assert isinstance(zookeeper.sent[0][1], StopReplicaRequest)
    assert not zookeeper.sent[0][1].delete
    assert zookeeper.role == (1, ids(1, 2), 1)


def test_controlled_shutdown_without_another_leader() -> None:
    zookeeper = ZooKeeper(node=PartitionNode(LeaderAndIsr(BrokerId(1), Epoch(0), ids(1)), Epoch(1), PartitionEpoch(0)))
    assert shut_down(zookeeper, 1) == (Error.NONE, frozenset({PARTITION}))
    assert zookeeper.role == (1, ids(1), 0)


def test_controlled_shutdown_leaves_single_replicas_alone() -> None:
    only = PartitionNode(LeaderAndIsr(BrokerId(1), Epoch(0), ids(1)), Epoch(1), PartitionEpoch(0))
    assert shut_down(ZooKeeper(node=only, replicas=order(1)), 1) == (Error.NONE, NOBODY)


def test_controlled_shutdown_of_whom() -> None:
    zookeeper = ZooKeeper()
    assert shut_down(zookeeper, 4).error == Error.BROKER_ID_NOT_REGISTERED
    assert shut_down(zookeeper, 1, epoch=9).error == Error.STALE_BROKER_EPOCH
    assert shut_down(zookeeper, 1, epoch=10).error == Error.NONE


# ---- preferred elections


def prefer(zookeeper: ZooKeeper) -> Error:
    zookeeper.take(handle_elect_leaders(zookeeper.controller, zookeeper.state, ElectLeadersRequest(PARTITION), NOW))
    answer: Error = zookeeper.sent[-1][1].error
    return answer


def test_preferred_elections() -> None:
    zookeeper = ZooKeeper()
    assert prefer(zookeeper) == Error.ELECTION_NOT_NEEDED
    zookeeper.change(b1=None)
    assert prefer(zookeeper) == Error.PREFERRED_LEADER_NOT_AVAILABLE
    zookeeper.change(b1=11)
    assert prefer(zookeeper) == Error.PREFERRED_LEADER_NOT_AVAILABLE
    rejoined = zookeeper.node.state._replace(isr=ids(1, 2, 3))
    zookeeper.node = write_partition(
        zookeeper.node, Epoch(1), isr_write(PARTITION, rejoined, Epoch(1), PartitionEpoch(1))
    ).node
    zookeeper.state = refresh(zookeeper.state, PARTITION, zookeeper.node)
    assert prefer(zookeeper) == Error.NONE
    assert zookeeper.role == (1, ids(1, 2, 3), 2)


# ---- proposals of an ISR (2.7 and 2.8)


def proposal(*isr: int, **fields: Any) -> AlterPartitionRequest:
    members = frozenset(IsrMember(BrokerId(broker)) for broker in isr)
    made = AlterPartitionRequest(BrokerId(1), BrokerEpoch(10), PARTITION, Epoch(0), PartitionEpoch(0), members)
    return made._replace(**fields)


def propose(zookeeper: ZooKeeper, request: AlterPartitionRequest) -> Any:
    step = handle_alter_partition(zookeeper.controller, zookeeper.state, request, NOW)
    if zookeeper.take(step) != Error.NONE:
        return refuse_alter_partition(request)
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


@pytest.mark.parametrize(
    ("members", "changes", "error"),
    [
        ((1, 2), {}, Error.NONE),
        ((1, 2, 3), {}, Error.NONE),
        ((1, 2), {"broker_epoch": BrokerEpoch(9)}, Error.STALE_BROKER_EPOCH),
        ((1, 2), {"leader_epoch": Epoch(-1)}, Error.FENCED_LEADER_EPOCH),
    ],
)
def test_a_proposal_is_about_its_own_partition(members: tuple[int, ...], changes: dict[str, Any], error: Error) -> None:
    """The controller has two partitions, and the second is meant: in what is written, and in each answer."""
    zookeeper, other = ZooKeeper(), PartitionId(1)
    entries = zookeeper.state.partitions
    state = zookeeper.state._replace(partitions=(*entries, entries[0]._replace(partition_id=other)))
    request = proposal(*members, partition_id=other, **changes)
    step = handle_alter_partition(zookeeper.controller, state, request, NOW)
    answer = next(effect.message for effect in step.effects if isinstance(effect, Reply))
    assert isinstance(answer, AlterPartitionResponse)
    assert (answer.error, answer.partition_id) == (error, other)
    assert {effect.partition_id for effect in step.effects if isinstance(effect, ConditionalWrite)} <= {other}
    assert zk_partition_of(step.state, PARTITION) == entries[0]
    assert refuse_alter_partition(request).partition_id == other


def test_a_proposal_is_written() -> None:
    zookeeper = ZooKeeper()
    answer = propose(zookeeper, proposal(1, 2))
    assert (answer.error, answer.leader, answer.isr, answer.partition_epoch) == (Error.NONE, 1, ids(1, 2), 1)
    assert zookeeper.role == (1, ids(1, 2), 0)
    assert propose(zookeeper, proposal(1, 2)).partition_epoch == 1
    assert zookeeper.node.partition_epoch == 1


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"broker": 9}, Error.STALE_BROKER_EPOCH),
        ({"broker_epoch": 9}, Error.STALE_BROKER_EPOCH),
        ({"leader_epoch": -1}, Error.FENCED_LEADER_EPOCH),
        ({"partition_epoch": 5}, Error.INVALID_UPDATE_VERSION),
    ],
)
def test_proposals_that_are_refused(fields: dict[str, Any], error: Error) -> None:
    zookeeper = ZooKeeper()
    assert propose(zookeeper, proposal(1, 2, **fields)).error == error
    assert zookeeper.role == (1, ids(1, 2, 3), 0)


def test_nobody_asks_whether_a_proposed_member_is_alive() -> None:
    zookeeper = ZooKeeper()
    zookeeper.change(b3=None)
    revived = proposal(1, 2, 3, leader_epoch=Epoch(1), partition_epoch=PartitionEpoch(1))
    assert propose(zookeeper, revived).error == Error.NONE
    assert zookeeper.role[1] == ids(1, 2, 3)


# ---- reassignment


def reassign(zookeeper: ZooKeeper, *replicas: int) -> None:
    zookeeper.sent.clear()
    zookeeper.take(on_reassignment(zookeeper.controller, zookeeper.state, PARTITION, order(*replicas)))


def with_isr(zookeeper: ZooKeeper, *isr: int) -> None:
    """The leader changes its ISR, and the controller looks at the reassignment again."""
    grown = isr_write(PARTITION, zookeeper.node.state._replace(isr=ids(*isr)), Epoch(1), zookeeper.node.partition_epoch)
    zookeeper.node = write_partition(zookeeper.node, Epoch(1), grown).node
    zookeeper.sent.clear()
    current = refresh(zookeeper.state, PARTITION, zookeeper.node)
    zookeeper.take(on_reassignment_progress(zookeeper.controller, current, PARTITION))


def test_a_reassignment_from_begin_to_end() -> None:
    zookeeper = ZooKeeper(epochs={1: 10, 2: 20, 3: 30, 4: 40})
    reassign(zookeeper, 4, 2)
    entry = zk_partition_of(zookeeper.state, PARTITION)
    assert (entry.replicas, entry.adding, entry.removing) == (order(4, 2, 1, 3), ids(4), ids(1, 3))
    assert zookeeper.role == (1, ids(1, 2, 3), 1)
    assert zookeeper.told(LeaderAndIsrRequest) == [1, 2, 3, 4]
    with_isr(zookeeper, 1, 2, 4)
    assert zookeeper.role == (4, ids(2, 4), 3)
    assert zk_partition_of(zookeeper.state, PARTITION).replicas == order(4, 2)
    stopped = [(to, message.delete) for to, message in zookeeper.sent if isinstance(message, StopReplicaRequest)]
    assert stopped == [(1, False), (1, True), (3, False), (3, True)]


def test_a_reassignment_waits_for_all_new_replicas() -> None:
    zookeeper = ZooKeeper(epochs={1: 10, 2: 20, 3: 30, 4: 40})
    reassign(zookeeper, 4, 2)
    with_isr(zookeeper, 1, 2)
    assert zookeeper.role == (1, ids(1, 2), 1)
    assert zookeeper.sent == []


def test_a_reassignment_to_replicas_in_sync_is_over_at_once() -> None:
    zookeeper = ZooKeeper()
    reassign(zookeeper, 1, 2)
    assert zookeeper.role == (1, ids(1, 2), 2)


# ---- at random


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(ZK_RELEASES),
    st.booleans(),
    st.lists(st.tuples(st.sampled_from(["come", "go", "bounce", "shut down"]), st.integers(1, 3)), max_size=15),
)
def test_whatever_happens(rules: ZkControllerProtocol, unclean: bool, happens: list[tuple[str, int]]) -> None:
    zookeeper = ZooKeeper(rules, unclean)
    for number, (what, broker) in enumerate(happens, start=100):
        before = zookeeper.node
        if what == "shut down":
            shut_down(zookeeper, broker)
        elif what == "go":
            zookeeper.change(**{f"b{broker}": None})
        elif what == "come" or broker in zookeeper.epochs:
            zookeeper.change(**{f"b{broker}": number})
        after = zookeeper.node.state
        assert after.leader == NO_LEADER or after.leader in after.isr, "V2"
        assert after.isr <= ids(1, 2, 3)
        assert after.isr != NOBODY or (unclean and rules == ZK_0_10), "rule L5"
        changes = zookeeper.node.partition_epoch - before.partition_epoch
        assert after.leader_epoch - before.state.leader_epoch == changes, "each decision opens a leader epoch"
        if after.leader not in (NO_LEADER, before.state.leader) and not unclean:
            assert after.leader in before.state.isr
