"""A topic whose records have the time at which the broker appends them, whatever their producers say."""

from typing import Any

from kspec.conformance.wire.exchange import AtLeast, Exchange, HasRecords, Hole, equals
from kspec.conformance.wire.model.batches import BatchShape, batch, value_at
from kspec.conformance.wire.model.partition import (
    LogState,
    append,
    broker,
    led_partition,
    offsets_of,
    on_wire,
    reply_of,
    topic_ready,
)
from kspec.conformance.wire.model.received.headers import CLOCKS
from kspec.conformance.wire.model.requests import FETCHED, LISTED, PRODUCED, fetch, list_offsets, produce, since
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.offsets import handle_list_offsets
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.batch import Batch, records_of
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_EPOCH, Error, MonotonicMs, Offset

STAMPED = "a broker that sets the times of records tells producers and consumers the same time"
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
SENT_AT, ASKED_AT = -30 * DAY_MS, -20 * DAY_MS
"""The time that producers say, and one between that and the append (ms after the run's begin)."""

CONFIGS = (
    ("message.timestamp.type", "LogAppendTime"),
    ("message.timestamp.before.max.ms", str(HOUR_MS)),
    ("message.timestamp.after.max.ms", str(HOUR_MS)),
)
MOST_RECORDS = 3


def _time_of_append(number: int) -> Hole:
    return Hole(f"append_time_{number}")


def _produce(count: int) -> Move:
    """A batch; its records remember as their value the offset of its first record, which names its time."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        end = int(state.partition.local.log.end_offset)
        if end + count > MOST_RECORDS:
            return None
        done = append(protocol, state.partition, ACKS_ALL, Batch(count, payload=end))
        assert done.answer is not None, "a lone leader commits at once"
        time = f"{PRODUCED}.log_append_time_ms"
        constraints = (
            equals(f"{PRODUCED}.error_code", done.answer.error.value),
            equals(f"{PRODUCED}.base_offset", done.answer.base_offset),
            AtLeast(time, Hole("now", -DAY_MS), CLOCKS),
        )
        request = produce(ACKS_ALL, batch(BatchShape(count, SENT_AT, 0)), since(2))
        kept = ((_time_of_append(end).name, time),)
        exchange = Exchange(request, "appended", done.answer.error, constraints=constraints, kept=kept)
        return MoveResult(state._replace(partition=done.partition), exchange)

    return Move(f"produce-{count}", f"produce {count} with times of a month ago", handle_produce, STAMPED, take)


def _read_all() -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, Offset(0), NO_EPOCH), has_client_metadata=True)
        answer = read_partition(broker(protocol), state.partition, request)
        records = records_of(answer.records)
        wanted = HasRecords(
            f"{FETCHED}.records",
            offsets_of(answer.base_offset, len(records)),
            tuple(on_wire(record.leader_epoch) for record in records),
            (value_at(SENT_AT),) * len(records),
            tuple(_time_of_append(int(record.value)) for record in records),
        )
        constraints = (equals(f"{FETCHED}.error_code", answer.error.value), wanted)
        return MoveResult(state, Exchange(fetch(0), f"{len(records)} records", constraints=constraints))

    return Move("read-all", "read all records", read_partition, STAMPED, take)


def _list(name: str, words: str, asked: Any, is_found: bool, first: int) -> Move:
    """The offset of a time. The search itself is no rule: all records are as new as the broker's clock."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        log = state.partition.local.log
        found = (
            ListOffsetsResponse(Error.NONE, Offset(0), log.epoch_at(Offset(0))) if is_found and log.records else NOT_FOUND
        )
        if asked == -3 and len({record.value for record in log.records}) > 1:
            return None  # both may have been appended within a millisecond
        request = ListOffsetsRequest(OffsetSpec.BY_TIMESTAMP, NO_EPOCH, Isolation.HIGH_WATERMARK)
        step = handle_list_offsets(broker(protocol), state.partition, request, MonotonicMs(0), found)
        answer = reply_of(step.effects, ListOffsetsResponse)
        constraints = (
            equals(f"{LISTED}.error_code", answer.error.value),
            equals(f"{LISTED}.offset", answer.offset),
            equals(f"{LISTED}.timestamp", _time_of_append(0) if answer.offset >= 0 else -1),
        )
        outcome = "an offset" if answer.offset >= 0 else "none"
        return MoveResult(state, Exchange(list_offsets(asked, versions=since(first)), outcome, constraints=constraints))

    return Move(f"list-offsets.{name}", f"ask for {words}", handle_list_offsets, STAMPED, take)


READ_ALL = _read_all()
BY_TIME = _list("time-before-append", "a time behind what producers said", Hole("now", ASKED_AT), True, 1)

APPEND_TIME = Subject(
    "append-time",
    "records that have the time of their append",
    LogState(led_partition()),
    (
        _produce(1),
        _produce(2),
        READ_ALL,
        BY_TIME,
        _list("time-ahead", "a time that is yet to come", Hole("now", 30 * DAY_MS), False, 1),
        _list("max-timestamp", "the offset of the largest timestamp", -3, True, 7),
    ),
    lambda state, holes: topic_ready(CONFIGS, holes),
    {"records": MOST_RECORDS},
    looks=(READ_ALL, BY_TIME),
)
