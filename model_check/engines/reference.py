"""The reference engine: breadth-first search over plain states. It is short because it is the oracle for the others."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import (
    INTERRUPTED,
    Clock,
    Exploration,
    Limits,
    Progress,
    Trace,
    TraceStep,
    Verdict,
    without_garbage_collection,
)
from kspec.model_check.core.model import ALWAYS, Action, Local, Model, Property, State
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.core.values import KnownValues

Origins = dict[State, tuple[State, Action] | None]
"""The first way to each state: its predecessor and the action; `None` for the initial state."""

Fire = Callable[[State], Any]


class ActionEntry(NamedTuple):
    """An action as a function of states, and the properties as far as it may decide them."""

    action: Action
    fire: Fire
    holds_in: list[Callable[[State], bool]]


@without_garbage_collection()
def explore(model: Model, properties: list[Property], limits: Limits, symmetry: Symmetry | None = None) -> Exploration:
    """Visit every reachable state, level by level, so that the first state found to violate has a shortest trace.

    With `symmetry`, visit one state of each orbit; traces are still real runs.
    """
    result = Exploration(
        model, "reference", [Verdict(prop) for prop in properties], limits.deadlock_is_violation, symmetry is not None
    )
    clock = Clock(limits)
    canonical, values = symmetry.canonical if symmetry else None, KnownValues(model)
    origins: Origins = {model.initial: None}

    def check(state: State, holds_in: list[Callable[[State], bool]], kept: State) -> None:
        for verdict, holds in zip(result.verdicts, holds_in, strict=True):
            always = verdict.prop.kind == "always"
            if verdict.holds is None and holds(state) != always:
                verdict.holds, verdict.trace = not always, trace_to(kept, origins)

    groups: dict[Local, list[ActionEntry]] = {}
    for action in model.actions:
        entry = ActionEntry(action, values.watched(action, skip=1), [prop.bind(action.writes) for prop in properties])
        groups.setdefault(next(iter(action.guards), ALWAYS), []).append(entry)
    actions = [(guard.bind(), group) for guard, group in groups.items()]
    alone = [entry._replace(fire=values.watched(entry.action)) for _, group in actions for entry in group]
    constraint = [term.bind() for term in model.constraint]
    frontier, following = [model.initial], list[State]()
    try:
        check(model.initial, [prop.bind() for prop in properties], model.initial)
        while frontier and not result.stopped_because:
            result.levels.append(len(frontier))
            for position, state in enumerate(frontier):
                if result.violated and limits.stop_at_first:
                    result.stopped_because = "a property is violated"
                elif position % 256 == 0:
                    progress = Progress(result.depth, len(origins), result.transitions, len(frontier) - position)
                    result.stopped_because = clock.tick(progress)
                if result.stopped_because:
                    break
                stuck = True
                for action, fire, holds_in in possible(state, actions, alone):
                    successor = fire(state)
                    if successor is None:
                        continue
                    stuck = False
                    if constraint and not all(within(successor) for within in constraint):
                        continue
                    result.actions[action.name] += 1
                    kept = canonical(successor) if canonical else successor
                    if kept not in origins:
                        origins[kept] = (state, action)
                        following.append(kept)
                        check(successor, holds_in, kept)
                if stuck:
                    result.deadlocks += 1
                    result.deadlock_trace = result.deadlock_trace or trace_to(state, origins)
            frontier, following = following, []
    except KeyboardInterrupt:
        result.stopped_because = INTERRUPTED
    if result.stopped_because and len(origins) > sum(result.levels):
        result.levels.append(len(origins) - sum(result.levels))
    if symmetry:
        result.represented = sum(len(set(symmetry.images(state))) for state in origins)
    return result.finish(clock, (lambda trace: symmetry.real_trace([step.state for step in trace])) if symmetry else None)


def possible(state: State, actions: Sequence[tuple[Fire, list[ActionEntry]]], alone: list[ActionEntry]) -> list[ActionEntry]:
    """The actions whose first guards hold; if one of these raises an error, all actions, which then ask all their guards."""
    try:
        return [entry for guard, group in actions if guard(state) for entry in group]
    except Exception:
        return alone


def trace_to(state: State, origins: Origins) -> Trace:
    """The run from the initial state by which this one was first reached."""
    steps = []
    while (origin := origins[state]) is not None:
        steps.append(TraceStep(origin[1], state))
        state = origin[0]
    return (TraceStep(None, state), *reversed(steps))
