"""Limits of a fetch in bytes: as much as fits, and a first batch in any case (KIP-74), from a topic of two partitions."""

from typing import NamedTuple

from kspec.conformance.wire.exchange import Exchange, equals
from kspec.conformance.wire.model.batches import BatchShape, batch, plain_bytes
from kspec.conformance.wire.model.partition import Led, append, broker, led_partition, stored_at
from kspec.conformance.wire.model.reading.fetching import fetch_constraints
from kspec.conformance.wire.model.requests import (
    NOT_READY,
    PRODUCED,
    TOPIC,
    create_topic,
    fetch,
    look_up_topic,
    produce,
    wait_for_leader,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.reading import gives_first_batch, most_of_partition, room_after, room_in_answer
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_EPOCH, Offset

FITS = "a consumer gets no more than it has room for, and yet always something"
SIZE = len(plain_bytes(BatchShape()))
"""The bytes of a batch of one record: all are of one size here."""

MUCH = 1 << 20
MOST = (3, 2)


class SizedState(NamedTuple):
    """The two partitions, whose batches have one record each."""

    partitions: tuple[Led, Led] = (led_partition(), led_partition())


def fitting(batches: tuple[int, ...], most: int, most_of_each: int) -> tuple[int, ...]:
    """The whole batches of each partition that are in an answer, of so many; both limits are in bytes.

    A batch larger than the limits is given if nothing is before it in the answer.
    """
    found: list[int] = []
    room = room_in_answer(most, 0)
    for count in batches:
        fits = min(count, most_of_partition(room, most_of_each) // SIZE)
        given = 1 if count and not fits and gives_first_batch(room) else fits
        found.append(given)
        room = room_after(room, given * SIZE)
    return tuple(found)


def _produce(number: int) -> Move:
    def take(protocol: BrokerProtocol, state: SizedState) -> MoveResult | None:
        partition = state.partitions[number]
        end = int(partition.local.log.end_offset)
        if end >= MOST[number]:
            return None
        done = append(protocol, partition, ACKS_ALL, Batch(1, payload=end))
        assert done.answer is not None, "a lone leader commits at once"
        constraints = (equals(f"{PRODUCED}.error_code", done.answer.error.value), *stored_at(done.answer, partition))
        request = produce(ACKS_ALL, batch(BatchShape(1, end)), partition=number)
        exchange = Exchange(request, "appended", done.answer.error, constraints=constraints, retried=NOT_READY)
        one, other = state.partitions
        after = (done.partition, other) if number == 0 else (one, done.partition)
        return MoveResult(SizedState(after), exchange)

    return Move(f"produce-to-{number}", f"produce a record to partition {number}", handle_produce, FITS, take)


def _fetch(name: str, words: str, most: int, most_of_each: int) -> Move:
    def take(protocol: BrokerProtocol, state: SizedState) -> MoveResult | None:
        counts = fitting(tuple(int(one.local.log.end_offset) for one in state.partitions), most, most_of_each)
        constraints = []
        for number, (partition, count) in enumerate(zip(state.partitions, counts, strict=True)):
            request = FetchRequest(CONSUMER, FetchPosition(NO_EPOCH, Offset(0), NO_EPOCH), has_client_metadata=True)
            answer = read_partition(broker(protocol), partition, request)
            cut = answer._replace(records=answer.records[:count])
            where = f"responses[0].partitions[{number}]"
            constraints += [equals(f"{where}.partition_index", number), *fetch_constraints(cut, where=where)]
        sent = fetch(0, max_bytes=most)
        (topic,) = sent.fields["topics"]
        (asked,) = topic["partitions"]
        both = [{**asked, "partition": number, "partition_max_bytes": most_of_each} for number in (0, 1)]
        request_fields = sent._replace(fields={**sent.fields, "topics": [{**topic, "partitions": both}]})
        outcome = f"{counts[0]} and {counts[1]} batches"
        return MoveResult(state, Exchange(request_fields, outcome, constraints=tuple(constraints)))

    return Move(f"fetch.{name}", f"fetch from both partitions, {words}", read_partition, FITS, take)


LIMITS = (
    ("all", "with room for all", MUCH, MUCH),
    ("one-byte", "with room for one byte", 1, MUCH),
    ("below-one", "with a byte too little for one batch", SIZE - 1, MUCH),
    ("one", "with room for one batch", SIZE, MUCH),
    ("below-two", "with a byte too little for two batches", 2 * SIZE - 1, MUCH),
    ("two", "with room for two batches", 2 * SIZE, MUCH),
    ("three", "with room for three batches", 3 * SIZE, MUCH),
    ("one-byte-of-each", "with room for one byte of each", MUCH, 1),
    ("one-of-each", "with room for one batch of each", MUCH, SIZE),
    ("two-of-each", "with room for two batches of each", MUCH, 2 * SIZE),
    ("two-and-one-of-each", "with room for two batches, and for one of each", 2 * SIZE, SIZE),
    ("three-and-two-of-each", "with room for three batches, and for two of each", 3 * SIZE, 2 * SIZE),
)

SIZES = Subject(
    "sizes",
    "limits of a fetch in bytes, for the whole and for each partition",
    SizedState(),
    (_produce(0), _produce(1), *(_fetch(*one) for one in LIMITS)),
    lambda state, holes: (create_topic(TOPIC, partitions=2), look_up_topic(), wait_for_leader(), wait_for_leader(1)),
    {"records": sum(MOST), "batch_bytes": SIZE},
)
