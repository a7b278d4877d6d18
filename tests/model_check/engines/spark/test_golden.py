"""Rows of `tests/data/golden.json` on Spark itself, one for each number of partitions; the driver has the initial state.

`python -m benchmarks.spark_golden` runs all rows that the reference engine explores in a minute, with 1, 2, 7 and 64
partitions; 64 take minutes on two cores, so here only `test_spark.py` has them, with a smaller model.
"""

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="engine spark is not installed: .venv/bin/pip install -e '.[spark]'")

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.spark import engine
from kspec.model_check.engines.spark.session import SparkSettings
from kspec.model_check.models import MODELS
from tests.model_check.models.test_golden import ROWS, assert_is_row, row_name

ON_SPARK = {1: "kip-320-2-2-2-1", 2: "async-isr-3-2-2", 7: "truncate-to-hw-2-2-2-1"}
"""A row for each number of partitions."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("partitions", "name"),
    [pytest.param(*each, marks=[pytest.mark.nightly] if each[0] == 1 else []) for each in ON_SPARK.items()],
)
def test_spark_gives_the_numbers_of_other_checkers(spark: Any, partitions: int, name: str) -> None:
    (row,) = [row for row in ROWS if row_name(row) == name]
    model = MODELS[row["model"]].build(row["parameters"])
    settings = SparkSettings(partitions=partitions, driver_states=1)
    found = engine.explore(model, model.properties, Limits(stop_at_first=False), settings)
    assert_is_row(found, row)
    assert found.shuffles is not None
    assert found.shuffles.partitions == partitions
    assert sum(work.new_states for work in found.shuffles.levels) > 0.8 * found.distinct_states
