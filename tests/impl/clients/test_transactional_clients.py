"""Transactional producers that others wrote, against the broker, and against three of them whose coordinator dies."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.kafka.jars import java
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.wire.values import Message
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.clients.test_clients import HERE, run
from tests.impl.requests.transaction_client import TransactionClient
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.trials.cluster.running import RunningCluster
from tests.trials.cluster.test_transactions import coordinator_of, port_of

QUICK = "transaction.abort.timed.out.transaction.cleanup.interval.ms"
LIMIT_S = 60.0
ROUNDS = 6

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with BrokerProcess(tmp_path_factory.mktemp("transactional") / "logs", overrides=[f"{QUICK}=200"]) as running:
        yield running.address


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SingleKafka(jars_or_skip(NEWEST), tmp_path_factory.mktemp("apache") / "kafka", {QUICK: 200}) as kafka:
        yield kafka.address


@pytest.fixture(params=marked(["ours", "kafkas"], nightly=["kafkas"]))
def address(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="module")
def confluent() -> Any:
    return pytest.importorskip("confluent_kafka", reason="confluent-kafka (librdkafka) is not installed")


def create(address: str, topic: str, partitions: int = 2) -> None:
    with BrokerClient(int(address.rpartition(":")[2])) as client:
        client.create(topic, partitions)


def producer_of(confluent: Any, address: str, name: str, **settings: Any) -> Any:
    made = confluent.Producer({"bootstrap.servers": address, "transactional.id": name, **settings})
    made.init_transactions(LIMIT_S)
    return made


def read(confluent: Any, address: str, topic: str, level: str = "read_committed", partitions: int = 2) -> list[bytes]:
    """The records of a topic up to its end, in order of their values."""
    settings = {"bootstrap.servers": address, "group.id": "reading", "isolation.level": level, "enable.partition.eof": True}
    consumer = confluent.Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([confluent.TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[bytes] = []
    ended: set[int] = set()
    turns = Turns()
    while len(ended) < partitions:
        turns.go()
        message = consumer.poll(1.0)
        if message is not None and message.error() is not None:
            ended.add(message.partition())
        elif message is not None:
            found.append(message.value())
    consumer.close()
    return sorted(found)


# ---- librdkafka, which knows no version 2


def test_librdkafka_commits_and_aborts(confluent: Any, address: str) -> None:
    create(address, "rounds")
    producer = producer_of(confluent, address, "rounds")
    committed = []
    for number in range(ROUNDS):
        producer.begin_transaction()
        values = [b"%d-%d" % (number, place) for place in range(4)]
        for place, value in enumerate(values):
            producer.produce("rounds", value, partition=place % 2)
        if number % 3 == 1:
            assert producer.flush(LIMIT_S) == 0
            producer.abort_transaction(LIMIT_S)
        else:
            producer.commit_transaction(LIMIT_S)
            committed += values
    assert read(confluent, address, "rounds") == sorted(committed)
    assert len(read(confluent, address, "rounds", "read_uncommitted")) == 4 * ROUNDS


def test_librdkafka_is_fenced_by_its_successor(confluent: Any, address: str) -> None:
    create(address, "fenced")
    first = producer_of(confluent, address, "fenced")
    first.begin_transaction()
    first.produce("fenced", b"zombie", partition=0)
    assert first.flush(LIMIT_S) == 0
    second = producer_of(confluent, address, "fenced")
    with pytest.raises(confluent.KafkaException) as refused:
        first.commit_transaction(LIMIT_S)
    assert refused.value.args[0].name() == "_FENCED"
    second.begin_transaction()
    second.produce("fenced", b"last", partition=1)
    second.commit_transaction(LIMIT_S)
    assert read(confluent, address, "fenced") == [b"last"]


def test_what_takes_too_long_is_aborted(confluent: Any, address: str) -> None:
    create(address, "late")
    producer = producer_of(confluent, address, "late", **{"transaction.timeout.ms": 1_000})
    producer.begin_transaction()
    producer.produce("late", b"late", partition=0)
    assert producer.flush(LIMIT_S) == 0
    with BrokerClient(int(address.rpartition(":")[2])) as client:
        wait_until(lambda: TransactionClient(client, "late").state() == "CompleteAbort")
    with pytest.raises(confluent.KafkaException):
        producer.commit_transaction(LIMIT_S)
    assert read(confluent, address, "late") == []


# ---- the Java client, which knows version 2


def test_the_java_client_commits_aborts_and_is_fenced(address: str) -> None:
    path = os.pathsep.join(map(str, jars_or_skip(NEWEST).class_path))
    said = run(java(), "-XX:TieredStopAtLevel=1", "-cp", path, str(HERE / "Transactional.java"), address, str(ROUNDS))
    (line,) = (one for one in said.splitlines() if one.startswith("epoch "))
    assert int(line.split()[1]) >= ROUNDS + 1, "each transaction has an epoch of its own"


# ---- three brokers


def test_a_coordinator_is_killed_again_and_again_and_no_transaction_is_torn(confluent: Any, tmp_path: Path) -> None:
    """Each transaction writes one value to each of two partitions: a reader of what is committed finds both, or none."""
    with RunningCluster(tmp_path / "cluster", brokers=3, combined=False) as cluster:
        servers = ",".join(f"127.0.0.1:{port_of(cluster, broker)}" for broker in (1, 2, 3))
        with BrokerClient(port_of(cluster, 1)) as client:
            wait_until(lambda: len(client.call("Metadata", 12, topics=None).brokers) == 3)
            wanted = Message(name="torn", num_partitions=2, replication_factor=3, assignments=[], configs=[])
            assert client.call("CreateTopics", 7, topics=[wanted], timeout_ms=10_000).topics[0].error_code == 0
        producer = producer_of(confluent, servers, "torn")
        known: dict[bytes, bool] = {}
        for number in range(9):
            value = b"%d" % number
            producer.begin_transaction()
            for partition in range(2):
                producer.produce("torn", value, partition=partition)
            if number in (3, 7):
                assert producer.flush(LIMIT_S) == 0
                cluster.kill(str(coordinator_of(cluster, 1, "torn")))
            commits = number % 3 != 1
            if commits:
                producer.commit_transaction(LIMIT_S)
            else:
                producer.abort_transaction(LIMIT_S)
            known[value] = commits
        expected = sorted(2 * [value for value, commits in known.items() if commits])
        wait_until(lambda: read(confluent, servers, "torn") == expected)
