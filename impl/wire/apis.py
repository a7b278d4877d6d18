"""Requests: their keys, and the versions that are answered."""

from typing import NamedTuple

from kspec.impl.wire.schema import Versions, schema

ABSENT = (
    "SaslHandshake",
    "SaslAuthenticate",
    "DescribeAcls",
    "CreateAcls",
    "DeleteAcls",
    "CreateDelegationToken",
    "RenewDelegationToken",
    "ExpireDelegationToken",
    "DescribeDelegationToken",
    "AlterClientQuotas",
    "AlterUserScramCredentials",
)
"""APIs about what brokers and controllers do without. A refusal says so; a connection that is closed says nothing."""

OFFERED = (
    "Produce",
    "Fetch",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetFetch",
    "FindCoordinator",
    "JoinGroup",
    "Heartbeat",
    "LeaveGroup",
    "SyncGroup",
    "DescribeGroups",
    "ListGroups",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "DeleteRecords",
    "InitProducerId",
    "AddPartitionsToTxn",
    "AddOffsetsToTxn",
    "EndTxn",
    "WriteTxnMarkers",
    "TxnOffsetCommit",
    "OffsetForLeaderEpoch",
    "DescribeConfigs",
    "AlterConfigs",
    "DescribeLogDirs",
    "CreatePartitions",
    "DeleteGroups",
    "IncrementalAlterConfigs",
    "OffsetDelete",
    "ConsumerGroupHeartbeat",
    "ConsumerGroupDescribe",
    "DescribeCluster",
    "DescribeProducers",
    "DescribeTopicPartitions",
    "ListConfigResources",
    "AlterReplicaLogDirs",
    "DescribeUserScramCredentials",
    "DescribeClientQuotas",
    "ListTransactions",
    "DescribeTransactions",
    "ElectLeaders",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "DescribeQuorum",
    "UpdateFeatures",
    "UnregisterBroker",
    "AddRaftVoter",
    "RemoveRaftVoter",
    *ABSENT,
)
"""The APIs that a broker answers."""

OFFERED_BY_CONTROLLER = (
    "Fetch",
    "ApiVersions",
    "CreateTopics",
    "DeleteTopics",
    "AlterConfigs",
    "CreatePartitions",
    "ElectLeaders",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "Vote",
    "BeginQuorumEpoch",
    "EndQuorumEpoch",
    "DescribeQuorum",
    "AlterPartition",
    "UpdateFeatures",
    "Envelope",
    "FetchSnapshot",
    "DescribeCluster",
    "BrokerRegistration",
    "BrokerHeartbeat",
    "UnregisterBroker",
    "AllocateProducerIds",
    "AssignReplicasToDirs",
    "DescribeConfigs",
    "AddRaftVoter",
    "RemoveRaftVoter",
    "UpdateRaftVoter",
    *ABSENT,
)
"""The APIs that a controller answers."""

FORWARDED = (
    "CreateTopics",
    "DeleteTopics",
    "CreatePartitions",
    "AlterConfigs",
    "IncrementalAlterConfigs",
    "AlterPartitionReassignments",
    "ListPartitionReassignments",
    "ElectLeaders",
    "UnregisterBroker",
    "UpdateFeatures",
    "DescribeQuorum",
    "AddRaftVoter",
    "RemoveRaftVoter",
)
"""The APIs whose requests a member of a cluster hands on to its controller. Kafka:
`KafkaApis.forwardToController`, `ApiKeys.forwardable`."""

LAST_STABLE = {"InitProducerId": 5, "OffsetFetch": 10}
"""Versions above these are in the table, and Kafka does not offer them yet."""

PREFERRED_ELECTION, UNCLEAN_ELECTION = 0, 1
"""Kinds of elections in ElectLeaders. Kafka: `ElectionType`."""

FIRST_OFFERED = {"Produce": 0}
"""Kafka says that it takes these, for old clients that look at nothing else, and closes the connection that uses them."""


class Api(NamedTuple):
    """One API: its name, key, and the versions that are offered, decoded, and have compact lengths."""

    name: str
    key: int
    offered: Versions
    known: Versions
    flexible: Versions


def _api(name: str) -> Api:
    request, response = schema(f"{name}Request"), schema(f"{name}Response")
    first, last = request.versions
    last = LAST_STABLE.get(name, last)
    return Api(name, request.key, Versions(FIRST_OFFERED.get(name, first), last), Versions(first, last), response.flexible)


APIS: dict[int, Api] = {api.key: api for api in map(_api, OFFERED)}
"""The APIs that a broker offers, by their keys."""

CONTROLLER_APIS: dict[int, Api] = {api.key: api for api in map(_api, OFFERED_BY_CONTROLLER)}
"""The APIs that a controller offers, by their keys."""
