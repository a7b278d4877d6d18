"""Looks at topics: whether they are there, with how many partitions, by which id, and with which settings."""

from typing import Any

from kspec.conformance.wire.exchange import Constraint, Exchange, RequestFields, equals
from kspec.conformance.wire.model.requests import NOT_READY, TOPIC, since
from kspec.conformance.wire.model.subject import Move, MoveResult
from kspec.conformance.wire.model.topics.state import DOTTED, HOLES, ID_HOLES, PLAIN, UNDERSCORED, TopicsState
from kspec.spec.broker.clients.metadata_requests import check_missing_topic
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.description import describe_topic_configs
from kspec.spec.topics import ConfigResource, ResourceType, topic_named
from kspec.spec.values import Error

TOLD = "what a client is told of a topic is so"
SETTLED_MS = 200
"""The time in which a topic would be there that must not be."""

UNTIL_KNOWN = (*NOT_READY, Error.NONE)
"""A broker may hear of a change some time after it is answered."""

TOPIC_RESOURCE = 2


def _look(name: str, words: str, restarts: bool) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        topic = state.plain
        error = Error.NONE if topic is not None else check_missing_topic(False, True)
        count = 0 if topic is None else len(topic.partitions)
        constraints: list[Constraint] = [
            equals("topics[0].error_code", error.value),
            equals("topics[0].partitions[#]", count),
            *(equals(f"topics[0].partitions[{number}].error_code", 0) for number in range(count)),
        ]
        fields = {"topics": [{"name": TOPIC}], "allow_auto_topic_creation": False}
        exchange = Exchange(
            RequestFields("Metadata", fields, since(4)),
            "unknown" if topic is None else f"{count} partitions",
            error,
            constraints=tuple(constraints),
            retried=UNTIL_KNOWN,
            restarts=restarts,
            pause_ms=SETTLED_MS if topic is None and not state.made and not restarts else 0,
        )
        return MoveResult(state, exchange)

    return Move(name, words, check_missing_topic, TOLD, take)


def _by_id(name: str, words: str, former: bool) -> Move:
    """By the present id, or the id of a topic of that name which is gone."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        is_there = state.plain is not None
        if state.made == 0 or (former and is_there and state.made < len(ID_HOLES)):
            return None
        error = check_missing_topic(True, True) if former or not is_there else Error.NONE
        topic_id: Any = ID_HOLES[0] if former else state.id_hole
        constraints: list[Constraint] = [equals("topics[0].error_code", error.value)]
        if error == Error.NONE:
            constraints += [equals("topics[0].topic_id", topic_id)]
        fields = {"topics": [{"name": None, "topic_id": topic_id}], "allow_auto_topic_creation": False}
        retried = (*UNTIL_KNOWN, Error.UNKNOWN_TOPIC_ID)
        outcome = "the topic" if error == Error.NONE else error.name
        exchange = Exchange(
            RequestFields("Metadata", fields, since(12)), outcome, error, constraints=tuple(constraints), retried=retried
        )
        return MoveResult(state, exchange)

    return Move(name, words, check_missing_topic, TOLD, take)


def _all() -> Move:
    """All three topics in one request, in an order of their own."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        constraints: list[Constraint] = [equals("topics[#]", len(NAMES))]
        counts = []
        for name in NAMES:
            topic = topic_named(state.image.topics, name)
            where = f"topics[name=@{HOLES[name].name}]"
            error = Error.NONE if topic is not None else check_missing_topic(False, True)
            counts.append(0 if topic is None else len(topic.partitions))
            constraints += [
                equals(f"{where}.error_code", error.value),
                equals(f"{where}.is_internal", False),
                equals(f"{where}.partitions[#]", counts[-1]),
            ]
            if topic is not None:
                constraints += [equals(f"{where}.partitions[#partition_index={number}]", 1) for number in range(counts[-1])]
                constraints += [equals(f"{where}.topic_id", state.id_hole)] if name == PLAIN else []
        fields = {"topics": [{"name": HOLES[name]} for name in NAMES], "allow_auto_topic_creation": False}
        outcome = f"{sum(map(bool, counts))} topics of {sum(counts)} partitions"
        exchange = Exchange(
            RequestFields("Metadata", fields, since(4)), outcome, constraints=tuple(constraints), retried=UNTIL_KNOWN
        )
        return MoveResult(state, exchange)

    return Move("look.all", "ask for three topics", check_missing_topic, TOLD, take)


NAMES = (UNDERSCORED, PLAIN, DOTTED)
RETENTION = "retention.ms"


def _settings() -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        resource = ConfigResource(ResourceType.TOPIC, PLAIN)
        given = dict(dict(state.image.configs).get(resource, ()))
        if state.plain is None or RETENTION not in given:
            return None
        asked = {"resource_type": TOPIC_RESOURCE, "resource_name": TOPIC, "configuration_keys": [RETENTION]}
        constraints = (
            equals("results[0].error_code", 0),
            equals("results[0].configs[#]", 1),
            equals("results[0].configs[0].name", RETENTION),
            equals("results[0].configs[0].value", given[RETENTION]),
        )
        request = RequestFields("DescribeConfigs", {"resources": [asked]}, since(1))
        return MoveResult(state, Exchange(request, "as given", constraints=constraints, retried=UNTIL_KNOWN))

    return Move("settings", "ask for the topic's settings", describe_topic_configs, TOLD, take)


LOOK = _look("look", "ask for the topic", restarts=False)
RESTARTED_LOOK = _look("restart", "the broker is restarted", restarts=True)
BY_ID = _by_id("look.by-id", "ask for the topic by its id", former=False)
BY_FORMER_ID = _by_id("look.by-former-id", "ask for the topic by the id that it had before it was deleted", former=True)
LOOK_AT_ALL = _all()
SETTINGS = _settings()
