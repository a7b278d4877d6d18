"""Steps per second of random walks, with one worker and with all: `python -m benchmarks.walks`.

The plain walks, which are the oracle of the tests, are timed beside on a few of the same walks.
"""

import os
import statistics
import time
from itertools import pairwise

from benchmarks.engines import write_readme
from kspec.model_check.core.model import Model
from kspec.model_check.engines.simulation.simulate import WalkPlan, simulate
from kspec.model_check.engines.simulation.walks import walks
from kspec.model_check.models import MODELS

CASES = (
    ("kip-320", {"log_size": 3, "max_records": 3, "max_epoch": 2}, 200_000),
    ("kip-320", {"replicas": 5, "log_size": 5, "max_records": 5, "max_epoch": 5}, 5_000),
    ("truncate-to-hw", {"log_size": 3, "max_records": 3, "max_epoch": 3}, 200_000),
)
"""Model, settings, and how many walks. In the second nearly every step asks the rules something new."""

REPEAT = 3


def rate(model: Model, workers: int, traces: int) -> float:
    """Median steps per second."""
    properties = [prop for prop in model.properties if prop.by_default]
    rates = []
    for seed in range(REPEAT):
        result = simulate(model, properties, WalkPlan(seed, traces, 100), workers)
        rates.append(result.steps / result.duration_s)
    return statistics.median(rates)


def plain_rate(model: Model) -> float:
    """Steps per second of the plain walks."""
    properties = [prop for prop in model.properties if prop.by_default]
    started = time.perf_counter()
    steps = sum(len(walk.actions) for walk in walks(model, properties, 1, range(100), 100, {}))
    return steps / (time.perf_counter() - started)


def main() -> None:
    """Time all cases, print the table and put it on the page."""
    cores = os.cpu_count() or 1
    lines = [f"| model | walks | plain walks | 1 worker | {cores} workers |", "|---|---|---|---|---|"]
    for name, parameters, traces in CASES:
        model = MODELS[name].build(parameters)
        rate(model, cores, 1000)  # the rules are asked, and the loops compiled, before the clock runs
        rates = [plain_rate(model), rate(model, 1, traces), rate(model, cores, traces)]
        settings = ", ".join(f"{key.replace('_', '-')} {value}" for key, value in parameters.items())
        lines.append(f"| `{name}`, {settings} | {traces:,} | " + " | ".join(f"{steps:,.0f}" for steps in rates) + " |")
        print(lines[-1], [f"{after / before:.1f}x" for before, after in pairwise(rates)], flush=True)
    table = "\n".join(lines)
    text = f"Steps per second, start and asking of rules included; medians of {REPEAT} runs.\n\n{table}\n"
    write_readme("random walks", text)


if __name__ == "__main__":
    main()
