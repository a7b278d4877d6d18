"""Engines give what an independent search gives, or refuse: on models drawn at random, and on what led them astray."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.model import Model, ModelError, then, when
from kspec.model_check.engines import compiled, reference
from kspec.model_check.engines.simulation.simulate import WalkPlan, compiled_walks
from kspec.model_check.engines.simulation.walks import walks
from kspec.model_check.graphs.edges import state_graph
from tests.limits.marks import is_night
from tests.model_check.engines.plain import Alike, Like, Plain, PlainRefusedError, UndefinedError, models, search

EVERYTHING = Limits(stop_at_first=False)
Explore = Callable[[Model], Exploration]


def by_reference(model: Model) -> Exploration:
    return reference.explore(model, model.properties, EVERYTHING)


def by_compiled(model: Model) -> Exploration:
    return compiled.explore(model, model.properties, EVERYTHING, 2)


def by_spark(driver_states: int) -> Explore:
    def explore(model: Model) -> Exploration:
        pytest.importorskip("pyspark", reason="engine spark is not installed: .venv/bin/pip install -e '.[spark]'")
        from kspec.model_check.engines.spark import engine  # noqa: PLC0415 (an extra)
        from kspec.model_check.engines.spark.session import SparkSettings  # noqa: PLC0415
        from tests.model_check.engines.spark.in_process import Context  # noqa: PLC0415

        chosen, context = SparkSettings(partitions=2, driver_states=driver_states), Context()
        with engine.states_folder(chosen, context) as folder:
            return engine.SparkSearch(model, model.properties, EVERYTHING, chosen, None, context, folder).run()

    return explore


ENGINES = {"reference": by_reference, "compiled": by_compiled, "spark": by_spark(0), "spark, driver": by_spark(100)}


def outcome(what: Callable[[], Any]) -> Any:
    """The finding, or the error's class."""
    try:
        return what()
    except (UndefinedError, ModelError, PlainRefusedError) as error:
        return type(error)


def as_plain(found: Exploration) -> Plain:
    verdicts = {
        verdict.prop.name: (verdict.holds is True, len(verdict.trace) if verdict.trace else None)
        for verdict in found.verdicts
    }
    return Plain(found.levels, found.actions, found.deadlocks, verdicts, False)


def assert_truth(model: Model, found: Any, expected: Any) -> None:
    """`expected` is the search's outcome. What an engine tries in vain may make it refuse a model that mixes types."""
    if isinstance(expected, Plain):
        refused = found is ModelError and model.parameters["mixed"]
        if not refused and not (expected.open and found is UndefinedError):
            assert found == expected._replace(open=False)
    else:
        assert found in (UndefinedError, ModelError)


def found_by(engine: str, model: Model) -> Any:
    return outcome(lambda: as_plain(ENGINES[engine](model)))


@pytest.mark.parametrize("engine", ENGINES)
@given(model=models())
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
def test_engines_find_what_a_plain_search_finds(engine: str, model: Model) -> None:
    assert_truth(model, found_by(engine, model), outcome(lambda: search(model)))


@pytest.mark.nightly
@pytest.mark.parametrize("engine", ENGINES)
@given(model=models())
@settings(max_examples=300, suppress_health_check=list(HealthCheck))
def test_all_engines_find_what_a_plain_search_finds(engine: str, model: Model) -> None:
    assert_truth(model, found_by(engine, model), outcome(lambda: search(model)))


@pytest.mark.slow
@given(model=models())
@settings(max_examples=150 if is_night() else 60, suppress_health_check=list(HealthCheck))
def test_graphs_and_walks_are_those_of_the_same_model(model: Model) -> None:
    model.properties.clear()
    expected = outcome(lambda: search(model))
    graph = outcome(lambda: state_graph(model, 1))
    if isinstance(expected, Plain) and graph is not ModelError:
        assert (graph.levels, len(graph.transitions)) == (expected.levels, sum(expected.actions.values()))
    else:
        assert graph in (UndefinedError, ModelError)
    plan = WalkPlan(seed=1, traces=20, depth=10)
    plain = outcome(lambda: list(walks(model, [], plan.seed, range(plan.traces), plan.depth, plan.weights)))
    walked = outcome(lambda: compiled_walks(model, [], plan, 1))
    if isinstance(plain, list):
        assert walked == plain or walked is ModelError
    else:
        assert walked in (UndefinedError, ModelError), "which of two refusals comes first is open"


# ---- what led engines astray, one by one


def toy(second: Any, first: Any = 1) -> Model:
    """One slot goes from the first value to the second one; the other slot counts along."""
    model = Model("toy", {})
    slot, turns = model.slot("x", first, holds=object), model.slot("turns", 0)
    model.action(
        "Turn", {}, [when(lambda turns: turns < 2, turns)], [then((slot, turns), lambda turns: (second, turns + 1), turns)]
    )
    return model


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("first", "second", "named"),
    [
        (1, True, "1 (int) and True (bool)"),
        (1, 1.0, "1 (int) and 1.0 (float)"),
        (0.0, -0.0, "0.0 (builtins.float) and -0.0 (builtins.float)"),
        ((1, 2), (True, 2), "1 (int) and True (bool) (in (1, 2) and (True, 2))"),
        (frozenset({1}), frozenset({True}), "1 (int) and True (bool) (in frozenset({1}) and frozenset({True}))"),
        (Like(1), Alike(1), "Like(number=1) (Like) and Alike(number=1) (Alike)"),
    ],
)
def test_equal_values_of_different_types_are_refused(engine: str, first: Any, second: Any, named: str) -> None:
    with pytest.raises(ModelError) as refused:
        ENGINES[engine](toy(second, first))
    assert str(refused.value).startswith(f"model toy: slot x holds {named}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("value", "named"),
    [
        (lambda turns: [1], "slot turns holds [1] (list), which is not hashable"),
        (lambda turns: (turn for turn in range(turns)), "slot turns holds <generator object"),
        (lambda turns: (float("nan"),), "slot turns holds nan, which is not equal to itself"),
    ],
)
def test_values_that_no_slot_can_hold_are_refused(engine: str, value: Callable[[int], Any], named: str) -> None:
    model = toy(1)
    turns = model.slots[1]
    model.action("Odd", {}, [when(lambda turns: turns == 1, turns)], [then(turns, value, turns)])
    with pytest.raises(ModelError) as refused:
        ENGINES[engine](model)
    assert str(refused.value).startswith(f"model toy: {named}")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("effect", "named"),
    [
        (lambda turns: (value for value in (1, turns + 1)), "gives a generator"),
        (lambda turns: [1, turns + 1], "gives a list"),
        (lambda turns: (1, turns + 1, 3), "gives a tuple of 3"),
        (lambda turns: None, "gives a NoneType"),
    ],
)
def test_an_effect_on_several_slots_gives_a_tuple(engine: str, effect: Callable[[int], Any], named: str) -> None:
    model = toy(1)
    first, turns = model.slots
    model.action("Odd", {"n": 1}, [when(lambda turns: turns == 1, turns)], [then((first, turns), effect, turns)])
    with pytest.raises(ModelError) as refused:
        ENGINES[engine](model)
    wanted = "it must give a tuple of 2 values, one for each slot"
    assert str(refused.value) == f"action Odd(n=1): its effect on x, turns {named}; {wanted}"


def partial_view(guarded: bool) -> Model:
    """A view that is not defined at 2, read by a guard, an effect and a property."""
    model = Model("partial", {})
    slot = model.slot("x", 0)
    inverse = model.view("inverse", lambda x: 6 // (2 - x), slot)
    below = [when(lambda x: x < 2, slot)] if guarded else []
    holds = when(lambda inverse: inverse > 0, inverse)
    model.action("Step", {}, [holds, *below], [then(slot, lambda x, inverse: x + min(inverse, 1), slot, inverse)])
    model.action("Back", {}, [when(lambda x: x == 2, slot)], [then(slot, lambda x: 0, slot)])
    return model


@pytest.mark.parametrize("engine", ENGINES)
def test_a_view_need_not_be_defined_where_nobody_asks_for_it(engine: str) -> None:
    found = ENGINES[engine](partial_view(guarded=True))
    assert (found.levels, found.actions) == ([1, 1, 1], {"Step": 2, "Back": 1})
    with pytest.raises(ZeroDivisionError):
        ENGINES[engine](partial_view(guarded=False))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_term_that_is_not_asked_may_raise(engine: str) -> None:
    model = partial_view(guarded=True)
    (slot,), (inverse,) = model.slots, model.views
    defined = when(lambda x: x < 2, slot)
    positive = when(lambda inverse: inverse > 0, inverse)
    model.always("Below", [defined, positive], "…", None)
    (verdict,) = ENGINES[engine](model).verdicts
    assert (verdict.holds, len(verdict.trace or ())) == (False, 3)
    model.properties.clear()
    model.always("Below", [positive, defined], "…", None)
    with pytest.raises(ZeroDivisionError):
        ENGINES[engine](model)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_bound_that_raises_ends_the_search(engine: str) -> None:
    model = partial_view(guarded=True)
    model.constraint.append(when(lambda x: 6 // (2 - x) > 0, *model.slots))
    with pytest.raises(ZeroDivisionError):
        ENGINES[engine](model)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rule_may_raise_what_ends_iterators(engine: str) -> None:
    model = toy(1)
    turns = model.slots[1]
    model.action(
        "Next", {}, [when(lambda turns: next(iter(range(turns))) == 0, turns)], [then(turns, lambda turns: 0, turns)]
    )
    with pytest.raises(StopIteration):
        ENGINES[engine](model)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_view_may_give_equal_values_of_different_types(engine: str) -> None:
    model = toy(1)
    turns = model.slots[1]
    view = model.view("kind", lambda turns: True if turns == 1 else 1, turns)
    model.sometimes("True", [when(lambda kind: kind is True, view)], "…")
    (verdict,) = ENGINES[engine](model).verdicts
    assert (verdict.holds, len(verdict.trace or ())) == (True, 2)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_view_gives_no_generator(engine: str) -> None:
    model = toy(1)
    turns = model.slots[1]
    view = model.view("turns", lambda turns: (turn for turn in range(turns)), turns)
    model.always("Empty", [when(lambda turns: not list(turns), view)], "…", None)
    with pytest.raises(ModelError, match="view turns"):
        ENGINES[engine](model)
