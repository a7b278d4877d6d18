"""IncrementalAlterConfigs and AlterConfigs: settings of topics and brokers change."""

from dataclasses import dataclass
from enum import Enum

from kspec.spec.topics import ConfigResource
from kspec.spec.values import Error


class AlterOperation(Enum):
    """A kind of change to a setting. Kafka: `AlterConfigOp.OpType`."""

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
    """The outcome for one resource. Kafka: `AlterConfigsResourceResponse`."""

    resource: ConfigResource
    error: Error
    message: str | None = None


@dataclass(frozen=True, slots=True)
class AlterConfigsResponse:
    """The outcome for each resource. Kafka: `IncrementalAlterConfigsResponseData`, `AlterConfigsResponseData`."""

    resources: tuple[ConfigOutcome, ...]
