"""Produce: acks, and the sequence numbers of idempotent producers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Constraint, Exchange, Hole, RequestEnding, RequestFields, equals
from kspec.conformance.wire.model.batches import BatchShape, batch
from kspec.conformance.wire.model.partition import (
    LogState,
    append,
    broker,
    keeps_records,
    led_partition,
    restart_move,
    stored_at,
    topic_ready,
)
from kspec.conformance.wire.model.reading.fetching import fetch_constraints
from kspec.conformance.wire.model.reading.logs import ALL_RECORDS, delete_move
from kspec.conformance.wire.model.reading.places import PLACES
from kspec.conformance.wire.model.requests import PRODUCED, TOPIC, fetch, produce
from kspec.conformance.wire.model.restarts import after_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.clients.named_partitions import check_named_partition, check_named_topic
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.batch import Batch
from kspec.spec.log.producers import BATCHES_REMEMBERED, LAST_SEQUENCE, ProducerEntry, entry_of, next_sequence
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from kspec.spec.values import NO_EPOCH, NO_PRODUCER_ID, Error, Offset, ProducerEpoch, ProducerId

PRODUCER, OTHER = ProducerId(1), ProducerId(2)
PRODUCER_HOLES = {PRODUCER: Hole("producer_id"), OTHER: Hole("producer_id_2")}
MOST_RECORDS, MOST_OF_PAIRS = 7, 5
"""The longest log: one with a batch that is no longer remembered; where batches have two records, and producers are two."""

UNKNOWN_STARTS_AT = 5

ONCE = "a batch that is sent again is stored once, and a gap in a producer's batches is refused"
ACKS = "a producer is told of what has happened to its batch as its acks ask"
KEPT = "a record is stored once, and refused records are not"


class Sequence(NamedTuple):
    """An idempotent producer's batch: its epoch, its first sequence number, how many records."""

    epoch: int
    first: int
    records: int = 1


class ProducingState(NamedTuple):
    """The partition, and the batches of the producer that were appended, in order."""

    log: LogState
    sent: tuple[Sequence, ...] = ()
    others: int = 0


Choose = Callable[[ProducerEntry, tuple[Sequence, ...]], Sequence | None]
"""The batch that is sent next, from the leader's state of the producer and what the producer has sent; none where there is
no such batch.
"""


def _again(back: int) -> Choose:
    """The batch that is `back` batches before the next one."""
    return lambda entry, sent: sent[-back] if len(sent) >= back else None


def _known(send: Callable[[ProducerEntry], Sequence]) -> Choose:
    return lambda entry, sent: send(entry) if entry.batches else None


def _unknown(first: int, records: int = 1) -> Choose:
    return lambda entry, sent: None if entry.batches else Sequence(0, first, records)


def _part_of_last(skip: int, records: int) -> Choose:
    """A part of a last batch of two, or more than it."""

    def choose(entry: ProducerEntry, sent: tuple[Sequence, ...]) -> Sequence | None:
        if not sent or sent[-1].records != 2:
            return None
        return Sequence(sent[-1].epoch, (sent[-1].first + skip) % (LAST_SEQUENCE + 1), records)

    return choose


def _of_older(entry: ProducerEntry, first: int) -> Sequence | None:
    return Sequence(entry.producer_epoch - 1, first) if entry.producer_epoch > 0 else None


def _next(entry: ProducerEntry, ahead: int = 0, records: int = 1) -> Sequence:
    return Sequence(entry.producer_epoch, next_sequence(entry) + ahead, records)


SEQUENCES: tuple[tuple[str, str, Choose], ...] = (
    ("first", "its first batch", _unknown(0)),
    ("first-not-0", "its first batch, which does not begin at 0", _unknown(UNKNOWN_STARTS_AT)),
    ("first-at-last", "its first batch, with the last sequence number there is", _unknown(LAST_SEQUENCE)),
    (
        "first-over-last",
        "its first batch, of two records, the first with the last number there is",
        _unknown(LAST_SEQUENCE, 2),
    ),
    ("next", "its next batch", _known(_next)),
    ("next-pair", "its next batch, of two records", _known(lambda entry: _next(entry, records=2))),
    ("again", "its last batch again", _again(1)),
    ("again-2", "its last batch but one again", _again(2)),
    ("again-5", "the fifth last batch again", _again(BATCHES_REMEMBERED)),
    ("again-6", "the sixth last batch again", _again(BATCHES_REMEMBERED + 1)),
    ("again-first-half", "the first record of its last batch again", _part_of_last(0, 1)),
    ("again-second-half", "the second record of its last batch again", _part_of_last(1, 1)),
    ("again-and-more", "its last batch again, with one more record", _part_of_last(0, 3)),
    ("gap", "a batch after a gap", _known(lambda entry: _next(entry, ahead=1))),
    (
        "overlap",
        "a batch of two, the first sent before",
        _known(lambda entry: Sequence(entry.producer_epoch, entry.last_sequence, 2)),
    ),
    ("new-epoch", "the first batch of a newer epoch", _known(lambda entry: Sequence(entry.producer_epoch + 1, 0))),
    (
        "new-epoch-gap",
        "a batch of a newer epoch that does not begin at 0",
        _known(lambda entry: Sequence(entry.producer_epoch + 1, 1)),
    ),
    (
        "new-epoch-goes-on",
        "its next batch, of a newer epoch",
        _known(lambda entry: Sequence(entry.producer_epoch + 1, next_sequence(entry))),
    ),
    ("old-epoch", "the next batch, of an older epoch", lambda entry, sent: _of_older(entry, next_sequence(entry))),
    ("old-epoch-first", "a first batch, of an older epoch", lambda entry, sent: _of_older(entry, 0)),
)


def _send(
    protocol: BrokerProtocol, state: ProducingState, acks: int, sequence: Sequence | None, sender: ProducerId = PRODUCER
) -> MoveResult | None:
    """Give the batch to the leader; the exchange says what the leader made of it."""
    producer, epoch, first, count = (NO_PRODUCER_ID, -1, -1, 1) if sequence is None else (sender, *sequence)
    partition = state.log.partition
    time = int(partition.local.log.end_offset)
    given = Batch(count, payload=time, producer_id=producer, producer_epoch=ProducerEpoch(epoch), first_sequence=first)
    done = append(protocol, partition, acks, given)
    hole = None if sequence is None else PRODUCER_HOLES[sender]
    request = produce(acks, batch(BatchShape(count, time, 0, producer=hole, producer_epoch=epoch, sequence=first)))
    stored = done.partition != partition
    after = state._replace(log=state.log._replace(partition=done.partition))
    if stored and sequence is not None:
        after = (
            after._replace(sent=(*state.sent, sequence)) if sender == PRODUCER else after._replace(others=state.others + 1)
        )
    if done.closed:
        return MoveResult(after, Exchange(request, "closed", ending=RequestEnding.CLOSED))
    if done.answer is None:
        return MoveResult(after, Exchange(request, "no answer", ending=RequestEnding.SILENT))
    constraints: tuple[Constraint, ...] = (equals(f"{PRODUCED}.error_code", done.answer.error.value),)
    if done.answer.error == Error.NONE:
        told = stored_at(done.answer, partition)
        constraints += told if stored else tuple(one for one in told if not one.path.endswith("_ms"))
    outcome = done.answer.error.name if done.answer.error != Error.NONE else "appended" if stored else "duplicate"
    return MoveResult(after, Exchange(request, outcome, done.answer.error, constraints=constraints))


def _numbered(name: str, words: str, choose: Choose, acks: int) -> Move:
    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        sequence = choose(entry_of(state.log.partition.producers, PRODUCER), state.sent)
        if sequence is None or not 0 <= sequence.first <= LAST_SEQUENCE or sequence.epoch > 1:
            return None
        return _send(protocol, state, acks, sequence)

    told = f"an idempotent producer sends {words}" + (", with acks=0" if acks == ACKS_NONE else "")
    return Move(f"idempotent.{name}" + (".acks-0" if acks == ACKS_NONE else ""), told, handle_produce, ONCE, take)


def _bounded(move: Move, most: int) -> Move:
    """The move, while the log does not become longer."""

    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        taken: Any = move.take(protocol, state)
        return None if taken is None or taken.state.log.partition.local.log.end_offset > most else taken

    return move._replace(take=take)


def _of_other(name: str, words: str, first: int) -> Move:
    """Another producer's batch, while the log is short."""

    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        if state.others > 1 or len(state.sent) > 2:
            return None
        return _send(protocol, state, ACKS_ALL, Sequence(0, first), OTHER)

    return Move(f"other.{name}", f"another idempotent producer sends {words}", handle_produce, ONCE, take)


def _with_acks(acks: int, words: str) -> Move:
    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        return None if state.log.partition.local.log.end_offset > 1 else _send(protocol, state, acks, None)

    return Move(f"acks.{words}", f"produce with acks={acks}", handle_produce, ACKS, take)


def _read_all() -> Move:
    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, Offset(0), NO_EPOCH), has_client_metadata=True)
        answer = read_partition(broker(protocol), state.log.partition, request)
        outcome = answer.error.name if answer.error != Error.NONE else f"{answer.high_watermark} records"
        return MoveResult(state, Exchange(fetch(0), outcome, constraints=fetch_constraints(answer)))

    return Move("read-all", "read all records", read_partition, KEPT, take)


def _describe_producers() -> Move:
    """The producers that the leader remembers, each with its epoch and its last sequence number."""

    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        producers = state.log.partition.producers
        error = check_named_topic(True, check_named_partition(1, 0, by_id=False))
        where = "topics[0].partitions[0]"
        constraints: list[Constraint] = [
            equals(f"{where}.error_code", error.value),
            equals(f"{where}.active_producers[#]", len(producers)),
        ]
        for entry in producers:
            one = f"{where}.active_producers[producer_id=@{PRODUCER_HOLES[entry.producer_id].name}]"
            constraints += [
                equals(f"{one}.producer_epoch", entry.producer_epoch),
                equals(f"{one}.last_sequence", entry.last_sequence),
                equals(f"{one}.current_txn_start_offset", -1),
            ]
        request = RequestFields("DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0]}]})
        return MoveResult(state, Exchange(request, f"{len(producers)} producers", error, constraints=tuple(constraints)))

    return Move("describe-producers", "ask which producers are known", check_named_topic, ONCE, take)


DESCRIBE_PRODUCERS = _describe_producers()
READ_ALL = _read_all()
ALL_ACKS = ((ACKS_ALL, "all"), (ACKS_LEADER, "1"), (ACKS_NONE, "0"), (2, "2"), (-2, "minus-2"))


PAIRS = ("first-over-last", "next-pair", "again-first-half", "again-second-half", "again-and-more", "new-epoch-goes-on")
"""Batches that are only sent in the subject `sequences`."""

MOST_IF_CUT = 3
OF_CUT_LOG = (
    "idempotent.first",
    "idempotent.next",
    "idempotent.again",
    "idempotent.again-2",
    "idempotent.gap",
    "idempotent.new-epoch",
    "idempotent.old-epoch",
    "other.first",
    "other.next",
    "read-all",
    "describe-producers",
)
"""Batches and looks of the subject `sequences-cut`, beside deleting."""

LONG = ("again-5", "again-6", "old-epoch-first", "first-not-0")
"""Batches that are only sent in the subject `producing`."""


def _alone() -> Iterator[Move]:
    yield from (_with_acks(acks, words) for acks, words in ALL_ACKS)
    yield from (_numbered(*one, ACKS_ALL) for one in SEQUENCES if one[0] not in PAIRS)
    yield from (_numbered(*one, ACKS_NONE) for one in SEQUENCES if one[0] in ("first", "again", "gap"))
    yield READ_ALL


def _of_two() -> Iterator[Move]:
    yield from (_numbered(*one, ACKS_ALL) for one in SEQUENCES if one[0] not in LONG)
    yield _of_other("first", "its first batch", 0)
    yield _of_other("next", "its second batch", 1)
    yield READ_ALL
    yield DESCRIBE_PRODUCERS


PRODUCING = Subject(
    "producing",
    "acks, and the sequence numbers and epochs of an idempotent producer",
    ProducingState(LogState(led_partition())),
    tuple(_bounded(move, MOST_RECORDS) for move in _alone()),
    lambda state, holes: topic_ready(keeps_records(state.log), holes),
    {"records": MOST_RECORDS, "producer_epochs": 2},
    looks=(READ_ALL,),
    by_release=True,
)

SEQUENCE_NUMBERS = replace(
    PRODUCING,
    name="sequences",
    meaning="batches of several records, the last sequence number and what follows it, and two producers",
    moves=tuple(_bounded(move, MOST_OF_PAIRS) for move in _of_two()),
    bounds={"records": MOST_OF_PAIRS, "producer_epochs": 2, "producers": 2},
    looks=(READ_ALL, DESCRIBE_PRODUCERS),
)


def _of_log(move: Move) -> Move:
    """A move about the log alone."""

    def take(protocol: BrokerProtocol, state: ProducingState) -> MoveResult | None:
        taken: Any = move.take(protocol, state.log)
        return None if taken is None else MoveResult(state._replace(log=taken.state), taken.exchange)

    return move._replace(take=take)


CUT_SEQUENCES = replace(
    SEQUENCE_NUMBERS,
    name="sequences-cut",
    meaning="producers of a log whose records are deleted: they are remembered",
    moves=tuple(
        _bounded(move, MOST_IF_CUT)
        for move in (
            *(one for one in SEQUENCE_NUMBERS.moves if one.name in OF_CUT_LOG),
            *map(_of_log, (delete_move(*ALL_RECORDS), delete_move(*PLACES[3]))),
        )
    ),
    bounds={"records": MOST_IF_CUT, "producer_epochs": 2, "producers": 2},
)

RESTART = restart_move(lambda state: state.log, lambda state, log: state._replace(log=log))
PRODUCING_AGAIN = after_restart(
    SEQUENCE_NUMBERS,
    RESTART,
    before=(
        "idempotent.first",
        "idempotent.next",
        "idempotent.next-pair",
        "idempotent.new-epoch",
        "other.first",
    ),
    after=(
        "idempotent.next",
        "idempotent.again",
        "idempotent.gap",
        "idempotent.new-epoch",
        "idempotent.old-epoch",
        "other.first",
        "other.next",
        "read-all",
        "describe-producers",
    ),
)
"""Of a producer's batches Kafka remembers the last alone when it starts (`ProducerStateManager.writeSnapshot`). A broker may
know older ones or not, so none is sent again here.
"""
