"""The function that answers each request."""

from collections.abc import Callable
from functools import partial

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.broker.core import BrokerCore
from kspec.impl.requests.administration.absent import ABSENT_HANDLERS, OF_BROKERS
from kspec.impl.requests.configs import describe_configs, list_config_resources
from kspec.impl.requests.deletion import delete_records
from kspec.impl.requests.describe import (
    alter_replica_log_dirs,
    api_versions,
    describe_cluster,
    describe_log_dirs,
    describe_topic_partitions,
    metadata,
)
from kspec.impl.requests.fetch import fetch
from kspec.impl.requests.group_offsets import (
    delete_groups,
    describe_groups,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from kspec.impl.requests.groups import Groups, find, heartbeat, join_group, leave_group, sync_group
from kspec.impl.requests.modern.consumers import consumer_group_describe, consumer_group_heartbeat
from kspec.impl.requests.offsets import list_offsets, offset_for_leader_epoch
from kspec.impl.requests.produce import produce
from kspec.impl.requests.producers import describe_producers, init_producer_id
from kspec.impl.requests.transactions.coordinator import Transactions
from kspec.impl.requests.transactions.offsets import txn_offset_commit
from kspec.impl.requests.transactions.requests import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    list_transactions,
)
from kspec.impl.requests.transactions.written_markers import write_txn_markers
from kspec.impl.wire.apis import FORWARDED
from kspec.spec.values import Instant

Handler = Callable[[Call, Instant], list[Effect]]

OF_PARTITIONS: dict[str, Callable[[BrokerCore, Call, Instant], list[Effect]]] = {
    "Produce": produce,
    "Fetch": fetch,
    "ListOffsets": list_offsets,
    "Metadata": metadata,
    "ApiVersions": api_versions,
    "DescribeConfigs": describe_configs,
    "DeleteRecords": delete_records,
    "OffsetForLeaderEpoch": offset_for_leader_epoch,
    "DescribeCluster": describe_cluster,
    "DescribeLogDirs": describe_log_dirs,
    "DescribeProducers": describe_producers,
    "DescribeTopicPartitions": describe_topic_partitions,
    "ListConfigResources": list_config_resources,
    "AlterReplicaLogDirs": alter_replica_log_dirs,
    **ABSENT_HANDLERS,
    **OF_BROKERS,
}
"""APIs about partitions, topics and the cluster."""

OF_GROUPS: dict[str, Callable[[Groups, Call, Instant], list[Effect]]] = {
    "OffsetCommit": offset_commit,
    "OffsetFetch": offset_fetch,
    "FindCoordinator": find,
    "JoinGroup": join_group,
    "Heartbeat": heartbeat,
    "LeaveGroup": leave_group,
    "SyncGroup": sync_group,
    "DescribeGroups": describe_groups,
    "ListGroups": list_groups,
    "DeleteGroups": delete_groups,
    "OffsetDelete": offset_delete,
    "ConsumerGroupHeartbeat": consumer_group_heartbeat,
    "ConsumerGroupDescribe": consumer_group_describe,
    "TxnOffsetCommit": txn_offset_commit,
    "WriteTxnMarkers": write_txn_markers,
}
"""APIs about groups, and the one that also ends their transactions."""


OF_TRANSACTIONS: dict[str, Callable[[Transactions, Call, Instant], list[Effect]]] = {
    "InitProducerId": init_producer_id,
    "AddPartitionsToTxn": add_partitions_to_txn,
    "AddOffsetsToTxn": add_offsets_to_txn,
    "EndTxn": end_txn,
    "ListTransactions": list_transactions,
    "DescribeTransactions": describe_transactions,
}
"""APIs about transactions."""


def handlers_of(core: BrokerCore, groups: Groups, transactions: Transactions) -> dict[str, Handler]:
    """The function that answers each API, by its name."""
    found: dict[str, Handler] = {name: partial(function, core) for name, function in OF_PARTITIONS.items()}
    found |= {name: partial(function, groups) for name, function in OF_GROUPS.items()}
    found |= {name: partial(function, transactions) for name, function in OF_TRANSACTIONS.items()}
    return found | dict.fromkeys(FORWARDED, core.controller.forward)
