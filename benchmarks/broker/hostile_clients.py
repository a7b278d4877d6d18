"""The effect of clients that behave badly on a neighbour: `python -m benchmarks.broker.hostile_clients [--kafka 4.4.0]`.

One broker with many partitions. A producer sends 100 records a second of 1 KiB with acks=all; how long each waits for its
acknowledgement is measured by itself, and then while others misbehave: they do not read the answers that they ask for, read
a byte now and then, announce what they never send, or ask for what takes long. With `--kafka` Apache Kafka goes through the
same after ours, and with `--beside FOLDER` another checkout of this repository does before.
"""

import argparse
import contextlib
import multiprocessing
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import KafkaException, Producer

from benchmarks.broker.side_by_side import Server, resident, serving, start_kafka
from kspec.conformance.kafka.jars import find_jars
from kspec.conformance.kafka.process import free_port
from kspec.impl.wire.requests import request_bytes
from kspec.impl.wire.values import Message
from kspec.trials.faults.load import create_topic

A_SECOND, RECORD = 100, 1024
BUSY, IDLE = "busy", "idle"
AT_ONCE = 500


class NeighbourWaits(NamedTuple):
    """The times that records waited (ms), and how many were not acknowledged within `LIMIT_S`."""

    p50: float
    p99: float
    worst: float
    lost: int


LIMIT_S = 60


def neighbour(address: str, seconds: float, found: Any) -> None:
    """Produce at a steady rate, in a process of its own; the times go into a queue."""
    producer = Producer({"bootstrap.servers": address, "acks": "all", "log_level": 0, "message.timeout.ms": LIMIT_S * 1000})
    value, times, lost = os.urandom(RECORD), list[float](), list[object]()

    def taken(begun: float) -> Callable[[object, object], None]:
        def note(error: object, message: object) -> None:
            (times if error is None else lost).append((time.monotonic() - begun) * 1000)

        return note

    start = time.monotonic()
    for number in range(int(A_SECOND * seconds)):
        while (left := start + number / A_SECOND - time.monotonic()) > 0:
            producer.poll(left)
        with contextlib.suppress(BufferError, KafkaException):
            producer.produce(BUSY, value, on_delivery=taken(time.monotonic()))
    producer.flush(LIMIT_S)
    found.put((times, len(lost)))


def waits(address: str, seconds: float) -> NeighbourWaits:
    """Measure a neighbour."""
    around = multiprocessing.get_context("spawn")
    queue = around.Queue()
    process = around.Process(target=neighbour, args=(address, seconds, queue))
    process.start()
    times, lost = queue.get(timeout=seconds + 2 * LIMIT_S)
    process.join()
    if not times:
        return NeighbourWaits(float("inf"), float("inf"), float("inf"), lost)
    hundredths = statistics.quantiles(times, n=100)
    return NeighbourWaits(hundredths[49], hundredths[98], max(times), lost)


# ---- requests


def frame(api: str, version: int, message: Message, number: int = 1) -> bytes:
    """A request with its length."""
    body = request_bytes(api, version, number, message)
    return len(body).to_bytes(4, "big") + body


def metadata(names: list[str] | None = None) -> bytes:
    """Metadata of all topics, or of these, of which none is created."""
    topics = None if names is None else [Message(topic_id=bytes(16), name=name) for name in names]
    return frame("Metadata", 12, Message(topics=topics, allow_auto_topic_creation=False))


def fetch(partitions: int, topic: str = IDLE) -> bytes:
    """A fetch that names so many partitions, whether they are there or not, outside any session."""
    named = [Message(partition=one, fetch_offset=0, partition_max_bytes=1 << 20) for one in range(partitions)]
    fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 50 << 20, "session_epoch": -1}
    return frame("Fetch", 11, Message(topics=[Message(topic=topic, partitions=named)], **fields))


def configs(topics: list[str]) -> bytes:
    """All settings of topics, with what stands behind them."""
    resources = [Message(resource_type=2, resource_name=name, configuration_keys=None) for name in topics]
    return frame("DescribeConfigs", 4, Message(resources=resources, include_synonyms=True))


def creations(count: int) -> bytes:
    """Topics that are to be created, or rather not: the request is only checked."""
    topics = [Message(name=f"new-{one}", num_partitions=1, replication_factor=1) for one in range(count)]
    return frame("CreateTopics", 7, Message(topics=topics, timeout_ms=30_000, validate_only=True))


# ---- how they misbehave


class Crowd:
    """Connections, and threads that send and read on them, until the crowd leaves."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._sockets: list[socket.socket] = []
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    def connect(self, small: bool = False) -> socket.socket:
        """A connection; a small one takes few bytes of answers."""
        made = socket.socket()
        if small:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        made.connect(("127.0.0.1", self._port))
        made.settimeout(0.5)
        self._sockets.append(made)
        return made

    def do(self, work: Callable[[], None]) -> None:
        """Do something again and again, in a thread."""

        def go() -> None:
            with contextlib.suppress(OSError):
                while not self._over.is_set():
                    with contextlib.suppress(TimeoutError):
                        work()

        thread = threading.Thread(target=go, daemon=True)
        thread.start()
        self._threads.append(thread)

    def leave(self) -> None:
        """Close all connections."""
        self._over.set()
        for one in self._sockets:
            one.close()
        for thread in self._threads:
            thread.join(5)


def send(one: socket.socket, data: bytes) -> None:
    """Send what the other side takes now."""
    with contextlib.suppress(OSError):
        one.sendall(data)


def unread(crowd: Crowd, request: bytes, connections: int = 100, each: int = 100) -> None:
    """Ask many times on many connections, and read nothing."""
    for _ in range(connections):
        one = crowd.connect()
        one.settimeout(0.01)
        send(one, request * each)


def asked_again(crowd: Crowd, request: bytes, connections: int = 1) -> None:
    """Ask, read the answer, and ask again."""

    def work(one: socket.socket) -> None:
        one.sendall(request)
        left = int.from_bytes(received(one, 4), "big")
        while left:
            left -= len(received(one, min(left, 1 << 20)))
        time.sleep(0.05)

    for _ in range(connections):
        one = crowd.connect()
        one.settimeout(LIMIT_S)
        crowd.do(lambda one=one: work(one))  # type: ignore[misc]


def received(one: socket.socket, count: int) -> bytes:
    """So many bytes. Raises: `OSError`, if they do not come."""
    found = b""
    while len(found) < count:
        piece = one.recv(count - len(found))
        if not piece:
            raise ConnectionError
        found += piece
    return found


def pipelined(crowd: Crowd, request: bytes, each: int = 10_000) -> None:
    """Send very many requests at once, and read the answers as they come."""
    one = crowd.connect()

    def ask() -> None:
        one.sendall(request * each)
        time.sleep(1)

    def read() -> None:
        one.recv(1 << 20)

    crowd.do(ask)
    crowd.do(read)


def slow(crowd: Crowd, request: bytes, connections: int = 50) -> None:
    """Read a byte in a second."""
    readers = [crowd.connect(small=True) for _ in range(connections)]
    for one in readers:
        one.settimeout(0.01)
        send(one, request * 20)

    def read() -> None:
        for one in readers:
            with contextlib.suppress(TimeoutError):
                one.recv(1)
        time.sleep(1)

    crowd.do(read)


def announced(crowd: Crowd, connections: int = 100) -> None:
    """Announce 100 MB, and send a KiB."""
    for _ in range(connections):
        send(crowd.connect(), (100_000_000).to_bytes(4, "big") + bytes(1024))


def silent(crowd: Crowd, connections: int = 2_000) -> None:
    """Open connections, half of them with a part of a length."""
    for number in range(connections):
        one = crowd.connect()
        if number % 2:
            send(one, b"\0\0")


def scenarios(partitions: int, topics: list[str]) -> dict[str, Callable[[Crowd], None]]:
    """The ways in which clients misbehave, by what is said of them."""
    groups = frame("ListGroups", 4, Message(states_filter=[]))
    return {
        "100 do not read Metadata of all": lambda crowd: unread(crowd, metadata()),
        "1 pipelines 10,000 Metadata of all": lambda crowd: pipelined(crowd, metadata()),
        "100 do not read Fetch answers": lambda crowd: unread(crowd, fetch(1, BUSY)),
        "50 read Metadata a byte a second": lambda crowd: slow(crowd, metadata()),
        "20 do not read DescribeConfigs of all topics": lambda crowd: unread(crowd, configs(topics), 20),
        "100 do not read ListGroups": lambda crowd: unread(crowd, groups, 100, 1000),
        "100 announce 100 MB and send a KiB": announced,
        "2,000 say nothing": silent,
        "1 fetches 100,000 partitions": lambda crowd: asked_again(crowd, fetch(100_000)),
        "1 asks for 100,000 unknown topics": lambda crowd: asked_again(
            crowd, metadata([f"none-{one}" for one in range(100_000)])
        ),
        "1 would create 10,000 topics": lambda crowd: asked_again(crowd, creations(10_000)),
        f"10 ask for Metadata of all {partitions:,}": lambda crowd: asked_again(crowd, metadata(), 10),
    }


# ---- brokers


def start_ours(folder: Path, checkout: Path | None) -> Server:
    """`kspec broker`, of another checkout if one is given."""
    port = free_port()
    code = "import sys; from kspec.cli.main import main; sys.exit(main())"
    arguments = ["broker", "--log-dir", str(folder / "ours"), "--override", f"listeners=PLAINTEXT://127.0.0.1:{port}"]
    begun = time.monotonic()
    with (folder / "ours.log").open("w") as log:
        process = subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=log, stderr=log, cwd=checkout)
    name = "kspec" if checkout is None else f"kspec of {checkout.name}"
    return serving(name, process, port, begun)


def servers(options: argparse.Namespace, folder: Path) -> Iterator[Server]:
    """Those that are measured, one after the other."""
    for number, checkout in enumerate([options.beside, None] if options.beside else [None]):
        (folder / str(number)).mkdir()
        yield start_ours(folder / str(number), checkout)
    if options.kafka:
        yield start_kafka(folder, find_jars(options.kafka), options.heap)._replace(name=f"Apache Kafka {options.kafka}")


def measure(server: Server, options: argparse.Namespace) -> None:
    """Go through all scenarios, and print a line for each."""
    address = f"127.0.0.1:{server.port}"
    create_topic(address, BUSY, 1, 1)
    topics = [f"{IDLE}-{number}" for number in range(0, options.partitions, AT_ONCE)]
    for number, name in enumerate(topics):
        create_topic(address, name, min(AT_ONCE, options.partitions - number * AT_ONCE), 1)
    many = [f"few-{number}" for number in range(options.topics)]
    for name in many:
        create_topic(address, name, 1, 1)
    waits(address, options.warm)
    quiet = waits(address, options.seconds)
    print(line(server, "nobody", quiet, quiet), flush=True)
    for said, begin in scenarios(options.partitions, many).items():
        if options.only and options.only not in said:
            continue
        crowd = Crowd(server.port)
        threading.Timer(1, begin, [crowd]).start()
        found = waits(address, options.seconds)
        crowd.leave()
        print(line(server, said, found, quiet), flush=True)
        time.sleep(2)


def line(server: Server, said: str, found: NeighbourWaits, quiet: NeighbourWaits) -> str:
    """A line of the table."""
    worse = f"{found.p99 / quiet.p99:.1f}x"
    times = f"{found.p50:.1f} | {found.p99:.1f} | {worse} | {found.worst:.0f}"
    return f"| {server.name} | {said} | {times} | {found.lost} | {resident(server.process.pid)} |"


def main() -> None:
    """Measure one broker after the other, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="Another checkout of this repository.")
    parser.add_argument("--partitions", type=int, default=3_000, metavar="N")
    parser.add_argument("--topics", type=int, default=200, metavar="N", help="Whose settings are asked for.")
    parser.add_argument("--seconds", type=float, default=15, metavar="S", help="How long each is measured.")
    parser.add_argument("--warm", type=float, default=5, metavar="S")
    parser.add_argument("--heap", default="1g", metavar="SIZE", help="Of Kafka.")
    parser.add_argument("--only", metavar="TEXT", help="Those scenarios whose name has this in it.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    print("| | others | p50 (ms) | p99 (ms) | beside nobody | worst (ms) | lost | memory (MiB) |")
    print("|---|---|---|---|---|---|---|---|")
    try:
        for server in servers(options, folder):
            try:
                measure(server, options)
            finally:
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(120)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
