"""Clients of a server that is measured: produce, consume, and produce at a steady rate. librdkafka."""

import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from confluent_kafka import Consumer, Message, Producer, TopicPartition

MIB = 1 << 20
RECORD = 1024
RECONNECT = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 50}
LIMIT_S = 120.0


class LoadTarget(NamedTuple):
    """The destination of records. `settings`: what the producer of a throughput is given besides."""

    addresses: str
    topic: str
    partitions: int
    settings: tuple[tuple[str, str | int], ...] = ()


class Rate(NamedTuple):
    """MB in a second, and in a second of the processor time of those that serve."""

    per_second: float
    per_cpu_second: float


def measured(cpu_seconds: Callable[[], float], work: Callable[[], int]) -> Rate:
    """Run some work that returns the bytes it moved."""
    cpu, begun = cpu_seconds(), time.monotonic()
    moved = work() / MIB
    return Rate(moved / (time.monotonic() - begun), moved / max(cpu_seconds() - cpu, 0.01))


def produce(target: LoadTarget, seconds: float) -> int:
    """Produce for so long; the bytes of the values. Raises: `RuntimeError`, if not all is acknowledged."""
    producer = Producer({"bootstrap.servers": target.addresses, "acks": "all", **dict(target.settings)})
    value, sent, end = os.urandom(RECORD), 0, time.monotonic() + seconds
    while time.monotonic() < end:
        for _ in range(500):
            try:
                producer.produce(target.topic, value)
                sent += 1
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(LIMIT_S):
        raise RuntimeError(f"{target.addresses} did not acknowledge everything")
    return sent * RECORD


def consume(target: LoadTarget, megabytes: float) -> int:
    """Consume so much from the beginning, or nearly all that there is; the bytes of the values."""
    consumer = Consumer({"bootstrap.servers": target.addresses, "group.id": "load", "enable.auto.commit": False})
    places = [TopicPartition(target.topic, number, 0) for number in range(target.partitions)]
    there = sum(consumer.get_watermark_offsets(place, LIMIT_S)[1] for place in places) * RECORD
    consumer.assign(places)
    found = 0
    while found < min(megabytes * MIB, there - MIB):
        found += sum(len(message.value() or b"") for message in consumer.consume(1000, 5.0))
    consumer.close()
    return found


class Waits(NamedTuple):
    """The median and the 99th percentile of the time until a record is acknowledged (ms)."""

    p50: float
    p99: float


def middle(waits: list[Waits]) -> str:
    """The median of each."""
    return ", ".join(f"{statistics.median(times):.1f}" for times in zip(*waits, strict=True))


def latencies(target: LoadTarget, a_second: int, seconds: float) -> Waits:
    """The times that records wait for their acknowledgement, at so many a second."""
    producer = Producer({"bootstrap.servers": target.addresses, "acks": "all"})
    value, found = os.urandom(RECORD), list[float]()

    def taken(begun: float) -> Callable[[object, Message], None]:
        return lambda error, message: found.append((time.monotonic() - begun) * 1000)

    start = time.monotonic()
    for number in range(int(a_second * seconds)):
        while (left := start + number / a_second - time.monotonic()) > 0:
            producer.poll(left)
        producer.produce(target.topic, value, on_delivery=taken(time.monotonic()))
    producer.flush(LIMIT_S)
    hundredths = statistics.quantiles(found, n=100)
    return Waits(hundredths[49], hundredths[98])
