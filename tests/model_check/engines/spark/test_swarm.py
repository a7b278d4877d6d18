"""Walks and hunts spread over Spark: what they find is what the same seed, or name, finds without it."""

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="engine spark is not installed: .venv/bin/pip install -e '.[spark]'")

from kspec.model_check.engines.simulation.simulate import Simulation, WalkPlan, simulate
from kspec.model_check.engines.spark import swarm
from kspec.model_check.models import MODELS
from kspec.model_check.reports import mutants, mutants_on_spark
from tests.model_check.commands import Command
from tests.model_check.engines.spark.in_process import Context


def outcome_of(simulation: Simulation) -> dict[str, Any]:
    """Everything but the time, and how many took part."""
    return {
        "taken": simulation.taken.tolist(),
        "lengths": simulation.lengths.tolist(),
        "ends": simulation.ends,
        "findings": [(found.prop.name, found.walks, found.walk, found.steps, found.trace) for found in simulation.findings],
    }


@pytest.mark.parametrize("tasks", [1, 3, 1000])
def test_walks_do_not_depend_on_how_they_are_spread(tasks: int) -> None:
    model = MODELS["kip-101"].build({"replicas": 2})
    plan = WalkPlan(seed=8, traces=300, depth=40, weights={model.action_names[0]: 3})
    if tasks > plan.traces:
        plan = plan._replace(traces=7)
    spread = swarm.simulate_on(Context(), model, model.properties, plan, tasks)
    assert spread.workers == min(tasks, plan.traces)
    assert outcome_of(spread) == outcome_of(simulate(model, model.properties, plan, workers=1))
    assert spread.walks == plan.traces
    assert any(finding.trace for finding in spread.findings)


def test_walks_can_begin_anywhere() -> None:
    model = MODELS["async-isr"].build({"replicas": 2})
    parts = [simulate(model, [], WalkPlan(5, traces, 20, first=first), workers=1) for first, traces in ((0, 30), (30, 50))]
    together = simulate(model, [], WalkPlan(5, 80, 20), workers=1)
    assert np.array_equal(sum(part.taken for part in parts), together.taken)
    assert np.array_equal(sum(part.lengths for part in parts), together.lengths)


@pytest.mark.slow
def test_hunts_come_to_the_same_end() -> None:
    names = ("await-isr-only", "stale-partition-epoch-accepted")
    spread, alone = mutants_on_spark.hunts_on(Context(), names), list(mutants.hunts(names))
    assert [entry._replace(seconds=0.0) for entry in spread] == [entry._replace(seconds=0.0) for entry in alone]
    assert [entry.caught for entry in spread] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "kip-101", "--engine", "spark", "--workers", "2"), "leave --workers out"),
        (("simulate", "kip-101", "--partitions", "2"), "are for engine spark"),
        (("mutants", "--conf", "spark.ui.enabled=false"), "are for engine spark"),
        (("mutants", "--engine", "reference"), "'reference' is not one of"),
    ],
)
def test_what_does_not_go_together_is_told_in_one_line(command: Command, arguments: tuple[str, ...], message: str) -> None:
    done = command(*arguments, "--quiet")
    assert done.mistake == (2, 1)
    assert message in done.stderr


@pytest.mark.slow
def test_spark_takes_the_walks_and_hunts_of_the_command(command: Command, spark: Any) -> None:
    on_spark = ("--engine", "spark", "--master", "local[2]")
    walk = (
        "simulate",
        "kip-101",
        "--replicas",
        "2",
        "--seed",
        "8",
        "--traces",
        "2000",
        "--depth",
        "40",
        "--json",
        "--quiet",
    )
    here, there = json.loads(command(*walk).stdout), json.loads(command(*walk, *on_spark).stdout)
    assert there.pop("workers") == 2
    assert there == {**{name: value for name, value in here.items() if name != "workers"}, "duration_s": there["duration_s"]}
    hunt = ("mutants", "stale-partition-epoch-accepted", "await-isr-only", "--json", "--quiet")
    here, there = json.loads(command(*hunt).stdout), json.loads(command(*hunt, *on_spark).stdout)
    for entry in (*here["mutants"], *there["mutants"]):
        entry.pop("seconds")
    assert here == there
