"""Groups change from the classic protocol to that of KIP-848 and back, with members in them (upgrade, downgrade)."""

from kspec.spec.coordinator.effects import AnswerMember
from kspec.spec.coordinator.group import (
    Group,
    GroupState,
    GroupStep,
    Member,
    metadata_for,
    select_protocol,
    topics_of_members,
    touched,
)
from kspec.spec.coordinator.loading import replay_all
from kspec.spec.coordinator.modern.group_steps import (
    after_records,
    current_record,
    fence,
    in_session,
    member_record,
    modern,
    tombstones_of_group,
)
from kspec.spec.coordinator.modern.records import ConsumerGroupEpochRecord, TargetEpochRecord, TargetRecord
from kspec.spec.coordinator.modern.state import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerGroupMember,
    assigned_in,
    metadata_hash,
    places,
    target_of,
)
from kspec.spec.coordinator.protocol import Coordinator, MigrationPolicy
from kspec.spec.coordinator.rebalance import group_record, prepare_rebalance, then
from kspec.spec.coordinator.records import GroupRecord, GroupTombstone
from kspec.spec.coordinator.rules.consumer_protocol import (
    AssignmentInBytes,
    NamedPartitions,
    read_assignment,
    read_subscription,
    write_assignment,
)
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.messages.groups.join_group import CONSUMER, JoinGroupResponse
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.topics import TopicIdPartition, TopicsImage, topic_named, topic_with_id
from kspec.spec.values import Error, Generation, GroupEpoch, Instant, MemberId, TimestampMs

UPGRADES = frozenset({MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE})
DOWNGRADES = frozenset({MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE})

NO_ASSIGNMENT = AssignmentInBytes(frozenset(), b"")


def by_id(topics: TopicsImage, partitions: NamedPartitions) -> Places:
    """Partitions by the ids of their topics, those that there are. **Kafka:** `Utils.toTopicPartitionMap`."""
    found = ((topic_named(topics, name), index) for name, index in partitions)
    return frozenset(TopicIdPartition(topic.topic_id, index) for topic, index in found if topic is not None)


def by_name(topics: TopicsImage, partitions: Places) -> NamedPartitions:
    """Partitions by the names of their topics. **Kafka:** `Utils.toConsumerProtocolAssignment`."""
    found = ((topic_with_id(topics, one.topic_id), one.partition) for one in partitions)
    return frozenset((topic.name, index) for topic, index in found if topic is not None)


# ---- from the classic protocol


def check_upgrade(coordinator: Coordinator, group: Group) -> Error:
    """Whether a classic group with members may become a consumer group when a consumer joins it; one that is empty may.

    Errors: `GROUP_ID_NOT_FOUND`, if the policy forbids it, its members are no consumers, or too many, or say what cannot be
    read, or use an assignor whose own data would be lost.

    **Kafka:** `GroupMetadataManager.validateOnlineUpgrade`, `convertToConsumerGroup`.
    """
    allowed = coordinator.settings.migration in UPGRADES
    fits = len(group.members) <= coordinator.settings.consumer_max_size
    legible = all(_is_legible(group, member) for member in group.members)
    refused = group.members and not (allowed and group.protocol_type == CONSUMER and fits and legible)
    return Error.GROUP_ID_NOT_FOUND if refused else Error.NONE


def _is_legible(group: Group, member: Member) -> bool:
    assignment = read_assignment(member.assignment) if member.assignment else NO_ASSIGNMENT
    if assignment is None or assignment.user_data:
        return False
    return read_subscription(metadata_for(member, group.protocol_name)) is not None


def upgraded(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """The consumer group that a classic group becomes: in its generation, each member with what it last had.

    Who waits to join or to get an assignment is told to join again.

    **Kafka:** `ConsumerGroup.fromClassicGroup`, `createConsumerGroupRecords`, `GroupMetadataManager.convertToConsumerGroup`.
    """
    epoch, group_id, topics = GroupEpoch(group.generation), group.group_id, coordinator.topics
    members = tuple(_as_consumer(topics, group, member, epoch) for member in group.members)
    names = frozenset(topic for member in members for topic in member.topics)
    records: tuple[GroupRecord, ...] = (
        GroupTombstone(group_id),
        *(member_record(group_id, member) for member in members),
        ConsumerGroupEpochRecord(group_id, epoch, metadata_hash(topics, names)),
        *(TargetRecord(group_id, member.member_id, places(member.assigned)) for member in members),
        TargetEpochRecord(group_id, epoch, TimestampMs(0)),
        *(current_record(group_id, member) for member in members),
    )
    step = after_records(group, *records)
    timed = tuple(in_session(coordinator, member, now) for member in modern(step.state).members)
    consumer = modern(step.state)._replace(members=timed)
    return Step(step.state._replace(consumer=consumer), (*step.effects, *_told_to_join(group)))


def _as_consumer(topics: TopicsImage, group: Group, member: Member, epoch: GroupEpoch) -> ConsumerGroupMember:
    subscription = read_subscription(metadata_for(member, group.protocol_name))
    assignment = read_assignment(member.assignment) or NO_ASSIGNMENT
    return ConsumerGroupMember(
        member.member_id,
        epoch,
        epoch,
        instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topics=frozenset() if subscription is None else subscription.topics,
        classic=ClassicMetadata(member.session_timeout_ms, member.protocols),
        assigned=assigned_in(by_id(topics, assignment.partitions), epoch),
    )


def _told_to_join(group: Group) -> tuple[AnswerMember, ...]:
    joining = ((one.join_request, one.member_id) for one in group.members)
    syncing = (one.sync_request for one in group.members)
    again = Error.REBALANCE_IN_PROGRESS
    return (
        *(AnswerMember(number, JoinGroupResponse(again, one)) for number, one in joining if number is not None),
        *(AnswerMember(number, SyncGroupResponse(again)) for number in syncing if number is not None),
    )


# ---- to the classic protocol


def to_classic_if_last(coordinator: Coordinator, group: Group, gone: tuple[MemberId, ...], now: Instant) -> GroupStep:
    """Members leave. If all who stay speak the classic protocol, and the policy allows it, the group is classic then.

    **Kafka:** `GroupMetadataManager.consumerGroupFenceMembers`, `validateOnlineDowngradeWithFencedMembers`.
    """
    left = tuple(member for member in modern(group).members if member.member_id not in gone)
    if not may_downgrade(coordinator, left):
        return fence(coordinator, group, gone)
    step = downgraded(coordinator, group, left, now)
    return then(step, lambda after: prepare_rebalance(coordinator, after, now))


def may_downgrade(coordinator: Coordinator, left: tuple[ConsumerGroupMember, ...]) -> bool:
    """Whether a group with these members alone is to be classic.

    **Kafka:** `validateOnlineDowngradeWithFencedMembers`, `validateOnlineDowngradeWithReplacedMember`.
    """
    allowed = coordinator.settings.migration in DOWNGRADES and len(left) <= coordinator.settings.max_size
    return bool(left) and allowed and all(member.classic is not None for member in left)


def downgraded(coordinator: Coordinator, group: Group, left: tuple[ConsumerGroupMember, ...], now: Instant) -> GroupStep:
    """The classic group of these members of a consumer group: its generation is the group epoch, and each has its target.

    **Kafka:** `ClassicGroup.fromConsumerGroup`, `GroupMetadataManager.convertToClassicGroup`.
    """
    consumer = modern(group)
    gone = replay_all(group, tombstones_of_group(group))
    classic = gone._replace(
        state=GroupState.STABLE,
        state_since_ms=now.timestamp,
        protocol_type=CONSUMER,
        generation=Generation(consumer.epoch),
        leader=left[0].member_id,
        members=tuple(_as_classic(member) for member in left),
    )
    classic = classic._replace(protocol_name=select_protocol(classic))
    classic = classic._replace(subscribed=topics_of_members(classic))
    assigned = tuple(_with_target(coordinator.topics, consumer, member, classic.protocol_name) for member in classic.members)
    classic = classic._replace(members=assigned)
    step = after_records(group, *tombstones_of_group(group), group_record(classic))
    for member in assigned:
        classic = touched(classic, member.member_id, now)
    return Step(classic, step.effects)


def _as_classic(member: ConsumerGroupMember) -> Member:
    classic = member.classic or ClassicMetadata(0, ())
    return Member(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        classic.session_timeout_ms,
        member.rebalance_timeout_ms,
        CONSUMER,
        classic.protocols,
    )


def _with_target(topics: TopicsImage, group: ConsumerGroup, member: Member, protocol: str | None) -> Member:
    """The member with its target, in the layout of its subscription under the group's protocol."""
    subscription = read_subscription(metadata_for(member, protocol))
    layout = 0 if subscription is None else subscription.layout
    return member._replace(assignment=write_assignment(layout, by_name(topics, target_of(group, member.member_id))))
