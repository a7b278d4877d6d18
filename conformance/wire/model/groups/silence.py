"""Members that are silent: a session that ends, one that does not, and a member that never asks for its assignment."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, RequestFields, equals
from kspec.conformance.wire.model.groups.group import (
    COORDINATOR,
    GROUP,
    GROUP_HOLE,
    GroupAndClients,
    group_ready,
    on_wire,
    replied_exchange,
    told_while_empty,
)
from kspec.conformance.wire.model.groups.members import SYNC_OTHER, SYNC_OWN, join_move
from kspec.conformance.wire.model.requests import since
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.coordinator.administration import handle_describe_groups
from kspec.spec.coordinator.deadlines import next_deadline, on_deadline
from kspec.spec.coordinator.members import handle_heartbeat
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.values import Error, Instant, MonotonicMs, TimestampMs

ENDS = "a member that is silent for its session is out, and one that is not silent stays"
SHORT_MS, LONG_MS = 6_000, 16_000
"""The shortest session that Kafka allows, and one in which two pauses together do not fit, but each alone does."""

PAUSE_MS = 10_000
MOST_PAUSES = 2


class SilentState(NamedTuple):
    """The group, and how often there was a pause."""

    inner: GroupAndClients = GroupAndClients()
    pauses: int = 0


def _later(state: SilentState) -> SilentState:
    """The state after a pause: what was due in it is done, each at its time."""
    now = (state.pauses + 1) * PAUSE_MS
    group = state.inner.group
    while (due := next_deadline(group)) is not None and due <= now:
        group = on_deadline(COORDINATOR, group, _at(int(due))).state
    return SilentState(state.inner._replace(group=group), state.pauses + 1)


def _at(time: int) -> Instant:
    return Instant(MonotonicMs(time), TimestampMs(time))


def _at_first(move: Move) -> Move:
    """A move of members, before any pause."""

    def take(protocol: BrokerProtocol, state: SilentState) -> MoveResult | None:
        taken = move.take(protocol, state.inner) if not state.pauses else None
        if taken is None or taken.state.waiting:  # type: ignore[attr-defined]
            return None
        return MoveResult(SilentState(taken.state), taken.exchange)  # type: ignore[arg-type]

    return move._replace(take=take)


def _is_a_member(state: SilentState) -> bool:
    return state.pauses < MOST_PAUSES and bool(state.inner.ids_of("A")) and state.inner.group.generation > 0


def _whose(state: SilentState) -> str:
    """The limits of the member, in words."""
    members = state.inner.group.members
    limits = [f"{one.session_timeout_ms // 1000} s and {one.rebalance_timeout_ms // 1000} s" for one in members]
    return f"{', '.join(limits) or 'out'}, pause {state.pauses + 1}"


def _heartbeat() -> Move:
    def take(protocol: BrokerProtocol, state: SilentState) -> MoveResult | None:
        if not _is_a_member(state):
            return None
        after = _later(state)
        member, generation = state.inner.ids_of("A")[-1], state.inner.group.generation
        request = HeartbeatRequest(GROUP, generation, member, None)
        fields = {"group_id": GROUP_HOLE, "generation_id": generation, "member_id": on_wire(member)}
        step = handle_heartbeat(COORDINATOR, after.inner.group, request, _at(after.pauses * PAUSE_MS))
        taken = replied_exchange(after.inner, "A", RequestFields("Heartbeat", fields), step, _told)
        outcome = f"{taken.exchange.outcome}, {_whose(state)}"
        exchange = taken.exchange._replace(pause_ms=PAUSE_MS, outcome=outcome)
        return MoveResult(SilentState(taken.state, after.pauses), exchange)  # type: ignore[arg-type]

    return Move("heartbeat", "after ten seconds the member is alive", handle_heartbeat, ENDS, take)


def _told(answer: HeartbeatResponse) -> tuple[Error, tuple[Constraint, ...]]:
    return answer.error, (equals("error_code", answer.error.value),)


def _describe() -> Move:
    def take(protocol: BrokerProtocol, state: SilentState) -> MoveResult | None:
        if not _is_a_member(state):
            return None
        after = _later(state)
        step = handle_describe_groups(COORDINATOR, after.inner.group, DescribeGroupsRequest(GROUP, False), _at(0))
        request = RequestFields("DescribeGroups", {"groups": [GROUP_HOLE]}, since(0)._replace(last=5))
        taken = replied_exchange(after.inner, "C", request, step, _described)
        outcome = f"{after.inner.group.state.value}, {len(after.inner.group.members)} members, {_whose(state)}"
        exchange = taken.exchange._replace(pause_ms=PAUSE_MS, outcome=outcome)
        told = told_while_empty(MoveResult(taken.state, exchange), after.inner.group)
        return told._replace(state=SilentState(taken.state, after.pauses))  # type: ignore[arg-type]

    return Move("describe", "after ten seconds look at the group", handle_describe_groups, ENDS, take)


def _described(answer: DescribeGroupsResponse) -> tuple[Error, tuple[Constraint, ...]]:
    inside = (equals("groups[0].group_state", answer.group_state), equals("groups[0].members[#]", len(answer.members)))
    return answer.error, (equals("groups[0].error_code", answer.error.value), *inside)


def _joins(name: str, words: str, session_ms: int, rebalance_ms: int) -> tuple[Move, Move]:
    limits: dict[str, Any] = {"session": session_ms, "rebalance": rebalance_ms}
    first = join_move(f"new.{name}", f"a member joins without an id, {words}", "A", "new", **limits)
    return first, join_move(f"own.{name}", "the member joins with the id it was given", "A", "own", **limits)


_MOVES = (
    *_joins("short", "with a session of 6 s", SHORT_MS, 60_000),
    *_joins("long", "with a session of 16 s", LONG_MS, 60_000),
    *_joins("rebalance", "with 6 s for a rebalance", 60_000, SHORT_MS),
    SYNC_OWN,
)
SILENT_MEMBERS = Subject(
    "silent-members",
    "members that are silent, and members that are not silent for long",
    SilentState(),
    (*(_at_first(move) for move in _MOVES), _heartbeat(), _describe()),
    lambda state, holes: group_ready(),
    {"pauses": MOST_PAUSES},
    is_goal=lambda name: name in ("heartbeat", "describe"),
)


# ---- a member that waits is not silent


class WaitingMembersState(NamedTuple):
    """The group, and whether there was a pause."""

    inner: GroupAndClients = GroupAndClients()
    is_later: bool = False


def _before(move: Move) -> Move:
    """A move of members, before the pause; nobody gets a second id."""

    def take(protocol: BrokerProtocol, state: WaitingMembersState) -> MoveResult | None:
        taken: Any = None if state.is_later else move.take(protocol, state.inner)
        if taken is None or any(len(ids) > 1 for _, ids in taken.state.ids):
            return None
        return MoveResult(WaitingMembersState(taken.state), taken.exchange)

    return move._replace(take=take)


def _look_at_waiting() -> Move:
    """A member waits for another one, for longer than its session is."""

    def take(protocol: BrokerProtocol, state: WaitingMembersState) -> MoveResult | None:
        group = state.inner.group
        if state.is_later or state.inner.waiting != ("A",) or len(group.members) < BOTH or group.pending:
            return None
        is_due = False
        while (due := next_deadline(group)) is not None and due <= PAUSE_MS:
            step = on_deadline(COORDINATOR, group, _at(int(due)))
            if step.effects:
                return None
            group, is_due = step.state, True
        if not is_due:
            return None
        inner = state.inner._replace(group=group)
        step = handle_describe_groups(COORDINATOR, group, DescribeGroupsRequest(GROUP, False), _at(PAUSE_MS))
        request = RequestFields("DescribeGroups", {"groups": [GROUP_HOLE]}, since(0)._replace(last=5))
        taken: Any = replied_exchange(inner, "C", request, step, _described)
        outcome = f"{group.state.value}, {len(group.members)} members"
        exchange = taken.exchange._replace(pause_ms=PAUSE_MS, outcome=outcome)
        return MoveResult(WaitingMembersState(taken.state, is_later=True), exchange)

    words = "after ten seconds in which member A waits for the other look at the group"
    return Move("describe", words, handle_describe_groups, HEARD, take)


def _later_join() -> Move:
    join = join_move("own.B", "member B joins", "B", "own", session=60_000)

    def take(protocol: BrokerProtocol, state: WaitingMembersState) -> MoveResult | None:
        taken: Any = join.take(protocol, state.inner) if state.is_later else None
        return None if taken is None else MoveResult(WaitingMembersState(taken.state, is_later=True), taken.exchange)

    return join._replace(name="join.later", words="member B joins, for whom A has waited", promise=HEARD, take=take)


BOTH = 2
HEARD = "a member that waits for an answer is not silent: it is in the group for as long as it waits"
WAITING_MEMBERS = Subject(
    "waiting-members",
    "a member that waits for another one for longer than its session is",
    WaitingMembersState(),
    (
        *map(
            _before,
            (
                join_move("new.A", "member A joins without an id, with a session of 6 s", "A", "new", session=SHORT_MS),
                join_move("own.A", "member A joins with its id", "A", "own", session=SHORT_MS),
                join_move("new.B", "member B joins without an id", "B", "new", session=60_000),
                join_move("own.B", "member B joins with its id", "B", "own", session=60_000),
                SYNC_OWN,
                SYNC_OTHER,
            ),
        ),
        _look_at_waiting(),
        _later_join(),
    ),
    lambda state, holes: group_ready(),
    {"member_ids": 1},
    is_goal=lambda name: name in ("describe", "join.later"),
)
