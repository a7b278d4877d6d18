"""Changes of a group without a message: sessions and rebalances end in time; a coordinator begins and ends."""

from collections.abc import Callable

from kspec.spec.coordinator.effects import AnswerMember
from kspec.spec.coordinator.group import (
    Group,
    GroupStep,
    InitialDelay,
    absent,
    is_pending,
    member_of,
    touched,
    with_member,
    without,
)
from kspec.spec.coordinator.members import IN_A_GENERATION
from kspec.spec.coordinator.modern.deadlines import (
    next_deadline_of_consumers,
    on_activation_of_consumers,
    on_deadline_of_consumers,
)
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.rebalance import (
    complete_join,
    complete_join_if_preparing,
    prepare_rebalance,
    remove_and_answer,
    then,
)
from kspec.spec.messages.groups.join_group import JoinGroupResponse
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.values import Error, Instant, MemberId, MonotonicMs


def next_deadline(group: Group) -> MonotonicMs | None:
    """The next time for `on_deadline` (milliseconds), `None` if nothing waits. **Kafka:** the timers of a group's keys."""
    if group.consumer is not None:
        return next_deadline_of_consumers(group.consumer)
    sessions = [member.session_deadline_ms for member in group.members]
    deadlines = [*sessions, *(pending.session_deadline_ms for pending in group.pending)]
    found = [deadline for deadline in (*deadlines, group.join_deadline_ms, group.sync_deadline_ms) if deadline is not None]
    return min(found, default=None)


def on_deadline(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """Do what is due at this time, each deadline once, the earliest first. What is set anew by it waits for the next call.

    **Kafka:** the operations that `CoordinatorTimer` schedules: `expireClassicGroupMemberHeartbeat`,
    `tryCompleteInitialRebalanceElseSchedule`, `completeClassicGroupJoin`, `expirePendingSync`.
    """
    if group.consumer is not None:
        return on_deadline_of_consumers(coordinator, group, group.consumer, now)
    due: list[tuple[int, Callable[[Group], GroupStep]]] = []
    for member_id, deadline in _sessions(group):
        due.append((deadline, lambda after, gone=member_id: _end_session(coordinator, after, gone, now)))  # type: ignore[misc]
    if group.join_deadline_ms is not None:
        due.append((group.join_deadline_ms, lambda after: _end_joining(coordinator, after, now)))
    if group.sync_deadline_ms is not None:
        due.append((group.sync_deadline_ms, lambda after: _end_syncing(coordinator, after, now)))
    step: GroupStep = Step(group)
    for deadline, event in sorted(due, key=lambda entry: entry[0]):
        if deadline <= now.monotonic:
            step = then(step, event)
    return step


def _sessions(group: Group) -> list[tuple[MemberId, int]]:
    members = [(member.member_id, member.session_deadline_ms) for member in group.members]
    pending = [(one.member_id, one.session_deadline_ms) for one in group.pending]
    return [(member_id, deadline) for member_id, deadline in (*members, *pending) if deadline is not None]


def _end_session(coordinator: Coordinator, group: Group, member_id: MemberId, now: Instant) -> GroupStep:
    """A member has been silent for its session. It is out, unless it waits for an answer of ours.

    A member that has never been in a generation is out even then.

    **Kafka:** `GroupMetadataManager.expireClassicGroupMemberHeartbeat`, `ClassicGroupMember.hasSatisfiedHeartbeat`.
    """
    if is_pending(group, member_id):
        return complete_join_if_preparing(coordinator, without(group, frozenset({member_id})), now)
    member = member_of(group, member_id)
    if member is None or member.session_deadline_ms is None or member.session_deadline_ms > now.monotonic:
        return Step(group)
    waits = member.join_request is not None or member.sync_request is not None
    if coordinator.protocol.is_heard(waits, member.is_new):
        return Step(with_member(group, member._replace(session_deadline_ms=None)))
    removed = remove_and_answer(group, member)
    if group.state in IN_A_GENERATION:
        return then(removed, lambda after: prepare_rebalance(coordinator, after, now))
    return then(removed, lambda after: complete_join_if_preparing(coordinator, after, now))


def _end_joining(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """The time to join is over. In the first rebalance of a group it begins again while new members arrive.

    **Kafka:** `tryCompleteInitialRebalanceElseSchedule`, `completeClassicGroupJoin`.
    """
    if group.join_deadline_ms is None or group.join_deadline_ms > now.monotonic:
        return Step(group)
    initial = group.initial_delay
    if initial is None or not group.new_member_added or initial.remaining_ms == 0:
        return complete_join(coordinator, group, now)
    delay_ms = min(coordinator.settings.initial_rebalance_delay_ms, initial.remaining_ms)
    following = InitialDelay(delay_ms, max(initial.remaining_ms - initial.delay_ms, 0))
    return Step(group._replace(new_member_added=False, initial_delay=following, join_deadline_ms=now.after(delay_ms)))


def _end_syncing(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """The time to ask for an assignment is over: who has not is out, and the others rebalance.

    **Kafka:** `GroupMetadataManager.expirePendingSync`.
    """
    if group.sync_deadline_ms is None or group.sync_deadline_ms > now.monotonic:
        return Step(group)
    return prepare_rebalance(coordinator, without(group, group.pending_sync), now)


def on_activation(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """A group has been loaded from the log: every member's session begins now. A group that is too large rebalances.

    **Kafka:** `GroupMetadataManager.onLoaded`.
    """
    if group.consumer is not None:
        return on_activation_of_consumers(coordinator, group, group.consumer, now)
    for member in group.members:
        group = touched(group, member.member_id, now)
    if len(group.members) > coordinator.settings.max_size:
        return prepare_rebalance(coordinator, group, now)
    return Step(group)


def on_resignation(coordinator: Coordinator, group: Group, now: Instant) -> GroupStep:
    """Another broker coordinates the group from now on: who waits is told so, and nothing is kept.

    **Kafka:** `GroupMetadataManager.onUnloaded`.
    """
    answers = (
        *(
            AnswerMember(member.join_request, JoinGroupResponse(Error.NOT_COORDINATOR, member.member_id))
            for member in group.members
            if member.join_request is not None
        ),
        *(
            AnswerMember(member.sync_request, SyncGroupResponse(Error.NOT_COORDINATOR))
            for member in group.members
            if member.sync_request is not None
        ),
    )
    return Step(absent(group.group_id), answers)
