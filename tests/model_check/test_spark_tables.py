"""Questions asked of the tables that an exploration on Spark writes, and traces chosen from them."""

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="engine spark is not installed: pip install 'kafka-replication-spec[spark]'")

import itf_py

from model_check.exploration import Exploration, Limits
from model_check.models import MODELS
from model_check.spark import engine
from model_check.spark.session import SparkSettings, spark_context
from tests.model_check.commands import Command
from tests.model_check.spark_in_process import Context

pytestmark = pytest.mark.slow
MODEL = MODELS["kip-320"].build({"replicas": 2, "log_size": 1, "max_records": 1, "max_epoch": 1})
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


@pytest.fixture(scope="module")
def explored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Exploration]:
    """Tables, written without Spark."""
    folder = tmp_path_factory.mktemp("tables")
    settings, context = SparkSettings(partitions=2, tables=str(folder)), Context()
    with engine._folder(settings, context) as states:
        limits = Limits(stop_at_first=False)
        return folder, engine._Search(MODEL, MODEL.properties, limits, settings, None, context, states).run()


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    conf = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    with spark_context(SparkSettings("local[2]", conf=conf)) as context:
        yield context


def test_questions_of_the_documentation_have_answers(spark: Any, explored: tuple[Path, Exploration]) -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415

    folder, found = explored
    session = SparkSession(spark)
    for name in ("states", "transitions", "verdicts"):
        session.read.parquet(f"{folder}/{name}").createOrReplaceTempView(name)
    questions = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.S)
    assert len(questions) == 3
    answers = [session.sql(question).collect() for question in questions]
    assert answers[0]
    assert {row.action: row.times for row in answers[1]} == {name: times for name, times in found.actions.items() if times}


@pytest.mark.parametrize("goals", ["pairs", "properties"])
def test_chosen_traces_cover_every_goal(
    spark: Any, command: Command, explored: tuple[Path, Exploration], tmp_path: Path, goals: str
) -> None:
    from pyspark.sql import SparkSession, functions  # noqa: PLC0415

    from model_check.spark.coverage import covering_traces  # noqa: PLC0415

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
