"""A topic that is deleted and made again: none of its records, its producers, its start is left, and its id is another."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Exchange, Hole, NoneOf, RequestFields, equals
from kspec.conformance.wire.model.partition import LogState, led_partition, topic_ready
from kspec.conformance.wire.model.producing import PRODUCING, READ_ALL, SEQUENCE_NUMBERS, ProducingState
from kspec.conformance.wire.model.reading.logs import READING
from kspec.conformance.wire.model.requests import (
    NOT_READY,
    TOPIC,
    TOPIC_ID,
    WAIT_MS,
    create_topic,
    look_up_topic,
    since,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.spec.broker.clients.metadata_requests import check_missing_topic
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.creation import handle_create_topics
from kspec.spec.controller.topics.deletion import handle_delete_topics
from kspec.spec.values import NO_TOPIC_ID, Error

AS_NEW = "a topic that is made again begins anew, and whoever knows the former one by its id is told so"
FORMER_ID = Hole("former_id")
MOST_RECORDS = 2
BEFORE = ("acks.all", "idempotent.first", "idempotent.next", "other.first", "delete-records.all")
"""Requests about the former topic; the rest is what other subjects are about."""


class AnewState(NamedTuple):
    """The topic's partition and its producers, whether it has been deleted, made again, and looked up since then."""

    inner: ProducingState = ProducingState(LogState(led_partition()))
    is_deleted: bool = False
    is_again: bool = False
    is_known: bool = True


def _delete() -> Move:
    def take(protocol: BrokerProtocol, state: AnewState) -> MoveResult | None:
        if state.is_deleted or state.is_again:
            return None
        names = {"topics": [{"name": TOPIC, "topic_id": NO_TOPIC_ID}], "topic_names": [TOPIC], "timeout_ms": WAIT_MS}
        constraints = (equals("responses[0].error_code", 0),)
        exchange = Exchange(RequestFields("DeleteTopics", names, since(1)), "deleted", constraints=constraints)
        return MoveResult(state._replace(is_deleted=True, is_known=False), exchange)

    return Move("delete", "delete the topic", handle_delete_topics, AS_NEW, take)


def _create() -> Move:
    def take(protocol: BrokerProtocol, state: AnewState) -> MoveResult | None:
        if not state.is_deleted:
            return None
        inner = state.inner._replace(log=LogState(led_partition()))
        exchange = create_topic(TOPIC)._replace(otherwise=None)
        return MoveResult(AnewState(inner, is_again=True, is_known=False), exchange)

    return Move("create", "create the topic again", handle_create_topics, AS_NEW, take)


def _look() -> Move:
    """The id of the topic, which is another one."""

    def take(protocol: BrokerProtocol, state: AnewState) -> MoveResult | None:
        if not state.is_again or state.is_known:
            return None
        found = look_up_topic()
        constraints = (*found.constraints, NoneOf("topics[0].topic_id", (FORMER_ID,)))
        exchange = found._replace(constraints=constraints, retried=(*NOT_READY, Error.NONE))
        return MoveResult(state._replace(is_known=True), exchange)

    return Move("look", "ask for the topic", check_missing_topic, AS_NEW, take)


def _by_former_id() -> Move:
    """The former topic, by its id."""

    def take(protocol: BrokerProtocol, state: AnewState) -> MoveResult | None:
        if not state.is_known or not state.is_again:
            return None
        error = check_missing_topic(True, True)
        fields = {"topics": [{"name": None, "topic_id": FORMER_ID}], "allow_auto_topic_creation": False}
        constraints = (equals("topics[0].error_code", error.value), equals("topics[0].partitions[#]", 0))
        return MoveResult(
            state, Exchange(RequestFields("Metadata", fields, since(12)), error.name, error, constraints=constraints)
        )

    return Move("look.by-former-id", "ask for the topic by its former id", check_missing_topic, AS_NEW, take)


def _inside(move: Move, of_log: bool = False) -> Move:
    """A move of another subject, while the topic is there and known."""

    def take(protocol: BrokerProtocol, state: AnewState) -> MoveResult | None:
        if not state.is_known or not (state.is_again or move.name in BEFORE):
            return None
        taken: Any = move.take(protocol, state.inner.log if of_log else state.inner)
        if taken is None:
            return None
        after = state.inner._replace(log=taken.state) if of_log else taken.state
        if after.log.partition.local.log.end_offset > MOST_RECORDS:
            return None
        exchange = taken.exchange
        if state.is_again:
            exchange = exchange._replace(
                outcome=f"{exchange.outcome}, in a topic made anew", retried=(*NOT_READY, Error.UNKNOWN_TOPIC_ID)
            )
        return MoveResult(state._replace(inner=after), exchange)

    return move._replace(take=take)


def _named(subject: Subject, *names: str) -> list[Move]:
    known = {move.name: move for move in subject.moves}
    return [known[name] for name in names]


def _setup(state: AnewState, holes: frozenset[str]) -> tuple[Exchange, ...]:
    ready = topic_ready((), holes)
    return tuple(_keeping_id(one) for one in ready)


def _keeping_id(exchange: Exchange) -> Exchange:
    """The look at the topic tells the id that will be the former one."""
    if (TOPIC_ID.name, "topics[0].topic_id") not in exchange.kept:
        return exchange
    return exchange._replace(kept=(*exchange.kept, (FORMER_ID.name, "topics[0].topic_id")))


OF_PRODUCERS = ("idempotent.first", "idempotent.next", "idempotent.again", "idempotent.gap", "other.first")
OF_LOGS = ("list-offsets.earliest", "list-offsets.latest", "list-offsets.max-timestamp", "end-of-epoch.current")
READ_ANEW = _inside(READ_ALL)
MADE_ANEW = Subject(
    "made-anew",
    "a topic that is deleted and made again with the same name",
    AnewState(),
    (
        _delete(),
        _create(),
        _look(),
        _by_former_id(),
        *map(_inside, _named(PRODUCING, "acks.all")),
        *map(_inside, _named(SEQUENCE_NUMBERS, *OF_PRODUCERS)),
        *(_inside(move, of_log=True) for move in _named(READING, *OF_LOGS, "delete-records.all", "fetch.end")),
        READ_ANEW,
    ),
    _setup,
    {"records": MOST_RECORDS, "topics": 2},
    looks=(READ_ANEW,),
    is_goal=lambda name: name not in ("delete", "create"),
)
