"""IncrementalAlterConfigs and AlterConfigs: settings of topics and brokers change."""

from dataclasses import dataclass
from enum import Enum

from spec.values import Error


class ResourceType(Enum):
    """What has settings. Kafka: `ConfigResource.Type`."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class ConfigResource:
    """A topic by its name, a broker by its id as text, all brokers by the empty name. Kafka: `ConfigResource`."""

    kind: ResourceType
    name: str


class AlterOperation(Enum):
    """What is done to a setting. Kafka: `AlterConfigOp.OpType`."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class AlterConfig:
    """A change of one setting; `value` is `None` for a deletion. Kafka: `AlterableConfig`."""

    name: str
    operation: AlterOperation
    value: str | None


@dataclass(frozen=True, slots=True)
class AlteredResource:
    """A resource and its changes. Kafka: `IncrementalAlterConfigsRequestData.AlterConfigsResource`."""

    resource: ConfigResource
    configs: tuple[AlterConfig, ...]


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsRequest:
    """Change settings, and leave the others. Kafka: `IncrementalAlterConfigsRequestData`."""

    resources: tuple[AlteredResource, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ReplacedResource:
    """A resource and all that it is to have. Kafka: `AlterConfigsRequestData.AlterConfigsResource`."""

    resource: ConfigResource
    configs: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class AlterConfigsRequest:
    """Give resources these settings and no others: the older API. Kafka: `AlterConfigsRequestData`."""

    resources: tuple[ReplacedResource, ...]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class ConfigOutcome:
    """How it went for one resource. Kafka: `AlterConfigsResourceResponse`."""

    resource: ConfigResource
    error: Error
    message: str | None = None


@dataclass(frozen=True, slots=True)
class AlterConfigsResponse:
    """How it went for each resource. Kafka: `IncrementalAlterConfigsResponseData`, `AlterConfigsResponseData`."""

    resources: tuple[ConfigOutcome, ...]
