"""`kspec console-producer`, `console-consumer` and two performance tests: by the names and flags of Kafka's tools."""

import os
import sys
import time
from functools import partial
from typing import Any

import click

from kspec.cli.broker.client import TIMEOUT_S, bootstrap, library, properties, tried
from kspec.cli.statuses import RefusedError

MIB = 1 << 20
prop = click.option("--property", "flags", multiple=True, metavar="NAME=VALUE", help="How lines are read or written.")


def _flags(given: tuple[str, ...]) -> dict[str, str]:
    return dict(text.partition("=")[::2] for text in given)


@click.command("console-producer")
@bootstrap
@click.option("--topic", required=True, metavar="NAME", help="Where the lines go.")
@click.option("--producer-property", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the producer.")
@click.option("--producer.config", "config", metavar="FILE", help="Settings of the producer.")
@click.option("--request-required-acks", "acks", default="all", metavar="N", help="0, 1 or all.")
@click.option("--compression-codec", metavar="NAME", help="none, gzip, snappy, lz4 or zstd.")
@prop
def console_producer(
    bootstrap_server: str,
    topic: str,
    given: tuple[str, ...],
    config: str | None,
    acks: str,
    compression_codec: str | None,
    flags: tuple[str, ...],
) -> None:
    """Send each line of the standard input as a record; with parse.key=true a tab parts the key from the value."""
    settings = {"acks": acks, **properties(bootstrap_server, config, given)}
    if compression_codec:
        settings["compression.type"] = compression_codec
    reading = _flags(flags)
    separator = reading.get("key.separator", "\t").encode()
    producer = library().Producer(settings)
    errors: list[Any] = []

    def told(error: Any, message: Any) -> None:
        if error is not None:
            errors.append(error)

    for number, line in enumerate(sys.stdin.buffer, start=1):
        value, key = line.rstrip(b"\r\n"), None
        if reading.get("parse.key", "false").lower() == "true":
            key, found, value = value.partition(separator)
            if not found:
                raise RefusedError(f"line {number} has no key separator {separator.decode()!r}")
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    if errors or left:
        raise RefusedError(f"{left + len(errors)} records were not delivered: {errors[0] if errors else 'no answer'}")


@click.command("console-consumer")
@bootstrap
@click.option("--topic", required=True, metavar="NAME", help="The topic to read.")
@click.option("--from-beginning", is_flag=True, help="Begin with the oldest record where no offset is committed.")
@click.option("--max-messages", type=click.IntRange(0), metavar="N", help="Stop after so many.")
@click.option("--timeout-ms", type=click.IntRange(0), metavar="MS", help="Stop when nothing comes for so long.")
@click.option("--group", metavar="NAME", help="The consumer's group; a new one if not given.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Read this partition alone, in no group.")
@click.option("--offset", default="latest", metavar="N", help="With --partition: earliest, latest or an offset.")
@click.option("--isolation-level", default="read_uncommitted", metavar="L", help="read_committed or read_uncommitted.")
@click.option("--consumer-property", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the consumer.")
@click.option("--consumer.config", "config", metavar="FILE", help="Settings of the consumer.")
@prop
def console_consumer(bootstrap_server: str, topic: str, **given: Any) -> None:
    """Print the values of records, one in a line. --property print.key, print.offset, …=true shows more."""
    confluent = library()
    settings = {
        "group.id": given["group"] or f"console-consumer-{os.getpid()}",
        "auto.offset.reset": "earliest" if given["from_beginning"] else "latest",
        "enable.auto.commit": "true" if given["group"] else "false",
        "isolation.level": given["isolation_level"],
        **properties(bootstrap_server, given["config"], given["given"]),
    }
    consumer = confluent.Consumer(settings)
    if given["partition"] is None:
        consumer.subscribe([topic])
    else:
        named = {"earliest": confluent.OFFSET_BEGINNING, "latest": confluent.OFFSET_END}
        if given["offset"] not in named and not given["offset"].isdigit():
            raise click.UsageError(f"--offset is earliest, latest or a number, not {given['offset']!r}")
        offset = named.get(given["offset"])
        start = int(given["offset"]) if offset is None else offset
        consumer.assign([confluent.TopicPartition(topic, given["partition"], start)])
    shown = _flags(given["flags"])
    count, last = 0, time.monotonic()
    limit = given["timeout_ms"]
    try:
        while given["max_messages"] is None or count < given["max_messages"]:
            message = consumer.poll(0.1)
            if message is None:
                if limit is not None and (time.monotonic() - last) * 1000 > limit:
                    break
                continue
            if message.error():
                raise RefusedError(str(message.error()))
            count, last = count + 1, time.monotonic()
            sys.stdout.buffer.write(_line(message, shown))
            sys.stdout.buffer.flush()
    finally:
        consumer.close()
        click.echo(f"Processed a total of {count} messages", err=True)


def _line(message: Any, shown: dict[str, str]) -> bytes:
    separator = shown.get("key.separator", "\t").encode()
    wanted = {name for name, value in shown.items() if value.lower() == "true"}
    parts = []
    if "print.timestamp" in wanted:
        parts.append(f"CreateTime:{message.timestamp()[1]}".encode())
    if "print.partition" in wanted:
        parts.append(f"Partition:{message.partition()}".encode())
    if "print.offset" in wanted:
        parts.append(f"Offset:{message.offset()}".encode())
    if "print.key" in wanted:
        parts.append(b"null" if message.key() is None else message.key())
    if shown.get("print.value", "true").lower() == "true":
        parts.append(b"null" if message.value() is None else message.value())
    return separator.join(parts) + b"\n"


@click.command("producer-perf-test")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Where the cluster is reached.")
@click.option("--topic", required=True, metavar="NAME", help="Where the records go.")
@click.option("--num-records", type=click.IntRange(1), required=True, metavar="N", help="How many.")
@click.option("--record-size", type=click.IntRange(1), default=100, show_default=True, metavar="BYTES", help="How large.")
@click.option("--throughput", type=float, default=-1, metavar="N", help="Records in a second at most; -1: no limit.")
@click.option("--producer-props", "given", multiple=True, metavar="NAME=VALUE", help="A setting of the producer.")
@click.option("--producer.config", "config", metavar="FILE", help="Settings of the producer.")
def producer_perf_test(
    bootstrap_server: str | None,
    topic: str,
    num_records: int,
    record_size: int,
    throughput: float,
    given: tuple[str, ...],
    config: str | None,
) -> None:
    """Send records, and print how many went in a second and how long they took, as kafka-producer-perf-test does."""
    settings = properties(bootstrap_server or "", config, given)
    servers = bootstrap_server or _flags(given).get("bootstrap.servers")
    if not servers:
        raise click.UsageError("say where the cluster is: --bootstrap-server HOST:PORT")
    producer = library().Producer({**settings, "bootstrap.servers": servers})
    value = os.urandom(record_size)
    latencies: list[float] = []
    failed: list[Any] = []

    def told(error: Any, message: Any) -> None:
        if error is None:
            latencies.append(message.latency() * 1000)
        else:
            failed.append(error)

    begun = time.monotonic()
    for number in range(num_records):
        if throughput > 0:
            ahead = number / throughput - (time.monotonic() - begun)
            if ahead > 0:
                producer.poll(ahead)
        while True:
            try:
                producer.produce(topic, value, on_delivery=told)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    left = producer.flush(TIMEOUT_S)
    took = time.monotonic() - begun
    if failed or left:
        raise RefusedError(f"{len(failed) + left} records were not delivered: {failed[0] if failed else 'no answer'}")
    latencies.sort()

    def percentile(share: float) -> float:
        return latencies[min(len(latencies) - 1, int(share * len(latencies)))]

    rate = num_records / took
    shares = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
    click.echo(
        f"{num_records} records sent, {rate:.1f} records/sec ({rate * record_size / MIB:.2f} MB/sec), "
        f"{sum(latencies) / len(latencies):.2f} ms avg latency, {latencies[-1]:.2f} ms max latency, "
        + ", ".join(f"{percentile(share):.0f} ms {name}" for share, name in shares)
        + "."
    )


@click.command("consumer-perf-test")
@bootstrap
@click.option("--topic", required=True, metavar="NAME", help="The topic to read.")
@click.option(
    "--messages", "--num-records", "messages", type=click.IntRange(1), required=True, metavar="N", help="How many."
)
@click.option("--group", metavar="NAME", help="The consumer's group.")
@click.option("--timeout", type=click.IntRange(1), default=10_000, metavar="MS", help="Stop when nothing comes for so long.")
@click.option("--consumer.config", "config", metavar="FILE", help="Settings of the consumer.")
def consumer_perf_test(
    bootstrap_server: str, topic: str, messages: int, group: str | None, timeout: int, config: str | None
) -> None:
    """Read records, and print how many came in a second, as kafka-consumer-perf-test does."""
    consumer = library().Consumer(
        {
            "group.id": group or f"perf-consumer-{os.getpid()}",
            "auto.offset.reset": "earliest",
            **properties(bootstrap_server, config),
        }
    )
    consumer.subscribe([topic])
    began_at, begun = time.time(), time.monotonic()
    last = begun
    first: float | None = None
    count = size = 0
    while count < messages and (time.monotonic() - last) * 1000 < timeout:
        for message in tried(partial(consumer.consume, min(1000, messages - count), 0.1)):
            if message.error():
                raise RefusedError(str(message.error()))
            last = time.monotonic()
            first = first or last
            count += 1
            size += len(message.value() or b"")
    consumer.close()
    ended = last
    took, joined = max(ended - begun, 1e-9), (first or ended) - begun
    fetched = max(took - joined, 1e-9)
    stamp = [
        time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(one)) + f":{int(one * 1000) % 1000:03d}"
        for one in (began_at, began_at + ended - begun)
    ]
    click.echo(
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    click.echo(
        f"{stamp[0]}, {stamp[1]}, {size / MIB:.4f}, {size / MIB / took:.4f}, {count}, {count / took:.4f}, "
        f"{joined * 1000:.0f}, {fetched * 1000:.0f}, {size / MIB / fetched:.4f}, {count / fetched:.4f}"
    )
