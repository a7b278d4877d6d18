"""Outcomes of a coordinator's steps, and the actions that they make."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Effect, Local, Note, View, then, when
from kspec.model_check.models.group.board import NOW, TOPIC_ID, Board, position_of, settled
from kspec.model_check.models.group.values import Answer, GroupExchange, Request, consumer_of, member_id
from kspec.spec.assignors.subscribers import Assignment, PartitionCounts, Subscriber
from kspec.spec.coordinator.effects import AnswerMember, AnswerRequest, RuntimeEffect
from kspec.spec.coordinator.modern.state import places
from kspec.spec.coordinator.refusals import refuse
from kspec.spec.coordinator.runtime import CoordinatedGroup, RuntimeStep, handle_group_request, numbered
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.join_group import JoinGroupRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.messages.groups.sync_group import SyncGroupRequest
from kspec.spec.values import NO_MEMBER_ID, Error, RequestNumber


class CoordinatorOutcome(NamedTuple):
    """The coordinator after a step, the answers that it gives, and whether a commit counts that must not."""

    state: CoordinatedGroup
    answers: tuple[Answer, ...] = ()
    is_stray: bool = False
    lives: int = 0


def outcome_of(board: Board, step: RuntimeStep) -> CoordinatorOutcome | None:
    """The outcome of a step, `None` where it leads out of the bounds."""
    state = settled(step.state)
    if len(state.writes) > board.parameters["writes"] or board.epochs_of(state.latest) > board.parameters["generations"]:
        return None
    return CoordinatorOutcome(state, tuple(answer for effect in step.effects for answer in answers_of(effect)))


def answers_of(effect: RuntimeEffect) -> tuple[Answer, ...]:
    """The answer that an effect gives on a connection that has not broken, if it does."""
    match effect:
        case AnswerMember(number, response) | AnswerRequest(number, response):
            return () if number % 2 else (Answer(number // 2, response),)
        case _:
            return ()


def add_step(
    board: Board,
    name: str,
    arguments: dict[str, Any],
    what: str,
    after: View,
    more: Sequence[Effect] = (),
    guards: Sequence[Local] = (),
    taken: int | None = None,
    source: int | None = None,
    at: Effect | None = None,
) -> None:
    """Add an action with this outcome. The answers go to whoever waits for one; `taken`: on which connection it has the
    request now. `at`: the effect on the coordinator that takes the step, if it is not the present one."""
    group, stray = board.slots.group, board.slots.stray

    def answered(connection: int, found: GroupExchange | None, outcome: CoordinatorOutcome | None) -> object:
        if outcome is None:
            return REFUSED
        if found is None:
            return None
        now_taken = found._replace(is_taken=True) if taken == connection else found
        for answer in outcome.answers:
            if answer.connection == connection and now_taken.is_taken:
                return now_taken._replace(answer=answer.response)
        return now_taken

    effects = [
        at or then(group, lambda outcome: REFUSED if outcome is None else outcome.state, after),
        then(stray, lambda before, outcome: REFUSED if outcome is None else before or outcome.is_stray, stray, after),
        *(
            then(slot, lambda found, outcome, connection=connection: answered(connection, found, outcome), slot, after)
            for connection, slot in board.slots.exchange.items()
        ),
        *more,
    ]
    event = Note(COORDINATOR, what) if source is None else Arrow(source, COORDINATOR, what)
    board.model.action(name, arguments, [when(lambda outcome: outcome is not None, after), *guards], effects, [event])


def handle_delivery(
    board: Board,
    coordinated: CoordinatedGroup,
    request: Request,
    number: RequestNumber,
    lives: int,
    moved: bool,
    given_to: tuple[int, ...] | None = None,
) -> CoordinatorOutcome | None:
    """The outcome of a request that has arrived; `moved`: at a broker that is not the coordinator any more.

    `given_to`: the consumers that get the partitions of a target that is computed, `None` if none is. With any other there
    is no outcome.
    """
    if moved:
        refusal = numbered((refuse(request, Error.NOT_COORDINATOR),), number)
        return CoordinatorOutcome(
            coordinated, tuple(answer for effect in refusal for answer in answers_of(effect)), lives=lives
        )
    match request:
        case JoinGroupRequest():
            if request.member_id == NO_MEMBER_ID:
                if lives == board.lives:
                    return None
                lives += 1
            request = replace(request, request=number, new_member_id=member_id(number // 4, lives))
        case ConsumerGroupHeartbeatRequest() if request.member_id == NO_MEMBER_ID:
            if lives == board.lives:
                return None
            lives += 1
            request = replace(request, new_member_id=member_id(number // 4, lives))
        case SyncGroupRequest():
            request = replace(request, request=number)
    assignor = AnyAssignor(given_to)
    coordinator = replace(board.coordinator, protocol=replace(board.coordinator.protocol, assigns=assignor))
    step = handle_group_request(coordinator, coordinated, number, request, position_of(coordinated), NOW)
    found = outcome_of(board, step) if assignor.is_as_asked() else None
    return None if found is None else found._replace(lives=lives, is_stray=_is_stray(coordinated, found.state, request))


def _is_stray(before: CoordinatedGroup, after: CoordinatedGroup, request: Request) -> bool:
    """Whether a commit is written that names another generation than the present one, or nobody of it.

    In a consumer group: whether it comes from nobody of the group, or is of a partition that another member has.
    """
    match request:
        case OffsetCommitRequest() if before.latest.consumer is not None:
            consumers = before.latest.consumer.members
            others = [places(one.assigned) | places(one.pending) for one in consumers if one.member_id != request.member_id]
            is_present = any(one.member_id == request.member_id for one in consumers)
            taken = {offset.partition for offset in request.offsets} & {one.partition for has in others for one in has}
            return (not is_present or bool(taken)) and len(after.writes) > len(before.writes)
        case OffsetCommitRequest():
            members = {member.member_id for member in before.latest.members}
            is_present = request.generation == before.latest.generation and request.member_id in members
            return not is_present and len(after.writes) > len(before.writes)
    return False


class AnyAssignor:
    """An assignor that gives each partition to one of these consumers, as its last member, and notes that it was asked."""

    def __init__(self, given_to: tuple[int, ...] | None) -> None:
        self.given_to = given_to
        self.targets: list[Assignment[bytes]] = []

    def __call__(
        self, name: str, members: tuple[Subscriber[bytes], ...], counts: PartitionCounts[bytes]
    ) -> Assignment[bytes]:
        """The target of each member."""
        given = self.given_to or ()
        latest = {consumer_of(one.member_id): one.member_id for one in members}
        target: Assignment[bytes] = {
            one.member_id: frozenset(
                (TOPIC_ID, place) for place, receiver in enumerate(given) if latest.get(receiver) == one.member_id
            )
            for one in members
        }
        self.targets.append(target)
        return target

    def is_as_asked(self) -> bool:
        """Whether it was asked if it has something to give, all of which some member gets, and not asked otherwise."""
        if self.given_to is None or not self.targets:
            return self.given_to is None and not self.targets
        return sum(map(len, self.targets[-1].values())) == len(self.given_to)
