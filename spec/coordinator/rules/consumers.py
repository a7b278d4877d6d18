"""Rules of consumer groups (KIP-848) in which releases differ: epochs, reconciliation, targets, commits."""

from collections.abc import Set as AbstractSet

from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import GroupEpoch, TimestampMs, TopicId

Places = frozenset[TopicIdPartition]
"""Partitions by the ids of their topics."""


def is_known_epoch(received: int, epoch: int, previous: int, owned: Places | None, assigned: Places) -> bool:
    """Whether a heartbeat's epoch is the member's, or the one before, and the member owns nothing that it is not to own.

    The second comes from a member that did not get the answer with its new epoch. One that joins is no exception: a member
    that joins again is fenced until its session ends (KAFKA-19233).

    **Kafka:** 4.0 and 4.1, `GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid`.
    """
    return received == epoch or (received < epoch and received == previous and owned is not None and owned <= assigned)


def is_known_epoch_or_joins(received: int, epoch: int, previous: int, owned: Places | None, assigned: Places) -> bool:
    """The same, but a member may always join again (KAFKA-19233).

    **Kafka:** from 4.2 on, `GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid`.
    """
    return received == 0 or is_known_epoch(received, epoch, previous, owned, assigned)


def still_owns(owned: Places | None, revoked: Places) -> bool:
    """Whether the client has not yet given up all of these; who says nothing of what it owns has not.

    **Kafka:** `CurrentAssignmentBuilder.ownsRevokedPartitions`.
    """
    return owned is None or not owned.isdisjoint(revoked)


def next_epoch_after_revocation(epoch: GroupEpoch) -> GroupEpoch:
    """A member that has given up what it had to, and has to give up more, goes on in the epoch after its own.

    **Kafka:** 4.0 and 4.1, `CurrentAssignmentBuilder.build`.
    """
    return GroupEpoch(epoch + 1)


def same_epoch_after_revocation(epoch: GroupEpoch) -> GroupEpoch:
    """It goes on in its own epoch. **Kafka:** from 4.2 on, `CurrentAssignmentBuilder.build`."""
    return epoch


def free_if_unowned(wanted: Places, owned_by_any: AbstractSet[TopicIdPartition], own_pending: Places) -> Places:
    """Partitions that a member may get: those that nobody owns. **Kafka:** 4.0 and 4.1, `computeNextAssignment`."""
    return wanted - owned_by_any


def free_if_unowned_or_own(wanted: Places, owned_by_any: AbstractSet[TopicIdPartition], own_pending: Places) -> Places:
    """Also those that the member itself was to give up. **Kafka:** from 4.2 on, `computeNextAssignment`."""
    return frozenset(one for one in wanted if one not in owned_by_any or one in own_pending)


def whole_target(target: Places, subscribed: frozenset[TopicId]) -> Places:
    """A member's target as it was computed. **Kafka:** 4.0 and 4.1, `CurrentAssignmentBuilder.computeNextAssignment`."""
    return target


def subscribed_target(target: Places, subscribed: frozenset[TopicId]) -> Places:
    """As far as the member still subscribes to it. **Kafka:** from 4.2 on, `computeNextAssignment`."""
    return frozenset(one for one in target if one.topic_id in subscribed)


def never_shrinks(changed: bool) -> bool:
    """Partitions that a member no longer subscribes to stay until the next target. **Kafka:** 4.0 and 4.1, `build`."""
    return False


def shrinks_if_changed(changed: bool) -> bool:
    """A member that changes its subscription gives up at once what is no longer in it.

    **Kafka:** from 4.2 on, `CurrentAssignmentBuilder.updateCurrentAssignment`.
    """
    return changed


def keeps_previous(previous: GroupEpoch, epoch: GroupEpoch) -> GroupEpoch:
    """A member that so gives up something keeps its previous epoch. **Kafka:** 4.2, `updateCurrentAssignment`."""
    return previous


def epoch_is_previous(previous: GroupEpoch, epoch: GroupEpoch) -> GroupEpoch:
    """Its epoch is the previous one as well. **Kafka:** from 4.3 on, `updateCurrentAssignment`."""
    return epoch


def at_once(assigned_at_ms: TimestampMs, interval_ms: int, now: TimestampMs) -> bool:
    """A target is computed as soon as the group epoch moves. **Kafka:** up to 4.2, `updateTargetAssignment`."""
    return True


def after_interval(assigned_at_ms: TimestampMs, interval_ms: int, now: TimestampMs) -> bool:
    """Not before `group.consumer.assignment.interval.ms` after the last one, the first at once (KIP-1263).

    **Kafka:** from 4.3 on, `GroupMetadataManager.canComputeNextTargetAssignment`.
    """
    return assigned_at_ms == 0 or interval_ms == 0 or now >= assigned_at_ms + interval_ms


def never_of_old_epoch(received: int, assigned_in: int | None) -> bool:
    """A commit of an earlier epoch is refused. **Kafka:** up to 4.2, `ConsumerGroup.validateOffsetCommit`."""
    return False


def if_owned_since(received: int, assigned_in: int | None) -> bool:
    """It counts for partitions that the member has had since that epoch or an earlier one (KIP-1251).

    **Kafka:** from 4.3 on, `ConsumerGroup.createAssignmentEpochValidator`.
    """
    return assigned_in is not None and received >= assigned_in


def no_new_target(before: str, after: str) -> bool:
    """Another preferred assignor waits for the next change. **Kafka:** up to 4.3, `consumerGroupHeartbeat`."""
    return False


def new_target_if_other(before: str, after: str) -> bool:
    """Another preferred assignor is a change of its own. **Kafka:** from 4.4 on, `consumerGroupHeartbeat`."""
    return before != after


def only_by_member_id(knows_member: bool, knows_instance: bool) -> bool:
    """A full group has room for whom it knows by the member id. **Kafka:** up to 4.3, `throwIfConsumerGroupIsFull`."""
    return knows_member


def by_member_or_instance_id(knows_member: bool, knows_instance: bool) -> bool:
    """Also for a static member that starts again. **Kafka:** from 4.4 on, `throwIfConsumerGroupIsFull`."""
    return knows_member or knows_instance


def released_by_leaving(has_left: bool, is_own_id: bool) -> bool:
    """The place of a static member is free once it has left; its own id, with which it may join again, changes nothing.

    **Kafka:** up to 4.4, `GroupMetadataManager.throwIfInstanceIdIsUnreleased`.
    """
    return has_left


def released_to_itself(has_left: bool, is_own_id: bool) -> bool:
    """Under its own id it may join again, as any other member may. **Kafka:** in no release yet."""
    return has_left or is_own_id


def not_without_members(left: int) -> bool:
    """Targets of a group that has become empty are those of the last epoch with members.

    **Kafka:** up to 4.3, `GroupMetadataManager.consumerGroupFenceMembers`.
    """
    return False


def if_nobody_is_left(left: int) -> bool:
    """They are those of its present epoch, and the next member is assigned to at once. **Kafka:** from 4.4 on."""
    return left == 0


def as_it_says(received: int, owned: Places | None) -> Places | None:
    """A member's request is believed that it owns no more than it says, also a join. **Kafka:** `ownsRevokedPartitions`."""
    return owned


def unless_it_joins(received: int, owned: Places | None) -> Places | None:
    """A join may be an old one, so it gives nothing up; the next heartbeat does. **Kafka:** in no release yet."""
    return None if received == 0 else owned


def epoch_before(previous: GroupEpoch, epoch: GroupEpoch, following: GroupEpoch) -> GroupEpoch:
    """A member's previous epoch is the one it was in, also if it stays there. **Kafka:** `updateMemberEpoch`."""
    return epoch


def last_other_epoch(previous: GroupEpoch, epoch: GroupEpoch, following: GroupEpoch) -> GroupEpoch:
    """It is the last one that was another, however often its answer is lost. **Kafka:** in no release yet."""
    return previous if epoch == following else epoch


def without_pending(assigned: Places, pending: Places) -> Places:
    """A member is described by what it may own. **Kafka:** up to 4.2, `asConsumerGroupDescribeMember`."""
    return assigned


def with_pending(assigned: Places, pending: Places) -> Places:
    """Also by what it has to give up, until it has. **Kafka:** from 4.3 on, `ConsumerGroupMember`."""
    return assigned | pending


def behind_group(epoch: GroupEpoch, group_epoch: GroupEpoch, assignment_epoch: GroupEpoch) -> bool:
    """A member of the classic protocol has to join again once the group epoch is beyond its own.

    **Kafka:** up to 4.2, `classicGroupHeartbeatToConsumerGroup`, `throwIfRebalanceInProgress`.
    """
    return epoch < group_epoch


def behind_targets(epoch: GroupEpoch, group_epoch: GroupEpoch, assignment_epoch: GroupEpoch) -> bool:
    """It has to once there are targets of a later epoch, which may come after the group epoch (KIP-1263).

    **Kafka:** from 4.3 on, `classicGroupHeartbeatToConsumerGroup`, `throwIfRebalanceInProgress`.
    """
    return epoch < assignment_epoch


def stable_when_classic(reads_others: bool, targets_are_old: bool) -> bool:
    """A group that becomes classic as its last consumer joins by JoinGroup is stable, with the targets that it had.

    If a target was computed for the member's other topics, it is told an epoch in which the classic group is not.

    **Kafka:** up to 4.1.0, `GroupMetadataManager.classicGroupJoinToConsumerGroup`.
    """
    return False


def rebalances_if_it_reads_others(reads_others: bool, targets_are_old: bool) -> bool:
    """It rebalances if that member reads other topics than before. **Kafka:** 4.1.1 and 4.2."""
    return reads_others


def rebalances_if_targets_are_old(reads_others: bool, targets_are_old: bool) -> bool:
    """It rebalances if there are no targets of the group's epoch yet. **Kafka:** from 4.3 on."""
    return targets_are_old
