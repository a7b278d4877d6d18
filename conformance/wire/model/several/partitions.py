"""Requests about several partitions, of one topic and of two: each is answered for itself."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, Fields, Hole, RecordParts, RequestFields, equals
from kspec.conformance.wire.model.batches import BatchShape, batch
from kspec.conformance.wire.model.partition import (
    CURRENT,
    Led,
    append,
    broker,
    led_partition,
    on_wire,
    reply_of,
)
from kspec.conformance.wire.model.reading.fetching import fetch_constraints
from kspec.conformance.wire.model.received.headers import KINDS, SentHeader, judge
from kspec.conformance.wire.model.requests import (
    MAY_WAIT_MS,
    MOST_BYTES,
    TOPIC,
    TOPIC_ID,
    WAIT_MS,
    create_topic,
    look_up_topic,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.clients.batches import of_copies
from kspec.spec.broker.clients.named_partitions import check_named_once, check_named_partition
from kspec.spec.broker.leader.deletion import handle_delete_records
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.batch import Batch
from kspec.spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse, Isolation
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_EPOCH, Error, MonotonicMs, Offset

EACH = "each partition of a request is served for itself, and its answer names it"
OTHER, OTHER_ID = Hole("topic_dotted"), Hole("topic_id_2")
PARTITIONS = ((TOPIC, TOPIC_ID, 0), (TOPIC, TOPIC_ID, 1), (OTHER, OTHER_ID, 0))
"""The partitions that there are: their topics, the ids of these, their numbers."""

MISSING, FAR = -1, 7
"""In place of one of them: the first topic's partition with this number, which there is not."""

MOST = (2, 2, 1)
"""The longest logs."""

APART_MS = 1_000
"""Between the times of records of different partitions: so each record tells where it belongs."""

DELETED_TO = Offset(1)


ANSWERED_ONCE = "4.0"
"""The first release that answers a partition once that is named twice; 3.9.2 has it twice in its answer."""


class SeveralState(NamedTuple):
    """The partitions, in the order of `PARTITIONS`."""

    logs: tuple[Led, ...] = (led_partition(),) * len(PARTITIONS)

    def having(self, place: int, log: Led) -> "SeveralState":
        """The same with another log at a place."""
        return SeveralState((*self.logs[:place], log, *self.logs[place + 1 :]))


class PartitionPart(NamedTuple):
    """A part of a request, about one partition: its fields, the error, the constraints on its entry, the log after it.

    `offset`: the offset that is told, or how many records: where two parts differ in it, they cannot be mixed up.
    """

    fields: Fields
    error: Error
    constraints: tuple[Constraint, ...]
    log: Led
    offset: int = 0


class SeveralRequest(NamedTuple):
    """A request about partitions: the names of its lists and of the numbers in them, and of those of its answer.

    `make` makes the part about one partition: the log, its place, and where its entry is in the answer.
    """

    api: str
    name: str
    words: str
    handler: Callable[..., Any]
    asked: tuple[str, str, str]
    told: tuple[str, str, str]
    fields: Fields
    make: Callable[[BrokerProtocol, Led, int, str], PartitionPart]
    of_missing: Fields
    topic: str = "name"


def _time(place: int, log: Led) -> int:
    return APART_MS * place + int(log.local.log.end_offset)


def _produced(protocol: BrokerProtocol, log: Led, place: int, where: str) -> PartitionPart:
    return _produced_of(protocol, log, place, where, 1)


def _produced_of(protocol: BrokerProtocol, log: Led, place: int, where: str, count: int) -> PartitionPart:
    time = _time(place, log)
    done = append(protocol, log, ACKS_ALL, Batch(count, payload=time))
    assert done.answer is not None, "a lone leader commits at once"
    constraints = (
        equals(f"{where}.error_code", done.answer.error.value),
        equals(f"{where}.base_offset", done.answer.base_offset),
        equals(f"{where}.log_start_offset", log.local.log.start_offset),
    )
    fields = {"records": batch(BatchShape(count, time, 0))}
    return PartitionPart(fields, done.answer.error, constraints, done.partition, done.answer.base_offset)


def _fetched(protocol: BrokerProtocol, log: Led, place: int, where: str) -> PartitionPart:
    request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, Offset(0), NO_EPOCH), has_client_metadata=True)
    answer = reply_of(handle_fetch(broker(protocol), log, request, MonotonicMs(0)).effects, FetchResponse)
    return PartitionPart(FROM_START, answer.error, fetch_constraints(answer, where=where), log, len(answer.records))


def _listed(protocol: BrokerProtocol, log: Led, place: int, where: str) -> PartitionPart:
    request = ListOffsetsRequest(OffsetSpec.LATEST, isolation=Isolation.HIGH_WATERMARK)
    answer = reply_of(handle_list_offsets(broker(protocol), log, request, MonotonicMs(0)).effects, ListOffsetsResponse)
    constraints = (equals(f"{where}.error_code", answer.error.value), equals(f"{where}.offset", answer.offset))
    return PartitionPart(LATEST, answer.error, constraints, log, answer.offset)


def _deleted(protocol: BrokerProtocol, log: Led, place: int, where: str) -> PartitionPart:
    step = handle_delete_records(broker(protocol), log, DeleteRecordsRequest(DELETED_TO), MonotonicMs(0))
    answer = reply_of(step.effects, DeleteRecordsResponse)
    constraints: tuple[Constraint, ...] = (equals(f"{where}.error_code", answer.error.value),)
    if answer.error == Error.NONE:
        constraints += (equals(f"{where}.low_watermark", answer.low_watermark),)
    return PartitionPart(TO_FIRST, answer.error, constraints, step.state, answer.low_watermark)


def _end_of_epoch(protocol: BrokerProtocol, log: Led, place: int, where: str) -> PartitionPart:
    request = OffsetForLeaderEpochRequest(NO_EPOCH, CURRENT)
    step = handle_offset_for_leader_epoch(broker(protocol), log, request, MonotonicMs(0))
    answer: OffsetForLeaderEpochResponse = reply_of(step.effects, OffsetForLeaderEpochResponse)
    constraints = (
        equals(f"{where}.error_code", answer.error.value),
        equals(f"{where}.end_offset", answer.end.end_offset),
    )
    return PartitionPart(OF_EPOCH, answer.error, constraints, log, answer.end.end_offset)


FROM_START: Fields = {
    "current_leader_epoch": -1,
    "fetch_offset": 0,
    "last_fetched_epoch": -1,
    "partition_max_bytes": MOST_BYTES,
}
LATEST: Fields = {"current_leader_epoch": -1, "timestamp": -1}
TO_FIRST: Fields = {"offset": DELETED_TO}
OF_EPOCH: Fields = {"current_leader_epoch": -1, "leader_epoch": on_wire(CURRENT)}

PRODUCE = SeveralRequest(
    "Produce",
    "produce",
    "produce to",
    handle_produce,
    ("topic_data", "partition_data", "index"),
    ("responses", "partition_responses", "index"),
    {"acks": ACKS_ALL, "timeout_ms": WAIT_MS},
    _produced,
    {"records": batch()},
)
FETCH = SeveralRequest(
    "Fetch",
    "fetch",
    "fetch from",
    handle_fetch,
    ("topics", "partitions", "partition"),
    ("responses", "partitions", "partition_index"),
    {"max_wait_ms": MAY_WAIT_MS, "min_bytes": 0, "max_bytes": MOST_BYTES},
    _fetched,
    FROM_START,
    "topic",
)
LIST = SeveralRequest(
    "ListOffsets",
    "list-offsets",
    "ask for the latest offset of",
    handle_list_offsets,
    ("topics", "partitions", "partition_index"),
    ("topics", "partitions", "partition_index"),
    {"replica_id": -1},
    _listed,
    LATEST,
)
DELETE = SeveralRequest(
    "DeleteRecords",
    "delete-records",
    "delete the first record of",
    handle_delete_records,
    ("topics", "partitions", "partition_index"),
    ("topics", "partitions", "partition_index"),
    {"timeout_ms": WAIT_MS},
    _deleted,
    TO_FIRST,
)
END = SeveralRequest(
    "OffsetForLeaderEpoch",
    "end-of-epoch",
    "ask where the epoch ends in",
    handle_offset_for_leader_epoch,
    ("topics", "partitions", "partition"),
    ("topics", "partitions", "partition"),
    {"replica_id": -1},
    _end_of_epoch,
    OF_EPOCH,
    "topic",
)
REQUESTS = (PRODUCE, FETCH, LIST, DELETE, END)
PAIRS: tuple[tuple[str, str, tuple[int, ...]], ...] = (
    ("both", "both partitions of a topic", (0, 1)),
    ("of-two-topics", "partitions of two topics", (2, 1)),
    ("missing-first", "a partition that there is not, and one that there is", (MISSING, 0)),
    ("missing-last", "a partition that there is, and one that there is not", (1, MISSING)),
)


def _entry(request: SeveralRequest, topic: Hole, key: str, partition: int | str) -> str:
    """The path to a partition's entry in an answer. `key`: the field that names the topic there."""
    topics, partitions, index = request.told
    hole = topic.name if key != "topic_id" else (TOPIC_ID if topic == TOPIC else OTHER_ID).name
    inside = partition if isinstance(partition, str) else f"[{index}={partition}]"
    return f"{topics}[{key}=@{hole}].{partitions}{inside}"


def _keys(request: SeveralRequest) -> tuple[str, ...]:
    """The fields that name a topic in an answer, by name and in newer versions by its id."""
    return (request.topic, "topic_id") if request.api in ("Produce", "Fetch") else (request.topic,)


def _named(place: int) -> tuple[Hole, Hole, int]:
    return (TOPIC, TOPIC_ID, FAR) if place == MISSING else PARTITIONS[place]


def _sent(request: SeveralRequest, parts: list[tuple[int, Fields]]) -> RequestFields:
    """The request, its parts in order, those of one topic together."""
    topics, partitions, index = request.asked
    by_topic: dict[Hole, dict[str, Any]] = {}
    for place, fields in parts:
        topic, topic_id, number = _named(place)
        names = {request.topic: topic} | ({"topic_id": topic_id} if len(_keys(request)) > 1 else {})
        entry = by_topic.setdefault(topic, names | {partitions: []})
        entry[partitions].append({index: number, **fields})
    return RequestFields(request.api, {**request.fields, topics: list(by_topic.values())})


def _ask(request: SeveralRequest, name: str, words: str, places: tuple[int, ...]) -> Move:
    def take(protocol: BrokerProtocol, state: SeveralState) -> MoveResult | None:
        parts: list[tuple[int, Fields]] = []
        constraints: list[Constraint] = []
        errors: list[Error] = []
        offsets: set[int] = set()
        for place in places:
            topic, _, number = _named(place)
            count = sum(one[0] == topic for one in PARTITIONS)
            error = check_named_partition(count, number, by_id=False)
            for key in _keys(request):
                where = _entry(request, topic, key, number)
                if error != Error.NONE:
                    part = PartitionPart(
                        request.of_missing, error, (equals(f"{where}.error_code", error.value),), state.logs[0]
                    )
                else:
                    part = request.make(protocol, state.logs[place], place, where)
                constraints += part.constraints
            parts.append((place, part.fields))
            errors.append(part.error)
            if place != MISSING:
                state = state.having(place, part.log)
                offsets.add(part.offset)
        constraints += _counts(request, places)
        taken = _answered(state, _sent(request, parts), errors, constraints)
        more = ", with different offsets" if len(offsets) > 1 and set(errors) == {Error.NONE} else ""
        return taken._replace(exchange=taken.exchange._replace(outcome=taken.exchange.outcome + more))

    return Move(f"{request.name}.{name}", f"{request.words} {words}", request.handler, EACH, _bounded(take))


def _counts(request: SeveralRequest, places: tuple[int, ...]) -> Iterator[Constraint]:
    """The number of entries of each topic."""
    named = [_named(place)[0] for place in places]
    for topic in dict.fromkeys(named):
        for key in _keys(request):
            yield equals(_entry(request, topic, key, "[#]"), named.count(topic))


def _answered(state: SeveralState, sent: RequestFields, errors: list[Error], constraints: list[Constraint]) -> MoveResult:
    outcome = ", ".join("done" if one == Error.NONE else one.name for one in errors)
    first = next((one for one in errors if one != Error.NONE), Error.NONE)
    return MoveResult(state, Exchange(sent, outcome, first, constraints=tuple(constraints)))


def _bounded(take: Callable[[BrokerProtocol, SeveralState], MoveResult | None]) -> Any:
    def within(protocol: BrokerProtocol, state: SeveralState) -> MoveResult | None:
        taken: Any = take(protocol, state)
        ends = (int(log.local.log.end_offset) for log in taken.state.logs)
        return None if any(end > most for end, most in zip(ends, MOST, strict=True)) else taken

    return within


# ---- one of two batches is damaged; the same partition twice


def _damaged() -> SentHeader:
    return next(make for name, _, make in KINDS if name == "checksum")()


def _one_damaged(name: str, words: str, damaged: int, sound: int) -> Move:
    def take(protocol: BrokerProtocol, state: SeveralState) -> MoveResult | None:
        sent = _damaged()
        error = judge(sent).error
        constraints: list[Constraint] = []
        for key in _keys(PRODUCE):
            constraints.append(equals(f"{_entry(PRODUCE, TOPIC, key, damaged)}.error_code", error.value))
            part = _produced(protocol, state.logs[sound], sound, _entry(PRODUCE, TOPIC, key, sound))
            constraints += part.constraints
        both: dict[int, Fields] = {damaged: {"records": sent.records}, sound: part.fields}
        request = _sent(PRODUCE, [(place, both[place]) for place in (0, 1)])
        return _answered(state.having(sound, part.log), request, [error, part.error], constraints)

    return Move(f"produce.{name}", f"produce to both partitions, {words}", handle_produce, EACH, _bounded(take))


def _produce_twice() -> Move:
    """Two batches for one partition: the last one is appended."""

    def take(protocol: BrokerProtocol, state: SeveralState) -> MoveResult | None:
        chosen, error = of_copies((Error.NONE, Error.NONE))
        assert (chosen, error) == (1, Error.NONE)
        constraints: list[Constraint] = []
        for key in _keys(PRODUCE):
            part = _produced_of(protocol, state.logs[0], 0, _entry(PRODUCE, TOPIC, key, 0), 2)
            constraints += part.constraints
        first: RecordParts = batch(BatchShape(1, _time(0, state.logs[0]), 0))
        request = _sent(PRODUCE, [(0, {"records": first}), (0, part.fields)])
        constraints += _counts(PRODUCE, (0,))
        return _answered(state.having(0, part.log), request, [part.error], constraints)

    words = "produce two batches to one partition in one request, of one record and of two"
    return Move("produce.twice", words, of_copies, EACH, _bounded(take))


def _list_twice() -> Move:
    def take(protocol: BrokerProtocol, state: SeveralState) -> MoveResult | None:
        error = check_named_once(2)
        where = _entry(LIST, TOPIC, "name", 0)
        other = _listed(protocol, state.logs[1], 1, _entry(LIST, TOPIC, "name", 1))
        constraints = [equals(f"{where}.error_code", error.value), *_counts(LIST, (0, 1)), *other.constraints]
        request = _sent(LIST, [(0, LATEST), (1, LATEST), (0, LATEST)])
        taken = _answered(state, request, [error, other.error], constraints)
        return taken._replace(exchange=taken.exchange._replace(since=ANSWERED_ONCE))

    words = "ask for the latest offset of one partition twice, and of another one"
    return Move("list-offsets.twice", words, check_named_once, EACH, take)


def _twice(request: SeveralRequest, times_told: int) -> Move:
    """The same partition twice in a request, where that is answered once or twice, and is done once."""

    def take(protocol: BrokerProtocol, state: SeveralState) -> MoveResult | None:
        constraints: list[Constraint] = []
        for key in _keys(request):
            part = request.make(protocol, state.logs[0], 0, _entry(request, TOPIC, key, 0))
            constraints += [*part.constraints, *_counts(request, (0,) * times_told)]
        sent = _sent(request, [(0, part.fields), (0, part.fields)])
        return _answered(state.having(0, part.log), sent, [part.error], constraints)

    return Move(f"{request.name}.twice", f"{request.words} one partition twice", request.handler, EACH, _bounded(take))


def _setup(state: SeveralState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    other = (create_topic(OTHER), look_up_topic(OTHER, OTHER_ID.name), wait_for_leader(topic=OTHER))
    return (
        *(other if {OTHER.name, OTHER_ID.name} & holes else ()),
        create_topic(TOPIC, partitions=2),
        look_up_topic(),
        wait_for_leader(),
        wait_for_leader(1),
    )


ALL = ("all", "all partitions", (0, 1, 2))
LOOK = _ask(FETCH, *ALL)
SEVERAL_PARTITIONS = Subject(
    "several-partitions",
    "requests about two partitions of a topic, of two topics, about one that there is and one that there is not",
    SeveralState(),
    (
        *(_ask(request, *pair) for request in REQUESTS for pair in PAIRS),
        *(_ask(request, *ALL) for request in REQUESTS if request is not FETCH),
        _one_damaged("first-damaged", "the first one damaged", 0, 1),
        _one_damaged("last-damaged", "the last one damaged", 1, 0),
        _produce_twice(),
        _list_twice(),
        _twice(FETCH, 1),
        _twice(DELETE, 1),
        _twice(END, 2),
        LOOK,
    ),
    _setup,
    {"records": sum(MOST)},
    looks=(LOOK,),
)
