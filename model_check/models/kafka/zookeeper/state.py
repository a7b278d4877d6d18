"""The state of ZooKeeper and its controller built from their slot, the slot after a step, and the requests to brokers.

The controller's cache of the partition is not kept. Before each decision it reads the node again, until its write is
accepted. It announces leader and leader epoch without reading, but no other party changes these. The writer of the node is
not kept either, because a replaced controller makes no decisions here.
"""

from typing import NamedTuple

from kspec.model_check.models.kafka.cluster import NOW, in_order
from kspec.model_check.models.kafka.reductions import ALL_REDUCTIONS, Reduction, order_for, repeats
from kspec.model_check.models.kafka.values import (
    FIRST_CONTROLLER,
    NO_TOPIC,
    Inbox,
    Order,
    RequestKind,
    TopicRegistration,
    ZkCluster,
)
from kspec.model_check.models.parts import PARTITION
from kspec.spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.step import Reply, Send
from kspec.spec.values import NO_LEADER, BrokerId, Error, LeaderAndIsr
from kspec.spec.zookeeper.controller import (
    ZkControllerState,
    ZkPartition,
    ZkStep,
    handle_alter_partition,
    refuse_alter_partition,
)
from kspec.spec.zookeeper.node import ConditionalWrite, NodeCreation, PartitionNode, write_partition
from kspec.spec.zookeeper.protocol import LiveBroker, ZkController, ZkControllerProtocol


class ZkDecision(NamedTuple):
    """A decision that has been written, and the requests to each broker, in order.

    `closed`: brokers to which the connection is closed before, so that their waiting requests are lost. `replaced`: a new
    controller has decided, on connections of its own.
    """

    after: ZkCluster
    mail: tuple[tuple[BrokerId, Order], ...] = ()
    closed: frozenset[BrokerId] = frozenset()
    replaced: bool = False


# ---- the controller


def node_of(topic: TopicRegistration) -> PartitionNode:
    """The partition's node."""
    return PartitionNode(LeaderAndIsr(topic.leader, topic.leader_epoch, topic.isr), FIRST_CONTROLLER, topic.partition_epoch)


def partitions_of(topic: TopicRegistration, first: BrokerId = NO_LEADER) -> tuple[ZkPartition, ...]:
    """The partition, if it exists, with `first` as its preferred replica."""
    if topic == NO_TOPIC:
        return ()
    replicas = in_order(topic.replicas, first)
    return (ZkPartition(PARTITION, replicas, node_of(topic), topic.adding, topic.removing),)


def zk_state(cluster: ZkCluster, first: BrokerId = NO_LEADER) -> ZkControllerState:
    """The controller's state when it has read the partition.

    `first` is the preferred replica, and the last one of several that leave the ISR in one event: so it may stay.
    """
    live = tuple(sorted(cluster.live, key=lambda known: (known.broker == first, known.broker)))
    return ZkControllerState(cluster.controller_epoch, live, cluster.leaving, partitions_of(cluster.topic, first))


def live_now(rules: ZkControllerProtocol, brokers: frozenset[BrokerRegistration]) -> frozenset[LiveBroker]:
    """The brokers with a session, as far as the controller can tell their sessions apart."""
    there = [LiveBroker(entry.broker, entry.broker_epoch) for entry in brokers if not entry.fenced]
    return frozenset(live._replace(broker_epoch=rules.epoch_of(live)) for live in there)


def topic_of(partition: ZkPartition) -> TopicRegistration:
    """The partition as the model keeps it, without the order of preference."""
    role = partition.node.state
    return TopicRegistration(
        replicas=frozenset(partition.replicas),
        isr=role.isr,
        leader=role.leader,
        leader_epoch=role.leader_epoch,
        partition_epoch=partition.node.partition_epoch,
        adding=partition.adding,
        removing=partition.removing,
    )


def decided_by(before: ZkCluster, step: ZkStep) -> ZkDecision:
    """A decision after its writes: all are accepted, because the node is as the controller has read it."""
    node, mail = node_of(before.topic), []
    for effect in step.effects:
        if isinstance(effect, NodeCreation):
            node = effect.node
        elif isinstance(effect, ConditionalWrite):
            result = write_partition(node, step.state.controller_epoch, effect)
            assert result.error == Error.NONE, f"the controller has read the node, and ZooKeeper says {result.error.name}"
            node = result.node
        elif isinstance(effect, Send):
            mail.append((effect.to, order_of(effect.message)))
    state, live = step.state, frozenset(step.state.live)
    topic = topic_of(state.partitions[0]) if state.partitions else NO_TOPIC
    after = ZkCluster(topic, before.brokers, state.shutting_down, live, state.controller_epoch)
    closed = frozenset(broker.broker for broker in before.live - live)
    return ZkDecision(after, tuple(mail), closed)


def zk_answer_of(step: ZkStep) -> object:
    """The controller's answer."""
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


class ZkProposalOutcome(NamedTuple):
    """The outcome of a leader's proposal: whether the ISR is written, and the answer."""

    written: bool
    response: AlterPartitionResponse
    step: ZkStep


def outcome_of_proposal(control: ZkController, cluster: ZkCluster, request: AlterPartitionRequest) -> ZkProposalOutcome:
    """The controller's decision on a proposal, and ZooKeeper's on the write."""
    step = handle_alter_partition(control, zk_state(cluster), request, NOW)
    response = zk_answer_of(step)
    assert isinstance(response, AlterPartitionResponse)
    writes = [effect for effect in step.effects if isinstance(effect, ConditionalWrite)]
    written = [write_partition(node_of(cluster.topic), cluster.controller_epoch, write).error for write in writes]
    if written == [Error.INVALID_UPDATE_VERSION]:
        return ZkProposalOutcome(False, refuse_alter_partition(request), step)
    return ZkProposalOutcome(bool(written), response, step)


# ---- its requests


def order_of(request: LeaderAndIsrRequest | StopReplicaRequest) -> Order:
    """A request as the model keeps it."""
    if isinstance(request, StopReplicaRequest):
        told = RequestKind.GIVE_UP if request.delete else RequestKind.STOP_FETCHING
        return Order(told, request.controller_epoch, request.broker_epoch, NO_TOPIC)
    topic = TopicRegistration(
        replicas=frozenset(request.replicas),
        isr=request.isr,
        leader=request.leader,
        leader_epoch=request.leader_epoch,
        partition_epoch=request.partition_epoch,
        adding=request.adding,
        removing=request.removing,
    )
    return Order(RequestKind.LEAD_OR_FOLLOW, request.controller_epoch, request.broker_epoch, topic)


def leader_and_isr(order: Order) -> LeaderAndIsrRequest:
    """The request as the rules have it."""
    topic = order.topic
    return LeaderAndIsrRequest(
        controller_epoch=order.controller_epoch,
        broker_epoch=order.broker_epoch,
        partition_id=PARTITION,
        leader=topic.leader,
        leader_epoch=topic.leader_epoch,
        isr=topic.isr,
        partition_epoch=topic.partition_epoch,
        replicas=tuple(sorted(topic.replicas)),
        adding=topic.adding,
        removing=topic.removing,
    )


def stop_replica(order: Order) -> StopReplicaRequest:
    """The request as the rules have it."""
    delete = order.told == RequestKind.GIVE_UP
    return StopReplicaRequest(order.controller_epoch, order.broker_epoch, PARTITION, order.topic.leader_epoch, delete)


def with_mail(
    broker: BrokerId, inbox: Inbox, decision: ZkDecision, reductions: frozenset[Reduction] = ALL_REDUCTIONS
) -> Inbox:
    """The requests that a broker has still to handle after a decision."""
    orders, stray = inbox.orders, inbox.stray
    if decision.replaced:
        orders, stray = (), inbox.orders[:1] or inbox.stray
    elif broker in decision.closed:
        orders = ()
    for order in (order for to, order in decision.mail if to == broker):
        known = order_for(broker, order) if Reduction.UNREAD_FIELDS in reductions else order
        if Reduction.REPEATED_REQUESTS not in reductions or not repeats(known, orders):
            orders = (*orders, known)
    return Inbox(orders, stray)
