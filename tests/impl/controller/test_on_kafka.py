"""Apache Kafka and this controller: Kafka reads the metadata log, and its brokers are members."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, ElectionType, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from kspec.conformance.kafka.jars import Jars, java
from kspec.conformance.kafka.process import HOST, KafkaProcess, format_log_dir, free_port
from kspec.impl.metadata.files import FOLDER
from kspec.impl.wire.values import Message
from tests.conformance.kafka.releases import NEWEST, OLD, jars_or_skip
from tests.impl.controller.in_process import InProcess
from tests.impl.controller.process import ControllerProcess, MemberProcess
from tests.limits.turns import Turns
from tests.times import at_ms

pytestmark = pytest.mark.slow

START_S, ANSWER_S = 180.0, 60.0
BROKER = 1
RELEASES = {NEWEST: "next", OLD: "3.9"}
"""The releases under test, and the rules by which the controller decides for them."""


# ---- its decoder


def dumped(jars: Jars, *files: Path) -> list[dict[str, Any]]:
    """The metadata records that Kafka's own decoder finds, which is that of kafka-dump-log.

    The tool itself is not among the jars of 4.4.
    """
    path = ":".join(map(str, jars.class_path))
    command = [java(), "-Xmx256m", "-cp", path, str(Path(__file__).with_name("ReadMetadata.java")), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_kafka_s_decoder_reads_the_log_and_the_snapshot(tmp_path: Path) -> None:
    jars = jars_or_skip(NEWEST)
    controller = InProcess()
    controller.join()
    controller.others(2)
    controller.create_on("t", [1, 2], [2, 1])
    controller.heartbeat(want_fence=True)
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(controller.log.batches_from(controller.log.log.start_offset, 1 << 30))
    found = dumped(jars, log)
    kinds = [record["type"] for record in found]
    assert kinds[:3] == ["LEADER_CHANGE", "FeatureLevelRecord", "FeatureLevelRecord"]
    assert {"RegisterBrokerRecord", "BrokerRegistrationChangeRecord", "TopicRecord", "PartitionRecord"} <= set(kinds)
    fenced = [one["data"] for one in found if one["type"] == "BrokerRegistrationChangeRecord"]
    assert [(one["brokerId"], one["fenced"]) for one in fenced] == [(1, -1), (2, -1), (1, 1)]
    partitions = [one["data"] for one in found if one["type"] == "PartitionRecord"]
    assert [(one["partitionId"], one["replicas"], len(one["directories"])) for one in partitions] == [
        (0, [1, 2], 2),
        (1, [2, 1], 2),
    ]
    controller.log.take_snapshot(controller.core.image, at_ms(controller.now))
    controller.core.voter.snapshot_taken()
    snapshot = tmp_path / "00000000000000000020-0000000001.checkpoint"
    snapshot.write_bytes(controller.log.snapshot_bytes(0, 1 << 30))
    kinds_of_snapshot = [record["type"] for record in dumped(jars, snapshot)]
    assert kinds_of_snapshot.count("RegisterBrokerRecord") == 2
    assert kinds_of_snapshot.count("PartitionRecord") == 2
    assert (kinds_of_snapshot[0], kinds_of_snapshot[-1]) == ("SNAPSHOT_HEADER", "SNAPSHOT_FOOTER")
    assert kinds_of_snapshot[1] == "FeatureLevelRecord"


# ---- its brokers


@contextmanager
def controller_for(folder: Path, kafka: str, *overrides: str) -> Iterator[ControllerProcess]:
    """This controller, by the rules of a release."""
    jars_or_skip(kafka)
    with ControllerProcess(folder / "controller", "--release", RELEASES[kafka], overrides=overrides) as controller:
        yield controller


@contextmanager
def real_broker(
    folder: Path, kafka: str, controller: ControllerProcess, node: int = BROKER, **more: object
) -> Iterator[tuple[KafkaProcess, str]]:
    """A real broker that is to be a member, not started yet; and where clients reach it."""
    address = f"{HOST}:{free_port()}"
    data = folder / f"broker-{node}" / "data"
    settings = {
        "process.roles": "broker",
        "node.id": node,
        "controller.quorum.voters": f"100@{HOST}:{controller.port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{address}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
        "broker.heartbeat.interval.ms": 200,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "group.initial.rebalance.delay.ms": 0,
        **more,
    }
    broker = KafkaProcess(jars_or_skip(kafka), data.parent, settings)
    format_log_dir(data, node, bytes([0xD0 + node]) * 16)
    try:
        yield broker, address
    finally:
        broker.kill()


@contextmanager
def cluster(folder: Path, kafka: str, *overrides: str) -> Iterator[tuple[ControllerProcess, KafkaProcess, str]]:
    """This controller and one real broker."""
    with (
        controller_for(folder, kafka, *overrides) as controller,
        real_broker(folder, kafka, controller) as (broker, address),
    ):
        yield controller, broker, address


def until(condition: Callable[[], Any], broker: KafkaProcess, what: str, seconds: float = START_S) -> None:
    """Wait for a condition; the limit is an emergency stop."""
    end = time.monotonic() + seconds
    turns = Turns()
    while not condition():
        turns.go()
        assert broker.running, broker.last_lines()
        assert time.monotonic() < end, f"the broker did not {what}: {broker.last_lines()}"
        time.sleep(0.1)


def created(admin: AdminClient, topic: str, partitions: int) -> None:
    """Create a topic through the broker, which hands the request on."""
    for future in admin.create_topics([NewTopic(topic, partitions, 1)]).values():
        future.result(ANSWER_S)


def round_trip(address: str, topic: str, value: bytes) -> bytes:
    """Produce a record, and read the topic's first as a member of a group."""
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    producer.produce(topic, value)
    assert producer.flush(ANSWER_S) == 0
    consumer = Consumer({"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        end = time.monotonic() + ANSWER_S
        turns = Turns()
        while time.monotonic() < end:
            turns.go()
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                found = message.value()
                assert isinstance(found, bytes)
                return found
    finally:
        consumer.close()
    raise AssertionError("no record came")


def leaders(admin: AdminClient, topic: str) -> list[int]:
    """The leader of each partition, as the broker sees it now: it follows the controller."""
    return [one.leader for one in admin.list_topics(timeout=ANSWER_S).topics[topic].partitions.values()]


def configured(admin: AdminClient, topic: str, name: str, value: str) -> str | None:
    """Change a setting of a topic through the broker, and ask for it until it is there."""
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    for future in admin.incremental_alter_configs([ConfigResource("topic", topic, incremental_configs=[entry])]).values():
        future.result(ANSWER_S)
    found = None
    end = time.monotonic() + ANSWER_S
    turns = Turns()
    while found != value and time.monotonic() < end:
        turns.go()
        (asked,) = admin.describe_configs([ConfigResource("topic", topic)]).values()
        found = asked.result(ANSWER_S)[name].value
    return found


@pytest.mark.parametrize("kafka", [NEWEST, OLD])
def test_a_real_broker_is_a_member_from_its_start_to_its_stop(kafka: str, tmp_path: Path) -> None:
    """It reads a snapshot first, registers, is unfenced, hands on requests, serves, and leaves in order."""
    with cluster(tmp_path, kafka, "metadata.log.max.record.bytes.between.snapshots=1000") as (controller, broker, address):
        with MemberProcess(controller.port) as other:
            other.join(7)
            for number in range(4):
                assert other.create_topic(f"before-{number}", 2).error_code == 0
            other.heartbeat(want_fence=True)
        assert list((controller.folder / FOLDER).glob("*.checkpoint"))
        broker.start()
        until(lambda: broker.started, broker, "start")
        admin = AdminClient({"bootstrap.servers": address})
        created(admin, "t", 3)
        assert round_trip(address, "t", b"hello") == b"hello"
        for future in admin.create_partitions([NewPartitions("t", 4)]).values():
            future.result(ANSWER_S)
        until(lambda: leaders(admin, "t") == [BROKER] * 4, broker, "see the new partition")
        assert configured(admin, "t", "retention.ms", "60000") == "60000"
        for future in admin.delete_topics(["t"]).values():
            future.result(ANSWER_S)
        until(lambda: "t" not in admin.list_topics(timeout=ANSWER_S).topics, broker, "forget the topic")
        broker.stop()
        assert "Controlled shutdown" in broker.log_text() or "controlled shutdown" in broker.log_text()
        with MemberProcess(controller.port) as other:
            wanted = [Message(topic_name="__cluster_metadata", partitions=[Message(partition_index=0)])]
            quorum = other.call("DescribeQuorum", 2, topics=wanted).topics[0].partitions[0]
            assert BROKER in {one.replica_id for one in quorum.observers}


def test_a_real_broker_goes_on_with_the_next_incarnation_of_the_controller(tmp_path: Path) -> None:
    with cluster(tmp_path, NEWEST) as (controller, broker, address):
        broker.start()
        until(lambda: broker.started, broker, "start")
        admin = AdminClient({"bootstrap.servers": address})
        created(admin, "t", 1)
        controller.kill()
        controller.start()
        created(admin, "u", 1)
        assert round_trip(address, "u", b"again") == b"again"
        assert set(admin.list_topics(timeout=ANSWER_S).topics) >= {"t", "u"}
        broker.stop()


def isr_and_leader(admin: AdminClient, topic: str) -> tuple[list[int], int]:
    partition = admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions[0]
    return sorted(partition.isrs), partition.leader


def test_two_real_brokers_fail_over_and_rejoin(tmp_path: Path) -> None:
    """The leader is killed: the other leads. It comes back: its leader proposes it (AlterPartition). Then it leads again."""
    with (
        controller_for(tmp_path, NEWEST, "broker.session.timeout.ms=3000") as controller,
        real_broker(tmp_path, NEWEST, controller, 1) as (first, at_first),
        real_broker(tmp_path, NEWEST, controller, 2) as (second, at_second),
    ):
        first.start()
        second.start()
        until(lambda: first.started and second.started, first, "start")
        admin = AdminClient({"bootstrap.servers": at_second})
        with MemberProcess(controller.port) as member:
            member.create_on("t", [1, 2])
        assert round_trip(at_first, "t", b"kept") == b"kept"
        assert isr_and_leader(admin, "t") == ([1, 2], 1)
        first.kill()
        until(lambda: isr_and_leader(admin, "t") == ([2], 2), second, "lead")
        first.start()
        until(lambda: isr_and_leader(admin, "t")[0] == [1, 2], second, "have the other in sync")
        elected = admin.elect_leaders(ElectionType.PREFERRED, [TopicPartition("t", 0)]).result(ANSWER_S)
        assert list(elected.values()) == [None]
        until(lambda: isr_and_leader(admin, "t") == ([1, 2], 1), second, "follow")
        second.stop()
        assert controller.port
