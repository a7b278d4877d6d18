"""Actions of the coordinator: it takes requests, its log is committed, time ends, and another broker takes over."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from kspec.model_check.core.model import COORDINATOR, REFUSED, Arrow, Effect, Local, Note, View, then, when
from kspec.model_check.models.group.board import (
    DUE,
    GROUP,
    LATER,
    NOW,
    TOPIC_ID,
    Board,
    from_committed_end,
    position_of,
    settled,
)
from kspec.model_check.models.group.values import (
    Answer,
    ConsumerState,
    GroupExchange,
    HeartbeatingState,
    Lane,
    LateRequest,
    Request,
    connection_of,
    consumer_of,
    member_id,
    number_of,
)
from kspec.spec.assignors.subscribers import Assignment, PartitionCounts, Subscriber
from kspec.spec.consumer.modern.membership import ConsumerMemberState
from kspec.spec.coordinator.effects import AnswerMember, AnswerRequest, RuntimeEffect
from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.modern.state import ConsumerGroup, places
from kspec.spec.coordinator.refusals import refuse
from kspec.spec.coordinator.runtime import (
    CoordinatedGroup,
    LoadedGroups,
    LoggedEntry,
    RuntimeStep,
    activate,
    handle_group_request,
    load_groups,
    numbered,
    on_committed,
    on_due,
    resign,
    unknown_group,
)
from kspec.spec.messages.groups.join_group import JoinGroupRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.messages.groups.sync_group import SyncGroupRequest
from kspec.spec.values import NO_MEMBER_ID, Error, MonotonicMs, Offset, RequestNumber


def add_coordinator(board: Board) -> None:
    """Add all that the coordinator does."""
    targets = tuple(product(board.consumers, repeat=len(board.partitions))) if board.is_modern else ()
    for consumer in board.consumers:
        for given_to in (None, *targets):
            _add_delivery(board, consumer, given_to=given_to)
        if board.is_modern:
            _add_delivery(board, consumer, Lane.OFFSETS)
        if board.parameters["late_requests"]:
            for given_to in (None, *targets):
                _add_late_delivery(board, consumer, given_to)
        for life in range(1, board.lives + 1):
            _add_session_end(board, consumer, life)
    if not board.is_modern:
        _add_timer(board, "EndJoining", "the time to join is over")
        _add_timer(board, "EndSyncing", "the time to ask for an assignment is over")
    _add_commit(board)
    if board.parameters["moves"]:
        for kept in range(board.parameters["writes"] + 1):
            _add_move(board, kept)


class CoordinatorOutcome(NamedTuple):
    """The coordinator after a step, the answers that it gives, and whether a commit counts that must not."""

    state: CoordinatedGroup
    answers: tuple[Answer, ...] = ()
    is_stray: bool = False
    lives: int = 0


def _outcome(board: Board, step: RuntimeStep) -> CoordinatorOutcome | None:
    """The outcome of a step, `None` where it leads out of the bounds."""
    state = settled(step.state)
    if len(state.writes) > board.parameters["writes"] or board.epochs_of(state.latest) > board.parameters["generations"]:
        return None
    return CoordinatorOutcome(state, tuple(answer for effect in step.effects for answer in _answers(effect)))


def _answers(effect: RuntimeEffect) -> tuple[Answer, ...]:
    match effect:
        case AnswerMember(number, response) | AnswerRequest(number, response):
            return () if number % 2 else (Answer(number // 2, response),)
        case _:
            return ()


def _add(
    board: Board,
    name: str,
    arguments: dict[str, Any],
    what: str,
    after: View,
    more: Sequence[Effect] = (),
    guards: Sequence[Local] = (),
    taken: int | None = None,
    source: int | None = None,
) -> None:
    """Add an action with this outcome. The answers go to whoever waits for one; `taken`: on which connection it has the
    request now."""
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
        then(group, lambda outcome: REFUSED if outcome is None else outcome.state, after),
        then(stray, lambda before, outcome: REFUSED if outcome is None else before or outcome.is_stray, stray, after),
        *(
            then(slot, lambda found, outcome, connection=connection: answered(connection, found, outcome), slot, after)
            for connection, slot in board.slots.exchange.items()
        ),
        *more,
    ]
    event = Note(COORDINATOR, what) if source is None else Arrow(source, COORDINATOR, what)
    board.model.action(name, arguments, [when(lambda outcome: outcome is not None, after), *guards], effects, [event])


# ---- requests


def _handled(
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
            coordinated, tuple(answer for effect in refusal for answer in _answers(effect)), lives=lives
        )
    match request:
        case JoinGroupRequest():
            if request.member_id == NO_MEMBER_ID:
                if lives == board.parameters["lives"]:
                    return None
                lives += 1
            request = replace(request, request=number, new_member_id=member_id(number // 4, lives))
        case SyncGroupRequest():
            request = replace(request, request=number)
    assignor = AnyAssignor(given_to)
    coordinator = replace(board.coordinator, protocol=replace(board.coordinator.protocol, assigns=assignor))
    step = handle_group_request(coordinator, coordinated, number, request, position_of(coordinated), NOW)
    found = _outcome(board, step) if assignor.is_as_asked() else None
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
    """An assignor that gives each partition to one of these consumers, and notes that it was asked."""

    def __init__(self, given_to: tuple[int, ...] | None) -> None:
        self.given_to = given_to
        self.targets: list[Assignment[bytes]] = []

    def __call__(
        self, name: str, members: tuple[Subscriber[bytes], ...], counts: PartitionCounts[bytes]
    ) -> Assignment[bytes]:
        """The target of each member."""
        given = self.given_to or ()
        target: Assignment[bytes] = {
            one.member_id: frozenset(
                (TOPIC_ID, place) for place, receiver in enumerate(given) if receiver == consumer_of(one.member_id)
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


def _add_delivery(
    board: Board, consumer: int, lane: Lane = Lane.MEMBERSHIP, given_to: tuple[int, ...] | None = None
) -> None:
    """The coordinator takes a request. `given_to`: by this step it computes a target, and so each partition has a member."""
    slots, model = board.slots, board.model
    connection, lives = connection_of(consumer, lane), slots.lives[consumer]
    exchange = slots.exchange[connection]

    def handle(
        coordinated: CoordinatedGroup, found: GroupExchange | None, given: int, *left: int
    ) -> CoordinatorOutcome | None:
        if found is None or found.is_taken:
            return None
        moved = found.moves != board.moved(left)
        return _handled(board, coordinated, found.request, number_of(consumer, lane), given, moved, given_to)

    name = "Deliver" if lane == Lane.MEMBERSHIP else "DeliverOffsets"
    arguments = {"consumer": consumer} if given_to is None else {"consumer": consumer, "to": tuple(map(int, given_to))}
    label = f"{name} {consumer}" + ("" if given_to is None else f" {given_to}")
    after = model.view(label, handle, slots.group, exchange, lives, *board.moves, key=consumer)
    more = [then(lives, lambda outcome: REFUSED if outcome is None else outcome.lives, after)]
    _add(board, name, arguments, "the request", after, more, taken=connection, source=consumer)


def _add_late_delivery(board: Board, consumer: int, given_to: tuple[int, ...] | None = None) -> None:
    slots, model = board.slots, board.model
    late, lives = slots.late[consumer], slots.lives[consumer]

    def handle(
        coordinated: CoordinatedGroup, found: LateRequest | None, given: int, *left: int
    ) -> CoordinatorOutcome | None:
        if found is None:
            return None
        moved = found.moves != board.moved(left)
        number = number_of(consumer, is_broken=True)
        return _handled(board, coordinated, found.request, number, given, moved, given_to)

    arguments = {"consumer": consumer} if given_to is None else {"consumer": consumer, "to": tuple(map(int, given_to))}
    label = f"late delivery {consumer}" + ("" if given_to is None else f" {given_to}")
    after = model.view(label, handle, slots.group, late, lives, *board.moves, key=consumer)
    more = [
        then(lives, lambda outcome: REFUSED if outcome is None else outcome.lives, after),
        then(late, lambda outcome: REFUSED if outcome is None else None, after),
    ]
    _add(board, "DeliverLate", arguments, "the late request", after, more, source=consumer)


# ---- the log


def _add_commit(board: Board) -> None:
    """The first write that waits is committed: every replica in sync has it, and the leader knows."""

    def commit(coordinated: CoordinatedGroup) -> CoordinatorOutcome | None:
        if not coordinated.writes:
            return None
        end = coordinated.writes[0].end
        step = on_committed(board.coordinator, coordinated, end, NOW)
        return _outcome(board, step._replace(state=from_committed_end(step.state, end)))

    after = board.model.view("commit", commit, board.slots.group)
    _add(board, "Commit", {}, "a write of the group is committed", after)


def _add_move(board: Board, kept: int) -> None:
    """Another broker coordinates: it has the committed records, and of the others the first ones, as many as `kept`."""
    left = board.slots.left["moves"]

    def move(coordinated: CoordinatedGroup, number: int) -> CoordinatorOutcome | None:
        if number == 0 or kept > len(coordinated.writes):
            return None
        resigned = resign(board.coordinator, coordinated, NOW)
        known = CoordinatedGroup(coordinated.committed, coordinated.committed)
        entries = [LoggedEntry(write.end, entry) for write in coordinated.writes[:kept] for entry in write.entries]
        loaded = load_groups(LoadedGroups(Offset(0), (known,)), entries)
        (state,) = loaded.groups or (unknown_group(GROUP),)
        active = activate(board.coordinator, state, position_of(state), NOW)
        found = _outcome(board, active)
        answers = tuple(answer for effect in resigned.effects for answer in _answers(effect))
        return None if found is None else found._replace(answers=answers)

    after = board.model.view(f"move {kept}", move, board.slots.group, left)
    more = [then(left, lambda number: number - 1 if number else REFUSED, left)]
    _add(board, "MoveCoordinator", {"kept": kept}, "another broker becomes the coordinator", after, more)


# ---- time


def _add_session_end(board: Board, consumer: int, life: int) -> None:
    """A member has been silent for its session. If its consumer still has that id, this is counted."""
    member = member_id(consumer, life)
    exchange = board.slots.exchange[connection_of(consumer)]
    slots = (board.slots.consumer[consumer], exchange, board.slots.lives[consumer])

    def lives_on(state: ConsumerState | HeartbeatingState, under_way: GroupExchange | None, lives: int) -> bool:
        """Whether the consumer has this id, or is about to be told it."""
        match state:
            case HeartbeatingState(membership):
                return membership.state != ConsumerMemberState.UNSUBSCRIBED and membership.member_id == member
            case ConsumerState(membership):
                awaits = under_way is not None and under_way.is_taken and life == lives
                return membership.generation.member_id == member or awaits

    def handle(coordinated: CoordinatedGroup) -> CoordinatorOutcome | None:
        latest = coordinated.latest
        known = [one.member_id for one in latest.members if one.session_deadline_ms is not None]
        known += [one.member_id for one in latest.pending]
        if latest.consumer is not None:
            known += [one.member_id for one in latest.consumer.members]
        return _due(board, coordinated, _only_session(latest, member)) if member in known else None

    after = board.model.view(f"session end {member}", handle, board.slots.group, key=consumer)
    more: list[Effect] = []
    if "expiries" in board.slots.left:
        left = board.slots.left["expiries"]

        def spend(state: ConsumerState, under_way: GroupExchange | None, lives: int, number: int) -> object:
            counts = lives_on(state, under_way, lives)
            return REFUSED if counts and not number else number - counts

        more.append(then(left, spend, *slots, left))
        _add(board, "EndSession", {"consumer": consumer, "life": life}, "a session ends", after, more)
        return
    is_gone = when(lambda *values: not lives_on(*values), *slots)
    _add(board, "EndSession", {"consumer": consumer, "life": life}, "a session ends", after, guards=[is_gone])


def _only_session(group: Group, due: str) -> Group:
    """The group with nothing due but one member's session."""
    return group._replace(
        members=tuple(
            one if one.session_deadline_ms is None else one._replace(session_deadline_ms=_at(one.member_id == due))
            for one in group.members
        ),
        pending=tuple(one._replace(session_deadline_ms=_at(one.member_id == due)) for one in group.pending),
        consumer=None if group.consumer is None else _only_session_of_consumer(group.consumer, due),
    )


def _only_session_of_consumer(group: ConsumerGroup, due: str) -> ConsumerGroup:
    members = tuple(one._replace(session_deadline_ms=_at(one.member_id == due)) for one in group.members)
    return group._replace(members=members)


def _at(is_due: bool) -> MonotonicMs:
    return DUE if is_due else LATER


def _due(board: Board, coordinated: CoordinatedGroup, latest: Group) -> CoordinatorOutcome | None:
    return _outcome(board, on_due(board.coordinator, coordinated._replace(latest=latest), position_of(coordinated), NOW))


def _add_timer(board: Board, name: str, what: str) -> None:
    """The time to join, or to ask for an assignment, is over. But for the first members of a group, this is counted."""
    joins = name == "EndJoining"

    def handle(coordinated: CoordinatedGroup) -> CoordinatorOutcome | None:
        latest = coordinated.latest
        deadline = latest.join_deadline_ms if joins else latest.sync_deadline_ms
        if deadline is None:
            return None
        due = latest._replace(join_deadline_ms=DUE) if joins else latest._replace(sync_deadline_ms=DUE)
        return _due(board, coordinated, due)

    group = board.slots.group
    after = board.model.view(name, handle, group)
    if "expiries" not in board.slots.left:
        if joins:
            is_first = when(lambda state: state.latest.initial_delay is not None, group)
            _add(board, name, {}, what, after, guards=[is_first])
        return
    left = board.slots.left["expiries"]

    def spend(coordinated: CoordinatedGroup, number: int) -> object:
        is_free = joins and coordinated.latest.initial_delay is not None
        return number if is_free else number - 1 if number else REFUSED

    _add(board, name, {}, what, after, [then(left, spend, group, left)])
