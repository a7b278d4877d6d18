"""The transition relation of a model's action: the checker's own guards and effects, evaluated on a symbolic state."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import z3

from kspec.model_check.core.model import REFUSED, Action, Effect, Local, Slot, View
from kspec.proofs.symbolic.paths import Path, explore, facts_of, joined, joined_truth, numbered_anew
from kspec.proofs.symbolic.shapes import plain
from kspec.proofs.symbolic.state import Key, SymbolicState
from kspec.proofs.symbolic.terms import conjunction
from kspec.proofs.symbolic.values import truth


class SymbolicStep(NamedTuple):
    """An action as a relation between a state and its successor.

    If `enabled` holds in the state before, the action may be taken, and leads to `after`. `facts` are laws of the log
    algebra about values that came up. `paths` counts the ways through the rules involved.
    """

    action: Action
    enabled: z3.BoolRef
    facts: z3.BoolRef
    writes: dict[tuple[str, Key], Any]
    after: SymbolicState
    paths: int


def arguments(local: Local, state: SymbolicState) -> tuple[Any, ...]:
    """The values of the slots and views that a function reads. This forks where a view decides something."""
    return tuple(_looked_at(read, state) for read in local.reads)


def _looked_at(read: Slot | View, state: SymbolicState) -> Any:
    if isinstance(read, View):
        return read.function(*(_looked_at(slot, state) for slot in read.reads))
    return plain(state.at(read.name, read.key))


def paths_of(local: Local, state: SymbolicState, solver: z3.Solver | None) -> list[Path]:
    """All ways through a guard, a property's term or an effect."""
    return explore(lambda: local.function(*arguments(local, state)), solver)


def as_formula(local: Local, state: SymbolicState, solver: z3.Solver | None = None) -> tuple[z3.BoolRef, z3.BoolRef, int]:
    """A guard or a property's term as a formula; the laws that it rests on; and how many paths it has."""
    paths = paths_of(local, state, solver)
    yes = joined_truth(paths, lambda path: _answer(path.value))
    return yes, facts_of(paths), len(paths)


def _answer(value: Any) -> z3.BoolRef:
    return truth(value) if hasattr(value, "term") else z3.BoolVal(bool(value))


Guard = Callable[[Local, SymbolicState, z3.Solver | None], tuple[z3.BoolRef, z3.BoolRef, int]]


def step(action: Action, state: SymbolicState, solver: z3.Solver | None = None, guard: Guard = as_formula) -> SymbolicStep:
    """The relation of an action from `state` on. The facts in `solver` about the state rule out paths."""
    (taken,) = _steps(action, state, solver, guard, apart=False)
    return taken


def outcomes(
    action: Action, state: SymbolicState, solver: z3.Solver | None = None, guard: Guard = as_formula
) -> list[SymbolicStep]:
    """The relation of an action, one for each outcome: an outcome is all paths that write the same values.

    Fresh values have the same names each time the action is evaluated: the same relation has the same formulas.
    """
    with numbered_anew():
        return _steps(action, state, solver, guard, apart=len(action.effects) == 1)


def _steps(action: Action, state: SymbolicState, solver: z3.Solver | None, guard: Guard, apart: bool) -> list[SymbolicStep]:
    if solver is not None:
        solver.push()
    try:
        enabled, facts, count = [], [], 0
        for local in action.guards:
            condition, laws, ways = guard(local, state, solver)
            enabled.append(condition)
            facts.append(laws)
            count += ways
            if solver is not None:
                solver.add(condition)
        found = [(effect, paths_of(effect.local, state, solver)) for effect in action.effects]
    finally:
        if solver is not None:
            solver.pop()
    if not apart:
        return [_joined(action, state, enabled, facts, count, found)]
    ((effect, every),) = found
    paths = [path.free() for path in every]
    groups: dict[Any, list[Path]] = {}
    for path in paths:
        if path.value is not REFUSED:
            values = _lifted(effect, state, path)
            groups.setdefault(tuple(state.shapes[slot.name].outline(value) for slot, value in values), []).append(path)
    return [
        _joined(action, state, [*enabled, _goes(paths, group)], facts, count, [(effect, group)]) for group in groups.values()
    ]


def _lifted(effect: Effect, state: SymbolicState, path: Path) -> list[tuple[Slot, Any]]:
    values = (path.value,) if len(effect.writes) == 1 else path.value
    return [(slot, state.shapes[slot.name].lift(value)) for slot, value in zip(effect.writes, values, strict=True)]


def _goes(paths: list[Path], some: list[Path]) -> z3.BoolRef:
    """States that one of some paths is taken."""
    wanted = {id(path) for path in some}
    return joined_truth(paths, lambda path: z3.BoolVal(id(path) in wanted))


def _joined(
    action: Action,
    state: SymbolicState,
    enabled: list[z3.BoolRef],
    facts: list[z3.BoolRef],
    count: int,
    found: list[tuple[Effect, list[Path]]],
) -> SymbolicStep:
    writes: dict[tuple[str, Key], Any] = {}
    enabled, facts = [*enabled], [*facts]
    for effect, paths in found:
        taken = [path for path in paths if path.value is not REFUSED]
        count += len(taken)
        enabled.append(_goes(paths, taken))
        facts.append(facts_of(taken))
        if not taken:
            continue
        lifted = {id(path): dict(_lifted(effect, state, path)) for path in taken}
        for slot in effect.writes:
            values = {path: value[slot] for path, value in lifted.items()}
            shape = state.shapes[slot.name]
            writes[slot.name, slot.key] = joined(taken, partial(_value_of, values), shape.either)
    return SymbolicStep(action, conjunction(enabled), conjunction(facts), writes, state.with_writes(writes), count)


def _value_of(values: dict[int, Any], path: Path) -> Any:
    return values[id(path)]
