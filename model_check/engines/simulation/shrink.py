"""Shrinking: from a run that violates a property to a short one that violates the same.

First actions are dropped, in ranges and one by one, as long as what is left can still be taken in its order and still
ends in a violation (delta debugging). Then a bounded breadth-first search looks for a shorter run that takes the
remaining actions only, in any order.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from kspec.model_check.core.exploration import Limits, Trace, TraceStep
from kspec.model_check.core.model import Action, Model, Property, State
from kspec.model_check.engines.reference import explore
from kspec.model_check.search.shrinking import Shrinker

LONGEST_RANGE = 64
"""At the end, no range of up to this many consecutive actions can be dropped."""

SEARCH_STATES = 20_000
"""The most states that the search visits."""


class Shrunk(NamedTuple):
    """A shrunk run: the run after dropping actions, and the result of the search (the same run if it found nothing)."""

    dropped: Trace
    trace: Trace


def shrink(model: Model, prop: Property, trace: Trace, search_states: int = SEARCH_STATES) -> Shrunk:
    """A short run that violates `prop` with actions of `trace`, whose last state violates it."""
    dropped = drop_actions(model, prop, trace)
    return Shrunk(dropped, search(model, prop, dropped, search_states))


def drop_actions(model: Model, prop: Property, trace: Trace) -> Trace:
    """Drop actions until nothing more can be dropped: no single action, no range of up to `LONGEST_RANGE`."""
    replay = _ShortRun(model, prop)
    shrinking = Shrinker(trace[1:], LONGEST_RANGE, overlapping=True)
    for begin, end in shrinking.ranges():
        shorter = replay.from_prefix(trace[: begin + 1], [step.action for step in trace[end + 1 :] if step.action])
        if shorter is not None:
            trace, shrinking.best = shorter, shorter[1:]
    return trace


def search(model: Model, prop: Property, trace: Trace, states: int) -> Trace:
    """The shortest run that violates `prop` with actions of `trace`, if found within this many states; else `trace`."""
    used = {id(step.action) for step in trace}
    restricted = replace(model, actions=[action for action in model.actions if id(action) in used])
    found = explore(restricted, [prop], Limits(max_states=states)).verdicts[0].trace
    return found if found is not None and len(found) < len(trace) else trace


class _ShortRun:
    """Replays actions in order."""

    def __init__(self, model: Model, prop: Property) -> None:
        self._fire: dict[int, Callable[[State], State | None]] = {id(action): action.bind() for action in model.actions}
        self._constraint = [term.bind() for term in model.constraint]
        self._holds = prop.bind()

    def from_prefix(self, prefix: Trace, actions: Sequence[Action]) -> Trace | None:
        """The run that goes on from `prefix` with these actions up to the first violation; `None` if there is none."""
        steps, state = list(prefix), prefix[-1].state
        if not self._holds(state):
            return prefix
        for action in actions:
            successor = self._fire[id(action)](state)
            if successor is None or not all(within(successor) for within in self._constraint):
                return None
            steps.append(TraceStep(action, successor))
            if not self._holds(successor):
                return tuple(steps)
            state = successor
        return None
