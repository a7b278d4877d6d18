"""`__transaction_state` by bytes: what Apache Kafka wrote is read here, what this broker wrote is read there, and damage."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.coordinator.fields import UnreadableRecordError
from kspec.impl.coordinator.transactions import decode_key, decode_value, encode_key, encode_value
from kspec.impl.records.batch import headers
from kspec.impl.records.record import StoredRecord, new_batch, records_of
from kspec.impl.wire.values import Message
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.metadata import TransactionState
from kspec.spec.transactions.records import TransactionRecord
from kspec.spec.values import Error, ProducerEpoch, ProducerId, TimestampMs, TransactionalId
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.requests.transaction_client import TransactionClient
from tests.limits.marks import marked

ONE_PARTITION = "transaction.state.log.num.partitions=1"
NAMES = ("open", "idle", "empty-abort")
ID = TransactionalId("id")


def record_of_test(**fields: Any) -> TransactionRecord:
    given: dict[str, Any] = {
        "transactional_id": ID,
        "producer_id": ProducerId(7),
        "producer_epoch": ProducerEpoch(3),
        "timeout_ms": 60_000,
        "state": TransactionState.ONGOING,
        "partitions": frozenset({TopicPartition("a", 1), TopicPartition("a", 0), TopicPartition("b", 2)}),
        "updated_ms": TimestampMs(11),
        "start_ms": TimestampMs(10),
    }
    return TransactionRecord(**{**given, **fields})


TAGGED = {"previous_producer_id": ProducerId(5), "next_producer_id": ProducerId(9), "client_level": 2}


# ---- records


@pytest.mark.parametrize("state", [one for one in TransactionState if one != TransactionState.EMPTY])
def test_a_record_comes_back(state: TransactionState) -> None:
    plain, tagged = record_of_test(state=state), record_of_test(state=state, **TAGGED)
    assert decode_value(ID, encode_value(plain, 0)) == plain
    assert decode_value(ID, encode_value(tagged, 2)) == tagged
    assert decode_value(ID, encode_value(tagged, 0)) == plain  # without tagged fields
    assert decode_key(encode_key(ID)) == ID


def test_an_empty_transaction_has_no_partitions_written() -> None:
    for level in (0, 2):
        empty = record_of_test(state=TransactionState.EMPTY, partitions=frozenset())
        assert decode_value(ID, encode_value(empty, level)) == empty


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\0",
        struct.pack(">h", 2) + encode_value(record_of_test(), 2)[2:],
        struct.pack(">h", -1) + encode_value(record_of_test(), 2)[2:],
        encode_value(record_of_test(), 2)[:20],
        encode_value(record_of_test(), 0)[:16] + b"\x08" + encode_value(record_of_test(), 0)[17:],
    ],
)
def test_bytes_that_are_no_record_are_told(value: bytes) -> None:
    with pytest.raises(UnreadableRecordError):
        decode_value(ID, value)


def test_a_key_of_a_later_release_is_passed_over() -> None:
    assert decode_key(struct.pack(">h", 1) + encode_key(ID)[2:]) is None


# ---- the log of another broker


def act(client: BrokerClient, level: int = 2) -> None:
    """A transaction that is open, a producer that has none, and one that is aborted and has written nothing.

    Without tagged fields Kafka cannot write what a client of version 2 does, and says so.
    """
    client.create("t", 1)
    for name in NAMES:
        producer = TransactionClient(client, name)
        producer.find()
        producer.init_when_possible()
        if name == "open":
            wait_until(lambda made=producer: made.add(("t", 0)) == [Error.NONE])
        if name == "empty-abort":
            assert producer.end(False, version=5 if level else 4) in (Error.NONE, Error.INVALID_TXN_STATE)
            wait_until(lambda made=producer: made.state() in ("CompleteAbort", "Empty"))


def told(client: BrokerClient) -> list[Message]:
    """Descriptions of all transactional ids, once they are loaded."""
    found: list[Message] = []

    def is_loaded() -> bool:
        found[:] = client.call("DescribeTransactions", 0, transactional_ids=list(NAMES)).transaction_states
        return all(one.error_code == 0 for one in found)

    wait_until(is_loaded)
    return found


def log_of(folder: Path) -> Path:
    (log,) = (folder / "__transaction_state-0").glob("*.log")
    return log


def put(content: bytes, folder: Path) -> None:
    """Give a stopped broker this log of transactions, in place of its own."""
    place = log_of(folder)
    for file in place.parent.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    place.write_bytes(content)
    (folder / ".kafka_cleanshutdown").unlink(missing_ok=True)


def records_in(content: bytes) -> list[StoredRecord]:
    view = memoryview(content)
    return [
        record
        for header in headers(view)
        if not header.control
        for record in records_of(view[header.position : header.position + header.size])
    ]


@pytest.mark.slow
@pytest.mark.parametrize("level", marked([0, 1, 2], nightly=[0, 1]))
def test_kafka_and_this_broker_read_each_other_s_logs(level: int, tmp_path: Path) -> None:
    jars = jars_or_skip(NEWEST)
    ours, theirs = tmp_path / "ours", tmp_path / "kafka"
    lower = Message(feature="transaction.version", max_version_level=level, upgrade_type=2)
    settings = {"transaction.state.log.num.partitions": 1}
    with BrokerProcess(ours, overrides=[ONE_PARTITION]) as broker, SingleKafka(jars, theirs, settings) as kafka:
        known = []
        for port in (broker.port, kafka.port):
            with BrokerClient(port) as client:
                if level < 2:
                    assert client.call("UpdateFeatures", 1, feature_updates=[lower], timeout_ms=10_000).error_code == 0
                act(client, level)
                known.append(told(client))
        assert broker.stop() == 0
        kafka.process.stop()
        written = [log_of(ours).read_bytes(), log_of(theirs / "logs").read_bytes()]
        assert shapes(written[0]) == shapes(written[1])
        for record in records_in(written[1]):
            name = decode_key(record.key or b"")
            assert name is not None
            assert record.value is not None
            assert encode_value(decode_value(name, record.value), level) == record.value
            assert encode_key(name) == record.key
        put(written[1], ours)
        put(written[0], theirs / "logs")
        broker.start()
        kafka.start()
        for port, before in ((broker.port, known[1]), (kafka.port, known[0])):
            with BrokerClient(port) as client:
                assert told(client) == before


def shapes(content: bytes) -> list[tuple[str, TransactionState, int, int]]:
    """The records of a log: the id, the state, the version of the value and its size."""
    return [
        (
            str(decode_key(record.key or b"")),
            decode_value(ID, record.value or b"").state,
            struct.unpack(">h", (record.value or b"")[:2])[0],
            len(record.value or b""),
        )
        for record in records_in(content)
    ]


# ---- damage


def append(folder: Path, records: Sequence[tuple[bytes, bytes | None]]) -> None:
    """Write records behind the log of a stopped broker."""
    place = log_of(folder)
    content = place.read_bytes()
    end = sum(header.last_offset_delta + 1 for header in headers(memoryview(content)))
    more = new_batch([(1, key, value) for key, value in records], base_offset=end, leader_epoch=0)
    put(content + more, folder)


def test_an_unreadable_record_leaves_its_partition_without_a_coordinator_and_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    with BrokerProcess(folder, overrides=[ONE_PARTITION]) as broker:
        with BrokerClient(broker.port) as client:
            act(client)
            before = told(client)
        assert broker.stop() == 0
        sound = log_of(folder).read_bytes()
        append(folder, [(encode_key(TransactionalId("later")), struct.pack(">h", 7))])
        broken = log_of(folder).read_bytes()
        broker.start()
        with BrokerClient(broker.port) as client:
            producer = TransactionClient(client, "open")
            wait_until(lambda: producer.init() == Error.NOT_COORDINATOR)
            assert producer.state() == "NOT_COORDINATOR"
        assert broker.stop() == 0
        assert "version 7 of the value of 'later'" in broker.text_of_log()
        assert "transactional ids have no coordinator" in broker.text_of_log()
        assert log_of(folder).read_bytes() == broken
        put(sound, folder)
        broker.start()
        with BrokerClient(broker.port) as client:
            assert told(client) == before


def test_tombstones_and_keys_of_later_releases_are_read_over(tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    with BrokerProcess(folder, overrides=[ONE_PARTITION]) as broker:
        with BrokerClient(broker.port) as client:
            act(client)
        assert broker.stop() == 0
        later = struct.pack(">h", 1) + encode_key(TransactionalId("open"))[2:]
        append(folder, [(encode_key(TransactionalId("idle")), None), (later, b"\0\7")])
        broker.start()
        with BrokerClient(broker.port) as client:
            idle, opened = TransactionClient(client, "idle"), TransactionClient(client, "open")
            wait_until(lambda: opened.state() == "Ongoing")
            assert idle.state() == "TRANSACTIONAL_ID_NOT_FOUND"


# ---- a cluster that goes back to version 0


def after_going_back(client: BrokerClient) -> tuple[Error, Error]:
    """The answers to a producer of version 2 that asks for its id twice, at version 0; and then at version 2 again."""
    producer = TransactionClient(client, "going-back")
    producer.find()
    producer.init_when_possible()
    assert producer.end(False, version=5) == Error.NONE
    wait_until(lambda: producer.state() == "CompleteAbort")
    errors = []
    for level, kind in ((0, 2), (2, 1)):
        update = Message(feature="transaction.version", max_version_level=level, upgrade_type=kind)
        assert client.call("UpdateFeatures", 1, feature_updates=[update], timeout_ms=10_000).error_code == 0

        def is_told(level: int = level) -> bool:
            told = client.call("ApiVersions", 4, client_software_name="a", client_software_version="1")
            levels = {one.name: one.max_version_level for one in told.finalized_features}
            return bool(levels.get("transaction.version", 0) == level)

        wait_until(is_told)
        errors.append(producer.init())
    return errors[0], errors[1]


def test_who_has_known_version_2_goes_on_at_version_0(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "broker") as broker, BrokerClient(broker.port) as client:
        assert after_going_back(client) == (Error.NONE, Error.NONE)


@pytest.mark.slow
def test_kafka_leaves_such_an_id_with_a_step_that_never_ends(tmp_path: Path) -> None:
    """The record cannot be written without its tagged field, and the step that was to be written stays pending."""
    with SingleKafka(jars_or_skip(NEWEST), tmp_path / "kafka") as kafka, BrokerClient(kafka.port) as client:
        assert after_going_back(client) == (Error.UNSUPPORTED_VERSION, Error.CONCURRENT_TRANSACTIONS)
