"""Engine spark beside the compiled engine, what it sends, what its levels take, partitions against time, and estimates of
larger searches: `python -m benchmarks.spark`.

Every run is a process of its own. All go to the section `spark` of the page.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from typing import Any

from benchmarks.engines import write_readme
from benchmarks.spark_estimate import CASES, costs_of, estimate, in_words

SIZES = {
    "6 thousand": ("replicas=2", "max_epoch=2"),
    "69 thousand": ("replicas=2", "log_size=4", "max_records=4", "max_epoch=2"),
    "0.7 million": ("replicas=3", "log_size=2", "max_records=2", "max_epoch=2"),
    "4 million": ("replicas=3", "log_size=3", "max_records=3", "max_epoch=2"),
    "65 million": ("replicas=3", "log_size=3", "max_records=3", "max_epoch=3"),
}


def measured(module: str, *arguments: str) -> dict[str, Any]:
    """The output of one process, and how long it took from start to end."""
    before = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"whole": time.perf_counter() - before}


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def by_size(names: list[str]) -> tuple[str, dict[str, dict[str, Any]]]:
    """The engines side by side, by the number of states; and the runs on Spark."""
    rows, runs = [], {}
    for name in names:
        ours = runs[name] = measured("benchmarks.spark_run", *SIZES[name])
        compiled = measured("benchmarks.compiled_run", "kip-320", *SIZES[name], "properties=StrongIsr", "workers=2")
        same = ("distinct", "transitions", "depth")
        if any(ours[number] != compiled[number] for number in same):
            raise SystemExit(f"the engines disagree: {[(ours[number], compiled[number]) for number in same]}")
        rows.append(
            [
                f"{ours['distinct']:,}",
                f"{compiled['whole']:.1f}",
                f"{ours['whole']:.1f}",
                f"{ours['whole'] - ours['seconds']:.1f}",
                f"{ours['seconds']:.1f}",
                f"{ours['seconds'] / compiled['whole']:.1f}x",
                f"{sum(work['jobs'] for work in ours['work'])} of {ours['depth']}",
                f"{ours['cpu_seconds']:.0f}",
                f"{ours['driver_mb']:,}",
                f"{ours['java_mb']:,}",
                f"{ours['worker_mb']:,}",
            ]
        )
        print(rows[-1], flush=True)
    heads = ["states", "compiled s", "spark s", "of it start and end s", "search s", "search to compiled", "jobs of levels"]
    return table([*heads, "processor s", "driver MB", "Java MB", "worker MB"], rows), runs


def what_is_sent(runs: dict[str, dict[str, Any]]) -> str:
    """Successors, states sent, bytes sent and stored, for each new state."""
    rows = []
    for run in runs.values():
        new = sum(work["new_states"] for work in run["work"])
        if new:
            per_new = {name: sum(work[name] for work in run["work"]) / new for name in ("successors", "sent_states")}
            rows.append(
                [
                    f"{run['distinct']:,}",
                    f"{run['state_bytes']}",
                    f"{per_new['successors']:.2f}",
                    f"{per_new['sent_states']:.2f}",
                    f"{sum(work['sent_bytes'] for work in run['work']) / new:.2f}",
                    f"{run['shuffle_written'] / new:.2f}",
                    f"{run['stored_bytes'] / run['distinct']:.2f}",
                ]
            )
    heads = [
        "states",
        "bytes packed",
        "successors",
        "states sent",
        "bytes sent",
        "bytes that Spark shuffled",
        "bytes stored",
    ]
    return table(heads, rows)


def by_level(run: dict[str, Any]) -> str:
    """The time of each level."""
    names = ("level", "jobs", "successors", "sent_states", "sent_bytes", "new_states", "seconds", "expand_s", "merge_s")
    rows = [
        [f"{work[name]:,.2f}" if isinstance(work[name], float) else f"{work[name]:,}" for name in names]
        for work in run["work"]
    ]
    return table([name.replace("_", " ") for name in names], rows)


def by_partitions(size: str, counts: list[str]) -> tuple[str, dict[str, Any] | None]:
    """Time and what is sent by the number of partitions; the last run."""
    rows, ours = [], None
    for count in counts:
        ours = measured("benchmarks.spark_run", *SIZES[size], f"partitions={count}")
        new = sum(work["new_states"] for work in ours["work"])
        sent = sum(work["sent_bytes"] for work in ours["work"]) / new
        rows.append([count, f"{ours['seconds']:.1f}", f"{ours['cpu_seconds']:.0f}", f"{sent:.2f}"])
        print(rows[-1], flush=True)
    return table(["partitions", "search s", "processor s", "bytes sent for a new state"], rows), ours


def seconds_of_a_job(run: dict[str, Any]) -> float:
    """The time of a job of hardly any states: the median of a small space's levels, all explored by Spark."""
    seconds = sorted(work["seconds"] / work["jobs"] for work in run["work"])
    return float(seconds[len(seconds) // 2])


def main() -> None:
    """Run, print the tables and put them on the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--sizes", default=",".join(list(SIZES)[:4]), help=f"of: {', '.join(SIZES)}")
    parser.add_argument("--partitions", default="2,4,8,16,64", help="numbers of partitions to try on 4 million states")
    arguments = parser.parse_args()
    names = arguments.sizes.split(",")
    if unknown := [name for name in names if name not in SIZES]:
        parser.error(f"there is no size {unknown[0]!r}; sizes: {', '.join(SIZES)}")
    sizes, runs = by_size(names)
    small = measured("benchmarks.spark_run", *SIZES["6 thousand"], "driver_states=1")
    job = seconds_of_a_job(small)
    parts, crowded = by_partitions("4 million", arguments.partitions.split(",") if arguments.partitions else [])
    largest = runs[names[-1]]
    text = (
        f"`kip-320`, `StrongIsr` checked, `local[2]`; whole processes, {os.cpu_count()} cores ({platform.machine()}), Python"
        f" {platform.python_version()}. Start and end are those of Python, Java and Spark. Memory is the peak of the Python"
        " driver, of Java (driver and executor in one with a local master), and of the largest worker process.\n\n"
        f"{sizes}\n\nFor each new state, beyond the levels that the driver explores by itself:\n\n{what_is_sent(runs)}\n\n"
        f"A job of hardly any states takes {job:.2f} s (the median of {len(small['work'])} levels of {small['distinct']:,}"
        f" states, {small['partitions']} partitions, `driver_states=1`).\n\nLevels of {largest['distinct']:,} states;"
        f" seconds of expanding and merging are a processor's:\n\n{by_level(largest)}\n"
    )
    if crowded:
        text += f"\nPartitions, 4 million states:\n\n{parts}\n"
    if len(names) > 1:
        costs = costs_of(largest, runs[names[-2]], crowded or largest, job)
        rows = [
            [
                f"{found.states:.0e}",
                f"{found.cores}",
                f"{found.partitions:,}",
                f"{found.depth}",
                f"{found.jobs:,}",
                f"{found.core_hours:,.0f}",
                f"{found.hours:.2f}",
                f"{found.shuffled / 1e9:,.0f}",
                f"{found.stored / 1e9:,.0f}",
                f"{found.read / 1e9:,.0f}",
            ]
            for found in (estimate(costs, states, cores) for states, cores in CASES)
        ]
        heads = [
            "states",
            "cores",
            "partitions",
            "depth",
            "jobs",
            "core hours",
            "hours",
            "GB shuffled",
            "GB stored",
            "GB read",
        ]
        text += f"\n{in_words(costs)}\n\n{table(heads, rows)}\n"
    print("\n" + text)
    write_readme("spark", text)


if __name__ == "__main__":
    main()
