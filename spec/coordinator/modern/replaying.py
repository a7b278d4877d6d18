"""A consumer group as its records give it. All of its state but timers comes from here, also while it runs."""

from collections.abc import Callable
from typing import TypeAlias

from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerRecord,
    ConsumerRecordKind,
    CurrentAssignmentRecord,
    RegularExpressionRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import (
    AssignedPartition,
    ConsumerGroup,
    ConsumerGroupMember,
    ResolvedRegularExpression,
    TargetAssignment,
    consumer_of,
    places,
    with_consumer,
)
from kspec.spec.values import GroupEpoch, MemberId

Owners: TypeAlias = frozenset[AssignedPartition]
"""The partitions of a group that somebody owns, each with the epoch in which its owner was when it got it."""

OwnersAfter: TypeAlias = Callable[[Owners, ConsumerGroupMember, ConsumerGroupMember], Owners]
"""The owners after a member has other partitions: of those before, and the member before and after."""


def owners_after(owners: Owners, before: ConsumerGroupMember, after: ConsumerGroupMember) -> Owners:
    """All partitions that a member had are free, and then all that it has are its own (KAFKA-16147).

    A partition is free only if its entry is this member's, by its epoch: while a log is read whose older records are gone,
    the next owner may come first (KAFKA-19862). Then the larger epoch stays.

    **Kafka:** `ConsumerGroup.maybeUpdatePartitionEpoch`, `addPartitionEpochs`, `removePartitionEpochs` (from 4.2 on).
    **Departs from it:** Kafka's coordinator does not load where the epoch that is there is not smaller (4.0 and 4.1: nor
    where the entry is another's).
    """
    had = places(before.assigned) | places(before.pending)
    freed = frozenset(one for one in owners if one.place not in had or one.epoch != before.epoch)
    has = places(after.assigned) | places(after.pending)
    later = frozenset(one.place for one in freed if one.place in has and one.epoch > after.epoch)
    kept = frozenset(one for one in freed if one.place not in has or one.place in later)
    return kept | {AssignedPartition(place, after.epoch) for place in has - later}


def replay_consumer_record(
    group: ConsumerGroup | None, record: ConsumerRecord, owners: OwnersAfter = owners_after
) -> ConsumerGroup | None:
    """The consumer group after one more of its records; `None` is a group that is not there.

    Any record but a tombstone makes a group that is not there: a log that has been compacted may begin anywhere. `owners`:
    how it keeps who owns what.

    **Kafka:** `GroupMetadataManager.replay`, `getOrMaybeCreatePersistedConsumerGroup`.
    """
    before = ConsumerGroup() if group is None else group
    match record:
        case ConsumerGroupEpochRecord():
            return before._replace(epoch=record.epoch, metadata_hash=record.metadata_hash)
        case ConsumerGroupMemberRecord():
            return _with_member(before, record)
        case TargetEpochRecord():  # of a group that has never changed Kafka stores no group epoch
            at_least = GroupEpoch(max(before.epoch, record.epoch))
            return before._replace(epoch=at_least, assignment_epoch=record.epoch, assigned_at_ms=record.assigned_at_ms)
        case TargetRecord():
            target = TargetAssignment(record.member_id, record.places)
            known = any(one.member_id == record.member_id for one in before.targets)
            replaced = (target if one.member_id == record.member_id else one for one in before.targets)
            return before._replace(targets=tuple(replaced) if known else (*before.targets, target))
        case CurrentAssignmentRecord():
            member = _known(before, record.member_id)
            changed = member._replace(
                epoch=record.epoch,
                previous_epoch=record.previous_epoch,
                state=record.state,
                assigned=record.assigned,
                pending=record.pending,
            )
            return _put(before, changed)._replace(owners=owners(before.owners, member, changed))
        case RegularExpressionRecord():
            found = ResolvedRegularExpression(record.regex, record.topics, record.metadata_offset, record.resolved_at_ms)
            others = (one for one in before.regexes if one.regex != record.regex)
            return before._replace(regexes=(*others, found))
    return None if group is None else _without(group, record.kind, record.name)


def _known(group: ConsumerGroup, member_id: MemberId) -> ConsumerGroupMember:
    member = consumer_of(group, member_id)
    return ConsumerGroupMember(member_id) if member is None else member


def _with_member(group: ConsumerGroup, record: ConsumerGroupMemberRecord) -> ConsumerGroup:
    """**Kafka:** `ConsumerGroupMember.Builder.updateWith` of a `ConsumerGroupMemberMetadataValue`."""
    member = _known(group, record.member_id)._replace(
        instance_id=record.instance_id,
        rack_id=record.rack_id,
        client_id=record.client_id,
        client_host=record.client_host,
        topics=record.topics,
        regex=record.regex or "",
        rebalance_timeout_ms=record.rebalance_timeout_ms,
        assignor=record.assignor,
        classic=record.classic,
    )
    return _put(group, member)


def _put(group: ConsumerGroup, member: ConsumerGroupMember) -> ConsumerGroup:
    if consumer_of(group, member.member_id) is None:
        return group._replace(members=(*group.members, member))
    return with_consumer(group, member)


NO_ASSIGNMENT_EPOCH = GroupEpoch(-1)
"""The assignment epoch of a group whose targets are forgotten."""


def _without(group: ConsumerGroup, kind: ConsumerRecordKind, name: str) -> ConsumerGroup | None:
    """**Kafka:** `GroupMetadataManager.replay` of records without a value. **Leaves out:** that Kafka's coordinator does not
    load a log in which the tombstones of a group come in another order than they are written."""
    member = consumer_of(group, MemberId(name))
    match kind:
        case ConsumerRecordKind.GROUP:
            return None
        case ConsumerRecordKind.MEMBER:
            return group._replace(members=tuple(one for one in group.members if one.member_id != name))
        case ConsumerRecordKind.TARGET_EPOCH:
            return group._replace(assignment_epoch=NO_ASSIGNMENT_EPOCH)
        case ConsumerRecordKind.TARGET:
            return group._replace(targets=tuple(one for one in group.targets if one.member_id != name))
        case ConsumerRecordKind.CURRENT if member is not None:
            gone = member._replace(epoch=GroupEpoch(-1), previous_epoch=GroupEpoch(-1), assigned=(), pending=())
            return _put(group, gone)._replace(owners=owners_after(group.owners, member, gone))
        case ConsumerRecordKind.REGULAR_EXPRESSION:
            return group._replace(regexes=tuple(one for one in group.regexes if one.regex != name))
    return group
