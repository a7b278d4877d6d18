"""The handler of JoinGroup: new members, dynamic and static, and members that join again."""

from kspec.spec.coordinator.effects import AnswerMember, PersistRecords
from kspec.spec.coordinator.group import (
    Group,
    GroupState,
    GroupStep,
    Member,
    PendingMember,
    check_member,
    created,
    exists,
    is_pending,
    member_of,
    metadata_for,
    select_protocol,
    static_member,
    supports,
    with_member,
    without,
)
from kspec.spec.coordinator.modern.group_steps import tombstones_of_group
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import (
    answer_join,
    answer_sync,
    complete_join_phase,
    group_record,
    joined,
    leader_or_none,
    prepare_rebalance,
    rebalance_or_complete_join,
    then,
)
from kspec.spec.coordinator.rules.subscription import subscribed_topics
from kspec.spec.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.values import NO_MEMBER_ID, Error, Instant, MemberId


def check_join_request(coordinator: Coordinator, request: JoinGroupRequest) -> Error:
    """The error of a request before the group is read, also by a broker that does not coordinate it.

    Errors: `INVALID_GROUP_ID`, `INVALID_SESSION_TIMEOUT`.

    **Kafka:** `GroupCoordinatorService.joinGroup`.
    """
    settings = coordinator.settings
    if not request.group_id:
        return Error.INVALID_GROUP_ID
    in_range = settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms
    return Error.NONE if in_range else Error.INVALID_SESSION_TIMEOUT


def handle_join_group(coordinator: Coordinator, group: Group, request: JoinGroupRequest, now: Instant) -> GroupStep:
    """A member joins. It is answered when the next generation begins, or at once with an error or the present generation.

    Errors, the first that applies: `INVALID_GROUP_ID`, `INVALID_SESSION_TIMEOUT`, `UNKNOWN_MEMBER_ID` (an id in a group that
    does not exist), `GROUP_MAX_SIZE_REACHED`, `INCONSISTENT_GROUP_PROTOCOL`; for a new dynamic member `MEMBER_ID_REQUIRED`;
    for one that has an id those of `check_member`; `UNKNOWN_SERVER_ERROR` (an id that was given to a dynamic member, with an
    instance id). A group that is created here is stored, also when the answer is an error. It may take the place of a
    consumer group that is empty; one with members does not come here (`join_consumers`).

    **Kafka:** `GroupCoordinatorService.joinGroup`, `GroupMetadataManager.classicGroupJoinToClassicGroup`.
    """
    error = check_join_request(coordinator, request)
    if error != Error.NONE:
        return _refuse(group, request, error, request.member_id)
    is_new = request.member_id == NO_MEMBER_ID
    if exists(group) and group.consumer is None:
        return _join(coordinator, group, request, now)
    if not is_new:  # by this Kafka forgets an empty consumer group, in memory only
        return _refuse(group, request, Error.UNKNOWN_MEMBER_ID, request.member_id)
    new = created(group, now.timestamp)
    step = _join(coordinator, new, request, now)
    gone = () if group.consumer is None else tombstones_of_group(group)
    return Step(step.state, (PersistRecords((*gone, group_record(new))), *step.effects))


def _join(coordinator: Coordinator, group: Group, request: JoinGroupRequest, now: Instant) -> GroupStep:
    if not accepts(coordinator, group, request.member_id):
        left = without(group, frozenset({request.member_id}))
        return _refuse(left, request, Error.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
    if not supports(group, request.protocol_type, request.protocols):
        return _refuse(group, request, Error.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    if request.member_id == NO_MEMBER_ID:
        return _join_as_new(coordinator, group, request, now)
    if is_pending(group, request.member_id):
        if request.instance_id is not None:
            return _refuse(group, request, Error.UNKNOWN_SERVER_ERROR, NO_MEMBER_ID)
        return _add_member(coordinator, group, request, request.member_id, now)
    error = check_member(group, request.member_id, request.instance_id)
    member = member_of(group, request.member_id)
    if member is None or error != Error.NONE:
        refusal = JoinGroupResponse(error, request.member_id, protocol_name=None)
        return Step(group, (AnswerMember(request.request, refusal),))
    return _join_again(coordinator, group, request, member, now)


def accepts(coordinator: Coordinator, group: Group, member_id: MemberId) -> bool:
    """Whether there is room for a member. During a rebalance those count who have joined.

    **Kafka:** `GroupMetadataManager.acceptJoiningMember`.
    """
    member = member_of(group, member_id)
    if group.state == GroupState.PREPARING_REBALANCE:
        waiting = sum(1 for one in group.members if one.join_request is not None)
        return (member is not None and member.join_request is not None) or waiting < coordinator.settings.max_size
    full = group.state != GroupState.EMPTY and len(group.members) >= coordinator.settings.max_size
    return member is not None or not full


def _refuse(group: Group, request: JoinGroupRequest, error: Error, member_id: MemberId) -> GroupStep:
    return Step(group, (AnswerMember(request.request, JoinGroupResponse(error, member_id)),))


def _join_as_new(coordinator: Coordinator, group: Group, request: JoinGroupRequest, now: Instant) -> GroupStep:
    """A member without an id. **Kafka:** `classicGroupJoinNewStaticMember`, `classicGroupJoinNewDynamicMember`."""
    before = static_member(group, request.instance_id)
    if before is not None:
        return _replace_static_member(coordinator, group, request, before, now)
    if request.instance_id is not None or not request.requires_member_id:
        return _add_member(coordinator, group, request, request.new_member_id, now)
    pending = PendingMember(request.new_member_id, now.after(request.session_timeout_ms))
    known = group._replace(pending=(*group.pending, pending))
    return _refuse(known, request, Error.MEMBER_ID_REQUIRED, request.new_member_id)


def _join_again(
    coordinator: Coordinator, group: Group, request: JoinGroupRequest, member: Member, now: Instant
) -> GroupStep:
    """A member that is in the group. **Kafka:** `classicGroupJoinExistingMember`.

    In a generation it gets that generation's answer again, unless it brings other protocols, or is the leader of a stable
    group, which so asks for a rebalance.
    """
    same = member.protocols == request.protocols
    leads = group.leader == member.member_id
    completing = group.state == GroupState.COMPLETING_REBALANCE
    if same and (completing or (group.state == GroupState.STABLE and not leads)):
        return Step(group, (AnswerMember(request.request, joined(group, member.member_id)),))
    return rebalance_or_complete_join(coordinator, with_member(group, _updated(coordinator, member, request)), now)


def _updated(coordinator: Coordinator, member: Member, request: JoinGroupRequest) -> Member:
    """The member after a JoinGroup, for the answer to which it waits. **Kafka:** `ClassicGroup.updateMember`."""
    renewed = coordinator.protocol.renewed_timeout
    return member._replace(
        protocols=request.protocols,
        rebalance_timeout_ms=renewed(member.rebalance_timeout_ms, request.rebalance_timeout_ms),
        session_timeout_ms=renewed(member.session_timeout_ms, request.session_timeout_ms),
        join_request=request.request,
    )


def _add_member(
    coordinator: Coordinator, group: Group, request: JoinGroupRequest, member_id: MemberId, now: Instant
) -> GroupStep:
    """The member is in the group from now on; the first one's protocol type is the group's.

    **Kafka:** `addMemberThenRebalanceOrCompleteJoin`, `ClassicGroup.add`.
    """
    member = Member(
        member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        request.session_timeout_ms,
        request.rebalance_timeout_ms,
        request.protocol_type,
        request.protocols,
        join_request=request.request,
        is_new=True,
        session_deadline_ms=now.after(coordinator.settings.new_member_timeout_ms),
    )
    initial = group.state == GroupState.PREPARING_REBALANCE and group.previous == GroupState.EMPTY
    added = group._replace(
        new_member_added=group.new_member_added or initial,
        protocol_type=group.protocol_type if group.members else request.protocol_type,
        leader=member_id if group.leader is None else group.leader,
        members=(*group.members, member),
        pending=tuple(pending for pending in group.pending if pending.member_id != member_id),
    )
    return rebalance_or_complete_join(coordinator, added, now)


def _replace_static_member(
    coordinator: Coordinator, group: Group, request: JoinGroupRequest, before: Member, now: Instant
) -> GroupStep:
    """A static member has started again: it takes the place, and the assignment, of its former self, which is fenced.

    A stable group stays stable if the protocol stays the same; the new id is stored before the answer.

    **Kafka:** `updateStaticMemberThenRebalanceOrCompleteJoin`, `ClassicGroup.replaceStaticMember`.
    """
    fenced = then(
        answer_join(group, before, JoinGroupResponse(Error.FENCED_INSTANCE_ID, before.member_id, protocol_name=None)),
        lambda after: answer_sync(after, before, SyncGroupResponse(Error.FENCED_INSTANCE_ID)),
    )
    renewed = before._replace(
        member_id=request.new_member_id,
        sync_request=None,
        is_new=False,
        session_deadline_ms=now.after(before.session_timeout_ms),
    )
    replaced = group._replace(
        members=tuple(_updated(coordinator, renewed, request) if member == before else member for member in group.members),
        leader=request.new_member_id if group.leader == before.member_id else group.leader,
    )
    if group.state == GroupState.STABLE and _stays_stable(coordinator, group, replaced, request):
        return then(Step(replaced, fenced.effects), lambda after: _stay_stable(after, request, leader_or_none(group)))
    if group.state == GroupState.PREPARING_REBALANCE:
        return then(Step(replaced, fenced.effects), lambda after: complete_join_phase(coordinator, after, now))
    return then(Step(replaced, fenced.effects), lambda after: prepare_rebalance(coordinator, after, now))


def _stays_stable(coordinator: Coordinator, before: Group, after: Group, request: JoinGroupRequest) -> bool:
    had, has = static_member(before, request.instance_id), static_member(after, request.instance_id)
    read = (None if one is None else subscribed_topics(metadata_for(one, before.protocol_name)) for one in (had, has))
    same_topics = len(set(read)) == 1
    return coordinator.protocol.stays_stable(before.protocol_name == select_protocol(after), same_topics)


def _stay_stable(group: Group, request: JoinGroupRequest, former_leader: MemberId) -> GroupStep:
    """The answer to a static member in a stable group. A leader that understands it is told to assign nothing (KIP-814);
    another one is told the former leader's id, so that it does not take itself for the leader.
    """
    member_id = request.new_member_id
    response = joined(group, member_id)
    if request.skips_assignment:
        response = JoinGroupResponse(
            Error.NONE,
            member_id,
            group.generation,
            group.protocol_type,
            group.protocol_name,
            leader_or_none(group),
            response.members,
            skip_assignment=group.leader == member_id,
        )
    else:
        response = JoinGroupResponse(
            Error.NONE, member_id, group.generation, group.protocol_type, group.protocol_name, former_leader
        )
    member = member_of(group, member_id)
    assert member is not None, f"the group has no member {member_id}, which has just joined"
    answered = with_member(group, member._replace(join_request=None))
    answer = AnswerMember(request.request, response, when_committed=True)
    return Step(answered, (PersistRecords((group_record(group),)), answer))
