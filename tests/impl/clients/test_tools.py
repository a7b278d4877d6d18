"""The tools by the names and flags of Kafka's, against this broker, and against Apache Kafka where it is there."""

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from kspec.conformance.kafka.process import free_port
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.records.record import new_batch
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.marks import marked
from tests.limits.turns import Turns

pytestmark = pytest.mark.slow

STOP_S = 120


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("tools") / "logs", overrides=["num.partitions=3"]) as running:
        yield running.address


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    jars, folder = jars_or_skip(NEWEST), tmp_path_factory.mktemp("apache")
    with SingleKafka(jars, folder / "kafka", {"num.partitions": 3}) as kafka:
        yield kafka.address


@pytest.fixture(params=marked(["ours", "kafkas"], nightly=["kafkas"]))
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


def tool(address: str, name: str, *arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(cli, [name, "--bootstrap-server", address, *arguments], input=given)


def said(address: str, name: str, *arguments: str, given: str = "") -> str:
    ended = tool(address, name, *arguments, given=given)
    assert ended.exit_code == 0, ended.output
    return ended.stdout


def until(holds: Callable[[], bool]) -> None:
    """A broker follows the controller's decisions a little later."""
    end = time.monotonic() + STOP_S
    turns = Turns()
    while not holds():
        turns.go()
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.05)


def create(address: str, topic: str, *more: str) -> None:
    assert said(address, "topics", "--create", "--topic", topic, *more) == f"Created topic {topic}.\n"
    until(lambda: topic in said(address, "topics", "--list").split())


def test_topics_are_created_described_changed_and_deleted(address: str) -> None:
    create(address, "described", "--partitions", "2", "--replication-factor", "1", "--config", "retention.ms=1000")
    first, *partitions = said(address, "topics", "--describe", "--topic", "described").splitlines()
    fields = dict(part.split(": ", 1) for part in first.split("\t"))
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", fields.pop("TopicId"))
    assert fields["Topic"] == "described"
    assert (fields["PartitionCount"], fields["ReplicationFactor"]) == ("2", "1")
    assert "retention.ms=1000" in fields["Configs"].split(",")
    assert [line.split("\t")[2:] for line in partitions] == [
        [f"Partition: {number}", "Leader: 1", "Replicas: 1", "Isr: 1"] for number in range(2)
    ]
    said(address, "topics", "--alter", "--topic", "described", "--partitions", "4")
    until(lambda: "PartitionCount: 4" in said(address, "topics", "--describe", "--topic", "described"))
    said(address, "topics", "--create", "--topic", "described", "--if-not-exists")
    again = tool(address, "topics", "--create", "--topic", "described")
    assert again.exit_code == 1
    assert "TOPIC_ALREADY_EXISTS" in again.output
    said(address, "topics", "--delete", "--topic", "described")
    until(lambda: "described" not in said(address, "topics", "--list").split())
    missing = tool(address, "topics", "--describe", "--topic", "described")
    assert missing.exit_code == 1
    assert "Topic 'described' does not exist as expected" in missing.output
    said(address, "topics", "--delete", "--topic", "described", "--if-exists")


def test_settings_are_shown_and_changed(address: str) -> None:
    create(address, "set", "--partitions", "1")
    entity = ("--entity-type", "topics", "--entity-name", "set")
    changed = said(
        address, "configs", "--alter", *entity, "--add-config", "retention.ms=5000,cleanup.policy=[compact,delete]"
    )
    assert changed == "Completed updating config for topic set.\n"
    until(lambda: "retention.ms=5000" in said(address, "configs", "--describe", *entity))
    shown = said(address, "configs", "--describe", "--topic", "set")
    assert "  cleanup.policy=compact,delete sensitive=false" in shown
    said(address, "configs", "--alter", *entity, "--delete-config", "retention.ms")
    until(lambda: "retention.ms" not in said(address, "configs", "--describe", *entity))
    assert "retention.ms=604800000" in said(address, "configs", "--describe", *entity, "--all")
    wrong = tool(address, "configs", "--alter", *entity, "--add-config", "retention.ms=soon")
    assert wrong.exit_code == 1
    assert "INVALID_CONFIG" in wrong.output
    broker = said(address, "configs", "--describe", "--entity-type", "brokers", "--entity-name", "1", "--all")
    assert "message.max.bytes=1048588" in broker
    assert tool(address, "configs", "--describe").exit_code == 2


def test_lines_go_in_and_come_out(address: str) -> None:
    create(address, "lines", "--partitions", "1")
    parsed = ("--property", "parse.key=true", "--property", "key.separator=:")
    said(address, "console-producer", "--topic", "lines", *parsed, given="a:1\nb:2\nc:3\n")
    said(address, "console-producer", "--topic", "lines", "--compression-codec", "zstd", given="4\n")
    some = ("--topic", "lines", "--partition", "0", "--offset", "earliest", "--max-messages", "4")
    assert said(address, "console-consumer", *some) == "1\n2\n3\n4\n"
    shown = [part for name in ("print.key", "print.offset", "print.partition") for part in ("--property", f"{name}=true")]
    assert said(address, "console-consumer", *some, *shown).splitlines() == [
        "Partition:0\tOffset:0\ta\t1",
        "Partition:0\tOffset:1\tb\t2",
        "Partition:0\tOffset:2\tc\t3",
        "Partition:0\tOffset:3\tnull\t4",
    ]
    last = ("--topic", "lines", "--partition", "0", "--offset", "3", "--timeout-ms", "1000")
    assert said(address, "console-consumer", *last) == "4\n"
    refused = tool(address, "console-producer", "--topic", "lines", *parsed, given="no separator\n")
    assert refused.exit_code == 1
    assert "line 1 has no key separator ':'" in refused.output


def test_a_group_goes_on_where_it_was(address: str) -> None:
    create(address, "grouped", "--partitions", "1")
    said(address, "console-producer", "--topic", "grouped", given="1\n2\n3\n")
    group = ("--topic", "grouped", "--group", "lines", "--from-beginning")
    assert said(address, "console-consumer", *group, "--max-messages", "2") == "1\n2\n"
    assert said(address, "console-consumer", *group, "--max-messages", "1") == "3\n"


def test_offsets_are_listed_and_records_deleted(address: str, tmp_path: Path) -> None:
    create(address, "counted", "--partitions", "2")
    timed = [new_batch([(1_000 * (number + 1), b"k", b"v")]) for number in range(3)]
    with BrokerClient(int(address.rpartition(":")[2])) as client:
        for batch in timed:
            assert client.produce("counted", batch).error_code == 0
    assert said(address, "get-offsets", "--topic", "counted") == "counted:0:3\ncounted:1:0\n"
    only = ("--topic", "counted", "--partitions", "0")
    assert said(address, "get-offsets", *only, "--time", "1500") == "counted:0:1\n"
    assert said(address, "get-offsets", *only, "--time", "max-timestamp") == "counted:0:2\n"
    offsets = tmp_path / "offsets.json"
    named = [{"topic": "counted", "partition": 0, "offset": 2}]
    offsets.write_text(json.dumps({"partitions": named, "version": 1}), encoding="utf-8")
    deleted = said(address, "delete-records", "--offset-json-file", str(offsets))
    assert deleted.splitlines()[-1] == "partition: counted-0\tlow_watermark: 2"
    assert said(address, "get-offsets", *only, "--time", "earliest") == "counted:0:2\n"
    assert tool(address, "get-offsets", "--topic", "no-such").exit_code == 1
    offsets.write_text("[]", encoding="utf-8")
    assert tool(address, "delete-records", "--offset-json-file", str(offsets)).exit_code == 2


def test_records_are_counted_and_timed(address: str) -> None:
    create(address, "timed", "--partitions", "1")
    sent = said(address, "producer-perf-test", "--topic", "timed", "--num-records", "500", "--record-size", "200")
    assert re.match(r"500 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency, ", sent)
    head, line = said(address, "consumer-perf-test", "--topic", "timed", "--messages", "500").splitlines()
    found = dict(zip(head.split(", "), line.split(", "), strict=True))
    assert (found["data.consumed.in.nMsg"], found["data.consumed.in.MB"]) == ("500", f"{500 * 200 / 2**20:.4f}")


def test_metrics_are_prometheus(tmp_path: Path) -> None:
    port = free_port()
    with BrokerProcess(tmp_path / "logs", overrides=[f"metrics.listener=127.0.0.1:{port}"]) as broker:

        def numbers() -> dict[str, float]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=STOP_S) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                lines = answer.read().decode().splitlines()
            return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[0] != "#")}

        before = numbers()
        with BrokerClient(broker.port) as client:
            client.create("measured", 2)
            batch = new_batch([(1, b"k", bytes(1000))] * 2)
            client.produce("measured", batch)
            client.fetch("measured", 0)
            after = numbers()
            assert after["kafka_server_connections"] == before["kafka_server_connections"] + 1
        assert after['kafka_server_requests_total{request="Produce"}'] == 1
        assert after["kafka_server_partitions"] == 2
        labels = 'topic="measured",partition="0"'
        assert after[f"kafka_log_end_offset{{{labels}}}"] == 2
        assert after[f"kafka_log_size_bytes{{{labels}}}"] == len(batch)
        for name in ("kafka_server_bytes_in_total", "kafka_server_bytes_out_total"):
            assert after[name] - before[name] > len(batch)
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=STOP_S)
