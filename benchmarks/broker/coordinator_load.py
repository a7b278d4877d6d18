"""The time to read a log of groups at a start: `python -m benchmarks.broker.groups --load 1000000 [--kafka 4.4.0]`.

One broker of each. A consumer commits once; the broker is stopped, and so many commits are appended to the only partition of
`__consumer_offsets`, each a batch of its own, as coordinators write them. Then the broker is started several times, and a
client asks for the offsets until it gets them. The same is done before, with the log as short as it was: the difference is
the time that the log costs, without that of the start. Exit status 1 if an offset is not the last that was committed.
"""

import os
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.broker.hostile_clients import LIMIT_S, frame, received
from kspec.conformance.kafka.jars import Jars, find_jars, java
from kspec.conformance.kafka.process import CLUSTER_ID, free_port, run_storage_tool, write_properties
from kspec.conformance.kafka.single import settings_of
from kspec.impl.coordinator.records import encode
from kspec.impl.records.batch import headers
from kspec.impl.records.record import new_batch
from kspec.impl.wire.requests import read_response
from kspec.impl.wire.values import Message
from kspec.spec.coordinator.records import OffsetCommitRecord
from kspec.spec.values import Epoch, GroupId, Offset, TimestampMs

GROUP, COMMITTED, PARTITIONS = "writers", "committed", 16
OVERRIDES = {"offsets.topic.num.partitions": 1, "offsets.topic.replication.factor": 1, "log.cleaner.enable": "false"}


class LoadedBroker(NamedTuple):
    """A broker that is started again and again on one folder."""

    name: str
    log_dir: Path
    port: int
    command: list[str]


def ours(folder: Path) -> LoadedBroker:
    """`kspec broker`."""
    port = free_port()
    code = "import sys; from kspec.cli.main import main; sys.exit(main())"
    settings = {"listeners": f"PLAINTEXT://127.0.0.1:{port}", **OVERRIDES}
    given = [part for name, value in settings.items() for part in ("--override", f"{name}={value}")]
    log_dir = folder / "ours"
    return LoadedBroker("kspec", log_dir, port, [sys.executable, "-c", code, "broker", "--log-dir", str(log_dir), *given])


def kafka(folder: Path, release: str, jars: Jars, heap: str) -> LoadedBroker:
    """Apache Kafka, broker and controller in one process."""
    port = free_port()
    log_dir = folder / "kafka"
    log_dir.mkdir()
    settings = settings_of(log_dir, port, free_port()) | OVERRIDES
    config = folder / "server.properties"
    write_properties(config, settings)
    flags = (f"-Xms{heap}", f"-Xmx{heap}", "-XX:+UseG1GC")
    run_storage_tool(jars, flags, CLUSTER_ID, config)
    command = [java(), *flags, "-cp", os.pathsep.join(map(str, jars.class_path)), "kafka.Kafka", str(config)]
    return LoadedBroker(f"Apache Kafka {release}", Path(str(settings["log.dirs"])), port, command)


def ask(port: int, api: str, version: int, message: Message) -> Message:
    """The answer to one request. Raises: `OSError`."""
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as one:
        one.sendall(frame(api, version, message))
        return read_response(api, version, memoryview(received(one, int.from_bytes(received(one, 4), "big"))))[1]


def until(ready: Callable[[], bool]) -> None:
    """Wait for something. Raises: `RuntimeError` after two minutes."""
    end = time.monotonic() + 2 * LIMIT_S
    while True:
        try:
            if ready():
                return
        except OSError:
            pass
        if time.monotonic() > end:
            raise RuntimeError("it does not come")
        time.sleep(0.005)


def run(broker: LoadedBroker, work: Callable[[], None], folder: Path) -> float:
    """Start a broker, do something, stop it; how long it took from the start to the end of the work (s)."""
    with (folder / "broker.log").open("a") as log:
        begun = time.monotonic()
        process = subprocess.Popen(broker.command, stdout=log, stderr=log)
    try:
        work()
        return time.monotonic() - begun
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(LIMIT_S)


def commit_once(port: int) -> None:
    """The first commit, which makes the topic of groups."""
    places = [Message(partition_index=0, committed_offset=0, committed_leader_epoch=-1, committed_metadata="")]
    fields = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}

    def committed() -> bool:
        ask(port, "FindCoordinator", 3, Message(key=GROUP, key_type=0))
        answer = ask(port, "OffsetCommit", 8, Message(topics=[Message(name=COMMITTED, partitions=places)], **fields))
        return bool(answer.topics[0].partitions[0].error_code == 0)

    until(lambda: ask(port, "Metadata", 9, Message(topics=[Message(name=COMMITTED)])).topics[0].error_code == 0)
    until(committed)


def has_offsets(port: int, last: list[int]) -> bool:
    """Whether a client gets the offsets. Raises: `ValueError`, if they are others."""
    topics = [Message(name=COMMITTED, partition_indexes=list(range(len(last))))]
    answer = ask(port, "OffsetFetch", 7, Message(group_id=GROUP, topics=topics, require_stable=False))
    if answer.error_code:
        return False
    found = [one.committed_offset for one in sorted(answer.topics[0].partitions, key=lambda one: one.partition_index)]
    if found != last:
        raise ValueError(f"{found} is there, and {last} was committed")
    return True


def append_commits(log_dir: Path, count: int) -> tuple[float, list[int]]:
    """Append commits to the log of groups: its size (MB), and the last offset of each partition."""
    segment = max((log_dir / "__consumer_offsets-0").glob("*.log"))
    offset = max([int(segment.stem), *(header.next_offset for header in headers(segment.read_bytes()))])
    last, now_ms = [-1] * PARTITIONS, int(time.time() * 1000)
    last[0] = 0
    with segment.open("ab") as log:
        for number in range(count):
            partition, committed = number % PARTITIONS, number + 1
            record = OffsetCommitRecord(
                GroupId(GROUP), COMMITTED, partition, Offset(committed), Epoch(-1), "", TimestampMs(now_ms)
            )
            batch = bytearray(new_batch([(now_ms, *encode(record))]))
            struct.pack_into(">q", batch, 0, offset + number)
            struct.pack_into(">i", batch, 12, 0)
            last[partition] = committed
            log.write(batch)
    return segment.stat().st_size / 1e6, last


def measure(brokers: list[LoadedBroker], commits: int, runs: int, folder: Path) -> None:
    """Print a table. The brokers are started in turns."""
    for one in brokers:
        run(one, partial(commit_once, one.port), folder)

    def starts(last: list[int]) -> dict[str, float]:
        took: dict[str, list[float]] = {one.name: [] for one in brokers}
        for _ in range(runs):
            for one in brokers:
                took[one.name].append(run(one, partial(until, partial(has_offsets, one.port, last)), folder))
        return {name: statistics.median(times) for name, times in took.items()}

    short = starts([0])
    sizes: dict[str, float] = {}
    last: list[int] = []
    for one in brokers:
        sizes[one.name], last = append_commits(one.log_dir, commits)
    starts(last)  # the first time what was appended is recovered
    long = starts(last)
    print("| | log (MB) | start with a short log (s) | with this log (s) | difference (s) |")
    print("|---|---|---|---|---|")
    for name, before in short.items():
        print(f"| {name} | {sizes[name]:.0f} | {before:.2f} | {long[name]:.2f} | {long[name] - before:.2f} |")


def measure_load(commits: int, release: str | None, runs: int, heap: str = "1g") -> None:
    """Measure ours, and Apache Kafka if a release is named."""
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    try:
        brokers = [ours(folder)]
        if release:
            brokers.append(kafka(folder, release, find_jars(release), heap))
        measure(brokers, commits, runs, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
