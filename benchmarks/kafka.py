"""The ladder of bounds of the model `kafka`, and TLC on a published model beside it: `python -m benchmarks.kafka`.

Each rung adds a disturbance to those of the rung before. TLC runs the published model of KIP-966 with one fencing and one
unclean shutdown, as it comes, for so many seconds, if the environment says where they are: `TLC_CLASSPATH` for Java,
`KIP_966_TLA` the folder with the module. The models differ, so what is compared is the rate of distinct states.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.engines import REPOSITORY, write_readme

ADDED = ("--isr-shrinks", "--fencings", "--clean-shutdowns", "--unclean-shutdowns")
LIKE_KIP_966 = ["--elections", "1", "--fencings", "1", "--unclean-shutdowns", "1"]
MODULE = "kafka_replication_kip_966"


def check(bounds: list[str], seconds: float) -> tuple[dict[str, Any], float, int]:
    """The result of `kspec check` within these bounds, for at most so long; its wall time, and its peak memory in bytes."""
    command = [sys.executable, "-c", "from kspec.cli.main import main; main()", "check", "kafka", *bounds]
    began = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen([*command, "--json", "--time-limit", str(seconds)], stdout=output, cwd=REPOSITORY)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - began
        output.seek(0)
        return json.load(output), took, usage.ru_maxrss * 1024


def row(bounds: list[str], seconds: float) -> str:
    """One exploration as a line of the table."""
    found, took, peak = check(bounds, seconds)
    states = found["distinct_states"]
    stands_for = found["states_represented"] or states
    violated = [prop["name"] for prop in found["properties"] if prop["kind"] == "always" and prop["holds"] is False]
    verdict = ", ".join(violated) if violated else ("all hold" if found["complete"] else "none violated so far")
    return (
        f"| `{' '.join(bounds)}` | {states:,} | {stands_for:,} | {found['transitions']:,} | {found['depth']} | {took:,.1f} |"
        f" {stands_for / took:,.0f} | {peak / 1e6:,.0f} MB | {verdict} |"
    )


def tlc_rate(seconds: float) -> float | None:
    """Distinct states per second that TLC finds; `None` if the environment has no TLC."""
    if "TLC_CLASSPATH" not in os.environ or "KIP_966_TLA" not in os.environ or not shutil.which("java"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        for file in Path(os.environ["KIP_966_TLA"]).iterdir():
            shutil.copy(file, folder)
        java = ["java", "-XX:+UseParallelGC", "-Xmx8g", "-cp", os.environ["TLC_CLASSPATH"], "tlc2.TLC", "-workers", "2"]
        command = [*java, "-deadlock", "-metadir", "states", "-config", f"{MODULE}.cfg", f"{MODULE}.tla"]
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        began, last = time.perf_counter(), None
        for line in process.stdout:
            if found := re.search(r"Progress\(.*?([\d,]+) distinct states found", line):
                last = int(found[1].replace(",", "")) / (time.perf_counter() - began)
            if last is not None and time.perf_counter() - began > seconds:
                break
        process.terminate()
        process.wait()
    return last


def main() -> None:
    """Climb the ladder, let TLC run, print both and put them on the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rungs", type=int, default=4, help="how many rungs of the ladder to climb (1 to 5)")
    parser.add_argument("--seconds", type=float, default=3600, help="the longest that a rung may take")
    parser.add_argument("--tlc-seconds", type=float, default=120, help="how long TLC may run")
    arguments = parser.parse_args()
    bounds = ["--release", "next", "--elections", "1"]
    lines = [
        "| bounds | orbits | states | transitions | depth | seconds | states/s | peak memory | properties |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for rung in range(arguments.rungs):
        bounds += [ADDED[rung - 1], "1"] if rung else []
        lines.append(row([*bounds, "--symmetry", "--all"], arguments.seconds))
        print(lines[-1], flush=True)
    text = "Three brokers, one value, min.insync.replicas=2; whole processes.\n\n" + "\n".join(lines) + "\n\n"
    rate = tlc_rate(arguments.tlc_seconds)
    if rate is None:
        text += "Not measured here: TLC (needs `java`, and `TLC_CLASSPATH` and `KIP_966_TLA` in the environment).\n"
    else:
        ours = []
        for options in ([], ["--symmetry"]):
            found, took, _ = check([*LIKE_KIP_966, *options], arguments.tlc_seconds)
            ours.append((found["states_represented"] or found["distinct_states"]) / took)
        plain, symmetric = ours
        text += (
            f"Within `{' '.join(LIKE_KIP_966)}`: {plain:,.0f} distinct states/s, with `--symmetry` {symmetric:,.0f}.\n"
            f"TLC, two workers, on the published model of KIP-966 with the like bounds: {rate:,.0f}.\n"
            f"That is {plain / rate:.1f}x and {symmetric / rate:.1f}x.\n"
        )
    print(text)
    write_readme("model kafka", text)


if __name__ == "__main__":
    main()
