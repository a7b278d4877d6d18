"""Choice of the runs that are replayed: they meet every goal, a weakened rule shows in one, and quick steps are steps."""

from collections import deque

import pytest

from kspec.conformance.world.choice.cover import BOUNDS, REGISTRATIONS, CoveringRun, covering_runs, filled_up, some_of
from kspec.conformance.world.choice.goals import Events
from kspec.conformance.world.choice.stepping import Quick, ValueNumbers
from kspec.conformance.world.choice.walks import as_far_as_replayed
from kspec.conformance.world.choice.weakened import telling_runs
from kspec.conformance.world.replay.not_replayed import asks_at_next_stop, is_replayed, not_replayed
from kspec.conformance.world.runs.run import Move, WorldRun, model_for, trace_of_moves, walk
from kspec.model_check.core.model import Model, State
from tests.limits.turns import Turns

TWO = {"elections": 1, "brokers": 2, "endless_lag": True}


def reachable(model: Model) -> set[State]:
    fires = [action.bind() for number, action in enumerate(model.actions) if is_replayed(action, 1)]
    found, queue = {model.initial}, deque([model.initial])
    turns = Turns()
    while queue:
        turns.go()
        state = queue.popleft()
        for fire in fires:
            after = fire(state)
            if after is not None and after not in found:
                found.add(after)
                queue.append(after)
    return found


@pytest.fixture(scope="module")
def covering() -> list[CoveringRun]:
    return list(covering_runs("4.4.0", [TWO]))


@pytest.mark.slow
def test_every_event_is_in_a_run(covering: list[CoveringRun]) -> None:
    model = model_for("4.4.0", TWO)
    events = Events(model, 1)
    possible = set()
    for state in reachable(model):
        for number, action in enumerate(model.actions):
            after = action.bind()(state)
            if after is not None and (event := events.of(number, state, after)):
                possible.add(("event", *event))
    met = {goal for one in covering for goal in one.goals if goal[0] == "event"}
    assert met == possible
    assert len(met) > 20


def test_each_run_is_one_and_adds_something(covering: list[CoveringRun]) -> None:
    for one in covering:
        assert one.goals
        assert trace_of_moves(one.run.model, one.run.moves)[-1].state == one.run.trace[-1].state
        assert not_replayed(one.run) is None
    goals = [goal for one in covering for goal in one.goals]
    assert len(goals) == len(set(goals))


def test_some_of_them_and_more(covering: list[CoveringRun]) -> None:
    assert some_of(covering, 5) == covering[:5]
    more = filled_up("4.4.0", covering, len(covering) + 2)
    assert more[: len(covering)] == covering
    assert [one.run.name for one in more[len(covering) :]] == ["walk-0", "walk-1"]


def test_some_are_from_all_bounds_in_turn(covering: list[CoveringRun]) -> None:
    other = [one._replace(run=one.run._replace(name=f"cover-2-{number}")) for number, one in enumerate(covering)]
    assert [one.run.name for one in some_of([*covering, *other], 3)] == ["cover-1-0", "cover-2-0", "cover-1-1"]


def test_quick_steps_are_steps() -> None:
    model = model_for("4.4.0", TWO)
    quick = Quick(model, ValueNumbers())
    for number in range(5):
        state = model.initial
        packed = quick.initial
        for name, args in walk(model, 1, number, 12, "").moves:
            for place, action in enumerate(model.actions):
                after, quickly = action.bind()(state), quick.fire(place, packed)
                assert (None if quickly is None else quick.state(quickly)) == after
            chosen = next(
                place for place, action in enumerate(model.actions) if (action.name, dict(action.args)) == (name, args)
            )
            following = quick.fire(chosen, packed)
            assert following is not None
            packed, state = following, quick.state(following)


@pytest.mark.slow
def test_a_weakened_rule_shows_at_the_end_of_its_run() -> None:
    (one,) = telling_runs(
        "4.4.0", ["count-diverging-fetch"], [{"brokers": 2, "elections": 1, "values": 2, "endless_lag": True}]
    )
    assert one.run is not None
    strong = model_for("4.4.0", {**one.run.model.parameters, "mutant": None})
    trace = trace_of_moves(strong, one.run.moves)
    assert trace[-1].state != one.run.trace[-1].state


READ = ("ReplayMetadata", {"broker": 1, "decisions": 1})
STOPS = model_for("4.4.0", {"elections": 0, "clean_shutdowns": 1, "slow_registrations": 1, "brokers": 2, "min_isr": 1})


def run_of(*moves: Move) -> WorldRun:
    return WorldRun("stops", STOPS, trace_of_moves(STOPS, moves), 1)


def test_a_walk_goes_as_far_as_it_is_replayed() -> None:
    create, begin = ("CreatePartition", {"leader": 1}), ("BeginShutdown", {"broker": 1, "successor": 2})
    run = run_of(create, READ, begin, ("StopWithoutLeave", {"broker": 1}))
    assert not_replayed(run) == "a clean stop after five minutes without leave, which no setting shortens"
    assert as_far_as_replayed(run).moves == run.moves[:3]
    assert as_far_as_replayed(run._replace(real=2)).moves == run.moves


def test_whether_the_broker_asks_before_it_stops_is_known_before_it_starts() -> None:
    create, heard, unheard = (
        ("CreatePartition", {"leader": 1}),
        ("BeginShutdown", {"broker": 1, "successor": 2}),
        ("StopUnheard", {"broker": 1}),
    )
    assert [asks_at_next_stop(run_of(create, READ, *more)) for more in ((), (heard,), (unheard,))] == [None, True, False]
    stopped = run_of(create, READ, unheard)
    assert asks_at_next_stop(stopped, after=3) is None
    assert asks_at_next_stop(stopped._replace(real=2)) is None


@pytest.mark.slow
def test_covering_runs_have_each_way_to_stop_and_to_come_back() -> None:
    bounds = {"elections": 0, "clean_shutdowns": 1, **REGISTRATIONS, "brokers": 2, "min_isr": 1, "endless_lag": True}
    runs = [one.run for one in covering_runs("4.4.0", [bounds])]
    assert [not_replayed(run) for run in runs] == [None] * len(runs)
    played = {name for run in runs for name, args in run.moves if args.get("broker") == 1}
    stops, starts = {"BeginShutdown", "StopAtOnce", "StopCleanly", "StopUnheard"}, {"Register", "Start", "RegisterStarted"}
    assert played >= stops | starts | {"RegisterAgain", "TakeFirstImage", "Unfence"}
    assert bounds in BOUNDS
