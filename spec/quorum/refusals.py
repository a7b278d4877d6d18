"""Refusals: the errors that a replica answers before it looks at what a request is about."""

from kspec.spec.log.algebra import LogT
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.quorum.replica import QuorumReplica, QuorumServer, own_key
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import matches
from kspec.spec.values import NO_REPLICA, Epoch, Error, ReplicaKey


def check_voters_request(state: QuorumReplica[LogT], epoch: Epoch) -> Error:
    """Whether a request about an election is of a present epoch.

    **Kafka:** `KafkaRaftClient.validateVoterOnlyRequest`.
    """
    return Error.FENCED_LEADER_EPOCH if epoch < state.election.epoch else Error.NONE


def check_leaders_request(state: QuorumReplica[LogT], fetch: FetchPosition) -> Error:
    """Whether a fetch is in order, of the present epoch, and sent to its leader.

    **Kafka:** `KafkaRaftClient.handleFetchRequest`, `validateLeaderOnlyRequest`.
    """
    epoch = fetch.current_leader_epoch
    if fetch.fetch_offset < 0 or fetch.last_fetched_epoch < 0 or fetch.last_fetched_epoch > epoch:
        return Error.INVALID_REQUEST
    if epoch < state.election.epoch:
        return Error.FENCED_LEADER_EPOCH
    if epoch > state.election.epoch:
        return Error.UNKNOWN_LEADER_EPOCH
    return Error.NONE if state.role == VoterRole.LEADER else Error.NOT_LEADER_OR_FOLLOWER


def is_meant(server: QuorumServer, state: QuorumReplica[LogT], voter: ReplicaKey) -> bool:
    """Whether a request is meant for this replica, if it says for whom. **Kafka:** `KafkaRaftClient.isValidVoterKey`."""
    return voter == NO_REPLICA or matches(voter, own_key(server, state))
