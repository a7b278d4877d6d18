"""The handlers of SyncGroup, Heartbeat and LeaveGroup: what members of a generation send."""

from kspec.spec.coordinator.effects import AnswerMember, PersistRecords
from kspec.spec.coordinator.group import (
    Group,
    GroupState,
    GroupStep,
    Member,
    check_member,
    exists,
    is_pending,
    member_of,
    static_member,
    touched,
    transition,
    with_member,
    without,
)
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import (
    assigned,
    complete_join_phase,
    group_record,
    prepare_rebalance,
    propagate,
    remove_and_answer,
    then,
)
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember, MemberIdentity
from kspec.spec.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_MEMBER_ID, Error, Instant

IN_A_GENERATION = frozenset({GroupState.COMPLETING_REBALANCE, GroupState.STABLE})


def handle_sync_group(coordinator: Coordinator, group: Group, request: SyncGroupRequest, now: Instant) -> GroupStep:
    """A member asks for its assignment. It is answered when the leader has brought the assignments, and they are committed.

    The group is stable from then on (`on_assignment_stored`). A member that the leader has forgotten gets an empty
    assignment.

    Errors: those of `check_sync`.

    **Kafka:** `GroupCoordinatorService.syncGroup`, `GroupMetadataManager.classicGroupSyncToClassicGroup`.
    """
    error = check_sync(coordinator, group, request)
    member = member_of(group, request.member_id)
    if member is None or error != Error.NONE:
        return Step(group, (AnswerMember(request.request, SyncGroupResponse(error)),))
    synced = _without_pending_sync(group, member)
    if group.state == GroupState.STABLE:
        return Step(synced, (AnswerMember(request.request, assigned(group, member)),))
    waiting = with_member(synced, member._replace(sync_request=request.request))
    if group.leader != member.member_id:
        return Step(waiting)
    return Step(waiting, (PersistRecords((group_record(_with_assignments(waiting, request)),)),))


def check_sync_request(request: SyncGroupRequest, names_protocols: bool) -> Error:
    """Whether a SyncGroup of a version that names protocols does so; it is looked at before the group.

    Errors: `INCONSISTENT_GROUP_PROTOCOL`.

    **Kafka:** `SyncGroupRequest.areMandatoryProtocolTypeAndNamePresent`.
    """
    is_missing = request.protocol_type is None or request.protocol_name is None
    return Error.INCONSISTENT_GROUP_PROTOCOL if names_protocols and is_missing else Error.NONE


def check_sync(coordinator: Coordinator, group: Group, request: SyncGroupRequest) -> Error:
    """Whether a SyncGroup comes from a member of the present generation, for the protocol of the group.

    Errors, the first that applies: `INVALID_GROUP_ID`, those of `check_member`, `ILLEGAL_GENERATION`,
    `INCONSISTENT_GROUP_PROTOCOL`, `REBALANCE_IN_PROGRESS`.

    **Kafka:** `GroupMetadataManager.validateSyncGroup`, `isProtocolInconsistent`.
    """
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    error = check_member(group, request.member_id, request.instance_id)
    if error != Error.NONE:
        return error
    if not coordinator.protocol.is_present_generation(request.generation, group.generation):
        return Error.ILLEGAL_GENERATION
    if request.protocol_type not in (None, group.protocol_type) or request.protocol_name not in (None, group.protocol_name):
        return Error.INCONSISTENT_GROUP_PROTOCOL
    return Error.REBALANCE_IN_PROGRESS if group.state == GroupState.PREPARING_REBALANCE else Error.NONE


def _without_pending_sync(group: Group, member: Member) -> Group:
    """The member has asked for its assignment. **Kafka:** `GroupMetadataManager.removePendingSyncMember`."""
    pending = group.pending_sync - {member.member_id}
    return group._replace(pending_sync=pending, sync_deadline_ms=group.sync_deadline_ms if pending else None)


def _with_assignments(group: Group, request: SyncGroupRequest) -> Group:
    by_member = {given.member_id: given.assignment for given in request.assignments}
    members = tuple(
        member._replace(assignment=by_member.get(member.member_id, b""))  # the leader may not know all
        for member in group.members
    )
    return group._replace(members=members)


def on_assignment_stored(group: Group, request: SyncGroupRequest, now: Instant) -> GroupStep:
    """The assignment that a leader has brought is committed: everybody who waits gets theirs, and the group is stable.

    Nothing happens if the group has gone on meanwhile, to another rebalance or another generation.

    **Kafka:** the `appendFuture` of `classicGroupSyncToClassicGroup`, `setAndPropagateAssignment`.
    """
    if not awaits_assignment(group, request):
        return Step(group)
    answered = propagate(_with_assignments(group, request), Error.NONE, now)
    return Step(transition(answered.state, GroupState.STABLE, now), answered.effects)


def awaits_assignment(group: Group, request: SyncGroupRequest) -> bool:
    """Whether the assignment of this SyncGroup is for the generation that the group completes.

    **Kafka:** the `appendFuture` of `classicGroupSyncToClassicGroup`.
    """
    return group.state == GroupState.COMPLETING_REBALANCE and group.generation == request.generation


def handle_heartbeat(coordinator: Coordinator, group: Group, request: HeartbeatRequest, now: Instant) -> GroupStep:
    """A member is alive. Its session begins anew; during a rebalance it is told to join again.

    Errors, the first that applies: `INVALID_GROUP_ID`, those of `check_member`, `ILLEGAL_GENERATION`,
    `REBALANCE_IN_PROGRESS`.

    **Kafka:** `GroupCoordinatorService.heartbeat`, `GroupMetadataManager.classicGroupHeartbeatToClassicGroup`.
    """
    error = Error.NONE if request.group_id else Error.INVALID_GROUP_ID
    error = check_member(group, request.member_id, request.instance_id) if error == Error.NONE else error
    if error == Error.NONE and not coordinator.protocol.is_present_generation(request.generation, group.generation):
        error = Error.ILLEGAL_GENERATION
    if error != Error.NONE:
        return Step(group, (Reply(HeartbeatResponse(error)),))
    rebalancing = group.state == GroupState.PREPARING_REBALANCE
    answer = HeartbeatResponse(Error.REBALANCE_IN_PROGRESS if rebalancing else Error.NONE)
    return Step(touched(group, request.member_id, now), (Reply(answer),))


def handle_leave_group(coordinator: Coordinator, group: Group, request: LeaveGroupRequest, now: Instant) -> GroupStep:
    """Members leave, and the others rebalance.

    Errors: `INVALID_GROUP_ID` of the request; of each member `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`.

    **Kafka:** `GroupCoordinatorService.leaveGroup`, `GroupMetadataManager.classicGroupLeaveToClassicGroup`.
    """
    if not request.group_id:
        return Step(group, (Reply(LeaveGroupResponse(Error.INVALID_GROUP_ID)),))
    step: GroupStep = Step(group)
    left = []
    for identity in request.members:
        error = check_leaving(step.state, identity)
        left.append(LeftMember(error, identity.member_id, identity.instance_id))
        if error == Error.NONE:
            step = then(step, lambda after, identity=identity: _leave(after, identity))  # type: ignore[misc]
    if any(member.error == Error.NONE for member in left):
        step = then(step, lambda after: _go_on_without(coordinator, after, now))
    return Step(step.state, (*step.effects, Reply(LeaveGroupResponse(Error.NONE, tuple(left)))))


def check_leaving(group: Group, identity: MemberIdentity) -> Error:
    """Whether the member that is to leave is one: by its id, or as a static member by its instance id alone.

    Errors: `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`.

    **Kafka:** `GroupMetadataManager.classicGroupLeaveToClassicGroup`.
    """
    if not exists(group):
        return Error.UNKNOWN_MEMBER_ID
    if identity.member_id == NO_MEMBER_ID:
        return Error.UNKNOWN_MEMBER_ID if static_member(group, identity.instance_id) is None else Error.NONE
    if is_pending(group, identity.member_id):
        return Error.NONE
    return check_member(group, identity.member_id, identity.instance_id)


def _leave(group: Group, identity: MemberIdentity) -> GroupStep:
    by_instance = static_member(group, identity.instance_id)
    member = by_instance if identity.member_id == NO_MEMBER_ID else member_of(group, identity.member_id)
    if member is None:
        return Step(without(group, frozenset({identity.member_id})))
    return remove_and_answer(group, member)


def _go_on_without(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    if group.state in IN_A_GENERATION:
        return prepare_rebalance(coordinator, group, now)
    return complete_join_phase(coordinator, group, now)
