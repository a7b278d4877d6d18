"""The model's values as a reader of traces sees them. Importing this module makes `in_words` know them."""

from kspec.model_check.models.group.values import (
    NO_POSITION,
    ConsumerState,
    FormerCoordinator,
    GroupExchange,
    HeartbeatingState,
    LastCommitted,
    LateRequest,
    Request,
)
from kspec.model_check.traces.encode import in_words
from kspec.spec.consumer.membership import MembershipState
from kspec.spec.consumer.modern.membership import ConsumerMemberState
from kspec.spec.coordinator.group import Group, GroupState, Member
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerTombstone,
    CurrentAssignmentRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import AssignedPartitions, ConsumerGroupMember, TargetAssignment, places
from kspec.spec.coordinator.records import GroupMetadataRecord, GroupTombstone, LogEntry, OffsetCommitRecord
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.coordinator.runtime import CoordinatedGroup, UncommittedWrite
from kspec.spec.messages.groups.consumer_group_heartbeat import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.join_group import JoinGroupRequest
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kspec.spec.messages.groups.sync_group import SyncGroupRequest
from kspec.spec.values import NO_GENERATION, NO_MEMBER_ID

STATES = {
    MembershipState.UNJOINED: "not in the group",
    MembershipState.PREPARING_REBALANCE: "joins",
    MembershipState.COMPLETING_REBALANCE: "asks for its assignment",
    MembershipState.STABLE: "stable",
}


@in_words.register
def _(state: ConsumerState) -> str:
    member = state.membership
    parts = [STATES[member.state]]
    if member.generation.generation != NO_GENERATION:
        parts[0] += f" in generation {member.generation.generation}"
    if member.generation.member_id != NO_MEMBER_ID:
        parts[0] += f" as {member.generation.member_id}"
    if member.state == MembershipState.STABLE and member.rejoin_needed:
        parts.append("is to join again")
    parts += [_reads(partition, state.positions[partition]) for partition in sorted(member.owned)]
    return ", ".join(parts)


STATES_IN_CONSUMER_GROUP = {
    ConsumerMemberState.UNSUBSCRIBED: "not in the group",
    ConsumerMemberState.JOINING: "joins",
    ConsumerMemberState.RECONCILING: "reconciles",
    ConsumerMemberState.ACKNOWLEDGING: "is to acknowledge",
    ConsumerMemberState.STABLE: "stable",
    ConsumerMemberState.FATAL: "failed",
}


@in_words.register
def _(state: HeartbeatingState) -> str:
    member = state.membership
    parts = [STATES_IN_CONSUMER_GROUP[member.state]]
    if member.epoch != JOIN_EPOCH:
        parts[0] += f" in epoch {member.epoch}"
    if member.assigned is not None:
        parts.append(f"is assigned {in_words(member.assigned)}")
    if member.in_progress is not None:
        parts.append(f"is about to read {in_words(member.in_progress)}")
    if member.reconciled is not None and not (member.is_told and member.is_acknowledged):
        parts.append("has to tell " + ("what it owns" if member.is_told else "all"))
    parts += [_reads(partition, state.positions[partition]) for partition in sorted(member.owned)]
    return ", ".join(parts)


def _reads(partition: int, position: int) -> str:
    return f"reads {partition}" + ("" if position == NO_POSITION else f" at {position}")


@in_words.register
def _(state: CoordinatedGroup) -> str:
    parts = [_group_in_words(state.latest)]
    if state.writes:
        parts.append(f"not committed: {'; '.join(in_words(write) for write in state.writes)}")
    if state.waiting:
        parts.append(f"answers that wait: {', '.join(in_words(one.request) for one in state.waiting)}")
    return ", ".join(part for part in parts if part) or "none"


def _group_in_words(group: Group) -> str:
    if group.state == GroupState.DEAD:
        return ""
    parts = [f"{group.state.value}, generation {group.generation}"]
    if group.consumer is not None:
        parts = [f"{group.state.value}, epoch {group.consumer.epoch}, targets of {group.consumer.assignment_epoch}"]
        parts += [_consumer_in_words(one, group.consumer.targets) for one in group.consumer.members]
    if group.leader is not None:
        parts.append(f"leader {group.leader}")
    parts += [_member_in_words(member) for member in group.members]
    parts += [f"{one.member_id} has been told its id" for one in group.pending]
    parts += [f"partition {one.partition} committed at {one.offset}" for one in group.offsets]
    return ", ".join(parts)


def _consumer_in_words(member: ConsumerGroupMember, targets: tuple[TargetAssignment, ...]) -> str:
    target = next((one.places for one in targets if one.member_id == member.member_id), frozenset())
    pending = f", has to give up {_places_in_words(places(member.pending))}" if member.pending else ""
    has = f"has {_places_in_words(places(member.assigned))} of {_places_in_words(target)}"
    return f"{member.member_id} in epoch {member.epoch} {has}{pending}"


def _places_in_words(places: Places) -> str:
    return in_words(frozenset(place.partition for place in places))


def _progress_in_words(assigned: AssignedPartitions, pending: AssignedPartitions) -> str:
    given_up = f", gives up {_places_in_words(places(pending))}" if pending else ""
    return f"has {_places_in_words(places(assigned))}{given_up}"


def _member_in_words(member: Member) -> str:
    assigned = f" has {in_words(frozenset(member.assignment))}" if member.assignment else ""
    waits = " waits for the generation" if member.join_request is not None else ""
    return f"{member.member_id}{assigned}{waits or (' waits for its assignment' if member.sync_request is not None else '')}"


@in_words.register
def _(former: FormerCoordinator) -> str:
    return in_words(former.state)


@in_words.register
def _(last: LastCommitted) -> str:
    return ", ".join(_entry_in_words(entry) for entry in last.entries)


@in_words.register
def _(write: UncommittedWrite) -> str:
    return ", ".join(_entry_in_words(entry) for entry in write.entries)


def _entry_in_words(entry: LogEntry) -> str:
    match entry:
        case GroupMetadataRecord():
            given = [f"{one.member_id} {in_words(frozenset(one.assignment))}" for one in entry.members]
            return f"generation {entry.generation}" + (f" ({', '.join(given)})" if given else "")
        case OffsetCommitRecord():
            return f"partition {entry.partition} at {entry.offset}"
        case GroupTombstone():
            return "the end of the group"
        case ConsumerGroupEpochRecord():
            return f"epoch {entry.epoch}"
        case ConsumerGroupMemberRecord():
            return f"member {entry.member_id}"
        case TargetEpochRecord():
            return f"targets of {entry.epoch}"
        case TargetRecord():
            return f"{entry.member_id} is to have {_places_in_words(entry.places)}"
        case CurrentAssignmentRecord():
            return f"{entry.member_id} in epoch {entry.epoch} {_progress_in_words(entry.assigned, entry.pending)}"
        case ConsumerTombstone():
            return f"no {entry.kind.name.lower().replace('_', ' ')} of {entry.name or 'the group'}"
        case _:
            return str(entry)


def _request_in_words(request: Request) -> str:
    match request:
        case JoinGroupRequest():
            as_whom = f" as {request.member_id}" if request.member_id else ""
            return f"JoinGroup{as_whom}"
        case SyncGroupRequest():
            return f"SyncGroup of generation {request.generation}"
        case LeaveGroupRequest():
            return f"LeaveGroup of {request.members[0].member_id}"
        case OffsetCommitRequest():
            what = ", ".join(f"partition {one.partition} at {one.offset}" for one in request.offsets)
            return f"OffsetCommit of {what} in generation {request.generation}"
        case OffsetFetchRequest():
            return "OffsetFetch"
        case ConsumerGroupHeartbeatRequest():
            owned = "" if request.owned is None else f" owning {_places_in_words(request.owned)}"
            return f"ConsumerGroupHeartbeat of epoch {request.member_epoch}{owned}"


@in_words.register(JoinGroupRequest)
@in_words.register(SyncGroupRequest)
@in_words.register(LeaveGroupRequest)
@in_words.register(OffsetCommitRequest)
@in_words.register(OffsetFetchRequest)
@in_words.register(ConsumerGroupHeartbeatRequest)
def _(request: Request) -> str:
    return _request_in_words(request)


@in_words.register
def _(found: GroupExchange) -> str:
    asked = _request_in_words(found.request)
    match found.answer:
        case None:
            return f"{asked}, {'waits' if found.is_taken else 'under way'}"
        case OffsetCommitResponse(partitions) | OffsetFetchResponse(_, _, partitions):
            errors = dict.fromkeys(one.error.name for one in partitions)
            return f"{asked}, answered {', '.join(errors)}"
        case answer:
            return f"{asked}, answered {answer.error.name}"


@in_words.register
def _(late: LateRequest) -> str:
    return f"{_request_in_words(late.request)}, late"
