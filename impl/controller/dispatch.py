"""Which function answers which request to a controller."""

from collections.abc import Callable
from functools import partial

from impl.broker.calls import Call, Effect
from impl.controller.brokers import (
    allocate_producer_ids,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
    unregister_broker,
)
from impl.controller.core import ControllerCore
from impl.controller.describe import api_versions, describe_cluster, describe_quorum
from impl.controller.envelope import envelope_of
from impl.controller.features import update_features
from impl.controller.fetching import fetch, fetch_snapshot
from impl.controller.partitions import (
    alter_partition,
    alter_partition_reassignments,
    elect_leaders,
    list_partition_reassignments,
)
from impl.requests.configs import alter_configs, incremental_alter_configs
from impl.requests.topics import create_partitions, create_topics, delete_topics

Handler = Callable[[Call, int], list[Effect]]

HANDLERS: dict[str, Callable[[ControllerCore, Call, int], list[Effect]]] = {
    "ApiVersions": api_versions,
    "DescribeCluster": describe_cluster,
    "DescribeQuorum": describe_quorum,
    "Fetch": fetch,
    "FetchSnapshot": fetch_snapshot,
    "BrokerRegistration": broker_registration,
    "BrokerHeartbeat": broker_heartbeat,
    "UnregisterBroker": unregister_broker,
    "AllocateProducerIds": allocate_producer_ids,
    "AssignReplicasToDirs": assign_replicas_to_dirs,
    "AlterPartition": alter_partition,
    "ElectLeaders": elect_leaders,
    "AlterPartitionReassignments": alter_partition_reassignments,
    "ListPartitionReassignments": list_partition_reassignments,
    "UpdateFeatures": update_features,
    "CreateTopics": create_topics,
    "DeleteTopics": delete_topics,
    "CreatePartitions": create_partitions,
    "AlterConfigs": alter_configs,
    "IncrementalAlterConfigs": incremental_alter_configs,
}
"""All but envelopes, in which some of these come."""


def controller_handlers(core: ControllerCore) -> dict[str, Handler]:
    """The function that answers each API, by its name."""
    found: dict[str, Handler] = {name: _handler(core, name) for name in HANDLERS}
    return found | {"Envelope": envelope_of(found)}


def _handler(core: ControllerCore, name: str) -> Handler:
    function = partial(HANDLERS[name], core)

    def handle(call: Call, now: int) -> list[Effect]:
        try:
            return function(call, now)
        except Exception:
            core.not_stored()
            raise

    return handle
