"""Random walks spread over Spark: seed and number determine each walk.

So the outcome is the same as without Spark, for any master and any number of tasks.
"""

import pickle
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.model import Model, Property
from kspec.model_check.engines.simulation.simulate import Simulation, WalkFinding, WalkPlan, find_traces, take_walks
from kspec.model_check.engines.simulation.walks import End
from kspec.model_check.engines.spark.session import SparkSettings, collected, send_files, spark_context


class _WalkResults(NamedTuple):
    """The findings of one task's walks; for each property the number of walks, the one to report, and its steps."""

    taken: NDArray[np.int64]
    lengths: NDArray[np.int64]
    ends: dict[End, int]
    findings: list[tuple[int, int | None, int | None]]


def simulate(
    model: Model, properties: Sequence[Property], plan: WalkPlan, settings: SparkSettings | None = None
) -> Simulation:
    """Take all walks of the plan, in one task for each core unless the settings say in how many."""
    with spark_context(settings or SparkSettings()) as context:
        return simulate_on(context, model, properties, plan, (settings or SparkSettings()).partitions)


def simulate_on(
    context: Any, model: Model, properties: Sequence[Property], plan: WalkPlan, tasks: int | None = None
) -> Simulation:
    """`simulate`, with an existing context."""
    from pyspark import cloudpickle  # noqa: PLC0415 (an extra)

    send_files(context, model)
    started = time.monotonic()
    tasks = min(tasks or context.defaultParallelism, plan.traces)
    bounds = [plan.traces * task // tasks for task in range(tasks + 1)]
    plans = [plan._replace(first=plan.first + low, traces=high - low) for low, high in pairwise(bounds)]
    dumps: Any = cloudpickle.dumps
    walked = context.broadcast(dumps((model, list(properties))))

    def take(plans: Iterator[WalkPlan]) -> Iterator[_WalkResults]:
        model, properties = pickle.loads(walked.value)
        for own in plans:
            part = take_walks(model, properties, own, workers=1)
            findings = [(finding.walks, finding.walk, finding.steps) for finding in part.findings]
            yield _WalkResults(part.taken, part.lengths, part.ends, findings)

    result = Simulation(
        model,
        plan,
        [WalkFinding(prop) for prop in properties],
        np.zeros(max(1, len(model.actions)), np.int64),
        np.zeros(plan.depth + 1, np.int64),
        workers=tasks,
    )
    for part in collected(context.parallelize(plans, tasks).mapPartitions(take)):
        result.taken += part.taken
        result.lengths += part.lengths
        for end, count in part.ends.items():
            result.ends[end] += count
        for finding, found in zip(result.findings, part.findings, strict=True):
            finding.add(*found)
    result.duration_s = time.monotonic() - started
    find_traces(result)
    return result
