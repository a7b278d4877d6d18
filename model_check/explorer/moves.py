"""The moves of a model in a state: which are possible, and which guard forbids the others."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from operator import itemgetter
from types import FunctionType
from typing import Any, NamedTuple

from kspec.model_check.core.model import (
    CONTROLLER,
    COORDINATOR,
    REFUSED,
    Action,
    Argument,
    Arrow,
    Local,
    Model,
    Party,
    Slot,
    State,
    View,
)
from kspec.model_check.explorer.rules import watched
from kspec.model_check.explorer.sources import read_in_words, source_of, values_of
from kspec.model_check.traces.encode import as_json
from kspec.model_check.traces.render import action_in_words, owner, party_name

SHORT = 60
"""Characters of a value that is told beside a guard; longer ones are among what it reads."""


class MoveEntry(NamedTuple):
    """An action with its arguments, at its place among all of the model.

    A model may state one action several times, once for each epoch for instance: these are its `variants`.
    """

    number: int
    name: str
    args: Mapping[str, Argument]
    variants: tuple[Action, ...]
    told: Mapping[str, Any]
    """The move as views name it, which is the same in all states."""

    def successors(self, state: State) -> list[tuple[Action, State]]:
        """The different states to which the move leads, each with a variant that does. Usually there is at most one."""
        found: dict[State, Action] = {}
        for action in self.variants:
            after = action.bind()(state)
            if after is not None:
                found.setdefault(after, action)
        return [(action, after) for after, action in found.items()]


Moves = Mapping[tuple[str, tuple[tuple[str, Argument], ...]], MoveEntry]
"""The moves of a model by name and arguments."""


def key_of(name: str, args: Mapping[str, Argument]) -> tuple[str, tuple[tuple[str, Argument], ...]]:
    """A move's name and arguments; the order of the arguments does not matter."""
    return name, tuple(sorted(args.items()))


def moves_of(model: Model) -> Moves:
    """The moves of a model, in the order of its actions."""
    groups: dict[tuple[str, tuple[tuple[str, Argument], ...]], list[Action]] = {}
    for action in model.actions:
        groups.setdefault(key_of(action.name, action.args), []).append(action)
    return {
        key: MoveEntry(number, actions[0].name, actions[0].args, tuple(actions), _told(number, actions[0]))
        for number, (key, actions) in enumerate(groups.items())
    }


def _told(number: int, action: Action) -> Mapping[str, Any]:
    return {
        "index": number,
        "action": action.name,
        "args": as_json(action.args),
        "words": action_in_words(action),
        "party": party_name(party_of(action)),
    }


def party_of(action: Action) -> Party:
    """The party that acts: the one with which the action's events begin, or else the owner of what it writes.

    A message of the controller is an action of whoever handles it.
    """
    for event in action.events:
        if isinstance(event, Arrow):
            return event.target if event.source in (CONTROLLER, COORDINATOR) else event.source
        return event.party
    return next((owner(slot) for effect in action.effects for slot in effect.writes), CONTROLLER)


def beyond(model: Model, state: State) -> Local | None:
    """The bound of the model that a state is beyond, if there is one."""
    return next((term for term in model.constraint if not term.bind()(state)), None)


class StateValues:
    """The values of slots and views in one state; a view is computed once, however many guards read it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._views: dict[int, Any] = {}

    def of(self, local: Local) -> tuple[Any, ...]:
        """The values that a function reads."""
        return tuple(self.state[read.position] if isinstance(read, Slot) else self._seen(read) for read in local.reads)

    def _seen(self, view: View) -> Any:
        if id(view) not in self._views:
            self._views[id(view)] = view.bind()(self.state)
        return self._views[id(view)]


class MoveTable:
    """All moves of a model, in one state after another: a move of which no slot that it reads has changed is as it was."""

    def __init__(self, model: Model, moves: Moves) -> None:
        self._model, self._moves = model, list(moves.values())
        bounds = {slot.position for term in model.constraint for slot in term.slots}
        self._reads = [
            sorted(bounds | {slot.position for action in move.variants for slot in action.reads | action.writes})
            for move in self._moves
        ]
        self._known: dict[int, tuple[tuple[Any, ...], dict[str, Any]]] = {}

    def as_json(self, state: State) -> list[dict[str, Any]]:
        """Each move in a state: whether it is possible, and if not, what forbids it."""
        values = StateValues(state)
        return [self._told(move, positions, values) for move, positions in zip(self._moves, self._reads, strict=True)]

    def _told(self, move: MoveEntry, positions: list[int], values: StateValues) -> dict[str, Any]:
        read = itemgetter(*positions)(values.state) if positions else ()
        known = self._known.get(move.number)
        if known is None or known[0] != read:
            known = self._known[move.number] = read, move_as_json(self._model, move, values)
        return known[1]


def move_as_json(model: Model, move: MoveEntry, values: StateValues) -> dict[str, Any]:
    """A move in a state: whether it is possible, and if not, what forbids it."""
    within: set[State] = set()
    outside: tuple[Local, State] | None = None
    nearest: Obstacle | None = None
    for action in move.variants:
        obstacle = _obstacle(action, values)
        if obstacle is not None:
            nearest = obstacle if nearest is None or obstacle.number > nearest.number else nearest
            continue
        after = action.bind()(values.state)
        if after is None:
            continue
        bound = beyond(model, after)
        if bound is None:
            within.add(after)
        else:
            outside = bound, after
    told: dict[str, Any] = {**move.told, "enabled": bool(within)}
    if len(within) > 1:
        told["choices"] = len(within)
    if not within:
        told["forbidden_by"] = bound_as_json(outside) if outside is not None else obstacle_as_json(nearest)
    return told


def bound_as_json(outside: tuple[Local, State]) -> dict[str, Any]:
    """A bound of the model that a state is beyond, as an obstacle: with the values that it would have there."""
    bound, after = outside
    return {"kind": "bound", **local_as_json(bound, StateValues(after).of(bound))}


class Obstacle(NamedTuple):
    """A guard that fails in a state, or an effect that refuses, with the values that it reads there."""

    number: int
    kind: str
    local: Local
    values: tuple[Any, ...]


def forbidden_by(move: MoveEntry, state: State) -> dict[str, Any]:
    """The obstacle to a move: of the variant that comes nearest, the first guard that fails or effect that refuses."""
    return obstacle_as_json(_nearest_obstacle(move, state))


def obstacle_as_json(found: Obstacle | None) -> dict[str, Any]:
    """An obstacle; where none is found, guards raise errors."""
    if found is None:
        return {"kind": "error", "words": "its guards raise errors"}
    return {"kind": found.kind, **local_as_json(found.local, found.values)}


def rules_that_forbid(move: MoveEntry, state: State) -> list[FunctionType]:
    """The rules that the obstacle to a move calls."""
    found = _nearest_obstacle(move, state)
    return [] if found is None else watched(lambda: found.local.bind()(_anew(state)))[1]


def _nearest_obstacle(move: MoveEntry, state: State) -> Obstacle | None:
    values = StateValues(state)
    found = [obstacle for action in move.variants if (obstacle := _obstacle(action, values)) is not None]
    return max(found, key=lambda one: one.number) if found else None


def _obstacle(action: Action, values: StateValues) -> Obstacle | None:
    """The first guard that does not hold, or effect that refuses: then the action is not possible, whatever errors others
    raise.
    """
    for number, (kind, local) in enumerate(_locals(action)):
        with suppress(Exception):
            read = values.of(local)
            result = local.function(*read)
            if (kind == "guard" and not result) or (kind == "effect" and result is REFUSED):
                return Obstacle(number, kind, local, read)
    return None


def _locals(action: Action) -> Iterator[tuple[str, Local]]:
    yield from (("guard", guard) for guard in action.guards)
    yield from (("effect", effect.local) for effect in action.effects)


def _anew(state: State) -> State:
    """The same state as another object: views do not keep their values for it."""
    return (*state,)


def rules_of_step(action: Action, state: State) -> list[FunctionType]:
    """The rules that decide and carry out an action in a state."""
    return watched(lambda: action.bind()(_anew(state)))[1]


def local_as_json(local: Local, values: tuple[Any, ...]) -> dict[str, Any]:
    """A guard, effect or term: its source, what it means, the values that it was made with, and what it reads."""
    source = source_of(local.function)
    made_with = values_of(local.function, len(local.reads))
    reads = [read_in_words(read, value) for read, value in zip(local.reads, values, strict=True)]
    known = [f"{name} = {value}" for name, value in made_with.items()]
    known += [f"{read.get('slot', read.get('view'))}: {read['words']}" for read in reads if len(read["words"]) <= SHORT]
    beside = f" [{'; '.join(known)}]" if known else ""
    return {
        "words": f"{source.meaning or source.text}{beside}",
        "source": source.text,
        "place": source.place,
        "meaning": source.meaning,
        "made_with": made_with,
        "reads": reads,
    }
