"""What a leader, or a follower that serves consumers, answers to a fetch: fences, divergence, what is visible to whom."""

from enum import Enum
from typing import NamedTuple

from spec.fetch import check_leader_epoch
from spec.followers import Follower
from spec.log import Log
from spec.truncation import look_up_as_released
from spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    FetchRequest,
    LeaderAndIsr,
    Offset,
    Record,
)

CONSUMER = BrokerId(-1)
"""The replica id of a fetch that does not come from a broker. Kafka: `FetchRequest.CONSUMER_REPLICA_ID`."""

NO_LIMIT = 2**31 - 1


class Isolation(Enum):
    """Up to where a fetch may read. Kafka: `FetchIsolation`."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    COMMITTED_TRANSACTIONS = "committed transactions"


class PartitionFetch(NamedTuple):
    """A fetch of one partition, by a follower or a consumer. Kafka: `FetchParams` and `FetchRequest.PartitionData`.

    `fetch` holds the epochs and the offset. `replica` is the follower, or `CONSUMER`; `start_offset` where the follower's
    log starts; `has_client_metadata`: the consumer says where it is, and may be served by a follower (KIP-392).
    `max_records` stands for Kafka's limits in bytes.
    """

    replica: BrokerId
    fetch: FetchRequest
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    start_offset: Offset = Offset(0)
    max_records: int = NO_LIMIT
    read_committed: bool = False
    has_client_metadata: bool = False


class FetchAnswer(NamedTuple):
    """The answer to a fetch. `diverging`: the follower has to truncate to here first, undefined if it does not.

    `base_offset` is where the records start. Kafka: `FetchResponseData.PartitionData`, `LogReadInfo`.
    """

    error: Error
    base_offset: Offset = UNKNOWN_OFFSET
    records: tuple[Record, ...] = ()
    high_watermark: Offset = UNKNOWN_OFFSET
    log_start_offset: Offset = UNKNOWN_OFFSET
    last_stable_offset: Offset = UNKNOWN_OFFSET
    diverging: EpochEndOffset = UNDEFINED_EPOCH_END


def is_follower(request: PartitionFetch) -> bool:
    """Whether a fetch comes from a follower. **Kafka:** `FetchParams.isFromFollower`."""
    return request.replica != CONSUMER


def needs_leader(request: PartitionFetch) -> bool:
    """Whether only the leader may answer: every follower's fetch, and a consumer's that says nothing of where it is.

    **Kafka:** `FetchParams.fetchOnlyLeader` (KIP-392).
    """
    return is_follower(request) or not request.has_client_metadata


def isolation_of(request: PartitionFetch) -> Isolation:
    """Up to where a fetch may read. **Kafka:** `FetchIsolation.of`."""
    if is_follower(request):
        return Isolation.LOG_END
    return Isolation.COMMITTED_TRANSACTIONS if request.read_committed else Isolation.HIGH_WATERMARK


def visible_end(isolation: Isolation, log_end: Offset, high_watermark: Offset, last_stable: Offset) -> Offset:
    """The offset before which a reader sees records. **Kafka:** `UnifiedLog.read`."""
    if isolation == Isolation.LOG_END:
        return log_end
    return last_stable if isolation == Isolation.COMMITTED_TRANSACTIONS else high_watermark


def check_serves(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch, leader_only: bool) -> Error:
    """Whether a replica answers a request made in epoch `claimed`: the epoch is looked at first, then the role.

    Errors: as `check_leader_epoch`; `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.getLocalLog`, `checkCurrentLeaderEpoch` (KIP-320, since 2.1).
    """
    error = check_leader_epoch(role, claimed)
    if error != Error.NONE:
        return error
    return Error.NOT_LEADER_OR_FOLLOWER if leader_only and role.leader != self_id else Error.NONE


def check_serves_unfenced(self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch, leader_only: bool) -> Error:
    """Whether a replica answers a request, whatever epoch that was made in.

    Errors: `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.leaderReplicaIfLocal` up to 2.0.
    """
    return check_serves(self_id, role, NO_EPOCH, leader_only)


def check_assigned(followers: tuple[Follower, ...], request: PartitionFetch) -> Error:
    """Whether a fetching follower is a replica of the partition, as far as the leader knows.

    Errors, which all make the follower try again: `UNKNOWN_LEADER_EPOCH` if it names its epoch, for the leader may not have
    heard of the new assignment; else `NOT_LEADER_OR_FOLLOWER`.

    **Kafka:** `Partition.followerReplicaOrThrow`.
    """
    if not is_follower(request) or any(follower.broker == request.replica for follower in followers):
        return Error.NONE
    named = request.fetch.current_leader_epoch != NO_EPOCH
    return Error.UNKNOWN_LEADER_EPOCH if named else Error.NOT_LEADER_OR_FOLLOWER


# ---- divergence


class Divergence(NamedTuple):
    """Whether a follower's last record is in the leader's log: an error, or where they part (undefined if they do not)."""

    error: Error = Error.NONE
    end: EpochEndOffset = UNDEFINED_EPOCH_END


AGREES = Divergence()
OUT_OF_RANGE = Divergence(Error.OFFSET_OUT_OF_RANGE)


def no_divergence_check(log: Log, request: FetchRequest) -> Divergence:
    """Whatever the follower holds before the fetch offset. **Kafka:** `Partition.readRecords` up to 2.6."""
    return AGREES


def diverges(log: Log, request: FetchRequest) -> Divergence:
    """Where a follower's log parts from the leader's, by the epoch of its last record; nothing is said without one.

    Errors: `OFFSET_OUT_OF_RANGE` if the leader cannot place that epoch.

    **Kafka:** `Partition.readRecords` (KIP-595), 2.7.0 to 2.8.0.
    """
    if request.last_fetched_epoch == NO_EPOCH:
        return AGREES
    end = look_up_as_released(log, request.last_fetched_epoch)
    if end == UNDEFINED_EPOCH_END:
        return OUT_OF_RANGE
    parted = end.leader_epoch < request.last_fetched_epoch or end.end_offset < request.fetch_offset
    return Divergence(Error.NONE, end) if parted else AGREES


def diverges_within_log(log: Log, request: FetchRequest) -> Divergence:
    """As `diverges`, but a fetch from before the log's start is out of range even if the logs part.

    Otherwise the follower would be told offsets that it takes for corrupt, and give up.

    **Kafka:** `Partition.readRecords` (KAFKA-12996, since 2.8.1 and 3.0).
    """
    found = diverges(log, request)
    before_start = request.fetch_offset < log.start_offset
    return OUT_OF_RANGE if request.last_fetched_epoch != NO_EPOCH and before_start else found


def is_diverging(answer: FetchAnswer) -> bool:
    """Whether an answer tells the follower to truncate. **Kafka:** `FetchResponse.isDivergingEpoch`."""
    return answer.diverging != UNDEFINED_EPOCH_END


def count_every_fetch(diverging: bool) -> bool:
    """The leader takes every fetch offset for the end of the follower's log, even one that is about to be truncated.

    **Kafka:** `ReplicaManager.updateFollowerFetchState`, 2.7 and 2.8.0.
    """
    return True


def count_unless_diverging(diverging: bool) -> bool:
    """The leader takes a fetch offset for the end of the follower's log unless the logs part before it.

    **Kafka:** `Partition.fetchRecords` (KAFKA-13141, since 2.8.1 and 3.0).
    """
    return not diverging


# ---- when to answer, and from where


def leaving_now(answer: FetchAnswer, log: Log) -> FetchAnswer | None:
    """An answer made earlier as it leaves the broker now: its records are read only then. `None`: it cannot be sent.

    The answer says which stretch of the log it carries. If the log has been cut and has grown again meanwhile, other
    records lie there, of a later epoch; if it has become shorter, the connection is closed.

    **Kafka:** `FileRecords.writeTo`, which hands the file to the socket (KAFKA-18723).
    """
    records = log.read(answer.base_offset, len(answer.records))
    return answer._replace(records=records) if len(records) == len(answer.records) else None


def answers_at_once(answer: FetchAnswer, min_records: int, may_wait: bool, has_preferred_replica: bool) -> bool:
    """Whether a fetch is answered now rather than when there is more to read.

    `min_records` stands for `fetch.min.bytes`.

    **Kafka:** `ReplicaManager.fetchMessages`; a fetch that waits is looked at again by `DelayedFetch.tryComplete`.
    """
    decided = answer.error != Error.NONE or is_diverging(answer) or has_preferred_replica
    return decided or not may_wait or len(answer.records) >= min_records


def may_throttle(throttled: bool, quota_exceeded: bool, in_isr: bool) -> bool:
    """Whether a leader answers a follower's fetch with no records, to save bandwidth: never a member of the ISR.

    Such a fetch counts as any other.

    **Kafka:** `ReplicaManager.shouldLeaderThrottle`.
    """
    return throttled and quota_exceeded and not in_isr


def readable_replicas(
    self_id: BrokerId, isr: frozenset[BrokerId], followers: tuple[Follower, ...], fetch_offset: Offset
) -> frozenset[BrokerId]:
    """The replicas to which a leader may send a consumer: itself, and in-sync ones that hold the fetch offset, as it knows.

    **Kafka:** `ReplicaManager.findPreferredReadReplica` (KIP-392). **Leaves out:** which of them is nearest.
    """
    holding = [
        follower.broker
        for follower in followers
        if follower.broker in isr and follower.state.start_offset <= fetch_offset <= follower.state.end_offset
    ]
    return frozenset({self_id, *holding})
