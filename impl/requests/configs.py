"""Settings of topics and brokers: shown, and changed while the broker runs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from impl.broker.administered import Administered
from impl.broker.calls import Call, Effect, Then
from impl.broker.core import Core
from impl.broker.topics_view import RESOURCES
from impl.config.broker import SETTINGS
from impl.config.properties import ConfigError
from impl.wire.values import Message
from spec.controller.topics.broker_configs import check_broker_config
from spec.controller.topics.configs import handle_alter_configs, handle_incremental_alter_configs
from spec.controller.topics.description import describe_topic_configs
from spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlteredResource,
    AlterOperation,
    ConfigResource,
    IncrementalAlterConfigsRequest,
    ReplacedResource,
    ResourceType,
)
from spec.messages.topics.describe_configs import (
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    DescribeConfigsRequest,
    DescribedConfig,
)
from spec.values import Error

TYPES = {
    "boolean": ConfigType.BOOLEAN,
    "string": ConfigType.STRING,
    "int": ConfigType.INT,
    "short": ConfigType.SHORT,
    "long": ConfigType.LONG,
    "double": ConfigType.DOUBLE,
    "list": ConfigType.LIST,
}


def describe_configs(core: Core, call: Call, now: int) -> list[Effect]:
    """The settings of topics and brokers. **Kafka:** `ConfigHelper.describeConfigs`."""
    results = []
    for wanted in call.message.resources:
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
    return [call.respond(results=results)]


def _described(
    core: Core, resource: ConfigResource, names: tuple[str, ...] | None, include_synonyms: bool
) -> tuple[Error, str | None, tuple[DescribedConfig, ...]]:
    if resource.kind == ResourceType.TOPIC:
        request = DescribeConfigsRequest(resource, names, include_synonyms)
        answer = describe_topic_configs(core.topic_settings, core.cluster.view, request)
        return answer.error, answer.message, answer.configs
    if resource.kind == ResourceType.BROKER:
        if resource.name not in ("", str(core.cluster.self_id)):
            return Error.INVALID_REQUEST, f"this is broker {core.cluster.self_id}, not {resource.name}", ()
        return Error.NONE, None, _broker_configs(core, resource, names, include_synonyms)
    if resource.kind in (ResourceType.CLIENT_METRICS, ResourceType.GROUP, ResourceType.BROKER_LOGGER):
        return Error.NONE, None, ()
    return Error.INVALID_REQUEST, "there is no such kind of resource", ()


def _broker_configs(
    core: Core, resource: ConfigResource, names: tuple[str, ...] | None, include_synonyms: bool
) -> tuple[DescribedConfig, ...]:
    """What is set for a broker, or with an empty name for all of them, and how."""
    everybody = dict(core.cluster.view.configs(ConfigResource(ResourceType.BROKER, "")))
    own = dict(core.cluster.view.configs(resource)) if resource.name else {}
    found = []
    for name, setting in sorted(SETTINGS.items()):
        layers: list[tuple[dict[str, Any], ConfigSource]] = [
            (own, ConfigSource.DYNAMIC_BROKER_CONFIG),
            (everybody, ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        ]
        if resource.name:
            layers.append((core.config.given, ConfigSource.STATIC_BROKER_CONFIG))
            layers.append(({name: setting.default}, ConfigSource.DEFAULT_CONFIG))
        values = [(values[name], source) for values, source in layers if name in values]
        if not values or (names is not None and name not in names):
            continue
        synonyms = tuple(ConfigSynonym(name, value, source) for value, source in values if value is not None)
        kind = TYPES[setting.kind]
        read_only = check_broker_config(name) != Error.NONE
        found.append(DescribedConfig(name, *values[0], kind, read_only, synonyms if include_synonyms else ()))
    return tuple(found)


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


def incremental_alter_configs(core: Administered, call: Call, now: int) -> list[Effect]:
    """Change settings, and leave the others. **Kafka:** `ControllerApis.handleIncrementalAlterConfigs`."""
    operations = {operation.value: operation for operation in AlterOperation}
    wrong = [
        one.config_operation
        for resource in call.message.resources
        for one in resource.configs
        if one.config_operation not in operations
    ]
    if wrong:
        return [_refused(call, Error.INVALID_REQUEST, f"there is no operation {wrong[0]}")]
    resources = tuple(
        AlteredResource(
            _resource(one),
            tuple(AlterConfig(each.name, operations[each.config_operation], each.value) for each in one.configs),
        )
        for one in call.message.resources
    )
    given = [[(each.name, each.value) for each in one.configs] for one in resources]
    refused = _refused_resources(core, [one.resource for one in resources], given)
    kept = tuple(one for number, one in enumerate(resources) if number not in refused)
    request = IncrementalAlterConfigsRequest(kept, call.message.validate_only)
    answer, records = core.deciding.decide_topics(handle_incremental_alter_configs, core.topic_settings, request, now)
    return _changed(core, call, refused, answer, core.change_metadata(records))


def alter_configs(core: Administered, call: Call, now: int) -> list[Effect]:
    """Give resources these settings and no others. **Kafka:** `ControllerApis.handleLegacyAlterConfigs`."""
    resources = tuple(
        ReplacedResource(_resource(one), tuple((each.name, each.value) for each in one.configs))
        for one in call.message.resources
    )
    refused = _refused_resources(core, [one.resource for one in resources], [one.configs for one in resources])
    kept = tuple(one for number, one in enumerate(resources) if number not in refused)
    request = AlterConfigsRequest(kept, call.message.validate_only)
    answer, records = core.deciding.decide_topics(handle_alter_configs, core.topic_settings, request, now)
    return _changed(core, call, refused, answer, core.change_metadata(records))


Refusal: TypeAlias = tuple[Error, str]


def _refused_resources(
    core: Administered, resources: Sequence[ConfigResource], given: Sequence[Iterable[tuple[str, str | None]]]
) -> dict[int, Refusal]:
    """Which resources are refused before the controller looks at them, by their places. Each is refused by itself.

    **Kafka:** `ConfigAdminManager.preprocess`.
    """
    found: dict[int, Refusal] = {}
    for number, (resource, values) in enumerate(zip(resources, given, strict=True)):
        refusal = _refusal_of_broker(core, resource.name, values) if resource.kind == ResourceType.BROKER else None
        if refusal is not None:
            found[number] = refusal
    return found


def _refusal_of_broker(core: Administered, name: str, values: Iterable[tuple[str, str | None]]) -> Refusal | None:
    """Why a broker does not get these settings: there is no such broker, or setting, or it cannot change while it runs.

    **Kafka:** `ConfigAdminManager.validateResourceNameIsCurrentNodeId`, `DynamicBrokerConfig.validate`.
    """
    if name and name not in {str(one.broker) for one in core.cluster.image.spec.brokers}:
        return Error.INVALID_REQUEST, f"there is no broker {name}"
    for key, value in values:
        setting, error = SETTINGS.get(key), check_broker_config(key)
        if setting is None or error != Error.NONE:
            return Error.INVALID_REQUEST, f"{key} cannot be changed while the broker runs"
        try:
            if value is not None:
                setting.parse(value)
        except ConfigError as error:
            return Error.INVALID_REQUEST, str(error)
    return None


def _resource(one: Message) -> ConfigResource:
    return ConfigResource(RESOURCES.get(one.resource_type, ResourceType.UNKNOWN), one.resource_name)


def _changed(
    core: Administered, call: Call, refused: Mapping[int, Refusal], answer: AlterConfigsResponse, effects: list[Effect]
) -> list[Effect]:
    def apply() -> list[Effect]:
        core.configure_replicas()
        return []

    outcomes: dict[ConfigResource, Refusal] = {one.resource: (one.error, one.message or "") for one in answer.resources}
    responses: dict[ConfigResource, Message] = {}
    for number, one in enumerate(call.message.resources):
        resource = _resource(one)
        error, text = refused[number] if number in refused else outcomes[resource]
        names = {"resource_type": one.resource_type, "resource_name": one.resource_name}
        responses[resource] = Message(error_code=error.value, error_message=text or None, **names)
    return [*effects, Then(apply), call.respond(responses=list(responses.values()))]


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
