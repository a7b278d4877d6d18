"""ListOffsets and OffsetForLeaderEpoch: offsets of times and of leader epochs."""

from collections.abc import Callable, Iterator

from kspec.conformance.wire.exchange import AllowedValues, Constraint, Exchange, Hole, RequestFields, equals
from kspec.conformance.wire.model.partition import (
    EPOCHS,
    INTERVAL_MS,
    Led,
    LogState,
    broker,
    next_time,
    on_wire,
    reply_of,
    time_of,
)
from kspec.conformance.wire.model.reading.places import (
    FENCED,
    MONOTONIC,
    TRUNCATES,
    WHICH,
    claims,
    shape_of,
)
from kspec.conformance.wire.model.requests import (
    LISTED,
    TOPIC,
    list_offsets,
    since,
)
from kspec.conformance.wire.model.subject import Move, MoveResult
from kspec.spec.broker.clients.offset_requests import LARGEST_TIMESTAMP, OffsetQuestion, judge_timestamp
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.offsets import DatedRecord, first_from, with_largest_timestamp
from kspec.spec.messages.fetch import Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.values import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Error, MonotonicMs, Offset

WantedTime = Callable[[Led], int | None]
KINDS: tuple[tuple[str, str, int], ...] = (
    ("latest", "the latest offset", -1),
    ("earliest", "the earliest offset", -2),
    ("max-timestamp", "the offset of the largest timestamp", -3),
    ("earliest-local", "the earliest offset on the broker's disk", -4),
    ("latest-tiered", "the latest offset in remote storage", -5),
    ("earliest-pending-upload", "the earliest offset that waits for remote storage", -6),
)
MOMENTS: tuple[tuple[str, str, WantedTime], ...] = (
    ("time-before-all", "a time before all records", lambda partition: -1),
    ("time-of-first", "the time of the first record", lambda partition: time_at(partition, 0)),
    ("time-between", "a time between two records", lambda partition: _plus_one(time_at(partition, 0))),
    ("time-of-last", "the time of the last record", lambda partition: time_at(partition, -1)),
    ("time-after-all", "a time after all records", next_time),
)
UNSUPPORTED_IN = (
    ("max-timestamp", -3, 6),
    ("earliest-local", -4, 7),
    ("latest-tiered", -5, 8),
    ("earliest-pending-upload", -6, 10),
)
"""Questions that an older version of the request may not ask, and its last version."""


def time_at(partition: Led, index: int) -> int | None:
    """The time of a record of the log, counted from its start, or from its end if that is negative."""
    records = partition.local.log.records
    return int(records[index].value) if records else None


def _plus_one(time: int | None) -> int | None:
    return None if time is None else time + 1


def _found(partition: Led, question: OffsetQuestion, time: int) -> ListOffsetsResponse:
    """The record that the log has for a timestamp."""
    log = partition.local.log
    numbered = [Offset(log.start_offset + number) for number in range(len(log.records))]
    records = [DatedRecord(offset, time_of(partition, offset)) for offset in numbered]
    if question == OffsetQuestion.LARGEST_TIMESTAMP:
        found = with_largest_timestamp(records)
    else:
        found = first_from(records, time) if question == OffsetQuestion.BY_TIMESTAMP else None
    return NOT_FOUND if found is None else ListOffsetsResponse(Error.NONE, found.offset, log.epoch_at(found.offset))


def _listed(
    protocol: BrokerProtocol, state: LogState, timestamp: int, time: int, version: int, epoch: Epoch, committed: bool
) -> ListOffsetsResponse:
    """The answer of the handler, for a question in some version of the request."""
    question = judge_timestamp(timestamp, version)
    if question == OffsetQuestion.UNSUPPORTED:
        return ListOffsetsResponse(Error.UNSUPPORTED_VERSION)
    wanted = {OffsetQuestion.LATEST: OffsetSpec.LATEST, OffsetQuestion.EARLIEST: OffsetSpec.EARLIEST}.get(
        question, OffsetSpec.BY_TIMESTAMP
    )
    isolation = Isolation.COMMITTED_TRANSACTIONS if committed else Isolation.HIGH_WATERMARK
    request = ListOffsetsRequest(wanted, epoch, isolation)
    found = _found(state.partition, question, time)
    step = handle_list_offsets(broker(protocol), state.partition, request, MonotonicMs(0), found)
    answer: ListOffsetsResponse = reply_of(step.effects, ListOffsetsResponse)
    return answer


def _largest_of_deleted(last: Offset) -> tuple[Constraint, ...]:
    """Allowed answers about the largest timestamp, where all records were deleted, the last one from this offset."""
    reason = "Kafka looks at its files, which may still hold the deleted records, and not at the log start"
    return (
        equals(f"{LISTED}.error_code", 0),
        AllowedValues(f"{LISTED}.offset", (-1, last), reason),
        AllowedValues(f"{LISTED}.timestamp", (-1, Hole("now", int(last) * INTERVAL_MS)), reason),
    )


def _list_constraints(state: LogState, answer: ListOffsetsResponse, by_time: bool, largest: bool) -> tuple[Constraint, ...]:
    if answer.error != Error.NONE:
        return (equals(f"{LISTED}.error_code", answer.error.value),)
    end = state.partition.local.log.end_offset
    if largest and answer.offset == UNKNOWN_OFFSET and end > 0:
        return _largest_of_deleted(Offset(end - 1))
    found = by_time and answer.offset != UNKNOWN_OFFSET
    timestamp = Hole("now", time_of(state.partition, answer.offset)) if found else -1
    return (
        equals(f"{LISTED}.error_code", 0),
        equals(f"{LISTED}.offset", answer.offset),
        equals(f"{LISTED}.timestamp", timestamp),
        AllowedValues(f"{LISTED}.leader_epoch", (on_wire(answer.leader_epoch),)),
    )


def list_move(
    name: str, words: str, timestamp: int, when: WantedTime, first: int, epoch: tuple[str, Epoch], committed: bool
) -> Move:
    """The offset of a timestamp, or of a time in the log (`when`, for a timestamp of 0), in versions from `first` on."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        time = when(state.partition)
        if time is None:
            return None
        lowest = max(first, 4 if epoch[0] else 1, 2 if committed else 1)
        answer = _listed(protocol, state, timestamp, time, lowest, epoch[1], committed)
        asked = Hole("now", time) if timestamp >= 0 else timestamp
        sent = list_offsets(asked, epoch=on_wire(epoch[1]), versions=since(lowest), isolation_level=int(committed))
        outcome = answer.error.name if answer.error != Error.NONE else "none" if answer.offset < 0 else "an offset"
        outcome += "" if epoch[0] else shape_of(state.partition)
        largest = timestamp == LARGEST_TIMESTAMP
        constraints = _list_constraints(state, answer, largest or timestamp >= 0, largest)
        return MoveResult(state, Exchange(sent, outcome, answer.error, constraints=constraints))

    full = ".".join(filter(None, ("list-offsets", name, epoch[0], "committed" * committed)))
    told = f"ask for {words}" + claims(epoch[0]) + (", committed transactions only" * committed)
    return Move(full, told, handle_list_offsets, FENCED if epoch[0] in ("older", "newer") else MONOTONIC, take)


def list_moves() -> Iterator[Move]:
    """Offsets of all kinds and of all times."""
    first = dict.fromkeys((-1, -2), 1) | {-3: 7, -4: 8, -5: 9, -6: 11}
    for name, words, timestamp in KINDS:
        for epoch in EPOCHS:
            yield list_move(name, words, timestamp, lambda partition: 0, first[timestamp], epoch, committed=False)
    yield list_move("latest", "the latest offset", -1, lambda partition: 0, 2, EPOCHS[0], committed=True)
    for name, words, when in MOMENTS:
        yield list_move(name, words, 0, when, 1, EPOCHS[0], committed=False)
    for name, timestamp, last in UNSUPPORTED_IN:
        yield _unsupported(name, timestamp, last)


def _unsupported(name: str, timestamp: int, last: int) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        answer = _listed(protocol, state, timestamp, 0, last, NO_EPOCH, committed=False)
        request = list_offsets(timestamp)
        sent = RequestFields(request.api, request.fields, request.versions._replace(last=last))
        constraints = (equals(f"{LISTED}.error_code", answer.error.value),)
        return MoveResult(state, Exchange(sent, answer.error.name, answer.error, constraints=constraints))

    words = f"ask for {name.replace('-', ' ')} in a version of the request that does not know it"
    return Move(f"list-offsets.{name}.too-old", words, judge_timestamp, MONOTONIC, take)


def end_move(asked: tuple[str, Epoch], epoch: tuple[str, Epoch]) -> Move:
    """The end of a leader epoch, with one that the client claims."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        request = OffsetForLeaderEpochRequest(epoch[1], asked[1])
        step = handle_offset_for_leader_epoch(broker(protocol), state.partition, request, MonotonicMs(0))
        answer: OffsetForLeaderEpochResponse = reply_of(step.effects, OffsetForLeaderEpochResponse)
        partition = {"partition": 0, "current_leader_epoch": on_wire(epoch[1]), "leader_epoch": on_wire(asked[1])}
        fields = {"replica_id": -1, "topics": [{"topic": TOPIC, "partitions": [partition]}]}
        constraints = [equals(f"{LISTED}.error_code", answer.error.value)]
        if answer.error == Error.NONE:
            constraints += [
                equals(f"{LISTED}.leader_epoch", on_wire(answer.end.leader_epoch)),
                equals(f"{LISTED}.end_offset", answer.end.end_offset),
            ]
        outcome = answer.error.name if answer.error != Error.NONE else "undefined" if answer.end.end_offset < 0 else "an end"
        outcome += "" if epoch[0] else shape_of(state.partition)
        sent = RequestFields("OffsetForLeaderEpoch", fields, since(2))
        return MoveResult(state, Exchange(sent, outcome, answer.error, constraints=tuple(constraints)))

    name = ".".join(filter(None, ("end-of-epoch", asked[0] or "undefined", epoch[0])))
    which = f"{WHICH[asked[0]]} leader epoch" if asked[0] else "no leader epoch"
    told = f"ask where {which} ends" + claims(epoch[0])
    promise = FENCED if epoch[0] in ("older", "newer") else TRUNCATES
    return Move(name, told, handle_offset_for_leader_epoch, promise, take)


def end_moves() -> Iterator[Move]:
    """Ends of leader epochs."""
    for asked in (EPOCHS[0], EPOCHS[1], EPOCHS[3]):
        for epoch in EPOCHS:
            yield end_move(asked, epoch)
