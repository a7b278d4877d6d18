"""Settings of topics and brokers: shown, and changed while the broker runs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from kspec.impl.broker.administered import AdministeredNode, DescribedNode
from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.config.broker import SETTINGS
from kspec.impl.config.kafka import HIDDEN, is_secret
from kspec.impl.config.properties import ConfigError
from kspec.impl.config.settings import Setting
from kspec.impl.metadata.records import RESOURCES, LogRecord
from kspec.impl.wire.values import Message
from kspec.spec.controller.topics.broker_configs import (
    check_altered_broker,
    check_altered_value,
    check_broker_config,
    check_described_resource,
    check_listed_kinds,
    check_operations,
    listed_kinds,
)
from kspec.spec.controller.topics.configs import handle_alter_configs, handle_incremental_alter_configs
from kspec.spec.controller.topics.description import NodeLayers, broker_synonyms, describe_topic_configs
from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS
from kspec.spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlterOperation,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
)
from kspec.spec.messages.topics.describe_configs import (
    ConfigSource,
    ConfigType,
    DescribeConfigsRequest,
    DescribedConfig,
)
from kspec.spec.topics import ConfigResource, ResourceType, configs_of
from kspec.spec.values import Error, Instant

TOPICS = frozenset(key.name for key in TOPIC_CONFIGS)

TYPES = {
    "boolean": ConfigType.BOOLEAN,
    "string": ConfigType.STRING,
    "int": ConfigType.INT,
    "short": ConfigType.SHORT,
    "long": ConfigType.LONG,
    "double": ConfigType.DOUBLE,
    "list": ConfigType.LIST,
}


def describe_configs(core: DescribedNode, call: Call, now: Instant) -> list[Effect]:
    """The settings of topics and nodes. **Kafka:** `ConfigHelper.describeConfigs`."""
    return [InTurns(call, _describe(core, call))]


RESOURCES_AT_ONCE = 10
"""Each has some forty settings."""


def _describe(core: DescribedNode, call: Call) -> Steps:
    results = []
    for number, wanted in enumerate(call.message.resources):
        kind = RESOURCES.get(wanted.resource_type, ResourceType.UNKNOWN)
        names = None if wanted.configuration_keys is None else tuple(wanted.configuration_keys)
        resource = ConfigResource(kind, wanted.resource_name)
        error, message, configs = _described(core, resource, names, call.message.include_synonyms)
        results.append(
            Message(
                error_code=error.value,
                error_message=message or "",
                resource_type=wanted.resource_type,
                resource_name=wanted.resource_name,
                configs=[_config(one) for one in configs],
            )
        )
        if ends_turn(number, RESOURCES_AT_ONCE):
            yield []
    return [call.respond(results=results).long_if(len(results) > RESOURCES_AT_ONCE)]


def _described(
    core: DescribedNode, resource: ConfigResource, names: tuple[str, ...] | None, include_synonyms: bool
) -> tuple[Error, str | None, tuple[DescribedConfig, ...]]:
    if resource.kind == ResourceType.TOPIC:
        request = DescribeConfigsRequest(resource, names, include_synonyms)
        answer = describe_topic_configs(core.topic_settings, core.image.spec, request)
        return answer.error, answer.message, answer.configs
    node = str(core.node_id)
    error = check_described_resource(resource, node)
    if error != Error.NONE:
        return error, f"this is node {node}, which does not show {resource.kind.name} {resource.name!r}", ()
    if resource.kind == ResourceType.BROKER:
        return Error.NONE, None, _node_configs(core, resource, names, include_synonyms)
    return Error.NONE, None, ()


def _node_configs(
    core: DescribedNode, resource: ConfigResource, names: tuple[str, ...] | None, include_synonyms: bool
) -> tuple[DescribedConfig, ...]:
    """Settings of a node, or with an empty name of all brokers, and their sources.

    A setting that Kafka looks up under several names (`log.retention.ms`, then `.minutes`, then `.hours`) has the others as
    synonyms, too.
    """
    configs = core.image.spec.configs
    everybody = dict(configs_of(configs, ConfigResource(ResourceType.BROKER, "")))
    own = dict(configs_of(configs, resource)) if resource.name else {}
    known, given = core.config.known, core.config.given
    layers: NodeLayers = ((everybody, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),)
    if resource.name:
        defaults = {name: setting.default for name, setting in known.items()}
        layers = (
            (own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            *layers,
            (given, ConfigSource.STATIC_BROKER_CONFIG),
            (defaults, ConfigSource.DEFAULT_CONFIG),
        )
    found = []
    for name, setting in sorted(known.items()):
        if not any(name in values for values, _ in layers) or (names is not None and name not in names):
            continue
        synonyms = broker_synonyms(name, layers)
        value, source = next((values[name], source) for values, source in layers if name in values)
        read_only = check_broker_config(name) != Error.NONE
        shown_synonyms = synonyms if include_synonyms else ()
        found.append(DescribedConfig(name, value, source, TYPES[setting.kind], read_only, shown_synonyms))
    return tuple(found)


def list_config_resources(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Resources that may have settings. **Kafka:** `KafkaApis.handleListConfigResources`."""
    kinds = tuple(RESOURCES.get(kind, ResourceType.UNKNOWN) for kind in call.message.resource_types)
    error = check_listed_kinds(kinds, call.version)
    if error != Error.NONE:
        return [call.respond(error_code=error.value, config_resources=[])]
    image = core.cluster.image
    brokers = [str(one.broker) for one in image.spec.brokers if not one.fenced]
    named = (
        (ResourceType.BROKER_LOGGER, brokers),
        (ResourceType.BROKER, brokers),
        (ResourceType.TOPIC, list(image.topics)),
    )
    listed = listed_kinds(kinds, call.version)
    found = [
        Message(resource_name=name, resource_type=kind.value) for kind, names in named if kind in listed for name in names
    ]
    return [call.respond(error_code=0, config_resources=found)]


def _config(one: DescribedConfig) -> Message:
    return Message(
        name=one.name,
        value=one.value,
        read_only=one.read_only,
        config_source=one.source.value,
        is_sensitive=False,
        synonyms=[Message(name=other.name, value=other.value, source=other.source.value) for other in one.synonyms],
        config_type=one.config_type.value,
        documentation=None,
    )


def incremental_alter_configs(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Change settings, and leave the others. **Kafka:** `ControllerApis.handleIncrementalAlterConfigs`."""
    operations = {operation.value: operation for operation in AlterOperation}
    asked = tuple(one.config_operation for resource in call.message.resources for one in resource.configs)
    error = check_operations(asked, operations.keys())
    if error != Error.NONE:
        return [_refused(call, error, f"there are no operations but {', '.join(map(str, operations))}")]

    def decide(some: list[Message]) -> Decided:
        resources = tuple(
            AlteredResource(
                _resource(one),
                tuple(AlterConfig(each.name, operations[each.config_operation], shown(each)) for each in one.configs),
            )
            for one in some
        )
        given = [[(each.name, each.value) for each in one.configs] for one in resources]
        refused = _refused_resources(core, [one.resource for one in resources], given)
        kept = tuple(one for number, one in enumerate(resources) if number not in refused)
        request = IncrementalAlterConfigsRequest(kept, call.message.validate_only)
        answer, records = core.deciding.decide(handle_incremental_alter_configs, request, now, AlterConfigsResponse)
        return refused, answer, records

    return [InTurns(call, _change(core, call, decide))]


def alter_configs(core: AdministeredNode, call: Call, now: Instant) -> list[Effect]:
    """Give resources these settings and no others. **Kafka:** `ControllerApis.handleLegacyAlterConfigs`."""

    def decide(some: list[Message]) -> Decided:
        resources = tuple(
            ReplacedResource(_resource(one), tuple((each.name, shown(each)) for each in one.configs)) for one in some
        )
        refused = _refused_resources(core, [one.resource for one in resources], [one.configs for one in resources])
        kept = tuple(one for number, one in enumerate(resources) if number not in refused)
        request = AlterConfigsRequest(kept, call.message.validate_only)
        answer, records = core.deciding.decide(handle_alter_configs, request, now, AlterConfigsResponse)
        return refused, answer, records

    return [InTurns(call, _change(core, call, decide))]


def shown(setting: Message) -> str | None:
    """The value of a setting as handlers get it, and as a trace has it: one that Kafka does not know may be a secret."""
    name, value = setting.name, setting.value
    known = name in TOPICS or name in SETTINGS or not is_secret(name)
    return None if value is None else str(value) if known else HIDDEN


Refusal: TypeAlias = tuple[Error, str]


def _refused_resources(
    core: AdministeredNode, resources: Sequence[ConfigResource], given: Sequence[Iterable[tuple[str, str | None]]]
) -> dict[int, Refusal]:
    """Resources that are refused before the controller looks at them, by their places. Each is refused by itself.

    **Kafka:** `ConfigAdminManager.preprocess`.
    """
    found: dict[int, Refusal] = {}
    for number, (resource, values) in enumerate(zip(resources, given, strict=True)):
        refusal = _refusal_of_broker(core, resource.name, values) if resource.kind == ResourceType.BROKER else None
        if refusal is not None:
            found[number] = refusal
    return found


def _refusal_of_broker(core: AdministeredNode, name: str, values: Iterable[tuple[str, str | None]]) -> Refusal | None:
    """The reason why a broker does not get these settings: there is no such broker, or setting, or it cannot change while
    it runs.

    **Kafka:** `ConfigAdminManager.validateResourceNameIsCurrentNodeId`, `DynamicBrokerConfig.validate`.
    """
    error = check_altered_broker(name, {str(one.broker) for one in core.image.spec.brokers})
    if error != Error.NONE:
        return error, f"there is no broker {name}"
    for key, value in values:
        setting, error = SETTINGS.get(key), check_broker_config(key)
        if setting is None or error != Error.NONE:
            return error, f"{key} cannot be changed while the broker runs"
        wrong = _wrong_with(setting, value)
        error = check_altered_value(wrong is None)
        if error != Error.NONE:
            return error, wrong or error.name
    return None


def _wrong_with(setting: Setting, value: str | None) -> str | None:
    try:
        if value is not None:
            setting.parse(value)
    except ConfigError as error:
        return str(error)
    return None


def _resource(one: Message) -> ConfigResource:
    return ConfigResource(RESOURCES.get(one.resource_type, ResourceType.UNKNOWN), one.resource_name)


Decided: TypeAlias = tuple[dict[int, Refusal], AlterConfigsResponse, list[LogRecord]]
"""Resources that were refused before, by their places, the controller's answer for the others, and what it has stored."""

ALTERED_AT_ONCE = 50
"""Resources of which settings are changed before others are served; their records are one batch of the metadata log."""


def _change(core: AdministeredNode, call: Call, decide: Callable[[list[Message]], Decided]) -> Steps:
    """Change settings, some in each step. All mentions of a resource are in the same, as it may be named once."""

    mentions: dict[ConfigResource, list[int]] = {}
    for place, one in enumerate(call.message.resources):
        mentions.setdefault(_resource(one), []).append(place)
        if ends_turn(place):
            yield []
    answers: dict[int, Message] = {}
    places: list[int] = []
    for number, those in enumerate(mentions.values(), 1):
        places += those
        if number == len(mentions) or ends_turn(number - 1, ALTERED_AT_ONCE):
            some = [call.message.resources[place] for place in sorted(places)]
            refused, answer, records = decide(some)
            answers.update(zip(sorted(places), _outcomes(some, refused, answer), strict=True))
            yield core.change_metadata(records)
            places = []
    responses = [answers[place] for place in range(len(answers))]
    return [call.respond(responses=responses).long_if(len(responses) > TURN_SIZE)]


def _outcomes(some: list[Message], refused: Mapping[int, Refusal], answer: AlterConfigsResponse) -> list[Message]:
    outcomes: dict[ConfigResource, Refusal] = {one.resource: (one.error, one.message or "") for one in answer.resources}
    found = []
    for number, one in enumerate(some):
        error, text = refused[number] if number in refused else outcomes[_resource(one)]
        names = {"resource_type": one.resource_type, "resource_name": one.resource_name}
        found.append(Message(error_code=error.value, error_message=text or None, **names))
    return found


def _refused(call: Call, error: Error, message: str) -> Effect:
    return call.respond(
        responses=[
            Message(
                error_code=error.value,
                error_message=message,
                resource_type=one.resource_type,
                resource_name=one.resource_name,
            )
            for one in call.message.resources
        ]
    )
