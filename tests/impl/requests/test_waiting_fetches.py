"""Fetches that wait, and fetches that do not: a second look decides as the first one does, and both as Apache Kafka does."""

import time
from pathlib import Path

import pytest

from kspec.conformance.kafka.jars import KafkaMissingError, find_jars
from kspec.conformance.kafka.single import SingleKafka
from kspec.impl.records.record import new_batch
from kspec.impl.wire.values import Message
from tests.impl.broker.process import BrokerClient, BrokerProcess, wait_until

WAIT_MS, AT_ONCE_S = 6_000, 3
TOPIC = "waited"
ONE, TWO, CUT, OLD, FULL, MORE = range(6)
"""Partitions: what each is for is said by `fill`."""


def produce(client: BrokerClient, partition: int, size: int = 1) -> int:
    """Produce a record with a value of this size; the size of the batch."""
    batch = new_batch([(int(time.time() * 1000), None, bytes(size))])
    assert client.produce(TOPIC, batch, partition=partition).error_code == 0
    return len(batch)


def seconds(port: int, wanted: list[tuple[int, int]], min_bytes: int, max_bytes: int, then: int | None = None) -> float:
    """The time (s) of a fetch of partitions, each with its limit in bytes; a record is produced to a partition meanwhile."""
    partitions = [Message(partition=one, fetch_offset=0, partition_max_bytes=limit) for one, limit in wanted]
    topics = [Message(topic=TOPIC, partitions=partitions)]
    with BrokerClient(port) as client, BrokerClient(port) as other:
        before = time.monotonic()
        fetch = Message(max_wait_ms=WAIT_MS, min_bytes=min_bytes, max_bytes=max_bytes, topics=topics)
        client.send("Fetch", 12, fetch)
        if then is not None:
            time.sleep(0.3)
            produce(other, then)
        client.receive("Fetch", 12)
        return time.monotonic() - before


def ask(port: int) -> dict[str, bool]:
    """Whether each fetch is answered before its time is over."""
    with BrokerClient(port) as client:
        client.create(TOPIC, 6, segment_bytes=str(1 << 20), max_message_bytes=str(1 << 20))
        wait_until(lambda: all(client.fetch(TOPIC, 0, number).error_code == 0 for number in range(6)))
        size = produce(client, CUT)
        produce(client, CUT)
        for _ in range(2):
            produce(client, OLD, 900_000)
        produce(client, FULL)
        produce(client, MORE, 40)
    large = 1 << 20
    found = {
        "min above max, and then a record": seconds(port, [(ONE, large)], 10_000, 60, then=ONE),
        "min above all there is, and then a record": seconds(port, [(TWO, large)], 10_000, large, then=TWO),
        "a limit that cuts the second batch": seconds(port, [(CUT, size + 20)], size + 20, large),
        "a limit that is never reached": seconds(port, [(CUT, size - 20)], size + 20, large),
        "an older segment": seconds(port, [(OLD, 100)], 100_000, large),
        "a second partition that has no room": seconds(port, [(FULL, large), (MORE, large)], size + 30, size + 30),
    }
    return {name: took < AT_ONCE_S for name, took in found.items()}


ANSWERED_EARLY = {
    "min above max, and then a record": True,
    "min above all there is, and then a record": False,
    "a limit that cuts the second batch": True,
    "a limit that is never reached": False,
    "an older segment": True,
    "a second partition that has no room": True,
}


def test_a_second_look_decides_as_the_first(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path / "logs") as broker:
        assert ask(broker.port) == ANSWERED_EARLY


@pytest.mark.slow
@pytest.mark.nightly
def test_as_kafka_does(tmp_path: Path) -> None:
    try:
        jars = find_jars("4.4.0")
    except KafkaMissingError as missing:
        pytest.skip(f"APACHE KAFKA IS NOT ASKED: {missing}")
    with SingleKafka(jars, tmp_path / "kafka") as kafka:
        assert ask(kafka.port) == ANSWERED_EARLY
