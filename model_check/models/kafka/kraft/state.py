"""The KRaft controller's state built from its slot, and the slot after a step.

A broker epoch is the number of the broker's registration, not an offset of the metadata log: rules compare broker epochs of
one broker only. The metadata log is not kept as records but as the images after each decision, since a decision is one
batch, and a broker takes whole batches.
"""

from kspec.model_check.models.kafka.cluster import NOW, in_order
from kspec.model_check.models.kafka.values import NO_TOPIC, ModelController, TopicRegistration
from kspec.model_check.models.parts import PARTITION
from kspec.spec.controller.rules.brokers import BrokerSession
from kspec.spec.controller.state import AppendRecords, ControllerState, ControllerStep
from kspec.spec.metadata import MetadataImage, PartitionRecord, PartitionRegistration
from kspec.spec.step import Reply
from kspec.spec.values import NO_LEADER, UNKNOWN_OFFSET, BrokerId, Epoch, MonotonicMs, Offset

END = Offset(1_000)
"""The end of the metadata log; the rules only ask which brokers lag behind it."""


LONG_AGO = MonotonicMs(0)


def registration(topic: TopicRegistration, first: BrokerId = NO_LEADER) -> PartitionRegistration:
    """The partition as a value of `spec`, with `first` as its preferred replica."""
    return PartitionRegistration(
        replicas=in_order(topic.replicas, first),
        isr=topic.isr,
        leader=topic.leader,
        leader_epoch=topic.leader_epoch,
        partition_epoch=topic.partition_epoch,
        recovery=topic.recovery,
        elr=topic.elr,
        last_known_elr=topic.last_known_elr,
        adding=topic.adding,
        removing=topic.removing,
    )


def topic_of(partition: PartitionRegistration) -> TopicRegistration:
    """The partition as the model keeps it, without the order of preference."""
    return TopicRegistration(
        replicas=frozenset(partition.replicas),
        isr=partition.isr,
        leader=partition.leader,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        recovery=partition.recovery,
        elr=partition.elr,
        last_known_elr=partition.last_known_elr,
        adding=partition.adding,
        removing=partition.removing,
    )


def controller_state(
    cluster: ModelController, first: BrokerId = NO_LEADER, silent: BrokerId = NO_LEADER, end_offset: Offset = END
) -> ControllerState:
    """The controller's state, with `first` as the preferred replica, and one broker `silent` for too long.

    A fenced broker is silent, too: no broker registers while heartbeats of its incarnation before still count.
    """
    partitions = () if cluster.topic == NO_TOPIC else (PartitionRecord(PARTITION, registration(cluster.topic, first)),)
    brokers = tuple(sorted(cluster.brokers))
    sessions = tuple(
        BrokerSession(
            entry.broker,
            LONG_AGO if entry.fenced or entry.broker == silent else NOW,
            Offset(end_offset - 1),
            Offset(0) if entry.broker in cluster.leaving else UNKNOWN_OFFSET,
        )
        for entry in brokers
    )
    return ControllerState(Epoch(0), MetadataImage(end_offset, brokers, partitions), sessions)


def cluster_of(state: ControllerState) -> ModelController:
    """The controller's slot after a decision."""
    topic = topic_of(state.image.partitions[0].registration) if state.image.partitions else NO_TOPIC
    brokers = frozenset(entry._replace(registered_at=Offset(0)) for entry in state.image.brokers)
    leaving = frozenset(session.broker for session in state.sessions if session.controlled_shutdown_offset != UNKNOWN_OFFSET)
    return ModelController(topic, brokers, leaving)


def appended(step: ControllerStep) -> bool:
    """Whether a decision goes into the metadata log."""
    return any(isinstance(effect, AppendRecords) for effect in step.effects)


def answer_of(step: ControllerStep) -> object:
    """The controller's answer."""
    return next(effect.message for effect in step.effects if isinstance(effect, Reply))
