"""The broker beside Apache Kafka: `python -m benchmarks.broker.side_by_side [--kafka 4.4.0] [--warm 90] [--runs 3]`.

Both run at the same time on this machine, and take turns.
Records of 1 KiB, random, in batches of 64 KiB, librdkafka with its default linger, three partitions. MB per CPU-second
counts the broker's processor time alone, and is what noise touches least.
"""

import argparse
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from conformance.kafka.jars import Jars, find_jars, java

MIB = 1 << 20
RECORD = 1024
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}


class Server(NamedTuple):
    """A broker under test."""

    name: str
    process: "subprocess.Popen[bytes]"
    port: int
    seconds_to_first_record: float


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


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
    code = "import sys; from model_check.cli.main import main; sys.exit(main())"
    arguments = ["broker", "--log-dir", str(folder / "ours"), "--override", listener, "--override", "num.partitions=3"]
    begun = time.monotonic()
    with (folder / "ours.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=log, stderr=log)
    return serving("kspec broker", process, port, begun)


def start_kafka(folder: Path, jars: Jars, heap: str = "1g") -> Server:
    """Apache Kafka, broker and controller in one process."""
    port, controller = free_port(), free_port()
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "log.dirs": str(folder / "kafka"),
        "offsets.topic.replication.factor": "1",
        "num.partitions": "3",
    }
    config = folder / "server.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings.items()), encoding="utf-8")
    class_path = os.pathsep.join(map(str, jars.class_path))
    command = [java(), f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC", "-cp", class_path]
    formatting = ["kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(config)]
    subprocess.run([*command, *formatting], check=True, capture_output=True, timeout=120)
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


class Rate(NamedTuple):
    """MB in a second, and in a second of the broker's processor time."""

    per_second: float
    per_cpu_second: float


def measured(server: Server, work: Any) -> Rate:
    """Run some work that returns the bytes it moved."""
    cpu, begun = cpu_seconds(server.process.pid), time.monotonic()
    moved = work() / MIB
    return Rate(moved / (time.monotonic() - begun), moved / max(cpu_seconds(server.process.pid) - cpu, 0.01))


def produce(server: Server, seconds: float) -> int:
    """Produce for so long; the bytes of the values."""
    settings = {"bootstrap.servers": f"127.0.0.1:{server.port}", "batch.size": 65536, "queue.buffering.max.kbytes": 131072}
    producer = Producer(settings)
    value, sent, end = os.urandom(RECORD), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(500):
            try:
                producer.produce("load", value)
                sent += 1
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(60):
        raise RuntimeError(f"{server.name} did not acknowledge everything")
    return sent * RECORD


def consume(server: Server, megabytes: int) -> int:
    """Consume so much from the beginning; the bytes of the values."""
    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{server.port}", "group.id": "load", "enable.auto.commit": False})
    consumer.assign([TopicPartition("load", number, 0) for number in range(3)])
    found = 0
    while found < megabytes * MIB:
        found += sum(len(message.value() or b"") for message in consumer.consume(1000, 5.0))
    consumer.close()
    return found


def main() -> None:
    """Start, warm up, take turns, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--warm", type=float, default=90, metavar="S")
    parser.add_argument("--runs", type=int, default=3, metavar="N")
    parser.add_argument("--seconds", type=float, default=12, metavar="S")
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
            produce(server, options.warm)
        for _ in range(options.runs):
            for server in servers:
                done = measured(server, lambda one=server: produce(one, options.seconds))
                rates.setdefault((server.name, "produce"), []).append(done)
        for _ in range(options.runs):
            for server in servers:
                done = measured(server, lambda one=server: consume(one, 200))
                rates.setdefault((server.name, "consume"), []).append(done)
        print("| | produce MB/s | MB per CPU-s | consume MB/s | MB per CPU-s | first record (s) | memory (MiB) |")
        print("|---|---|---|---|---|---|---|")
        for server in servers:
            cells = [
                f"{statistics.median(getattr(rate, field) for rate in rates[server.name, kind]):.0f}"
                for kind in ("produce", "consume")
                for field in Rate._fields
            ]
            memory = f"{idle} to {resident(server.process.pid)}" if server is servers[0] else resident(server.process.pid)
            print(f"| {server.name} | {' | '.join(cells)} | {server.seconds_to_first_record:.2f} | {memory} |")
    finally:
        for server in servers:
            server.process.send_signal(signal.SIGTERM)
        for server in servers:
            server.process.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
