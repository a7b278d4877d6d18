"""Which runs are replayed: they meet every goal, a weakened rule shows in one, and quick steps are steps."""

from collections import deque

import pytest

from conformance.world.choice.cover import Covering, covering_runs, filled_up, some_of
from conformance.world.choice.goals import Events, is_played
from conformance.world.choice.stepping import Interned, Quick
from conformance.world.choice.walks import as_far_as_played
from conformance.world.choice.weakened import telling_runs
from conformance.world.play.replay import unplayed
from conformance.world.runs.run import Run, model_for, trace_of_moves, walk
from model_check.core.model import Model, State

TWO = {"elections": 1, "brokers": 2, "endless_lag": True}


def reachable(model: Model) -> set[State]:
    fires = [action.bind() for number, action in enumerate(model.actions) if is_played(action, 1)]
    found, queue = {model.initial}, deque([model.initial])
    while queue:
        state = queue.popleft()
        for fire in fires:
            after = fire(state)
            if after is not None and after not in found:
                found.add(after)
                queue.append(after)
    return found


@pytest.fixture(scope="module")
def covering() -> list[Covering]:
    return list(covering_runs("4.4.0", [TWO]))


@pytest.mark.slow
def test_every_event_is_in_a_run(covering: list[Covering]) -> None:
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


def test_each_run_is_one_and_adds_something(covering: list[Covering]) -> None:
    for one in covering:
        assert one.goals
        assert trace_of_moves(one.run.model, one.run.moves)[-1].state == one.run.trace[-1].state
        assert unplayed(one.run) is None
    goals = [goal for one in covering for goal in one.goals]
    assert len(goals) == len(set(goals))


def test_some_of_them_and_more(covering: list[Covering]) -> None:
    assert some_of(covering, 5) == covering[:5]
    more = filled_up("4.4.0", covering, len(covering) + 2)
    assert more[: len(covering)] == covering
    assert [one.run.name for one in more[len(covering) :]] == ["walk-0", "walk-1"]


def test_some_are_from_all_bounds_in_turn(covering: list[Covering]) -> None:
    other = [one._replace(run=one.run._replace(name=f"cover-2-{number}")) for number, one in enumerate(covering)]
    assert [one.run.name for one in some_of([*covering, *other], 3)] == ["cover-1-0", "cover-2-0", "cover-1-1"]


def test_quick_steps_are_steps() -> None:
    model = model_for("4.4.0", TWO)
    quick = Quick(model, Interned())
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


def test_a_walk_goes_as_far_as_it_is_played() -> None:
    model = model_for("4.4.0", {"elections": 0, "clean_shutdowns": 1, "brokers": 2, "min_isr": 1})
    read = ("ReplayMetadata", {"broker": 1, "decisions": 1})
    moves = [("CreatePartition", {"leader": 1}), read, ("StopUnheard", {"broker": 1})]
    run = Run("stops", model, trace_of_moves(model, moves), 1)
    assert unplayed(run) == "a clean stop of the broker under test"
    assert as_far_as_played(run).moves == moves[:2]
    assert as_far_as_played(run._replace(real=2)).moves == moves
