"""Runs that cover the behaviour of the broker under test within small bounds: each event, each pair of consecutive events.

The whole graph of model `kafka` is explored within each of the bounds. The shortest run to each goal is found, for all goals
at once; a goal that another run meets on its way needs none of its own.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from kspec.conformance.world.choice.goals import Events
from kspec.conformance.world.replay.not_replayed import is_replayed
from kspec.conformance.world.runs.run import WorldRun, model_for, walk
from kspec.model_check.core.exploration import TraceStep
from kspec.model_check.core.model import Model
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.search.ways import Ways, covering

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
"""Bounds of the graphs that are searched for goals: without a clock, unless the ISR is to shrink."""

MOST_PLACES = 400_000
"""The limit of places (states with the event before them) within one of the bounds."""

WALK_DEPTH = 25
WALK_BOUNDS: dict[str, Any] = {"elections": 2, "values": 2, "fencings": 1, **NO_CLOCK}

Goal = tuple[str, ...]
"""An event (kind and outcome), or two kinds of events that follow each other; with the bounds in front."""


class CoveringRun(NamedTuple):
    """A run, and the goals that no run before it meets."""

    run: WorldRun
    goals: tuple[Goal, ...]


class _Place(NamedTuple):
    state: int
    last: str


def covering_runs(kafka: str, bounds: Iterable[dict[str, Any]] = BOUNDS) -> Iterator[CoveringRun]:
    """Runs that meet all goals within each of the bounds, those of one of the bounds together, the longest first."""
    for number, given in enumerate(bounds, start=1):
        yield from _covering(model_for(kafka, given), f"cover-{number}")


def filled_up(kafka: str, chosen: list[CoveringRun], count: int) -> list[CoveringRun]:
    """The runs with walks of the simulator behind them, so that there are this many."""
    model = model_for(kafka, WALK_BOUNDS)
    walked = [CoveringRun(walk(model, 1, number, WALK_DEPTH, f"walk-{number}"), ()) for number in range(count - len(chosen))]
    return [*chosen, *walked]


def _covering(model: Model, name: str) -> Iterator[CoveringRun]:
    graph = state_graph(model)
    ways, first = _ways(graph, model)
    runs = [(goal, [*ways.to(last.before), last]) for goal, last in first.items()]
    longest_first = sorted(runs, key=lambda run: (-len(run[1]), run[0]))
    for number, (steps, new) in enumerate(covering(longest_first, _met)):
        yield CoveringRun(_run(graph, model, f"{name}-{number}", steps), tuple(new))


class _CoveringStep(NamedTuple):
    before: _Place
    action: int
    event: tuple[str, str] | None
    after: _Place


def _ways(graph: StateGraph, model: Model) -> tuple[Ways[_Place, _CoveringStep], dict[Goal, _CoveringStep]]:
    """A shortest way to each place, and the first step that meets each goal."""
    events = Events(model, REAL)
    transitions = graph.transitions
    state = cache(graph.state)
    replayed = [is_replayed(action, REAL) for action in model.actions]
    event_of: Callable[[int, int, int], tuple[str, str] | None] = cache(
        lambda action, source, target: events.of(action, state(source), state(target))
    )
    ways = Ways[_Place, _CoveringStep](_Place(0, ""))
    first: dict[Goal, _CoveringStep] = {}
    for place in ways.places():
        if len(ways) >= MOST_PLACES:
            break
        for edge in range(int(transitions.first[place.state]), int(transitions.first[place.state + 1])):
            action, target = int(transitions.action[edge]), int(transitions.target[edge])
            if not replayed[action]:
                continue
            event = event_of(action, place.state, target)
            after = _Place(target, place.last if event is None else event[0])
            step = _CoveringStep(place, action, event, after)
            for goal in _goals(step):
                first.setdefault(goal, step)
            ways.reach(place, step, after)
    return ways, first


def _goals(step: _CoveringStep) -> list[Goal]:
    if step.event is None:
        return []
    return [("event", *step.event), ("pair", step.before.last, step.event[0])]


def _met(steps: list[_CoveringStep]) -> set[Goal]:
    return {goal for step in steps for goal in _goals(step)}


def _run(graph: StateGraph, model: Model, name: str, steps: list[_CoveringStep]) -> WorldRun:
    trace = [TraceStep(None, model.initial)]
    trace += [TraceStep(model.actions[step.action], graph.state(step.after.state)) for step in steps]
    return WorldRun(name, model, tuple(trace), REAL)


def some_of(runs: list[CoveringRun], count: int) -> list[CoveringRun]:
    """This many of the runs, from all bounds in turn, in an order that is always the same."""
    by_bounds: dict[str, list[CoveringRun]] = {}
    for one in runs:
        by_bounds.setdefault(one.run.name.rpartition("-")[0], []).append(one)
    turns = max(map(len, by_bounds.values()), default=0)
    in_turn = [group[turn] for turn in range(turns) for group in by_bounds.values() if turn < len(group)]
    return in_turn[:count]
