"""Settings of a broker that may be changed while it runs, and resources that have settings at all."""

from collections.abc import Set as AbstractSet

from kspec.spec.controller.topics.topic_configs import TOPIC_CONFIGS
from kspec.spec.topics import ConfigResource, ResourceType
from kspec.spec.values import Error

OF_TOPICS = frozenset(key.synonyms[0] for key in TOPIC_CONFIGS if key.synonyms)
"""Those that stand behind a topic's, by the most exact name: `log.retention.ms`, not `log.retention.hours`."""

THROTTLES = frozenset(
    {
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)
"""Kafka: `QuotaConfig.brokerQuotaConfigs`."""


def check_broker_config(name: str) -> Error:
    """Whether a setting of a broker may be changed while it runs. Errors: `INVALID_REQUEST`.

    **Kafka:** `DynamicBrokerConfig.validateConfigs`, `DynamicLogConfig.RECONFIGURABLE_CONFIGS`. **Leaves out:** settings of
    threads, listeners and connections, which Kafka changes, too.
    """
    return Error.NONE if name in OF_TOPICS or name in THROTTLES else Error.INVALID_REQUEST


def check_altered_broker(name: str, brokers: AbstractSet[str]) -> Error:
    """Whether there is a broker whose settings shall change; the empty name is that of all. Errors: `INVALID_REQUEST`.

    **Kafka:** `ConfigAdminManager.validateResourceNameIsCurrentNodeId`.
    """
    return Error.NONE if name == "" or name in brokers else Error.INVALID_REQUEST


def check_altered_value(is_legal: bool) -> Error:
    """Whether a setting of a broker may have a value: one of its type and range. Errors: `INVALID_REQUEST`.

    **Kafka:** `DynamicBrokerConfig.validate`, which `ConfigAdminManager.preprocess` answers so.
    """
    return Error.NONE if is_legal else Error.INVALID_REQUEST


def check_operations(operations: tuple[int, ...], known: AbstractSet[int]) -> Error:
    """Whether a request changes settings in ways that there are. Errors: `INVALID_REQUEST`, for each of its resources.

    **Kafka:** `AlterConfigOp.OpType.forId`, `ConfigAdminManager.preprocess`.
    """
    return Error.NONE if known >= set(operations) else Error.INVALID_REQUEST


def check_described_resource(resource: ConfigResource, node: str) -> Error:
    """Whether a node shows the settings of what is no topic: its own, those of all brokers, those of a group by its name.

    `node`: the id of the node that is asked. Errors: `INVALID_REQUEST`.

    **Kafka:** `ConfigHelper.describeConfigs`.
    """
    shown = {
        ResourceType.BROKER: resource.name in ("", node),
        ResourceType.BROKER_LOGGER: resource.name == node,
        ResourceType.CLIENT_METRICS: resource.name != "",
        ResourceType.GROUP: resource.name != "",
    }
    return Error.NONE if shown.get(resource.kind, False) else Error.INVALID_REQUEST


FIRST_WITH_KINDS = 1
"""The version of ListConfigResources from which kinds of resources are named; before, it was ListClientMetricsResources."""

LISTED = frozenset(
    {
        ResourceType.TOPIC,
        ResourceType.BROKER,
        ResourceType.BROKER_LOGGER,
        ResourceType.CLIENT_METRICS,
        ResourceType.GROUP,
    }
)


def check_listed_kinds(kinds: tuple[ResourceType, ...], version_number: int) -> Error:
    """Whether resources of these kinds are listed. Errors: `UNSUPPORTED_VERSION` (a kind that there is not in this version).

    **Kafka:** `KafkaApis.handleListConfigResources` (KIP-1142).
    """
    known = LISTED if version_number >= FIRST_WITH_KINDS else {ResourceType.CLIENT_METRICS}
    return Error.NONE if known.issuperset(kinds) else Error.UNSUPPORTED_VERSION


def listed_kinds(kinds: tuple[ResourceType, ...], version_number: int) -> frozenset[ResourceType]:
    """The kinds of which resources are listed: all that there are in this version, if none is named.

    **Kafka:** `ListConfigResourcesRequest.supportedResourceTypes`.
    """
    known = LISTED if version_number >= FIRST_WITH_KINDS else frozenset({ResourceType.CLIENT_METRICS})
    return known & frozenset(kinds) if kinds else known
