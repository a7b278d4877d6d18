"""Members of a group: joining, synchronising, heartbeats, leaving; dynamic and static."""

from collections.abc import Iterator
from typing import Any

from kspec.conformance.wire.exchange import Constraint, Exchange, RequestFields, equals
from kspec.conformance.wire.model.groups.group import (
    COORDINATOR,
    GROUP,
    GROUP_HOLE,
    JOIN,
    NEW_COORDINATOR,
    PROTOCOLS,
    REBALANCE_MS,
    SESSION_MS,
    START,
    SYNC,
    UNKNOWN_MEMBER,
    GroupAndClients,
    assignment_of,
    chosen_by,
    fresh_id,
    group_ready,
    number_of,
    on_wire,
    replied_exchange,
    told_while_empty,
    waiting_exchange,
)
from kspec.conformance.wire.model.requests import since
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.administration import handle_delete_groups, handle_describe_groups
from kspec.spec.coordinator.effects import PersistRecords
from kspec.spec.coordinator.group import GroupState
from kspec.spec.coordinator.joining import handle_join_group
from kspec.spec.coordinator.members import handle_heartbeat, handle_leave_group, handle_sync_group, on_assignment_stored
from kspec.spec.coordinator.rebalance import then
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinGroupRequest
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity, single_error
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, GroupId, MemberId

ONE_OWNER = "a partition has one owner in a generation, and a member of an earlier one is told so"
JOINS = "a member gets into a group only as the protocol of the group allows"
STRANGER = "C"
"""The client that never gets into the group."""

REQUIRING_ID, SKIPPING = 4, 9
"""The first versions of JoinGroup in which a new member gets its id first, and which tell a leader to assign nothing."""

KNOWING_INSTANCE, KNOWING_PROTOCOL = 3, 5
"""The first versions of SyncGroup and Heartbeat with a static member's name, and of SyncGroup with the group's protocol."""

OF_MANY = 3
"""The first version of LeaveGroup in which several members leave."""

MOST_IDS, BOTH = 2, 2
MOST_GENERATIONS = 3


def _join_request(
    state: GroupAndClients, client: str, member_id: MemberId, instance: str | None, asked: dict[str, Any]
) -> tuple[JoinGroupRequest, RequestFields]:
    """The request for the handler, and the same on the wire."""
    group_id, session = asked.get("group", GROUP), asked.get("session", SESSION_MS)
    kind, protocols = asked.get("type", "consumer"), asked.get("protocols", PROTOCOLS)
    at_once, rebalance = asked.get("at_once", False), asked.get("rebalance", REBALANCE_MS)
    versions = Versions(0, REQUIRING_ID - 1) if at_once else since(SKIPPING if instance else REQUIRING_ID)
    request = JoinGroupRequest(
        number_of(client, JOIN),
        GroupId(group_id),
        member_id,
        instance,
        "kspec",
        "/127.0.0.1",
        session,
        rebalance,
        kind,
        protocols,
        fresh_id(state, client),
        requires_member_id=not at_once,
        skips_assignment=instance is not None,
    )
    fields = {
        "group_id": GROUP_HOLE if group_id == GROUP else group_id,
        "session_timeout_ms": session,
        "rebalance_timeout_ms": rebalance,
        "member_id": on_wire(member_id),
        "group_instance_id": instance,
        "protocol_type": kind,
        "protocols": [{"name": one.name, "metadata": one.metadata} for one in protocols],
    }
    return request, RequestFields("JoinGroup", fields, versions)


def _too_far(state: GroupAndClients, client: str) -> bool:
    return client in state.waiting or state.group.generation >= MOST_GENERATIONS


def join_move(name: str, words: str, client: str, who: str, instance: str | None = None, **asked: Any) -> Move:
    """`who`: `new`, or the latest (`own`) or an earlier (`former`) id that the client has been given, or `unknown`."""

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        ids = state.ids_of(client)
        if _too_far(state, client) or (who == "new" and len(ids) >= MOST_IDS):
            return None
        member_id = _who(state, client, who)
        if member_id is None or (asked.get("at_once") and state.group.members):
            return None  # a member without an id learns it from its answer, which comes at once if it is alone
        request, sent = _join_request(state, client, member_id, instance, asked)
        step = handle_join_group(COORDINATOR, state.group, request, START)
        if client == STRANGER and step.state.pending != state.group.pending:
            return None
        return waiting_exchange(state, client, sent, step, fresh_id(state, client) if who == "new" else NO_MEMBER_ID)

    return Move(f"join.{name}", words, handle_join_group, JOINS, take)


def _who(state: GroupAndClients, client: str, who: str) -> MemberId | None:
    ids = state.ids_of(client)
    if who == "new":
        return NO_MEMBER_ID
    if who == "unknown":
        return UNKNOWN_MEMBER
    if who == "own":
        return ids[-1] if ids else None
    return ids[-2] if len(ids) > 1 else None


def _generation(state: GroupAndClients, ahead: int) -> Generation:
    return Generation(state.group.generation + ahead)


def _sync(name: str, words: str, client: str, who: str, ahead: int = 0, instance: str | None = None, **asked: Any) -> Move:
    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        member_id = _who(state, client, who)
        if client in state.waiting or member_id is None:
            return None
        leads = state.group.leader == member_id
        given = (
            tuple(MemberAssignment(one.member_id, assignment_of(one.member_id)) for one in state.group.members)
            if leads
            else ()
        )
        if asked.get("some"):
            if not leads or len(given) < BOTH:
                return None
            given = tuple(one for one in given if one.member_id == member_id)
        generation, group_id = _generation(state, ahead), asked.get("group", GROUP)
        kind, chosen = asked.get("type", "consumer"), asked.get("protocol", PROTOCOLS[0].name)
        request = SyncGroupRequest(
            number_of(client, SYNC), GroupId(group_id), generation, member_id, instance, kind, chosen, given
        )
        fields = {
            "group_id": GROUP_HOLE if group_id == GROUP else group_id,
            "generation_id": generation,
            "member_id": on_wire(member_id),
            "group_instance_id": instance,
            "protocol_type": kind,
            "protocol_name": chosen,
            "assignments": [{"member_id": on_wire(one.member_id), "assignment": one.assignment} for one in given],
        }
        step = handle_sync_group(COORDINATOR, state.group, request, START)
        if any(isinstance(effect, PersistRecords) for effect in step.effects):  # and committed before anything else happens
            step = then(step, lambda after: on_assignment_stored(after, request, START))
        versions = since(KNOWING_PROTOCOL if {"type", "protocol"} & asked.keys() else KNOWING_INSTANCE if instance else 0)
        return waiting_exchange(state, client, RequestFields("SyncGroup", fields, versions), step)

    return Move(f"sync.{name}", words, handle_sync_group, ONE_OWNER, take)


def _error_only(answer: Any) -> tuple[Error, tuple[Constraint, ...]]:
    return answer.error, (equals("error_code", answer.error.value),)


def _heartbeat(
    name: str, words: str, client: str, who: str, ahead: int = 0, instance: str | None = None, **asked: Any
) -> Move:
    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        member_id = _who(state, client, who)
        if client in state.waiting or member_id is None:
            return None
        group_id, generation = asked.get("group", GROUP), _generation(state, ahead)
        request = HeartbeatRequest(GroupId(group_id), generation, member_id, instance)
        fields = {
            "group_id": GROUP_HOLE if group_id == GROUP else group_id,
            "generation_id": generation,
            "member_id": on_wire(member_id),
            "group_instance_id": instance,
        }
        step = handle_heartbeat(COORDINATOR, state.group, request, START)
        return replied_exchange(
            state,
            client,
            RequestFields("Heartbeat", fields, since(KNOWING_INSTANCE if instance else 0)),
            step,
            _heartbeat_told,
        )

    return Move(f"heartbeat.{name}", words, handle_heartbeat, ONE_OWNER, take)


def _heartbeat_told(answer: HeartbeatResponse) -> tuple[Error, tuple[Constraint, ...]]:
    return _error_only(answer)


def _leave(name: str, words: str, client: str, who: str, instance: str | None = None, **asked: Any) -> Move:
    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        member_id = _who(state, client, who) if who else NO_MEMBER_ID
        if client in state.waiting or member_id is None:
            return None
        group_id = asked.get("group", GROUP)
        request = LeaveGroupRequest(GroupId(group_id), (MemberIdentity(member_id, instance),))
        fields = {
            "group_id": GROUP_HOLE if group_id == GROUP else group_id,
            "member_id": on_wire(member_id),
            "members": [{"member_id": on_wire(member_id), "group_instance_id": instance}],
        }
        step = handle_leave_group(COORDINATOR, state.group, request, START)
        versions, told = (Versions(0, OF_MANY - 1), _left_alone) if asked.get("single") else (since(OF_MANY), _left)
        taken = replied_exchange(state, client, RequestFields("LeaveGroup", fields, versions), step, told)
        if step.state.pending != state.group.pending and step.state.state != state.group.state:
            # in 3.9.2 nobody rebalances because a member leaves that has got its id and has not joined yet
            return MoveResult(taken.state, taken.exchange._replace(since=NEW_COORDINATOR))
        return told_while_empty(taken, state.group)

    return Move(f"leave.{name}", words, handle_leave_group, ONE_OWNER, take)


def _leave_both() -> Move:
    """A member, and one that nobody knows, leave in one request."""

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        member_id = _who(state, "A", "own")
        if "A" in state.waiting or member_id is None:
            return None
        members = (MemberIdentity(UNKNOWN_MEMBER), MemberIdentity(member_id))
        fields = {
            "group_id": GROUP_HOLE,
            "members": [{"member_id": on_wire(one.member_id), "group_instance_id": None} for one in members],
        }
        step = handle_leave_group(COORDINATOR, state.group, LeaveGroupRequest(GROUP, members), START)
        taken = replied_exchange(state, STRANGER, RequestFields("LeaveGroup", fields, since(OF_MANY)), step, _left)
        if taken.exchange.constraints[-1] == equals("members[1].error_code", 0):
            others = " and others answered" * bool(taken.exchange.awaited)
            taken = taken._replace(exchange=taken.exchange._replace(outcome=f"one leaves{others}"))
        if step.state.pending != state.group.pending and step.state.state != state.group.state:
            return MoveResult(taken.state, taken.exchange._replace(since=NEW_COORDINATOR))
        return told_while_empty(taken, state.group)

    words = "a member that nobody knows and member A leave in one request"
    return Move("leave.both", words, handle_leave_group, ONE_OWNER, take)


def _left(answer: LeaveGroupResponse) -> tuple[Error, tuple[Constraint, ...]]:
    if answer.error != Error.NONE:
        return answer.error, (equals("error_code", answer.error.value),)
    each = tuple(equals(f"members[{number}].error_code", one.error.value) for number, one in enumerate(answer.members))
    return answer.members[0].error, (equals("error_code", 0), *each)


def _left_alone(answer: LeaveGroupResponse) -> tuple[Error, tuple[Constraint, ...]]:
    error = single_error(answer)
    return error, (equals("error_code", error.value),)


# ---- looking at the group, and forgetting it

REPORTING_MISSING = 6

NOT_STORED_YET = (Error.GROUP_ID_NOT_FOUND,)
"""Kafka answers the join that makes a group before the group is stored, and tells others of what is stored.

Kafka: `GroupMetadataManager.classicGroupJoinToClassicGroup`, `GroupMetadataManager.describeGroups` at `committedOffset`.
"""
JUST_LEFT = (Error.NONE,)
"""The last member has left, and another one has its id and has not joined. The rebalance of nobody has a timer of 0 ms."""

STORED_LATER = (Error.NONE,)
"""The same in a version without that error: the answer is of a dead group."""


def _describe(name: str, words: str, reports_missing: bool) -> Move:
    """`reports_missing`: the version of the request has an error for a group that does not exist (KIP-1043)."""

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        asked = DescribeGroupsRequest(GROUP, reports_missing)
        step = handle_describe_groups(COORDINATOR, state.group, asked, START)
        versions = since(REPORTING_MISSING) if reports_missing else Versions(0, REPORTING_MISSING - 1)
        request = RequestFields("DescribeGroups", {"groups": [GROUP_HOLE]}, versions)
        taken = replied_exchange(state, "C", request, step, _described)
        state_of_group = step.state.state.value
        exchange = taken.exchange
        if exchange.error == Error.NONE:
            outcome = f"{state_of_group}, {len(state.group.members)} members"
            retried: tuple[Error, ...] = NOT_STORED_YET if reports_missing else STORED_LATER
            if state.group.state == GroupState.EMPTY and state.group.pending:
                retried = (*retried, *JUST_LEFT)
            exchange = exchange._replace(outcome=outcome, retried=retried)
        return told_while_empty(MoveResult(taken.state, exchange), state.group)

    return Move(name, words, handle_describe_groups, "what is told of a group is so", take)


def _described(answer: DescribeGroupsResponse) -> tuple[Error, tuple[Constraint, ...]]:
    inside = (
        equals("groups[0].error_code", answer.error.value),
        equals("groups[0].group_state", answer.group_state),
        equals("groups[0].members[#]", len(answer.members)),
        equals("groups[0].protocol_type", answer.protocol_type),
        equals("groups[0].protocol_data", answer.protocol_name),
        *_members_described(answer),
    )
    return answer.error, inside


def _members_described(answer: DescribeGroupsResponse) -> tuple[Constraint, ...]:
    """Fields of each member; of several the order is not known."""
    if len(answer.members) != 1:
        each = ((f"groups[0].members{chosen_by(one.member_id)}", one) for one in answer.members)
        return tuple(
            constraint
            for where, one in each
            for constraint in (
                equals(f"{where}.member_metadata", one.metadata),
                equals(f"{where}.member_assignment", one.assignment),
            )
        )
    (member,) = answer.members
    return (
        equals("groups[0].members[0].member_id", on_wire(member.member_id)),
        equals("groups[0].members[0].group_instance_id", member.instance_id),
        equals("groups[0].members[0].member_metadata", member.metadata),
        equals("groups[0].members[0].member_assignment", member.assignment),
    )


def _forget() -> Move:
    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        step = handle_delete_groups(COORDINATOR, state.group, DeleteGroupsRequest(GROUP), START)
        request = RequestFields("DeleteGroups", {"groups_names": [GROUP_HOLE]})
        return told_while_empty(replied_exchange(state, "C", request, step, _forgotten), state.group)

    return Move("delete", "delete the group", handle_delete_groups, "a group in use is not forgotten", take)


def _forgotten(answer: DeleteGroupsResponse) -> tuple[Error, tuple[Constraint, ...]]:
    return answer.error, (equals("results[0].error_code", answer.error.value),)


OTHER = (GroupProtocol("other", b""),)


def _dynamic() -> Iterator[Move]:
    for client in ("A", "B"):
        yield join_move(f"new.{client}", f"member {client} joins without an id", client, "new")
        yield join_move(f"own.{client}", f"member {client} joins with the id it was given", client, "own")
        yield _sync(f"own.{client}", f"member {client} asks for its assignment", client, "own")
        yield _heartbeat(f"own.{client}", f"member {client} is alive", client, "own")
        yield _leave(f"own.{client}", f"member {client} leaves", client, "own")
    yield join_move(
        "at-once.A", "member A joins without an id, in a version of the request that needs none", "A", "new", at_once=True
    )
    yield _leave("single.own.A", "member A leaves, in a version of the request for one member", "A", "own", single=True)


def _wrong() -> Iterator[Move]:
    yield join_move("unknown", "a member joins with an id that nobody has", "C", "unknown")
    yield join_move("no-group-id", "a member joins a group without a name", "C", "new", group="")
    yield join_move("session-too-short", "a member joins with a session of 1 ms", "C", "new", session=1)
    yield join_move("session-too-long", "a member joins with a session of a day", "C", "new", session=86_400_000)
    yield join_move("other-type", "a member joins with another type of protocol", "C", "new", type="other")
    yield join_move(
        "other-protocol", "a member joins with a protocol that the others do not have", "C", "new", protocols=OTHER
    )
    yield join_move("no-protocol", "a member joins without a protocol", "C", "new", protocols=())
    yield _sync("unknown", "an assignment is asked for by a member that nobody knows", "C", "unknown")
    yield _sync("newer", "member A asks for its assignment in a later generation", "A", "own", ahead=1)
    yield _sync("older", "member A asks for its assignment in an earlier generation", "A", "own", ahead=-1)
    yield _sync("other-type", "member A asks for its assignment by another type of protocol", "A", "own", type="other")
    yield _sync("other-protocol", "member A asks for its assignment by another protocol", "A", "own", protocol="other")
    yield _sync("no-group-id", "an assignment is asked for in a group without a name", "C", "unknown", group="")
    yield _heartbeat("unknown", "a member is alive that nobody knows", "C", "unknown")
    yield _heartbeat("newer", "member A is alive in a later generation", "A", "own", ahead=1)
    yield _heartbeat("older", "member A is alive in an earlier generation", "A", "own", ahead=-1)
    yield _heartbeat("no-group-id", "a member is alive in a group without a name", "C", "unknown", group="")
    yield _leave("unknown", "a member leaves that nobody knows", "C", "unknown")
    yield _leave("no-group-id", "a member leaves a group without a name", "C", "unknown", group="")
    single = "a member leaves that nobody knows, in a version of the request for one member"
    yield _leave("single.unknown", single, "C", "unknown", single=True)


def _limits() -> Iterator[Move]:
    for name, words, session in LIMITS_OF_SESSIONS:
        yield join_move(f"session-{name}", f"a member joins with {words}", "A", "new", session=session)


LIMITS_OF_SESSIONS = (
    ("of-least", "the shortest session that is allowed", 6_000),
    ("below-least", "a session 1 ms too short", 5_999),
    ("of-most", "the longest session that is allowed", 1_800_000),
    ("above-most", "a session 1 ms too long", 1_800_001),
)
"""Kafka: `group.min.session.timeout.ms`, `group.max.session.timeout.ms`."""

INSTANCE = "static-1"


def _static() -> Iterator[Move]:
    yield join_move("new", "a static member joins without an id", "A", "new", INSTANCE)
    yield join_move("own", "a static member joins with its id", "A", "own", INSTANCE)
    yield join_move("former", "a static member joins with the id of its former self", "A", "former", INSTANCE)
    yield join_move("other-instance", "a static member joins with the name of another", "A", "own", "static-2")
    yield _sync("own", "a static member asks for its assignment", "A", "own", instance=INSTANCE)
    yield _sync("former", "the former self of a static member asks for its assignment", "A", "former", instance=INSTANCE)
    yield _heartbeat("own", "a static member is alive", "A", "own", instance=INSTANCE)
    yield _heartbeat("former", "the former self of a static member is alive", "A", "former", instance=INSTANCE)
    yield _leave("by-name", "a static member leaves by its name alone", "A", "", INSTANCE)
    yield _leave("former", "the former self of a static member leaves", "A", "former", INSTANCE)
    yield _leave("unknown-name", "a static member leaves that nobody knows", "C", "", "static-2")


def _setup(state: GroupAndClients, holes: frozenset[str]) -> tuple[Exchange, ...]:
    return group_ready()


DYNAMIC = {move.name: move for move in _dynamic()}
JOIN_NEW, JOIN_OWN = DYNAMIC["join.new.A"], DYNAMIC["join.own.A"]
SYNC_OWN, LEAVE_OWN = DYNAMIC["sync.own.A"], DYNAMIC["leave.own.A"]
SYNC_OTHER = DYNAMIC["sync.own.B"]
DESCRIBE, DELETE = _describe("describe", "describe the group", True), _forget()
OLD_DESCRIBE = _describe("describe.old", "describe the group, in a version that has no error for a missing one", False)
BOUNDS = {"generations": MOST_GENERATIONS, "member_ids": MOST_IDS}
MEMBERS = Subject(
    "members",
    "members of a group that join, are given partitions, are alive and leave",
    GroupAndClients(),
    (*DYNAMIC.values(), *_wrong(), _leave_both(), DESCRIBE, OLD_DESCRIBE, DELETE),
    _setup,
    BOUNDS,
)
STATIC_MEMBERS = Subject(
    "static-members",
    "static members, and their former selves",
    GroupAndClients(),
    (*_static(), DESCRIBE),
    _setup,
    BOUNDS,
)
SESSION_LIMITS = Subject(
    "session-limits",
    "members whose sessions are as short or as long as they may be, and a millisecond shorter or longer",
    GroupAndClients(),
    tuple(_limits()),
    _setup,
    {"member_ids": MOST_IDS},
)

# ---- protocols that members choose from


def _subscribed(name: str, data: bytes) -> GroupProtocol:
    """A protocol with a subscription to no topic, and data of the member's own, as consumers write it."""
    return GroupProtocol(name, bytes(6) + len(data).to_bytes(4, "big") + data)


RANGE, ROUND_ROBIN = _subscribed("range", b"range of A"), _subscribed("roundrobin", b"in turn")
OF_BOTH, OF_ONE = (RANGE, ROUND_ROBIN), (ROUND_ROBIN, _subscribed("sticky", b"sticky"))
"""The protocols of member A, and of member B, who lacks the one that A likes best."""


def _choosers() -> Iterator[Move]:
    for client, protocols in (("A", OF_BOTH), ("B", OF_ONE)):
        first = join_move(f"new.{client}", f"member {client} joins without an id", client, "new", protocols=protocols)
        yield _of_one_id(first)
        yield join_move(f"own.{client}", f"member {client} joins with its protocols", client, "own", protocols=protocols)
    yield from (DYNAMIC["leave.own.A"], DYNAMIC["leave.own.B"], DESCRIBE)


def _of_one_id(move: Move) -> Move:
    """The move, where a client gets its first id."""

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        taken: Any = move.take(protocol, state)
        return None if taken is None or any(len(ids) > 1 for _, ids in taken.state.ids) else taken

    return move._replace(take=take)


def _chosen(name: str, words: str, client: str, some: bool = False) -> Move:
    """A sync that names the group's protocol. `some`: a leader that assigns something to itself alone."""
    sync = _sync(name, words, client, "own")
    protocols = (one.name for one in {*OF_BOTH, *OF_ONE})
    named = {one: _sync(name, words, client, "own", protocol=one, some=some) for one in protocols}

    def take(protocol: BrokerProtocol, state: GroupAndClients) -> MoveResult | None:
        chosen = state.group.protocol_name
        taken: Any = named[chosen].take(protocol, state) if chosen is not None else None
        if taken is None:
            return None
        empty = " with nothing" * (equals("assignment", b"") in taken.exchange.constraints)
        outcome = f"{taken.exchange.outcome}{empty}, {chosen} of {len(state.group.members)}"
        return MoveResult(taken.state, taken.exchange._replace(outcome=outcome))

    return sync._replace(take=take)


CHOSEN_PROTOCOLS = Subject(
    "chosen-protocols",
    "members that have several protocols: the group's is one that all of them have",
    GroupAndClients(),
    (
        *_choosers(),
        _chosen("own.A", "member A asks for its assignment", "A"),
        _chosen("own.B", "member B asks for its assignment", "B"),
        _chosen("some.A", "member A, who leads, gives something to itself alone", "A", some=True),
    ),
    _setup,
    BOUNDS,
    is_goal=lambda name: name.startswith(("sync", "describe")),
)
