"""The KRaft controller taken together from its slots, and apart again.

A broker epoch is the number of the broker's registration, not an offset of the metadata log: rules compare broker epochs of
one broker only. The metadata log is not kept as records but as the images after each decision, since a decision is one
batch, and a broker takes whole batches.
"""

from model_check.models.kafka.values import NO_TOPIC, PARTITION, AnyCluster, Cluster, Topic
from spec.controller.rules.brokers import Session
from spec.controller.state import AppendRecords, ControllerState, ControllerStep
from spec.metadata import BrokerRegistration, MetadataImage, PartitionRecord, PartitionRegistration
from spec.step import Reply
from spec.values import NO_BROKER_EPOCH, NO_LEADER, UNKNOWN_OFFSET, BrokerId, Epoch, Offset

END = Offset(1_000)
"""Where the metadata log ends, as far as the rules ask; they ask who lags behind it."""

NOW, LONG_AGO = 1_000_000, 0


def registration(topic: Topic, first: BrokerId = NO_LEADER) -> PartitionRegistration:
    """The partition as the rules have it, with `first` as its preferred replica."""
    others = sorted(topic.replicas - {first})
    replicas = (first, *others) if first in topic.replicas else tuple(others)
    return PartitionRegistration(replicas, *topic[1:])


def topic_of(partition: PartitionRegistration) -> Topic:
    """The partition as the model keeps it, without the order of preference."""
    return Topic(frozenset(partition.replicas), *partition[1:])


def controller_state(
    cluster: Cluster, first: BrokerId = NO_LEADER, silent: BrokerId = NO_LEADER, end_offset: Offset = END
) -> ControllerState:
    """The controller's state, with `first` as the preferred replica, and one broker `silent` for too long."""
    partitions = () if cluster.topic == NO_TOPIC else (PartitionRecord(PARTITION, registration(cluster.topic, first)),)
    brokers = tuple(sorted(cluster.brokers))
    sessions = tuple(
        Session(
            entry.broker,
            LONG_AGO if entry.broker == silent else NOW,
            Offset(end_offset - 1),
            Offset(0) if entry.broker in cluster.leaving else UNKNOWN_OFFSET,
        )
        for entry in brokers
    )
    return ControllerState(Epoch(0), MetadataImage(end_offset, brokers, partitions), sessions)


def cluster_of(state: ControllerState) -> Cluster:
    """The controller's slot after a decision."""
    topic = topic_of(state.image.partitions[0].registration) if state.image.partitions else NO_TOPIC
    brokers = frozenset(entry._replace(registered_at=Offset(0)) for entry in state.image.brokers)
    leaving = frozenset(session.broker for session in state.sessions if session.controlled_shutdown_offset != UNKNOWN_OFFSET)
    return Cluster(topic, brokers, leaving)


def appended(step: ControllerStep) -> bool:
    """Whether a decision goes into the metadata log."""
    return any(isinstance(effect, AppendRecords) for effect in step.effects)


def answer_of(step: ControllerStep) -> object:
    """What the controller answers."""
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))


def is_the_choice(before: AnyCluster, after: AnyCluster, chosen: BrokerId, actor: BrokerId) -> bool:
    """Whether a decision with `chosen` as the preferred replica is to be taken: so that each outcome is taken once.

    Either `chosen` becomes leader by it; or nobody does, and then the broker that it is all about stands for any.
    """
    leader = after.topic.leader
    if leader in (before.topic.leader, NO_LEADER):
        return chosen == actor
    return leader == chosen


def registered(cluster: AnyCluster, broker: BrokerId) -> BrokerRegistration:
    """The registration of a broker; all brokers of the model are registered."""
    return next(entry for entry in cluster.brokers if is_registration_of(entry, broker))


def is_registration_of(entry: BrokerRegistration, broker: BrokerId) -> bool:
    """Whether this is the registration of a broker."""
    return entry.broker == broker


def is_current_run(cluster: AnyCluster, broker: BrokerId, broker_epoch: int) -> bool:
    """Whether the registered run of a broker is the one with this broker epoch."""
    return broker_epoch != NO_BROKER_EPOCH and registered(cluster, broker).broker_epoch == broker_epoch
