"""Settings of a topic that change: one by one or all at once, tried only, refused, and what is left after that."""

from collections.abc import Callable, Iterator
from typing import Any

from kspec.conformance.wire.exchange import Constraint, Exchange, NoneOf, RequestFields, equals
from kspec.conformance.wire.model.requests import TOPIC, since
from kspec.conformance.wire.model.restarts import ALIVE, after_restart, plain_restart
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.conformance.wire.model.topics.looks import TOPIC_RESOURCE, UNTIL_KNOWN
from kspec.conformance.wire.model.topics.state import DOTTED, HOLES, PLAIN, TopicsState, decide, registered
from kspec.conformance.wire.model.topics.topics import TOPICS
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.topics.configs import handle_alter_configs, handle_incremental_alter_configs
from kspec.spec.controller.topics.description import describe_topic_configs
from kspec.spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlteredResource,
    AlterOperation,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
)
from kspec.spec.messages.topics.describe_configs import ConfigSource
from kspec.spec.metadata import MetadataImage
from kspec.spec.topics import ConfigResource, ResourceType, configs_of
from kspec.spec.values import Error

AS_SET = "a topic has the settings that it was given last, and those alone"
RETENTION, CLEANUP, LARGEST = "retention.ms", "cleanup.policy", "max.message.bytes"
SHOWN = (RETENTION, CLEANUP, LARGEST)
TYPES = {RETENTION: 5, CLEANUP: 7, LARGEST: 3}
"""A number of eight bytes, a list, a number of four. Kafka: `DescribeConfigsResponse.ConfigType`."""
SET, DELETE, APPEND, SUBTRACT = AlterOperation.SET, AlterOperation.DELETE, AlterOperation.APPEND, AlterOperation.SUBTRACT
NAMELESS = ""

Changes = tuple[tuple[str, AlterOperation, str | None], ...]


def _on_wire(topic: str) -> Any:
    return HOLES.get(topic, topic)


def _resource(topic: str) -> ConfigResource:
    return ConfigResource(ResourceType.TOPIC, topic)


def _altered(
    handler: Callable[..., Any], state: TopicsState, request: Any, api: str, resources: list[Any], validate_only: bool
) -> MoveResult:
    """The exchange of a change; the answer names each resource, as often as the request does."""
    decision = decide(handler, state, request)
    fields = {"resources": resources, "validate_only": validate_only}
    constraints: list[Constraint] = [equals("responses[#]", len(resources))]
    errors = [one.error for one in decision.answer.resources]
    for number, (sent, error) in enumerate(zip(resources, errors, strict=True)):
        named = sent["resource_name"]
        apart = len({str(one["resource_name"]) for one in resources}) == len(resources)
        where = f"responses[resource_name=@{named.name}]" if apart and named else f"responses[{number}]"
        constraints += [
            equals(f"{where}.error_code", error.value),
            equals(f"{where}.resource_type", TOPIC_RESOURCE),
            equals(f"{where}.resource_name", named),
        ]
    done = "done" if decision.writes else "nothing" if not validate_only else "would do"
    outcome = ", ".join(done if one == Error.NONE else one.name for one in errors)
    first = next((one for one in errors if one != Error.NONE), Error.NONE)
    return MoveResult(decision.after, Exchange(RequestFields(api, fields), outcome, first, constraints=tuple(constraints)))


MAY_BE_MISSING = ("set", "two-topics", "nameless")
"""Changes that are tried where there is no topic, too."""


def _change(name: str, words: str, *resources: tuple[str, Changes], validate_only: bool = False) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        if state.plain is None and name not in MAY_BE_MISSING:
            return None
        altered = tuple(
            AlteredResource(_resource(topic), tuple(AlterConfig(*one) for one in changes)) for topic, changes in resources
        )
        sent = [
            {
                "resource_type": TOPIC_RESOURCE,
                "resource_name": _on_wire(topic),
                "configs": [
                    {"name": key, "config_operation": operation.value, "value": value} for key, operation, value in changes
                ],
            }
            for topic, changes in resources
        ]
        request = IncrementalAlterConfigsRequest(altered, validate_only)
        handler = handle_incremental_alter_configs
        return _altered(handler, state, request, "IncrementalAlterConfigs", sent, validate_only)

    return Move(f"change.{name}", words, handle_incremental_alter_configs, AS_SET, take)


def _replace(name: str, words: str, configs: tuple[tuple[str, str | None], ...], validate_only: bool = False) -> Move:
    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        if state.plain is None and name != "one":
            return None
        request = AlterConfigsRequest((ReplacedResource(_resource(PLAIN), configs),), validate_only)
        given = [{"name": key, "value": value} for key, value in configs]
        sent = [{"resource_type": TOPIC_RESOURCE, "resource_name": TOPIC, "configs": given}]
        return _altered(handle_alter_configs, state, request, "AlterConfigs", sent, validate_only)

    return Move(f"replace.{name}", words, handle_alter_configs, AS_SET, take)


def _look() -> Move:
    """Settings that the topic has of its own have their values and say so; the others come from elsewhere."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        if state.plain is None:
            return None
        own = dict(configs_of(state.image.configs, _resource(PLAIN)))
        asked = {"resource_type": TOPIC_RESOURCE, "resource_name": TOPIC, "configuration_keys": list(SHOWN)}
        constraints: list[Constraint] = [equals("results[0].error_code", 0), equals("results[0].configs[#]", len(SHOWN))]
        for key in SHOWN:
            where = f"results[0].configs[name='{key}']"
            if key in own:
                constraints.append(equals(f"{where}.value", own[key]))
                constraints.append(equals(f"{where}.config_source", ConfigSource.TOPIC_CONFIG.value))
            else:
                constraints.append(NoneOf(f"{where}.config_source", (ConfigSource.TOPIC_CONFIG.value,)))
        constraints += [equals(f"results[0].configs[name='{key}'].read_only", False) for key in SHOWN]
        constraints += [equals(f"results[0].configs[name='{key}'].config_type", TYPES[key]) for key in SHOWN]
        request = RequestFields("DescribeConfigs", {"resources": [asked]}, since(1))
        outcome = f"{len(own)} of its own" + ", of a topic made anew" * (state.made > 1)
        return MoveResult(state, Exchange(request, outcome, constraints=tuple(constraints), retried=UNTIL_KNOWN))

    return Move("settings", "ask for the topic's settings", describe_topic_configs, AS_SET, take)


LONG, SHORT = (RETENTION, SET, "86400000"), (RETENTION, SET, "3600000")
DAYS = (RETENTION, SET, "soon")
PREPARING = ("create.plain", "create.config", "create.dotted", "delete.by-name")


def _prepared(move: Move) -> Move:
    """A topic is made with a setting first: if it is made again without, the setting must not come back."""

    def take(protocol: BrokerProtocol, state: TopicsState) -> MoveResult | None:
        return None if move.name == "create.plain" and not state.made else move.take(protocol, state)

    return move._replace(take=take)


CREATES = {move.name: _prepared(move) for move in TOPICS.moves if move.name in PREPARING}


def _changes() -> Iterator[Move]:
    yield _change("set", "give the topic a setting", (PLAIN, (SHORT,)))
    yield _change("set-again", "give the topic the value that it was made with", (PLAIN, (LONG,)))
    yield _change("two", "change two settings of the topic", (PLAIN, (SHORT, (LARGEST, SET, "2000"))))
    yield _change("validate-only", "ask whether a setting could change", (PLAIN, (SHORT,)), validate_only=True)
    yield _change("delete", "take a setting back", (PLAIN, ((RETENTION, DELETE, None),)))
    yield _change("append", "append to a setting that is a list", (PLAIN, ((CLEANUP, APPEND, "compact"),)))
    yield _change("subtract", "take an item from a setting that is a list", (PLAIN, ((CLEANUP, SUBTRACT, "compact"),)))
    yield _change("append-to-number", "append to a setting that is no list", (PLAIN, ((RETENTION, APPEND, "1"),)))
    yield _change("unknown", "change a setting that there is not", (PLAIN, (("no.such.setting", SET, "1"),)))
    yield _change("wrong", "give a setting a value of no sense", (PLAIN, (DAYS,)))
    yield _change("one-wrong", "change two settings, one to a value of no sense", (PLAIN, ((LARGEST, SET, "2000"), DAYS)))
    yield _change("no-value", "set a setting, and give no value", (PLAIN, ((RETENTION, SET, None),)))
    yield _change("twice", "change a setting twice in one request", (PLAIN, (SHORT, LONG)))
    yield _change(
        "topic-twice", "name the topic twice in one request", (PLAIN, (SHORT,)), (PLAIN, ((LARGEST, SET, "2000"),))
    )
    yield _change("two-topics", "change settings of two topics", (DOTTED, (SHORT,)), (PLAIN, (SHORT,)))
    yield _change("nameless", "change a setting of a topic without a name", (NAMELESS, (SHORT,)))
    yield _replace("one", "give the topic one setting, and no others", ((LARGEST, "2000"),))
    yield _replace("none", "give the topic no settings", ())
    yield _replace("wrong", "give the topic a value of no sense, and no others", ((RETENTION, "soon"),))
    yield _replace("validate-only", "ask whether the topic could have no settings", (), validate_only=True)


SETTINGS_LOOK = _look()
SETTINGS_OF_TOPICS = Subject(
    "settings",
    "settings of a topic that change, one by one or all at once",
    TopicsState(MetadataImage(brokers=(registered(),))),
    (*CREATES.values(), *_changes(), SETTINGS_LOOK),
    TOPICS.setup,
    {"topics": 2},
    looks=(SETTINGS_LOOK,),
    is_goal=lambda name: name not in PREPARING,
)
SETTINGS_AGAIN = after_restart(
    SETTINGS_OF_TOPICS,
    plain_restart(handle_incremental_alter_configs, AS_SET, asked=ALIVE),
    before=("create.plain", "create.config", "change.set", "change.delete", "change.two", "replace.none"),
    after=("settings",),
)
