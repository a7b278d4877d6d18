"""Subjects about one log that is read at each of its places, and deleted from its start."""

from collections.abc import Callable, Iterator

from kspec.conformance.wire.exchange import Exchange, RequestFields, equals
from kspec.conformance.wire.model.batches import BatchShape, batch
from kspec.conformance.wire.model.partition import (
    CURRENT,
    EPOCHS,
    INTERVAL_MS,
    NEWER,
    OLDER,
    SECOND,
    THIRD,
    Led,
    LogState,
    append,
    broker,
    keeps_records,
    led_partition,
    next_time,
    reply_of,
    restart_move,
    stored_at,
    topic_ready,
)
from kspec.conformance.wire.model.reading.fetching import fetch_move, fetch_moves
from kspec.conformance.wire.model.reading.listing import KINDS, MOMENTS, end_move, end_moves, list_move, list_moves
from kspec.conformance.wire.model.reading.places import ACKNOWLEDGED, DELETED, LARGEST_PLACE, MOST_RECORDS, PLACES, Place
from kspec.conformance.wire.model.requests import (
    LISTED,
    PRODUCED,
    TOPIC,
    produce,
)
from kspec.conformance.wire.model.restarts import after_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.leader.deletion import handle_delete_records
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.batch import Batch
from kspec.spec.messages.delete_records import TO_HIGH_WATERMARK, DeleteRecordsRequest, DeleteRecordsResponse
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import Epoch, Error, MonotonicMs


def produce_move(
    count: int, more: str = "", words: str = "", at: Callable[[Led], int] = next_time, step: int = INTERVAL_MS
) -> Move:
    """A batch of so many records. `at`: the time of the first (ms), `step`: between them; by default each is later."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        log = state.partition.local.log
        if log.end_offset + count > MOST_RECORDS:
            return None
        partition, time = state.partition, at(state.partition)
        answers = []
        for number in range(count):  # one by one, because each has its own time
            appended = append(protocol, partition, ACKS_ALL, Batch(1, payload=time + number * step))
            assert appended.answer is not None, "a lone leader commits at once"
            partition = appended.partition
            answers.append(appended.answer)
        constraints = (
            equals(f"{PRODUCED}.error_code", answers[0].error.value),
            *stored_at(answers[0], state.partition),
        )
        request = produce(ACKS_ALL, batch(BatchShape(count, time, step)))
        exchange = Exchange(request, "appended", answers[0].error, constraints=constraints)
        return MoveResult(state._replace(partition=partition), exchange)

    told = f"produce {count} record{'s' if count > 1 else ''}{words}"
    return Move(f"produce-{count}{more}", told, handle_produce, ACKNOWLEDGED, take)


def delete_move(where: str, words: str, place: Place) -> Move:
    """Deleting the records before a place."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        offset = place(state.partition)
        if offset is None:
            return None
        own = broker(protocol, state.deletes_records)
        step = handle_delete_records(own, state.partition, DeleteRecordsRequest(offset), MonotonicMs(0))
        answer: DeleteRecordsResponse = reply_of(step.effects, DeleteRecordsResponse)
        asked = {"partition_index": 0, "offset": offset}
        fields = {"topics": [{"name": TOPIC, "partitions": [asked]}], "timeout_ms": 10_000}
        constraints = [equals(f"{LISTED}.error_code", answer.error.value)]
        if answer.error == Error.NONE:
            constraints.append(equals(f"{LISTED}.low_watermark", answer.low_watermark))
        moved = step.state != state.partition
        outcome = answer.error.name if answer.error != Error.NONE else "deleted" if moved else "nothing to delete"
        exchange = Exchange(RequestFields("DeleteRecords", fields), outcome, answer.error, constraints=tuple(constraints))
        return MoveResult(state._replace(partition=step.state), exchange)

    return Move(f"delete-records.{where}", f"delete the records up to {words}", handle_delete_records, DELETED, take)


ALL_RECORDS: tuple[str, str, Place] = ("all", "the high watermark (-1)", lambda partition: TO_HIGH_WATERMARK)


def delete_moves() -> Iterator[Move]:
    """Deleting the records before every place, or all."""
    yield delete_move(*ALL_RECORDS)
    for where, words, place in PLACES:
        yield delete_move(where, words, place)


def _setup(state: LogState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    return topic_ready(keeps_records(state), holes)


LARGEST_EPOCH = ("largest", Epoch(2**31 - 1))
LARGEST = (
    fetch_move(LARGEST_PLACE, EPOCHS[0], EPOCHS[0], committed=False),
    fetch_move(PLACES[4], LARGEST_EPOCH, EPOCHS[0], committed=False),
    fetch_move(PLACES[4], EPOCHS[0], LARGEST_EPOCH, committed=False),
    end_move(LARGEST_EPOCH, EPOCHS[0]),
    delete_move(*LARGEST_PLACE),
)
MOVES = (produce_move(1), produce_move(3), *fetch_moves(), *list_moves(), *end_moves(), *delete_moves(), *LARGEST)


def _of_whole_log(move: Move) -> Move:
    """The move, while nothing is deleted: Kafka may name the largest timestamp of a deleted record."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        return None if state.partition.local.log.start_offset else move.take(protocol, state)

    return move._replace(take=take)


def _largest(partition: Led, more: int) -> int:
    return max((int(record.value) for record in partition.local.log.records), default=0) + more


def _smallest(partition: Led) -> int:
    return min((int(record.value) for record in partition.local.log.records), default=0)


_TIMES: tuple[tuple[tuple[str, str], Callable[[Led], int]], ...] = (
    (("time-of-oldest", "the time of the oldest record"), _smallest),
    (("time-after-oldest", "a time after the oldest record"), lambda partition: _smallest(partition) + 1),
    (("time-of-newest", "the time of the newest record"), lambda partition: _largest(partition, 0)),
    (("time-before-newest", "a time before the newest record"), lambda partition: _largest(partition, -1)),
    (("time-after-newest", "a time after the newest record"), lambda partition: _largest(partition, 1)),
)

READING = Subject(
    "reading",
    "reading from a log at each of its places, with and without leader epochs; deleting from its start",
    LogState(led_partition()),
    MOVES,
    _setup,
    {"records": MOST_RECORDS, "leader_epoch": CURRENT, "older": OLDER, "newer": NEWER},
    by_release=True,
)

TIMES = Subject(
    "times",
    "records whose times are equal, or go back",
    LogState(led_partition()),
    (
        produce_move(1),
        produce_move(1, "-same", " with the largest time so far", lambda partition: _largest(partition, 0)),
        produce_move(1, "-older", " of a time before all others", lambda partition: _smallest(partition) - INTERVAL_MS),
        produce_move(3, "-same", " of one time", next_time, 0),
        produce_move(3, "-older", ", each older than the one before", next_time, -INTERVAL_MS),
        *(list_move(*one, 0, when, 1, EPOCHS[0], committed=False) for one, when in _TIMES),
        _of_whole_log(list_move(*KINDS[2][:2], -3, lambda partition: 0, 7, EPOCHS[0], committed=False)),
        delete_move(*PLACES[3]),
        fetch_move(PLACES[2], EPOCHS[0], EPOCHS[0], committed=False),
    ),
    _setup,
    {"records": MOST_RECORDS},
    by_release=True,
)

RESTART = restart_move(lambda state: state, lambda state, log: log)
READING_AGAIN = after_restart(
    READING,
    RESTART,
    before=("produce-1", "produce-3", "delete-records.inside", "delete-records.end"),
    after=(
        "produce-1",
        "fetch.before-start",
        "fetch.start",
        "fetch.end",
        "fetch.past-end",
        "list-offsets.earliest",
        "list-offsets.latest",
        "list-offsets.max-timestamp",
        "list-offsets.time-before-all",
        "list-offsets.time-of-last",
        "list-offsets.time-after-all",
        "delete-records.start",
        "delete-records.before-start",
        "delete-records.all",
    ),
)

# ---- several leader epochs


IN_TURN = (("first", CURRENT), ("second", SECOND), ("third", THIRD))


def _of_epochs() -> Iterator[Move]:
    for name, epoch in IN_TURN:
        named = [
            end_move((name, epoch), EPOCHS[0]),
            *(fetch_move(place, EPOCHS[0], (name, epoch), committed=False) for place in PLACES[1:]),
            fetch_move(PLACES[4], (name, epoch), EPOCHS[0], committed=False),
            list_move("latest", "the latest offset", -1, lambda partition: 0, 4, (name, epoch), committed=False),
        ]
        yield from (_once_begun(move, epoch) for move in named)
    for place in PLACES[1:4]:
        yield fetch_move(place, EPOCHS[0], EPOCHS[0], committed=False)
    for name, words, timestamp in KINDS[:3]:
        yield list_move(name, words, timestamp, lambda partition: 0, 7, EPOCHS[0], committed=False)
    for name, words, when in MOMENTS[1:4]:
        yield list_move(name, words, 0, when, 4, EPOCHS[0], committed=False)
    yield delete_move(*PLACES[3])
    yield delete_move(*PLACES[4])


def _once_begun(move: Move, epoch: Epoch) -> Move:
    """The move, once the broker has told the leader epoch that it names."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        return None if state.partition.leader_epoch < epoch else move.take(protocol, state)

    return move._replace(take=take)


def _only_later(move: Move) -> Move:
    """The move, once there have been two leader epochs: with one, the subject `reading` makes it."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        if state.partition.leader_epoch == CURRENT and not move.name.startswith(("produce", "restart", "delete")):
            return None
        return move.take(protocol, state)

    return move._replace(take=take)


LEADER_EPOCHS = Subject(
    "leader-epochs",
    "a log that was written in several leader epochs; needs a broker that can be restarted",
    LogState(led_partition()),
    tuple(map(_only_later, (produce_move(1), RESTART, *_of_epochs()))),
    _setup,
    {"records": MOST_RECORDS, "leader_epochs": 3},
    by_release=True,
)

COMPACTED = Subject(
    "compacted",
    "a topic whose records are compacted and not deleted",
    LogState(led_partition(), deletes_records=False),
    (produce_move(1), *delete_moves()),
    _setup,
    {"records": MOST_RECORDS},
    by_release=True,
)
