"""Random walks: compiled ones take the steps of the plain ones; what they find is shrunk to a run that can be read."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import Model, then, when
from kspec.model_check.engines.reference import explore
from kspec.model_check.engines.simulation import simulate as simulation
from kspec.model_check.engines.simulation.generator import Stream
from kspec.model_check.engines.simulation.shrink import LONGEST_RANGE, drop_actions, shrink
from kspec.model_check.engines.simulation.simulate import WalkPlan, compiled_walks, simulate
from kspec.model_check.engines.simulation.walks import End, walks
from kspec.model_check.models import MODELS
from kspec.model_check.reports.simulation import violations
from tests.model_check.engines.comparison import assert_replays
from tests.model_check.engines.compiled.test_parts import counters, views_of_counters

CASES: list[tuple[str, dict[str, Any]]] = [
    ("kip-320", {"replicas": 2}),
    ("truncate-to-hw", {"replicas": 2, "power_losses": 1}),
    ("kip-101", {"replicas": 2, "restarts": 1, "acks": "all"}),
    ("async-isr", {"replicas": 3}),
]


def assert_same_walks(model: Model, plan: WalkPlan, workers: int = 1) -> None:
    plain = walks(model, model.properties, plan.seed, range(plan.traces), plan.depth, plan.weights)
    assert compiled_walks(model, model.properties, plan, workers) == list(plain)


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_compiled_walks_are_the_plain_ones(name: str, parameters: dict[str, Any]) -> None:
    model = MODELS[name].build(parameters)
    weights = {model.action_names[0]: 5, model.action_names[1]: 0}
    assert_same_walks(model, WalkPlan(seed=1, traces=60, depth=30), workers=2)
    assert_same_walks(model, WalkPlan(seed=2, traces=60, depth=30, weights=weights))


@given(seed=st.integers(0, (1 << 64) - 1), depth=st.integers(1, 20))
@settings(max_examples=20, deadline=None)
def test_any_seed_and_depth(seed: int, depth: int) -> None:
    assert_same_walks(views_of_counters(3, 3), WalkPlan(seed, 20, depth))


@pytest.mark.parametrize("walkers", [1, 7])
def test_however_many_walk_at_a_time(walkers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "WALKERS", walkers)
    assert_same_walks(MODELS["kip-101"].build({"replicas": 2}), WalkPlan(seed=3, traces=40, depth=25))


def test_more_values_than_the_layout_holds_at_first() -> None:
    model = Model("tree", {})
    slot = model.slot("node", 1)
    for child in range(2):
        model.action("descend", {"child": child}, [], [then(slot, lambda value, child=child: 2 * value + child, slot)])
    assert_same_walks(model, WalkPlan(seed=5, traces=4000, depth=20))


def test_what_is_reported_does_not_depend_on_workers() -> None:
    model = MODELS["truncate-to-hw"].build({"replicas": 2})
    plan = WalkPlan(seed=4, traces=3000, depth=40)
    one, two = (simulate(model, model.properties, plan, workers) for workers in (1, 2))
    assert one.actions == two.actions
    assert one.lengths.tolist() == two.lengths.tolist()
    assert one.ends == two.ends
    assert [(f.walks, f.walk, f.trace) for f in one.findings] == [(f.walks, f.walk, f.trace) for f in two.findings]


def test_numbers_are_those_of_the_walks() -> None:
    model = MODELS["kip-101"].build({"replicas": 2})
    plan = WalkPlan(seed=6, traces=400, depth=30)
    taken = compiled_walks(model, model.properties, plan, 1)
    result = simulate(model, model.properties, plan, 1)
    assert result.walks == 400
    assert result.steps == sum(len(walk.actions) for walk in taken) == sum(result.actions.values())
    assert result.ends == {end: sum(walk.end == end for walk in taken) for end in End}
    for number, finding in enumerate(result.findings):
        members = [walk.violated if finding.prop.kind == "always" else walk.reached for walk in taken]
        assert finding.walks == sum(number in decided for decided in members)


def test_a_run_that_is_found_is_shrunk_to_nearly_the_shortest() -> None:
    model = MODELS["truncate-to-hw"].build({"replicas": 2})
    prop = next(prop for prop in model.properties if prop.name == "WeakIsr")
    shortest = explore(model, [prop], Limits()).verdicts[0].trace
    result = simulate(model, [prop], WalkPlan(seed=1, traces=3000, depth=60))
    (violation,) = violations(result)
    assert shortest is not None
    assert len(shortest) <= len(violation.trace) <= len(shortest) + 2
    assert len(violation.trace) <= len(violation.original)
    assert_replays(model, violation.trace)
    assert not prop.bind()(violation.trace[-1].state)


def test_no_single_action_can_be_dropped_from_a_shrunk_run() -> None:
    model = counters(3, 4)
    model.always("low", [when(lambda first, second: first + second < 6, *model.slots[:2])], "the first two are low", None)
    result = simulate(model, model.properties, WalkPlan(seed=1, traces=50, depth=60))
    trace = result.findings[0].trace
    assert trace is not None
    dropped = drop_actions(model, model.properties[0], trace)
    assert len(dropped) == 7
    assert {str(step.action.args) for step in dropped if step.action} == {"{'counter': 0}", "{'counter': 1}"}
    assert shrink(model, model.properties[0], trace).trace == dropped
    assert LONGEST_RANGE > 1


def test_a_violation_at_the_start_ends_every_walk() -> None:
    model = counters(1, 2)
    model.always("never", [when(lambda value: value > 0, model.slots[0])], "false at the start", None)
    result = simulate(model, model.properties, WalkPlan(seed=1, traces=10, depth=5))
    assert (result.steps, result.ends[End.VIOLATED], result.findings[0].walks) == (0, 10, 10)


def test_a_rule_that_raises_is_seen() -> None:
    model = counters(1, 5)
    slot = model.slots[0]
    model.action("divide", {}, [], [then(slot, lambda value: 1 // (2 - value), slot)])
    with pytest.raises(ZeroDivisionError):
        simulate(model, [], WalkPlan(seed=1, traces=50, depth=10))


def test_the_generator_is_splitmix64() -> None:
    """Its first numbers from state 0, as published with the algorithm."""
    stream, published = Stream(0, 0), (0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F)
    assert stream.state == 0
    assert [stream.below(1 << 31) for _ in published] == [number >> 33 for number in published]
