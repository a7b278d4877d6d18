"""DescribeConfigs: the settings of a resource, and where each comes from."""

from dataclasses import dataclass
from enum import Enum

from kspec.spec.topics import ConfigResource
from kspec.spec.values import Error


class ConfigSource(Enum):
    """The source of a setting. Kafka: `DescribeConfigsResponse.ConfigSource`."""

    TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class ConfigType(Enum):
    """The type of a setting's value. Kafka: `DescribeConfigsResponse.ConfigType`."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


@dataclass(frozen=True, slots=True)
class DescribeConfigsRequest:
    """Describe a resource: these settings, or all (`None`). Kafka: `DescribeConfigsResource`."""

    resource: ConfigResource
    names: tuple[str, ...] | None = None
    include_synonyms: bool = False


@dataclass(frozen=True, slots=True)
class ConfigSynonym:
    """A setting that stands behind another one. Kafka: `DescribeConfigsSynonym`."""

    name: str
    value: str
    source: ConfigSource


@dataclass(frozen=True, slots=True)
class DescribedConfig:
    """A setting. Kafka: `DescribeConfigsResourceResult`. **Leaves out:** the documentation."""

    name: str
    value: str | None
    source: ConfigSource
    config_type: ConfigType
    read_only: bool = False
    synonyms: tuple[ConfigSynonym, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribeConfigsResponse:
    """The settings of a resource, in order of their names. Kafka: `DescribeConfigsResult`."""

    resource: ConfigResource
    error: Error
    message: str | None = None
    configs: tuple[DescribedConfig, ...] = ()
