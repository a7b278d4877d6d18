"""A broker that is stopped, killed, and started again on the same folder."""

import os
import random
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import click
import pytest

from kspec.cli.main import cli
from kspec.impl.records.batch import header_at, headers
from kspec.impl.records.record import new_batch, records_of
from kspec.impl.wire.values import Message
from tests.impl.broker.process import COMMAND, START_S, BrokerClient, BrokerProcess, wait_until
from tests.limits.turns import Turns

pytestmark = pytest.mark.slow


def everything(client: BrokerClient, topic: str) -> dict[int, bytes]:
    """All records of a topic's first partition by their offsets."""
    found: dict[int, bytes] = {}
    offset = 0
    turns = Turns()
    while True:
        turns.go()
        answer = client.fetch(topic, offset)
        assert answer.error_code == 0
        content = memoryview(answer.records)
        if not content:
            return found
        for header in headers(content):
            for record in records_of(content[header.position : header.position + header.size]):
                assert record.offset not in found, "an offset is used twice"
                found[record.offset] = record.value or b""
            offset = header.next_offset


def test_a_stopped_broker_goes_on_where_it_was(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker:
        with BrokerClient(broker.port) as client:
            topic_id = client.create("kept", 2, retention_ms="123456").topic_id
            for number in range(3):
                client.produce("kept", new_batch([(1, b"k", b"%d" % number)]))
            last = [(time.time_ns() // 1_000_000, b"k", b"3")]
            producer = client.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=0).producer_id
            client.produce("kept", new_batch(last, producer_id=producer, producer_epoch=0, base_sequence=0))
        broker.restart()
        assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists() is False, "it is read and removed at the start"
        with BrokerClient(broker.port) as client:
            (topic,) = client.call("Metadata", 12, topics=[Message(name="kept")]).topics
            assert (topic.topic_id, len(topic.partitions)) == (topic_id, 2)
            assert everything(client, "kept") == {number: b"%d" % number for number in range(4)}
            again = new_batch(last, producer_id=producer, producer_epoch=0, base_sequence=0)
            assert client.produce("kept", again).base_offset == 3, "a duplicate gets the answer of the first copy"
            assert client.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=0).producer_id > producer
            resource = Message(resource_type=2, resource_name="kept", configuration_keys=["retention.ms"])
            (described,) = client.call("DescribeConfigs", 4, resources=[resource]).results
            assert [entry.value for entry in described.configs] == ["123456"]
        assert broker.stop() == 0
        assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def test_a_start_reads_a_snapshot_of_the_metadata_in_place_of_all_records(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "__cluster_metadata-0"
    with BrokerProcess(tmp_path / "logs", overrides=["metadata.log.max.record.bytes.between.snapshots=1000"]) as broker:
        with BrokerClient(broker.port) as client:
            kept = {f"kept-{number}": client.create(f"kept-{number}", 2, retention_ms="77").topic_id for number in range(3)}
            for _ in range(6):
                client.create("short-lived", 4)
                (deleted,) = client.call("DeleteTopics", 6, topics=[Message(name="short-lived")], timeout_ms=1000).responses
                assert deleted.error_code == 0
            assert client.produce("kept-0", new_batch([(1, b"k", b"v")]), partition=1).base_offset == 0
        sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
        assert sum(name.endswith(".checkpoint") for name in sizes) == 1
        assert sum(size for name, size in sizes.items() if name.endswith(".log")) < 2_000
        for killed in (False, True):
            if killed:
                broker.kill()
                broker.start()
            else:
                broker.restart()
            with BrokerClient(broker.port) as client:
                topics = client.call("Metadata", 12, topics=None).topics
                assert {topic.name: topic.topic_id for topic in topics} == kept
                assert all(partition.leader_id == 1 for topic in topics for partition in topic.partitions)
                assert client.fetch("kept-0", 0, partition=1).high_watermark == 1
                resource = Message(resource_type=2, resource_name="kept-2", configuration_keys=["retention.ms"])
                (described,) = client.call("DescribeConfigs", 4, resources=[resource]).results
                assert [entry.value for entry in described.configs] == ["77"]


def test_a_silent_producer_is_forgotten(tmp_path: Path) -> None:
    """While the broker runs, and when it starts. Then any sequence number may come."""
    checks = ["producer.id.expiration.ms=60000", "producer.id.expiration.check.interval.ms=50"]
    with BrokerProcess(tmp_path / "logs", overrides=checks) as broker:
        now = time.time_ns() // 1_000_000

        def batch(producer: int, sequence: int, timestamp: int) -> bytes:
            record = [(timestamp, b"k", b"v")]
            return new_batch(record, producer_id=producer, producer_epoch=0, base_sequence=sequence)

        def known(client: BrokerClient) -> list[int]:
            asked = [Message(name="silence", partition_indexes=[0])]
            (answer,) = client.call("DescribeProducers", 0, topics=asked).topics[0].partitions
            return [one.producer_id for one in answer.active_producers]

        with BrokerClient(broker.port) as client:
            client.create("silence")
            assert client.produce("silence", batch(1, 0, now + 3_000_000)).error_code == 0
            assert client.produce("silence", batch(2, 0, now - 70_000)).error_code == 0
            wait_until(lambda: known(client) == [1])
            assert client.produce("silence", batch(1, 5, now)).error_code == 45, "out of order"
            assert client.produce("silence", batch(2, 5, now - 70_000)).error_code == 0
            wait_until(lambda: known(client) == [1])
        broker.restart()
        with BrokerClient(broker.port) as client:
            assert known(client) == [1]


def test_a_deleted_topic_stays_deleted_and_may_be_created_again(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker:
        with BrokerClient(broker.port) as client:
            first = client.create("again").topic_id
            client.produce("again", new_batch([(1, b"k", b"old")]))
            (deleted,) = client.call("DeleteTopics", 6, topics=[Message(name="again")], timeout_ms=1000).responses
            assert (deleted.error_code, deleted.topic_id) == (0, first)
            assert client.produce("again", new_batch([(1, b"k", b"v")])).error_code == 3
            assert client.create("again").topic_id != first
            assert client.produce("again", new_batch([(1, b"k", b"new")])).base_offset == 0
        broker.kill()
        broker.start()
        with BrokerClient(broker.port) as client:
            assert everything(client, "again") == {0: b"new"}


def kill_under_load(broker: BrokerProcess, times: int, seed: int) -> None:
    """Kill the broker at random moments while a producer writes; every acknowledged record is there, at its offset."""
    chance = random.Random(seed)
    with BrokerClient(broker.port) as client:
        client.create("load")
    acknowledged: dict[int, bytes] = {}
    written = 0
    for _ in range(times):
        killer = threading.Timer(chance.uniform(0.01, 0.3), broker.kill)
        killer.start()
        try:
            with BrokerClient(broker.port) as client:
                turns = Turns()
                while True:
                    turns.go()
                    value = b"%d" % written
                    written += 1
                    batch = new_batch([(1, b"k", value), (1, b"k", value)])
                    assert header_at(batch).record_count == 2
                    answer = client.produce("load", batch)
                    assert answer.error_code == 0
                    assert answer.base_offset not in acknowledged, "an offset was promised twice"
                    acknowledged[answer.base_offset] = value
        except OSError:
            killer.join(timeout=600)
        broker.start()
        with BrokerClient(broker.port) as client:
            found = everything(client, "load")
        assert {offset: found.get(offset) for offset in acknowledged} == acknowledged
    assert len(acknowledged) > times


KILLS = int(os.environ.get("KSPEC_KILLS", "12"))
"""`KSPEC_KILLS=200` is the run of a night."""


def test_kills_under_load_lose_nothing(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker:
        kill_under_load(broker, KILLS, seed=1)


def refusal(*arguments: str) -> str:
    """The line that the command prints when it cannot start; its exit status is 2."""
    command = [sys.executable, "-c", COMMAND, "broker", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=START_S, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    return next(line for line in ended.stderr.splitlines() if line.startswith("kspec:"))


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("num.partitions=0", "num.partitions must be a number from 1"),
        ("num.partitions=many", "num.partitions must be"),
        ("listeners=127.0.0.1:1", "listeners must have the form NAME://HOST:PORT"),
        ("listeners=SASL_SSL://127.0.0.1:0", "listeners names SASL_SSL"),
        ("authorizer.class.name=a.B", "take them out: authorizer.class.name: authorization"),
        ("log.cleanup.policy=shred", "log.cleanup.policy must be one of delete, compact"),
        ("nothing", "an override has the form NAME=VALUE"),
    ],
)
def test_settings_that_cannot_be_are_one_line(tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(click.UsageError, match=re.escape(said)):
        cli.main(["broker", "--log-dir", str(tmp_path / "logs"), "--override", override], standalone_mode=False)
    assert not (tmp_path / "logs").exists()


def test_a_folder_in_use_or_of_another_broker_is_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    with BrokerProcess(folder) as broker:
        free = ("--override", "listeners=PLAINTEXT://127.0.0.1:0")
        assert "in use" in refusal("--log-dir", str(folder), *free)
        used = ("--override", f"listeners=PLAINTEXT://{broker.address}")
        assert "cannot listen" in refusal("--log-dir", str(tmp_path / "other"), *used)
        assert broker.stop() == 0
        assert "node.id" in refusal("--log-dir", str(folder), *free, "--override", "node.id=7")
        assert "cluster.id" in refusal("--log-dir", str(folder), *free, "--override", "cluster.id=another")
    assert "no release" in refusal("--log-dir", str(folder), "--release", "9.9")
    assert "no mutant" in refusal("--log-dir", str(folder), "--mutant", "none-such")


def test_a_broker_is_registered_with_the_rack_of_its_last_start(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "logs", overrides=("broker.rack=east",))
    with broker:
        for rack in ("east", "west", None):
            broker.overrides = (f"broker.rack={rack}",) if rack else ()
            broker.stop()
            broker.start()
            with BrokerClient(broker.port) as client:
                assert [one.rack for one in client.call("Metadata", 12, topics=None).brokers] == [rack]
