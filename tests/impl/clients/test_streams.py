"""Kafka Streams with exactly_once_v2 on the broker: it is killed, and so is a broker, and each output is there once."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kspec.conformance.kafka.jars import STREAMS, java
from kspec.impl.wire.values import Message
from tests.conformance.kafka.releases import NEWEST, jars_or_skip
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until
from tests.impl.clients.test_clients import HERE
from tests.limits.turns import Turns
from tests.trials.cluster.running import RunningCluster
from tests.trials.cluster.test_transactions import port_of

KEYS, PARTITIONS, LIMIT_S = ("a", "b", "c"), 2, 120.0

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def confluent() -> Any:
    return pytest.importorskip("confluent_kafka", reason="confluent-kafka (librdkafka) is not installed")


class StreamsProcess:
    """The program, compiled once, as a process that can be killed and started again with the same folder."""

    def __init__(self, folder: Path, servers: str, copies: int) -> None:
        self._path = os.pathsep.join([str(folder), *map(str, jars_or_skip(NEWEST, STREAMS).class_path)])
        compiler = shutil.which(str(Path(java()).with_name("javac"))) or "javac"  # a home may run Java and not compile
        subprocess.run(
            [compiler, "-cp", self._path, "-d", str(folder), str(HERE / "Totals.java")], check=True, timeout=LIMIT_S
        )
        self._given = [servers, str(folder / "state"), str(copies)]
        self._said = folder / "said"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it runs."""
        flags = ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
        with self._said.open("wb") as said:
            command = [java(), *flags, "-cp", self._path, "Totals", *self._given]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT)

    def kill(self) -> None:
        """Kill it, wherever it is."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(LIMIT_S)

    def said(self) -> str:
        """The text that it has printed since its start."""
        return self._said.read_text(encoding="utf-8", errors="replace")


@pytest.fixture
def streams_of(tmp_path: Path) -> Iterator[Any]:
    made: list[StreamsProcess] = []

    def make(servers: str, copies: int) -> StreamsProcess:
        made.append(StreamsProcess(tmp_path, servers, copies))
        return made[-1]

    yield make
    for one in made:
        if one.process is not None:
            one.kill()


def create(client: BrokerClient, copies: int) -> None:
    for topic in ("amounts", "totals"):
        wanted = Message(name=topic, num_partitions=PARTITIONS, replication_factor=copies, assignments=[], configs=[])
        assert client.call("CreateTopics", 7, topics=[wanted], timeout_ms=10_000).topics[0].error_code == 0


class Amounts:
    """The amounts of all keys, and what the totals of each must be."""

    def __init__(self, confluent: Any, servers: str) -> None:
        self._producer = confluent.Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 5})
        self.expected: dict[str, list[int]] = {key: [] for key in KEYS}
        self._next = 0

    def send(self, count: int, every_s: float = 0.0) -> None:
        """Send so many amounts more."""
        for _ in range(count):
            self._next += 1
            totals = self.expected[KEYS[self._next % len(KEYS)]]
            totals.append((totals[-1] if totals else 0) + self._next)
            self._producer.produce("amounts", str(self._next).encode(), key=KEYS[self._next % len(KEYS)].encode())
            self._producer.poll(0)
            time.sleep(every_s)
        assert self._producer.flush(LIMIT_S) == 0


def totals(confluent: Any, servers: str, expected: dict[str, list[int]]) -> dict[str, list[int]]:
    """The committed totals by key, once there is as much as is expected, or more, and nothing follows."""
    settings = {"bootstrap.servers": servers, "group.id": "reading", "isolation.level": "read_committed"}
    consumer = confluent.Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([confluent.TopicPartition("totals", number, 0) for number in range(PARTITIONS)])
    found: dict[str, list[int]] = {key: [] for key in KEYS}
    end = time.monotonic() + LIMIT_S
    turns = Turns()
    while time.monotonic() < end:
        turns.go()
        message = consumer.poll(1.0)
        if message is not None and message.error() is None:
            found[message.key().decode()].append(int(message.value()))
        elif message is None and sum(map(len, found.values())) >= sum(map(len, expected.values())):
            break
    consumer.close()
    return found


def test_a_killed_streams_program_counts_each_amount_once(confluent: Any, streams_of: Any, tmp_path: Path) -> None:
    """On one broker: it is killed in the middle of its work, and started again."""
    single = [f"{name}=1" for name in ("transaction.state.log.min.isr", "transaction.state.log.replication.factor")]
    with BrokerProcess(tmp_path / "logs", overrides=single) as broker:
        with BrokerClient(int(broker.address.rpartition(":")[2])) as client:
            create(client, 1)
        streams = streams_of(broker.address, 1)
        streams.start()
        amounts = Amounts(confluent, broker.address)
        amounts.send(20)
        wait_until(lambda: "state RUNNING" in streams.said())
        amounts.send(100, every_s=0.01)
        streams.kill()
        amounts.send(30)
        streams.start()
        assert totals(confluent, broker.address, amounts.expected) == amounts.expected, streams.said()[-2_000:]


@pytest.mark.nightly
def test_streams_and_a_broker_are_killed_again_and_again(confluent: Any, streams_of: Any, tmp_path: Path) -> None:
    """On three brokers: in turn the program and a broker are killed, while amounts come in."""
    with RunningCluster(tmp_path / "cluster", brokers=3, combined=False) as cluster:
        servers = ",".join(f"127.0.0.1:{port_of(cluster, broker)}" for broker in (1, 2, 3))
        with BrokerClient(port_of(cluster, 1)) as client:
            wait_until(lambda: len(client.call("Metadata", 12, topics=None).brokers) == 3)
            create(client, 3)
        streams = streams_of(servers, 3)
        streams.start()
        amounts = Amounts(confluent, servers)
        amounts.send(20)
        wait_until(lambda: "state RUNNING" in streams.said())
        for broker in (1, 2, 3):
            amounts.send(150, every_s=0.02)
            cluster.kill(str(broker))
            amounts.send(150, every_s=0.02)
            wait_until(lambda: len(cluster.pids()) == 4)
            streams.kill()
            streams.start()
        assert totals(confluent, servers, amounts.expected) == amounts.expected, streams.said()[-2_000:]
