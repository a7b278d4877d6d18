"""Shrinking: from a run that violates a property to a short one that violates the same.

First actions are dropped, in ranges and one by one, as long as what is left can still be taken in its order and still
ends in a violation (delta debugging). Then a bounded breadth-first search looks for a shorter run that takes the
remaining actions only, in any order.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from model_check.core.exploration import Limits, Trace, TraceStep
from model_check.core.model import Action, Model, Property, State
from model_check.engines.reference import explore

LONGEST_RANGE = 64
"""At the end, no range of up to this many consecutive actions can be dropped."""

SEARCH_STATES = 20_000
"""How many states the search visits at most."""


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
    replay = _Replay(model, prop)
    size = len(trace) // 2
    while size > 1:
        trace = _drop_ranges(replay, trace, size)
        size //= 2
    while True:
        before = len(trace)
        for size in range(1, min(LONGEST_RANGE, len(trace) - 1) + 1):
            trace = _drop_ranges(replay, trace, size)
        if len(trace) == before:
            return trace


def search(model: Model, prop: Property, trace: Trace, states: int) -> Trace:
    """The shortest run that violates `prop` with actions of `trace`, if found within this many states; else `trace`."""
    used = {id(step.action) for step in trace}
    restricted = replace(model, actions=[action for action in model.actions if id(action) in used])
    found = explore(restricted, [prop], Limits(max_states=states)).verdicts[0].trace
    return found if found is not None and len(found) < len(trace) else trace


def _drop_ranges(replay: "_Replay", trace: Trace, size: int) -> Trace:
    """Try once to drop each range of `size` actions, from the last one to the first."""
    begin = len(trace) - size
    while begin >= 1:
        if begin + size <= len(trace):
            shorter = replay.from_prefix(trace[:begin], [step.action for step in trace[begin + size :] if step.action])
            trace = shorter or trace
        begin -= 1
    return trace


class _Replay:
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
