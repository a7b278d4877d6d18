"""Questions asked of the tables that an exploration on Spark writes, and traces chosen from them."""

import json
import re
from collections import Counter, deque
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.places import DOCS

pytest.importorskip("pyspark", reason="engine spark is not installed: .venv/bin/pip install -e '.[spark]'")

import itf_py
import pyarrow.parquet

from kspec.model_check.core.exploration import Exploration, Limits, Trace
from kspec.model_check.core.model import Model, State
from kspec.model_check.engines.spark import engine
from kspec.model_check.engines.spark.session import SparkError, SparkSettings
from kspec.model_check.models import MODELS
from kspec.model_check.reports.coverage import covering_traces, model_of, mutants_of
from tests.limits.turns import Turns
from tests.model_check.commands import Command
from tests.model_check.engines.spark.in_process import Context
from tests.model_check.toy import counters

pytestmark = pytest.mark.slow
MODEL = MODELS["kip-320"].build({"replicas": 2, "log_size": 1, "max_records": 1, "max_epoch": 1})
EVERYTHING = Limits(stop_at_first=False)
PAGE = DOCS / "spark.md"


def reachable(model: Model) -> Iterator[State]:
    """Every reachable state, by the model's own functions alone."""
    seen, queue = {model.initial}, deque([model.initial])
    turns = Turns()
    while queue:
        turns.go()
        state = queue.popleft()
        yield state
        for action in model.actions:
            successor = action.bind()(state)
            if successor is not None and successor not in seen:
                seen.add(successor)
                queue.append(successor)


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Exploration]:
    """Tables, written without Spark."""
    folder = tmp_path_factory.mktemp("tables")
    settings, context = SparkSettings(partitions=2, tables=str(folder)), Context()
    with engine.states_folder(settings, context) as states:
        limits = Limits(stop_at_first=False)
        return folder, engine.SparkSearch(MODEL, MODEL.properties, limits, settings, None, context, states).run()


def test_questions_of_the_documentation_have_answers(spark: Any, explored: tuple[Path, Exploration]) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    folder, found = explored
    session = SparkSession(spark)
    for name in ("states", "transitions", "verdicts"):
        session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    questions = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.S)
    assert len(questions) == 4
    answers = [session.sql(question).collect() for question in questions]
    assert answers[0]
    assert {row.action: row.times for row in answers[1]} == {name: times for name, times in found.actions.items() if times}


@pytest.mark.parametrize("goals", ["pairs", "properties"])
def test_chosen_traces_cover_every_goal(
    spark: Any, command: Command, explored: tuple[Path, Exploration], tmp_path: Path, goals: str
) -> None:
    from pyspark.sql import SparkSession, functions  # noqa: PLC0415

    folder, found = explored
    chosen = covering_traces(spark, str(folder), goals)
    for covering in chosen:
        assert covering.trace[0].state == MODEL.initial
        for before, step in pairwise(covering.trace):
            assert step.action is not None
            same = [a for a in MODEL.actions if (a.name, a.args) == (step.action.name, step.action.args)]
            assert step.state in [action.bind()(before.state) for action in same]
    if goals == "properties":
        decided = {v.prop.name: len(v.trace or ()) for v in found.verdicts if v.holds is (v.prop.kind == "sometimes")}
        assert {name: len(covering.trace) for covering in chosen for name in covering.goals} == decided
    else:
        transitions = SparkSession(spark).read.parquet(f"{folder}/transitions")
        first, second = transitions.alias("a"), transitions.alias("b")
        pairs = (
            first.join(second, functions.col("a.target") == functions.col("b.source"))
            .select("a.action", "b.action")
            .distinct()
            .collect()
        )
        taken = {
            (before.action.name, after.action.name)
            for covering in chosen
            for before, after in pairwise(covering.trace)
            if before.action and after.action
        }
        assert taken == {tuple(pair) for pair in pairs}
    done = command("cover", str(folder), "--goals", goals, "--out", str(tmp_path), "--quiet")
    assert done.status == 0, done.stderr
    files = sorted(tmp_path.iterdir())
    assert len(files) == len(chosen)
    assert json.loads(files[0].read_text())["#meta"]["description"].startswith("kip-320: covers")
    itf_py.trace_from_json(json.loads(files[0].read_text()))


@pytest.fixture(scope="module")
def answered(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Model, Exploration]:
    """Tables of a model in which parties answer with errors."""
    folder = tmp_path_factory.mktemp("answers")
    model = MODELS["kafka"].build({"release": "next", "brokers": 2, "min_isr": 1, "elections": 1, "isr_shrinks": 1})
    settings, context = SparkSettings(partitions=2, tables=str(folder)), Context()
    with engine.states_folder(settings, context) as states:
        return folder, model, engine.SparkSearch(model, [], EVERYTHING, settings, None, context, states).run()


def test_errors_are_those_that_rules_answer_with(answered: tuple[Path, Model, Exploration]) -> None:
    folder, model, _ = answered
    rows = pyarrow.parquet.read_table(folder / "transitions").to_pylist()
    counted = Counter((row["action"], row["error"]) for row in rows)
    known: Counter[tuple[str, str | None]] = Counter()
    for state in reachable(model):
        for action in model.actions:
            if action.bind()(state) is not None:
                known[action.name, action.answer.bind()(state).name if action.answer else None] += 1
    assert counted == known
    assert {error for _, error in counted} > {"NONE", None}


def test_chosen_traces_meet_every_error(spark: Any, answered: tuple[Path, Model, Exploration]) -> None:
    folder, _, _ = answered
    errors = set(pyarrow.parquet.read_table(folder / "transitions").column("error").to_pylist()) - {None, "NONE"}
    assert errors
    chosen = covering_traces(spark, str(folder), "errors")
    assert sorted(name for covering in chosen for name in covering.goals) == sorted(errors)
    for covering in chosen:
        last, before = covering.trace[-1], covering.trace[-2]
        assert last.action is not None
        assert last.action.answer is not None
        assert last.action.answer.bind()(before.state).name in covering.goals


def test_chosen_traces_tell_mutants_from_the_model(command: Command, explored: tuple[Path, Exploration], spark: Any) -> None:
    chosen = covering_traces(spark, str(explored[0]), "mutants")
    told = [name for covering in chosen for name in covering.goals]
    assert sorted(told) == sorted(set(told))
    for covering in chosen:
        for name in covering.goals:
            mutant = MODELS["kip-320"].build({**MODEL.parameters, "mutant": name})
            assert _differs(mutant, covering.trace), name
    same = [name for name in mutants_of(MODEL) if name not in told]
    for name in same:
        assert set(reachable(MODEL)) == set(reachable(MODELS["kip-320"].build({**MODEL.parameters, "mutant": name})))


def _differs(mutant: Model, trace: Trace) -> bool:
    """Whether a mutant takes a step of a trace otherwise, or another one in its last state."""
    number = {(action.name, tuple(action.args.items())): place for place, action in enumerate(MODEL.actions)}
    for before, step in pairwise(trace):
        assert step.action is not None
        action = mutant.actions[number[step.action.name, tuple(step.action.args.items())]]
        if action.bind()(before.state) != step.state:
            return True
    last = trace[-1].state
    pairs = zip(MODEL.actions, mutant.actions, strict=True)
    return any(own.bind()(last) is None and theirs.bind()(last) is not None for own, theirs in pairs)


def test_no_traces_are_chosen_for_a_model_of_somebodys_own(tmp_path: Path) -> None:
    model = counters(2)
    settings, context = SparkSettings(partitions=2, tables=str(tmp_path)), Context()
    with engine.states_folder(settings, context) as states:
        engine.SparkSearch(model, model.properties, Limits(stop_at_first=False), settings, None, context, states).run()
    with pytest.raises(SparkError, match=r"is of counters, a model of somebody's own; traces are chosen for .*kip-320"):
        model_of(str(tmp_path))
