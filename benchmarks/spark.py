"""Engine spark beside the compiled engine, time against states, and partitions against time: `python -m benchmarks.spark`.

Every run is a process of its own. The page gets a table of sizes and one of partitions.
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

SIZES = {
    "6 thousand": ("replicas=2", "max_epoch=2"),
    "69 thousand": ("replicas=2", "log_size=4", "max_records=4", "max_epoch=2"),
    "174 thousand": ("replicas=3", "log_size=1", "max_records=2", "max_epoch=2"),
    "4.1 million": ("replicas=3", "log_size=3", "max_records=3", "max_epoch=2"),
    "65 million": ("replicas=3", "log_size=3", "max_records=3", "max_epoch=3"),
}


def measured(module: str, *arguments: str) -> dict[str, Any]:
    """What one process says of itself, and how long it took from start to end."""
    before = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found | {"whole": time.perf_counter() - before}


def table(heads: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in [heads, ["---"] * len(heads), *rows])


def main() -> None:
    """Run, print the tables and put them on the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark", description=__doc__)
    parser.add_argument("--sizes", default=",".join(list(SIZES)[:4]), help=f"of: {', '.join(SIZES)}")
    parser.add_argument("--partitions", default="2,4,8,16,64", help="numbers of partitions to try on the last size but one")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.sizes.split(","):
        ours = measured("benchmarks.spark_run", *SIZES[name])
        compiled = measured("benchmarks.compiled_run", "kip-320", *SIZES[name], "properties=StrongIsr")
        if ours["distinct"] != compiled["distinct"]:
            raise SystemExit(f"the engines disagree: {ours['distinct']}, {compiled['distinct']}")
        states = ours["distinct"]
        rows.append(
            [
                f"{states:,}",
                f"{compiled['whole']:.1f}",
                f"{ours['whole']:.1f}",
                f"{ours['start']:.1f}",
                f"{ours['jobs']}",
                f"{ours['cpu_seconds']:.0f}",
                f"{ours['state_bytes']}",
                f"{ours['sent_bytes'] / states:.1f}",
                f"{ours['driver_mb']:,}",
                f"{ours['java_mb']:,}",
                f"{ours['worker_mb']:,}",
            ]
        )
        print(rows[-1], flush=True)
    heads = ["states", "compiled s", "spark s", "of it start s", "jobs", "processor s", "bytes a state", "sent bytes/state"]
    heads += ["driver MB", "Java MB", "worker MB"]
    size = arguments.sizes.split(",")[-2 if "65 million" in arguments.sizes else -1]
    parts = []
    for count in arguments.partitions.split(","):
        ours = measured("benchmarks.spark_run", *SIZES[size], f"partitions={count}")
        parts.append(
            [count, f"{ours['seconds']:.1f}", f"{ours['cpu_seconds']:.0f}", f"{ours['sent_bytes'] / ours['distinct']:.1f}"]
        )
        print(parts[-1], flush=True)
    text = (
        f"`kip-320`, `StrongIsr` checked, `local[2]`; whole processes, {os.cpu_count()} cores ({platform.machine()}), Python"
        f" {platform.python_version()}. Memory is the peak of the Python driver, of Java (driver and executor in one with a"
        f" local master), and of the largest worker process.\n\n{table(heads, rows)}\n\nPartitions, {size} states:\n\n"
        + table(["partitions", "seconds", "processor s", "sent bytes/state"], parts)
        + "\n"
    )
    print("\n" + text)
    write_readme("spark", "python -m benchmarks.spark", text)


if __name__ == "__main__":
    main()
