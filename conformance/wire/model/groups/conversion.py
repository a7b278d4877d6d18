"""A group that changes its protocol while it has members: from classic to KIP-848 when a consumer joins, and back.

A member speaks the classic protocol, another one KIP-848. The first reads no topic, since its subscription and its
assignment name topics inside bytes. What is expected is what the newest of the coordinators answers, from the first release
on that gives the same.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, RequestFields, equals
from kspec.conformance.wire.model.groups.consumers import (
    COORDINATORS,
    PLACES,
    RANGE,
    RELEASED,
    TOPICS,
    alike_since,
    assignment_told,
    consumers_setup,
    long_assigned,
    pause_ms,
)
from kspec.conformance.wire.model.groups.group import (
    GROUP,
    GROUP_HOLE,
    JOIN,
    REBALANCE_MS,
    SESSION_MS,
    START,
    SYNC,
    GroupAndClients,
    fresh_id,
    number_of,
    on_wire,
    replied_exchange,
    waiting_exchange,
)
from kspec.conformance.wire.model.groups.members import NOT_STORED_YET
from kspec.conformance.wire.model.requests import TOPIC, TOPIC_ID, since
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.administration import handle_describe_groups
from kspec.spec.coordinator.effects import PersistRecords
from kspec.spec.coordinator.group import GroupStep, exists, is_pending, member_of
from kspec.spec.coordinator.members import on_assignment_stored
from kspec.spec.coordinator.modern.classic_members import (
    heartbeat_among_consumers,
    join_consumers,
    leave_consumers,
    sync_with_consumers,
)
from kspec.spec.coordinator.modern.describing import handle_consumer_group_describe
from kspec.spec.coordinator.modern.heartbeat import handle_consumer_group_heartbeat
from kspec.spec.coordinator.modern.state import ConsumerGroupMember, consumer_of, places
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorSettings
from kspec.spec.coordinator.rebalance import then
from kspec.spec.coordinator.rules.consumer_protocol import write_assignment
from kspec.spec.coordinator.runtime import handled
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kspec.spec.messages.groups.consumer_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    UNCHANGED_MS,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import CONSUMER, GroupProtocol, JoinGroupRequest
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest
from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, GroupEpoch, MemberId

CLASSIC, MODERN = "A", "B"
"""The client that speaks the classic protocol, and the one that speaks KIP-848."""

MODERN_ID = MemberId("member-b")
MOST_GENERATIONS, MOST_IDS = 5, 2
REQUIRING_ID, OF_MANY, REPORTING_MISSING = 4, 3, 6
OFFERED = (GroupProtocol("range", b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff"),)
"""A subscription to no topic, as the first consumers write it: a later layout has what the member owns, too."""

NO_PARTITIONS = write_assignment(0, frozenset())
WITH_USER_DATA = NO_PARTITIONS[:-4] + b"\x00\x00\x00\x01x"
"""An assignment to which an assignor has added something, which a consumer group would lose."""

CONVERTS = "a group changes its protocol without losing a member, its generation or who owns what"

Told = Callable[[Any], tuple[Error, tuple[Constraint, ...]]]


class ConvertedGroup(NamedTuple):
    """The group and its clients, as a coordinator of each release has them."""

    states: tuple[GroupAndClients, ...] = (GroupAndClients(),) * RELEASED


class AskedOnce(NamedTuple):
    """A request as handlers get it, and the same on the wire. `fresh`: the id that the coordinator may give."""

    request: Any
    fields: RequestFields
    fresh: MemberId = NO_MEMBER_ID


def _coordinator(number: int) -> Coordinator:
    return Coordinator(COORDINATORS[number][1], CoordinatorSettings(initial_rebalance_delay_ms=0), TOPICS)


def _move(
    name: str,
    words: str,
    handler: Callable[..., GroupStep],
    ask: Callable[[GroupAndClients], AskedOnce | None],
    client: str,
    told: Told | None = None,
) -> Move:
    """`told`: how an answer is checked that comes at once; none for JoinGroup and SyncGroup."""

    def taken_in(state: GroupAndClients, number: int) -> MoveResult | None:
        asked = ask(state)
        if asked is None:
            return None
        step = handled(_coordinator(number), state.group, asked.request, START)
        step = _stored(step, asked.request)
        if told is None:
            taken: Any = waiting_exchange(state, client, asked.fields, step, asked.fresh)
        else:
            taken = replied_exchange(state, client, asked.fields, step, told)
        after = taken.state._replace(group=long_assigned(taken.state.group))
        outcome = taken.exchange.outcome + (
            _what_becomes(state, after, client) if taken.exchange.error == Error.NONE else ""
        )
        exchange = taken.exchange._replace(outcome=outcome, pause_ms=pause_ms(state.group, after.group))
        is_seen = handler is handle_describe_groups and exchange.error == Error.NONE
        return MoveResult(after, exchange._replace(retried=NOT_STORED_YET) if is_seen else exchange)

    def take(protocol: BrokerProtocol, state: ConvertedGroup) -> MoveResult | None:
        found = [taken_in(one, number) for number, one in enumerate(state.states)]
        exchange = alike_since([None if one is None else one.exchange for one in found])
        if exchange is None:
            return None
        after: Any = (before if one is None else one.state for one, before in zip(found, state.states, strict=True))
        return MoveResult(ConvertedGroup(tuple(after)), exchange)

    return Move(name, words, handler, CONVERTS, take)


def _what_becomes(before: GroupAndClients, after: GroupAndClients, client: str) -> str:
    """The group after a request, in a few words."""
    kinds = tuple("consumers" if one.group.consumer is not None else "classic" for one in (before, after))
    told = f" in {kinds[0]}" if kinds[0] == kinds[1] else f" from {kinds[0]} to {kinds[1]}"
    if client == CLASSIC:
        return told
    if client == MODERN:
        return f"{told}, {len(_may(after))} of {len(PLACES)} partitions"
    members = after.group.members if after.group.consumer is None else after.group.consumer.members
    return f", {after.group.state.value}, {len(members)} members"


def _stored(step: GroupStep, request: Any) -> GroupStep:
    """The step after its records are committed: an assignment is handed out then."""
    match request:
        case SyncGroupRequest() if any(isinstance(effect, PersistRecords) for effect in step.effects):
            return then(step, lambda after: on_assignment_stored(after, request, START))
    return step


def _generation(state: GroupAndClients) -> int:
    """The generation of the group, or the epoch of the classic member in a consumer group."""
    consumer = state.group.consumer
    if consumer is None:
        return state.group.generation
    member = _classic_member(state)
    return consumer.epoch if member is None else member.epoch


def _classic_member(state: GroupAndClients) -> ConsumerGroupMember | None:
    consumer, ids = state.group.consumer, state.ids_of(CLASSIC)
    return consumer_of(consumer, ids[-1]) if consumer is not None and ids else None


def _modern_member(state: GroupAndClients) -> ConsumerGroupMember | None:
    return None if state.group.consumer is None else consumer_of(state.group.consumer, MODERN_ID)


def _too_far(state: GroupAndClients) -> bool:
    consumer = state.group.consumer
    return (state.group.generation if consumer is None else consumer.epoch) >= MOST_GENERATIONS


# ---- the member of the classic protocol


def _is_in(state: GroupAndClients, member_id: MemberId) -> bool:
    group = state.group
    is_member = member_of(group, member_id) is not None or is_pending(group, member_id)
    return is_member or (group.consumer is not None and consumer_of(group.consumer, member_id) is not None)


def _join(name: str, words: str, is_new: bool) -> Move:
    def ask(state: GroupAndClients) -> AskedOnce | None:
        ids = state.ids_of(CLASSIC)
        if _too_far(state) or (not is_new and not ids) or (is_new and (len(ids) == MOST_IDS or _is_any_in(state))):
            return None
        member_id = NO_MEMBER_ID if is_new else ids[-1]
        fresh = fresh_id(state, CLASSIC)
        request = JoinGroupRequest(
            number_of(CLASSIC, JOIN),
            GROUP,
            member_id,
            None,
            "kspec",
            "/127.0.0.1",
            SESSION_MS,
            REBALANCE_MS,
            CONSUMER,
            OFFERED,
            fresh,
            requires_member_id=True,
        )
        fields = {
            "group_id": GROUP_HOLE,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "member_id": on_wire(member_id),
            "protocol_type": CONSUMER,
            "protocols": [{"name": one.name, "metadata": one.metadata} for one in OFFERED],
        }
        sent = RequestFields("JoinGroup", fields, since(REQUIRING_ID))
        return AskedOnce(request, sent, fresh if is_new else NO_MEMBER_ID)

    return _move(f"classic.join.{name}", words, join_consumers, ask, CLASSIC)


def _is_any_in(state: GroupAndClients) -> bool:
    return any(_is_in(state, one) for one in state.ids_of(CLASSIC))


def _sync(name: str, words: str, assignment: bytes) -> Move:
    def ask(state: GroupAndClients) -> AskedOnce | None:
        ids = state.ids_of(CLASSIC)
        if not ids:
            return None
        leads = state.group.consumer is None and state.group.leader == ids[-1]
        if assignment != NO_PARTITIONS and not leads:
            return None
        given = (MemberAssignment(ids[-1], assignment),) if leads else ()
        generation = Generation(_generation(state))
        request = SyncGroupRequest(
            number_of(CLASSIC, SYNC), GROUP, generation, ids[-1], None, CONSUMER, OFFERED[0].name, given
        )
        fields = {
            "group_id": GROUP_HOLE,
            "generation_id": generation,
            "member_id": on_wire(ids[-1]),
            "protocol_type": CONSUMER,
            "protocol_name": OFFERED[0].name,
            "assignments": [{"member_id": on_wire(one.member_id), "assignment": one.assignment} for one in given],
        }
        return AskedOnce(request, RequestFields("SyncGroup", fields, since(0)))

    return _move(f"classic.sync{name}", words, sync_with_consumers, ask, CLASSIC)


def _heartbeat(name: str, words: str, ahead: int) -> Move:
    def ask(state: GroupAndClients) -> AskedOnce | None:
        ids = state.ids_of(CLASSIC)
        if not ids:
            return None
        generation = Generation(_generation(state) + ahead)
        request = HeartbeatRequest(GROUP, generation, ids[-1])
        fields = {"group_id": GROUP_HOLE, "generation_id": generation, "member_id": on_wire(ids[-1])}
        return AskedOnce(request, RequestFields("Heartbeat", fields, since(0)))

    return _move(f"classic.heartbeat{name}", words, heartbeat_among_consumers, ask, CLASSIC, _heartbeat_told)


def _heartbeat_told(answer: HeartbeatResponse) -> tuple[Error, tuple[Constraint, ...]]:
    return answer.error, (equals("error_code", answer.error.value),)


def _leave() -> Move:
    def ask(state: GroupAndClients) -> AskedOnce | None:
        ids = state.ids_of(CLASSIC)
        if not ids:
            return None
        fields = {"group_id": GROUP_HOLE, "members": [{"member_id": on_wire(ids[-1]), "group_instance_id": None}]}
        request = LeaveGroupRequest(GROUP, (MemberIdentity(ids[-1]),))
        return AskedOnce(request, RequestFields("LeaveGroup", fields, since(OF_MANY)))

    return _move("classic.leave", "the classic member leaves", leave_consumers, ask, CLASSIC, _left)


def _left(answer: LeaveGroupResponse) -> tuple[Error, tuple[Constraint, ...]]:
    (one,) = answer.members
    return one.error, (equals("error_code", answer.error.value), equals("members[0].error_code", one.error.value))


# ---- the member of KIP-848


def _beat(
    name: str,
    words: str,
    epoch: Callable[[GroupAndClients], int | None],
    owned: Callable[[GroupAndClients], frozenset[TopicIdPartition] | None] = lambda state: None,
    joins: bool = False,
) -> Move:
    """`epoch`: that which the member says; none where it cannot say this."""

    def ask(state: GroupAndClients) -> AskedOnce | None:
        said = epoch(state)
        if said is None:
            return None
        has, timeout = owned(state), REBALANCE_MS if joins else UNCHANGED_MS
        topics = frozenset(("topic",)) if joins else None
        assignor = RANGE if joins else None
        request = ConsumerGroupHeartbeatRequest(
            GROUP, MODERN_ID, GroupEpoch(said), None, None, timeout, topics, None, assignor, has
        )
        numbers = [] if has is None else sorted(one.partition for one in has)
        fields = {
            "group_id": GROUP_HOLE,
            "member_id": str(MODERN_ID),
            "member_epoch": said,
            "instance_id": None,
            "rebalance_timeout_ms": timeout,
            "subscribed_topic_names": [TOPIC] if joins else None,
            "server_assignor": assignor,
            "topic_partitions": None if has is None else [{"topic_id": TOPIC_ID, "partitions": numbers}] if numbers else [],
        }
        return AskedOnce(request, RequestFields("ConsumerGroupHeartbeat", fields))

    return _move(f"consumer.{name}", words, handle_consumer_group_heartbeat, ask, MODERN, _beat_told)


def _beat_told(answer: ConsumerGroupHeartbeatResponse) -> tuple[Error, tuple[Constraint, ...]]:
    error = equals("error_code", answer.error.value)
    if answer.error != Error.NONE:
        return answer.error, (error,)
    epoch = equals("member_epoch", answer.member_epoch)
    return Error.NONE, (error, epoch, *assignment_told("assignment", answer.assignment))


def _joins(state: GroupAndClients) -> int | None:
    """Epoch 0, if the group is there, as long as it is within the bounds: a new group has another epoch in each release."""
    return JOIN_EPOCH if exists(state.group) and state.group.generation + _epoch(state) and not _too_far(state) else None


def _epoch(state: GroupAndClients) -> int:
    return 0 if state.group.consumer is None else state.group.consumer.epoch


def _own_epoch(state: GroupAndClients) -> int | None:
    member = _modern_member(state)
    return None if member is None else member.epoch


def _leaves(state: GroupAndClients) -> int | None:
    return None if _modern_member(state) is None or _too_far(state) else LEAVE_EPOCH


def _may(state: GroupAndClients) -> frozenset[TopicIdPartition]:
    member = _modern_member(state)
    return frozenset() if member is None else places(member.assigned)


# ---- looking at the group


def _describe_classic() -> Move:
    def ask(state: GroupAndClients) -> AskedOnce:
        fields = RequestFields("DescribeGroups", {"groups": [GROUP_HOLE]}, since(REPORTING_MISSING))
        return AskedOnce(DescribeGroupsRequest(GROUP, True), fields)

    def told(answer: DescribeGroupsResponse) -> tuple[Error, tuple[Constraint, ...]]:
        error = equals("groups[0].error_code", answer.error.value)
        if answer.error != Error.NONE:
            return answer.error, (error,)
        inside = (
            equals("groups[0].group_state", answer.group_state),
            equals("groups[0].members[#]", len(answer.members)),
            equals("groups[0].protocol_data", answer.protocol_name),
        )
        return Error.NONE, (error, *inside)

    return _move("describe.classic", "describe the group as a classic one", handle_describe_groups, ask, "C", told)


def _describe_consumers() -> Move:
    def ask(state: GroupAndClients) -> AskedOnce:
        fields = {"group_ids": [GROUP_HOLE], "include_authorized_operations": False}
        return AskedOnce(ConsumerGroupDescribeRequest(GROUP), RequestFields("ConsumerGroupDescribe", fields))

    def told(answer: ConsumerGroupDescribeResponse) -> tuple[Error, tuple[Constraint, ...]]:
        error = equals("groups[0].error_code", answer.error.value)
        if answer.error != Error.NONE:
            return answer.error, (error,)
        inside = (
            equals("groups[0].group_state", answer.group_state),
            equals("groups[0].group_epoch", answer.group_epoch),
            equals("groups[0].assignment_epoch", answer.assignment_epoch),
            equals("groups[0].members[#]", len(answer.members)),
        )
        return Error.NONE, (error, *inside)

    words = "describe the group as a consumer group"
    return _move("describe.consumers", words, handle_consumer_group_describe, ask, "C", told)


def _moves() -> Iterator[Move]:
    yield _join("new", "the classic member joins without an id", True)
    yield _join("own", "the classic member joins with the id it was given", False)
    yield _sync("", "the classic member asks for its assignment", NO_PARTITIONS)
    yield _sync(".user-data", "the classic leader assigns with data of its assignor", WITH_USER_DATA)
    yield _heartbeat("", "the classic member is alive", 0)
    yield _heartbeat(".newer", "the classic member is alive in a later generation", 1)
    yield _leave()
    yield _beat("join", "the consumer joins", _joins, lambda state: frozenset(), joins=True)
    yield _beat("own", "the consumer is alive", _own_epoch)
    yield _beat("has", "the consumer owns what it may", _own_epoch, _may)
    yield _beat("has.all", "the consumer owns everything yet", _own_epoch, lambda state: PLACES)
    yield _beat("leave", "the consumer leaves", _leaves)
    yield _describe_classic()
    yield _describe_consumers()


CONVERSION = Subject(
    "conversion",
    "a group with members that changes from the classic protocol to that of consumer groups, and back",
    ConvertedGroup(),
    tuple(_moves()),
    consumers_setup,
    {"generations": MOST_GENERATIONS, "member_ids": MOST_IDS},
    most_moves=9,
)
