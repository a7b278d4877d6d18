"""Mixed clusters: brokers of ours and of Apache Kafka replicate the same partitions, under either controller."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kspec.conformance.kafka.process import CLUSTER_ID, HOST
from kspec.conformance.mirror.controller import NODE, ControllerUnderTest
from kspec.impl.records.batch import headers
from kspec.impl.storage import RealDisk
from kspec.impl.storage.small_files import format_directory, is_formatted
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerProcess
from tests.impl.controller.process import MemberProcess
from tests.impl.controller.test_on_kafka import controller_for, real_broker
from tests.limits.turns import Turns

pytestmark = pytest.mark.slow

ANSWER_S, START_S = 60.0, 180.0
TOPIC = "mixed"


def member(folder: Path, node: int, controller: int, port: int) -> BrokerProcess:
    """A broker of this implementation that is a member of a cluster."""
    settings = [
        "process.roles=broker",
        f"node.id={node}",
        f"cluster.id={CLUSTER_ID}",
        f"controller.quorum.voters={controller}@{HOST}:{port}",
        "broker.heartbeat.interval.ms=200",
        "replica.fetch.backoff.ms=100",
        "min.insync.replicas=2",
    ]
    data = folder / f"member-{node}"
    if not is_formatted(RealDisk(), str(data)):
        format_directory(RealDisk(), str(data), CLUSTER_ID, node)
    return BrokerProcess(data, overrides=settings)


def until(condition: Callable[[], Any], what: str, seconds: float = START_S) -> None:
    """Wait for a condition; the limit is an emergency stop."""
    end = time.monotonic() + seconds
    turns = Turns()
    while not condition():
        turns.go()
        assert time.monotonic() < end, f"it never happened: {what}"
        time.sleep(0.1)


def produced(addresses: str, count: int) -> None:
    """Write records that all in-sync replicas must have."""
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": addresses, "acks": "all", "enable.idempotence": True})
    for number in range(count):
        producer.produce(
            TOPIC,
            b"value %d" % number,
            partition=number % 2,  # without it, all that is sent within 10 ms may go to the same one
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(ANSWER_S) == 0
    assert failed == []


def stored(folder: Path, partition: int) -> bytes:
    """The segments of a partition."""
    return b"".join(file.read_bytes() for file in sorted((folder / f"{TOPIC}-{partition}").glob("*.log")))


def in_sync(admin: AdminClient, replicas: int) -> bool:
    partitions = admin.list_topics(TOPIC, timeout=ANSWER_S).topics[TOPIC].partitions
    return all(len(one.isrs) == replicas for one in partitions.values())


def same_bytes(folders: list[Path]) -> bool:
    """Whether both partitions hold the same in all folders, and something."""
    contents = [{stored(folder, partition) for folder in folders} for partition in (0, 1)]
    return all(len(found) == 1 and found != {b""} for found in contents)


def test_two_of_ours_and_one_of_kafka_s_replicate_both_ways(tmp_path: Path) -> None:
    """Partition 0 is led by Kafka and followed by ours, partition 1 the other way round."""
    with ExitStack() as stack:
        controller = stack.enter_context(controller_for(tmp_path, NEWEST, "min.insync.replicas=2"))
        theirs, at_theirs = stack.enter_context(real_broker(tmp_path, NEWEST, controller, 3))
        theirs.start()
        ours = [stack.enter_context(member(tmp_path, node, 100, controller.port)) for node in (1, 2)]
        until(lambda: theirs.started, "Kafka's broker starts")
        with MemberProcess(controller.port) as other:
            other.create_on(TOPIC, [3, 1, 2], [1, 2, 3])
        addresses = ",".join([at_theirs, *(one.address for one in ours)])
        produced(addresses, 200)
        admin = AdminClient({"bootstrap.servers": addresses})
        until(lambda: in_sync(admin, 3), "all are in sync")
        folders = [tmp_path / "broker-3" / "data", *(one.folder for one in ours)]
        until(lambda: same_bytes(folders), "all have the same bytes")
        assert all(sum(one.record_count for one in headers(stored(folders[0], partition))) > 0 for partition in (0, 1))
        # The leader of partition 0 goes: one of ours leads, with every record.
        theirs.kill()
        until(lambda: admin.list_topics(TOPIC, timeout=ANSWER_S).topics[TOPIC].partitions[0].leader in (1, 2), "ours leads")
        produced(addresses, 50)
        theirs.start()
        until(lambda: in_sync(admin, 3), "Kafka's broker is in sync again")
        until(lambda: same_bytes(folders), "all have the same bytes")
        theirs.stop()


@contextmanager
def kafka_s_controller(folder: Path) -> Iterator[int]:
    """Apache Kafka's own controller, and its port."""
    real = ControllerUnderTest(jars_or_skip(NEWEST), folder / "controller", eligible_leader_replicas=True)
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(real.start(), loop).result(START_S)
    try:
        listener = str(real.process.settings["listeners"])
        yield int(listener.rpartition(":")[2])
    finally:
        asyncio.run_coroutine_threadsafe(real.close(), loop).result(START_S)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=600)
        loop.close()


def test_three_of_ours_under_kafka_s_controller(tmp_path: Path) -> None:
    """They register, are unfenced, replicate, hand requests on, and leave in order."""
    with ExitStack() as stack:
        port = stack.enter_context(kafka_s_controller(tmp_path))
        ours = [stack.enter_context(member(tmp_path, node, NODE, port)) for node in (1, 2, 3)]
        addresses = ",".join(one.address for one in ours)
        admin = AdminClient({"bootstrap.servers": addresses})
        for future in admin.create_topics([NewTopic(TOPIC, 2, 3)]).values():
            future.result(ANSWER_S)
        produced(addresses, 200)
        until(lambda: in_sync(admin, 3), "all are in sync")
        until(lambda: same_bytes([one.folder for one in ours]), "the same bytes")
