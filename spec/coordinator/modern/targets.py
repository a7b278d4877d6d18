"""The target of a consumer group: which member is to own what, computed by an assignor of the coordinator (KIP-848)."""

from collections import Counter

from kspec.spec.assignors.subscribers import Subscriber
from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.modern.group_steps import after_records, modern
from kspec.spec.coordinator.modern.records import TargetEpochRecord, TargetRecord
from kspec.spec.coordinator.modern.state import ConsumerGroup, TargetAssignment, ids_of, target_of, topics_of
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rules.hashing import in_java_order
from kspec.spec.step import Step
from kspec.spec.topics import TopicIdPartition, topic_with_id
from kspec.spec.values import Instant, TopicId


def preferred_assignor(coordinator: Coordinator, group: ConsumerGroup) -> str:
    """The assignor that most members prefer, else the first that is configured.

    **Kafka:** `ConsumerGroup.computePreferredServerAssignor`, in the order of Java's hash table.
    """
    votes = Counter(member.assignor for member in group.members if member.assignor is not None)
    names = in_java_order(tuple(votes))
    return max(names, key=lambda name: votes[name], default=coordinator.settings.consumer_assignors[0])


def assign(coordinator: Coordinator, group: ConsumerGroup) -> tuple[TargetAssignment, ...]:
    """The targets for the members as they are now. **Kafka:** `TargetAssignmentBuilder.build`."""
    topics = coordinator.topics
    members = tuple(
        Subscriber[bytes](
            member.member_id,
            frozenset(ids_of(topics, topics_of(group, member))),
            frozenset((place.topic_id, place.partition) for place in target_of(group, member.member_id)),
            instance_id=member.instance_id,
        )
        for member in group.members
    )
    ids = {topic_id for member in members for topic_id in member.topics}
    found = (topic_with_id(topics, TopicId(topic_id)) for topic_id in ids)
    counts: dict[bytes, int] = {topic.topic_id: len(topic.partitions) for topic in found if topic is not None}
    assigned = coordinator.protocol.assigns(preferred_assignor(coordinator, group), members, counts)
    return tuple(
        TargetAssignment(
            member.member_id,
            frozenset(TopicIdPartition(TopicId(one), partition) for one, partition in assigned[member.member_id]),
        )
        for member in members
    )


def assign_if_due(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """Compute the targets, if the group epoch has moved since, and the last computation is long enough ago.

    Members whose target stays are not stored.

    **Kafka:** `GroupMetadataManager.maybeUpdateTargetAssignment`, `canComputeNextTargetAssignment`,
    `TargetAssignmentBuilder.build`.
    """
    consumer, interval_ms = modern(group), coordinator.settings.consumer_assignment_interval_ms
    due = coordinator.protocol.may_assign(consumer.assigned_at_ms, interval_ms, now.timestamp)
    if consumer.assignment_epoch >= consumer.epoch or not due:
        return Step(group)
    changed = (one for one in assign(coordinator, consumer) if one not in consumer.targets)
    return after_records(
        group,
        *(TargetRecord(group.group_id, one.member_id, one.places) for one in changed),
        TargetEpochRecord(group.group_id, consumer.epoch, now.timestamp),
    )
