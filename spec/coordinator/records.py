"""The records of `__consumer_offsets`, the log in which a coordinator keeps groups and offsets."""

from dataclasses import dataclass
from typing import TypeAlias

from spec.values import NO_EPOCH, NO_TOPIC_ID, Epoch, Generation, GroupId, MemberId, Offset, TopicId


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
    state_since_ms: int | None
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
    committed_at_ms: int = -1
    expires_at_ms: int | None = None
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetTombstone:
    """A committed offset is forgotten. Kafka: `newOffsetCommitTombstoneRecord`."""

    group_id: GroupId
    topic: str
    partition: int


GroupRecord: TypeAlias = GroupMetadataRecord | GroupTombstone | OffsetCommitRecord | OffsetTombstone
