"""`kspec transactions`."""

import time
from collections.abc import Iterable, Iterator, Sequence

import click

from kspec.cli.broker.asking import TopicAndPartition, check_plaintext
from kspec.cli.broker.client import bootstrap, command_config
from kspec.cli.broker.transactions.asking import NO_OFFSET, NO_TIME, ShownProducer, TransactionAdmin
from kspec.cli.statuses import RefusedError

LISTED = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
DESCRIBED = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
PRODUCERS = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
HANGING = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
NONE = "None"
"""Kafka's word for what is not there."""

MINUTE_MS = 60_000
ASKED_AT_ONCE = 500
"""Partitions whose producers are asked for by one request."""

topic_of_partition = click.option("--topic", required=True, metavar="NAME", help="The topic.")
partition_of_topic = click.option("--partition", required=True, type=int, metavar="N", help="The partition.")


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table by the widths of Kafka's tools. Kafka: `ToolsUtils.prettyPrintTable`."""
    lines = [tuple(map(str, headers)), *(tuple(map(str, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    return "".join("".join(f"{value:{width}}\t" for value, width in zip(line, widths, strict=True)) + "\n" for line in lines)


@click.group("transactions")
@bootstrap
@command_config
@click.option("--timeout", type=click.IntRange(1), default=30_000, metavar="MS", help="How long to wait for an answer.")
@click.pass_context
def transactions(ctx: click.Context, bootstrap_server: str, command_config: str | None, timeout: int) -> None:
    """Look at transactions, and abort those that hang, as kafka-transactions does."""
    check_plaintext(command_config)
    ctx.obj = TransactionAdmin(bootstrap_server, timeout / 1000)


@transactions.command("list")
@click.option("--duration-filter", type=int, metavar="MS", help="Those that are open for longer; all if it is negative.")
@click.option("--transactional-id-pattern", metavar="REGEX", help="Those whose id matches.")
@click.pass_obj
def list_(admin: TransactionAdmin, duration_filter: int | None, transactional_id_pattern: str | None) -> None:
    """List transactional ids."""
    found = admin.listed(duration_filter, transactional_id_pattern)
    click.echo(table(LISTED, found), nl=False)


@transactions.command("describe")
@click.option("--transactional-id", required=True, metavar="NAME", help="The transactional id.")
@click.pass_obj
def describe(admin: TransactionAdmin, transactional_id: str) -> None:
    """Describe the state of a transactional id."""
    found = admin.described(transactional_id)
    if found is None:
        raise RefusedError(f"transactional id `{transactional_id}` is not known")
    is_open = found.start_ms != NO_TIME
    times = (found.start_ms, _now_ms() - found.start_ms) if is_open else (NONE, NONE)
    row = (*found[: len(found) - 2], *times, ",".join(map(str, found.partitions)))
    click.echo(table(DESCRIBED, [row]), nl=False)


@transactions.command("describe-producers")
@click.option("--broker-id", type=int, metavar="N", help="The replica of this broker, and not the leader's.")
@topic_of_partition
@partition_of_topic
@click.pass_obj
def describe_producers(admin: TransactionAdmin, broker_id: int | None, topic: str, partition: int) -> None:
    """Describe the producers that a partition remembers."""
    place = TopicAndPartition(topic, partition)
    found = admin.producers([place], broker_id)[place]
    rows = [(*one[:-1], NONE if one.start_offset == NO_OFFSET else one.start_offset) for one in found]
    click.echo(table(PRODUCERS, rows), nl=False)


@transactions.command("abort")
@topic_of_partition
@partition_of_topic
@click.option("--start-offset", type=int, metavar="N", help="Where the transaction begins.")
@click.option("--producer-id", type=int, metavar="N", help="Brokers before 3.0: its producer.")
@click.option("--producer-epoch", type=int, metavar="N", help="Brokers before 3.0: its producer's epoch.")
@click.option("--coordinator-epoch", type=int, metavar="N", help="Brokers before 3.0: its coordinator's epoch.")
@click.pass_obj
def abort(
    admin: TransactionAdmin,
    topic: str,
    partition: int,
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> None:
    """Abort a transaction that hangs in a partition."""
    place = TopicAndPartition(topic, partition)
    if start_offset is not None:
        known = admin.producers([place], None)[place]
        producer = next((one for one in known if one.start_offset == start_offset), None)
        if producer is None:
            raise RefusedError(f"no open transaction begins at offset {start_offset} of partition {place}")
        producer_id, producer_epoch, coordinator_epoch = producer.producer_id, producer.epoch, producer.coordinator_epoch
    elif producer_id is None:
        raise click.UsageError(
            "say which transaction: --start-offset (brokers since 3.0), or --producer-id, --producer-epoch and"
            " --coordinator-epoch"
        )
    if producer_epoch is None:
        raise click.UsageError("--producer-epoch is missing")
    if coordinator_epoch is None:
        raise click.UsageError("--coordinator-epoch is missing")
    admin.abort(place, producer_id, producer_epoch, max(coordinator_epoch, 0))


@transactions.command("find-hanging")
@click.option("--broker-id", type=int, metavar="N", help="Partitions of this broker.")
@click.option(
    "--max-transaction-timeout",
    type=int,
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Only those that have been open for longer.",
)
@click.option("--topic", metavar="NAME", help="Partitions of this topic.")
@click.option("--partition", type=int, metavar="N", help="This partition of the topic.")
@click.pass_obj
def find_hanging(
    admin: TransactionAdmin, broker_id: int | None, max_transaction_timeout: int, topic: str | None, partition: int | None
) -> None:
    """Find transactions that are open in a partition, and of which no coordinator knows."""
    if topic is None and broker_id is None:
        raise click.UsageError("find-hanging needs --topic or --broker-id")
    if partition is not None and topic is None:
        raise click.UsageError("--partition needs --topic")
    if topic is not None and partition is not None:
        places = [TopicAndPartition(topic, partition)]
    else:
        places = admin.partitions(None if topic is None else [topic], broker_id)
    late = [
        (place, one)
        for place, one in _open(admin, places, broker_id)
        if _now_ms() - one.last_timestamp > max_transaction_timeout * MINUTE_MS
    ]
    rows = [
        (
            place.topic,
            place.partition,
            one.producer_id,
            one.epoch,
            one.coordinator_epoch,
            one.start_offset,
            one.last_timestamp,
            (_now_ms() - one.last_timestamp) // MINUTE_MS,
        )
        for place, one in _unknown(admin, late)
    ]
    click.echo(table(HANGING, rows), nl=False)


def _open(
    admin: TransactionAdmin, places: Sequence[TopicAndPartition], broker: int | None
) -> Iterator[tuple[TopicAndPartition, ShownProducer]]:
    """The producers with an open transaction."""
    for start in range(0, len(places), ASKED_AT_ONCE):
        for place, producers in admin.producers(places[start : start + ASKED_AT_ONCE], broker).items():
            yield from ((place, one) for one in producers if one.start_offset != NO_OFFSET)


def _unknown(
    admin: TransactionAdmin, candidates: Sequence[tuple[TopicAndPartition, ShownProducer]]
) -> Iterator[tuple[TopicAndPartition, ShownProducer]]:
    """Those open transactions that their producer's coordinator does not have."""
    if not candidates:
        return
    names = {one.producer_id: one.name for one in admin.listed(None, None, {one.producer_id for _, one in candidates})}
    described = {name: admin.described(name) for name in sorted(set(names.values()))}
    for place, one in candidates:
        known = described.get(names.get(one.producer_id, ""))
        if known is None or place not in known.partitions:
            yield place, one


@transactions.command("forceTerminateTransaction")
@click.option("--transactionalId", "transactional_id", required=True, metavar="NAME", help="The transactional id.")
@click.pass_obj
def force_terminate(admin: TransactionAdmin, transactional_id: str) -> None:
    """Abort the open transaction of a transactional id, and fence its producer."""
    admin.fence(transactional_id)


def _now_ms() -> int:
    return int(time.time() * 1000)
