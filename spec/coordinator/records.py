"""The records of `__consumer_offsets`, the log in which a coordinator keeps groups and offsets."""

from dataclasses import dataclass
from typing import TypeAlias

from kspec.spec.coordinator.modern.records import ConsumerRecord
from kspec.spec.values import (
    NO_EPOCH,
    NO_TIMESTAMP,
    NO_TOPIC_ID,
    Epoch,
    Generation,
    GroupId,
    MemberId,
    Offset,
    ProducerId,
    TimestampMs,
    TopicId,
)


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member in a `GroupMetadataRecord`; time-outs in milliseconds. Kafka: `GroupMetadataValue.MemberMetadata`."""

    member_id: MemberId
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupMetadataRecord:
    """A group as it was when a generation was complete. Kafka: `GroupMetadataKey`, `GroupMetadataValue`.

    `protocol_type` is empty where there is none. `state_since_ms`: since when the group was in its state, in milliseconds.
    """

    group_id: GroupId
    protocol_type: str
    generation: Generation
    protocol_name: str | None
    leader: MemberId | None
    state_since_ms: TimestampMs | None
    members: tuple[MemberRecord, ...]


@dataclass(frozen=True, slots=True)
class GroupTombstone:
    """The group is forgotten. Kafka: `newGroupMetadataTombstoneRecord`."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class OffsetCommitRecord:
    """A committed offset. Kafka: `OffsetCommitKey`, `OffsetCommitValue`.

    `committed_at_ms` and `expires_at_ms` are times in milliseconds; the second is given only where the client named a
    retention.
    """

    group_id: GroupId
    topic: str
    partition: int
    offset: Offset
    leader_epoch: Epoch = NO_EPOCH
    metadata: str = ""
    committed_at_ms: TimestampMs = NO_TIMESTAMP
    expires_at_ms: TimestampMs | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetTombstone:
    """A committed offset is forgotten. Kafka: `newOffsetCommitTombstoneRecord`."""

    group_id: GroupId
    topic: str
    partition: int


GroupRecord: TypeAlias = GroupMetadataRecord | GroupTombstone | OffsetCommitRecord | OffsetTombstone | ConsumerRecord


@dataclass(frozen=True, slots=True)
class TransactionalCommit:
    """An offset that was committed in a transaction, and so counts once that is committed. Kafka: TxnOffsetCommit."""

    producer_id: ProducerId
    commit: OffsetCommitRecord


@dataclass(frozen=True, slots=True)
class EndOfTransaction:
    """The marker that ends a producer's transaction. Kafka: `EndTransactionMarker`, in a control batch."""

    producer_id: ProducerId
    committed: bool


LogEntry: TypeAlias = GroupRecord | TransactionalCommit | EndOfTransaction
"""Records in the log of a coordinator: its own records, and those of transactions."""
