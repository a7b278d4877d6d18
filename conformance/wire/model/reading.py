"""Fetch, ListOffsets, OffsetForLeaderEpoch and DeleteRecords on one partition, at every place of a small log."""

from collections.abc import Callable, Iterator

from conformance.wire.exchange import Allowed, Constraint, Exchange, HasRecords, Hole, Request, equals
from conformance.wire.model.batches import Shape, batch
from conformance.wire.model.partition import (
    CURRENT,
    EPOCHS,
    INTERVAL_MS,
    NEWER,
    OLDER,
    SECOND,
    SELF,
    THIRD,
    Led,
    LogState,
    append,
    broker,
    keeps_records,
    led_partition,
    next_time,
    offsets_of,
    on_wire,
    reply_of,
    time_of,
    topic_ready,
)
from conformance.wire.model.requests import FETCHED, LISTED, PRODUCED, TOPIC, fetch, list_offsets, produce, restarted, since
from conformance.wire.model.subject import Move, Subject, Taken
from spec.broker.clients.offset_requests import LARGEST_TIMESTAMP, Question, judge_timestamp
from spec.broker.leader.deletion import handle_delete_records
from spec.broker.leader.fetch import handle_fetch
from spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from spec.broker.leader.produce import handle_produce
from spec.broker.protocol import BrokerProtocol
from spec.broker.roles import become_leader
from spec.broker.rules.divergence import is_diverging
from spec.log.batch import Batch, records_of
from spec.messages.delete_records import TO_HIGH_WATERMARK, DeleteRecordsRequest, DeleteRecordsResponse
from spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse, Isolation
from spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, Wanted
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from spec.messages.produce import ACKS_ALL
from spec.metadata import PartitionRegistration
from spec.values import NO_EPOCH, UNKNOWN_OFFSET, BrokerId, Epoch, Error, Offset, PartitionEpoch

MOST_RECORDS = 3

ACKNOWLEDGED = "what is acknowledged can be read, with the leader epoch in which it was written"
SAME_LOG = "a reader that has lost its place is told so, and never reads from another log than it thinks"
FENCED = "whoever acts on an older leader epoch is refused, and whoever is ahead asks again"
TRUNCATES = "a reader whose records were replaced learns where its log parts from the leader's"
MONOTONIC = "an offset that a client was told does not go back"
NO_STRANGERS = "only its replicas are counted for a partition, so only they fetch as such"
DELETED = "deleted records are not read again, and records that are not committed are not deleted"

Place = Callable[[Led], Offset | None]


def _before_start(partition: Led) -> Offset | None:
    start = partition.local.log.start_offset
    return Offset(start - 1) if start > 0 else None


def _at_start(partition: Led) -> Offset | None:
    return partition.local.log.start_offset if partition.local.log.records else None


def _inside(partition: Led) -> Offset | None:
    log = partition.local.log
    return Offset(log.start_offset + 1) if log.start_offset + 1 < log.end_offset else None


PLACES: tuple[tuple[str, str, Place], ...] = (
    ("negative", "a negative offset", lambda partition: Offset(-7)),
    ("before-start", "an offset before the log start", _before_start),
    ("start", "the log start", _at_start),
    ("inside", "an offset inside the log", _inside),
    ("end", "the log end", lambda partition: partition.local.log.end_offset),
    ("past-end", "an offset past the log end", lambda partition: Offset(partition.local.log.end_offset + 1)),
)
"""Where in a log an offset may lie."""

FIRST_WITH_EPOCH, FIRST_WITH_LAST_EPOCH = 9, 12


WHICH = {
    "current": "the current",
    "older": "an older",
    "newer": "a newer",
    "first": "the first",
    "second": "the second",
    "third": "the third",
}


def _claims(epoch: str) -> str:
    return f", claiming {WHICH[epoch]} leader epoch" if epoch else ""


# ---- writing


def _produce(count: int) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        log = state.partition.local.log
        if log.end_offset + count > MOST_RECORDS:
            return None
        partition, time = state.partition, next_time(state.partition)
        answers = []
        for number in range(count):  # one by one, because each has its own time
            appended = append(protocol, partition, ACKS_ALL, Batch(1, payload=time + number * INTERVAL_MS))
            assert appended.answer is not None, "a lone leader commits at once"
            partition = appended.partition
            answers.append(appended.answer)
        constraints = (
            equals(f"{PRODUCED}.error_code", answers[0].error.value),
            equals(f"{PRODUCED}.base_offset", answers[0].base_offset),
        )
        request = produce(ACKS_ALL, batch(Shape(count, time, INTERVAL_MS)))
        exchange = Exchange(request, "appended", answers[0].error, constraints=constraints)
        return Taken(state._replace(partition=partition), exchange)

    words = f"produce {count} record{'s' if count > 1 else ''}"
    return Move(f"produce-{count}", words, handle_produce, ACKNOWLEDGED, take)


# ---- Fetch


def fetch_constraints(answer: FetchResponse) -> tuple[Constraint, ...]:
    """What the answer's partition must be like."""
    if answer.error != Error.NONE:
        return (equals(f"{FETCHED}.error_code", answer.error.value),)
    records = records_of(answer.records)
    offsets = offsets_of(answer.base_offset, len(records))
    epochs = tuple(on_wire(record.leader_epoch) for record in records)
    return (
        equals(f"{FETCHED}.error_code", 0),
        equals(f"{FETCHED}.high_watermark", answer.high_watermark),
        equals(f"{FETCHED}.last_stable_offset", answer.last_stable_offset),
        equals(f"{FETCHED}.log_start_offset", answer.log_start_offset),
        equals(f"{FETCHED}.diverging_epoch.epoch", on_wire(answer.diverging.leader_epoch)),
        equals(f"{FETCHED}.diverging_epoch.end_offset", answer.diverging.end_offset),
        HasRecords(f"{FETCHED}.records", offsets, epochs),
    )


def _outcome_of_fetch(answer: FetchResponse) -> str:
    if answer.error != Error.NONE:
        return answer.error.name
    return "diverging" if is_diverging(answer) else "records" if answer.records else "nothing"


def _fetch(place: tuple[str, str, Place], epoch: tuple[str, Epoch], last: tuple[str, Epoch], committed: bool) -> Move:
    where, words, offset_in = place

    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        offset = offset_in(state.partition)
        if offset is None:
            return None
        position = FetchPosition(epoch[1], offset, last[1])
        request = FetchRequest(CONSUMER, position, read_committed=committed, has_client_metadata=True)
        step = handle_fetch(broker(protocol), state.partition, request, 0)
        answer = reply_of(step.effects, FetchResponse)
        first = FIRST_WITH_LAST_EPOCH if last[0] else FIRST_WITH_EPOCH if epoch[0] else 4
        sent = fetch(
            offset,
            epoch=on_wire(epoch[1]),
            last_epoch=on_wire(last[1]),
            versions=since(first),
            isolation_level=int(committed),
        )
        constraints = fetch_constraints(answer)
        return Taken(state, Exchange(sent, _outcome_of_fetch(answer), answer.error, constraints=constraints))

    name = ".".join(filter(None, ("fetch", where, epoch[0], f"last-{last[0]}" if last[0] else "", "committed" * committed)))
    told = f"fetch from {words}" + _claims(epoch[0])
    told += f", after a record of {WHICH[last[0]]} epoch" if last[0] else ""
    told += ", committed transactions only" if committed else ""
    return Move(name, told, handle_fetch, _promise_of_fetch(epoch[0], last[0]), take)


NO_REPLICA = BrokerId(2_000_000)


def _fetch_as_replica(epoch: tuple[str, Epoch]) -> Move:
    """A fetch of a broker that is no replica of the partition, as a follower's."""

    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        offset = state.partition.local.log.end_offset
        request = FetchRequest(NO_REPLICA, FetchPosition(epoch[1], offset, NO_EPOCH))
        step = handle_fetch(broker(protocol), state.partition, request, 0)
        answer = reply_of(step.effects, FetchResponse)
        who = {"replica_id": NO_REPLICA, "replica_state": {"replica_id": NO_REPLICA, "replica_epoch": -1}}
        sent = fetch(offset, epoch=on_wire(epoch[1]), versions=since(FIRST_WITH_EPOCH if epoch[0] else 4), **who)
        return Taken(state, Exchange(sent, answer.error.name, answer.error, constraints=fetch_constraints(answer)))

    name = ".".join(filter(None, ("fetch.as-replica", epoch[0])))
    told = "fetch as a replica that the partition has not" + _claims(epoch[0])
    return Move(name, told, handle_fetch, NO_STRANGERS, take)


def _promise_of_fetch(epoch: str, last: str) -> str:
    return FENCED if epoch in ("older", "newer") else TRUNCATES if last else SAME_LOG


def _fetches() -> Iterator[Move]:
    for place in PLACES:
        for epoch in EPOCHS:
            yield _fetch(place, epoch, EPOCHS[0], committed=False)
        for last in EPOCHS[1:]:
            yield _fetch(place, EPOCHS[0], last, committed=False)
        yield _fetch(place, EPOCHS[0], EPOCHS[0], committed=True)
    for epoch in EPOCHS[2:]:
        yield _fetch(PLACES[-1], epoch, EPOCHS[1], committed=False)
    for epoch in EPOCHS:
        yield _fetch_as_replica(epoch)


def _shape(partition: Led) -> str:
    """What has happened to a log: an offset of it is another matter then."""
    log = partition.local.log
    if log.start_offset == 0:
        return ""
    return ", of a log that was cut" if log.records else ", of a log that was emptied"


# ---- ListOffsets

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
    ("time-of-first", "the time of the first record", lambda partition: _time_at(partition, 0)),
    ("time-between", "a time between two records", lambda partition: _plus_one(_time_at(partition, 0))),
    ("time-of-last", "the time of the last record", lambda partition: _time_at(partition, -1)),
    ("time-after-all", "a time after all records", next_time),
)
UNSUPPORTED_IN = (
    ("max-timestamp", -3, 6),
    ("earliest-local", -4, 7),
    ("latest-tiered", -5, 8),
    ("earliest-pending-upload", -6, 10),
)
"""Questions that an older version of the request may not ask, and its last version."""


def _time_at(partition: Led, index: int) -> int | None:
    records = partition.local.log.records
    return int(records[index].value) if records else None


def _plus_one(time: int | None) -> int | None:
    return None if time is None else time + 1


def _found(partition: Led, question: Question, time: int) -> ListOffsetsResponse:
    """The record that a search of the log finds for a timestamp. The search itself is no rule of the protocol."""
    log = partition.local.log
    numbered = [Offset(log.start_offset + number) for number in range(len(log.records))]
    if question == Question.LARGEST_TIMESTAMP:
        matching = sorted(numbered, key=lambda offset: (-time_of(partition, offset), offset))[:1]
    elif question == Question.BY_TIMESTAMP:
        matching = [offset for offset in numbered if time_of(partition, offset) >= time][:1]
    else:
        matching = []
    return ListOffsetsResponse(Error.NONE, matching[0], log.epoch_at(matching[0])) if matching else NOT_FOUND


def _listed(
    protocol: BrokerProtocol, state: LogState, timestamp: int, time: int, version: int, epoch: Epoch, committed: bool
) -> ListOffsetsResponse:
    """The answer of the handler, for a question in some version of the request."""
    question = judge_timestamp(timestamp, version)
    if question == Question.UNSUPPORTED:
        return ListOffsetsResponse(Error.UNSUPPORTED_VERSION)
    wanted = {Question.LATEST: Wanted.LATEST, Question.EARLIEST: Wanted.EARLIEST}.get(question, Wanted.BY_TIMESTAMP)
    isolation = Isolation.COMMITTED_TRANSACTIONS if committed else Isolation.HIGH_WATERMARK
    request = ListOffsetsRequest(wanted, epoch, isolation)
    found = _found(state.partition, question, time)
    step = handle_list_offsets(broker(protocol), state.partition, request, 0, found)
    answer: ListOffsetsResponse = reply_of(step.effects, ListOffsetsResponse)
    return answer


def _largest_of_deleted(last: Offset) -> tuple[Constraint, ...]:
    """What may be answered of the largest timestamp, where all records were deleted, the last one from this offset."""
    reason = "Kafka looks at its files, which may still hold the deleted records, and not at the log start"
    return (
        equals(f"{LISTED}.error_code", 0),
        Allowed(f"{LISTED}.offset", (-1, last), reason),
        Allowed(f"{LISTED}.timestamp", (-1, Hole("now", int(last) * INTERVAL_MS)), reason),
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
        Allowed(f"{LISTED}.leader_epoch", (on_wire(answer.leader_epoch),)),
    )


def _list(
    name: str, words: str, timestamp: int, when: WantedTime, first: int, epoch: tuple[str, Epoch], committed: bool
) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        time = when(state.partition)
        if time is None:
            return None
        lowest = max(first, 4 if epoch[0] else 1, 2 if committed else 1)
        answer = _listed(protocol, state, timestamp, time, lowest, epoch[1], committed)
        asked = Hole("now", time) if timestamp >= 0 else timestamp
        sent = list_offsets(asked, epoch=on_wire(epoch[1]), versions=since(lowest), isolation_level=int(committed))
        outcome = answer.error.name if answer.error != Error.NONE else "none" if answer.offset < 0 else "an offset"
        outcome += "" if epoch[0] else _shape(state.partition)
        largest = timestamp == LARGEST_TIMESTAMP
        constraints = _list_constraints(state, answer, largest or timestamp >= 0, largest)
        return Taken(state, Exchange(sent, outcome, answer.error, constraints=constraints))

    full = ".".join(filter(None, ("list-offsets", name, epoch[0], "committed" * committed)))
    told = f"ask for {words}" + _claims(epoch[0]) + (", committed transactions only" * committed)
    return Move(full, told, handle_list_offsets, FENCED if epoch[0] in ("older", "newer") else MONOTONIC, take)


def _lists() -> Iterator[Move]:
    first = dict.fromkeys((-1, -2), 1) | {-3: 7, -4: 8, -5: 9, -6: 11}
    for name, words, timestamp in KINDS:
        for epoch in EPOCHS:
            yield _list(name, words, timestamp, lambda partition: 0, first[timestamp], epoch, committed=False)
    yield _list("latest", "the latest offset", -1, lambda partition: 0, 2, EPOCHS[0], committed=True)
    for name, words, when in MOMENTS:
        yield _list(name, words, 0, when, 1, EPOCHS[0], committed=False)
    for name, timestamp, last in UNSUPPORTED_IN:
        yield _unsupported(name, timestamp, last)


def _unsupported(name: str, timestamp: int, last: int) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        answer = _listed(protocol, state, timestamp, 0, last, NO_EPOCH, committed=False)
        request = list_offsets(timestamp)
        sent = Request(request.api, request.fields, request.versions._replace(last=last))
        constraints = (equals(f"{LISTED}.error_code", answer.error.value),)
        return Taken(state, Exchange(sent, answer.error.name, answer.error, constraints=constraints))

    words = f"ask for {name.replace('-', ' ')} in a version of the request that does not know it"
    return Move(f"list-offsets.{name}.too-old", words, judge_timestamp, MONOTONIC, take)


# ---- OffsetForLeaderEpoch


def _end_of(asked: tuple[str, Epoch], epoch: tuple[str, Epoch]) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        request = OffsetForLeaderEpochRequest(epoch[1], asked[1])
        step = handle_offset_for_leader_epoch(broker(protocol), state.partition, request, 0)
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
        outcome += "" if epoch[0] else _shape(state.partition)
        sent = Request("OffsetForLeaderEpoch", fields, since(2))
        return Taken(state, Exchange(sent, outcome, answer.error, constraints=tuple(constraints)))

    name = ".".join(filter(None, ("end-of-epoch", asked[0] or "undefined", epoch[0])))
    which = f"{WHICH[asked[0]]} leader epoch" if asked[0] else "no leader epoch"
    told = f"ask where {which} ends" + _claims(epoch[0])
    promise = FENCED if epoch[0] in ("older", "newer") else TRUNCATES
    return Move(name, told, handle_offset_for_leader_epoch, promise, take)


def _ends() -> Iterator[Move]:
    for asked in (EPOCHS[0], EPOCHS[1], EPOCHS[3]):
        for epoch in EPOCHS:
            yield _end_of(asked, epoch)


# ---- DeleteRecords


def _delete(where: str, words: str, place: Place) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        offset = place(state.partition)
        if offset is None:
            return None
        own = broker(protocol, state.deletes_records)
        step = handle_delete_records(own, state.partition, DeleteRecordsRequest(offset), 0)
        answer: DeleteRecordsResponse = reply_of(step.effects, DeleteRecordsResponse)
        asked = {"partition_index": 0, "offset": offset}
        fields = {"topics": [{"name": TOPIC, "partitions": [asked]}], "timeout_ms": 10_000}
        constraints = [equals(f"{LISTED}.error_code", answer.error.value)]
        if answer.error == Error.NONE:
            constraints.append(equals(f"{LISTED}.low_watermark", answer.low_watermark))
        moved = step.state != state.partition
        outcome = answer.error.name if answer.error != Error.NONE else "deleted" if moved else "nothing to delete"
        exchange = Exchange(Request("DeleteRecords", fields), outcome, answer.error, constraints=tuple(constraints))
        return Taken(state._replace(partition=step.state), exchange)

    return Move(f"delete-records.{where}", f"delete the records up to {words}", handle_delete_records, DELETED, take)


def _deletes() -> Iterator[Move]:
    yield _delete("all", "the high watermark (-1)", lambda partition: TO_HIGH_WATERMARK)
    for where, words, place in PLACES:
        yield _delete(where, words, place)


def _setup(state: LogState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    return topic_ready(keeps_records(state), holes)


MOVES = (_produce(1), _produce(3), *_fetches(), *_lists(), *_ends(), *_deletes())

READING = Subject(
    "reading",
    "reading from a log at each of its places, with and without leader epochs; deleting from its start",
    LogState(led_partition()),
    MOVES,
    _setup,
    {"records": MOST_RECORDS, "leader_epoch": CURRENT, "older": OLDER, "newer": NEWER},
    by_release=True,
)

# ---- several leader epochs


def _restart() -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        partition = state.partition
        if partition.leader_epoch == THIRD:
            return None
        epoch = Epoch(partition.leader_epoch + 2)
        version = PartitionEpoch(partition.isr.partition_epoch + 1)
        registration = PartitionRegistration((SELF,), frozenset({SELF}), SELF, epoch, version)
        step = become_leader(broker(protocol), partition, registration, 0)
        name = f"epoch_{(epoch - CURRENT) // 2}"
        exchange = restarted(name, partition.local.log.end_offset)
        return Taken(state._replace(partition=step.state), exchange)

    return Move("restart", "the broker is restarted", become_leader, ACKNOWLEDGED, take)


IN_TURN = (("first", CURRENT), ("second", SECOND), ("third", THIRD))


def _of_epochs() -> Iterator[Move]:
    for name, epoch in IN_TURN:
        named = [
            _end_of((name, epoch), EPOCHS[0]),
            *(_fetch(place, EPOCHS[0], (name, epoch), committed=False) for place in PLACES[1:]),
            _fetch(PLACES[4], (name, epoch), EPOCHS[0], committed=False),
            _list("latest", "the latest offset", -1, lambda partition: 0, 4, (name, epoch), committed=False),
        ]
        yield from (_once_begun(move, epoch) for move in named)
    for place in PLACES[1:4]:
        yield _fetch(place, EPOCHS[0], EPOCHS[0], committed=False)
    for name, words, timestamp in KINDS[:3]:
        yield _list(name, words, timestamp, lambda partition: 0, 7, EPOCHS[0], committed=False)
    for name, words, when in MOMENTS[1:4]:
        yield _list(name, words, 0, when, 4, EPOCHS[0], committed=False)
    yield _delete(*PLACES[3])
    yield _delete(*PLACES[4])


def _once_begun(move: Move, epoch: Epoch) -> Move:
    """The move, once the broker has told the leader epoch that it names."""

    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        return None if state.partition.leader_epoch < epoch else move.take(protocol, state)

    return move._replace(take=take)


def _only_later(move: Move) -> Move:
    """The move, once there have been two leader epochs: with one, the subject `reading` makes it."""

    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        if state.partition.leader_epoch == CURRENT and not move.name.startswith(("produce", "restart", "delete")):
            return None
        return move.take(protocol, state)

    return move._replace(take=take)


LEADER_EPOCHS = Subject(
    "leader-epochs",
    "a log that was written in several leader epochs; needs a broker that can be restarted",
    LogState(led_partition()),
    tuple(map(_only_later, (_produce(1), _restart(), *_of_epochs()))),
    _setup,
    {"records": MOST_RECORDS, "leader_epochs": 3},
    by_release=True,
)

COMPACTED = Subject(
    "compacted",
    "a topic whose records are compacted and not deleted",
    LogState(led_partition(), deletes_records=False),
    (_produce(1), *_deletes()),
    _setup,
    {"records": MOST_RECORDS},
    by_release=True,
)
