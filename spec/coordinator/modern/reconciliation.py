"""The reconciliation of one member of a consumer group: from what it has to what it is to have (KIP-848).

A member first gives up what it has to, and says so by what it owns in a heartbeat; then it moves to the assignment epoch and
gets what is free; what others have yet to give up it gets later. So no partition is ever given to two.
"""

from typing import NamedTuple

from kspec.spec.coordinator.modern.state import (
    AssignedPartitions,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    assigned_in,
    ids_of,
    places,
    target_of,
    topics_of,
)
from kspec.spec.coordinator.protocol import CoordinatorProtocol
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.topics import TopicsImage
from kspec.spec.values import Error, GroupEpoch, TopicId


class Goal(NamedTuple):
    """The goal of a member: the epoch, its target, the topics it subscribes to; and which partitions have owners."""

    epoch: GroupEpoch
    target: Places
    subscribed: frozenset[TopicId]
    owned_by_any: Places


class ReconciledMember(NamedTuple):
    """The member after a heartbeat, or why it is fenced."""

    error: Error
    member: ConsumerGroupMember


def goal_of(topics: TopicsImage, group: ConsumerGroup, member: ConsumerGroupMember) -> Goal:
    """The goal of a member as the group stands. **Kafka:** `GroupMetadataManager.maybeReconcile`."""
    subscribed = ids_of(topics, topics_of(group, member))
    owned_by_any = frozenset(one.place for one in group.owners)
    return Goal(group.assignment_epoch, target_of(group, member.member_id), subscribed, owned_by_any)


def reconcile(
    protocol: CoordinatorProtocol, member: ConsumerGroupMember, goal: Goal, owned: Places | None, changed: bool
) -> ReconciledMember:
    """The member after a heartbeat in which it owns `owned` (`None`: as before) and may have `changed` its subscription.

    Errors: `FENCED_MEMBER_EPOCH` (a state that a newer broker has written, and the member owns something).

    **Kafka:** `CurrentAssignmentBuilder.build`.
    """
    shrinks = protocol.shrinks(changed)
    match member.state:
        case MemberState.STABLE if member.epoch == goal.epoch:
            return ReconciledMember(Error.NONE, _shrunk(protocol, member, goal, owned) if shrinks else member)
        case MemberState.UNREVOKED_PARTITIONS if protocol.still_owns(owned, places(member.pending)):
            return ReconciledMember(Error.NONE, _shrunk(protocol, member, goal, owned) if shrinks else member)
        case MemberState.UNREVOKED_PARTITIONS:
            epoch = protocol.epoch_after_revocation(member.epoch)
            return ReconciledMember(Error.NONE, _next(protocol, member, goal, owned, epoch))
        case MemberState.UNKNOWN if owned is None or owned:
            return ReconciledMember(Error.FENCED_MEMBER_EPOCH, member)
        case MemberState.UNKNOWN:
            return ReconciledMember(Error.NONE, _next(protocol, member, goal, owned, goal.epoch))
    return ReconciledMember(Error.NONE, _next(protocol, member, goal, owned, member.epoch))


def _next(
    protocol: CoordinatorProtocol, member: ConsumerGroupMember, goal: Goal, owned: Places | None, epoch: GroupEpoch
) -> ConsumerGroupMember:
    """**Kafka:** `CurrentAssignmentBuilder.computeNextAssignment`, `ConsumerGroupMember.Builder.updateMemberEpoch`."""
    target = protocol.target_of_member(goal.target, goal.subscribed)
    kept = tuple(one for one in member.assigned if one.place in target)
    revoked = tuple(one for one in member.assigned if one.place not in target)
    if revoked and protocol.still_owns(owned, places(revoked)):
        moved = member._replace(previous_epoch=member.epoch, epoch=epoch)
        return moved._replace(state=MemberState.UNREVOKED_PARTITIONS, assigned=kept, pending=revoked)
    wanted = target - places(kept)
    free = protocol.free_partitions(wanted, goal.owned_by_any, places(member.pending))
    state = MemberState.UNRELEASED_PARTITIONS if wanted - free else MemberState.STABLE
    assigned = _together(kept, assigned_in(free, goal.epoch))
    previous = protocol.previous_after_moving(member.previous_epoch, member.epoch, goal.epoch)
    return member._replace(previous_epoch=previous, epoch=goal.epoch, state=state, assigned=assigned, pending=())


def _together(some: AssignedPartitions, others: AssignedPartitions) -> AssignedPartitions:
    return tuple(sorted((*some, *others)))


def _shrunk(
    protocol: CoordinatorProtocol, member: ConsumerGroupMember, goal: Goal, owned: Places | None
) -> ConsumerGroupMember:
    """The member without what it no longer subscribes to, which is pending if the client still owns it.

    **Kafka:** `CurrentAssignmentBuilder.updateCurrentAssignment`.
    """
    dropped = tuple(one for one in member.assigned if one.place.topic_id not in goal.subscribed)
    if not dropped:
        return member
    kept = tuple(one for one in member.assigned if one.place.topic_id in goal.subscribed)
    pending = _together(member.pending, dropped)
    smaller = member._replace(
        previous_epoch=protocol.previous_after_shrinking(member.previous_epoch, member.epoch), assigned=kept
    )
    if protocol.still_owns(owned, places(pending)):
        return smaller._replace(state=MemberState.UNREVOKED_PARTITIONS, pending=pending)
    return smaller
