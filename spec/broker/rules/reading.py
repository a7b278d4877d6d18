"""Which records a reader sees, when a fetch is answered, and which replica answers it."""

from spec.broker.rules.divergence import is_diverging
from spec.broker.rules.followers import Follower
from spec.log.algebra import Log
from spec.log.batch import count_records
from spec.messages.fetch import CONSUMER, FetchRequest, FetchResponse, Isolation
from spec.values import BrokerId, Error, Offset


def is_follower(request: FetchRequest) -> bool:
    """Whether a fetch comes from a follower. **Kafka:** `FetchParams.isFromFollower`."""
    return request.replica != CONSUMER


def needs_leader(request: FetchRequest) -> bool:
    """Whether only the leader may answer: every follower's fetch, and a consumer's without client metadata.

    **Kafka:** `FetchParams.fetchOnlyLeader` (KIP-392).
    """
    return is_follower(request) or not request.has_client_metadata


def isolation_of(request: FetchRequest) -> Isolation:
    """The isolation of a fetch: the offset before which it may read. **Kafka:** `FetchIsolation.of`."""
    if is_follower(request):
        return Isolation.LOG_END
    return Isolation.COMMITTED_TRANSACTIONS if request.read_committed else Isolation.HIGH_WATERMARK


def visible_end(isolation: Isolation, log_end: Offset, high_watermark: Offset, last_stable: Offset) -> Offset:
    """The offset before which a reader sees records. **Kafka:** `UnifiedLog.read`."""
    if isolation == Isolation.LOG_END:
        return log_end
    return last_stable if isolation == Isolation.COMMITTED_TRANSACTIONS else high_watermark


# ---- when to answer, and from where


def leaving_now(answer: FetchResponse, log: Log) -> FetchResponse | None:
    """An earlier answer when the broker sends it: only now its records are read. `None`: it cannot be sent.

    The answer says which range of the log it carries. If the log has been truncated and has grown again meanwhile, the range
    holds other records, of a later epoch. If the log has become shorter, the connection is closed.

    **Kafka:** `FileRecords.writeTo`, which hands the file to the socket (KAFKA-18723).
    """
    wanted = count_records(answer.records)
    records = log.read(answer.base_offset, wanted)
    return answer._replace(records=records) if count_records(records) == wanted else None


def answers_at_once(answer: FetchResponse, min_records: int, may_wait: bool, has_preferred_replica: bool) -> bool:
    """Whether a fetch is answered now, and does not wait for more to read.

    `min_records` stands for `fetch.min.bytes`.

    **Kafka:** `ReplicaManager.fetchMessages`; a fetch that waits is looked at again by `DelayedFetch.tryComplete`.
    """
    decided = answer.error != Error.NONE or is_diverging(answer) or has_preferred_replica
    return decided or not may_wait or count_records(answer.records) >= min_records


def may_throttle(throttled: bool, quota_exceeded: bool, in_isr: bool) -> bool:
    """Whether a leader answers a follower's fetch without records, to save bandwidth: never for a member of the ISR.

    Such a fetch counts like any other.

    **Kafka:** `ReplicaManager.shouldLeaderThrottle`.
    """
    return throttled and quota_exceeded and not in_isr


def readable_replicas(
    self_id: BrokerId, isr: frozenset[BrokerId], followers: tuple[Follower, ...], fetch_offset: Offset
) -> frozenset[BrokerId]:
    """The replicas to which a leader may send a consumer: itself, and in-sync ones that hold the fetch offset by its
    knowledge.

    **Kafka:** `ReplicaManager.findPreferredReadReplica` (KIP-392). **Leaves out:** which of them is nearest.
    """
    holding = [
        follower.broker
        for follower in followers
        if follower.broker in isr and follower.state.start_offset <= fetch_offset <= follower.state.end_offset
    ]
    return frozenset({self_id, *holding})
