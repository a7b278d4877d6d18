"""DescribeConfigs: the settings of a topic or a broker, and where each comes from."""

from collections.abc import Mapping
from typing import TypeAlias

from kspec.spec.controller.protocol import TopicSettings
from kspec.spec.controller.topics.config_types import ConfigKey
from kspec.spec.controller.topics.names import wrong_with_name
from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS
from kspec.spec.messages.topics.describe_configs import (
    ConfigSource,
    ConfigSynonym,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribedConfig,
)
from kspec.spec.metadata import MetadataImage
from kspec.spec.topics import ConfigResource, ResourceType, configs_of, topic_named
from kspec.spec.values import Error

Layers: TypeAlias = tuple[tuple[dict[str, str], ConfigSource], ...]
"""A broker's settings by where they come from, those that count first."""

UNITS = (("minutes", 60_000), ("hours", 3_600_000))
"""In which unit a broker's setting counts, by the end of its name (milliseconds)."""


def describe_topic_configs(
    settings: TopicSettings, image: MetadataImage, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """The settings of a topic: its own, else the broker's, else the default.

    Errors: `INVALID_TOPIC_EXCEPTION`, `UNKNOWN_TOPIC_OR_PARTITION`.

    **Kafka:** `ConfigHelper.describeConfigs`, `createTopicConfigEntry`.
    """
    name = request.resource.name
    wrong = wrong_with_name(name)
    if wrong is not None:
        return DescribeConfigsResponse(request.resource, Error.INVALID_TOPIC_EXCEPTION, wrong)
    if topic_named(image.topics, name) is None:
        return DescribeConfigsResponse(request.resource, Error.UNKNOWN_TOPIC_OR_PARTITION)
    own, layers = dict(configs_of(image.configs, request.resource)), _layers(settings, image)
    wanted = (key for key in TOPIC_CONFIGS if not request.names or key.name in request.names)
    described = tuple(_described(layers, key, own.get(key.name), request.include_synonyms) for key in wanted)
    return DescribeConfigsResponse(request.resource, Error.NONE, None, described)


def _described(layers: Layers, key: ConfigKey, own: str | None, include_synonyms: bool) -> DescribedConfig:
    behind = synonyms_of(layers, key)
    of_topic = () if own is None else (ConfigSynonym(key.name, own, ConfigSource.TOPIC_CONFIG),)
    synonyms = (*of_topic, *behind)
    source = synonyms[0].source if synonyms else ConfigSource.DEFAULT_CONFIG
    value = _value(layers[:-1], key) if own is None else own
    return DescribedConfig(key.name, value, source, key.config_type, False, synonyms if include_synonyms else ())


def topic_values(settings: TopicSettings, image: MetadataImage) -> dict[str, str]:
    """All settings of a topic that sets none itself, by their names: the broker's, in the topic's unit, else the default.

    **Kafka:** `KafkaConfig.extractLogConfigMap`, `KafkaConfigSchema.resolveEffectiveTopicConfig`.
    """
    layers = _layers(settings, image)[:-1]
    return {key.name: _value(layers, key) for key in TOPIC_CONFIGS}


def _value(layers: Layers, key: ConfigKey) -> str:
    for values, _ in layers:
        for synonym in key.synonyms:
            if synonym in values:
                factor = next((factor for unit, factor in UNITS if synonym.endswith(unit)), 1)
                return values[synonym] if factor == 1 else str(int(values[synonym]) * factor)
    return key.default


def synonyms_of(layers: Layers, key: ConfigKey) -> tuple[ConfigSynonym, ...]:
    """The broker's settings that stand behind a topic's, those that count first.

    Kafka drops what comes before the first by the most exact name, all if there is none such: a topic's `retention.ms` that
    comes from `log.retention.hours` has no synonyms, and calls itself a default.

    **Kafka:** `ConfigHelper.configSynonyms`, `ServerTopicConfigSynonyms.TOPIC_CONFIG_SYNONYMS`.
    """
    found = [
        ConfigSynonym(name, values[name], source) for values, source in layers for name in key.synonyms if name in values
    ]
    exact = [number for number, synonym in enumerate(found) if synonym.name == key.synonyms[0]]
    return tuple(found[exact[0] :]) if exact else ()


def _layers(settings: TopicSettings, image: MetadataImage) -> Layers:
    node = ConfigResource(ResourceType.BROKER, str(settings.node_id))
    everybody = ConfigResource(ResourceType.BROKER, "")
    return (
        (dict(configs_of(image.configs, node)), ConfigSource.DYNAMIC_BROKER_CONFIG),
        (dict(configs_of(image.configs, everybody)), ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG),
        (dict(settings.node), ConfigSource.STATIC_BROKER_CONFIG),
        (dict(settings.node_defaults), ConfigSource.DEFAULT_CONFIG),
    )


LOOKED_UP_TOGETHER = (
    ("log.roll.ms", "log.roll.hours"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours"),
    ("log.retention.ms", "log.retention.minutes", "log.retention.hours"),
)
"""Settings of a broker that stand for one another; the first that is given counts."""

FLUSH = ("log.flush.interval.ms", "log.flush.scheduler.interval.ms")
"""The second stands for the first, and not the other way round."""

NodeLayers: TypeAlias = tuple[tuple[Mapping[str, str | None], ConfigSource], ...]
"""A node's settings by where they come from, those that count first."""


def broker_synonyms(name: str, layers: NodeLayers) -> tuple[ConfigSynonym, ...]:
    """Values behind a setting of a broker, those that count first: with those that it is looked up together with.

    What comes before the first by its own name is dropped, all if there is none such.

    **Kafka:** `ConfigHelper.configSynonyms`, `DynamicBrokerConfig.brokerConfigSynonyms`. **Leaves out:** settings of one
    listener.
    """
    together = next((names for names in LOOKED_UP_TOGETHER if name in names), FLUSH if name == FLUSH[0] else (name,))
    found = [
        ConfigSynonym(one, value, source)
        for values, source in layers
        for one in together
        if (value := values.get(one)) is not None
    ]
    own = [number for number, synonym in enumerate(found) if synonym.name == name]
    return tuple(found[own[0] :]) if own else ()
