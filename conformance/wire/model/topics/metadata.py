"""Metadata: topics that are created because somebody asks for them, topics that brokers keep for themselves."""

from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import (
    AllowedValues,
    AtLeast,
    Constraint,
    Exchange,
    Hole,
    NotEmpty,
    RequestFields,
    equals,
)
from kspec.conformance.wire.model.batches import batch
from kspec.conformance.wire.model.groups.group import group_ready
from kspec.conformance.wire.model.received.headers import sound_batch
from kspec.conformance.wire.model.requests import (
    LISTED,
    NOT_READY,
    PRODUCED,
    TOPIC,
    WAIT_MS,
    list_offsets,
    produce,
    since,
)
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.wire.schema import Versions
from kspec.spec.broker.clients.batches import ProduceTerms, check_batch_of_request
from kspec.spec.broker.clients.metadata_requests import check_missing_topic
from kspec.spec.broker.clients.named_partitions import check_deletion_from
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.names import CONSUMER_OFFSETS
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import Error

ASKED_FOR = "a topic is created where a client asks for that, and not otherwise"
KEPT_APART = "what brokers write to their own topics comes from brokers alone"
OTHER, WRONG = Hole("topic_dotted"), "a/b"
NAMES = {"topic": TOPIC, "other": OTHER}
BEING_MADE = tuple(one.value for one in (Error.NONE, *NOT_READY[:2]))
"""Errors of a topic that is being made because somebody asks for it; the next request finds it."""

SETTLED_MS = 300
"""The time in which a topic would be created that must not be."""


class KnownTopics(NamedTuple):
    """The topics of this run that there are."""

    names: frozenset[str] = frozenset()


def _ask(name: str, words: str, topics: tuple[str, ...], create: bool, pause_ms: int = 0) -> Move:
    """Ask for topics, and have those created that are missing, or not."""

    def take(protocol: BrokerProtocol, state: KnownTopics) -> MoveResult | None:
        missing = [one for one in topics if one not in state.names]
        if create and not missing:
            return None
        fields = {"topics": [{"name": NAMES[one]} for one in topics], "allow_auto_topic_creation": create}
        constraints: list[Constraint] = [equals("topics[#]", len(topics))]
        for one in topics:
            where = f"topics[name=@{NAMES[one].name}]"
            if create and one not in state.names:
                constraints.append(
                    AllowedValues(f"{where}.error_code", BEING_MADE, "a broker may answer before it is there")
                )
                continue
            there = one in state.names
            error = Error.NONE if there else check_missing_topic(False, True)
            constraints.append(equals(f"{where}.error_code", error.value))
            if there:
                constraints += [
                    AtLeast(f"{where}.partitions[#]", 1, "num.partitions is a setting of the broker"),
                    equals(f"{where}.is_internal", False),
                ]
        constraints += [NotEmpty("brokers[0].port"), NotEmpty("cluster_id"), equals("controller_id", Hole("broker_id"))]
        after = KnownTopics(state.names | set(topics)) if create else state
        outcome = "created" if create else "unknown" if missing else "known"
        exchange = Exchange(
            RequestFields("Metadata", fields, since(4)),
            outcome,
            Error.NONE if create or not missing else check_missing_topic(False, True),
            constraints=tuple(constraints),
            retried=NOT_READY if state.names & set(topics) else (),
            pause_ms=pause_ms if missing else 0,
        )
        return MoveResult(after, exchange)

    return Move(f"metadata.{name}", words, check_missing_topic, ASKED_FOR, take)


def _ask_wrong() -> Move:
    def take(protocol: BrokerProtocol, state: KnownTopics) -> MoveResult | None:
        error = check_missing_topic(False, False)
        fields = {"topics": [{"name": WRONG}], "allow_auto_topic_creation": True}
        constraints = (equals("topics[0].error_code", error.value), equals("topics[0].partitions[#]", 0))
        request = RequestFields("Metadata", fields, since(4))
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))

    return Move(
        "metadata.wrong-name", "ask for a topic of a wrong name, to be created", check_missing_topic, ASKED_FOR, take
    )


def _offsets_of_missing() -> Move:
    def take(protocol: BrokerProtocol, state: KnownTopics) -> MoveResult | None:
        if "topic" in state.names:
            return None
        error = check_missing_topic(False, True)
        exchange = Exchange(list_offsets(-1), error.name, error, constraints=(equals(f"{LISTED}.error_code", error.value),))
        return MoveResult(state, exchange)

    return Move("list-offsets", "ask for offsets of a topic that there is not", check_missing_topic, ASKED_FOR, take)


# ---- topics that brokers keep for themselves

INTERNAL_ID = Hole("internal_id")


def _ask_internal() -> Move:
    def take(protocol: BrokerProtocol, state: KnownTopics) -> MoveResult | None:
        fields = {"topics": [{"name": CONSUMER_OFFSETS}], "allow_auto_topic_creation": False}
        constraints = (equals("topics[0].error_code", 0), equals("topics[0].is_internal", True))
        request = RequestFields("Metadata", fields, since(1))
        return MoveResult(state, Exchange(request, "internal", constraints=constraints))

    return Move("metadata.internal", "ask for the topic of groups", check_missing_topic, KEPT_APART, take)


def _produce_internal(by_id: bool) -> Move:
    def take(protocol: BrokerProtocol, state: KnownTopics) -> MoveResult | None:
        error = check_batch_of_request(ProduceTerms(13, ACKS_ALL, False), sound_batch(), internal=True)
        sent = produce(ACKS_ALL, batch(), since(13) if by_id else Versions(0, 12))
        (topic,) = sent.fields["topic_data"]
        fields: Any = {**sent.fields, "topic_data": [{**topic, "name": CONSUMER_OFFSETS, "topic_id": INTERNAL_ID}]}
        constraints = (equals(f"{PRODUCED}.error_code", error.value),)
        return MoveResult(state, Exchange(sent._replace(fields=fields), error.name, error, constraints=constraints))

    name = "produce.internal" + ".by-id" * by_id
    return Move(name, "produce to the topic of groups" + ", by its id" * by_id, check_batch_of_request, KEPT_APART, take)


def _delete_internal() -> Move:
    def take(protocol: BrokerProtocol, state: KnownTopics) -> MoveResult | None:
        error = check_deletion_from(True, Error.NONE)
        topic = {"name": CONSUMER_OFFSETS, "partitions": [{"partition_index": 0, "offset": 0}]}
        constraints = (equals(f"{LISTED}.error_code", error.value),)
        request = RequestFields("DeleteRecords", {"topics": [topic], "timeout_ms": WAIT_MS})
        return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))

    return Move("delete-records.internal", "delete records of the topic of groups", check_deletion_from, KEPT_APART, take)


def _setup(state: KnownTopics, holes: frozenset[str]) -> tuple[Exchange, ...]:
    nodes = RequestFields("Metadata", {"topics": [], "allow_auto_topic_creation": False}, since(1))
    known = (Exchange(nodes, "known", kept=(("broker_id", "brokers[0].node_id"),)),) if "broker_id" in holes else ()
    internal = {"topics": [{"name": CONSUMER_OFFSETS}], "allow_auto_topic_creation": False}
    looked = Exchange(
        RequestFields("Metadata", internal, since(10)),
        "known",
        constraints=(equals("topics[0].error_code", 0),),
        kept=(("internal_id", "topics[0].topic_id"),),
        retried=NOT_READY,
    )
    return (*known, *group_ready(), *((looked,) if "internal_id" in holes else ()))


TOLD = "ask for both topics, and have none created"
BOTH = _ask("both", TOLD, ("topic", "other"), create=False, pause_ms=SETTLED_MS)
METADATA = Subject(
    "metadata",
    "topics that are created because somebody asks for them; topics that brokers keep for themselves",
    KnownTopics(),
    (
        _ask("one", "ask for a topic, and have none created", ("topic",), create=False),
        BOTH,
        _ask("create", "ask for a topic, to be created", ("topic",), create=True),
        _ask("create-both", "ask for two topics, to be created", ("topic", "other"), create=True),
        _ask_wrong(),
        _offsets_of_missing(),
        _ask_internal(),
        _produce_internal(by_id=False),
        _produce_internal(by_id=True),
        _delete_internal(),
    ),
    _setup,
    {"topics": 2},
    looks=(BOTH,),
)
