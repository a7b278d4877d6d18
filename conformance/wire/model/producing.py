"""Produce: acks, and the sequence numbers of idempotent producers."""

from collections.abc import Callable
from typing import NamedTuple

from conformance.wire.exchange import Ending, Exchange, Hole, equals
from conformance.wire.model.batches import Shape, batch
from conformance.wire.model.partition import LogState, append, broker, keeps_records, led_partition, topic_ready
from conformance.wire.model.reading import fetch_constraints
from conformance.wire.model.requests import PRODUCED, fetch, produce
from conformance.wire.model.subject import Move, Subject, Taken
from spec.broker.leader.fetch import read_partition
from spec.broker.leader.produce import handle_produce
from spec.broker.protocol import BrokerProtocol
from spec.log.batch import Batch
from spec.log.producers import LAST_SEQUENCE, ProducerEntry, entry_of, next_sequence
from spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest
from spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from spec.values import NO_EPOCH, NO_PRODUCER_ID, Error, Offset, ProducerEpoch, ProducerId

PRODUCER, PRODUCER_HOLE = ProducerId(1), Hole("producer_id")
MOST_BATCHES = 6
UNKNOWN_STARTS_AT = 5

ONCE = "a batch that is sent again is stored once, and a gap in a producer's batches is refused"
ACKS = "a producer is told of what has happened to its batch as its acks ask"
KEPT = "a record is stored once, and refused records are not"


class Sequence(NamedTuple):
    """What an idempotent producer sends: its epoch, its first sequence number, how many records."""

    epoch: int
    first: int
    records: int = 1


Choose = Callable[[ProducerEntry], Sequence | None]
"""What is sent next, from what the leader remembers of the producer; none where there is no such batch."""


def _again(back: int) -> Choose:
    """The batch that is `back` batches before the next one. All have one record, and count from 0."""

    def choose(entry: ProducerEntry) -> Sequence | None:
        first = entry.last_sequence - back + 1
        return Sequence(entry.producer_epoch, first) if entry.batches and 0 <= first < LAST_SEQUENCE - 5 else None

    return choose


def _known(send: Callable[[ProducerEntry], Sequence]) -> Choose:
    return lambda entry: send(entry) if entry.batches else None


def _unknown(first: int) -> Choose:
    return lambda entry: None if entry.batches else Sequence(0, first)


SEQUENCES: tuple[tuple[str, str, Choose], ...] = (
    ("first", "its first batch", _unknown(0)),
    ("first-not-0", "its first batch, which does not begin at 0", _unknown(UNKNOWN_STARTS_AT)),
    ("first-at-last", "its first batch, with the last sequence number there is", _unknown(LAST_SEQUENCE)),
    ("next", "its next batch", _known(lambda entry: Sequence(entry.producer_epoch, next_sequence(entry)))),
    ("again", "its last batch again", _again(1)),
    ("again-2", "its last batch but one again", _again(2)),
    ("again-5", "the fifth last batch again", _again(5)),
    ("again-6", "the sixth last batch again", _again(6)),
    ("gap", "a batch after a gap", _known(lambda entry: Sequence(entry.producer_epoch, next_sequence(entry) + 1))),
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
    ("old-epoch", "the next batch, of an older epoch", lambda entry: _of_older(entry, next_sequence(entry))),
    ("old-epoch-first", "a first batch, of an older epoch", lambda entry: _of_older(entry, 0)),
)


def _of_older(entry: ProducerEntry, first: int) -> Sequence | None:
    return Sequence(entry.producer_epoch - 1, first) if entry.producer_epoch > 0 else None


def _send(protocol: BrokerProtocol, state: LogState, acks: int, sequence: Sequence | None) -> Taken | None:
    """Give the batch to the leader; the exchange says what the leader made of it."""
    producer, epoch, first, count = (NO_PRODUCER_ID, -1, -1, 1) if sequence is None else (PRODUCER, *sequence)
    given = Batch(count, payload=0, producer_id=producer, producer_epoch=ProducerEpoch(epoch), first_sequence=first)
    done = append(protocol, state.partition, acks, given)
    shape = Shape(count, producer_epoch=epoch, sequence=first, producer=None if sequence is None else PRODUCER_HOLE)
    request = produce(acks, batch(shape))
    after = state._replace(partition=done.partition)
    if done.closed:
        return Taken(after, Exchange(request, "closed", ending=Ending.CLOSED))
    if done.answer is None:
        return Taken(after, Exchange(request, "no answer", ending=Ending.SILENT))
    constraints = [equals(f"{PRODUCED}.error_code", done.answer.error.value)]
    if done.answer.error == Error.NONE:
        constraints.append(equals(f"{PRODUCED}.base_offset", done.answer.base_offset))
    stored = done.partition != state.partition
    outcome = done.answer.error.name if done.answer.error != Error.NONE else "appended" if stored else "duplicate"
    return Taken(after, Exchange(request, outcome, done.answer.error, constraints=tuple(constraints)))


def _is_full(state: LogState) -> bool:
    return state.partition.local.log.end_offset >= MOST_BATCHES


def _numbered(name: str, words: str, choose: Choose, acks: int) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        sequence = choose(entry_of(state.partition.producers, PRODUCER))
        if sequence is None or sequence.epoch > 1 or (_is_full(state) and name in GROWING):
            return None
        return _send(protocol, state, acks, sequence)

    told = f"an idempotent producer sends {words}" + (", with acks=0" if acks == ACKS_NONE else "")
    return Move(f"idempotent.{name}" + (".acks-0" if acks == ACKS_NONE else ""), told, handle_produce, ONCE, take)


GROWING = ("next", "new-epoch")
"""Batches that are appended to a log of any length."""


def _with_acks(acks: int, words: str) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        return None if state.partition.local.log.end_offset > 1 else _send(protocol, state, acks, None)

    return Move(f"acks.{words}", f"produce with acks={acks}", handle_produce, ACKS, take)


def _read_all() -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, Offset(0), NO_EPOCH), has_client_metadata=True)
        answer = read_partition(broker(protocol), state.partition, request)
        outcome = f"{answer.high_watermark} records"
        return Taken(state, Exchange(fetch(0), outcome, constraints=fetch_constraints(answer)))

    return Move("read-all", "read all records", read_partition, KEPT, take)


READ_ALL = _read_all()
ALL_ACKS = ((ACKS_ALL, "all"), (ACKS_LEADER, "1"), (ACKS_NONE, "0"), (2, "2"), (-2, "minus-2"))

PRODUCING = Subject(
    "producing",
    "acks, and the sequence numbers and epochs of an idempotent producer",
    LogState(led_partition()),
    (
        *(_with_acks(acks, words) for acks, words in ALL_ACKS),
        *(_numbered(name, words, choose, ACKS_ALL) for name, words, choose in SEQUENCES),
        *(
            _numbered(name, words, choose, ACKS_NONE)
            for name, words, choose in SEQUENCES
            if name in ("first", "again", "gap")
        ),
        READ_ALL,
    ),
    lambda state, holes: topic_ready(keeps_records(state), holes),
    {"batches": MOST_BATCHES, "producer_epochs": 2},
    look=READ_ALL,
    by_release=True,
)
