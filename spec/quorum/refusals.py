"""Refusals: the errors that a replica answers before it looks at what a request is about."""

from kspec.spec.log.algebra import LogT
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, own_key
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import matches
from kspec.spec.values import NO_REPLICA, Epoch, Error, ReplicaKey


def check_quorum_request(same_cluster: bool, names_one_partition: bool) -> Error:
    """Whether a request to the quorum is for this cluster, and for one partition: there is but that of the metadata log.

    Errors: `INCONSISTENT_CLUSTER_ID`, `INVALID_REQUEST`.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`, `handleFetchSnapshotRequest`, `RaftUtil.hasValidTopicPartition`.
    """
    if not same_cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    return Error.NONE if names_one_partition else Error.INVALID_REQUEST


def check_voters_request(state: QuorumReplica[LogT], epoch: Epoch) -> Error:
    """Whether a request about an election is of a present epoch.

    **Kafka:** `KafkaRaftClient.validateVoterOnlyRequest`.
    """
    return Error.FENCED_LEADER_EPOCH if epoch < state.election.epoch else Error.NONE


def check_leaders_request(state: QuorumReplica[LogT], fetch: FetchPosition) -> Error:
    """Whether a fetch is in order, of the present epoch, and sent to its leader.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`.
    """
    epoch = fetch.current_leader_epoch
    if fetch.fetch_offset < 0 or fetch.last_fetched_epoch < 0 or fetch.last_fetched_epoch > epoch:
        return Error.INVALID_REQUEST
    return check_leader_epoch(state, epoch)


def check_leader_epoch(state: QuorumReplica[LogT], epoch: Epoch) -> Error:
    """Whether a request to the leader names its epoch, and the replica leads in it.

    **Kafka:** `KafkaRaftClient.validateLeaderOnlyRequest`.
    """
    if epoch < state.election.epoch:
        return Error.FENCED_LEADER_EPOCH
    if epoch > state.election.epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    return Error.NONE if state.role == VoterRole.LEADER else Error.NOT_LEADER_OR_FOLLOWER


def check_wait(max_wait_ms: int) -> Error:
    """Whether a fetch may wait for so long (milliseconds). **Kafka:** `KafkaRaftClient.handleFetchRequest`."""
    return Error.INVALID_REQUEST if max_wait_ms < 0 else Error.NONE


def check_described_quorum(leads: bool) -> Error:
    """Whether a replica can say how far the others are: if it leads.

    Errors: `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `KafkaRaftClient.handleDescribeQuorumRequest`.
    """
    return Error.NONE if leads else Error.NOT_LEADER_OR_FOLLOWER


def check_changed_voter(same_cluster: bool, leads: bool, names_voter: bool, is_reached: bool) -> Error:
    """Whether a request to change the voters is for this cluster, sent to its leader, and names a voter with its directory.

    `is_reached`: it names a listener by which the others reach one that is to vote.

    Errors: `INCONSISTENT_CLUSTER_ID`, `NOT_LEADER_OR_FOLLOWER`, `INVALID_REQUEST`.

    **Kafka:** `KafkaRaftClient.handleAddVoterRequest`, `handleRemoveVoterRequest`, `handleUpdateVoterRequest`.
    """
    if not same_cluster:
        return Error.INCONSISTENT_CLUSTER_ID
    if not leads:
        return Error.NOT_LEADER_OR_FOLLOWER
    return Error.NONE if names_voter and is_reached else Error.INVALID_REQUEST


def is_meant(server: QuorumServer, state: QuorumReplica[LogT], voter: ReplicaKey) -> bool:
    """Whether a request is meant for this replica, if it says for whom. **Kafka:** `KafkaRaftClient.isValidVoterKey`."""
    return voter == NO_REPLICA or matches(voter, own_key(server, state))
