"""OffsetCommit: a group remembers how far it has read."""

from dataclasses import dataclass

from kspec.spec.values import (
    NO_EPOCH,
    NO_GENERATION,
    NO_MEMBER_ID,
    NO_TOPIC_ID,
    Epoch,
    Error,
    Generation,
    GroupId,
    MemberId,
    Offset,
    TopicId,
)

DEFAULT_RETENTION = -1
"""A commit that names no retention: the group's rule holds. Kafka: `OffsetCommitRequest.DEFAULT_RETENTION_TIME`."""


@dataclass(frozen=True, slots=True)
class OffsetToCommit:
    """The offset of the next record to read in a partition, and what the client wants to keep with it.

    Kafka: `OffsetCommitRequestPartition`, with the topic's name and id.
    """

    topic: str
    partition: int
    offset: Offset
    leader_epoch: Epoch = NO_EPOCH
    metadata: str | None = ""
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest:
    """Commit offsets. A consumer that is no member of a group sends no member id, and `NO_GENERATION`.

    `retention_ms`: how long to keep the offsets, in milliseconds (v2 to v4). `reports_missing_group`: the client understands
    `GROUP_ID_NOT_FOUND` (v9 and later). Kafka: `OffsetCommitRequestData`.
    """

    group_id: GroupId
    offsets: tuple[OffsetToCommit, ...]
    generation: Generation = NO_GENERATION
    member_id: MemberId = NO_MEMBER_ID
    instance_id: str | None = None
    retention_ms: int = DEFAULT_RETENTION
    reports_missing_group: bool = False


@dataclass(frozen=True, slots=True)
class PartitionError:
    """The outcome for one partition. Kafka: `OffsetCommitResponsePartition`, `OffsetDeleteResponsePartition`."""

    topic: str
    partition: int
    error: Error
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse:
    """The outcome for each partition, in the order asked. Kafka: `OffsetCommitResponseData`."""

    partitions: tuple[PartitionError, ...]
