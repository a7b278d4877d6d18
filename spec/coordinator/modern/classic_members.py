"""The handlers of JoinGroup, SyncGroup, Heartbeat and LeaveGroup of members of a consumer group (KIP-848).

A member that speaks the classic protocol joins; nobody leads, the coordinator assigns to it like to the others. A
JoinGroup reconciles as a heartbeat of the newer protocol does, by what the member's subscription says it owns.
"""

from kspec.spec.coordinator.effects import AnswerMember
from kspec.spec.coordinator.group import Group, GroupStep
from kspec.spec.coordinator.modern.conversion import by_id, by_name, downgraded, may_downgrade, to_classic_if_last
from kspec.spec.coordinator.modern.group_steps import (
    after_records,
    changed_epoch,
    current_record,
    in_session,
    member_record,
    modern,
    tombstones_of_member,
    with_timers,
)
from kspec.spec.coordinator.modern.heartbeat import move_to
from kspec.spec.coordinator.modern.reconciliation import goal_of, reconcile
from kspec.spec.coordinator.modern.records import TargetRecord
from kspec.spec.coordinator.modern.state import (
    ClassicMetadata,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    consumer_of,
    places,
    static_consumer,
    target_of,
)
from kspec.spec.coordinator.modern.targets import assign_if_due
from kspec.spec.coordinator.protocol import Coordinator, MigrationPolicy
from kspec.spec.coordinator.rebalance import prepare_rebalance, then
from kspec.spec.coordinator.records import GroupRecord
from kspec.spec.coordinator.rules.consumer_protocol import SubscriptionInBytes, read_subscription, write_assignment
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import CONSUMER, GroupProtocol, JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, LeftMember, MemberIdentity
from kspec.spec.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, GroupEpoch, Instant, MemberId


def join_consumers(coordinator: Coordinator, group: Group, request: JoinGroupRequest, now: Instant) -> GroupStep:
    """A member that speaks the classic protocol joins, or joins again, a consumer group. No epoch is looked at.

    Errors, the first that applies: `GROUP_MAX_SIZE_REACHED`, `INCONSISTENT_GROUP_PROTOCOL`, `MEMBER_ID_REQUIRED` (a new
    dynamic member is told its id first), `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`, `malformed_subscription` of the release.

    **Kafka:** `GroupMetadataManager.classicGroupJoinToConsumerGroup`.
    """
    consumer = modern(group)
    member_id = request.member_id or request.new_member_id
    known, static = consumer_of(consumer, member_id), static_consumer(consumer, request.instance_id)
    full = len(consumer.members) >= coordinator.settings.consumer_max_size
    if full and not coordinator.protocol.has_place(known is not None, static is not None):
        return _refuse_join(group, request, Error.GROUP_MAX_SIZE_REACHED)
    if coordinator.settings.migration == MigrationPolicy.DISABLED or not supports_protocols(consumer, request):
        return _refuse_join(group, request, Error.INCONSISTENT_GROUP_PROTOCOL)
    if request.member_id == NO_MEMBER_ID and request.instance_id is None and request.requires_member_id:
        return _refuse_join(group, request, Error.MEMBER_ID_REQUIRED, member_id)
    if request.instance_id is not None and request.member_id != NO_MEMBER_ID:
        if static is None:
            return _refuse_join(group, request, Error.UNKNOWN_MEMBER_ID)
        if static.member_id != request.member_id:
            return _refuse_join(group, request, Error.FENCED_INSTANCE_ID)
    subscription = read_subscription(request.protocols[0].metadata)
    if subscription is None:
        return _refuse_join(group, request, coordinator.protocol.malformed_subscription)
    replaced = static if static is not None and static.member_id != member_id else None
    member = _before_joining(known, replaced, member_id)
    step = Step(group) if replaced is None else after_records(group, *_replacing(group, replaced, member))
    described = _as_described(member, request, subscription)
    step = then(step, lambda after: _update(coordinator, after, member, described))
    if static is not None and is_last_consumer(coordinator, consumer, static):
        return _back_to_classic(coordinator, group, step, member, subscription, request, now)
    step = then(step, lambda after: assign_if_due(coordinator, after, now))
    step = then(step, lambda after: _reconciled(coordinator, after, member, subscription, now))
    joined = consumer_of(modern(step.state), member_id) or described
    timed = in_session(coordinator, joined, now)._replace(
        join_deadline_ms=None, sync_deadline_ms=now.after(request.rebalance_timeout_ms)
    )
    return Step(with_timers(step.state, timed), (*step.effects, _joined(request, joined)))


def _joined(request: JoinGroupRequest, member: ConsumerGroupMember) -> AnswerMember:
    protocol = request.protocols[0].name
    answer = JoinGroupResponse(Error.NONE, member.member_id, Generation(member.epoch), CONSUMER, protocol)
    return AnswerMember(request.request, answer, when_committed=True)


def is_last_consumer(coordinator: Coordinator, group: ConsumerGroup, static: ConsumerGroupMember) -> bool:
    """Whether a group is classic once this static member is: all others speak the classic protocol, the policy allows it.

    **Kafka:** `GroupMetadataManager.validateOnlineDowngradeWithReplacedMember`.
    """
    if static.classic is not None:
        return False
    others = tuple(one for one in group.members if one.member_id != static.member_id)
    return may_downgrade(coordinator, (*others, static._replace(classic=ClassicMetadata(0, ()))))


def _back_to_classic(
    coordinator: Coordinator,
    before: Group,
    updated: GroupStep,
    member: ConsumerGroupMember,
    subscription: SubscriptionInBytes,
    request: JoinGroupRequest,
    now: Instant,
) -> GroupStep:
    """The last consumer joins by JoinGroup: the group is classic, in the epoch and with the targets that it had before.

    The member is told the epoch that it has then, without those of its former self if a rebalance begins.

    **Kafka:** the end of `GroupMetadataManager.classicGroupJoinToConsumerGroup`, `convertToClassicGroup`.
    """
    had, has = modern(before), modern(updated.state)
    described = consumer_of(has, member.member_id) or member
    targets_are_old = had.assignment_epoch < has.epoch
    rebalances = coordinator.protocol.downgrade_rebalances(described.topics != member.topics, targets_are_old)
    step = updated
    if coordinator.protocol.assigns_before_downgrade:
        step = then(step, lambda after: assign_if_due(coordinator, after, now))
    if not rebalances:
        step = then(step, lambda after: _reconciled(coordinator, after, member, subscription, now))
    joined = consumer_of(modern(step.state), member.member_id) or described
    left = (*(one for one in has.members if one.member_id != member.member_id), described)
    as_it_was = updated.state._replace(consumer=has._replace(epoch=had.epoch))
    step = then(step, lambda after: downgraded(coordinator, as_it_was, left, now))
    if rebalances:
        step = then(step, lambda after: prepare_rebalance(coordinator, after, now))
    return Step(step.state, (*step.effects, _joined(request, joined)))


def _refuse_join(group: Group, request: JoinGroupRequest, error: Error, member_id: MemberId = NO_MEMBER_ID) -> GroupStep:
    return Step(group, (AnswerMember(request.request, JoinGroupResponse(error, member_id)),))


def supports_protocols(group: ConsumerGroup, request: JoinGroupRequest) -> bool:
    """Whether a consumer brings a protocol that all members have which speak the classic protocol.

    **Kafka:** `ConsumerGroup.supportsClassicProtocols`.
    """
    if request.protocol_type != CONSUMER or not request.protocols:
        return False
    offered = [{one.name for one in _protocols(member)} for member in group.members if member.classic is not None]
    return not offered or any(all(one.name in names for names in offered) for one in request.protocols)


def _protocols(member: ConsumerGroupMember) -> tuple[GroupProtocol, ...]:
    return () if member.classic is None else member.classic.protocols


def _before_joining(
    known: ConsumerGroupMember | None, replaced: ConsumerGroupMember | None, member_id: MemberId
) -> ConsumerGroupMember:
    if replaced is not None:
        return replaced._replace(member_id=member_id, epoch=GroupEpoch(0), previous_epoch=GroupEpoch(0))
    return ConsumerGroupMember(member_id) if known is None else known


def _replacing(group: Group, replaced: ConsumerGroupMember, member: ConsumerGroupMember) -> tuple[GroupRecord, ...]:
    return (
        *tombstones_of_member(group.group_id, replaced.member_id),
        member_record(group.group_id, member),
        TargetRecord(group.group_id, member.member_id, target_of(modern(group), replaced.member_id)),
        current_record(group.group_id, member),
    )


def _as_described(
    member: ConsumerGroupMember, request: JoinGroupRequest, subscription: SubscriptionInBytes
) -> ConsumerGroupMember:
    return member._replace(
        instance_id=request.instance_id or member.instance_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscription.topics,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicMetadata(request.session_timeout_ms, request.protocols),
    )


def _update(
    coordinator: Coordinator, group: Group, before: ConsumerGroupMember, described: ConsumerGroupMember
) -> GroupStep:
    known = consumer_of(modern(group), described.member_id)
    changes = known is None or described != before
    step = after_records(group, member_record(group.group_id, described)) if changes else Step(group)
    return then(step, lambda after: changed_epoch(coordinator, group, after, described.topics != before.topics))


def _reconciled(
    coordinator: Coordinator, group: Group, before: ConsumerGroupMember, subscription: SubscriptionInBytes, now: Instant
) -> GroupStep:
    member = consumer_of(modern(group), before.member_id) or before
    owned = by_id(coordinator.topics, subscription.owned)
    goal = goal_of(coordinator.topics, modern(group), member)
    outcome = reconcile(coordinator.protocol, member, goal, owned, member.topics != before.topics)
    return move_to(coordinator, group, outcome.member, member, now)


# ---- members that are in the group


def check_classic_member(group: ConsumerGroup, member_id: MemberId, instance_id: str | None, generation: int) -> Error:
    """Whether a request comes from a member that speaks the classic protocol, in its epoch.

    Errors: `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`, `ILLEGAL_GENERATION`.

    **Kafka:** `validateConsumerGroupMember`, `throwIfMemberDoesNotUseClassicProtocol`, `throwIfGenerationIdUnmatched`.
    """
    member = consumer_of(group, member_id) if instance_id is None else static_consumer(group, instance_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID
    if member.member_id != member_id:
        return Error.FENCED_INSTANCE_ID
    if member.classic is None:
        return Error.UNKNOWN_MEMBER_ID
    return Error.NONE if generation == member.epoch else Error.ILLEGAL_GENERATION


def sync_with_consumers(coordinator: Coordinator, group: Group, request: SyncGroupRequest, now: Instant) -> GroupStep:
    """A member that has joined asks for its assignment, which is what the coordinator has assigned to it.

    Errors: those of `check_classic_member`, `INCONSISTENT_GROUP_PROTOCOL`, `REBALANCE_IN_PROGRESS` (there is a newer target;
    a member that has to give up something first finishes that).

    **Kafka:** `GroupMetadataManager.classicGroupSyncToConsumerGroup`.
    """
    consumer = modern(group)
    error = check_classic_member(consumer, request.member_id, request.instance_id, request.generation)
    member = consumer_of(consumer, request.member_id)
    if member is None or error != Error.NONE:
        return Step(group, (AnswerMember(request.request, SyncGroupResponse(error)),))
    protocol = _protocols(member)[0]
    if request.protocol_type not in (None, CONSUMER) or request.protocol_name not in (None, protocol.name):
        return Step(group, (AnswerMember(request.request, SyncGroupResponse(Error.INCONSISTENT_GROUP_PROTOCOL)),))
    behind = coordinator.protocol.is_behind(member.epoch, consumer.epoch, consumer.assignment_epoch)
    if behind and member.state != MemberState.UNREVOKED_PARTITIONS:
        told = AnswerMember(request.request, SyncGroupResponse(Error.REBALANCE_IN_PROGRESS))
        return Step(with_timers(group, _expected_to_join(member, now)), (told,))
    subscription = read_subscription(protocol.metadata)
    layout = 0 if subscription is None else subscription.layout
    assignment = write_assignment(layout, by_name(coordinator.topics, places(member.assigned)))
    answer = SyncGroupResponse(Error.NONE, request.protocol_type, request.protocol_name, assignment)
    alive = in_session(coordinator, member, now)._replace(sync_deadline_ms=None)
    return Step(with_timers(group, alive), (AnswerMember(request.request, answer, when_committed=True),))


def _expected_to_join(member: ConsumerGroupMember, now: Instant) -> ConsumerGroupMember:
    """**Kafka:** `GroupMetadataManager.scheduleConsumerGroupJoinTimeoutIfAbsent`."""
    if member.join_deadline_ms is not None:
        return member
    return member._replace(join_deadline_ms=now.after(member.rebalance_timeout_ms))


def heartbeat_among_consumers(coordinator: Coordinator, group: Group, request: HeartbeatRequest, now: Instant) -> GroupStep:
    """A member is alive. It is told to join again if the group has moved on (by release), if it has to give up something, or
    if what it waits for is free.

    Errors: those of `check_classic_member`, `REBALANCE_IN_PROGRESS`.

    **Kafka:** `GroupMetadataManager.classicGroupHeartbeatToConsumerGroup`.
    """
    consumer = modern(group)
    error = check_classic_member(consumer, request.member_id, request.instance_id, request.generation)
    member = consumer_of(consumer, request.member_id)
    if member is None or error != Error.NONE:
        return Step(group, (Reply(HeartbeatResponse(error)),))
    alive = in_session(coordinator, member, now)
    behind = coordinator.protocol.is_behind(member.epoch, consumer.epoch, consumer.assignment_epoch)
    behind = behind or member.state == MemberState.UNREVOKED_PARTITIONS
    if behind or (member.state == MemberState.UNRELEASED_PARTITIONS and not is_waiting(consumer, member)):
        alive = _expected_to_join(alive, now)
        error = Error.REBALANCE_IN_PROGRESS
    return Step(with_timers(group, alive), (Reply(HeartbeatResponse(error)),))


def is_waiting(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """Whether something of a member's target is still another's. **Kafka:** `waitingOnUnreleasedPartition`."""
    missing = target_of(group, member.member_id) - places(member.assigned)
    return any(one.place in missing for one in group.owners)


def leave_consumers(coordinator: Coordinator, group: Group, request: LeaveGroupRequest, now: Instant) -> GroupStep:
    """Members leave by LeaveGroup, all in one step, whichever protocol they speak: an administrator removes members by it.

    Errors: of each member `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`.

    **Kafka:** `GroupMetadataManager.classicGroupLeaveToConsumerGroup`.
    """
    consumer = modern(group)
    left = tuple(_leaving(consumer, identity) for identity in request.members)
    answers = tuple(
        LeftMember(error, identity.member_id, identity.instance_id)
        for (error, _), identity in zip(left, request.members, strict=True)
    )
    gone = tuple(dict.fromkeys(member_id for error, member_id in left if error == Error.NONE))
    step = to_classic_if_last(coordinator, group, gone, now) if gone else Step(group)
    return Step(step.state, (*step.effects, Reply(LeaveGroupResponse(Error.NONE, answers))))


def _leaving(group: ConsumerGroup, identity: MemberIdentity) -> tuple[Error, MemberId]:
    """The error for one who is to leave, and its member id."""
    member = consumer_of(group, identity.member_id)
    if identity.instance_id is not None:
        member = static_consumer(group, identity.instance_id)
    if member is None:
        return Error.UNKNOWN_MEMBER_ID, identity.member_id
    by_instance = identity.instance_id is not None and identity.member_id == NO_MEMBER_ID
    if member.member_id != identity.member_id and not by_instance:
        return Error.FENCED_INSTANCE_ID, identity.member_id
    return Error.NONE, member.member_id
