"""Actions by which another broker becomes the coordinator, and those of the one before that has not heard of it.

A former coordinator takes requests and answers them from what it knows; nothing that it writes is ever committed, since
nobody follows it. **Leaves out:** its clocks.
"""

from collections.abc import Sequence

from kspec.model_check.core.model import REFUSED, Note, then, when
from kspec.model_check.models.group.board import GROUP, NOW, Board, position_of
from kspec.model_check.models.group.outcomes import CoordinatorOutcome, add_step, answers_of, handle_delivery, outcome_of
from kspec.model_check.models.group.values import (
    FormerCoordinator,
    GroupExchange,
    Lane,
    LastCommitted,
    connection_of,
    number_of,
)
from kspec.spec.coordinator.runtime import (
    CoordinatedGroup,
    LoadedGroups,
    LoggedEntry,
    activate,
    load_groups,
    resign,
    unknown_group,
)
from kspec.spec.values import Offset


def add_moves(board: Board, targets: Sequence[tuple[int, ...]]) -> None:
    """Add all that follows from a change of the coordinator. `targets`: who may get the partitions."""
    for kept in range(board.parameters["writes"] + 1):
        _add_move(board, kept)
        if board.former:
            _add_move(board, kept, stays=True)
        if board.slots.last_committed is not None:
            _add_move(board, kept, lags=True)
    if board.former:
        for consumer in board.consumers:
            for lane in (Lane.MEMBERSHIP, Lane.OFFSETS)[: 1 + board.is_modern]:
                _add_stray_request(board, consumer, lane)
                for given_to in (None, *targets)[: None if lane == Lane.MEMBERSHIP else 1]:
                    _add_delivery_to_former(board, consumer, lane, given_to)
        _add_resignation(board)


def _loaded(board: Board, coordinated: CoordinatedGroup, kept: int, last: LastCommitted | None) -> CoordinatorOutcome | None:
    """The next coordinator, with the first writes of the log. `last`: it does not know that this write is committed."""
    base = coordinated.committed if last is None else last.base
    entries = [] if last is None else [LoggedEntry(Offset(len(last.entries)), entry) for entry in last.entries]
    before = Offset(0) if last is None else Offset(len(last.entries))
    entries += [
        LoggedEntry(Offset(before + write.end), entry) for write in coordinated.writes[:kept] for entry in write.entries
    ]
    known = CoordinatedGroup(base, base)
    loaded = load_groups(LoadedGroups(Offset(0), (known,)), entries)
    (state,) = loaded.groups or (unknown_group(GROUP),)
    return outcome_of(board, activate(board.coordinator, state, position_of(state), NOW))


def _add_move(board: Board, kept: int, *, stays: bool = False, lags: bool = False) -> None:
    """Another broker coordinates: it has the committed records, and of the others the first ones, as many as `kept`.

    `stays`: the one before goes on. `lags`: the next one does not know yet that the last committed write is committed.
    """
    slots = board.slots
    left = slots.left["moves"]
    budgets = [left, *(slots.left[name] for name, wanted in (("zombies", stays), ("lags", lags)) if wanted)]
    lag = [] if slots.last_committed is None or slots.is_unheard is None else [slots.last_committed, slots.is_unheard]
    former = board.former if stays else []

    def move(coordinated: CoordinatedGroup, *more: object) -> CoordinatorOutcome | None:
        last, is_unheard = (more[0], bool(more[1])) if lag else (None, False)
        if not is_unheard <= kept <= len(coordinated.writes) or (lags and (last is None or is_unheard)):
            return None
        if any(one is not None for one in more[len(lag) : len(lag) + len(former)]) or 0 in more[len(lag) + len(former) :]:
            return None
        assert last is None or isinstance(last, LastCommitted)
        found = _loaded(board, coordinated, kept, last if lags else None)
        if found is None or stays:
            return found
        resigned = resign(board.coordinator, coordinated, NOW)
        return found._replace(answers=tuple(answer for effect in resigned.effects for answer in answers_of(effect)))

    what = "another broker becomes the coordinator"
    name = "MoveCoordinator"
    if stays:
        name, what = "MoveUnheard", f"{what}, and the one before does not know"
    if lags:
        name, what = "MoveBehind", f"{what}, and does not know that the last write is committed"
    after = board.model.view(f"{name} {kept}", move, slots.group, *lag, *former, *budgets)
    more = [then(one, lambda number: number - 1 if number else REFUSED, one) for one in budgets]
    if stays:
        more.append(
            then(
                former[0],
                lambda coordinated, number: FormerCoordinator(coordinated, board.moved([number])),
                slots.group,
                left,
            )
        )
    if lags:
        more += [then(lag[0], lambda: None), then(lag[1], lambda: True)]
    add_step(board, name, {"kept": kept}, what, after, more)


# ---- a former coordinator


def _add_stray_request(board: Board, consumer: int, lane: Lane) -> None:
    """A request goes to the former coordinator: the consumer was told of it by a broker that knows of no other."""
    exchange = board.slots.exchange[connection_of(consumer, lane)]
    (former,) = board.former

    def effect(found: GroupExchange | None, known: FormerCoordinator | None) -> object:
        if found is None or known is None or found.is_taken or found.moves == known.moves:
            return REFUSED
        return found._replace(moves=known.moves)

    board.model.action(
        "AskFormer",
        {"consumer": consumer, **({"offsets": True} if lane == Lane.OFFSETS else {})},
        guards=[when(lambda known: known is not None, former)],
        effects=[then(exchange, effect, exchange, former)],
        events=[Note(consumer, "asks the coordinator before")],
    )


def _at_former(before: FormerCoordinator | None, outcome: CoordinatorOutcome | None) -> object:
    return REFUSED if before is None or outcome is None else before._replace(state=outcome.state)


def _add_delivery_to_former(board: Board, consumer: int, lane: Lane, given_to: tuple[int, ...] | None) -> None:
    slots = board.slots
    connection, lives = connection_of(consumer, lane), slots.lives[consumer]
    exchange = slots.exchange[connection]
    (former,) = board.former

    def handle(known: FormerCoordinator | None, found: GroupExchange | None, given: int) -> CoordinatorOutcome | None:
        if known is None or found is None or found.is_taken or found.moves != known.moves:
            return None
        number = number_of(consumer, lane)
        outcome = handle_delivery(board, known.state, found.request, number, given, False, given_to)
        return None if outcome is None else outcome._replace(is_stray=False)  # nothing of it is ever committed

    arguments = {"consumer": consumer} if given_to is None else {"consumer": consumer, "to": tuple(map(int, given_to))}
    name = "DeliverToFormer" if lane == Lane.MEMBERSHIP else "DeliverOffsetsToFormer"
    label = f"{name} {consumer}" + ("" if given_to is None else f" {given_to}")
    after = board.model.view(label, handle, former, exchange, lives, key=consumer)
    more = [then(lives, lambda outcome: REFUSED if outcome is None else outcome.lives, after)]
    at = then(former, _at_former, former, after)
    what = "the request, at the coordinator before"
    add_step(board, name, arguments, what, after, more, taken=connection, source=consumer, at=at)


def _add_resignation(board: Board) -> None:
    """The former coordinator hears that there is another one, and tells who waits."""
    (former,) = board.former

    def leave(known: FormerCoordinator | None) -> CoordinatorOutcome | None:
        if known is None:
            return None
        resigned = resign(board.coordinator, known.state, NOW)
        return CoordinatorOutcome(
            resigned.state, tuple(answer for effect in resigned.effects for answer in answers_of(effect))
        )

    after = board.model.view("resign", leave, former)
    at = then(former, lambda known: REFUSED if known is None else None, former)
    add_step(board, "Resign", {}, "the coordinator before hears that there is another one", after, at=at)
