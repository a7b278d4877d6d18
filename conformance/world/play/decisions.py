"""The controller's decisions as records of the metadata log: what a step of the model has changed in its state.

The decision itself is the work of `spec`'s controller. Here it is only written down, as one batch.
"""

from conformance.world.play.cast import Cast
from conformance.world.stage.registry import Written
from impl.wire.values import Message
from model_check.models.kafka.values import NO_TOPIC, Cluster, Topic
from spec.metadata import BrokerRegistration
from spec.values import NO_LEADER

TOPIC_RESOURCE = 2
"""Kafka: `ConfigResource.Type.TOPIC`."""


class UnplayedError(Exception):
    """A step that the world does not play, with the reason."""


Records = list[Written]


def records_of_decision(cast: Cast, before: Cluster, after: Cluster, settings: dict[str, object]) -> Records:
    """The batch of one decision; empty if the controller has decided nothing. `settings` are those of a new topic."""
    return [*_brokers(cast, before, after), *_partition(cast, before.topic, after.topic, settings)]


def _brokers(cast: Cast, before: Cluster, after: Cluster) -> Records:
    registry = cast.world.registry
    known = {entry.broker: entry for entry in before.brokers}
    changed = sorted(entry for entry in after.brokers if entry != known[entry.broker])
    found: Records = []
    for entry in changed:
        node, was = cast.node(entry.broker), known[entry.broker]
        if entry.broker_epoch != was.broker_epoch:
            offset = cast.world.log.end + len(found)
            if entry.broker != cast.real:
                found.append(registry.new_incarnation(node, offset, fenced=entry.fenced))
            elif cast.registration is not None:
                found.append(registry.real_incarnation(cast.registration, offset, fenced=entry.fenced))
            else:
                raise UnplayedError("a registration for which the broker under test has not asked")
            cast.knows_epoch(entry.broker, entry.broker_epoch)
            was = BrokerRegistration(entry.broker, entry.broker_epoch, entry.incarnation, entry.fenced)
        fenced = entry.fenced if entry.fenced != was.fenced else None
        leaving = entry.in_controlled_shutdown and not was.in_controlled_shutdown
        if fenced is not None or leaving:
            found.append(registry.change(node, fenced=fenced, leaving=leaving))
    return found


def _partition(cast: Cast, before: Topic, after: Topic, settings: dict[str, object]) -> Records:
    if after == before:
        return []
    if before == NO_TOPIC:
        return _creation(cast, after, settings)
    if after.partition_epoch != before.partition_epoch + 1 or after.leader_epoch - before.leader_epoch not in (0, 1):
        raise UnplayedError(f"a decision with more than one change of the partition, from {before} to {after}")
    change = Message(partition_id=0, topic_id=cast.topic_id)
    changed = change.__dict__
    if after.leader_epoch != before.leader_epoch:
        changed["leader"] = cast.node(after.leader) if after.leader != NO_LEADER else NO_LEADER
    if after.isr != before.isr:
        changed["isr"] = cast.nodes(after.isr)
    if after.replicas != before.replicas:
        changed["replicas"] = cast.nodes(after.replicas)
        changed["directories"] = _directories(cast, after)
    if after.adding != before.adding:
        changed["adding_replicas"] = cast.nodes(after.adding)
    if after.removing != before.removing:
        changed["removing_replicas"] = cast.nodes(after.removing)
    if after.recovery != before.recovery:
        changed["leader_recovery_state"] = after.recovery.value
    return [("PartitionChangeRecord", change)]


def _creation(cast: Cast, topic: Topic, settings: dict[str, object]) -> Records:
    partition = Message(
        partition_id=0,
        topic_id=cast.topic_id,
        replicas=cast.nodes(topic.replicas),
        isr=cast.nodes(topic.isr),
        leader=cast.node(topic.leader),
        leader_epoch=topic.leader_epoch,
        partition_epoch=topic.partition_epoch,
        directories=_directories(cast, topic),
    )
    configs = [
        ("ConfigRecord", Message(resource_type=TOPIC_RESOURCE, resource_name=cast.topic, name=name, value=str(value)))
        for name, value in settings.items()
    ]
    return [
        ("TopicRecord", Message(name=cast.topic, topic_id=cast.topic_id)),
        *configs,
        ("PartitionRecord", partition),
    ]


def _directories(cast: Cast, topic: Topic) -> list[bytes]:
    return [cast.world.registry.directories[node] for node in cast.nodes(topic.replicas)]
