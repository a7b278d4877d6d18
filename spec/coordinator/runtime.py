"""A group and its log: steps count at once, answers wait until their records are committed, reads see what is committed.

A step is taken on the newest state of its group, whatever of that is still on its way to the followers, and its records
go into the log in the same order. So no step is ever put in place over what another one has done. The caller appends the
records that a step asks for before it hands in anything else, and keeps the state of the step if the log has taken them.
Otherwise it keeps the state before, and asks here what that means (`on_append_refused`, `on_event_refused`).

Where the log stands is given with each call (`LogPosition`): a group does not know the other groups of its partition.
"""

from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple, TypeAlias

from kspec.spec.coordinator.administration import handle_delete_groups, handle_describe_groups, handle_list_groups
from kspec.spec.coordinator.deadlines import next_deadline, on_activation, on_deadline, on_resignation
from kspec.spec.coordinator.effects import (
    AnswerMember,
    AnswerRequest,
    GroupAnswer,
    GroupEffect,
    PersistRecords,
    PersistTransactionalOffsets,
    RuntimeEffect,
)
from kspec.spec.coordinator.group import Group, GroupStep, absent, exists
from kspec.spec.coordinator.joining import handle_join_group
from kspec.spec.coordinator.loading import groups_of, is_kept, plain_record, replay_all, replay_entry
from kspec.spec.coordinator.members import handle_heartbeat, handle_leave_group, handle_sync_group, on_assignment_stored
from kspec.spec.coordinator.modern.classic_members import (
    heartbeat_among_consumers,
    join_consumers,
    leave_consumers,
    sync_with_consumers,
)
from kspec.spec.coordinator.modern.deadlines import later
from kspec.spec.coordinator.modern.describing import handle_consumer_group_describe
from kspec.spec.coordinator.modern.heartbeat import handle_consumer_group_heartbeat
from kspec.spec.coordinator.modern.regexes import on_regexes_resolved
from kspec.spec.coordinator.modern.state import ResolvedRegularExpression
from kspec.spec.coordinator.offsets import (
    handle_offset_commit,
    handle_offset_delete,
    handle_offset_fetch,
    handle_txn_offset_commit,
    on_offsets_expiry,
    on_topic_deleted,
)
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.records import EndOfTransaction, GroupRecord, LogEntry
from kspec.spec.coordinator.refusals import (
    GroupRequest,
    answer_for_late_append,
    on_assignment_not_committed,
    on_records_refused,
    refuse,
)
from kspec.spec.coordinator.rules.transactional import CountsOffset, counts_if_latest
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.delete_groups import DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest
from kspec.spec.messages.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest
from kspec.spec.messages.groups.list_groups import ListGroupsRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest
from kspec.spec.messages.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from kspec.spec.step import Reply, Step
from kspec.spec.values import Error, GroupId, Instant, MonotonicMs, Offset, RequestNumber, TopicId


class LogPosition(NamedTuple):
    """The log end of a partition of `__consumer_offsets`, and its committed end: both offsets are behind a last record.

    Kafka: `SnapshottableCoordinator.lastWrittenOffset`, `lastCommittedOffset`.
    """

    end: Offset
    committed: Offset


NO_REQUEST = RequestNumber(0)
"""The number in a step that nobody has asked for."""

NOWHERE = LogPosition(Offset(0), Offset(0))
"""The position for a request that names no group, and so has no log."""


class UncommittedWrite(NamedTuple):
    """Entries of a group that the log has, and that are not committed. `end` is the offset behind the last of them.

    `is_loaded`: they were in the log when this coordinator began, so nobody here waits for them.
    """

    end: Offset
    entries: tuple[LogEntry, ...]
    is_loaded: bool = False


class WaitingAnswer(NamedTuple):
    """An answer to a request that waits until the log is committed up to the offset `until`, or else for `deadline_ms`.

    `number`: the request's. `answer` is `None` for a SyncGroup, which is decided then. Kafka: `CoordinatorWriteEvent` in the
    `DeferredEventQueue`.
    """

    number: RequestNumber
    request: GroupRequest
    until: Offset
    deadline_ms: MonotonicMs
    answer: GroupAnswer | JoinGroupResponse | SyncGroupResponse | None = None


class LoggedEntry(NamedTuple):
    """An entry of the log, and the offset behind it."""

    end: Offset
    entry: LogEntry


class CoordinatedGroup(NamedTuple):
    """A group as its coordinator has it: `latest` with all that was written, `committed` as a load of what is committed.

    `writes` leads from one to the other. It and `waiting` are in the order of the log.

    Kafka: the part of one group in `CoordinatorContext`: `TimelineHashMap`, `DeferredEventQueue`.
    """

    latest: Group
    committed: Group
    writes: tuple[UncommittedWrite, ...] = ()
    waiting: tuple[WaitingAnswer, ...] = ()


RuntimeStep: TypeAlias = Step[CoordinatedGroup, RuntimeEffect]


def unknown_group(group_id: GroupId) -> CoordinatedGroup:
    """A group of which nothing is known."""
    return CoordinatedGroup(absent(group_id), absent(group_id))


def waits_for(state: CoordinatedGroup) -> Offset:
    """The offset up to which the log has to be committed until nothing of a group waits any more, 0 if nothing does."""
    written = state.writes[-1].end if state.writes else Offset(0)
    return max(written, state.waiting[-1].until) if state.waiting else written


def is_forgotten(state: CoordinatedGroup) -> bool:
    """Whether nothing is left to know of a group, now and when all is committed."""
    return not (state.writes or state.waiting or is_kept(state.latest) or is_kept(state.committed))


class LoadedGroups(NamedTuple):
    """The groups of a log that is committed up to an offset, as far as it has been read, in the order of their records."""

    committed: Offset
    groups: tuple[CoordinatedGroup, ...] = ()

    def known(self) -> tuple[CoordinatedGroup, ...]:
        """Those of which there is something to know."""
        return tuple(group for group in self.groups if not is_forgotten(group))


def load_groups(
    before: LoadedGroups, entries: Iterable[LoggedEntry], counts: CountsOffset = counts_if_latest
) -> LoadedGroups:
    """The groups after more of the log has been read. `counts`: the coordinator's `counts_at_end`.

    What is not committed yet was written by another coordinator, and counts like its own.

    **Kafka:** `CoordinatorLoaderImpl.processMemoryRecords`.
    """
    latest = {group.latest.group_id: group.latest for group in before.groups}
    known = {group.latest.group_id: group.committed for group in before.groups}
    writes = {group.latest.group_id: list(group.writes) for group in before.groups}
    unread: dict[GroupId, list[GroupRecord]] = {}

    def read(group_id: GroupId) -> None:
        """Take the records of a group that have been put together."""
        records = unread.pop(group_id, ())
        if records:
            known[group_id] = latest[group_id] = replay_all(latest[group_id], records)

    for end, entry in entries:
        record = plain_record(entry)
        if end <= before.committed and record is not None:
            latest.setdefault(record.group_id, absent(record.group_id))
            unread.setdefault(record.group_id, []).append(record)
            continue
        for group_id in [one for one in unread if latest[one].pending_offsets]:  # a tombstone may end what is pending
            read(group_id)
        for group_id in groups_of(entry, latest):
            read(group_id)
            latest[group_id] = replay_entry(latest.get(group_id, absent(group_id)), entry, counts)
            if end <= before.committed:
                known[group_id] = latest[group_id]
            else:
                writes.setdefault(group_id, []).append(UncommittedWrite(end, (entry,), is_loaded=True))
    for group_id in list(unread):
        read(group_id)
    groups = tuple(
        CoordinatedGroup(group, known.get(group_id, absent(group_id)), tuple(writes.get(group_id, ())))
        for group_id, group in latest.items()
    )
    return before._replace(groups=groups)


def handled(coordinator: Coordinator, group: Group, request: GroupRequest, now: Instant) -> GroupStep:
    """The step of the handler that a request is for. **Kafka:** `GroupCoordinatorShard`."""
    match request:
        case ConsumerGroupHeartbeatRequest():
            return handle_consumer_group_heartbeat(coordinator, group, request, now)
        case ConsumerGroupDescribeRequest():
            return handle_consumer_group_describe(coordinator, group, request, now)
        case JoinGroupRequest() if group.consumer is not None and group.consumer.members:
            return join_consumers(coordinator, group, request, now)
        case SyncGroupRequest() if group.consumer is not None:
            return sync_with_consumers(coordinator, group, request, now)
        case HeartbeatRequest() if group.consumer is not None:
            return heartbeat_among_consumers(coordinator, group, request, now)
        case LeaveGroupRequest() if group.consumer is not None:
            return leave_consumers(coordinator, group, request, now)
        case JoinGroupRequest():
            return handle_join_group(coordinator, group, request, now)
        case SyncGroupRequest():
            return handle_sync_group(coordinator, group, request, now)
        case HeartbeatRequest():
            return handle_heartbeat(coordinator, group, request, now)
        case LeaveGroupRequest():
            return handle_leave_group(coordinator, group, request, now)
        case OffsetCommitRequest():
            return handle_offset_commit(coordinator, group, request, now)
        case TxnOffsetCommitRequest():
            return handle_txn_offset_commit(coordinator, group, request, now)
        case OffsetFetchRequest():
            return handle_offset_fetch(coordinator, group, request, now)
        case OffsetDeleteRequest():
            return handle_offset_delete(coordinator, group, request, now)
        case DescribeGroupsRequest():
            return handle_describe_groups(coordinator, group, request, now)
        case ListGroupsRequest():
            return handle_list_groups(coordinator, group, request, now)
        case _:
            return handle_delete_groups(coordinator, group, request, now)


# ---- requests


def handle_group_request(
    coordinator: Coordinator,
    state: CoordinatedGroup,
    number: RequestNumber,
    request: GroupRequest,
    position: LogPosition,
    now: Instant,
) -> RuntimeStep:
    """A request about one group: a read answers from what is committed, everything else is a step on the newest state.

    An answer waits until the records of its step are committed. One without records waits for what has been written
    before it, since it may depend on that; only a refusal is given at once. So is the answer to a JoinGroup or SyncGroup
    that stores nothing, but for an assignment that was loaded (`_is_loaded`).

    Errors: those of the request's handler.

    **Kafka:** `CoordinatorWriteEvent.run`, `CoordinatorReadEvent.run`, `CoordinatorContext.append`, `waitForPendingWrites`.
    """
    if is_read(coordinator, state, request):
        read = handled(coordinator, readable(coordinator, state, request), request, now)
        return Step(state, numbered(read.effects, number))
    step = handled(coordinator, coordinator.protocol.taken_on(state.latest, state.committed), request, now)
    return _run_ahead(coordinator, state, step, position, now, number, request)


def is_read(coordinator: Coordinator, state: CoordinatedGroup, request: GroupRequest) -> bool:
    """Whether a request is answered from what is committed, at once.

    An OffsetFetch that wants stable offsets is not: it waits for what is on its way. Nor is any of a group of which this
    coordinator has found uncommitted records in the log: its predecessor may have acknowledged them.

    **Kafka:** `GroupCoordinatorService.fetchOffsets`, `describeGroups`, `listGroups`.
    """
    match request:
        case OffsetFetchRequest():
            is_loaded = any(write.is_loaded for write in state.writes)
            return coordinator.protocol.reads_at_once(request.require_stable, is_loaded)
        case DescribeGroupsRequest() | ListGroupsRequest() | ConsumerGroupDescribeRequest():
            return True
    return False


def readable(coordinator: Coordinator, state: CoordinatedGroup, request: GroupRequest) -> Group:
    """The group that a read sees: it exists, and has offsets, as far as that is committed; the rest is the newest.

    Of a consumer group all is read as it is committed.

    **Kafka:** `GroupMetadataManager.group(groupId, committedOffset)`; a `ClassicGroup` has no older versions.
    """
    if state.committed.consumer is not None:
        return state.committed
    match request:
        case OffsetFetchRequest():
            read: Group = coordinator.protocol.reads(state.latest, state.committed)
            return read
    both = exists(state.committed) and exists(state.latest) and state.latest.consumer is None
    return state.latest if both else state.committed


def on_append_refused(
    coordinator: Coordinator,
    state: CoordinatedGroup,
    number: RequestNumber,
    request: GroupRequest,
    error: Error,
    now: Instant,
) -> RuntimeStep:
    """The log has refused the records of this request with `error`; `state` is as before the request, and stays so.

    **Kafka:** `CoordinatorContext.failCurrentBatch`. **Departs from it:** Kafka keeps what a LeaveGroup has changed of the
    members.
    """
    refused = on_records_refused(coordinator, state.latest, request, error, now)
    return Step(state._replace(latest=refused.state), numbered(refused.effects, number))


def numbered(effects: tuple[GroupEffect, ...], number: RequestNumber) -> tuple[RuntimeEffect, ...]:
    """Effects whose replies say which request they answer."""
    return tuple(_numbered(effect, number) for effect in effects)


def _numbered(effect: GroupEffect, number: RequestNumber) -> RuntimeEffect:
    match effect:
        case Reply(answer):
            return AnswerRequest(number, answer)
        case _:
            return effect


def _run_ahead(
    coordinator: Coordinator,
    state: CoordinatedGroup,
    step: GroupStep,
    position: LogPosition,
    now: Instant,
    number: RequestNumber = NO_REQUEST,
    request: GroupRequest | None = None,
) -> RuntimeStep:
    """Take a step of the newest state. Its records will be in the log at its present end."""
    effects: list[RuntimeEffect] = []
    waiting = list(state.waiting)
    writes, end = state.writes, position.end
    deadline_ms = now.after(coordinator.settings.commit_timeout_ms)
    for effect in step.effects:
        match effect:
            case PersistRecords(records):
                end = Offset(position.end + len(records))
                writes = (*writes, UncommittedWrite(end, records))
                effects.append(effect)
                waiting += (WaitingAnswer(number, sync, end, deadline_ms) for sync in _sync(request))
            case PersistTransactionalOffsets(commits=commits):
                end = Offset(position.end + len(commits))
                writes = (*writes, UncommittedWrite(end, commits))
                effects.append(effect)
            case Reply(answer):
                if coordinator.protocol.is_answered(end, position.committed) or _is_refusal(answer):
                    effects.append(AnswerRequest(number, answer))
                else:
                    assert request is not None, f"{answer} answers nobody"
                    waiting.append(WaitingAnswer(number, request, end, deadline_ms, answer))
            case AnswerMember(when_committed=waits) if (
                request is not None
                and end > position.committed
                and (waits or (coordinator.protocol.assignment_waits and _is_loaded(state, effect)))
            ):
                waiting.append(WaitingAnswer(number, request, end, deadline_ms, effect.response))
            case _:
                effects.append(effect)
    if len(waiting) == len(state.waiting):
        return Step(state._replace(latest=step.state, writes=writes), tuple(effects))
    return Step(state._replace(latest=step.state, writes=writes, waiting=tuple(waiting)), tuple(effects))


def _sync(request: GroupRequest | None) -> tuple[SyncGroupRequest, ...]:
    match request:
        case SyncGroupRequest():
            return (request,)
    return ()


def _is_loaded(state: CoordinatedGroup, effect: AnswerMember) -> bool:
    """Whether an effect gives out an assignment that may be from records which were loaded, and are not committed.

    Kafka gives it out at once. If another coordinator follows that has not got these records, the group is in the generation
    before again, whose members then commit.
    """
    match effect.response:
        case SyncGroupResponse(Error.NONE):
            return any(write.is_loaded for write in state.writes)
    return False


def _is_refusal(answer: GroupAnswer) -> bool:
    """Whether an answer is an error that ends a handler in Kafka; such an answer waits for nothing."""
    match answer:
        case OffsetCommitResponse(partitions) | TxnOffsetCommitResponse(partitions):
            stored = (Error.NONE, Error.OFFSET_METADATA_TOO_LARGE)
            return bool(partitions) and all(one.error not in stored for one in partitions)
        case DeleteGroupsResponse():
            return False
        case _:
            return answer.error not in (Error.NONE, Error.REBALANCE_IN_PROGRESS)


# ---- what becomes of it


def on_committed(coordinator: Coordinator, state: CoordinatedGroup, committed: Offset, now: Instant) -> RuntimeStep:
    """The log is committed up to an offset (the high watermark): answers that have waited for it are given, in order.

    **Kafka:** `HighWatermarkListener.onHighWatermarkUpdated`, `DeferredEventQueue.completeUpTo`.
    """
    written = sum(1 for _ in takewhile(lambda one: one.end <= committed, state.writes))
    ready = tuple(takewhile(lambda one: one.until <= committed, state.waiting))
    if not written and not ready:
        return Step(state)
    entries = (entry for write in state.writes[:written] for entry in write.entries)
    base = _replayed(coordinator, state.committed, entries)
    latest = state.latest
    effects: list[RuntimeEffect] = []
    for one in ready:
        stored = _give(latest, one, now)
        latest = stored.state
        effects += stored.effects
    return Step(CoordinatedGroup(latest, base, state.writes[written:], state.waiting[len(ready) :]), tuple(effects))


def _replayed(coordinator: Coordinator, group: Group, entries: Iterable[LogEntry]) -> Group:
    plain: list[GroupRecord] = []
    for entry in entries:
        record = plain_record(entry)
        if record is not None:
            plain.append(record)
        else:
            group = replay_entry(replay_all(group, plain), entry, coordinator.protocol.counts_at_end)
            plain = []
    return replay_all(group, plain)


def _give(group: Group, waiting: WaitingAnswer, now: Instant) -> Step[Group, RuntimeEffect]:
    match waiting.answer:
        case None:
            stored: GroupStep = Step(group)
            for request in _sync(waiting.request):
                stored = on_assignment_stored(group, request, now)
            return Step(stored.state, numbered(stored.effects, waiting.number))
        case JoinGroupResponse() | SyncGroupResponse():
            return Step(group, (AnswerMember(waiting.number, waiting.answer),))
        case _:
            return Step(group, (AnswerRequest(waiting.number, waiting.answer),))


def next_due(state: CoordinatedGroup) -> MonotonicMs | None:
    """The time at which `on_due` is due next (milliseconds), `None` if nothing waits."""
    deadline = next_deadline(state.latest)
    if not state.waiting:
        return deadline
    return state.waiting[0].deadline_ms if deadline is None else min(deadline, state.waiting[0].deadline_ms)


def on_due(coordinator: Coordinator, state: CoordinatedGroup, position: LogPosition, now: Instant) -> RuntimeStep:
    """Do what is due at this time: answers that have waited too long fail, sessions end, rebalances go on.

    What was written stays as it is: it may be committed later.

    **Kafka:** `OperationTimeout`, `CoordinatorTimer`.
    """
    late = tuple(takewhile(lambda one: one.deadline_ms <= now.monotonic, state.waiting))
    state = state._replace(waiting=state.waiting[len(late) :])
    failed: list[RuntimeEffect] = []
    for one in late:
        step = _fail(coordinator, state.latest, one, Error.REQUEST_TIMED_OUT, now)
        state = state._replace(latest=step.state)
        failed += step.effects
    due = next_deadline(state.latest)
    if due is None or due > now.monotonic:
        return Step(state, tuple(failed))
    ahead = _run_ahead(coordinator, state, on_deadline(coordinator, state.latest, now), position, now)
    return Step(ahead.state, (*ahead.effects, *failed))


def _fail(
    coordinator: Coordinator, group: Group, waiting: WaitingAnswer, error: Error, now: Instant
) -> Step[Group, RuntimeEffect]:
    told = answer_for_late_append(waiting.request, error)
    if waiting.answer is not None:
        return Step(group, numbered((refuse(waiting.request, told),), waiting.number))
    step: GroupStep = Step(group)
    for request in _sync(waiting.request):
        step = on_assignment_not_committed(coordinator, group, request, told, now)
    return Step(step.state, numbered(step.effects, waiting.number))


# ---- events


def expire_offsets(coordinator: Coordinator, state: CoordinatedGroup, position: LogPosition, now: Instant) -> RuntimeStep:
    """Forget the offsets whose time is over. **Kafka:** `GroupCoordinatorShard.cleanupGroupMetadata`."""
    return _run_ahead(coordinator, state, on_offsets_expiry(coordinator, state.latest, now), position, now)


def forget_topic(
    coordinator: Coordinator, state: CoordinatedGroup, topic: str, topic_id: TopicId, position: LogPosition, now: Instant
) -> RuntimeStep:
    """Forget the offsets of a topic that is deleted. **Kafka:** `GroupCoordinatorService.onMetadataUpdate`."""
    step = on_topic_deleted(coordinator, state.latest, topic, topic_id, now)
    return _run_ahead(coordinator, state, step, position, now)


def end_transaction(
    coordinator: Coordinator, state: CoordinatedGroup, ended: EndOfTransaction, position: LogPosition, now: Instant
) -> RuntimeStep:
    """A marker has ended a producer's transaction: its offsets of the group count from now on, or they never will.

    The marker is the last record of the log. It is the producer's id alone that matters: the leader of the partition has
    compared the epochs (`spec.transactions.log.partition.check_marker`). No answer of the group's waits for it. That to the
    coordinator of transactions waits, as of any partition, until the marker is committed.

    **Kafka:** `CoordinatorRuntime.scheduleTransactionCompletion`, which replays before it appends, and takes that back if
    the log refuses the marker.
    """
    if not any(one.producer_id == ended.producer_id for one in state.latest.pending_offsets):
        return Step(state)
    latest = replay_entry(state.latest, ended, coordinator.protocol.counts_at_end)
    return Step(state._replace(latest=latest, writes=(*state.writes, UncommittedWrite(position.end, (ended,)))))


def check_marker_of_groups(is_loaded: bool) -> Error:
    """Whether a marker may be appended to a partition of `__consumer_offsets`: not before its groups are loaded.

    Errors: `NOT_LEADER_OR_FOLLOWER`, after which the coordinator of transactions sends the marker again.

    **Kafka:** `KafkaApis.handleWriteTxnMarkersRequest`, which translates the errors of `CoordinatorRuntime`.
    """
    return Error.NONE if is_loaded else Error.NOT_LEADER_OR_FOLLOWER


def take_resolved(
    coordinator: Coordinator,
    state: CoordinatedGroup,
    found: tuple[ResolvedRegularExpression, ...],
    position: LogPosition,
    now: Instant,
) -> RuntimeStep:
    """Regular expressions of a consumer group are resolved. **Kafka:** `handleRegularExpressionsResult`."""
    return _run_ahead(coordinator, state, on_regexes_resolved(coordinator, state.latest, found, now), position, now)


def activate(coordinator: Coordinator, state: CoordinatedGroup, position: LogPosition, now: Instant) -> RuntimeStep:
    """A group has been loaded from the log. **Kafka:** `GroupMetadataManager.onLoaded`."""
    return _run_ahead(coordinator, state, on_activation(coordinator, state.latest, now), position, now)


def on_event_refused(
    coordinator: Coordinator, before: CoordinatedGroup, after: CoordinatedGroup, now: Instant
) -> CoordinatedGroup:
    """The group if the log has refused the records of an event: its offsets are as before, and so is whether it exists.

    A consumer group is as before in all, and what was due is tried again a little later.

    **Kafka:** `SnapshottableCoordinator.revertLastWrittenOffset`; members and state of a `ClassicGroup` are not taken back.
    """
    consumer = before.latest.consumer
    if consumer is not None:
        return before._replace(latest=later(before.latest, consumer, coordinator, now), waiting=after.waiting)
    if exists(before.latest) != exists(after.latest):
        return before
    latest = after.latest._replace(offsets=before.latest.offsets, pending_offsets=before.latest.pending_offsets)
    return before._replace(latest=latest, waiting=after.waiting)


def resign(coordinator: Coordinator, state: CoordinatedGroup, now: Instant) -> RuntimeStep:
    """Another broker coordinates the group from now on, or nobody: who waits is told so, and nothing is kept.

    What was written and not committed may still be committed by the next leader, or not.

    **Kafka:** `CoordinatorContext.unload`: `DeferredEventQueue.failAll`, `GroupMetadataManager.onUnloaded`.
    """
    failed = tuple(
        effect
        for one in state.waiting
        if one.answer is not None
        for effect in numbered((refuse(one.request, Error.NOT_COORDINATOR),), one.number)
    )
    resigned = on_resignation(coordinator, state.latest, now)
    return Step(unknown_group(state.latest.group_id), (*failed, *numbered(resigned.effects, NO_REQUEST)))
