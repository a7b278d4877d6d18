"""Runs that cover what the broker under test can do within small bounds: every event, every pair of consecutive events.

The whole graph of model `kafka` is explored within each of the bounds. The shortest run to each goal is found, for all goals
at once; a goal that another run meets on its way needs none of its own.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from conformance.world.choice.goals import Events
from conformance.world.play.unplayed import is_played
from conformance.world.runs.run import Run, model_for, walk
from model_check.core.exploration import TraceStep
from model_check.core.model import Model
from model_check.graphs.edges import state_graph
from model_check.graphs.graph import StateGraph

REAL = 1
"""The broker of the model that is the real one: brokers are interchangeable, and any may lead first."""

NO_CLOCK = {"endless_lag": True}
REGISTRATIONS = {"slow_registrations": 1, "late_registrations": 1}
BOUNDS: tuple[dict[str, Any], ...] = (
    {"elections": 2, **NO_CLOCK},
    {"elections": 1, "values": 2, "brokers": 2, **NO_CLOCK},
    {"elections": 0, "fencings": 1, **NO_CLOCK},
    {"elections": 1, "fencings": 1, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 2, "values": 2, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 1, "late_fetches": 1, "brokers": 2, **NO_CLOCK},
    {"elections": 2, "late_fetches": 1, "values": 2, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 0, "reassignments": 1, **NO_CLOCK},
    {"elections": 1, "retries": 1, "brokers": 2, **NO_CLOCK},
    {"elections": 0, "unclean_shutdowns": 1, "slow_registrations": 1, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 0, "clean_shutdowns": 1, **REGISTRATIONS, "brokers": 2, "min_isr": 1, **NO_CLOCK},
    {"elections": 1, "acks": "1", "brokers": 2, **NO_CLOCK},
    {"elections": 1, "isr_shrinks": 1, "brokers": 2, "min_isr": 1},
    {"elections": 0, "isr_shrinks": 1, "fencings": 1, "brokers": 2, "min_isr": 1},
)
"""Where goals are looked for: without a clock wherever no shrink of an ISR is wanted."""

MOST_PLACES = 400_000
"""Places (states with the event before them) that are looked at within one of the bounds."""

WALK_DEPTH = 25
WALK_BOUNDS: dict[str, Any] = {"elections": 2, "values": 2, "fencings": 1, **NO_CLOCK}

Goal = tuple[str, ...]
"""An event (kind and outcome), or two kinds of events that follow each other; with the bounds in front."""


class Covering(NamedTuple):
    """A run, and the goals that no run before it meets."""

    run: Run
    goals: tuple[Goal, ...]


class _Place(NamedTuple):
    state: int
    last: str


def covering_runs(kafka: str, bounds: Iterable[dict[str, Any]] = BOUNDS) -> Iterator[Covering]:
    """Runs that meet all goals within each of the bounds, those of one of the bounds together, the longest first."""
    for number, given in enumerate(bounds, start=1):
        yield from _covering(model_for(kafka, given), f"cover-{number}")


def filled_up(kafka: str, chosen: list[Covering], count: int) -> list[Covering]:
    """The runs with walks of the simulator behind them, so that there are this many."""
    model = model_for(kafka, WALK_BOUNDS)
    walked = [Covering(walk(model, 1, number, WALK_DEPTH, f"walk-{number}"), ()) for number in range(count - len(chosen))]
    return [*chosen, *walked]


def _covering(model: Model, name: str) -> Iterator[Covering]:
    graph = state_graph(model)
    ways, first = _ways(graph, model)
    covered: set[Goal] = set()
    number = 0
    by_length = sorted(first.items(), key=lambda item: (-_length(item[1], ways), item[0]))
    for goal, place in by_length:
        if goal in covered:
            continue
        steps = _steps(place, ways)
        met = _met(steps)
        yield Covering(_run(graph, model, f"{name}-{number}", steps), tuple(sorted(met - covered)))
        covered |= met
        number += 1


class _Step(NamedTuple):
    before: _Place
    action: int
    event: tuple[str, str] | None
    after: _Place


Ways = dict[_Place, _Step | None]


def _ways(graph: StateGraph, model: Model) -> tuple[Ways, dict[Goal, _Step]]:
    """A shortest way to each place, and the first step that meets each goal."""
    events = Events(model, REAL)
    transitions = graph.transitions
    state = cache(graph.state)
    played = [is_played(action, REAL) for action in model.actions]
    event_of: Callable[[int, int, int], tuple[str, str] | None] = cache(
        lambda action, source, target: events.of(action, state(source), state(target))
    )
    start = _Place(0, "")
    ways: Ways = {start: None}
    first: dict[Goal, _Step] = {}
    queue = deque([start])
    while queue and len(ways) < MOST_PLACES:
        place = queue.popleft()
        for edge in range(int(transitions.first[place.state]), int(transitions.first[place.state + 1])):
            action, target = int(transitions.action[edge]), int(transitions.target[edge])
            if not played[action]:
                continue
            event = event_of(action, place.state, target)
            after = _Place(target, place.last if event is None else event[0])
            step = _Step(place, action, event, after)
            for goal in _goals(step):
                first.setdefault(goal, step)
            if after not in ways:
                ways[after] = step
                queue.append(after)
    return ways, first


def _goals(step: _Step) -> list[Goal]:
    if step.event is None:
        return []
    return [("event", *step.event), ("pair", step.before.last, step.event[0])]


def _steps(last: _Step, ways: Ways) -> list[_Step]:
    found = [last]
    while (step := ways[found[-1].before]) is not None:
        found.append(step)
    return found[::-1]


def _length(step: _Step, ways: Ways) -> int:
    return len(_steps(step, ways))


def _met(steps: list[_Step]) -> set[Goal]:
    return {goal for step in steps for goal in _goals(step)}


def _run(graph: StateGraph, model: Model, name: str, steps: list[_Step]) -> Run:
    trace = [TraceStep(None, model.initial)]
    trace += [TraceStep(model.actions[step.action], graph.state(step.after.state)) for step in steps]
    return Run(name, model, tuple(trace), REAL)


def some_of(runs: list[Covering], count: int) -> list[Covering]:
    """This many of the runs, from all bounds in turn, in an order that is always the same."""
    by_bounds: dict[str, list[Covering]] = {}
    for one in runs:
        by_bounds.setdefault(one.run.name.rpartition("-")[0], []).append(one)
    turns = max(map(len, by_bounds.values()), default=0)
    in_turn = [group[turn] for turn in range(turns) for group in by_bounds.values() if turn < len(group)]
    return in_turn[:count]
