"""Three brokers beside three of Apache Kafka: `python -m benchmarks.broker.clusters [--kafka 4.4.0] [--warm 90] [--runs 3]`.

Both clusters run at the same time on this machine, each with a controller, and take turns. Replication factor 3, acks=all,
min ISR 2, records of 1 KiB, librdkafka with its default linger. Processor time and memory are those of all four processes.
Before each run all that was written is on the disk, and the memory for it is there (see `benchmarks.broker.memory`).
"""

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from benchmarks.broker.load import LIMIT_S, RECONNECT, LoadTarget, Rate, Waits, consume, latencies, measured, middle, produce
from benchmarks.broker.memory import settle
from benchmarks.broker.side_by_side import cpu_seconds
from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.conformance.kafka.jars import find_jars
from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import Program, nodes_of, ports_from
from kspec.trials.cluster.programs import KspecProgram
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.faults.load import create_topic

TOPIC, PARTITIONS, BROKERS = "load", 3, 3
MEGABYTES = 400
"""The amount that is consumed in a run."""

KAFKAS_FLAGS = ("-Xmx1g", "-Xms1g", "-XX:+UseG1GC")
"""As Kafka's own scripts start it."""

SESSION_MS = 9_000
"""`broker.session.timeout.ms`, by default the same on both sides."""

OURS = (sys.executable, "-c", "from kspec.cli.start import main; main()", "broker")


class MeasuredCluster:
    """A cluster under test, and what was measured of it."""

    def __init__(self, name: str, program: Program, folder: Path, first_port: int) -> None:
        self.name = name
        self.rates: dict[str, list[Rate]] = {}
        self.waits: list[Waits] = []
        self.measures: dict[str, str] = {}
        nodes = nodes_of(folder, BROKERS, ports_from(first_port, BROKERS), {})
        self.cluster = ClusterSupervisor(ClusterFolder(folder), nodes, program, print)
        begun = time.monotonic()
        asyncio.run(self.cluster.start())
        create_topic(self.addresses, TOPIC, PARTITIONS, BROKERS)
        one = Producer({"bootstrap.servers": self.addresses, "acks": "all", "log_level": 0, **RECONNECT})
        one.produce(TOPIC, b"first", partition=0)
        if one.flush(LIMIT_S):
            raise RuntimeError(f"{name}: no record was acknowledged")
        self.measures["first record (s)"] = f"{time.monotonic() - begun:.2f}"

    @property
    def addresses(self) -> str:
        """The addresses to which clients connect."""
        return self.cluster.addresses

    @property
    def target(self) -> LoadTarget:
        """The topic that records go to."""
        return LoadTarget(self.addresses, TOPIC, PARTITIONS)

    @property
    def pids(self) -> list[int]:
        """The processes that run."""
        return [one.pid for one in self.cluster.processes.values() if one.running and one.pid is not None]

    def cpu(self) -> float:
        """Processor time of all processes so far (s)."""
        return sum(map(cpu_seconds, self.pids))

    def memory(self) -> int:
        """Memory of all processes in MiB; what they share counts once."""
        lines = [line for pid in self.pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()]
        return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) >> 10

    def leaders(self, topic: str) -> dict[int, int]:
        """The leader of each partition, -1 if it has none."""
        found = AdminClient({"bootstrap.servers": self.addresses, "log_level": 0}).list_topics(topic, timeout=10)
        return {number: one.leader for number, one in found.topics[topic].partitions.items()}


def seconds_without_leader(running: MeasuredCluster) -> float:
    """From kill -9 of a leader to the next record of its partition that is acknowledged."""
    leader = running.leaders(TOPIC)[0]
    settings = {"bootstrap.servers": running.addresses, "acks": "all", "log_level": 0, **RECONNECT}
    producer = Producer(settings)
    producer.produce(TOPIC, b"before", partition=0)
    producer.flush(LIMIT_S)
    running.cluster.processes[str(leader)].kill()
    begun = time.monotonic()
    producer.produce(TOPIC, b"after", partition=0)
    if producer.flush(LIMIT_S):
        raise RuntimeError(f"{running.name}: nobody leads")
    return time.monotonic() - begun


def many_partitions(running: MeasuredCluster, partitions: int) -> None:
    """A topic with many partitions: created, led again after a start of all, and after the death of a broker."""
    begun = time.monotonic()
    create_topic(running.addresses, "many", partitions, BROKERS)
    until(lambda: len(running.leaders("many")) == partitions and min(running.leaders("many").values()) > 0)
    running.measures[f"{partitions} partitions made (s)"] = f"{time.monotonic() - begun:.1f}"
    asyncio.run(running.cluster.stop())
    begun = time.monotonic()
    asyncio.run(running.cluster.start())
    until(lambda: min(running.leaders("many").values()) > 0)
    running.measures["started again, all led (s)"] = f"{time.monotonic() - begun:.1f}"
    dead = running.leaders("many")[0]
    running.cluster.processes[str(dead)].kill()
    begun = time.monotonic()
    until(lambda: dead not in (known := running.leaders("many").values()) and min(known) > 0)
    over = time.monotonic() - begun - SESSION_MS / 1000
    running.measures["elections after a death, its session left out (s)"] = f"{over:.1f}"


def until(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + LIMIT_S
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError("it does not come to hold")
        time.sleep(0.05)


def measure(clusters: list[MeasuredCluster], options: argparse.Namespace) -> None:
    """Take turns."""
    for one in clusters:
        one.measures["idle (MiB)"] = str(one.memory())
    for one in clusters:
        produce(one.target, options.warm)
    for _ in range(options.runs):
        for one in clusters:
            settle(options.memory)
            done = measured(one.cpu, partial(produce, one.target, options.seconds))
            one.rates.setdefault("produce", []).append(done)
    for _ in range(options.runs):
        for one in clusters:
            settle(options.memory)
            one.rates.setdefault("consume", []).append(measured(one.cpu, partial(consume, one.target, MEGABYTES)))
    for _ in range(options.runs):
        for one in clusters:
            settle(options.memory)
            one.waits.append(latencies(one.target, 1_000, options.seconds))
    for one in clusters:
        one.measures["p50, p99 at 1,000/s (ms)"] = middle(one.waits)
        one.measures["loaded (MiB)"] = str(one.memory())
    for one in clusters:
        one.measures["after kill -9 (s)"] = f"{seconds_without_leader(one):.1f}"
        asyncio.run(one.cluster.stop())
    for one in clusters:
        asyncio.run(one.cluster.start())
        many_partitions(one, options.partitions)
        asyncio.run(one.cluster.stop())


def table(clusters: list[MeasuredCluster]) -> str:
    """The measurements: a row for each measure, a column for each cluster."""
    rows = [["", *(one.name for one in clusters)]]
    for kind in ("produce", "consume"):
        for name, field in (("MB/s", "per_second"), ("MB per CPU-s", "per_cpu_second")):
            medians = [statistics.median(getattr(rate, field) for rate in one.rates[kind]) for one in clusters]
            rows.append([f"{kind}, {name}", *(f"{median:.0f}" for median in medians)])
    rows += [[name, *(one.measures[name] for one in clusters)] for name in clusters[0].measures]
    rows.insert(1, ["---"] * len(rows[0]))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    """Start, warm up, take turns, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--warm", type=float, default=90, metavar="S")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=12, metavar="S")
    parser.add_argument("--port", type=int, default=20_100, metavar="N", help="The first port; clients take none near it.")
    parser.add_argument("--memory", type=float, default=6, metavar="GIB", help="Touched before each run; see memory.py.")
    parser.add_argument("--partitions", type=int, default=1_000, metavar="N")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    clusters: list[MeasuredCluster] = []
    try:
        clusters.append(MeasuredCluster("kspec", KspecProgram(OURS, {}, {}), folder / "kspec", options.port))
        if options.kafka:
            program = KafkaProgram(find_jars(options.kafka), KAFKAS_FLAGS)
            name = f"Apache Kafka {options.kafka}"
            clusters.append(MeasuredCluster(name, program, folder / "kafka", options.port + BROKERS + 1))
        measure(clusters, options)
        print(table(clusters))
    finally:
        for one in clusters:
            one.cluster.kill()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
