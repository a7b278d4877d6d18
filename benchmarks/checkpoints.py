"""The cost of checkpoints: `python -m benchmarks.checkpoints --max-epoch 3 --interval 10 --folder DIR`.

The model is `kip-320` with three replicas, logs and records of three. Explorations with and without checkpoints take turns;
the report has the median wall times, how fast the checkpoints were written, and how long the last one takes to be resumed.
"""

import argparse
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from kspec.model_check.core.exploration import CheckpointPlan, Limits
from kspec.model_check.engines.compiled import explore
from kspec.model_check.engines.compiled.checkpoint import Checkpoint, Moment
from kspec.model_check.models import MODELS


@dataclass(slots=True)
class Cost:
    """The cost of an exploration's checkpoints, or of loading one."""

    saves: int = 0
    longest: float = 0.0
    seconds: float = 0.0
    bytes: int = 0
    loading: float = 0.0


@contextmanager
def measured() -> Iterator[Cost]:
    """While it lasts, every checkpoint is measured."""
    cost, save, load = Cost(), Checkpoint._save, Checkpoint.load

    def timed_save(checkpoint: Checkpoint, *args: Any) -> None:
        before, began = checkpoint._written, time.perf_counter()
        save(checkpoint, *args)
        seconds, after = time.perf_counter() - began, checkpoint._written
        cost.saves += 1
        cost.seconds += seconds
        cost.longest = max(cost.longest, seconds)
        cost.bytes += after.states_size - (before.states_size if before.generation == after.generation else 0)

    def timed_load(checkpoint: Checkpoint, *args: Any) -> Moment:
        began = time.perf_counter()
        moment = load(checkpoint, *args)
        cost.loading = time.perf_counter() - began
        return moment

    with mock.patch.object(Checkpoint, "_save", timed_save), mock.patch.object(Checkpoint, "load", timed_load):
        yield cost


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-epoch", type=int, default=2)
    parser.add_argument("--interval", type=float, default=1.0, help="seconds between checkpoints")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--folder", type=Path, required=True, help="a folder that does not exist yet, on the disk to measure"
    )
    chosen = parser.parse_args(arguments)
    bounds = {"replicas": 3, "log_size": 3, "max_records": 3, "max_epoch": chosen.max_epoch}
    model, limits = MODELS["kip-320"].build(bounds), Limits(stop_at_first=False)
    asked = CheckpointPlan(chosen.folder, tell=lambda sentence: None, every=chosen.interval)
    explore(MODELS["kip-320"].build({"replicas": 2, "max_epoch": 1}), [], limits)  # kernels are compiled, or loaded
    plain, kept, costs, states = [], [], [], 0
    for _ in range(chosen.runs):
        plain.append(explore(model, [], limits).duration_s)
        with measured() as cost:
            found = explore(model, [], limits, checkpointing=asked)
            explore(model, [], Limits(max_states=1), checkpointing=asked._replace(resume=True))
        shutil.rmtree(chosen.folder)
        kept.append(found.duration_s)
        costs.append(cost)
        states = found.distinct_states
    cost = sorted(costs, key=lambda entry: entry.seconds)[len(costs) // 2]
    share = cost.seconds / statistics.median(kept)
    print(f"{states:,} states: {statistics.median(plain):.2f} s without checkpoints, {statistics.median(kept):.2f} s with")
    print(
        f"{cost.saves} checkpoints, {cost.bytes / 1e6:,.0f} MB in {cost.seconds:.2f} s ({share:.1%} of the run),"
        f" {cost.bytes / 1e6 / cost.seconds:,.0f} MB/s, the longest {cost.longest:.2f} s; resumed in {cost.loading:.2f} s"
    )


if __name__ == "__main__":
    main()
