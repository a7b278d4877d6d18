"""Fencing of requests to a replica: by leader epoch, by role, by the sender's broker epoch."""

from kspec.spec.broker.rules.followers import Brokers, Follower, follower_of
from kspec.spec.broker.rules.leadership import is_leader
from kspec.spec.broker.rules.reading import is_follower
from kspec.spec.messages.fetch import FetchRequest, FetchResponse
from kspec.spec.metadata import broker_of
from kspec.spec.values import NO_BROKER_EPOCH, NO_EPOCH, BrokerEpoch, BrokerId, Epoch, Error, LeaderAndIsr


def check_leader_epoch(role: LeaderAndIsr, claimed: Epoch) -> Error:
    """Whether a request made in epoch `claimed` is answered by a replica in the epoch of `role`.

    A request without an epoch (`NO_EPOCH`) is not checked.

    Errors: `FENCED_LEADER_EPOCH` if the sender's epoch is older, `UNKNOWN_LEADER_EPOCH` if it is newer.

    **Kafka:** `Partition.checkCurrentLeaderEpoch` (KIP-320).
    """
    if claimed in (NO_EPOCH, role.leader_epoch):
        return Error.NONE
    return Error.FENCED_LEADER_EPOCH if claimed < role.leader_epoch else Error.UNKNOWN_LEADER_EPOCH


def check_serves(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch, leader_only: bool) -> Error:
    """Whether a replica answers a request made in epoch `claimed`: the epoch is checked first, then the role.

    Errors: as `check_leader_epoch`; `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.getLocalLog`, `checkCurrentLeaderEpoch` (KIP-320, since 2.1).
    """
    error = check_leader_epoch(role, claimed)
    if error != Error.NONE:
        return error
    return Error.NOT_LEADER_OR_FOLLOWER if leader_only and not is_leader(self_id, role) else Error.NONE


def check_serves_unfenced(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch, leader_only: bool) -> Error:
    """Whether a replica answers a request of any epoch.

    Errors: `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.leaderReplicaIfLocal` up to 2.0.
    """
    return check_serves(self_id, role, NO_EPOCH, leader_only)


def is_unassigned(followers: tuple[Follower, ...], request: FetchRequest) -> bool:
    """Whether a fetch comes from a broker that is no replica of the partition, as far as the leader knows.

    **Kafka:** `Partition.getReplica`.
    """
    return is_follower(request) and follower_of(followers, request.replica) is None


def refuse_unassigned(answer: FetchResponse, request: FetchRequest) -> FetchResponse:
    """The answer to a fetch by a broker that is no replica, in place of the `answer` that a replica would get: an error.

    Errors, which all make the follower try again: `UNKNOWN_LEADER_EPOCH` if it names its epoch, for the leader may not have
    heard of the new assignment; else `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.followerReplicaOrThrow` (KAFKA-13837, since 3.3).
    """
    named = request.fetch.current_leader_epoch != NO_EPOCH
    return FetchResponse(Error.UNKNOWN_LEADER_EPOCH if named else Error.NOT_LEADER_OR_FOLLOWER)


def answer_unassigned_without_records(answer: FetchResponse, request: FetchRequest) -> FetchResponse:
    """The answer to a fetch by a broker that is no replica: what a replica would get, without the records.

    The follower takes it for the news that there is nothing to fetch, and does not learn that it is not counted.

    **Kafka:** `ReplicaManager.updateFollowerFetchState`, `LogReadResult.withEmptyFetchInfo` (KAFKA-5758), 1.0 to 3.2.
    **Leaves out:** a fetch that has waited is answered with records.
    """
    return answer._replace(records=())


def fail_unassigned(answer: FetchResponse, request: FetchRequest) -> FetchResponse:
    """The answer to a fetch by a broker that is no replica: an error that nobody expected, of the whole request.

    Errors: `UNKNOWN_SERVER_ERROR`.

    **Kafka:** `Partition.updateReplicaLogReadResult`, whose `NotAssignedReplicaException` ends the request, up to 0.11.
    """
    return FetchResponse(Error.UNKNOWN_SERVER_ERROR)


# ---- the broker epoch of a follower's fetch


def check_replica_epoch(brokers: Brokers, replica: BrokerId, broker_epoch: BrokerEpoch) -> Error:
    """Whether a fetch comes from a replica's present incarnation, by the leader's metadata.

    A fetch without a broker epoch is not checked, nor one from a broker that is not registered, or fenced.

    Errors: `NOT_LEADER_OR_FOLLOWER` for a fetch of an earlier incarnation.

    **Kafka:** `Replica.updateFetchStateOrThrow`, `KRaftMetadataCache.getAliveBrokerEpoch` (KAFKA-15221, since 3.7).
    """
    registration = broker_of(brokers, replica)
    if broker_epoch == NO_BROKER_EPOCH or registration is None or registration.fenced:
        return Error.NONE
    if registration.broker_epoch <= broker_epoch:
        return Error.NONE
    return Error.NOT_LEADER_OR_FOLLOWER


def accept_any_replica_epoch(brokers: Brokers, replica: BrokerId, broker_epoch: BrokerEpoch) -> Error:
    """Take a fetch of any incarnation of the broker. **Kafka:** `Replica.updateFetchState` up to 3.6."""
    return Error.NONE


# ---- the broker epoch that a follower's fetch carries


def name_no_broker_epoch(broker_epoch: BrokerEpoch) -> BrokerEpoch:
    """A fetch does not say which incarnation of its broker sends it. **Kafka:** Fetch up to version 14, 3.4."""
    return NO_BROKER_EPOCH


def name_broker_epoch(broker_epoch: BrokerEpoch) -> BrokerEpoch:
    """A fetch says which incarnation of its broker sends it. **Kafka:** Fetch version 15 (KIP-903), since 3.5."""
    return broker_epoch
