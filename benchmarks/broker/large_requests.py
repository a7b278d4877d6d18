"""Requests that name many things: `python -m benchmarks.broker.large_requests [--kafka 4.4.0] [--things 100000]`.

One connection sends one request of each API that takes a list, with very many things in it. A neighbour asks ApiVersions
every 2 ms on a connection of its own; the table has the longest that it has waited while the request was answered, and how
long the answer took. The neighbour is a process of its own, so that it is the broker that is measured.

What is asked for is there (partitions of a topic, groups, offsets) or is not: an error must not take long either. With
`--most MS` the exit status is 1 if ours has let the neighbour wait longer.
"""

import argparse
import multiprocessing
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.broker.hostile_clients import LIMIT_S, frame, received, start_ours
from benchmarks.broker.side_by_side import Server, start_kafka
from kspec.conformance.kafka.jars import find_jars
from kspec.impl.records.record import new_batch
from kspec.impl.wire.requests import read_response
from kspec.impl.wire.values import Message
from kspec.trials.faults.load import create_topic

WIDE = "wide"
"""The topic with as many partitions as the cluster has in all, but for those that are made and deleted."""

GROUP = "committers"
NO_ID = bytes(16)
EVERY_S = 0.002


class LargeRequest(NamedTuple):
    """A request, by what is said of it."""

    said: str
    api: str
    version: int
    message: Callable[[], Message]


def partitions(count: int, fields: Callable[[int], dict[str, Any]]) -> list[Message]:
    """So many partitions of one topic."""
    return [Message(**fields(number)) for number in range(count)]


def committed(number: int) -> dict[str, Any]:
    """A partition in OffsetCommit."""
    return {"partition_index": number, "committed_offset": 7, "committed_leader_epoch": -1, "committed_metadata": ""}


def produced(topic: str, count: int, batch: bytes) -> Message:
    """A batch for each partition of a topic."""
    data = partitions(count, lambda number: {"index": number, "records": batch})
    return Message(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=[Message(name=topic, partition_data=data)])


def fetched(topic: str, count: int) -> Message:
    """A fetch outside any session."""
    named = partitions(count, lambda one: {"partition": one, "fetch_offset": 0, "partition_max_bytes": 1 << 20})
    fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 50 << 20, "session_epoch": -1}
    return Message(topics=[Message(topic=topic, partitions=named)], **fields)


def commits(topic: str, count: int) -> Message:
    """A commit by nobody's member."""
    fields = {"group_id": GROUP, "generation_id_or_member_epoch": -1, "member_id": "", "group_instance_id": None}
    return Message(topics=[Message(name=topic, partitions=partitions(count, committed))], **fields)


def created(names: list[str], each: int, **fields: Any) -> Message:
    """Topics that are to be created."""
    topics = [Message(name=name, num_partitions=each, replication_factor=1) for name in names]
    return Message(topics=topics, timeout_ms=LIMIT_S * 1000, **fields)


def altered(names: list[str], value: str, **operation: int) -> Message:
    """A setting of many topics."""
    configs = [Message(name="retention.ms", value=value, **operation)]
    resources = [Message(resource_type=2, resource_name=name, configs=configs) for name in names]
    return Message(resources=resources, validate_only=False)


def requests_of_partitions(said: str, count: int, batch: bytes) -> Iterator[LargeRequest]:
    """The requests that name partitions of `WIDE`."""
    about = f"{count:,} partitions {said}"
    yield LargeRequest(f"Produce to {about}", "Produce", 9, lambda: produced(WIDE, count, batch))
    yield LargeRequest(f"Fetch of {about}", "Fetch", 11, lambda: fetched(WIDE, count))
    ends = {"timestamp": -1, "current_leader_epoch": -1}
    yield LargeRequest(
        f"ListOffsets of {about}",
        "ListOffsets",
        7,
        lambda: Message(
            replica_id=-1,
            isolation_level=0,
            topics=[Message(name=WIDE, partitions=partitions(count, lambda one: {"partition_index": one, **ends}))],
        ),
    )
    yield LargeRequest(
        f"DeleteRecords of {about}",
        "DeleteRecords",
        2,
        lambda: Message(
            timeout_ms=30_000,
            topics=[Message(name=WIDE, partitions=partitions(count, lambda one: {"partition_index": one, "offset": 1}))],
        ),
    )
    epochs = {"current_leader_epoch": -1, "leader_epoch": 0}
    yield LargeRequest(
        f"OffsetForLeaderEpoch of {about}",
        "OffsetForLeaderEpoch",
        3,
        lambda: Message(
            replica_id=-2,
            topics=[Message(topic=WIDE, partitions=partitions(count, lambda one: {"partition": one, **epochs}))],
        ),
    )
    yield LargeRequest(f"OffsetCommit of {about}", "OffsetCommit", 8, lambda: commits(WIDE, count))
    listed = [Message(name=WIDE, partition_indexes=list(range(count)))]
    yield LargeRequest(
        f"OffsetFetch of {about}",
        "OffsetFetch",
        7,
        lambda: Message(group_id=GROUP, topics=listed, require_stable=False),
    )
    yield LargeRequest(
        f"DescribeProducers of {about}",
        "DescribeProducers",
        0,
        lambda: Message(topics=[Message(name=WIDE, partition_indexes=list(range(count)))]),
    )
    yield LargeRequest(
        f"DescribeLogDirs of {about}",
        "DescribeLogDirs",
        4,
        lambda: Message(topics=[Message(topic=WIDE, partitions=list(range(count)))]),
    )
    moved = [Message(path="/none", topics=[Message(name=WIDE, partitions=list(range(count)))])]
    yield LargeRequest(
        f"AlterReplicaLogDirs of {about}",
        "AlterReplicaLogDirs",
        2,
        lambda: Message(dirs=moved),
    )
    yield LargeRequest(
        f"ElectLeaders of {about}",
        "ElectLeaders",
        2,
        lambda: Message(
            election_type=0, topic_partitions=[Message(topic=WIDE, partitions=list(range(count)))], timeout_ms=30_000
        ),
    )
    yield LargeRequest(
        f"AlterPartitionReassignments of {about}",
        "AlterPartitionReassignments",
        0,
        lambda: Message(
            timeout_ms=30_000,
            topics=[
                Message(name=WIDE, partitions=partitions(count, lambda one: {"partition_index": one, "replicas": None}))
            ],
        ),
    )
    yield LargeRequest(
        f"ListPartitionReassignments of {about}",
        "ListPartitionReassignments",
        0,
        lambda: Message(timeout_ms=30_000, topics=[Message(name=WIDE, partition_indexes=list(range(count)))]),
    )


def requests(things: int, wide: int, topics: int) -> Iterator[LargeRequest]:
    """All requests, in their order: what some make, others ask for. `wide`: the partitions of `WIDE`."""
    names = [f"made-{number:05}" for number in range(topics)]
    groups = [f"group-{number}" for number in range(things)]
    none = [f"none-{number}" for number in range(things)]
    yield LargeRequest(f"CreateTopics of {topics:,} topics", "CreateTopics", 7, lambda: created(names, 1))
    yield LargeRequest(f"CreateTopics of one with {topics:,}", "CreateTopics", 7, lambda: created(["one"], topics))
    more = [Message(name=name, count=2, assignments=None) for name in names]
    yield LargeRequest(
        f"CreatePartitions of {topics:,} topics",
        "CreatePartitions",
        3,
        lambda: Message(topics=more, timeout_ms=LIMIT_S * 1000, validate_only=False),
    )
    for said, count in (("there", wide), ("named", things)):
        yield from requests_of_partitions(said, count, new_batch([(0, None, b"x")]))
    yield LargeRequest(
        "OffsetFetch of all", "OffsetFetch", 7, lambda: Message(group_id=GROUP, topics=None, require_stable=False)
    )
    yield LargeRequest("DescribeLogDirs of all", "DescribeLogDirs", 4, lambda: Message(topics=None))
    yield LargeRequest("Metadata of all", "Metadata", 12, lambda: Message(topics=None, allow_auto_topic_creation=False))
    for version in (1, 12):
        asked = [Message(topic_id=NO_ID, name=name) for name in none]
        yield LargeRequest(
            f"Metadata of {things:,} unknown topics, version {version}",
            "Metadata",
            version,
            partial(Message, topics=asked, allow_auto_topic_creation=False),
        )
    pages = [Message(name=name) for name in [WIDE, *none]]
    yield LargeRequest(
        f"DescribeTopicPartitions of {things:,} topics",
        "DescribeTopicPartitions",
        0,
        lambda: Message(topics=pages, response_partition_limit=2_000, cursor=None),
    )
    described = [Message(resource_type=2, resource_name=name, configuration_keys=None) for name in names]
    yield LargeRequest(
        f"DescribeConfigs of {topics:,} topics",
        "DescribeConfigs",
        4,
        lambda: Message(resources=described, include_synonyms=True),
    )
    unknown = [Message(resource_type=2, resource_name=name, configuration_keys=None) for name in none]
    yield LargeRequest(
        f"DescribeConfigs of {things:,} unknown topics", "DescribeConfigs", 4, lambda: Message(resources=unknown)
    )
    yield LargeRequest(
        f"IncrementalAlterConfigs of {topics:,} topics",
        "IncrementalAlterConfigs",
        1,
        lambda: altered(names, "77000", config_operation=0),
    )
    yield LargeRequest(
        f"IncrementalAlterConfigs of {things:,} unknown topics",
        "IncrementalAlterConfigs",
        1,
        lambda: altered(none, "1", config_operation=0),
    )
    yield LargeRequest(f"AlterConfigs of {topics:,} topics", "AlterConfigs", 2, lambda: altered(names, "78000"))
    yield LargeRequest(
        f"CreateTopics of {things:,} invalid topics", "CreateTopics", 7, lambda: created([f"?{name}" for name in none], 1)
    )
    yield LargeRequest(
        f"FindCoordinator of {things:,} groups", "FindCoordinator", 4, lambda: Message(key_type=0, coordinator_keys=groups)
    )
    yield LargeRequest(f"DescribeGroups of {things:,}", "DescribeGroups", 5, lambda: Message(groups=groups))
    yield LargeRequest(f"DeleteGroups of {things:,}", "DeleteGroups", 2, lambda: Message(groups_names=groups))
    many = [Message(group_id=name, topics=None) for name in groups]
    yield LargeRequest(
        f"OffsetFetch of {things:,} groups", "OffsetFetch", 8, lambda: Message(groups=many, require_stable=False)
    )
    leaving = [Message(member_id=name, group_instance_id=None) for name in groups]
    yield LargeRequest(
        f"LeaveGroup of {things:,} members", "LeaveGroup", 4, lambda: Message(group_id=GROUP, members=leaving)
    )
    for said, count in (("there", wide), ("named", things)):
        yield LargeRequest(
            f"OffsetDelete of {count:,} partitions {said}",
            "OffsetDelete",
            0,
            partial(
                Message,
                group_id=GROUP,
                topics=[Message(name=WIDE, partitions=partitions(count, lambda one: {"partition_index": one}))],
            ),
        )
    yield LargeRequest(
        f"DeleteTopics of {topics:,} topics",
        "DeleteTopics",
        6,
        lambda: Message(topics=[Message(name=name, topic_id=NO_ID) for name in [*names, "one"]], timeout_ms=LIMIT_S * 1000),
    )
    yield LargeRequest(
        f"DeleteTopics of {things:,} unknown topics",
        "DeleteTopics",
        6,
        lambda: Message(topics=[Message(name=name, topic_id=NO_ID) for name in none], timeout_ms=LIMIT_S * 1000),
    )


def neighbour(port: int, over: Any, found: Any) -> None:
    """Ask ApiVersions again and again until it is over; the longest that an answer took (ms)."""
    request = frame("ApiVersions", 3, Message(client_software_name="n", client_software_version="1"))
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as one:
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        worst = 0.0
        found.put(0.0)
        while not over.is_set():
            begun = time.monotonic()
            one.sendall(request)
            received(one, int.from_bytes(received(one, 4), "big"))
            worst = max(worst, time.monotonic() - begun)
            time.sleep(EVERY_S)
    found.put(worst * 1000)


def longest_wait(port: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """The longest wait of a neighbour (ms) while something is done, and what that gives."""
    around = multiprocessing.get_context("spawn")
    over, found = around.Event(), around.Queue()
    process = around.Process(target=neighbour, args=(port, over, found))
    process.start()
    found.get(timeout=LIMIT_S)
    try:
        done = work()
    finally:
        time.sleep(0.5)
        over.set()
        worst = found.get(timeout=2 * LIMIT_S)
        process.join()
    return worst, done


def answered(port: int, request: bytes, api: str, version: int) -> tuple[float, Message]:
    """Send one request: how long its answer took (s), and the answer."""
    with socket.create_connection(("127.0.0.1", port), LIMIT_S) as one:
        one.settimeout(2 * LIMIT_S)
        begun = time.monotonic()
        one.sendall(request)
        body = received(one, int.from_bytes(received(one, 4), "big"))
        took = time.monotonic() - begun
    return took, read_response(api, version, memoryview(body))[1]


def errors_in(answer: Any) -> set[int]:
    """All error codes of an answer."""
    if isinstance(answer, list):
        return set[int]().union(*map(errors_in, answer))
    if not isinstance(answer, Message):
        return set()
    own = {answer.error_code} if "error_code" in answer.__dict__ else set()
    return own.union(*(errors_in(value) for value in answer.__dict__.values()))


def measure(server: Server, options: argparse.Namespace) -> float:
    """Send all requests, and print a line for each; the longest wait (ms)."""
    create_topic(f"127.0.0.1:{server.port}", WIDE, options.partitions, 1)
    warm = commits(WIDE, 1)
    end = time.monotonic() + LIMIT_S
    while errors_in(answered(server.port, frame("OffsetCommit", 8, warm), "OffsetCommit", 8)[1]) != {0}:
        assert time.monotonic() < end, "there is no coordinator"
        answered(server.port, frame("FindCoordinator", 3, Message(key=GROUP, key_type=0)), "FindCoordinator", 3)
        time.sleep(0.2)
    time.sleep(2)
    nothing = longest_wait(server.port, partial(time.sleep, 5))[0]
    print(f"| {server.name} | nothing | {nothing:.0f} | |  |", flush=True)
    most = 0.0
    for said, api, version, message in requests(options.things, options.partitions, options.topics):
        if options.only and options.only not in said:
            continue
        sent = frame(api, version, message())
        wait, (took, answer) = longest_wait(server.port, partial(answered, server.port, sent, api, version))
        most = max(most, wait)
        errors = ", ".join(map(str, sorted(errors_in(answer))))
        print(f"| {server.name} | {said} | {wait:.0f} | {took:.2f} | {errors} |", flush=True)
    return most


def main() -> None:
    """Measure one broker after the other, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kafka", metavar="RELEASE", help="Such as 4.4.0; without it ours runs alone.")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="Another checkout of this repository.")
    parser.add_argument("--partitions", type=int, default=3_000, metavar="N", help="That there are.")
    parser.add_argument("--things", type=int, default=100_000, metavar="N", help="That a request names.")
    parser.add_argument("--topics", type=int, default=1_000, metavar="N", help="That are created and deleted.")
    parser.add_argument("--heap", default="1g", metavar="SIZE", help="Of Kafka.")
    parser.add_argument("--only", metavar="TEXT", help="Those requests whose name has this in it.")
    parser.add_argument("--most", type=float, metavar="MS", help="Fail if ours lets a neighbour wait longer.")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kspec-benchmark-"))
    print("| | request | longest wait of a neighbour (ms) | answered after (s) | errors |")
    print("|---|---|---|---|---|")
    most = 0.0
    begin: list[Callable[[], Server]] = [partial(start_ours, folder, None)]
    if options.beside:
        (folder / "beside").mkdir()
        begin.insert(0, partial(start_ours, folder / "beside", options.beside))
    if options.kafka:
        begin.append(lambda: start_kafka(folder, find_jars(options.kafka), options.heap))
    try:
        for start in begin:
            server = start()
            try:
                found = measure(server, options)
                most = max(most, found) if server.name == "kspec" else most
            finally:
                server.process.send_signal(signal.SIGTERM)
                server.process.wait(120)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if options.most and most > options.most else 0)


if __name__ == "__main__":
    main()
