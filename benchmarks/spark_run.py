"""One exploration of `kip-320` by engine spark, as a whole process: `python -m benchmarks.spark_run NAME=VALUE …`.

Prints one line of JSON. `partitions=P`, `master=URL` and `driver_states=N` are the engine's, the others the model's
parameters. Processor seconds are those of the driver, of Java and of the worker processes together.
"""

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.spark.engine import SparkSearch, states_folder
from kspec.model_check.engines.spark.session import MOST_IN_A_LEVEL, SparkSettings, spark_context
from kspec.model_check.models import MODELS

_TICKS = os.sysconf("SC_CLK_TCK")


def usage(java: int) -> dict[str, Any]:
    """The use of the driver, Java and all worker processes so far: seconds of processors, and peaks of memory in MB."""
    family, parents = {os.getpid()}, {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(status.parent.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS
    while added := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= added
    return {
        "cpu_seconds": round(sum(parents[pid][1] for pid in family), 1),
        "driver_mb": round(_peak(os.getpid())),
        "java_mb": round(_peak(java)),
        "worker_mb": round(max((_peak(pid) for pid in family - {os.getpid(), java}), default=0)),
    }


def _peak(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1e3 for line in lines if line.startswith("VmHWM:")), 0.0)


def main(arguments: list[str]) -> None:
    """Explore, and print what it took."""
    given = dict(argument.split("=", 1) for argument in arguments)
    partitions = int(given.pop("partitions", "0")) or None
    settings = SparkSettings(
        given.pop("master", "local[2]"),
        partitions,
        conf={"spark.ui.enabled": "false"},
        driver_states=int(given.pop("driver_states", MOST_IN_A_LEVEL)),
    )
    model = MODELS["kip-320"].build({name: int(value) for name, value in given.items()})
    properties = [prop for prop in model.properties if prop.name == "StrongIsr"]
    started = time.perf_counter()
    with spark_context(settings) as context, states_folder(settings, context) as folder:
        ready = time.perf_counter()
        search = SparkSearch(model, properties, Limits(stop_at_first=False), settings, None, context, folder)
        begun, java = time.perf_counter(), context._gateway.proc.pid
        before = usage(java)["cpu_seconds"]
        found = search.run()
        over, after = time.perf_counter(), usage(java)
        measured = {
            "distinct": found.distinct_states,
            "transitions": found.transitions,
            "depth": found.depth,
            "partitions": search.partitions,
            "start": round(ready - started, 2),
            "head": round(begun - ready, 2),
            "seconds": round(over - ready, 2),
            "state_bytes": search.fields.size,
            "stored_bytes": folder.size([run.file for runs in search.visited for run in runs]),
            "levels": found.levels,
            "work": [work._asdict() for work in search.work],
            "shuffle_written": context._jsc.sc().statusStore().executorSummary("driver").totalShuffleWrite(),
            "search_cpu_seconds": round(after["cpu_seconds"] - before, 1),
            **after,
        }
    print(json.dumps(measured))


if __name__ == "__main__":
    main(sys.argv[1:])
