"""The transition relation of a model's action: its guards and effects, the checker's own, evaluated on a symbolic state."""

from collections.abc import Callable
from typing import Any, NamedTuple

import z3

from model_check.model import REFUSED, Action, Local, Slot, View
from proofs.shapes import Shape, plain
from proofs.state import Key, SymbolicState
from proofs.symbolic import Path, conjunction, explore, facts_of, joined, joined_truth, truth


class Step(NamedTuple):
    """An action as a relation between a state and its successor.

    Where `enabled` holds of the state before, the action may be taken, and leads to `after`. `facts` are laws of the log
    algebra about values that came up. `paths` counts the ways through the rules involved.
    """

    action: Action
    enabled: z3.BoolRef
    facts: z3.BoolRef
    writes: dict[tuple[str, Key], Any]
    after: SymbolicState
    paths: int


def arguments(local: Local, state: SymbolicState) -> tuple[Any, ...]:
    """The values of the slots and views that a function reads. Where a view decides something, this forks."""
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


def step(
    action: Action,
    state: SymbolicState,
    solver: z3.Solver | None = None,
    guard: Callable[[Local, SymbolicState, z3.Solver | None], tuple[z3.BoolRef, z3.BoolRef, int]] = as_formula,
) -> Step:
    """The relation of an action from `state` on. What `solver` knows of the state rules paths out."""
    if solver is not None:
        solver.push()
    try:
        enabled, facts, count = [], [], 0
        for local in action.guards:
            condition, laws, paths = guard(local, state, solver)
            enabled.append(condition)
            facts.append(laws)
            count += paths
            if solver is not None:
                solver.add(condition)
        writes: dict[tuple[str, Key], Any] = {}
        for effect in action.effects:
            taken = [path for path in paths_of(effect.local, state, solver) if path.value is not REFUSED]
            count += len(taken)
            enabled.append(joined_truth(taken, lambda path: z3.BoolVal(True)))
            facts.append(facts_of(taken))
            if not taken:
                continue
            for position, slot in enumerate(effect.writes):
                shape = state.shapes[slot.name]

                def of_one(path: Path, shape: Shape = shape, position: int = position, one: bool = len(effect.writes) == 1) -> Any:
                    return shape.lift(path.value if one else path.value[position])

                merged = joined(taken, of_one, shape.either)
                writes[slot.name, slot.key] = merged
    finally:
        if solver is not None:
            solver.pop()
    return Step(action, conjunction(enabled), conjunction(facts), writes, state.with_writes(writes), count)
