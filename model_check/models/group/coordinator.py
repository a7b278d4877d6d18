"""Actions of the coordinator: it takes requests, its log is committed, and time ends."""

from itertools import product

from kspec.model_check.core.model import REFUSED, Effect, then, when
from kspec.model_check.models.group.board import DUE, LATER, NOW, Board, from_committed_end, position_of
from kspec.model_check.models.group.moving import add_moves
from kspec.model_check.models.group.outcomes import CoordinatorOutcome, add_step, handle_delivery, outcome_of
from kspec.model_check.models.group.values import (
    ConsumerState,
    GroupExchange,
    HeartbeatingState,
    Lane,
    LastCommitted,
    LateRequest,
    connection_of,
    member_id,
    number_of,
)
from kspec.spec.consumer.modern.membership import ConsumerMemberState
from kspec.spec.coordinator.group import Group
from kspec.spec.coordinator.modern.state import ConsumerGroup
from kspec.spec.coordinator.runtime import CoordinatedGroup, on_committed, on_due
from kspec.spec.values import MonotonicMs


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
        add_moves(board, targets)


# ---- requests


def _add_delivery(
    board: Board, consumer: int, lane: Lane = Lane.MEMBERSHIP, given_to: tuple[int, ...] | None = None
) -> None:
    """The coordinator takes a request. `given_to`: by this step it computes a target, and so each partition has a member."""
    slots, model = board.slots, board.model
    connection, lives = connection_of(consumer, lane), slots.lives[consumer]
    exchange = slots.exchange[connection]

    others = [*board.moves, *board.former]

    def handle(
        coordinated: CoordinatedGroup, found: GroupExchange | None, given: int, *more: object
    ) -> CoordinatorOutcome | None:
        if found is None or found.is_taken:
            return None
        moves, former = board.moves_and_former(more)
        if former is not None and former.moves == found.moves:
            return None
        number = number_of(consumer, lane)
        return handle_delivery(board, coordinated, found.request, number, given, found.moves != moves, given_to)

    name = "Deliver" if lane == Lane.MEMBERSHIP else "DeliverOffsets"
    arguments = {"consumer": consumer} if given_to is None else {"consumer": consumer, "to": tuple(map(int, given_to))}
    label = f"{name} {consumer}" + ("" if given_to is None else f" {given_to}")
    after = model.view(label, handle, slots.group, exchange, lives, *others, key=consumer)
    more = [then(lives, lambda outcome: REFUSED if outcome is None else outcome.lives, after)]
    add_step(board, name, arguments, "the request", after, more, taken=connection, source=consumer)


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
        return handle_delivery(board, coordinated, found.request, number, given, moved, given_to)

    arguments = {"consumer": consumer} if given_to is None else {"consumer": consumer, "to": tuple(map(int, given_to))}
    label = f"late delivery {consumer}" + ("" if given_to is None else f" {given_to}")
    after = model.view(label, handle, slots.group, late, lives, *board.moves, key=consumer)
    more = [
        then(lives, lambda outcome: REFUSED if outcome is None else outcome.lives, after),
        then(late, lambda outcome: REFUSED if outcome is None else None, after),
    ]
    add_step(board, "DeliverLate", arguments, "the late request", after, more, source=consumer)


# ---- the log


def _add_commit(board: Board) -> None:
    """The first write that waits is committed: every replica in sync has it, and the leader knows."""
    slots = board.slots

    def commit(coordinated: CoordinatedGroup) -> CoordinatorOutcome | None:
        if not coordinated.writes:
            return None
        end = coordinated.writes[0].end
        step = on_committed(board.coordinator, coordinated, end, NOW)
        return outcome_of(board, step._replace(state=from_committed_end(step.state, end)))

    def remember(coordinated: CoordinatedGroup) -> object:
        return LastCommitted(coordinated.committed, coordinated.writes[0].entries) if coordinated.writes else REFUSED

    more: list[Effect] = []
    if slots.last_committed is not None and slots.is_unheard is not None:
        more = [then(slots.last_committed, remember, slots.group), then(slots.is_unheard, lambda: False)]
    after = board.model.view("commit", commit, slots.group)
    add_step(board, "Commit", {}, "a write of the group is committed", after, more)


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
        add_step(board, "EndSession", {"consumer": consumer, "life": life}, "a session ends", after, more)
        return
    is_gone = when(lambda *values: not lives_on(*values), *slots)
    add_step(board, "EndSession", {"consumer": consumer, "life": life}, "a session ends", after, guards=[is_gone])


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
    return outcome_of(board, on_due(board.coordinator, coordinated._replace(latest=latest), position_of(coordinated), NOW))


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
            add_step(board, name, {}, what, after, guards=[is_first])
        return
    left = board.slots.left["expiries"]

    def spend(coordinated: CoordinatedGroup, number: int) -> object:
        is_free = joins and coordinated.latest.initial_delay is not None
        return number if is_free else number - 1 if number else REFUSED

    add_step(board, name, {}, what, after, [then(left, spend, group, left)])
