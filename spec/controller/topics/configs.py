"""Settings of topics and brokers: changes, and what is wrong with them."""

from collections import Counter

from kspec.spec.controller.protocol import Controller, TopicSettings
from kspec.spec.controller.rules.features import ELIGIBLE_LEADER_REPLICAS, FeatureLevel
from kspec.spec.controller.state import ControllerState, ControllerStep, decide
from kspec.spec.controller.topics.config_types import items_of, number_of, wrong_with_value
from kspec.spec.controller.topics.names import wrong_with_name
from kspec.spec.controller.topics.topic_configs import topic_config, topic_config_behind
from kspec.spec.messages.topics.alter_configs import (
    AlterConfig,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterOperation,
    ConfigOutcome,
    IncrementalAlterConfigsRequest,
)
from kspec.spec.messages.topics.describe_configs import ConfigType
from kspec.spec.metadata import ConfigRecord, FeatureLevelRecord, MetadataImage, MetadataRecord
from kspec.spec.topics import ConfigResource, ResourceType, configs_of, topic_named
from kspec.spec.values import Error, MonotonicMs

LONGEST_VALUE = 2**15 - 1
MIN_INSYNC_REPLICAS = "min.insync.replicas"

Refusal = tuple[Error, str]
Changes = tuple[tuple[ConfigRecord, ...], Refusal | None]


def wrong_with_topic_configs(settings: TopicSettings, configs: tuple[tuple[str, str], ...]) -> str | None:
    """The fault of the settings that a topic has of its own, `None` if none. The broker's settings stand behind them.

    **Kafka:** `LogConfig.validate`, `ControllerConfigurationValidator.validate`. **Leaves out:** tiered storage.
    """
    for name, value in configs:
        key = topic_config(name)
        if key is None:
            return f"topics have no setting {name}"
        wrong = wrong_with_value(key, value)
        if wrong is not None:
            return wrong
        if len(value) > LONGEST_VALUE:
            return f"a value has at most {LONGEST_VALUE} characters"
    lags = [effective_number(settings, configs, f"{bound}.compaction.lag.ms") for bound in ("min", "max")]
    return "min.compaction.lag.ms is above max.compaction.lag.ms" if lags[0] > lags[1] else None


def effective_number(settings: TopicSettings, configs: tuple[tuple[str, str], ...], name: str) -> float:
    """A topic's setting: its own, else the broker's, else the default."""
    key = topic_config(name)
    assert key is not None, f"{name} is no setting of topics"
    node = dict(settings.node)
    values = [dict(configs).get(name), *(node.get(synonym) for synonym in key.synonyms), key.default]
    number = number_of(key.config_type, next(value for value in values if value is not None))
    assert number is not None, f"the setting {name} is no number"
    return number


def handle_incremental_alter_configs(
    controller: Controller, state: ControllerState, request: IncrementalAlterConfigsRequest, now: MonotonicMs
) -> ControllerStep:
    """Change settings of resources, and leave the others; each resource succeeds or fails as a whole.

    Errors, the first that applies: `INVALID_REQUEST` (a resource or a setting twice, no value, a resource that has no
    settings, a broker that is no number), `INVALID_TOPIC_EXCEPTION`, `INVALID_CONFIG`, `UNKNOWN_TOPIC_OR_PARTITION`,
    `BROKER_ID_NOT_REGISTERED`.

    **Kafka:** `ConfigAdminManager.preprocess`, `ControllerApis`, `ConfigurationControlManager.incrementalAlterConfigs`.
    **Leaves out:** what groups, client metrics and loggers have in Kafka; checks of a broker's values.
    """
    times = Counter(altered.resource for altered in request.resources)
    records: list[ConfigRecord] = []
    outcomes = []
    for altered in request.resources:
        changes, refusal = _changes(controller, state.image, altered.resource, altered.configs)
        if times[altered.resource] > 1:
            changes, refusal = (), (Error.INVALID_REQUEST, "the request has a resource more than once")
        records += changes
        outcomes.append(ConfigOutcome(altered.resource, *(refusal or (Error.NONE, None))))
    kept = () if request.validate_only else tuple(records)
    return decide(state, kept, AlterConfigsResponse(tuple(outcomes)))


def handle_alter_configs(
    controller: Controller, state: ControllerState, request: AlterConfigsRequest, now: MonotonicMs
) -> ControllerStep:
    """Give resources these settings and no others: as if the others were deleted.

    Errors: as for `handle_incremental_alter_configs`.

    **Kafka:** `ConfigurationControlManager.legacyAlterConfigs`. **Leaves out:** that a resource twice is never answered.
    """
    times = Counter(replaced.resource for replaced in request.resources)
    records: list[ConfigRecord] = []
    outcomes = []
    for replaced in request.resources:
        wanted = dict(replaced.configs)
        others = (name for name, _ in configs_of(state.image.configs, replaced.resource) if name not in wanted)
        changes, refusal = _changes(
            controller,
            state.image,
            replaced.resource,
            (
                *(AlterConfig(name, AlterOperation.SET, value) for name, value in wanted.items()),
                *(AlterConfig(name, AlterOperation.DELETE, None) for name in others),
            ),
        )
        if times[replaced.resource] > 1:
            changes, refusal = (), (Error.INVALID_REQUEST, "the request has a resource more than once")
        elif len(wanted) != len(replaced.configs):
            changes, refusal = (), (Error.INVALID_REQUEST, "the request has a setting more than once")
        records += changes
        outcomes.append(ConfigOutcome(replaced.resource, *(refusal or (Error.NONE, None))))
    kept = () if request.validate_only else tuple(records)
    return decide(state, kept, AlterConfigsResponse(tuple(outcomes)))


def _changes(
    controller: Controller, image: MetadataImage, resource: ConfigResource, configs: tuple[AlterConfig, ...]
) -> Changes:
    """**Kafka:** `incrementalAlterConfigResource`, `validateAlterConfig`."""
    refusal = _refusal_of_name(controller.topics, image, resource)
    if refusal is not None:
        return (), refusal
    current = dict(configs_of(image.configs, resource))
    after = dict(current)
    records = []
    for change in configs:
        if [one.name for one in configs].count(change.name) > 1:
            return (), (Error.INVALID_REQUEST, f"the request has {change.name} more than once")
        if change.value is None and change.operation != AlterOperation.DELETE:
            return (), (Error.INVALID_REQUEST, f"no value is given for {change.name}")
        value, wrong = _value_after(resource, change, current.get(change.name))
        wrong = wrong or _wrong_with_min_isr(controller, resource, change.name, value)
        if wrong is not None:
            return (), (Error.INVALID_CONFIG, wrong)
        if value != current.get(change.name) or resource.kind == ResourceType.BROKER:
            records.append(ConfigRecord(resource, change.name, value))
        after = {name: old for name, old in after.items() if name != change.name}
        after |= {} if value is None else {change.name: value}
    if resource.kind == ResourceType.TOPIC:
        wrong = wrong_with_topic_configs(controller.topics, tuple(after.items()))
        if wrong is not None:
            return (), (Error.INVALID_CONFIG, wrong)
    missing = _missing(image, resource)
    return (() if missing else tuple(records)), missing


def _refusal_of_name(settings: TopicSettings, image: MetadataImage, resource: ConfigResource) -> Refusal | None:
    """**Kafka:** `ControllerConfigurationValidator.validate`, `ConfigAdminManager.validateLogLevelConfigs`,
    `ClientMetricsConfigs.validate`, `GroupConfig.validate`, by all of which such a setting is unknown.
    """
    name = resource.name
    if resource.kind == ResourceType.TOPIC:
        if not name:
            return Error.INVALID_REQUEST, "the name of a topic is missing"
        wrong = wrong_with_name(name)
        return None if wrong is None else (Error.INVALID_TOPIC_EXCEPTION, wrong)
    if resource.kind == ResourceType.BROKER:
        legal = not name or (name.isascii() and name.isdigit())
        return None if legal else (Error.INVALID_REQUEST, f"a broker's id is a number from 0 on, not '{name}'")
    nodes = (str(settings.node_id), *(str(one.broker) for one in image.brokers))
    if resource.kind == ResourceType.BROKER_LOGGER and name in nodes:
        return Error.INVALID_CONFIG, "loggers have no settings here"
    if resource.kind == ResourceType.GROUP and name:
        return Error.INVALID_CONFIG, "groups have no settings here"
    if resource.kind == ResourceType.CLIENT_METRICS and name:
        return Error.INVALID_REQUEST, "client metrics have no settings here"
    return Error.INVALID_REQUEST, f"{resource.kind.name} has no settings that can be changed here"


def _missing(image: MetadataImage, resource: ConfigResource) -> Refusal | None:
    """**Kafka:** `QuorumController.ConfigResourceExistenceChecker`, which is asked last."""
    name = resource.name
    if resource.kind == ResourceType.TOPIC:
        there = topic_named(image.topics, name) is not None
        return None if there else (Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
    known = not name or int(name) in {one.broker for one in image.brokers}
    return None if known else (Error.BROKER_ID_NOT_REGISTERED, f"broker {name} is not registered")


def _value_after(resource: ConfigResource, change: AlterConfig, current: str | None) -> tuple[str | None, str | None]:
    """The value after a change, and what is wrong with the change.

    **Kafka:** `ConfigurationControlManager.incrementalAlterConfigResource`, `getParts`.
    """
    if change.operation in (AlterOperation.SET, AlterOperation.DELETE):
        return change.value if change.operation == AlterOperation.SET else None, None
    key = topic_config(change.name) if resource.kind == ResourceType.TOPIC else topic_config_behind(change.name)
    if key is None or key.config_type != ConfigType.LIST:
        return None, f"{change.name} is no list"
    before = [item for item in (key.default if current is None else current).split(",") if item]
    given = items_of(change.value or "")
    if change.operation == AlterOperation.APPEND:
        return ",".join(dict.fromkeys((*before, *given))), None
    return ",".join(item for item in before if item not in given), None


def _wrong_with_min_isr(controller: Controller, resource: ConfigResource, name: str, value: str | None) -> str | None:
    """With eligible leader replicas, `min.insync.replicas` is the cluster's or a topic's, and the cluster always has it.

    **Kafka:** `isDisallowedBrokerMinIsrTransition`, `isDisallowedClusterMinIsrTransition`.
    """
    of_brokers = name == MIN_INSYNC_REPLICAS and resource.kind == ResourceType.BROKER
    if controller.settings.eligible_leader_replicas and of_brokers and (resource.name != "" or value is None):
        return f"{name} cannot be changed of one broker, or taken away, while eligible leader replicas are in use"
    return None


def records_of_level(image: MetadataImage, level: FeatureLevel, min_isr: str) -> tuple[MetadataRecord, ...]:
    """The records by which a feature has another level.

    With eligible leader replicas the cluster has a `min.insync.replicas` of its own; where none is set it becomes `min_isr`,
    the one by the node's settings.

    **Kafka:** `FeatureControlManager.updateFeature`, `ConfigurationControlManager.maybeGenerateElrSafetyRecords`.
    """
    record = FeatureLevelRecord(level.name, level.level)
    whole_cluster = ConfigResource(ResourceType.BROKER, "")
    is_set = MIN_INSYNC_REPLICAS in dict(configs_of(image.configs, whole_cluster))
    if level.name != ELIGIBLE_LEADER_REPLICAS or level.level == 0 or is_set:
        return (record,)
    return record, ConfigRecord(whole_cluster, MIN_INSYNC_REPLICAS, min_isr)
