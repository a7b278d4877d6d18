"""The course of a rebalance: members join, a generation begins, its assignment is handed out.

Functions here are the steps that the handlers have in common. None of them stores anything but the generation in which the
last member has left.
"""

from collections.abc import Callable

from kspec.spec.coordinator.effects import AnswerMember, GroupEffect, PersistRecords
from kspec.spec.coordinator.group import (
    MAY_REBALANCE,
    Group,
    GroupState,
    GroupStep,
    InitialDelay,
    Member,
    all_joined,
    metadata_for,
    rebalance_timeout_ms,
    select_protocol,
    topics_of_members,
    transition,
    with_member,
    without,
)
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.records import GroupMetadataRecord, GroupRecord, MemberRecord
from kspec.spec.messages.groups.join_group import JoinedMember, JoinGroupResponse
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, Instant, MemberId


def then(before: GroupStep, following: Callable[[Group], GroupStep]) -> GroupStep:
    """One step, and a second from where it ends. What the two store is stored before all answers."""
    after = following(before.state)
    effects = (*before.effects, *after.effects)
    records = tuple(record for effect in effects for record in _stored_by(effect))
    others = tuple(effect for effect in effects if not _stored_by(effect))
    return Step(after.state, (PersistRecords(records), *others) if records else others)


def _stored_by(effect: GroupEffect) -> tuple[GroupRecord, ...]:
    match effect:
        case PersistRecords(records):
            return records
    return ()


# ---- answers


def answer_join(group: Group, member: Member, response: JoinGroupResponse) -> GroupStep:
    """Answer a member's JoinGroup, if it waits for one. **Kafka:** `ClassicGroup.completeJoinFuture`."""
    if member.join_request is None:
        return Step(group)
    return Step(with_member(group, member._replace(join_request=None)), (AnswerMember(member.join_request, response),))


def answer_sync(group: Group, member: Member, response: SyncGroupResponse) -> GroupStep:
    """Answer a member's SyncGroup, if it waits for one. **Kafka:** `ClassicGroup.completeSyncFuture`."""
    if member.sync_request is None:
        return Step(group)
    return Step(with_member(group, member._replace(sync_request=None)), (AnswerMember(member.sync_request, response),))


def joined(group: Group, member_id: MemberId) -> JoinGroupResponse:
    """The answer to a member of a generation; the leader's lists all members.

    **Kafka:** `completeClassicGroupJoin`, `currentClassicGroupMembers`.
    """
    members: tuple[JoinedMember, ...] = ()
    if group.leader == member_id:
        members = joined_members(group)
    return JoinGroupResponse(
        Error.NONE,
        member_id,
        group.generation,
        group.protocol_type,
        group.protocol_name,
        leader_or_none(group),
        members,
    )


def joined_members(group: Group) -> tuple[JoinedMember, ...]:
    """All members, as the leader is told of them. **Kafka:** `ClassicGroup.currentClassicGroupMembers`."""
    return tuple(
        JoinedMember(member.member_id, member.instance_id, metadata_for(member, group.protocol_name))
        for member in group.members
    )


def leader_or_none(group: Group) -> MemberId:
    """The leader's id, `NO_MEMBER_ID` if there is none. **Kafka:** `ClassicGroup.NO_LEADER`."""
    return NO_MEMBER_ID if group.leader is None else group.leader


def remove_and_answer(group: Group, member: Member) -> GroupStep:
    """A member leaves or is removed; what it waits for is answered `UNKNOWN_MEMBER_ID`.

    **Kafka:** `removeMemberAndUpdateClassicGroup`, `removeCurrentMemberFromClassicGroup`. **Departs from it:** Kafka forgets
    a waiting SyncGroup, which is then never answered.
    """
    response = JoinGroupResponse(Error.UNKNOWN_MEMBER_ID)
    step = then(
        answer_join(group, member, response),
        lambda after: answer_sync(after, member, SyncGroupResponse(Error.UNKNOWN_MEMBER_ID)),
    )
    return Step(without(step.state, frozenset({member.member_id})), step.effects)


# ---- the steps


def rebalance_or_complete_join(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """Something about the members has changed: start a rebalance, or end the joining if that was awaited.

    **Kafka:** `GroupMetadataManager.maybePrepareRebalanceOrCompleteJoin`.
    """
    if group.state in MAY_REBALANCE:
        return prepare_rebalance(coordinator, group, now)
    return complete_join_phase(coordinator, group, now)


def prepare_rebalance(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """Members have to join again. A group that was empty waits for further members first.

    Members that wait for the assignment of the present generation get `REBALANCE_IN_PROGRESS`.

    **Kafka:** `GroupMetadataManager.prepareRebalance`.
    """
    step: GroupStep = Step(group)
    if group.state == GroupState.COMPLETING_REBALANCE:
        step = reset_assignment(group, Error.REBALANCE_IN_PROGRESS, now)
    cleared = step.state._replace(pending_sync=frozenset(), sync_deadline_ms=None)
    preparing = transition(cleared, GroupState.PREPARING_REBALANCE, now)
    if group.state == GroupState.EMPTY:
        delay_ms = coordinator.settings.initial_rebalance_delay_ms
        initial = InitialDelay(delay_ms, max(rebalance_timeout_ms(group) - delay_ms, 0))
        return Step(preparing._replace(join_deadline_ms=now.after(delay_ms), initial_delay=initial), step.effects)
    return then(Step(preparing, step.effects), lambda after: _complete_join_or_wait(coordinator, after, now))


def _complete_join_or_wait(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    if all_joined(group):
        return complete_join(coordinator, group, now)
    return Step(group._replace(join_deadline_ms=now.after(rebalance_timeout_ms(group)), initial_delay=None))


def complete_join_phase(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """End the joining if all have joined, except in the first rebalance of a group that was empty, which waits its time.

    **Kafka:** `GroupMetadataManager.maybeCompleteJoinPhase`.
    """
    initial = group.previous == GroupState.EMPTY
    if group.state != GroupState.PREPARING_REBALANCE or initial or not all_joined(group):
        return Step(group)
    return complete_join(coordinator, group, now)


def complete_join_if_preparing(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """End the joining if all who are left have joined. **Kafka:** `removePendingMemberAndUpdateClassicGroup`."""
    if group.state == GroupState.PREPARING_REBALANCE and all_joined(group):
        return complete_join(coordinator, group, now)
    return Step(group)


def complete_join(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """The joining ends, and the next generation begins. Dynamic members that have not joined are out.

    If there are members and none has joined, static ones that is, the group waits once more. If nobody is left, the group is
    empty, which is stored.

    **Kafka:** `GroupMetadataManager.completeClassicGroupJoin`, `ClassicGroup.initNextGeneration`.
    """
    rules = coordinator.protocol
    late = frozenset(
        member.member_id
        for member in group.members
        if rules.is_left_behind(member.join_request is not None, member.instance_id is not None)
    )
    group = without(group, late)
    group = group._replace(join_deadline_ms=None, initial_delay=None)
    leader = _leader_that_joined(group)
    if leader is None and group.members:
        return Step(group._replace(join_deadline_ms=now.after(rebalance_timeout_ms(group))))
    group = group._replace(
        leader=leader, generation=Generation(rules.following_generation(group.generation)), pending_sync=frozenset()
    )
    group = group._replace(protocol_name=select_protocol(group))
    group = group._replace(subscribed=topics_of_members(group))
    if not group.members:
        empty = transition(group, GroupState.EMPTY, now)
        return Step(empty, (PersistRecords((group_record(empty),)),))
    return _begin_generation(transition(group, GroupState.COMPLETING_REBALANCE, now), now)


def _leader_that_joined(group: Group) -> MemberId | None:
    """The leader if it has joined, else the first member that has. **Kafka:** `ClassicGroup.maybeElectNewJoinedLeader`."""
    waiting = [member.member_id for member in group.members if member.join_request is not None]
    return group.leader if group.leader in waiting else next(iter(waiting), None)


def _begin_generation(group: Group, now: Instant) -> GroupStep:
    answers = tuple(
        AnswerMember(member.join_request, joined(group, member.member_id))
        for member in group.members
        if member.join_request is not None
    )
    members = (_awaited(member._replace(join_request=None, is_new=False), now) for member in group.members)
    begun = group._replace(
        members=tuple(members),
        pending_sync=frozenset(member.member_id for member in group.members),
        sync_deadline_ms=now.after(rebalance_timeout_ms(group)),
    )
    return Step(begun, answers)


def _awaited(member: Member, now: Instant) -> Member:
    return member._replace(session_deadline_ms=now.after(member.session_timeout_ms))


# ---- assignments


def reset_assignment(group: Group, error: Error, now: Instant) -> GroupStep:
    """Nobody has an assignment, and who waits for one gets the error. **Kafka:** `resetAndPropagateAssignmentWithError`."""
    cleared = group._replace(members=tuple(member._replace(assignment=b"") for member in group.members))
    return propagate(cleared, error, now)


def propagate(group: Group, error: Error, now: Instant) -> GroupStep:
    """Answer every member that waits for its assignment. **Kafka:** `GroupMetadataManager.propagateAssignment`."""
    answers = tuple(
        AnswerMember(member.sync_request, assigned(group, member) if error == Error.NONE else SyncGroupResponse(error))
        for member in group.members
        if member.sync_request is not None
    )
    members = (
        member if member.sync_request is None else _awaited(member._replace(sync_request=None), now)
        for member in group.members
    )
    return Step(group._replace(members=tuple(members)), answers)


def assigned(group: Group, member: Member) -> SyncGroupResponse:
    """A member's assignment. **Kafka:** `classicGroupSyncToClassicGroup`."""
    return SyncGroupResponse(Error.NONE, group.protocol_type, group.protocol_name, member.assignment)


def group_record(group: Group) -> GroupMetadataRecord:
    """The group as it is stored. **Kafka:** `GroupCoordinatorRecordHelpers.newGroupMetadataRecord`."""
    return GroupMetadataRecord(
        group.group_id,
        group.protocol_type or "",
        group.generation,
        group.protocol_name,
        group.leader,
        group.state_since_ms,
        tuple(
            MemberRecord(
                member.member_id,
                member.instance_id,
                member.client_id,
                member.client_host,
                member.rebalance_timeout_ms,
                member.session_timeout_ms,
                metadata_for(member, group.protocol_name),
                member.assignment,
            )
            for member in group.members
        ),
    )
