"""The broker beside Apache Kafka: `python -m benchmarks.broker.side_by_side [--kafka 4.4.0] [--warm 90] [--runs 3]`.

Both run at the same time on this machine, and take turns.
Records of 1 KiB, random, in batches of 64 KiB, librdkafka with its default linger, three partitions. MB per CPU-second
counts the broker's processor time alone, and is what noise touches least. Times to an acknowledgement are those at 1,000
records a second. Before each run all that was written is on the disk, and the memory for it is there (see
`benchmarks.broker.memory`).
"""

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from benchmarks.broker.load import MIB, RECONNECT, LoadTarget, Rate, Waits, consume, latencies, measured, middle, produce
from benchmarks.broker.memory import settle
from kspec.conformance.kafka.jars import Jars, find_jars, java
from kspec.conformance.kafka.process import CLUSTER_ID, free_port, run_storage_tool, write_properties
from kspec.conformance.kafka.single import settings_of

COLUMNS = (
    "produce MB/s",
    "MB per CPU-s",
    "consume MB/s",
    "MB per CPU-s",
    "p50, p99 (ms)",
    "first record (s)",
    "memory (MiB)",
)
BATCHES = (("batch.size", 65536), ("queue.buffering.max.kbytes", 131072))


class Server(NamedTuple):
    """A broker under test."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: int
    seconds_to_first_record: float

    @property
    def target(self) -> LoadTarget:
        """The destination of records."""
        return LoadTarget(f"127.0.0.1:{self.port}", "load", 3, BATCHES)

    def cpu(self) -> float:
        """Processor time so far (s)."""
        return cpu_seconds(self.process.pid)


def cpu_seconds(pid: int) -> float:
    """Processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int) -> int:
    """Resident memory of a process in MiB."""
    return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") // MIB


def start_ours(folder: Path) -> Server:
    """`kspec broker`."""
    port = free_port()
    listener = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    code = "import sys; from kspec.cli.main import main; sys.exit(main())"
    arguments = ["broker", "--log-dir", str(folder / "ours"), "--override", listener, "--override", "num.partitions=3"]
    begun = time.monotonic()
    with (folder / "ours.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=log, stderr=log)
    return serving("kspec broker", process, port, begun)


def start_kafka(folder: Path, jars: Jars, heap: str = "1g") -> Server:
    """Apache Kafka, broker and controller in one process."""
    port = free_port()
    settings = settings_of(folder, port, free_port()) | {"num.partitions": 3, "offsets.topic.num.partitions": 50}
    config = folder / "server.properties"
    write_properties(config, settings)
    flags = (f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC")
    run_storage_tool(jars, flags, CLUSTER_ID, config)
    command = [java(), *flags, "-cp", os.pathsep.join(map(str, jars.class_path))]
    begun = time.monotonic()
    with (folder / "kafka.log").open("w") as log:
        process = subprocess.Popen([*command, "kafka.Kafka", str(config)], stdout=log, stderr=log)
    return serving("Apache Kafka", process, port, begun)


def serving(name: str, process: "subprocess.Popen[bytes]", port: int, begun: float) -> Server:
    """The server once it has acknowledged a record; if it does not, it is ended."""
    try:
        return Server(name, process, port, first_record(port, begun))
    except BaseException:
        process.kill()
        raise


def first_record(port: int, begun: float) -> float:
    """Seconds until a record is acknowledged."""
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "log_level": 0, **RECONNECT})
    producer.produce("first", b"record")
    if producer.flush(120):
        raise RuntimeError("no record was acknowledged within two minutes")
    return time.monotonic() - begun


def main() -> None:
    """Start, warm up, take turns, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--warm", type=float, default=90, metavar="S")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=12, metavar="S")
    parser.add_argument("--memory", type=float, default=6, metavar="GIB", help="Touched before each run; see memory.py.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    servers: list[Server] = []
    try:
        servers.append(start_ours(folder))
        idle = resident(servers[0].process.pid)
        if options.kafka:
            servers.append(start_kafka(folder, find_jars(options.kafka)))
        rates: dict[tuple[str, str], list[Rate]] = {}
        for server in servers:
            produce(server.target, options.warm)
        for _ in range(options.runs):
            for server in servers:
                settle(options.memory)
                done = measured(server.cpu, partial(produce, server.target, options.seconds))
                rates.setdefault((server.name, "produce"), []).append(done)
        for _ in range(options.runs):
            for server in servers:
                done = measured(server.cpu, partial(consume, server.target, 200))
                rates.setdefault((server.name, "consume"), []).append(done)
        waits: dict[str, list[Waits]] = {server.name: [] for server in servers}
        for _ in range(options.runs):
            for server in servers:
                settle(options.memory)
                waits[server.name].append(latencies(server.target, 1_000, options.seconds))
        print(f"| | {' | '.join(COLUMNS)} |")
        print(f"|---|{'---|' * len(COLUMNS)}")
        for server in servers:
            cells = [
                f"{statistics.median(getattr(rate, field) for rate in rates[server.name, kind]):.0f}"
                for kind in ("produce", "consume")
                for field in Rate._fields
            ]
            memory = (
                f"{idle} to {resident(server.process.pid)}" if server is servers[0] else str(resident(server.process.pid))
            )
            cells += [middle(waits[server.name]), f"{server.seconds_to_first_record:.2f}", memory]
            print(f"| {server.name} | {' | '.join(cells)} |")
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
        for server in servers:
            server.process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
