"""Which function answers which request."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from impl.broker import groups
from impl.broker.calls import Call, Effect
from impl.broker.configs import alter_configs, describe_configs, incremental_alter_configs
from impl.broker.describe import (
    api_versions,
    describe_cluster,
    describe_log_dirs,
    describe_topic_partitions,
    metadata,
)
from impl.broker.fetch import fetch
from impl.broker.group_offsets import (
    delete_groups,
    describe_groups,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from impl.broker.offsets import delete_records, list_offsets, offset_for_leader_epoch
from impl.broker.produce import produce
from impl.broker.producers import describe_producers, init_producer_id
from impl.broker.topics import create_partitions, create_topics, delete_topics

if TYPE_CHECKING:
    from impl.broker.core import Core

LOG = logging.getLogger("kspec.requests")

HANDLERS: dict[str, Callable[["Core", Call, int], list[Effect]]] = {
    "Produce": produce,
    "Fetch": fetch,
    "ListOffsets": list_offsets,
    "Metadata": metadata,
    "ApiVersions": api_versions,
    "OffsetCommit": offset_commit,
    "OffsetFetch": offset_fetch,
    "FindCoordinator": groups.find,
    "JoinGroup": groups.join_group,
    "Heartbeat": groups.heartbeat,
    "LeaveGroup": groups.leave_group,
    "SyncGroup": groups.sync_group,
    "DescribeGroups": describe_groups,
    "ListGroups": list_groups,
    "DeleteGroups": delete_groups,
    "OffsetDelete": offset_delete,
    "DescribeConfigs": describe_configs,
    "AlterConfigs": alter_configs,
    "IncrementalAlterConfigs": incremental_alter_configs,
    "CreatePartitions": create_partitions,
    "CreateTopics": create_topics,
    "DeleteTopics": delete_topics,
    "DeleteRecords": delete_records,
    "InitProducerId": init_producer_id,
    "OffsetForLeaderEpoch": offset_for_leader_epoch,
    "DescribeCluster": describe_cluster,
    "DescribeLogDirs": describe_log_dirs,
    "DescribeProducers": describe_producers,
    "DescribeTopicPartitions": describe_topic_partitions,
}
"""The function for each API by its name."""
