"""Which function answers which request."""

from collections.abc import Callable
from functools import partial

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.requests.configs import alter_configs, describe_configs, incremental_alter_configs
from impl.requests.deletion import delete_records
from impl.requests.describe import (
    api_versions,
    describe_cluster,
    describe_log_dirs,
    describe_topic_partitions,
    metadata,
)
from impl.requests.fetch import fetch
from impl.requests.group_offsets import (
    delete_groups,
    describe_groups,
    list_groups,
    offset_commit,
    offset_delete,
    offset_fetch,
)
from impl.requests.groups import Groups, find, heartbeat, join_group, leave_group, sync_group
from impl.requests.offsets import list_offsets, offset_for_leader_epoch
from impl.requests.produce import produce
from impl.requests.producers import describe_producers, init_producer_id
from impl.requests.topics import create_partitions, create_topics, delete_topics
from impl.wire.apis import FORWARDED

Handler = Callable[[Call, int], list[Effect]]

OF_PARTITIONS: dict[str, Callable[[Core, Call, int], list[Effect]]] = {
    "Produce": produce,
    "Fetch": fetch,
    "ListOffsets": list_offsets,
    "Metadata": metadata,
    "ApiVersions": api_versions,
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
"""APIs about partitions, topics and the cluster."""

OF_GROUPS: dict[str, Callable[[Groups, Call, int], list[Effect]]] = {
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
}
"""APIs about groups."""


def handlers_of(core: Core, groups: Groups) -> dict[str, Handler]:
    """The function that answers each API, by its name."""
    found: dict[str, Handler] = {name: partial(function, core) for name, function in OF_PARTITIONS.items()}
    if core.elsewhere is not None:
        found |= dict.fromkeys(FORWARDED, core.elsewhere.forward)
    return found | {name: partial(function, groups) for name, function in OF_GROUPS.items()}
