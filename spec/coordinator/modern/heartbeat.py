"""The handler of ConsumerGroupHeartbeat (KIP-848): members join, reconcile and leave by it."""

from typing import NamedTuple

from kspec.spec.coordinator.effects import PersistRecords
from kspec.spec.coordinator.group import Group, GroupState, GroupStep, as_consumer_group, exists
from kspec.spec.coordinator.modern.conversion import check_upgrade, to_classic_if_last, upgraded
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
from kspec.spec.coordinator.modern.reconciliation import Goal, goal_of, reconcile
from kspec.spec.coordinator.modern.records import (
    ConsumerRecordKind,
    ConsumerTombstone,
    TargetRecord,
)
from kspec.spec.coordinator.modern.replaying import replay_consumer_record
from kspec.spec.coordinator.modern.state import (
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    consumer_of,
    places,
    resolved,
    static_consumer,
    target_of,
)
from kspec.spec.coordinator.modern.targets import assign_if_due, preferred_assignor
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import then
from kspec.spec.coordinator.records import GroupRecord, GroupTombstone
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    UNCHANGED_MS,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_MEMBER_ID, Error, GroupEpoch, Instant, MemberId


def check_consumer_heartbeat(coordinator: Coordinator, request: ConsumerGroupHeartbeatRequest) -> Error:
    """Whether a heartbeat is well formed; it is looked at before the group, also by a broker that does not coordinate it.

    Errors: `INVALID_REQUEST`, `UNSUPPORTED_ASSIGNOR`.

    **Kafka:** `GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid`.
    """
    epoch = request.member_epoch
    needs_id = request.requires_member_id or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    if needs_id and not request.member_id.strip():
        return Error.INVALID_REQUEST
    if any(text is not None and not text.strip() for text in (request.group_id, request.instance_id, request.rack_id)):
        return Error.INVALID_REQUEST
    subscribes = request.topics is not None or request.regex is not None
    owns_nothing = request.owned is not None and not request.owned
    if epoch == JOIN_EPOCH and not (request.rebalance_timeout_ms != UNCHANGED_MS and owns_nothing and subscribes):
        return Error.INVALID_REQUEST
    if epoch < STATIC_LEAVE_EPOCH or (epoch == STATIC_LEAVE_EPOCH and request.instance_id is None):
        return Error.INVALID_REQUEST
    known = request.assignor is None or request.assignor in coordinator.settings.consumer_assignors
    return Error.NONE if known else Error.UNSUPPORTED_ASSIGNOR


def handle_consumer_group_heartbeat(
    coordinator: Coordinator, group: Group, request: ConsumerGroupHeartbeatRequest, now: Instant
) -> GroupStep:
    """A member joins (epoch 0), lives, or leaves (-1, -2). All that it changes is one batch of records.

    The member is brought up to date, the group epoch goes up if what members subscribe to has changed, the target is
    computed if it is due, and this member is reconciled to it.

    Errors, the first that applies: those of `check_consumer_heartbeat`, `GROUP_ID_NOT_FOUND`, `GROUP_MAX_SIZE_REACHED`,
    `UNKNOWN_MEMBER_ID`, `UNRELEASED_INSTANCE_ID`, `FENCED_INSTANCE_ID`, `FENCED_MEMBER_EPOCH`,
    `INVALID_REGULAR_EXPRESSION`.

    **Kafka:** `GroupMetadataManager.consumerGroupHeartbeat`.
    """
    error = check_consumer_heartbeat(coordinator, request)
    if error != Error.NONE:
        return _refused(group, error)
    if request.member_epoch in (LEAVE_EPOCH, STATIC_LEAVE_EPOCH):
        return _leave(coordinator, group, request, now)
    joins = request.member_epoch == JOIN_EPOCH
    error = _check_group(coordinator, group, joins)
    if error != Error.NONE:
        return _refused(group, error)
    begun = _as_consumer_group(coordinator, group, now)
    found = _member_for(coordinator, modern(begun.state), request)
    if found.error != Error.NONE:
        return _refused(group, found.error)
    replaced = then(begun, lambda after: after_records(after, *_replacement(after, found)))
    error = _check_regex(modern(replaced.state), found.member, request)
    if error != Error.NONE:
        return _refused(group, error)
    updated = then(replaced, lambda after: _update(coordinator, after, found.member, request))
    assigned = then(updated, lambda after: assign_if_due(coordinator, after, now))
    goal = _goal(coordinator, modern(begun.state), modern(updated.state), modern(assigned.state), found.member)
    return _reconciled(coordinator, group, assigned, found.member, goal, request, now)


def _refused(group: Group, error: Error) -> GroupStep:
    return Step(group, (Reply(ConsumerGroupHeartbeatResponse(error)),))


# ---- the group


def _check_group(coordinator: Coordinator, group: Group, joins: bool) -> Error:
    """Whether the group is one, or can become one. **Kafka:** `GroupMetadataManager.getOrMaybeCreateConsumerGroup`."""
    if group.consumer is not None:
        return Error.NONE
    if not joins:
        return Error.GROUP_ID_NOT_FOUND
    return check_upgrade(coordinator, group) if group.members or group.state != GroupState.EMPTY else Error.NONE


def _as_consumer_group(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """The group, made from an empty classic one or from one with members where it is none yet.

    **Kafka:** `getOrMaybeCreateConsumerGroup`, `maybeDeleteEmptyClassicGroup`, `convertToConsumerGroup`.
    """
    if group.consumer is not None or not exists(group):
        return Step(group)
    if group.state == GroupState.EMPTY:
        return after_records(group, GroupTombstone(group.group_id))
    return upgraded(coordinator, group, now)


# ---- the member


class HeartbeatSender(NamedTuple):
    """The member that a heartbeat comes from as the group has it, a new one if it has none; `replaces`: a static member."""

    error: Error
    member: ConsumerGroupMember
    replaces: MemberId = NO_MEMBER_ID


def _member_for(coordinator: Coordinator, group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest) -> HeartbeatSender:
    """**Kafka:** `throwIfConsumerGroupIsFull`, `getOrMaybeSubscribeDynamicConsumerGroupMember`,
    `getOrMaybeSubscribeStaticConsumerGroupMember`."""
    member_id = request.member_id or request.new_member_id
    known, static = consumer_of(group, member_id), static_consumer(group, request.instance_id)
    new = ConsumerGroupMember(member_id)
    full = len(group.members) >= coordinator.settings.consumer_max_size
    if full and not coordinator.protocol.has_place(known is not None, static is not None):
        return HeartbeatSender(Error.GROUP_MAX_SIZE_REACHED, new)
    joins = request.member_epoch == JOIN_EPOCH
    if request.instance_id is not None and not joins:
        if static is None:
            return HeartbeatSender(Error.UNKNOWN_MEMBER_ID, new)
        if static.member_id != member_id:
            return HeartbeatSender(Error.FENCED_INSTANCE_ID, new)
        return HeartbeatSender(_check_epoch(coordinator, static, request), static)
    if request.instance_id is not None and static is not None:
        return _taking_over(coordinator, static, member_id)
    if known is None and not joins:
        return HeartbeatSender(Error.UNKNOWN_MEMBER_ID, new)
    if known is None or request.instance_id is not None:
        return HeartbeatSender(Error.NONE, new if known is None else known)
    return HeartbeatSender(_check_epoch(coordinator, known, request), known)


def _taking_over(coordinator: Coordinator, static: ConsumerGroupMember, member_id: MemberId) -> HeartbeatSender:
    """A static member starts again. It takes its place if its former self has left, or speaks the classic protocol.

    One that joins again under the id that it has waits until its own session ends, in all releases.

    **Kafka:** `throwIfInstanceIdIsUnreleased`, KAFKA-17228.
    """
    has_left, is_own_id = static.epoch == STATIC_LEAVE_EPOCH, static.member_id == member_id
    if static.classic is None and not coordinator.protocol.is_released(has_left, is_own_id):
        return HeartbeatSender(Error.UNRELEASED_INSTANCE_ID, static)
    if static.classic is None and not has_left:
        return HeartbeatSender(Error.NONE, static)
    again = static._replace(member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
    return HeartbeatSender(Error.NONE, again, static.member_id)


def _check_epoch(coordinator: Coordinator, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> Error:
    assigned = places(member.assigned)
    knows = coordinator.protocol.knows_epoch
    known = knows(request.member_epoch, member.epoch, member.previous_epoch, request.owned, assigned)
    return Error.NONE if known else Error.FENCED_MEMBER_EPOCH


def _replacement(group: Group, found: HeartbeatSender) -> tuple[GroupRecord, ...]:
    """**Kafka:** `GroupMetadataManager.replaceMember`."""
    if found.replaces == NO_MEMBER_ID:
        return ()
    group_id = group.group_id
    return (
        *tombstones_of_member(group_id, found.replaces),
        member_record(group_id, found.member),
        TargetRecord(group_id, found.member.member_id, target_of(modern(group), found.replaces)),
        current_record(group_id, found.member),
    )


def _check_regex(group: ConsumerGroup, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> Error:
    """A regular expression that nobody has brought before has to be one.

    **Kafka:** `GroupMetadataManager.maybeUpdateRegularExpressions`, `throwIfRegularExpressionIsInvalid`.
    """
    is_new = request.regex and all(one.regex != request.regex for one in group.members)
    return Error.INVALID_REGULAR_EXPRESSION if is_new and not request.regex_is_valid else Error.NONE


def _as_described(member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupMember:
    """The member as the request describes it; it speaks the newer protocol from now on."""

    def given(new: str | None, old: str | None) -> str | None:
        return old if new is None else new

    unchanged = request.rebalance_timeout_ms == UNCHANGED_MS
    return member._replace(
        instance_id=given(request.instance_id, member.instance_id),
        rack_id=given(request.rack_id, member.rack_id),
        rebalance_timeout_ms=member.rebalance_timeout_ms if unchanged else request.rebalance_timeout_ms,
        assignor=given(request.assignor, member.assignor),
        topics=member.topics if request.topics is None else request.topics,
        regex=member.regex if request.regex is None else request.regex,
        client_id=request.client_id,
        client_host=request.client_host,
        classic=None,
    )


def _update(
    coordinator: Coordinator, group: Group, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest
) -> GroupStep:
    """Bring the member up to date, and the group epoch up, if what is subscribed to has changed.

    A regular expression that is not resolved yet is no change: its topics come later. **Kafka:**
    `hasMemberSubscriptionChanged`, `maybeUpdateRegularExpressions`, `updateSubscriptionMetadata`.
    """
    described = _as_described(member, request)
    before = modern(group)
    known = consumer_of(before, member.member_id)
    step: GroupStep = Step(group)
    if known is None or described != member:
        step = after_records(group, member_record(group.group_id, described))
    if member.regex and described.regex != member.regex:
        step = then(step, lambda after: _forget_unused(after, member.regex))
    after = modern(step.state)
    changed = described.topics != member.topics
    if described.regex != member.regex:
        dropped = bool(member.regex) and not described.regex
        changed = changed or dropped or resolved(after, described.regex) is not None
    assignors = preferred_assignor(coordinator, before), preferred_assignor(coordinator, after)
    changed = changed or coordinator.protocol.assigns_anew(*assignors)
    return then(step, lambda updated: changed_epoch(coordinator, group, updated, changed))


def _forget_unused(group: Group, regex: str) -> GroupStep:
    if any(one.regex == regex for one in modern(group).members):
        return Step(group)
    return after_records(group, ConsumerTombstone(group.group_id, ConsumerRecordKind.REGULAR_EXPRESSION, regex))


def _goal(
    coordinator: Coordinator,
    before: ConsumerGroup,
    updated: ConsumerGroup,
    assigned: ConsumerGroup,
    found: ConsumerGroupMember,
) -> Goal:
    """The goal of the member of a heartbeat: what was computed in this step, else what its instance has, if it has one.

    A member that the group knows, and that joins again with an instance id that nobody has had, so has to give up all. One
    that takes the place of a static member gets nothing yet of what it had itself.

    **Kafka:** `ConsumerGroup.targetAssignment` of a member and an instance, and `currentPartitionEpoch`, which both ask the
    group as it was before.
    """
    member = consumer_of(assigned, found.member_id) or found
    owned_by_any = frozenset(one.place for one in before.owners)
    goal = goal_of(coordinator.topics, assigned, member)._replace(owned_by_any=owned_by_any)
    is_computed = assigned.assignment_epoch != updated.assignment_epoch
    is_new_instance = member.instance_id is not None and static_consumer(before, member.instance_id) is None
    return goal._replace(target=frozenset()) if is_new_instance and not is_computed else goal


def _reconciled(
    coordinator: Coordinator,
    before: Group,
    assigned: GroupStep,
    found: ConsumerGroupMember,
    goal: Goal,
    request: ConsumerGroupHeartbeatRequest,
    now: Instant,
) -> GroupStep:
    """Reconcile the member, and answer; the partitions are in the answer if they are new, or the request tells all.

    **Kafka:** `maybeReconcile`, and the end of `consumerGroupHeartbeat`.
    """
    group = assigned.state
    member = consumer_of(modern(group), found.member_id) or found
    changed = (member.topics, member.regex) != (found.topics, found.regex)
    owned = coordinator.protocol.owned_at(request.member_epoch, request.owned)
    outcome = reconcile(coordinator.protocol, member, goal, owned, changed)
    if outcome.error != Error.NONE:
        return _refused(before, outcome.error)
    step = then(assigned, lambda after: move_to(coordinator, after, outcome.member, member, now))
    alive = in_session(coordinator, consumer_of(modern(step.state), member.member_id) or member, now)
    tells_all = request.rebalance_timeout_ms != UNCHANGED_MS and request.owned is not None
    tells_all = tells_all and (request.topics is not None or request.regex is not None)
    is_news = request.member_epoch == JOIN_EPOCH or tells_all or alive.assigned != found.assigned
    answer = ConsumerGroupHeartbeatResponse(
        Error.NONE,
        alive.member_id,
        alive.epoch,
        coordinator.settings.consumer_heartbeat_interval_ms,
        places(alive.assigned) if is_news else None,
    )
    return Step(with_timers(step.state, alive), (*step.effects, Reply(answer)))


def move_to(
    coordinator: Coordinator, group: Group, after: ConsumerGroupMember, before: ConsumerGroupMember, now: Instant
) -> GroupStep:
    """Store how far a member is, if that has changed. What it has to give up, it has to within its rebalance time-out.

    **Kafka:** `GroupMetadataManager.maybeReconcile`, `scheduleConsumerGroupRebalanceTimeout`.
    """
    if after == before:
        return Step(group)
    record = current_record(group.group_id, after)
    moved = replay_consumer_record(group.consumer, record, coordinator.protocol.owners_after)
    step: GroupStep = Step(as_consumer_group(group, moved), (PersistRecords((record,)),))
    waits = after.state == MemberState.UNREVOKED_PARTITIONS and after.classic is None
    timed = (consumer_of(modern(step.state), after.member_id) or after)._replace(
        rebalance_deadline_ms=now.after(after.rebalance_timeout_ms) if waits else None, rebalance_epoch=after.epoch
    )
    return Step(with_timers(step.state, timed), step.effects)


# ---- leaving


def _leave(coordinator: Coordinator, group: Group, request: ConsumerGroupHeartbeatRequest, now: Instant) -> GroupStep:
    """A member leaves, whatever its epoch. A static member that means to come back keeps its partitions for its session.

    Errors: `GROUP_ID_NOT_FOUND`, `UNKNOWN_MEMBER_ID`, `FENCED_INSTANCE_ID`.

    **Kafka:** `GroupMetadataManager.consumerGroupLeave`, `consumerGroupStaticMemberGroupLeave`.
    """
    consumer = group.consumer
    if consumer is None:
        return _refused(group, Error.GROUP_ID_NOT_FOUND)
    member = consumer_of(consumer, request.member_id)
    if request.instance_id is not None:
        member = static_consumer(consumer, request.instance_id)
    if member is None:
        return _refused(group, Error.UNKNOWN_MEMBER_ID)
    if member.member_id != request.member_id:
        return _refused(group, Error.FENCED_INSTANCE_ID)
    answer = ConsumerGroupHeartbeatResponse(Error.NONE, member.member_id, request.member_epoch)
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        step = after_records(group, current_record(group.group_id, away(member)))
    else:
        step = to_classic_if_last(coordinator, group, (member.member_id,), now)
    return Step(step.state, (*step.effects, Reply(answer)))


def away(member: ConsumerGroupMember) -> ConsumerGroupMember:
    """A static member that has left and may come back: what it was to give up is free, and it has had the rest since ever.

    **Kafka:** `consumerGroupStaticMemberGroupLeave`, `resetAssignedPartitionsEpochsToZero`.
    """
    assigned = tuple(one._replace(epoch=GroupEpoch(0)) for one in member.assigned)
    return member._replace(epoch=STATIC_LEAVE_EPOCH, pending=(), assigned=assigned)
