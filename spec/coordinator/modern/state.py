"""A consumer group (KIP-848) as its coordinator knows it: epochs, members, targets, who owns each partition."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.topics import TopicIdPartition, TopicsImage, topic_named
from kspec.spec.values import GroupEpoch, MemberId, MonotonicMs, TimestampMs, TopicId


class MemberState(Enum):
    """The state of a member of a consumer group, by the number in its record. Kafka: `MemberState`."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class AssignedPartition(NamedTuple):
    """A partition, and the epoch in which it was assigned, or in which its owner is. Kafka: assignment epochs (KIP-1251)."""

    place: TopicIdPartition
    epoch: GroupEpoch


AssignedPartitions = tuple[AssignedPartition, ...]
"""Partitions with epochs, in order."""


class ClassicMetadata(NamedTuple):
    """The protocols of a member that speaks the classic protocol; its time-out in milliseconds.

    Kafka: `ConsumerGroupMemberMetadataValue.ClassicMemberMetadata`.
    """

    session_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]


class ConsumerGroupMember(NamedTuple):
    """A member of a consumer group; time-outs and deadlines in milliseconds. Kafka: `ConsumerGroupMember`, and its timers.

    `assigned` it may own, `pending` it has to give up. `topics` and `regex` it subscribes to; `assignor` it prefers. All but
    the deadlines is in the log. `rebalance_deadline_ms`: when it has to have given up what is pending, if it is still in the
    epoch `rebalance_epoch`. `join_deadline_ms` and `sync_deadline_ms` are of a member that speaks the classic protocol.
    """

    member_id: MemberId
    epoch: GroupEpoch = GroupEpoch(0)
    previous_epoch: GroupEpoch = GroupEpoch(-1)
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    classic: ClassicMetadata | None = None
    assigned: AssignedPartitions = ()
    pending: AssignedPartitions = ()
    session_deadline_ms: MonotonicMs | None = None
    rebalance_deadline_ms: MonotonicMs | None = None
    rebalance_epoch: GroupEpoch = GroupEpoch(0)
    join_deadline_ms: MonotonicMs | None = None
    sync_deadline_ms: MonotonicMs | None = None


class TargetAssignment(NamedTuple):
    """The partitions that a member is to own. Kafka: `Assignment`, `ModernGroup.targetAssignment`."""

    member_id: MemberId
    places: Places


class ResolvedRegularExpression(NamedTuple):
    """The topics that a regular expression stood for when it was resolved. Kafka: `ResolvedRegularExpression`.

    `metadata_offset` says of which metadata.
    """

    regex: str
    topics: frozenset[str]
    metadata_offset: int = 0
    resolved_at_ms: TimestampMs = TimestampMs(0)


class ConsumerGroup(NamedTuple):
    """A consumer group. Kafka: `ConsumerGroup`, `ModernGroup`.

    The group epoch counts changes of members, subscriptions and topics; the targets are those of the assignment epoch,
    computed at `assigned_at_ms` (0: never). `owners` has for each partition that some member has, assigned or pending, the
    epoch of that member. Members and targets are in the order in which they came.
    """

    epoch: GroupEpoch = GroupEpoch(0)
    metadata_hash: int = 0
    assignment_epoch: GroupEpoch = GroupEpoch(0)
    assigned_at_ms: TimestampMs = TimestampMs(0)
    members: tuple[ConsumerGroupMember, ...] = ()
    targets: tuple[TargetAssignment, ...] = ()
    regexes: tuple[ResolvedRegularExpression, ...] = ()
    owners: frozenset[AssignedPartition] = frozenset()


def places(partitions: AssignedPartitions) -> Places:
    """The partitions without their epochs."""
    return frozenset(one.place for one in partitions)


def assigned_in(partitions: Places, epoch: GroupEpoch) -> AssignedPartitions:
    """Partitions that are assigned in this epoch. **Kafka:** `Utils.toAssignmentWithEpochs`."""
    return tuple(AssignedPartition(place, epoch) for place in sorted(partitions))


def consumer_of(group: ConsumerGroup, member_id: MemberId) -> ConsumerGroupMember | None:
    """The member with this id. **Kafka:** `ConsumerGroup.getOrMaybeCreateMember`."""
    return next((member for member in group.members if member.member_id == member_id), None)


def static_consumer(group: ConsumerGroup, instance_id: str | None) -> ConsumerGroupMember | None:
    """The static member with this instance id. **Kafka:** `ConsumerGroup.staticMember`."""
    return next((one for one in group.members if instance_id is not None and one.instance_id == instance_id), None)


def target_of(group: ConsumerGroup, member_id: MemberId) -> Places:
    """The partitions that a member is to own. **Kafka:** `ModernGroup.targetAssignment`."""
    return next((target.places for target in group.targets if target.member_id == member_id), frozenset())


def with_consumer(group: ConsumerGroup, changed: ConsumerGroupMember) -> ConsumerGroup:
    """The group with this member in place of the one with its id. Who owns what stays as it was."""
    members = tuple(changed if one.member_id == changed.member_id else one for one in group.members)
    return group._replace(members=members)


def resolved(group: ConsumerGroup, regex: str | None) -> ResolvedRegularExpression | None:
    """The topics of a regular expression, `None` before it is resolved. **Kafka:** `resolvedRegularExpression`."""
    return next((one for one in group.regexes if one.regex == regex), None)


def topics_of(group: ConsumerGroup, member: ConsumerGroupMember) -> frozenset[str]:
    """The topics that a member subscribes to, by name or by a regular expression that has been resolved.

    **Kafka:** `CurrentAssignmentBuilder.subscribedTopicIds`, `TargetAssignmentBuilder.ConsumerTargetAssignmentBuilder`.
    """
    expression = resolved(group, member.regex)
    return member.topics if expression is None else member.topics | expression.topics


def topics_of_group(group: ConsumerGroup) -> frozenset[str]:
    """The topics that any member subscribes to. **Kafka:** `ModernGroup.subscribedTopicNames`."""
    return frozenset(topic for member in group.members for topic in topics_of(group, member))


def is_reconciled(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether a member has what it is to have. **Kafka:** `ModernGroupMember.isReconciledTo`."""
    return member.state == MemberState.STABLE and member.epoch == group.assignment_epoch


def ids_of(topics: TopicsImage, names: frozenset[str]) -> frozenset[TopicId]:
    """The ids of those topics that there are. **Kafka:** `TopicIds`."""
    found = (topic_named(topics, name) for name in names)
    return frozenset(topic.topic_id for topic in found if topic is not None)


def metadata_hash(topics: TopicsImage, names: frozenset[str]) -> int:
    """A number that changes when one of these topics comes, goes, or gets more partitions; 0 if there is none of them.

    **Kafka:** `ModernGroup.computeMetadataHash`, `Utils.computeGroupHash`. **Leaves out:** racks; and it is another number
    than Kafka's, so that a coordinator which takes over from one of the other kind counts the group epoch up once.
    """
    found = (topic_named(topics, name) for name in names)
    parts = (int.from_bytes(one.topic_id, "big") * 2 + len(one.partitions) + 1 for one in found if one is not None)
    return sum(pow(part, 3, 2**61 - 1) for part in parts) % (2**61 - 1)
