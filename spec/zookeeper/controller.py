"""The controller that keeps its state in ZooKeeper, and sends requests to brokers (Kafka 0.10 to 2.8).

It decides by the partition's node as it has read it, and writes only if the node is still the same. If the node has changed,
the caller reads it again (`refresh`) and calls the handler again with the same event. The new state and the effects after a
refused write never happen. A decision is written before it is announced.
"""

from typing import NamedTuple, TypeAlias

from kspec.spec.controller.rules.isr_proposals import proposed_isr
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.zookeeper_era.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.metadata import NOBODY
from kspec.spec.step import Reply, Send, Step
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    BrokerId,
    Epoch,
    Error,
    LeaderAndIsr,
    MonotonicMs,
    PartitionEpoch,
    PartitionId,
    next_epoch,
)
from kspec.spec.zookeeper.node import ConditionalWrite, NodeCreation, PartitionNode, written_node
from kspec.spec.zookeeper.protocol import LiveBroker, ZkController
from kspec.spec.zookeeper.rules import (
    check_request_epoch,
    elect_for_reassignment,
    elect_for_shutdown,
    elect_offline,
    elect_preferred,
)


class ZkPartition(NamedTuple):
    """A partition as the controller has read it: assignment, and node. Kafka: `ControllerContext`."""

    partition_id: PartitionId
    replicas: tuple[BrokerId, ...]
    node: PartitionNode
    adding: frozenset[BrokerId] = NOBODY
    removing: frozenset[BrokerId] = NOBODY


class ZkControllerState(NamedTuple):
    """The state of the controller. A broker in controlled shutdown is live, but not *online*. Kafka: `ControllerContext`."""

    controller_epoch: Epoch
    live: tuple[LiveBroker, ...] = ()
    shutting_down: frozenset[BrokerId] = NOBODY
    partitions: tuple[ZkPartition, ...] = ()


ZkEffect: TypeAlias = (
    NodeCreation
    | ConditionalWrite
    | Send[LeaderAndIsrRequest]
    | Send[StopReplicaRequest]
    | Reply[ControlledShutdownResponse]
    | Reply[AlterPartitionResponse]
    | Reply[ErrorResponse]
)
ZkStep: TypeAlias = Step[ZkControllerState, ZkEffect]


# ---- reading the state


def live_brokers(state: ZkControllerState) -> frozenset[BrokerId]:
    """Brokers with an ephemeral node. **Kafka:** `ControllerContext.liveOrShuttingDownBrokerIds`."""
    return frozenset(broker.broker for broker in state.live)


def online_brokers(state: ZkControllerState) -> frozenset[BrokerId]:
    """Live brokers that are not in controlled shutdown. **Kafka:** `ControllerContext.liveBrokerIds`."""
    return live_brokers(state) - state.shutting_down


def zk_partition_of(state: ZkControllerState, partition_id: PartitionId) -> ZkPartition:
    """An existing partition, as the controller has read it last. **Kafka:** `ControllerContext`."""
    found = [entry for entry in state.partitions if entry.partition_id == partition_id]
    assert found, f"the controller has not read partition {partition_id}"
    return found[0]


def refresh(state: ZkControllerState, partition_id: PartitionId, node: PartitionNode) -> ZkControllerState:
    """The controller has read a partition's node again. **Kafka:** `KafkaController.updateLeaderAndIsrCache`."""
    return with_partition(state, zk_partition_of(state, partition_id)._replace(node=node))


def with_partition(state: ZkControllerState, changed: ZkPartition) -> ZkControllerState:
    """The state with one partition replaced."""
    return state._replace(
        partitions=tuple(changed if entry.partition_id == changed.partition_id else entry for entry in state.partitions)
    )


# ---- effects


def _announce(
    controller: ZkController, state: ZkControllerState, partition_id: PartitionId, to: tuple[BrokerId, ...]
) -> tuple[ZkEffect, ...]:
    """Announce a partition to the live ones of these brokers. **Kafka:** `addLeaderAndIsrRequestForBrokers`."""
    entry = zk_partition_of(state, partition_id)
    role = entry.node.state
    request = LeaderAndIsrRequest(
        state.controller_epoch,
        NO_BROKER_EPOCH,
        partition_id,
        role.leader,
        role.leader_epoch,
        role.isr,
        entry.node.partition_epoch,
        entry.replicas,
        entry.adding,
        entry.removing,
    )
    live = [broker for broker in state.live if broker.broker in to]
    return tuple(Send(broker.broker, request._replace(broker_epoch=controller.protocol.epoch_of(broker))) for broker in live)


def _stop(
    controller: ZkController, state: ZkControllerState, partition_id: PartitionId, to: BrokerId, delete: bool
) -> tuple[ZkEffect, ...]:
    """Stop a broker's replica, or its fetching, if the broker is live. **Kafka:** `addStopReplicaRequestForBrokers`."""
    epoch = zk_partition_of(state, partition_id).node.state.leader_epoch
    return tuple(
        Send(
            to, StopReplicaRequest(state.controller_epoch, controller.protocol.epoch_of(broker), partition_id, epoch, delete)
        )
        for broker in state.live
        if broker.broker == to
    )


def _decide(
    controller: ZkController,
    state: ZkControllerState,
    partition_id: PartitionId,
    decided: LeaderAndIsr | None,
    to: tuple[BrokerId, ...],
) -> ZkStep:
    """Write a decision, then announce it; do nothing if no replica could be elected, or a later controller has written the
    node.

    **Kafka:** `PartitionStateMachine.doElectLeaderForPartitions`, `ReplicaStateMachine.doHandleStateChanges`.
    """
    entry = zk_partition_of(state, partition_id)
    if decided is None or entry.node.controller_epoch > state.controller_epoch:
        return Step(state)
    checked = controller.protocol.checked_epoch(state.controller_epoch)
    write = ConditionalWrite(partition_id, decided, state.controller_epoch, entry.node.partition_epoch, checked)
    after = with_partition(state, entry._replace(node=written_node(write)))
    return Step(after, (write, *_announce(controller, after, partition_id, to)))


def _then(step: ZkStep, following: ZkStep) -> ZkStep:
    """Two steps in order; the second was made from the state of the first."""
    return Step(following.state, (*step.effects, *following.effects))


# ---- handlers


def on_new_partition(
    controller: ZkController, state: ZkControllerState, partition_id: PartitionId, replicas: tuple[BrokerId, ...]
) -> ZkStep:
    """A new partition: its online replicas are in sync, and the first of them leads. If there is none, the partition waits.

    **Kafka:** `PartitionStateMachine.initializeLeaderAndIsrForPartitions`, formerly `initializeLeaderAndIsrForPartition`.
    """
    online = tuple(replica for replica in replicas if replica in online_brokers(state))
    if not online:
        return Step(state)
    node = PartitionNode(LeaderAndIsr(online[0], Epoch(0), frozenset(online)), state.controller_epoch, PartitionEpoch(0))
    created = state._replace(partitions=(*state.partitions, ZkPartition(partition_id, replicas, node)))
    return Step(created, (NodeCreation(partition_id, node), *_announce(controller, created, partition_id, online)))


def on_failover(
    controller: ZkController,
    controller_epoch: Epoch,
    live: tuple[LiveBroker, ...],
    partitions: tuple[ZkPartition, ...],
) -> ZkStep:
    """A new controller: it announces all partitions that it has read, then elects leaders where the leader is gone.

    Parameters: its epoch, one above the last controller's; the content of ZooKeeper.

    **Kafka:** `KafkaController.onControllerFailover`, `ReplicaStateMachine.startup`, `PartitionStateMachine.startup`.
    """
    state = ZkControllerState(controller_epoch, live, NOBODY, partitions)
    step: ZkStep = Step(state)
    for entry in partitions:
        step = _then(step, Step(step.state, _announce(controller, step.state, entry.partition_id, entry.replicas)))
    return _then(step, elect_where_leader_is_gone(controller, step.state, live_brokers(step.state)))


def elect_where_leader_is_gone(controller: ZkController, state: ZkControllerState, there: frozenset[BrokerId]) -> ZkStep:
    """Elect an online leader for every partition whose leader is not `there`.

    **Kafka:** `PartitionStateMachine.triggerOnlinePartitionStateChange`.
    """
    step: ZkStep = Step(state)
    online = online_brokers(state)
    for entry in state.partitions:
        if entry.node.state.leader not in there:
            decided = elect_offline(entry.replicas, entry.node.state, online, controller.settings.unclean_election)
            to = tuple(replica for replica in entry.replicas if replica in online)
            step = _then(step, _decide(controller, step.state, entry.partition_id, decided, to))
    return step


def take_replica_offline(
    controller: ZkController, state: ZkControllerState, partition_id: PartitionId, broker: BrokerId
) -> ZkStep:
    """A replica is offline: it gets a request to stop, if its broker is live, leaves the ISR, and loses its leadership.

    **Kafka:** `ReplicaStateMachine.doHandleStateChanges` to `OfflineReplica`, `doRemoveReplicasFromIsr`.
    """
    entry = zk_partition_of(state, partition_id)
    others = tuple(replica for replica in entry.replicas if replica != broker)
    step: ZkStep = Step(state, _stop(controller, state, partition_id, broker, delete=False))
    if broker not in entry.node.state.isr:
        return _then(step, Step(state, _announce(controller, state, partition_id, others)))
    decided = controller.protocol.remove_from_isr(entry.node.state, broker, controller.settings.unclean_election)
    return _then(step, _decide(controller, state, partition_id, decided, others))


def fail_brokers(controller: ZkController, state: ZkControllerState, gone: tuple[BrokerId, ...]) -> ZkStep:
    """Brokers are gone: their partitions get other leaders, then the brokers leave every ISR, in the order given.

    An election is also tried again for partitions that a broker in controlled shutdown still leads.

    **Kafka:** `KafkaController.onBrokerFailure`, `onReplicasBecomeOffline`; the order is that of a hash map.
    """
    live = tuple(broker for broker in state.live if broker.broker not in gone)
    without = state._replace(live=live, shutting_down=state.shutting_down - frozenset(gone))
    step = elect_where_leader_is_gone(controller, without, online_brokers(without))
    for broker in gone:
        for entry in state.partitions:
            if broker in entry.replicas:
                step = _then(step, take_replica_offline(controller, step.state, entry.partition_id, broker))
    return step


def start_brokers(controller: ZkController, state: ZkControllerState, new: tuple[LiveBroker, ...]) -> ZkStep:
    """Brokers have come: their partitions are announced to them, then they may lead those without a leader.

    **Kafka:** `KafkaController.onBrokerStartup`.
    """
    live = tuple(sorted((*state.live, *new), key=lambda broker: broker.broker))
    step: ZkStep = Step(state._replace(live=live))
    for entry in state.partitions:
        to = tuple(broker.broker for broker in new if broker.broker in entry.replicas)
        step = _then(step, Step(step.state, _announce(controller, step.state, entry.partition_id, to)))
    return _then(step, elect_where_leader_is_gone(controller, step.state, live_brokers(step.state)))


def on_broker_change(controller: ZkController, state: ZkControllerState, nodes: tuple[LiveBroker, ...]) -> ZkStep:
    """The set of live brokers has changed: some are new, some restarted, some gone; handled in this order.

    Parameters: `nodes`, the brokers' ephemeral nodes. If several brokers are gone (or restarted), they leave the ISRs in the
    order in which the state lists them.

    **Kafka:** `KafkaController.processBrokerChange`.
    """
    present = frozenset(broker.broker for broker in nodes)
    known = live_brokers(state)
    gone = tuple(broker.broker for broker in state.live if broker.broker not in present)
    restarted = tuple(
        after.broker
        for before in state.live
        for after in nodes
        if before.broker == after.broker and controller.protocol.has_bounced(before, after)
    )
    step: ZkStep = Step(state)
    new = tuple(broker for broker in nodes if broker.broker not in known)
    if new:
        step = _then(step, start_brokers(controller, step.state, new))
    if restarted:
        step = _then(step, fail_brokers(controller, step.state, restarted))
        back = tuple(broker for broker in nodes if broker.broker in restarted)
        step = _then(step, start_brokers(controller, step.state, back))
    if gone:
        step = _then(step, fail_brokers(controller, step.state, gone))
    return step


def handle_controlled_shutdown(
    controller: ZkController, state: ZkControllerState, request: ControlledShutdownRequest, now_ms: MonotonicMs
) -> ZkStep:
    """A broker wants to stop: other brokers take over its partitions where they can, and it leaves the ISRs where it only
    follows.

    The answer names the partitions that it still leads; it may stop when there are none. Partitions with one replica stay as
    they are.

    Errors: `STALE_BROKER_EPOCH`; `BROKER_ID_NOT_REGISTERED` for a broker that is not live (in Kafka
    `BROKER_NOT_AVAILABLE`).

    **Kafka:** `KafkaController.doControlledShutdown`.
    """
    broker = request.broker
    live = next((entry for entry in state.live if entry.broker == broker), None)
    if live is None:
        return Step(state, (Reply(ControlledShutdownResponse(Error.BROKER_ID_NOT_REGISTERED)),))
    if check_request_epoch(live.broker_epoch, request.broker_epoch) != Error.NONE:
        return Step(state, (Reply(ControlledShutdownResponse(Error.STALE_BROKER_EPOCH)),))
    step: ZkStep = Step(state._replace(shutting_down=state.shutting_down | {broker}))
    replicated = [entry for entry in state.partitions if broker in entry.replicas and len(entry.replicas) > 1]
    for entry in replicated:
        if entry.node.state.leader == broker:
            shutting_down = step.state.shutting_down
            decided = elect_for_shutdown(entry.replicas, entry.node.state, live_brokers(state), shutting_down)
            step = _then(step, _decide(controller, step.state, entry.partition_id, decided, entry.replicas))
    for entry in replicated:
        if entry.node.state.leader != broker:
            step = _then(step, take_replica_offline(controller, step.state, entry.partition_id, broker))
    led = [entry for entry in step.state.partitions if entry.node.state.leader == broker and len(entry.replicas) > 1]
    answer = ControlledShutdownResponse(Error.NONE, frozenset(entry.partition_id for entry in led))
    return _then(step, Step(step.state, (Reply(answer),)))


def handle_elect_leaders(
    controller: ZkController, state: ZkControllerState, request: ElectLeadersRequest, now_ms: MonotonicMs
) -> ZkStep:
    """Make the preferred replica the leader of a partition.

    Errors: `ELECTION_NOT_NEEDED`, `PREFERRED_LEADER_NOT_AVAILABLE`.

    **Kafka:** `KafkaController.onReplicaElection`; `processReplicaLeaderElection` since 2.4.
    """
    entry = zk_partition_of(state, request.partition_id)
    if entry.node.state.leader == entry.replicas[0]:
        return Step(state, (Reply(ErrorResponse(Error.ELECTION_NOT_NEEDED)),))
    decided = elect_preferred(entry.replicas, entry.node.state, online_brokers(state))
    if decided is None:
        return Step(state, (Reply(ErrorResponse(Error.PREFERRED_LEADER_NOT_AVAILABLE)),))
    step = _decide(controller, state, request.partition_id, decided, entry.replicas)
    return _then(step, Step(step.state, (Reply(ErrorResponse(Error.NONE)),)))


def handle_alter_partition(
    controller: ZkController, state: ZkControllerState, request: AlterPartitionRequest, now_ms: MonotonicMs
) -> ZkStep:
    """A leader proposes an ISR instead of writing it. Neither the sender nor the proposed members are checked.

    Errors: `STALE_BROKER_EPOCH`, `FENCED_LEADER_EPOCH`. A proposal of the present ISR is answered with the present state.
    ZooKeeper refuses one that is based on another partition epoch: `refuse_alter_partition`.

    **Kafka:** `KafkaController.processAlterIsr` in 2.7 and 2.8.
    """
    live = next((entry for entry in state.live if entry.broker == request.broker), None)
    if live is None or live.broker_epoch != request.broker_epoch:
        return Step(state, (Reply(AlterPartitionResponse(Error.STALE_BROKER_EPOCH, request.partition_id)),))
    entry = zk_partition_of(state, request.partition_id)
    node = entry.node
    if request.leader_epoch < node.state.leader_epoch:
        return Step(state, (Reply(AlterPartitionResponse(Error.FENCED_LEADER_EPOCH, request.partition_id)),))
    proposed = LeaderAndIsr(request.broker, request.leader_epoch, proposed_isr(request))
    if proposed == node.state:
        return Step(state, (Reply(_as_it_is(request.partition_id, node)),))
    checked = controller.protocol.checked_epoch(state.controller_epoch)
    write = ConditionalWrite(request.partition_id, proposed, state.controller_epoch, request.partition_epoch, checked)
    written = written_node(write)
    after = with_partition(state, entry._replace(node=written))
    return Step(after, (write, Reply(_as_it_is(request.partition_id, written))))


def refuse_alter_partition(request: AlterPartitionRequest) -> AlterPartitionResponse:
    """The answer when ZooKeeper has refused the write of a proposal: it was based on another partition epoch.

    Errors: `INVALID_UPDATE_VERSION`.

    **Kafka:** `KafkaController.processAlterIsr`.
    """
    return AlterPartitionResponse(Error.INVALID_UPDATE_VERSION, request.partition_id)


def _as_it_is(partition_id: PartitionId, node: PartitionNode) -> AlterPartitionResponse:
    role = node.state
    return AlterPartitionResponse(Error.NONE, partition_id, role.leader, role.leader_epoch, role.isr, node.partition_epoch)


def on_reassignment(
    controller: ZkController,
    state: ZkControllerState,
    partition_id: PartitionId,
    replicas: tuple[BrokerId, ...],
) -> ZkStep:
    """Move a partition to other replicas: announce old and new ones together, in a new leader epoch.

    If the new ones are in sync already, the reassignment is over at once.

    **Kafka:** `KafkaController.onPartitionReassignment`, phase A; `updateLeaderEpochAndSendRequest`.
    """
    entry = zk_partition_of(state, partition_id)
    old = tuple(replica for replica in entry.replicas if replica not in replicas)
    moving = entry._replace(
        replicas=(*replicas, *old),
        adding=frozenset(replicas) - frozenset(entry.replicas),
        removing=frozenset(old),
    )
    moved = with_partition(state, moving)
    if frozenset(replicas) <= entry.node.state.isr:
        return on_reassignment_progress(controller, moved, partition_id)
    return _open_epoch(controller, moved, partition_id, moving.replicas)


def _open_epoch(
    controller: ZkController, state: ZkControllerState, partition_id: PartitionId, to: tuple[BrokerId, ...]
) -> ZkStep:
    """A new leader epoch with the same leader, so that all replicas take the announcement.

    **Kafka:** `updateLeaderEpoch`.
    """
    role = zk_partition_of(state, partition_id).node.state
    return _decide(controller, state, partition_id, role._replace(leader_epoch=next_epoch(role.leader_epoch)), to)


def on_reassignment_progress(controller: ZkController, state: ZkControllerState, partition_id: PartitionId) -> ZkStep:
    """The ISR of a partition under reassignment has changed: when all new replicas are in sync, the old ones are removed.

    First the leadership moves if the leader is removed or offline; otherwise a new leader epoch announces the new
    assignment. Then the old replicas stop and leave the ISR.

    **Kafka:** `KafkaController.onPartitionReassignment`, phase B; `isReassignmentComplete`,
    `moveReassignedPartitionLeaderIfRequired`, `stopRemovedReplicasOfReassignedPartition`.
    """
    entry = zk_partition_of(state, partition_id)
    targets = tuple(replica for replica in entry.replicas if replica not in entry.removing)
    if not frozenset(targets) <= entry.node.state.isr:
        return Step(state)
    over = with_partition(state, entry._replace(replicas=targets, adding=NOBODY, removing=NOBODY))
    if entry.node.state.leader in frozenset(targets) & online_brokers(state):
        step = _open_epoch(controller, over, partition_id, targets)
    else:
        decided = elect_for_reassignment(targets, entry.node.state, online_brokers(state))
        step = _decide(controller, over, partition_id, decided, targets)
    for broker in sorted(entry.removing):
        step = _then(step, take_replica_offline(controller, step.state, partition_id, broker))
        step = _then(step, Step(step.state, _stop(controller, step.state, partition_id, broker, delete=True)))
    return step
