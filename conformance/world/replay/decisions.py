"""The controller's decisions as records of the metadata log: the changes of a model's step to the controller's state.

The decision itself is that of `spec`'s controller. Here it only becomes records, of one batch.
"""

from kspec.conformance.world.environment.registry import Written
from kspec.conformance.world.replay.parties import Parties
from kspec.impl.wire.values import Message
from kspec.model_check.models.kafka.values import NO_TOPIC, ModelController, TopicRegistration
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import NO_LEADER

TOPIC_RESOURCE = 2
"""Kafka: `ConfigResource.Type.TOPIC`."""


class NotReplayedError(Exception):
    """A step that the world does not replay, with the reason."""


Records = list[Written]


def records_of_decision(
    parties: Parties, before: ModelController, after: ModelController, settings: dict[str, object]
) -> Records:
    """The batch of one decision; empty if the controller has decided nothing. `settings` are those of a new topic."""
    return [*_brokers(parties, before, after), *_partition(parties, before.topic, after.topic, settings)]


def _brokers(parties: Parties, before: ModelController, after: ModelController) -> Records:
    registry = parties.world.registry
    known = {entry.broker: entry for entry in before.brokers}
    changed = sorted(entry for entry in after.brokers if entry != known[entry.broker])
    found: Records = []
    for entry in changed:
        node, was = parties.node(entry.broker), known[entry.broker]
        if entry.broker_epoch != was.broker_epoch:
            offset = parties.world.log.end + len(found)
            if entry.broker != parties.real:
                found.append(registry.new_incarnation(node, offset, fenced=entry.fenced))
            elif parties.registration is not None:
                found.append(registry.real_incarnation(parties.registration, offset, fenced=entry.fenced))
            else:
                raise NotReplayedError("a registration for which the broker under test has not asked")
            parties.knows_epoch(entry.broker, entry.broker_epoch)
            was = BrokerRegistration(entry.broker, entry.broker_epoch, entry.incarnation, entry.fenced)
        fenced = entry.fenced if entry.fenced != was.fenced else None
        leaving = entry.in_controlled_shutdown and not was.in_controlled_shutdown
        if fenced is not None or leaving:
            found.append(registry.change(node, fenced=fenced, leaving=leaving))
    return found


def _partition(
    parties: Parties, before: TopicRegistration, after: TopicRegistration, settings: dict[str, object]
) -> Records:
    if after == before:
        return []
    if before == NO_TOPIC:
        return _creation(parties, after, settings)
    if after.partition_epoch != before.partition_epoch + 1 or after.leader_epoch - before.leader_epoch not in (0, 1):
        raise NotReplayedError(f"a decision with more than one change of the partition, from {before} to {after}")
    change = Message(partition_id=0, topic_id=parties.topic_id)
    changed = change.__dict__
    if after.leader_epoch != before.leader_epoch:
        changed["leader"] = parties.node(after.leader) if after.leader != NO_LEADER else NO_LEADER
    if after.isr != before.isr:
        changed["isr"] = parties.nodes(after.isr)
    if after.replicas != before.replicas:
        changed["replicas"] = parties.nodes(after.replicas)
        changed["directories"] = _directories(parties, after)
    if after.adding != before.adding:
        changed["adding_replicas"] = parties.nodes(after.adding)
    if after.removing != before.removing:
        changed["removing_replicas"] = parties.nodes(after.removing)
    if after.recovery != before.recovery:
        changed["leader_recovery_state"] = after.recovery.value
    return [("PartitionChangeRecord", change)]


def _creation(parties: Parties, topic: TopicRegistration, settings: dict[str, object]) -> Records:
    partition = Message(
        partition_id=0,
        topic_id=parties.topic_id,
        replicas=parties.nodes(topic.replicas),
        isr=parties.nodes(topic.isr),
        leader=parties.node(topic.leader),
        leader_epoch=topic.leader_epoch,
        partition_epoch=topic.partition_epoch,
        directories=_directories(parties, topic),
    )
    configs = [
        ("ConfigRecord", Message(resource_type=TOPIC_RESOURCE, resource_name=parties.topic, name=name, value=str(value)))
        for name, value in settings.items()
    ]
    return [
        ("TopicRecord", Message(name=parties.topic, topic_id=parties.topic_id)),
        *configs,
        ("PartitionRecord", partition),
    ]


def _directories(parties: Parties, topic: TopicRegistration) -> list[bytes]:
    return [parties.world.registry.directories[node] for node in parties.nodes(topic.replicas)]
