"""The published models on Spark, row by row of `tests/data/golden.json`: `python -m benchmarks.spark_golden`.

Every row that the reference engine explores in a minute, with 1, 2, 7 and 64 partitions, in one session with `local[2]`.
All levels are Spark's but those of one state, unless `--driver-states` says otherwise. A number that differs ends it with
an error.
"""

import argparse
import time

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.spark import engine
from kspec.model_check.engines.spark.session import SparkSettings, spark_context
from kspec.model_check.models import MODELS
from tests.model_check.models.test_golden import LARGE, ROWS, assert_is_row, row_name

PARTITIONS = (1, 2, 7, 64)


def main() -> None:
    """Explore every row and compare."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_golden", description=__doc__)
    parser.add_argument("--most", type=int, default=LARGE, help="only rows of so many states")
    parser.add_argument("--partitions", type=int, nargs="+", default=PARTITIONS)
    parser.add_argument("--driver-states", type=int, default=1)
    arguments = parser.parse_args()
    rows = [row for row in ROWS if row["distinct_states"] <= arguments.most]
    began = time.monotonic()
    with spark_context(SparkSettings("local[2]", conf={"spark.ui.enabled": "false"})):
        for row in rows:
            model = MODELS[row["model"]].build(row["parameters"])
            for partitions in arguments.partitions:
                settings = SparkSettings(partitions=partitions, driver_states=arguments.driver_states)
                found = engine.explore(model, model.properties, Limits(stop_at_first=False), settings)
                assert_is_row(found, row)
                states = f"{found.distinct_states:>11,} states"
                print(f"{row_name(row):<32} {partitions:>3} partitions {states} {found.duration_s:8.1f} s", flush=True)
    print(f"{len(rows)} rows agree with {len(arguments.partitions)} numbers of partitions, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
