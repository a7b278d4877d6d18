"""Requests to a node, beyond one with nothing in it for each API: what makes an answer differ from an empty one."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kspec.impl.records.record import new_batch

TOPIC = "there"
"""A topic with three partitions; in a cluster, partition 0 is led by broker 1, partition 1 by broker 2."""

NONE_SUCH = "none-such"
TOPICS, BROKERS, LOGGERS, METRICS, GROUPS, STRANGE = 2, 4, 8, 16, 32, 99


class ApiCase(NamedTuple):
    """A request: its name, its API, its version (none: the newest that Kafka offers), its fields."""

    name: str
    api: str
    fields: Mapping[str, Any]
    version: int | None = None


def _resource(kind: int, name: str, **more: Any) -> dict[str, Any]:
    return {"resource_type": kind, "resource_name": name, **more}


def _alter(kind: int, name: str, key: str, value: str) -> dict[str, Any]:
    configs = [{"name": key, "config_operation": 0, "value": value}]
    return {"resources": [_resource(kind, name, configs=configs)], "validate_only": False}


def _describe(kind: int, name: str, keys: list[str] | None = None) -> dict[str, Any]:
    return {"resources": [_resource(kind, name, configuration_keys=keys)], "include_synonyms": True}


def _produce(version: int, partition: int) -> ApiCase:
    data = [{"index": partition, "records": memoryview(new_batch([(1, None, b"v")]))}]
    topics = [{"name": TOPIC, "partition_data": data}]
    name = f"records of partition {partition}, version {version}"
    return ApiCase(name, "Produce", {"acks": 1, "timeout_ms": 1000, "topic_data": topics}, version)


def _quota(entity: str, **more: Any) -> dict[str, Any]:
    return {"components": [{"entity_type": entity, "match_type": 1, "match": None, **more}]}


SYNONYMS = ["log.retention.ms", "log.retention.hours", "log.retention.bytes", "min.insync.replicas"]

BINDING: dict[str, Any] = {
    "resource_type": TOPICS,
    "resource_name": TOPIC,
    "principal": "User:a",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
FILTER: dict[str, Any] = {
    "resource_type_filter": TOPICS,
    "resource_name_filter": TOPIC,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}

OF_SECURITY: tuple[ApiCase, ...] = (
    ApiCase("plain", "SaslHandshake", {"mechanism": "PLAIN"}, 1),
    ApiCase("SCRAM, version 0", "SaslHandshake", {"mechanism": "SCRAM-SHA-256"}, 0),
    ApiCase("bytes", "SaslAuthenticate", {"auth_bytes": b"\0a\0b"}),
    ApiCase("all", "DescribeAcls", FILTER),
    ApiCase("one", "CreateAcls", {"creations": [BINDING]}),
    ApiCase("one", "DeleteAcls", {"filters": [FILTER]}),
    ApiCase("mine", "CreateDelegationToken", {"max_lifetime_ms": 1000}),
    ApiCase("one", "RenewDelegationToken", {"hmac": b"x"}),
    ApiCase("one", "ExpireDelegationToken", {"hmac": b"x"}),
    ApiCase("all", "DescribeClientQuotas", {"components": []}),
    ApiCase("user", "DescribeClientQuotas", _quota("user")),
    ApiCase("user by name", "DescribeClientQuotas", _quota("user", match_type=0, match="a")),
    ApiCase("user without the name", "DescribeClientQuotas", _quota("user", match_type=0)),
    ApiCase("no kind", "DescribeClientQuotas", _quota("")),
    ApiCase("strange kind", "DescribeClientQuotas", _quota("dog")),
    ApiCase("strange match", "DescribeClientQuotas", _quota("user", match_type=9)),
    ApiCase(
        "user, to see",
        "AlterClientQuotas",
        {
            "entries": [
                {
                    "entity": [{"entity_type": "user", "entity_name": "a"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}],
                }
            ],
            "validate_only": True,
        },
    ),
    ApiCase("all", "DescribeUserScramCredentials", {"users": None}),
    ApiCase("a user", "DescribeUserScramCredentials", {"users": [{"name": "a"}]}),
    ApiCase("twice", "DescribeUserScramCredentials", {"users": [{"name": "a"}, {"name": "a"}]}),
    ApiCase("deletion", "AlterUserScramCredentials", {"deletions": [{"name": "a", "mechanism": 1}]}),
    ApiCase("strange mechanism", "AlterUserScramCredentials", {"deletions": [{"name": "a", "mechanism": 9}]}),
    ApiCase("nobody", "AlterUserScramCredentials", {"deletions": [{"name": "", "mechanism": 1}]}),
    ApiCase("too few", "AlterUserScramCredentials", {"upsertions": [{"name": "a", "mechanism": 1, "iterations": 1}]}),
)

OF_TRANSACTIONS: tuple[ApiCase, ...] = (
    ApiCase("a state", "ListTransactions", {"state_filters": ["Ongoing"]}),
    ApiCase("a strange state", "ListTransactions", {"state_filters": ["Sleeping"]}),
    ApiCase("a pattern", "ListTransactions", {"transactional_id_pattern": "["}),
    ApiCase("one", "DescribeTransactions", {"transactional_ids": [NONE_SUCH]}),
    ApiCase("an empty id", "InitProducerId", {"transactional_id": "", "transaction_timeout_ms": 1000}),
    ApiCase("nothing, version 3", "AddPartitionsToTxn", {"v3_and_below_transactional_id": "x"}, 3),
    ApiCase("one", "EndTxn", {"transactional_id": NONE_SUCH, "producer_id": 5, "committed": True}, 4),
    ApiCase("a leader", "DescribeProducers", {"topics": [{"name": TOPIC, "partition_indexes": [0, 9]}]}),
)

OF_SETTINGS: tuple[ApiCase, ...] = (
    ApiCase("client metrics", "ListConfigResources", {"resource_types": [METRICS]}),
    ApiCase("version 0", "ListConfigResources", {}, 0),
    ApiCase("topics", "ListConfigResources", {"resource_types": [TOPICS]}),
    ApiCase("brokers", "ListConfigResources", {"resource_types": [BROKERS]}),
    ApiCase("loggers", "ListConfigResources", {"resource_types": [LOGGERS]}),
    ApiCase("groups", "ListConfigResources", {"resource_types": [GROUPS]}),
    ApiCase("strange kind", "ListConfigResources", {"resource_types": [STRANGE]}),
    ApiCase("a logger", "DescribeConfigs", _describe(LOGGERS, "1", [NONE_SUCH])),
    ApiCase("a logger of a stranger", "DescribeConfigs", _describe(LOGGERS, "77", [])),
    ApiCase("a logger without a name", "DescribeConfigs", _describe(LOGGERS, "", [])),
    ApiCase("client metrics", "DescribeConfigs", _describe(METRICS, "a")),
    ApiCase("client metrics without a name", "DescribeConfigs", _describe(METRICS, "")),
    ApiCase("a group", "DescribeConfigs", _describe(GROUPS, "a")),
    ApiCase("a group without a name", "DescribeConfigs", _describe(GROUPS, "")),
    ApiCase("a strange kind", "DescribeConfigs", _describe(STRANGE, "a")),
    ApiCase("a stranger", "DescribeConfigs", _describe(BROKERS, "77")),
    ApiCase("no number", "DescribeConfigs", _describe(BROKERS, "x")),
    ApiCase("a setting", "DescribeConfigs", _describe(BROKERS, "1", ["log.flush.interval.messages", "log.retention.bytes"])),
    ApiCase("a logger", "IncrementalAlterConfigs", _alter(LOGGERS, "1", "none.such", "INFO")),
    ApiCase("a logger of a stranger", "IncrementalAlterConfigs", _alter(LOGGERS, "77", "none.such", "INFO")),
    ApiCase("client metrics", "IncrementalAlterConfigs", _alter(METRICS, "a", "interval.ms", "1000")),
    ApiCase("client metrics, unknown", "IncrementalAlterConfigs", _alter(METRICS, "a", "none.such", "1000")),
    ApiCase("a group", "IncrementalAlterConfigs", _alter(GROUPS, "a", "consumer.session.timeout.ms", "50000")),
    ApiCase("a group, unknown", "IncrementalAlterConfigs", _alter(GROUPS, "a", "none.such", "1000")),
    ApiCase("a strange kind", "IncrementalAlterConfigs", _alter(STRANGE, "a", "a", "1")),
    ApiCase("keystore", "IncrementalAlterConfigs", _alter(BROKERS, "1", "ssl.keystore.password", "hunter2")),
    ApiCase("read only", "IncrementalAlterConfigs", _alter(BROKERS, "1", "node.id", "7")),
    ApiCase("authorizer", "IncrementalAlterConfigs", _alter(BROKERS, "1", "authorizer.class.name", "a.B")),
    ApiCase("a topic's unknown", "IncrementalAlterConfigs", _alter(TOPICS, TOPIC, "none.such", "hunter2")),
    ApiCase("a broker's", "IncrementalAlterConfigs", _alter(BROKERS, "1", "log.retention.ms", "50000000")),
    ApiCase("all brokers'", "IncrementalAlterConfigs", _alter(BROKERS, "", "log.retention.bytes", "100000000")),
    ApiCase("of a broker, with synonyms", "DescribeConfigs", _describe(BROKERS, "1", SYNONYMS)),
    ApiCase("of all brokers, with synonyms", "DescribeConfigs", _describe(BROKERS, "", SYNONYMS)),
)

OF_THE_CONTROLLER: tuple[ApiCase, ...] = (
    ApiCase("preferred", "ElectLeaders", {"election_type": 0, "topic_partitions": None}),
    ApiCase("one", "ElectLeaders", {"election_type": 0, "topic_partitions": [{"topic": TOPIC, "partitions": [0]}]}),
    ApiCase(
        "none such", "ElectLeaders", {"election_type": 0, "topic_partitions": [{"topic": NONE_SUCH, "partitions": [0]}]}
    ),
    ApiCase(
        "none such",
        "AlterPartitionReassignments",
        {"topics": [{"name": NONE_SUCH, "partitions": [{"partition_index": 0, "replicas": [1]}]}]},
    ),
    ApiCase(
        "nothing to cancel",
        "AlterPartitionReassignments",
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": None}]}]},
    ),
    ApiCase(
        "to a stranger",
        "AlterPartitionReassignments",
        {"topics": [{"name": TOPIC, "partitions": [{"partition_index": 0, "replicas": [77]}]}]},
    ),
    ApiCase("all", "ListPartitionReassignments", {"topics": None}),
    ApiCase("one", "ListPartitionReassignments", {"topics": [{"name": TOPIC, "partition_indexes": [0]}]}),
    ApiCase("metadata", "DescribeQuorum", {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{}]}]}),
    ApiCase("a topic", "DescribeQuorum", {"topics": [{"topic_name": TOPIC, "partitions": [{}]}]}),
    ApiCase(
        "unknown",
        "UpdateFeatures",
        {"feature_updates": [{"feature": NONE_SUCH, "max_version_level": 1, "upgrade_type": 1}]},
    ),
    ApiCase(
        "too high",
        "UpdateFeatures",
        {"feature_updates": [{"feature": "metadata.version", "max_version_level": 999, "upgrade_type": 1}]},
    ),
    ApiCase("none such", "UnregisterBroker", {"broker_id": 77}),
    ApiCase("brokers", "DescribeCluster", {"endpoint_type": 1}),
    ApiCase("controllers", "DescribeCluster", {"endpoint_type": 2}),
    ApiCase("strange", "DescribeCluster", {"endpoint_type": 9}),
)

OF_PARTITIONS: tuple[ApiCase, ...] = (
    ApiCase("an epoch", "OffsetForLeaderEpoch", {"replica_id": -1, "topics": [{"topic": NONE_SUCH, "partitions": [{}]}]}),
    ApiCase("a move", "AlterReplicaLogDirs", {"dirs": [{"path": "/none", "topics": [{"name": TOPIC, "partitions": [0]}]}]}),
    ApiCase("a topic", "DescribeTopicPartitions", {"topics": [{"name": TOPIC}], "response_partition_limit": 10}),
    ApiCase(
        "a partition",
        "Fetch",
        {
            "max_bytes": 1 << 20,
            "topics": [{"topic": TOPIC, "partitions": [{"partition": 1, "partition_max_bytes": 1 << 20}]}],
        },
        12,
    ),
    _produce(9, 0),
    _produce(9, 1),
    _produce(10, 1),
    _produce(12, 1),
    _produce(12, 9),
)

OF_NEWER_GROUPS: tuple[ApiCase, ...] = (
    ApiCase("a group", "ConsumerGroupHeartbeat", {"group_id": "g", "member_id": "m", "member_epoch": 0}),
    ApiCase("a group", "ConsumerGroupDescribe", {"group_ids": [NONE_SUCH]}),
    ApiCase("a group", "ShareGroupDescribe", {"group_ids": [NONE_SUCH]}),
    ApiCase("a group", "StreamsGroupDescribe", {"group_ids": [NONE_SUCH]}),
)

CASES = (*OF_SECURITY, *OF_TRANSACTIONS, *OF_SETTINGS, *OF_THE_CONTROLLER, *OF_PARTITIONS, *OF_NEWER_GROUPS)
