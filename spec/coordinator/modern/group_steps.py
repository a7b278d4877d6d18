"""Steps that the handlers of consumer groups have in common: what is stored is what the group becomes.

No handler changes a consumer group but by its records, timers excepted. So a coordinator that loads the log has the same.
"""

from kspec.spec.coordinator.effects import PersistRecords
from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.loading import replay_all
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerRecordKind,
    ConsumerTombstone,
    CurrentAssignmentRecord,
    TargetEpochRecord,
)
from kspec.spec.coordinator.modern.state import (
    ConsumerGroup,
    ConsumerGroupMember,
    metadata_hash,
    topics_of_group,
    with_consumer,
)
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import then
from kspec.spec.coordinator.records import GroupRecord, GroupTombstone
from kspec.spec.step import Step
from kspec.spec.values import GroupEpoch, GroupId, Instant, MemberId, TimestampMs


def modern(group: Group) -> ConsumerGroup:
    """The consumer group that a group is, a new one if it is none."""
    return ConsumerGroup() if group.consumer is None else group.consumer


def after_records(group: Group, *records: GroupRecord) -> GroupStep:
    """The group after records that it stores: as a load of them gives it."""
    if not records:
        return Step(group)
    return Step(replay_all(group, records), (PersistRecords(records),))


def with_timers(group: Group, member: ConsumerGroupMember) -> Group:
    """The group with other deadlines of a member, which nothing stores."""
    return group._replace(consumer=with_consumer(modern(group), member))


def member_record(group_id: GroupId, member: ConsumerGroupMember) -> ConsumerGroupMemberRecord:
    """A member as it is stored. **Kafka:** `newConsumerGroupMemberSubscriptionRecord`."""
    return ConsumerGroupMemberRecord(
        group_id,
        member.member_id,
        member.instance_id,
        member.rack_id,
        member.client_id,
        member.client_host,
        member.topics,
        member.regex,
        member.rebalance_timeout_ms,
        member.assignor,
        member.classic,
    )


def current_record(group_id: GroupId, member: ConsumerGroupMember) -> CurrentAssignmentRecord:
    """The progress of a member, as it is stored. **Kafka:** `newConsumerGroupCurrentAssignmentRecord`."""
    return CurrentAssignmentRecord(
        group_id,
        member.member_id,
        member.epoch,
        member.previous_epoch,
        member.state,
        member.assigned,
        member.pending,
    )


def tombstones_of_member(group_id: GroupId, member_id: MemberId) -> tuple[ConsumerTombstone, ...]:
    """The records that are stored when a member is gone. **Kafka:** `GroupMetadataManager.removeMember`."""
    kinds = (ConsumerRecordKind.CURRENT, ConsumerRecordKind.TARGET, ConsumerRecordKind.MEMBER)
    return tuple(ConsumerTombstone(group_id, kind, member_id) for kind in kinds)


def tombstones_of_group(group: Group) -> tuple[ConsumerTombstone, ...]:
    """The records of the end of a consumer group, and of its members. **Kafka:** `createGroupTombstoneRecords`."""
    consumer, group_id = modern(group), group.group_id
    ids = tuple(member.member_id for member in consumer.members)
    return (
        *(ConsumerTombstone(group_id, ConsumerRecordKind.CURRENT, member_id) for member_id in ids),
        *(ConsumerTombstone(group_id, ConsumerRecordKind.TARGET, member_id) for member_id in ids),
        ConsumerTombstone(group_id, ConsumerRecordKind.TARGET_EPOCH),
        *(ConsumerTombstone(group_id, ConsumerRecordKind.MEMBER, member_id) for member_id in ids),
        *(ConsumerTombstone(group_id, ConsumerRecordKind.REGULAR_EXPRESSION, one.regex) for one in consumer.regexes),
        ConsumerTombstone(group_id, ConsumerRecordKind.GROUP),
    )


def forgetting(group: Group) -> tuple[GroupRecord, ...]:
    """The records that are stored when a group is forgotten. **Kafka:** `Group.createGroupTombstoneRecords`."""
    return (GroupTombstone(group.group_id),) if group.consumer is None else tombstones_of_group(group)


def in_next_epoch(coordinator: Coordinator, group: Group) -> GroupStep:
    """Something has changed: the group epoch goes up. **Kafka:** `newConsumerGroupEpochRecord`."""
    return in_epoch(coordinator, group, GroupEpoch(modern(group).epoch + 1))


def in_epoch(coordinator: Coordinator, group: Group, epoch: GroupEpoch) -> GroupStep:
    """The group in a group epoch, with what it now reads. **Kafka:** `newConsumerGroupEpochRecord`."""
    found = metadata_hash(coordinator.topics, topics_of_group(modern(group)))
    return after_records(group, ConsumerGroupEpochRecord(group.group_id, epoch, found))


def changed_epoch(coordinator: Coordinator, before: Group, after: Group, changed: bool) -> GroupStep:
    """The group in its next epoch if something has changed that it reads, and a new one in its first.

    **Kafka:** `updateSubscriptionMetadata`, `ModernGroup`. **Departs from it:** Kafka stores no first epoch in which nothing
    has changed, and knows it all the same.
    """
    begun = modern(before).epoch if before.consumer is not None else coordinator.protocol.first_epoch
    found = metadata_hash(coordinator.topics, topics_of_group(modern(after)))
    if changed or found != modern(after).metadata_hash:
        return in_epoch(coordinator, after, GroupEpoch(begun + 1))
    return in_epoch(coordinator, after, begun) if begun > modern(after).epoch else Step(after)


def fence(coordinator: Coordinator, group: Group, gone: tuple[MemberId, ...]) -> GroupStep:
    """Members are out: their partitions are free, and the group epoch goes up.

    A regular expression that nobody subscribes to any more is forgotten.

    **Kafka:** `GroupMetadataManager.consumerGroupFenceMembers`, `maybeDeleteResolvedRegularExpressions`.
    """
    left = tuple(one for one in modern(group).members if one.member_id not in gone)
    wanted = {member.regex for member in left}
    unused = (one.regex for one in modern(group).regexes if one.regex not in wanted)
    removed = after_records(
        group,
        *(record for member_id in gone for record in tombstones_of_member(group.group_id, member_id)),
        *(ConsumerTombstone(group.group_id, ConsumerRecordKind.REGULAR_EXPRESSION, regex) for regex in unused),
    )
    moved = then(removed, lambda after: in_next_epoch(coordinator, after))
    if not coordinator.protocol.targets_follow(len(left)):
        return moved
    epoch = modern(moved.state).epoch
    return then(moved, lambda after: after_records(after, TargetEpochRecord(group.group_id, epoch, TimestampMs(0))))


def in_session(coordinator: Coordinator, member: ConsumerGroupMember, now: Instant) -> ConsumerGroupMember:
    """The member at the beginning of a session, its own time-out if it speaks the classic protocol.

    **Kafka:** `GroupMetadataManager.scheduleConsumerGroupSessionTimeout`.
    """
    timeout_ms = coordinator.settings.consumer_session_timeout_ms
    if member.classic is not None:
        timeout_ms = member.classic.session_timeout_ms
    return member._replace(session_deadline_ms=now.after(timeout_ms))
