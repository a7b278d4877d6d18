"""DescribeConfigs: the settings of a topic or a broker, and where each comes from."""

from typing import TypeAlias

from spec.controller.topics.cluster import Cluster
from spec.controller.topics.config_types import ConfigKey
from spec.controller.topics.names import wrong_with_name
from spec.controller.topics.settings import TopicSettings
from spec.controller.topics.topic_configs import TOPIC_CONFIGS
from spec.messages.topics.alter_configs import ConfigResource, ResourceType
from spec.messages.topics.describe_configs import (
    ConfigSource,
    ConfigSynonym,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
)
from spec.values import Error

Layers: TypeAlias = tuple[tuple[dict[str, str], ConfigSource], ...]
"""A broker's settings by where they come from, those that count first."""

UNITS = (("minutes", 60_000), ("hours", 3_600_000))
"""In which unit a broker's setting counts, by the end of its name (milliseconds)."""


def describe_topic_configs(
    settings: TopicSettings, cluster: Cluster, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """The settings of a topic: its own, else the broker's, else the default.

    Errors: `INVALID_TOPIC_EXCEPTION`, `UNKNOWN_TOPIC_OR_PARTITION`.

    **Kafka:** `ConfigHelper.describeConfigs`, `createTopicConfigEntry`.
    """
    name = request.resource.name
    wrong = wrong_with_name(name)
    if wrong is not None:
        return DescribeConfigsResponse(request.resource, Error.INVALID_TOPIC_EXCEPTION, wrong)
    if cluster.topic(name) is None:
        return DescribeConfigsResponse(request.resource, Error.UNKNOWN_TOPIC_OR_PARTITION)
    own = dict(cluster.configs(request.resource))
    wanted = (key for key in TOPIC_CONFIGS if not request.names or key.name in request.names)
    described = tuple(_described(settings, cluster, key, own.get(key.name), request.include_synonyms) for key in wanted)
    return DescribeConfigsResponse(request.resource, Error.NONE, None, described)


def _described(
    settings: TopicSettings, cluster: Cluster, key: ConfigKey, own: str | None, include_synonyms: bool
) -> DescribedConfig:
    behind = synonyms_of(settings, cluster, key)
    of_topic = () if own is None else (ConfigSynonym(key.name, own, ConfigSource.TOPIC_CONFIG),)
    synonyms = (*of_topic, *behind)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    value = topic_value(settings, cluster, key) if own is None else own
    return DescribedConfig(key.name, value, source, key.config_type, False, synonyms if include_synonyms else ())


def topic_value(settings: TopicSettings, cluster: Cluster, key: ConfigKey) -> str:
    """A setting of a topic that does not set it itself: the broker's, in the topic's unit, else the default.

    **Kafka:** `KafkaConfig.extractLogConfigMap`, `KafkaConfigSchema.resolveEffectiveTopicConfig`.
    """
    return _value(_layers(settings, cluster)[:-1], key)


def topic_values(settings: TopicSettings, cluster: Cluster) -> dict[str, str]:
    """All settings of a topic that sets none itself, by their names. **Kafka:** as `topic_value`."""
    layers = _layers(settings, cluster)[:-1]
    return {key.name: _value(layers, key) for key in TOPIC_CONFIGS}


def _value(layers: Layers, key: ConfigKey) -> str:
    for values, _ in layers:
        for synonym in key.synonyms:
            if synonym in values:
                factor = next((factor for unit, factor in UNITS if synonym.endswith(unit)), 1)
                return values[synonym] if factor == 1 else str(int(values[synonym]) * factor)
    return key.default


def synonyms_of(settings: TopicSettings, cluster: Cluster, key: ConfigKey) -> tuple[ConfigSynonym, ...]:
    """The broker's settings that stand behind a topic's, those that count first.

    Kafka drops what comes before the first by the most exact name, all if there is none such: a topic's `retention.ms` that
    comes from `log.retention.hours` has no synonyms, and calls itself a default.

    **Kafka:** `ConfigHelper.configSynonyms`, `ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS`.
    """
    found = [
        ConfigSynonym(name, values[name], source)
        for values, source in _layers(settings, cluster)
        for name in key.synonyms
        if name in values
    ]
    exact = [number for number, synonym in enumerate(found) if synonym.name == key.synonyms[0]]
    return tuple(found[exact[0] :]) if exact else ()


def _layers(settings: TopicSettings, cluster: Cluster) -> Layers:
    node = ConfigResource(ResourceType.BROKER, str(settings.node_id))
    everybody = ConfigResource(ResourceType.BROKER, "")
    return (
        (dict(cluster.configs(node)), ConfigSource.DYNAMIC_BROKER_CONFIG),
        (dict(cluster.configs(everybody)), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (dict(settings.node), ConfigSource.STATIC_BROKER_CONFIG),
        (dict(settings.node_defaults), ConfigSource.DEFAULT_CONFIG),
    )
