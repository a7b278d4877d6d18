"""`kafka-dump-log --cluster-metadata-decoder` reads a broker's metadata: each record has the fields that it has for us."""

import json
import re
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest

from kspec.impl.metadata.files import records_in
from kspec.impl.metadata.records import LogRecord
from kspec.impl.metadata.snapshots import from_bytes
from kspec.impl.records.batch import header_at
from tests.conformance.kafka.releases import kafkas_dump
from tests.impl.broker.process import BrokerClient, BrokerProcess
from tests.limits.turns import Turns


def words(name: str) -> str:
    """`TopicRecord` as TOPIC_RECORD, `brokerId` as BROKER_ID."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


def same(theirs: Any, ours: Any) -> bool:
    """Whether a value that Kafka prints as JSON is ours."""
    if isinstance(theirs, dict):
        return all(same(value, vars(ours)[words(name).lower()]) for name, value in theirs.items())
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(map(same, theirs, ours))
    if isinstance(ours, bytes):
        return urlsafe_b64decode(theirs + "==") == ours
    return bool(theirs == ours)


def records_of_log(content: bytes) -> list[LogRecord]:
    found, position = list[LogRecord](), 0
    turns = Turns()
    while position < len(content):
        turns.go()
        size = header_at(content, position).size
        found += records_in(content[position : position + size])
        position += size
    return found


def printed_by_kafka(file: Path) -> list[dict[str, Any]]:
    """Output of the tool for the records in a file; those of control batches are not of the metadata."""
    done = kafkas_dump("--cluster-metadata-decoder", "--skip-record-metadata", "--files", str(file))
    assert done.returncode == 0, done.stderr
    found = [json.loads(line.removeprefix("| payload: ")) for line in done.stdout.splitlines() if "| payload: " in line]
    return [one for one in found if not re.match("SNAPSHOT_|KRAFT_|LEADER_CHANGE", one.get("type", "KRAFT_"))]


@pytest.mark.slow
def test_a_brokers_metadata(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs", overrides=["metadata.log.max.record.bytes.between.snapshots=1500"]) as broker:
        with BrokerClient(broker.port) as client:
            client.create("t", 2, retention_ms="-1")
            client.call("InitProducerId", 4, transactional_id=None, transaction_timeout_ms=1000)
        broker.restart()
        with BrokerClient(broker.port) as client:
            client.create("u", 3)
    folder = tmp_path / "logs" / "__cluster_metadata-0"
    (snapshot,) = folder.glob("*.checkpoint")
    contents = {snapshot: from_bytes(snapshot.read_bytes(), str(snapshot))}
    contents |= {file: records_of_log(file.read_bytes()) for file in folder.glob("*.log")}
    kinds = set[str]()
    for file, ours in contents.items():
        theirs = printed_by_kafka(file)
        assert [one["type"] for one in theirs] == [words(record.name) for record in ours]
        for one, record in zip(theirs, ours, strict=True):
            assert same(one["data"], record.message), (one, record)
        kinds |= {one["type"] for one in theirs}
    assert {"TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "PRODUCER_IDS_RECORD", "REGISTER_BROKER_RECORD"} <= kinds
