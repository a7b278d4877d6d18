"""One group of consumers: its state in the model, and how members, generations and answers look on the wire."""

from collections.abc import Callable
from typing import Any, NamedTuple

from conformance.wire.exchange import (
    Awaited,
    Constraint,
    Ending,
    Exchange,
    Hole,
    NotEmpty,
    Request,
    equals,
)
from conformance.wire.model.requests import NO_COORDINATOR
from conformance.wire.model.subject import Taken
from spec.coordinator.deadlines import next_deadline, on_deadline
from spec.coordinator.effects import AnswerMember
from spec.coordinator.group import Group, GroupStep, absent
from spec.coordinator.protocol import Coordinator, CoordinatorSettings
from spec.messages.groups.join_group import GroupProtocol, JoinGroupResponse
from spec.messages.groups.sync_group import SyncGroupResponse
from spec.step import Reply, Step
from spec.values import NO_MEMBER_ID, Error, GroupId, MemberId

GROUP = GroupId("group")
GROUP_HOLE = Hole("group")
COORDINATOR = Coordinator(CoordinatorSettings(initial_rebalance_delay_ms=0))
"""Groups begin at once here. A broker that waits at the beginning for more members answers later, and the same."""

SESSION_MS, REBALANCE_MS = 30_000, 60_000
PROTOCOLS = (GroupProtocol("range", b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff"),)
"""A subscription to no topic, as consumers write it."""

ASSIGNMENT = b"assigned"
UNKNOWN_MEMBER = MemberId("nobody")

JOIN, SYNC = 0, 1
CLIENTS = ("A", "B", "C")


class GroupState(NamedTuple):
    """The group, which of the clients waits for an answer, and which member ids each has been given, the latest last."""

    group: Group = absent(GROUP)
    waiting: tuple[str, ...] = ()
    ids: tuple[tuple[str, tuple[MemberId, ...]], ...] = ()

    def ids_of(self, client: str) -> tuple[MemberId, ...]:
        """The member ids that a client has been given."""
        return dict(self.ids).get(client, ())

    def with_id(self, client: str, member_id: MemberId) -> "GroupState":
        """The client has been given one more id."""
        known = dict(self.ids)
        return self._replace(ids=tuple(sorted((known | {client: (*self.ids_of(client), member_id)}).items())))


def fresh_id(state: GroupState, client: str) -> MemberId:
    """The id that the coordinator makes up for a client."""
    return MemberId(f"{client}{len(state.ids_of(client)) + 1}")


def on_wire(member_id: MemberId) -> Any:
    """A member id as clients say it: holes for those that the broker made up."""
    made_up = member_id[:1] in CLIENTS and member_id[1:].isdigit()
    return Hole(f"member_{member_id}") if made_up else str(member_id)


def number_of(client: str, what: int) -> int:
    """The number of a client's request that may wait."""
    return 2 * CLIENTS.index(client) + what


def settled(step: GroupStep) -> GroupStep:
    """A step, and all that is due at once because of it."""
    while (due := next_deadline(step.state)) is not None and due <= 0:
        later = on_deadline(COORDINATOR, step.state, 0)
        step = Step(later.state, step.effects + later.effects)
    return step


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
        ]
    return tuple(found)


def _sync_constraints(answer: SyncGroupResponse) -> tuple[Constraint, ...]:
    error = equals("error_code", answer.error.value)
    return (error, equals("assignment", answer.assignment)) if answer.error == Error.NONE else (error,)


class _Answer(NamedTuple):
    """An answer to a request that may have waited: whose it is, what it must be like, what of it is kept, its error."""

    client: str
    constraints: tuple[Constraint, ...]
    kept: tuple[tuple[str, str], ...]
    error: Error

    @property
    def awaited(self) -> Awaited:
        """The answer as one that comes because of another client's request."""
        return Awaited(self.client, self.constraints, self.kept)


def _answers(step: GroupStep, fresh: MemberId) -> list[_Answer]:
    """The answers of a step. `fresh`: the id that may be given in one of them."""
    return [_answer(effect, fresh) for effect in step.effects if isinstance(effect, AnswerMember)]


def _answer(answer: AnswerMember, fresh: MemberId) -> _Answer:
    client, response = CLIENTS[answer.request // 2], answer.response
    if isinstance(response, SyncGroupResponse):
        return _Answer(client, _sync_constraints(response), (), response.error)
    if response.member_id == fresh != NO_MEMBER_ID:
        hole = on_wire(fresh).name
        constraints = tuple(one for one in _join_constraints(response) if one[0] not in ("member_id", "leader"))
        return _Answer(client, (*constraints, NotEmpty("member_id")), ((hole, "member_id"),), response.error)
    return _Answer(client, _join_constraints(response), (), response.error)


def waiting_exchange(
    state: GroupState, client: str, request: Request, step: GroupStep, fresh: MemberId = NO_MEMBER_ID
) -> Taken:
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
        return Taken(after, Exchange(request, "waits", ending=Ending.LATER, client=client, awaited=others))
    (answer,) = own
    if answer.kept:
        after = after.with_id(client, fresh)
    outcome = answer.error.name if answer.error != Error.NONE else "others answered" if others else "answered"
    exchange = Exchange(
        request, outcome, answer.error, constraints=answer.constraints, kept=answer.kept, client=client, awaited=others
    )
    return Taken(after, exchange)


def replied_exchange(
    state: GroupState,
    client: str,
    request: Request,
    step: GroupStep,
    told: Callable[[Any], tuple[Error, tuple[Constraint, ...]]],
) -> Taken:
    """The exchange of a request that is answered at once, and may let others be answered."""
    step = settled(step)
    (reply,) = [effect.message for effect in step.effects if isinstance(effect, Reply)]
    error, constraints = told(reply)
    answers = _answers(step, NO_MEMBER_ID)
    others = tuple(answer.awaited for answer in answers)
    waiting = set(state.waiting) - {answer.client for answer in answers}
    after = state._replace(group=step.state, waiting=tuple(sorted(waiting)))
    outcome = error.name if error != Error.NONE else "others answered" if others else "done"
    return Taken(after, Exchange(request, outcome, error, constraints=constraints, client=client, awaited=others))


def group_ready() -> tuple[Exchange, ...]:
    """The broker coordinates the group."""
    find = Request("FindCoordinator", {"key": GROUP_HOLE, "key_type": 0, "coordinator_keys": [GROUP_HOLE]})
    found = Exchange(find, "found", constraints=(equals("error_code", 0), equals("coordinators[0].error_code", 0)))
    listed = Request("DescribeGroups", {"groups": [GROUP_HOLE]}, Request("", {}).versions._replace(last=5))
    listed_now = (equals("groups[0].error_code", 0),)
    ready = Exchange(listed, "ready", constraints=listed_now, retried=NO_COORDINATOR, optional=True)
    return found._replace(retried=NO_COORDINATOR), ready
