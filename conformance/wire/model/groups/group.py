"""One group of consumers: its state in the model, and how members, generations and answers look on the wire."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import (
    Constraint,
    DelayedAnswer,
    Exchange,
    Hole,
    NotEmpty,
    RequestEnding,
    RequestFields,
    equals,
)
from kspec.conformance.wire.model.requests import NO_COORDINATOR
from kspec.conformance.wire.model.restarts import ALIVE
from kspec.conformance.wire.model.subject import MoveResult
from kspec.spec.coordinator.deadlines import next_deadline, on_deadline
from kspec.spec.coordinator.effects import AnswerMember
from kspec.spec.coordinator.group import Group, GroupState, GroupStep, absent
from kspec.spec.coordinator.protocol import Coordinator, CoordinatorSettings
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinGroupResponse
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.releases.names import NEWEST_RELEASE, coordinator_of
from kspec.spec.step import Reply, Step
from kspec.spec.values import NO_MEMBER_ID, Error, GroupId, Instant, MemberId, MonotonicMs, RequestNumber, TimestampMs

GROUP = GroupId("group")
GROUP_HOLE = Hole("group")
START = Instant(MonotonicMs(0), TimestampMs(0))
"""The time of all that the model does: time does not pass."""

COORDINATOR = Coordinator(coordinator_of(NEWEST_RELEASE), CoordinatorSettings(initial_rebalance_delay_ms=0))
"""Groups begin at once here. A broker that waits at the beginning for more members answers later, and the same."""

SESSION_MS, REBALANCE_MS = 120_000, 60_000
PROTOCOLS = (GroupProtocol("range", b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"),)
"""A subscription to no topic, as consumers write it."""

ASSIGNMENT = b"assigned"
UNKNOWN_MEMBER = MemberId("nobody")


def assignment_of(member_id: MemberId) -> bytes:
    """The assignment that a leader gives to a member: each has its own."""
    return ASSIGNMENT + b" to " + member_id.encode()


JOIN, SYNC = 0, 1
CLIENTS = ("A", "B", "C")


class GroupAndClients(NamedTuple):
    """The group, which of the clients waits for an answer, and which member ids each has been given, the latest last."""

    group: Group = absent(GROUP)
    waiting: tuple[str, ...] = ()
    ids: tuple[tuple[str, tuple[MemberId, ...]], ...] = ()

    def ids_of(self, client: str) -> tuple[MemberId, ...]:
        """The member ids that a client has been given."""
        return dict(self.ids).get(client, ())

    def with_id(self, client: str, member_id: MemberId) -> "GroupAndClients":
        """The client has been given one more id."""
        known = dict(self.ids)
        return self._replace(ids=tuple(sorted((known | {client: (*self.ids_of(client), member_id)}).items())))


def fresh_id(state: GroupAndClients, client: str) -> MemberId:
    """The id that the coordinator makes up for a client."""
    return MemberId(f"{client}{len(state.ids_of(client)) + 1}")


def on_wire(member_id: MemberId) -> Any:
    """A member id as clients say it: holes for those that the broker made up."""
    made_up = member_id[:1] in CLIENTS and member_id[1:].isdigit()
    return Hole(f"member_{member_id}") if made_up else str(member_id)


def number_of(client: str, what: int) -> RequestNumber:
    """The number of a client's request that may wait."""
    return RequestNumber(2 * CLIENTS.index(client) + what)


def settled(step: GroupStep) -> GroupStep:
    """A step, and all that is due at once because of it."""
    while (due := next_deadline(step.state)) is not None and due <= 0:
        later = on_deadline(COORDINATOR, step.state, START)
        step = Step(later.state, step.effects + later.effects)
    return step


def chosen_by(member_id: MemberId) -> str:
    """The entry of a list that is about a member whose id the broker has made up."""
    return f"[member_id=@{on_wire(member_id).name}]"


def _join_constraints(answer: JoinGroupResponse) -> tuple[Constraint, ...]:
    found: list[Constraint] = [equals("error_code", answer.error.value)]
    if answer.error == Error.NONE:
        found += [
            equals("generation_id", answer.generation),
            equals("protocol_name", answer.protocol_name),
            equals("leader", on_wire(answer.leader)),
            equals("member_id", on_wire(answer.member_id)),
            equals("members[#]", len(answer.members)),
            equals("skip_assignment", answer.skip_assignment),
            equals("protocol_type", answer.protocol_type),
        ]
        if len(answer.members) == 1:
            found += [equals("members[0].metadata", answer.members[0].metadata)]
            found += [equals("members[0].group_instance_id", answer.members[0].instance_id)]
        else:
            for member in answer.members:
                found.append(equals(f"members{chosen_by(member.member_id)}.metadata", member.metadata))
    return tuple(found)


def _sync_constraints(answer: SyncGroupResponse) -> tuple[Constraint, ...]:
    error = equals("error_code", answer.error.value)
    return (
        (
            error,
            equals("assignment", answer.assignment),
            equals("protocol_type", answer.protocol_type),
            equals("protocol_name", answer.protocol_name),
        )
        if answer.error == Error.NONE
        else (error,)
    )


class _GroupAnswer(NamedTuple):
    """An answer to a request that may have waited: whose it is, what it must be like, what of it is kept, its error."""

    client: str
    constraints: tuple[Constraint, ...]
    kept: tuple[tuple[str, str], ...]
    error: Error

    @property
    def awaited(self) -> DelayedAnswer:
        """The answer as one that comes because of another client's request."""
        return DelayedAnswer(self.client, self.constraints, self.kept)


def _answers(step: GroupStep, fresh: MemberId) -> list[_GroupAnswer]:
    """The answers of a step. `fresh`: the id that may be given in one of them."""
    return [_answer(effect, fresh) for effect in step.effects if isinstance(effect, AnswerMember)]


def _answer(answer: AnswerMember, fresh: MemberId) -> _GroupAnswer:
    client, response = CLIENTS[answer.request // 2], answer.response
    if isinstance(response, SyncGroupResponse):
        return _GroupAnswer(client, _sync_constraints(response), (), response.error)
    if response.member_id == fresh != NO_MEMBER_ID:
        hole = on_wire(fresh).name
        told = (one for one in _join_constraints(response) if one[0] not in ("member_id", "leader"))
        constraints = tuple(one for one in told if chosen_by(fresh) not in one[0])
        return _GroupAnswer(client, (*constraints, NotEmpty("member_id")), ((hole, "member_id"),), response.error)
    return _GroupAnswer(client, _join_constraints(response), (), response.error)


def waiting_exchange(
    state: GroupAndClients, client: str, request: RequestFields, step: GroupStep, fresh: MemberId = NO_MEMBER_ID
) -> MoveResult:
    """The exchange of a JoinGroup or SyncGroup, which may be answered later, and let others be answered.

    `fresh`: the id that the coordinator gives the client if it gives it one.
    """
    step = settled(step)
    answers = _answers(step, fresh)
    own = [answer for answer in answers if answer.client == client]
    others = tuple(answer.awaited for answer in answers if answer.client != client)
    waiting = set(state.waiting) - {answer.client for answer in answers} | (set() if own else {client})
    after = state._replace(group=step.state, waiting=tuple(sorted(waiting)))
    if not own:
        return MoveResult(after, Exchange(request, "waits", ending=RequestEnding.LATER, client=client, awaited=others))
    (answer,) = own
    if answer.kept:
        after = after.with_id(client, fresh)
    outcome = answer.error.name if answer.error != Error.NONE else "others answered" if others else "answered"
    exchange = Exchange(
        request, outcome, answer.error, constraints=answer.constraints, kept=answer.kept, client=client, awaited=others
    )
    return MoveResult(after, exchange)


def replied_exchange(
    state: GroupAndClients,
    client: str,
    request: RequestFields,
    step: GroupStep,
    told: Callable[[Any], tuple[Error, tuple[Constraint, ...]]],
) -> MoveResult:
    """The exchange of a request that is answered at once, and may let others be answered."""
    step = settled(step)
    (reply,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    error, constraints = told(reply)
    answers = _answers(step, NO_MEMBER_ID)
    others = tuple(answer.awaited for answer in answers)
    waiting = set(state.waiting) - {answer.client for answer in answers}
    after = state._replace(group=step.state, waiting=tuple(sorted(waiting)))
    outcome = error.name if error != Error.NONE else "others answered" if others else "done"
    return MoveResult(after, Exchange(request, outcome, error, constraints=constraints, client=client, awaited=others))


NEW_COORDINATOR = "4.0"
"""The first release with the coordinator of today in every cluster."""


def told_while_empty(taken: MoveResult, group: Group) -> MoveResult:
    """The exchange as it is from 4.0 on, if it is about an empty group that has no offsets.

    Before, any topic that is deleted, also another case's, makes the broker forget such groups.
    Kafka: `GroupCoordinator.handleDeletedPartitions`, which calls `GroupMetadataManager.cleanupGroupMetadata`.
    """
    if group.state != GroupState.EMPTY or group.offsets or taken.exchange.error != Error.NONE:
        return taken
    return taken._replace(exchange=taken.exchange._replace(since=NEW_COORDINATOR))


_LISTED = RequestFields("DescribeGroups", {"groups": [GROUP_HOLE]}, RequestFields("", {}).versions._replace(last=5))
_READY = Exchange(_LISTED, "ready", constraints=(equals("groups[0].error_code", 0),), retried=NO_COORDINATOR)

LOADED = _READY._replace(outcome="alive again", restarts=True, otherwise=ALIVE)
"""The first request after a restart: asked again until the group is loaded.

A coordinator that loads answers some requests without looking: a heartbeat with no error, a SyncGroup of Apache Kafka 3.9
with REBALANCE_IN_PROGRESS (`GroupCoordinator.handleSyncGroup`).
"""


def group_ready() -> tuple[Exchange, ...]:
    """The broker coordinates the group."""
    find = RequestFields("FindCoordinator", {"key": GROUP_HOLE, "key_type": 0, "coordinator_keys": [GROUP_HOLE]})
    found = Exchange(find, "found", constraints=(equals("error_code", 0), equals("coordinators[0].error_code", 0)))
    return found._replace(retried=NO_COORDINATOR), _READY._replace(optional=True)
