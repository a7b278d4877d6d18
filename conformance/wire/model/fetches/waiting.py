"""Fetches that wait: until there is enough, until their time is over, or not at all."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import (
    AllowedValues,
    Constraint,
    DelayedAnswer,
    Exchange,
    NotEmpty,
    RequestEnding,
    RequestFields,
    equals,
)
from kspec.conformance.wire.model.batches import BatchShape, batch
from kspec.conformance.wire.model.fetches.sessions import SESSION
from kspec.conformance.wire.model.fetches.sizes import SIZE, fitting
from kspec.conformance.wire.model.partition import (
    CURRENT,
    NEWER,
    LogState,
    append,
    broker,
    keeps_records,
    led_partition,
    on_wire,
    stored_at,
    topic_ready,
)
from kspec.conformance.wire.model.reading.fetching import fetch_constraints
from kspec.conformance.wire.model.requests import FETCHED, MOST_BYTES, PRODUCED, TOPIC, WAIT_MS, fetch, produce, since
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.broker.rules.reading import answers_at_once, counted_bytes, ends_waiting, has_enough
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.log.batch import Batch
from kspec.spec.messages.fetch import CONSUMER, FetchPosition, FetchRequest, FetchResponse
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_EPOCH, Epoch, Error, Offset

WOKEN = "a consumer that waits gets what it waits for as soon as it is there, and no later than it wants to wait"
IN_ORDER = "requests of one connection are answered in their order"
LONG_MS, SHORT_MS, EARLIEST_MS = 60_000, 1_000, 900
"""A wait that no case outlasts; one that a case waits for, and the time (ms) before which its answer does not come."""

MOST_RECORDS = 2
UNLIMITED = 2**63
NO_EPOCHS = (NO_EPOCH, NO_EPOCH)


class WaitingFetch(NamedTuple):
    """A fetch: its offset, both limits in bytes, isolation, how long it waits; the epochs (current, last) that it claims.

    `session`: its epoch in a session, 0 outside of one.
    """

    offset: Offset
    min_bytes: int
    max_bytes: int = MOST_BYTES
    committed: bool = False
    wait_ms: int = LONG_MS
    epochs: tuple[Epoch, Epoch] = NO_EPOCHS
    session: int = 0


class WaitingState(NamedTuple):
    """The partition, the fetch of client A that waits, the next epoch of its session, if it has one, and whether the topic
    is gone.
    """

    log: LogState
    waits: WaitingFetch | None = None
    session: int = 0
    gone: bool = False


def _read(protocol: BrokerProtocol, state: WaitingState, asked: WaitingFetch) -> FetchResponse:
    position = FetchPosition(asked.epochs[0], asked.offset, asked.epochs[1])
    request = FetchRequest(CONSUMER, position, read_committed=asked.committed, has_client_metadata=True)
    answer = read_partition(broker(protocol), state.log.partition, request)
    (count,) = fitting((len(answer.records),), asked.max_bytes, MOST_BYTES)
    return answer._replace(records=answer.records[:count])


def _is_due(state: WaitingState, asked: WaitingFetch, answer: FetchResponse) -> bool:
    """Whether a fetch is answered now."""
    end = state.log.partition.local.log.end_offset
    if answers_at_once(answer, UNLIMITED, asked.wait_ms > 0, False) or ends_waiting(asked.offset, end, False):
        return True
    next_offset = Offset(asked.offset + len(answer.records))
    counted = counted_bytes(SIZE * len(answer.records), asked.max_bytes, next_offset, end)
    return has_enough(counted, asked.min_bytes, asked.max_bytes)


def _constraints(asked: WaitingFetch, answer: FetchResponse) -> tuple[Constraint, ...]:
    """Constraints on what is told of the partition; in a session it is told only if there are records."""
    inside = fetch_constraints(answer, asked.committed)
    if not asked.session:
        return inside
    there = len(answer.records) > 0
    return (equals("session_id", SESSION), equals("responses[#]", int(there)), *(inside if there else ()))


def _request(asked: WaitingFetch) -> RequestFields:
    current, last = asked.epochs
    first = 12 if last != NO_EPOCH else 9 if current != NO_EPOCH else 4
    sent = fetch(
        asked.offset,
        epoch=on_wire(current),
        last_epoch=on_wire(last),
        versions=Versions(7, 12) if asked.session else since(first),
        isolation_level=int(asked.committed),
        min_bytes=asked.min_bytes,
        max_bytes=asked.max_bytes,
        max_wait_ms=asked.wait_ms,
    )
    if asked.session:
        return sent._replace(fields={**sent.fields, "topics": [], "session_id": SESSION, "session_epoch": asked.session})
    return sent


def _fetch(name: str, words: str, make: Any) -> Move:
    """`make`: the fetch, by the log's end."""

    def take(protocol: BrokerProtocol, state: WaitingState) -> MoveResult | None:
        asked: WaitingFetch = make(state.log.partition.local.log.end_offset)
        if state.waits is not None or state.gone or bool(asked.session) != bool(state.session):
            return None
        if (name == PIPED and asked.offset) or (name == SHORT_SESSION and state.session > 1):
            return None
        asked = asked._replace(session=state.session)
        answer = _read(protocol, state, asked)
        if _is_due(state, asked, answer):
            told = "nothing" if not answer.records else f"{len(answer.records)} records"
            outcome = answer.error.name if answer.error != Error.NONE else "diverging" if is_diverging(answer) else told
            exchange = Exchange(_request(asked), outcome, answer.error, constraints=_constraints(asked, answer))
            return MoveResult(state._replace(session=0), exchange)
        if asked.wait_ms < LONG_MS and name != PIPED:
            outcome = f"{len(answer.records)} records, when its time is over"
            constraints = _constraints(asked, answer)
            after = state._replace(session=state.session + 1) if state.session else state
            return MoveResult(after, Exchange(_request(asked), outcome, constraints=constraints, not_before_ms=EARLIEST_MS))
        return MoveResult(state._replace(waits=asked), Exchange(_request(asked), "waits", ending=RequestEnding.LATER))

    return Move(f"fetch.{name}", f"fetch {words}", read_partition, WOKEN, take)


PIPED = "piped"
"""A fetch that waits for a second, while its client sends another request."""

SHORT_SESSION = "session.short"
"""A fetch in a session that waits for a second. After it the session knows of no partition of which there is news."""


def _behind() -> Move:
    """A request behind a fetch that waits, on the same connection: it is answered after it."""

    def take(protocol: BrokerProtocol, state: WaitingState) -> MoveResult | None:
        if state.waits is None or state.waits.wait_ms >= LONG_MS:
            return None
        answer = _read(protocol, state, state.waits)
        request = RequestFields("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(1))
        exchange = Exchange(
            request, "in order", constraints=(equals("topics[#]", 0),), awaited=_awaited(state.waits, answer)
        )
        return MoveResult(state._replace(waits=None), exchange)

    return Move("behind", "send another request before the answer comes", read_partition, IN_ORDER, take)


def _awaited(asked: WaitingFetch, answer: FetchResponse) -> tuple[DelayedAnswer, ...]:
    return (DelayedAnswer("A", _constraints(asked, answer)),)


WAKES = ("wakes the fetch", "wakes the first fetch in a session", "wakes a later fetch in a session")
"""The outcome of a record, by the epoch of the fetch that waits for it in its session."""


def _produce() -> Move:
    def take(protocol: BrokerProtocol, state: WaitingState) -> MoveResult | None:
        partition = state.log.partition
        end = int(partition.local.log.end_offset)
        if end >= MOST_RECORDS or state.gone or (state.waits is not None and state.waits.wait_ms < LONG_MS):
            return None
        done = append(protocol, partition, ACKS_ALL, Batch(1, payload=end))
        assert done.answer is not None, "a lone leader commits at once"
        after = state._replace(log=state.log._replace(partition=done.partition))
        awaited: tuple[DelayedAnswer, ...] = ()
        if state.waits is not None:
            answer = _read(protocol, after, state.waits)
            if _is_due(after, state.waits, answer):
                awaited, after = _awaited(state.waits, answer), after._replace(waits=None, session=0)
        constraints = (equals(f"{PRODUCED}.error_code", done.answer.error.value), *stored_at(done.answer, partition))
        outcome = WAKES[state.waits.session] if awaited and state.waits else "is not enough" if state.waits else "appended"
        request = produce(ACKS_ALL, batch(BatchShape(1, end)))
        return MoveResult(after, Exchange(request, outcome, constraints=constraints, client="B", awaited=awaited))

    return Move("produce", "another client produces a record", handle_produce, WOKEN, take)


GONE = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID, Error.NOT_LEADER_OR_FOLLOWER)


def _delete() -> Move:
    def take(protocol: BrokerProtocol, state: WaitingState) -> MoveResult | None:
        if state.gone or state.waits is None or state.waits.session or state.waits.wait_ms < LONG_MS:
            return None
        names = {"topics": [{"name": TOPIC, "topic_id": bytes(16)}], "topic_names": [TOPIC], "timeout_ms": WAIT_MS}
        reason = "the broker may look for the partition while it is being deleted, or after that"
        told = AllowedValues(f"{FETCHED}.error_code", tuple(one.value for one in GONE), reason)
        exchange = Exchange(
            RequestFields("DeleteTopics", names, since(1)),
            "wakes the fetch",
            constraints=(equals("responses[0].error_code", 0),),
            client="B",
            awaited=(DelayedAnswer("A", (told,)),),
        )
        return MoveResult(state._replace(waits=None, gone=True), exchange)

    return Move("delete", "another client deletes the topic", handle_delete_topics, WOKEN, take)


def _begin_session() -> Move:
    def take(protocol: BrokerProtocol, state: WaitingState) -> MoveResult | None:
        end = state.log.partition.local.log.end_offset
        if state.session or state.waits is not None or state.gone or end:
            return None
        asked = WaitingFetch(end, 0, wait_ms=0)
        request = _request(asked)
        sent = request._replace(versions=Versions(7, 12), fields={**request.fields, "session_id": 0, "session_epoch": 0})
        constraints = (NotEmpty("session_id"), *fetch_constraints(_read(protocol, state, asked)))
        exchange = Exchange(sent, "a session", constraints=constraints, kept=(("session_id", "session_id"),))
        return MoveResult(state._replace(session=1), exchange)

    return Move("session.begin", "begin a session", read_partition, WOKEN, take)


FETCHES: tuple[tuple[str, str, Any], ...] = (
    ("one-byte", "from the log end, and wait for a byte", lambda end: WaitingFetch(end, 1)),
    ("one-byte.committed", "as well, committed transactions only", lambda end: WaitingFetch(end, 1, committed=True)),
    ("nothing", "from the log end, and want nothing at least", lambda end: WaitingFetch(end, 0)),
    ("at-once", "from the log end, and wait for nothing", lambda end: WaitingFetch(end, 1, wait_ms=0)),
    ("from-start", "from offset 0, and wait for a byte", lambda end: WaitingFetch(Offset(0), 1)),
    ("one-batch", "from offset 0, and wait for a batch", lambda end: WaitingFetch(Offset(0), SIZE)),
    ("above-one", "from offset 0, and wait for a batch and a byte", lambda end: WaitingFetch(Offset(0), SIZE + 1)),
    ("two-batches", "from offset 0, and wait for two batches", lambda end: WaitingFetch(Offset(0), 2 * SIZE)),
    ("no-room", "with room for a batch, and want more", lambda end: WaitingFetch(Offset(0), MOST_BYTES, SIZE)),
    ("short", "from the start, and wait a second", lambda end: WaitingFetch(Offset(0), MOST_BYTES, wait_ms=SHORT_MS)),
    (PIPED, "from the log end, and wait a second", lambda end: WaitingFetch(end, 1, wait_ms=SHORT_MS)),
    ("past-end", "from an offset past the log end, and wait", lambda end: WaitingFetch(Offset(end + 1), 1)),
    ("newer", "with a newer leader epoch, and wait", lambda end: WaitingFetch(end, 1, epochs=(NEWER, NO_EPOCH))),
    ("diverging", "past the log end, and wait", lambda end: WaitingFetch(Offset(end + 1), 1, epochs=(NO_EPOCH, CURRENT))),
    ("session", "in a session, and wait for a byte", lambda end: WaitingFetch(end, 1, session=1)),
    (SHORT_SESSION, "in a session, and wait a second", lambda end: WaitingFetch(end, 1, wait_ms=SHORT_MS, session=1)),
)  # fmt: skip

WAITING = Subject(
    "waiting",
    "fetches that wait, are woken, or may not wait",
    WaitingState(LogState(led_partition())),
    (_produce(), _delete(), _behind(), _begin_session(), *(_fetch(*one) for one in FETCHES)),
    lambda state, holes: topic_ready(keeps_records(state.log), holes),
    {"records": MOST_RECORDS},
    by_release=True,
    is_goal=lambda name: name != f"fetch.{PIPED}",
)
