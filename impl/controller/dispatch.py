"""The function that answers each request to a controller: what has to be decided, only if it is the active one."""

from collections.abc import Callable
from functools import partial

from kspec.impl.broker.calls import Call, Effect
from kspec.impl.controller.brokers import (
    allocate_producer_ids,
    assign_replicas_to_dirs,
    broker_heartbeat,
    broker_registration,
)
from kspec.impl.controller.core import ControllerCore
from kspec.impl.controller.describe import api_versions, describe_cluster
from kspec.impl.controller.envelope import envelope_of
from kspec.impl.controller.fetching import fetch, fetch_snapshot
from kspec.impl.controller.partitions import alter_partition
from kspec.impl.controller.refusals import refusal
from kspec.impl.controller.voter_changes import add_raft_voter, remove_raft_voter, update_raft_voter
from kspec.impl.controller.votes import begin_quorum_epoch, end_quorum_epoch, vote
from kspec.impl.requests.administration.absent import ABSENT_HANDLERS
from kspec.impl.requests.administration.controller import ADMINISTRATION
from kspec.impl.requests.configs import alter_configs, describe_configs, incremental_alter_configs
from kspec.impl.requests.topics import create_partitions, create_topics, delete_topics
from kspec.spec.controller.state import check_active
from kspec.spec.values import Error, Instant

Handler = Callable[[Call, Instant], list[Effect]]

HANDLERS: dict[str, Callable[[ControllerCore, Call, Instant], list[Effect]]] = {
    "ApiVersions": api_versions,
    "DescribeCluster": describe_cluster,
    "Fetch": fetch,
    "FetchSnapshot": fetch_snapshot,
    "Vote": vote,
    "BeginQuorumEpoch": begin_quorum_epoch,
    "EndQuorumEpoch": end_quorum_epoch,
    "AddRaftVoter": add_raft_voter,
    "RemoveRaftVoter": remove_raft_voter,
    "UpdateRaftVoter": update_raft_voter,
    "BrokerRegistration": broker_registration,
    "BrokerHeartbeat": broker_heartbeat,
    "AllocateProducerIds": allocate_producer_ids,
    "AssignReplicasToDirs": assign_replicas_to_dirs,
    "AlterPartition": alter_partition,
    "CreateTopics": create_topics,
    "DeleteTopics": delete_topics,
    "CreatePartitions": create_partitions,
    "AlterConfigs": alter_configs,
    "IncrementalAlterConfigs": incremental_alter_configs,
    "DescribeConfigs": describe_configs,
    **ADMINISTRATION,
    **ABSENT_HANDLERS,
}
"""All but envelopes, in which some of these come."""


BY_ANYBODY = frozenset(
    {
        "ApiVersions",
        "DescribeCluster",
        "DescribeQuorum",
        "Fetch",
        "FetchSnapshot",
        "Vote",
        "BeginQuorumEpoch",
        "EndQuorumEpoch",
        "AddRaftVoter",
        "RemoveRaftVoter",
        "UpdateRaftVoter",
        *ABSENT_HANDLERS,
    }
)
"""The APIs that any controller answers, and at once."""

READ_ANYWHERE = frozenset({"DescribeConfigs"})
"""The APIs that any controller answers from what it knows to be committed; the active one when all of it is."""


def controller_handlers(core: ControllerCore) -> dict[str, Handler]:
    """The function that answers each API, by its name."""
    found: dict[str, Handler] = {name: _handler(core, name, partial(HANDLERS[name], core)) for name in HANDLERS}
    return found | {"Envelope": _handler(core, "Envelope", envelope_of(found))}


def _handler(core: ControllerCore, name: str, function: Handler) -> Handler:
    def handle(call: Call, now: Instant) -> list[Effect]:
        if name not in BY_ANYBODY:
            error = check_active(core.is_active)
            if error == Error.NONE:
                call.term = core.voter.epoch
            elif name not in READ_ANYWHERE:
                return [call.respond(**refusal(call, error))]
        try:
            return function(call, now)
        except Exception:
            core.not_stored()
            raise

    return handle
