"""OffsetFetch: how far a group has read."""

from dataclasses import dataclass

from kspec.spec.values import NO_EPOCH, NO_TOPIC_ID, UNKNOWN_OFFSET, Epoch, Error, GroupId, MemberId, Offset, TopicId


@dataclass(frozen=True, slots=True)
class OffsetFetchPartition:
    """A partition by name, and by the topic's id where the request has one (v10)."""

    topic: str
    partition: int
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest:
    """Ask for the offsets of some partitions, or of all (`None`). `require_stable`: not of a pending transaction.

    `member_id` and `member_epoch` are those of a member of a consumer group (v9), `None` and -1 of who names none.

    Kafka: `OffsetFetchRequestData.OffsetFetchRequestGroup`.
    """

    group_id: GroupId
    partitions: tuple[OffsetFetchPartition, ...] | None
    require_stable: bool = False
    member_id: MemberId | None = None
    member_epoch: int = -1


@dataclass(frozen=True, slots=True)
class FetchedOffset:
    """The committed offset of one partition, `UNKNOWN_OFFSET` without an error if there is none.

    Kafka: `OffsetFetchResponsePartitions`.
    """

    topic: str
    partition: int
    error: Error = Error.NONE
    offset: Offset = UNKNOWN_OFFSET
    leader_epoch: Epoch = NO_EPOCH
    metadata: str | None = ""
    topic_id: TopicId = NO_TOPIC_ID


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse:
    """The committed offsets, in the order asked, or of all partitions in order of name and index.

    Kafka: `OffsetFetchResponseGroup`.
    """

    error: Error
    group_id: GroupId
    partitions: tuple[FetchedOffset, ...] = ()
