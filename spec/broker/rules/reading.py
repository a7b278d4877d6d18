"""Reading: the records that a reader sees, how many bytes of them, the time at which a fetch is answered, and the replica
that answers it.
"""

from typing import NamedTuple

from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.broker.rules.followers import Follower
from kspec.spec.log.algebra import Log
from kspec.spec.log.batch import count_records
from kspec.spec.messages.fetch import CONSUMER, FetchRequest, FetchResponse, Isolation
from kspec.spec.values import BrokerId, Error, Offset


def is_follower(request: FetchRequest) -> bool:
    """Whether a fetch comes from a follower. **Kafka:** `FetchParams.isFromFollower`."""
    return request.replica != CONSUMER


def needs_leader(request: FetchRequest) -> bool:
    """Whether only the leader may answer: every follower's fetch, and a consumer's without client metadata.

    **Kafka:** `FetchParams.fetchOnlyLeader` (KIP-392, since 2.4).
    """
    return is_follower(request) or not request.has_client_metadata


def always_needs_leader(request: FetchRequest) -> bool:
    """Only the leader answers a fetch. **Kafka:** `ReplicaManager.fetchMessages` up to 2.3."""
    return True


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


# ---- how much is answered


class AnswerRoom(NamedTuple):
    """The room for batches in the answer to a fetch, whose partitions are read one after the other: the bytes that are left
    of its limit, and whether no batch is in it.
    """

    bytes_left: int
    is_empty: bool


def room_in_answer(most_bytes: int, bytes_before: int) -> AnswerRoom:
    """The room in an answer of at most so many bytes, with so many in it already.

    **Kafka:** `ReplicaManager.readFromLog` (`limitBytes`, `minOneMessage`).
    """
    return AnswerRoom(max(0, most_bytes - bytes_before), bytes_before == 0)


def most_of_partition(room: AnswerRoom, most_bytes: int) -> int:
    """The bytes that a partition may add: no more than the fetch wants of it, and than are left of the whole.

    **Kafka:** `ReplicaManager.readFromLog` (`adjustedMaxBytes`).
    """
    return min(room.bytes_left, most_bytes)


def gives_first_batch(room: AnswerRoom) -> bool:
    """Whether a partition gives its first batch however large it is: a reader would wait for ever at one that is larger than
    its limits. So only before anything is in the answer.

    **Kafka:** `ReplicaManager.readFromLog` (`minOneMessage`), `LogSegment.read` (KIP-74, since 0.10.1).
    """
    return room.is_empty


def room_after(room: AnswerRoom, size: int) -> AnswerRoom:
    """The room once a partition has added so many bytes. **Kafka:** `ReplicaManager.readFromLog`."""
    return AnswerRoom(max(0, room.bytes_left - size), room.is_empty and size == 0)


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


def unreadable(is_damaged: bool) -> Error:
    """The error of a fetch or a question whose batches cannot be read from the files.

    `is_damaged`: bytes are there that are no batch; otherwise the disk does not give them.

    Errors: `CORRUPT_MESSAGE` or `KAFKA_STORAGE_ERROR`.

    **Kafka:** `ReplicaManager.readFromLog`, with `CorruptRecordException` or `KafkaStorageException`.
    """
    return Error.CORRUPT_MESSAGE if is_damaged else Error.KAFKA_STORAGE_ERROR


def answers_at_once(answer: FetchResponse, min_records: int, may_wait: bool, has_preferred_replica: bool) -> bool:
    """Whether a fetch is answered now, and does not wait for more to read.

    `min_records` stands for `fetch.min.bytes`.

    **Kafka:** `ReplicaManager.fetchMessages`; a fetch that waits is looked at again by `DelayedFetch.tryComplete`.
    """
    decided = answer.error != Error.NONE or is_diverging(answer) or has_preferred_replica
    return decided or not may_wait or count_records(answer.records) >= min_records


def counted_bytes(sent: int, limit: int, next_offset: Offset, end: Offset) -> int:
    """The bytes of a partition that count towards `fetch.min.bytes`.

    Parameters: the whole batches that are sent, and how many may be (bytes); the offset behind them, and the end that the
    fetch may see. A broker that sends whole batches only would wait for bytes for which there is no room.

    **Kafka:** `ReplicaManager.fetchMessages`, `DelayedFetch.tryComplete`, which count parts of batches, too.
    """
    return max(sent, limit) if next_offset < end else sent


def has_enough(counted: int, min_bytes: int, max_bytes: int) -> bool:
    """Whether a fetch has enough to be answered (bytes): never more than an answer has room for, at whatever look.

    **Kafka:** `KafkaApis.handleFetchRequest`, which makes the least of both the fetch's `minBytes`.
    """
    return counted >= min(min_bytes, max_bytes)


def ends_waiting(fetch_offset: Offset, end: Offset, older_segment: bool) -> bool:
    """Whether a fetch does not wait, however little there is: it is behind the end that it may see, or in an older segment.

    `older_segment`: whether the offset lies in another segment of the log than the end.

    **Kafka:** `DelayedFetch.tryComplete`, case F; asked before a fetch waits, and at each change.
    """
    return fetch_offset > end or (fetch_offset < end and older_segment)


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

    **Kafka:** `ReplicaManager.findPreferredReadReplica` (KAFKA-14379, since 3.3.2 and 3.4). **Leaves out:** which of them is
    nearest.
    """
    return frozenset({self_id}) | (isr & replicas_with_offset(self_id, isr, followers, fetch_offset))


def replicas_with_offset(
    self_id: BrokerId, isr: frozenset[BrokerId], followers: tuple[Follower, ...], fetch_offset: Offset
) -> frozenset[BrokerId]:
    """As `readable_replicas`, in sync or not: a consumer may be sent to a replica that is far behind in the high watermark.

    **Kafka:** `ReplicaManager.findPreferredReadReplica` (KIP-392), 2.4 to 3.3.1.
    """
    holding = (
        follower.broker for follower in followers if follower.state.start_offset <= fetch_offset <= follower.state.end_offset
    )
    return frozenset({self_id, *holding})


def leader_alone(
    self_id: BrokerId, isr: frozenset[BrokerId], followers: tuple[Follower, ...], fetch_offset: Offset
) -> frozenset[BrokerId]:
    """The replicas to which a leader may send a consumer: itself alone. **Kafka:** up to 2.3, before KIP-392."""
    return frozenset({self_id})
