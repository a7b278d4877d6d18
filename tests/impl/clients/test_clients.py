"""Clients that others wrote, against the broker as a process. A client that is not here is named."""

import asyncio
import shutil
import subprocess
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.impl.broker.process import BrokerProcess
from tests.limits.marks import NIGHTLY
from tests.limits.turns import Turns

HERE = Path(__file__).parent
MAVEN = Path.home() / ".m2" / "repository"
JARS = (
    "org/apache/kafka/kafka-clients/4.4.0/kafka-clients-4.4.0.jar",
    "org/slf4j/slf4j-api/1.7.36/slf4j-api-1.7.36.jar",
    "com/github/luben/zstd-jni/*/zstd-jni-*.jar",
    "org/lz4/lz4-java/*/lz4-java-*.jar",
    "at/yawk/lz4/lz4-java/*/lz4-java-*.jar",
    "org/xerial/snappy/snappy-java/*/snappy-java-*.jar",
)
RECORDS = 500
LIMIT_S = 120
"""The longest time for a client: an emergency stop."""
BUILD_S = 300
"""The longest time to fetch and build the client in Go, which depends on a network."""
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("clients") / "logs", overrides=["num.partitions=3"]) as running:
        yield running


def run(*command: str, given: str | None = None, folder: Path | None = None) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, input=given, timeout=LIMIT_S, cwd=folder, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize("codec", CODECS)
def test_librdkafka_by_confluent(broker: BrokerProcess, codec: str) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka (librdkafka) is not installed")
    topic = f"confluent-{codec}"
    settings = {"bootstrap.servers": broker.address, "enable.idempotence": True, "compression.type": codec}
    producer = confluent.Producer(settings)
    errors: list[object] = []
    for number in range(RECORDS):
        producer.produce(topic, b"v%d" % number, b"k%d" % number, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(30) == 0
    assert set(errors) == {None}
    group = {"group.id": topic, "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = confluent.Consumer({"bootstrap.servers": broker.address, **group})
    consumer.subscribe([topic])
    found: list[bytes] = []
    end = time.monotonic() + LIMIT_S
    turns = Turns()
    while len(found) < RECORDS:
        turns.go()
        assert time.monotonic() < end, f"only {len(found)} records came in {LIMIT_S} s"
        found += [message.value() for message in consumer.consume(100, 1.0)]
    consumer.commit(asynchronous=False)
    partitions = [confluent.TopicPartition(topic, number) for number in range(3)]
    assert sum(max(one.offset, 0) for one in consumer.committed(partitions, 30)) == RECORDS
    consumer.close()
    assert sorted(found) == sorted(b"v%d" % number for number in range(RECORDS))


def test_two_members_of_a_group_share_the_partitions(broker: BrokerProcess) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka (librdkafka) is not installed")
    producer = confluent.Producer({"bootstrap.servers": broker.address})
    producer.produce("shared", b"first")
    assert producer.flush(30) == 0
    settings = {"bootstrap.servers": broker.address, "group.id": "sharing", "session.timeout.ms": 6000}
    members = [confluent.Consumer({**settings, "auto.offset.reset": "earliest"}) for _ in range(2)]
    for member in members:
        member.subscribe(["shared"])
    for _ in range(300):
        for member in members:
            member.poll(0.05)
        assigned = [{one.partition for one in member.assignment()} for member in members]
        if all(assigned):
            break
    assert assigned[0] | assigned[1] == {0, 1, 2}
    assert assigned[0] & assigned[1] == set()
    members[0].close()
    for _ in range(300):
        members[1].poll(0.05)
        if len(members[1].assignment()) == 3:
            break
    assert len(members[1].assignment()) == 3
    members[1].close()


def test_consumers_are_assigned_to_by_the_coordinator(broker: BrokerProcess) -> None:
    """KIP-848: two consumers, one more whose subscription is an expression, and one of the classic protocol among them."""
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka (librdkafka) is not installed")
    producer = confluent.Producer({"bootstrap.servers": broker.address})
    for number in range(30):
        producer.produce("assigned", b"%d" % number, partition=number % 3)
    assert producer.flush(30) == 0
    settings = {"bootstrap.servers": broker.address, "group.id": "assigned", "auto.offset.reset": "earliest"}
    newer = {**settings, "group.protocol": "consumer", "enable.auto.commit": False}
    found: set[bytes] = set()

    def until(members: list[Any], *counts: int) -> None:
        """Poll all, and commit what comes, until each has so many partitions, and no partition has two owners."""
        for _ in range(600):
            for member in members:
                message = member.poll(0.02)
                if message is not None and message.error() is None:
                    found.add(message.value())
                    member.commit(message, asynchronous=False)
            owned = [{one.partition for one in member.assignment()} for member in members]
            assert sum(map(len, owned)) == len(set().union(*owned))
            if sorted(map(len, owned)) == sorted(counts):
                return
        raise AssertionError(f"in the end {owned}")

    first, second = confluent.Consumer(newer), confluent.Consumer(newer)
    first.subscribe(["assigned"])
    until([first], 3)
    second.subscribe(["^assig.*"])
    until([first, second], 1, 2)
    classic = confluent.Consumer(
        {**settings, "partition.assignment.strategy": "cooperative-sticky", "enable.auto.commit": False}
    )
    classic.subscribe(["assigned"])
    until([first, second, classic], 1, 1, 1)
    first.close()
    second.close()
    until([classic], 3)
    for _ in range(600):
        message = classic.poll(0.02)
        found |= set() if message is None or message.error() is not None else {message.value()}
        if len(found) == 30:
            break
    classic.close()
    assert len(found) == 30


def test_kafka_python(broker: BrokerProcess) -> None:
    kafka = pytest.importorskip("kafka", reason="kafka-python is not installed")
    producer = kafka.KafkaProducer(bootstrap_servers=broker.address)
    for number in range(RECORDS):
        producer.send("kafka-python", b"v%d" % number)
    producer.flush(LIMIT_S)
    producer.close(LIMIT_S)
    consumer = kafka.KafkaConsumer(
        "kafka-python",
        bootstrap_servers=broker.address,
        group_id="kafka-python",
        auto_offset_reset="earliest",
        consumer_timeout_ms=LIMIT_S * 1000,
    )
    found = [message.value for message in islice(consumer, RECORDS)]
    consumer.close()
    assert sorted(found) == sorted(b"v%d" % number for number in range(RECORDS))


def test_aiokafka(broker: BrokerProcess) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")

    async def round_trip() -> list[bytes]:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=broker.address)
        await producer.start()
        for number in range(RECORDS):
            await producer.send("aiokafka", b"v%d" % number)
        await producer.stop()
        consumer = aiokafka.AIOKafkaConsumer(
            "aiokafka", bootstrap_servers=broker.address, group_id="aiokafka", auto_offset_reset="earliest"
        )
        await consumer.start()
        found = [(await consumer.getone()).value for _ in range(RECORDS)]
        await consumer.stop()
        return found

    found = asyncio.run(asyncio.wait_for(round_trip(), LIMIT_S))
    assert sorted(found) == sorted(b"v%d" % number for number in range(RECORDS))


def needed(*programs: str) -> None:
    """Say which program is not here."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not installed: its client is not tried")


@pytest.mark.parametrize(
    ("codec", "protocol"),
    [*(pytest.param(codec, "classic", marks=NIGHTLY) for codec in CODECS[:-1]), ("zstd", "classic"), ("none", "consumer")],
)
def test_the_java_client(broker: BrokerProcess, codec: str, protocol: str, tmp_path: Path) -> None:
    needed("java", "javac")
    found = [path for pattern in JARS for path in sorted(MAVEN.glob(pattern))[-1:]]
    if not found or found[0].name != "kafka-clients-4.4.0.jar":
        pytest.skip(f"the Java client is not tried: {JARS[0]} is not in {MAVEN}")
    library = {"snappy": "snappy", "lz4": "lz4", "zstd": "zstd"}.get(codec, "")
    if not any(library in path.name for path in found):
        pytest.skip(f"the Java client is not tried with {codec}: its library is not in {MAVEN}")
    path = ":".join([*map(str, found), str(tmp_path)])
    run("javac", "-cp", path, "-d", str(tmp_path), str(HERE / "RoundTrip.java"))
    assert f"read {RECORDS}" in run("java", "-Xmx256m", "-cp", path, "RoundTrip", broker.address, codec, protocol)


def test_kcat(broker: BrokerProcess) -> None:
    needed("kcat")
    lines = "".join(f"{number}\n" for number in range(RECORDS))
    run("kcat", "-b", broker.address, "-P", "-t", "kcat", given=lines)
    found = run("kcat", "-b", broker.address, "-C", "-t", "kcat", "-o", "beginning", "-e", "-q")
    assert sorted(found.split()) == sorted(lines.split())


def test_franz_go(broker: BrokerProcess, tmp_path: Path) -> None:
    needed("go")
    shutil.copytree(HERE / "franz_go", tmp_path / "franz_go")
    command = ["go", "build", "-o", "roundtrip", "."]
    try:
        built = subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path / "franz_go", timeout=BUILD_S, check=False
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"franz-go is not tried: its module was not fetched and built within {BUILD_S} s")
    if built.returncode:
        pytest.skip(f"franz-go is not tried, it cannot be built: {(built.stderr.splitlines() or ['?'])[-1]}")
    assert "franz-go 200" in run(str(tmp_path / "franz_go" / "roundtrip"), broker.address)
