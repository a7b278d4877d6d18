"""The cost of idle partitions: `python -m benchmarks.broker.many_partitions [--kafka 4.4.0] [--idle 1000,3000]`.

Three brokers and a controller, replication factor 3. 200 records a second of 1 KiB with acks=all go to ten partitions; how
long each waits for its acknowledgement is measured without other partitions, and then with so many more, in the same run and
the same cluster. Then nobody writes, and the processor time of each broker is measured. With `--kafka` Apache Kafka goes
through the same after ours. With `--beside FOLDER` another checkout of this repository does, before ours.

Before anything is measured the cluster must be settled: the processor time of its processes in a second is nearly that of
the second before, or `--settle` seconds are over, which is then said.
"""

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker.clusters import OURS, MeasuredCluster, until
from benchmarks.broker.load import LoadTarget, Waits, latencies
from benchmarks.broker.side_by_side import cpu_seconds
from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.conformance.kafka.jars import find_jars
from kspec.trials.cluster.plan import Program
from kspec.trials.cluster.programs import KspecProgram
from kspec.trials.faults.load import create_topic

BROKERS, BUSY, A_SECOND = 3, 10, 200
AT_ONCE = 500
"""Partitions that are created by one request."""

QUIET = 0.02
"""Seconds of processor time in a second, of all processes, by which two seconds may differ once a cluster is settled."""


class ClusterMeasurement(NamedTuple):
    """The measurements of a cluster with so many idle partitions."""

    idle: int
    waits: Waits
    idle_percent: float
    """Of a core, for each broker, while nobody writes."""
    settled: str


def settle(running: MeasuredCluster, limit_s: float) -> str:
    """Wait until the cluster has done what it has to do; in words, whether it has."""
    begun, before = time.monotonic(), running.cpu()
    calm, last = 0, None
    while time.monotonic() - begun < limit_s:
        time.sleep(1)
        now = running.cpu()
        used, before = now - before, now
        calm = calm + 1 if last is not None and abs(used - last) <= QUIET else 0
        last = used
        if calm >= 3:
            return f"after {time.monotonic() - begun:.0f} s"
    return f"not within {limit_s:.0f} s"


def brokers_of(running: MeasuredCluster) -> list[int]:
    """The processes of the brokers, without the controller's."""
    found = running.cluster.processes
    return [one.pid for name, one in found.items() if one.running and one.pid is not None and name.isdigit()]


def idle_percent(running: MeasuredCluster, seconds: float) -> float:
    """Processor time of a broker while nobody writes, in percent of a core: the middle one of the brokers."""
    pids = brokers_of(running)
    before = [cpu_seconds(pid) for pid in pids]
    time.sleep(seconds)
    return statistics.median(100 * (cpu_seconds(pid) - was) / seconds for pid, was in zip(pids, before, strict=True))


def measure(running: MeasuredCluster, steps: list[int], options: argparse.Namespace) -> Iterator[ClusterMeasurement]:
    """With more and more idle partitions."""
    create_topic(running.addresses, "busy", BUSY, BROKERS)
    target = LoadTarget(running.addresses, "busy", BUSY)
    there = 0
    for idle in steps:
        for number in range(there, idle, AT_ONCE):
            size = min(AT_ONCE, idle - number)
            create_topic(running.addresses, f"idle-{number}", size, BROKERS)
            until(lambda name=f"idle-{number}", size=size: led(running, name) == size)  # type: ignore[misc]
        there = idle
        settled = settle(running, options.settle)
        latencies(target, A_SECOND, options.warm)
        waits = [latencies(target, A_SECOND, options.seconds) for _ in range(options.runs)]
        middle = Waits(*(statistics.median(times) for times in zip(*waits, strict=True)))
        settle(running, options.settle)
        yield ClusterMeasurement(idle, middle, idle_percent(running, options.rest), settled)


def led(running: MeasuredCluster, topic: str) -> int:
    """The number of a topic's partitions that have a leader."""
    return sum(leader > 0 for leader in running.leaders(topic).values())


def rows(name: str, found: list[ClusterMeasurement]) -> list[str]:
    """A line of the table for each number of idle partitions."""
    first = found[0].waits
    return [
        f"| {name} | {one.idle:,} | {one.waits.p50:.1f} | {one.waits.p50 / first.p50:.2f}x | {one.waits.p99:.1f} "
        f"| {one.idle_percent:.1f}% | {one.settled} |"
        for one in found
    ]


def clusters(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Program]]:
    """Those that are measured, one after the other."""
    if options.beside is not None:
        beside = ("env", "-C", str(options.beside), *OURS)
        yield f"kspec of {options.beside.name}", KspecProgram(beside, {}, {})
    yield "kspec", KspecProgram(OURS, {}, {})
    if options.kafka:
        flags = (f"-Xmx{options.heap}", f"-Xms{options.heap}", "-XX:+UseG1GC")
        yield f"Apache Kafka {options.kafka}, -Xmx{options.heap}", KafkaProgram(find_jars(options.kafka), flags)


def main() -> None:
    """Measure one cluster after the other, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="Another checkout of this repository.")
    parser.add_argument("--idle", default="100,300,1000,3000", metavar="N,N", help="How many partitions nobody touches.")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=10, metavar="S", help="Of each run.")
    parser.add_argument("--warm", type=float, default=10, metavar="S", help="Before the runs of each number.")
    parser.add_argument("--rest", type=float, default=20, metavar="S", help="How long nobody writes.")
    parser.add_argument("--settle", type=float, default=180, metavar="S", help="How long a cluster may need to settle.")
    parser.add_argument("--heap", default="1g", metavar="SIZE", help="Of each Kafka process.")
    parser.add_argument("--port", type=int, default=20_300, metavar="N", help="The first port; clients take none near it.")
    options = parser.parse_args()
    steps = [0, *map(int, options.idle.split(","))]
    print(f"{os.cpu_count()} cores, {A_SECOND} records a second to {BUSY} partitions, acks=all", file=sys.stderr)
    print(
        "| | idle partitions | p50 (ms) | beside none | p99 (ms) | a broker at rest | settled |\n"
        "|---|---|---|---|---|---|---|"
    )
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    try:
        for number, (name, program) in enumerate(clusters(options, folder)):
            running = MeasuredCluster(name, program, folder / str(number), options.port + number * (BROKERS + 1))
            try:
                found: list[ClusterMeasurement] = []
                for one in measure(running, steps, options):
                    found.append(one)
                    print(rows(name, found)[-1], flush=True)
            finally:
                asyncio.run(running.cluster.stop())
                running.cluster.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
