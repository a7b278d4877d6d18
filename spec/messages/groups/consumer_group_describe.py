"""ConsumerGroupDescribe (KIP-848): a consumer group's epochs and members."""

from dataclasses import dataclass

from kspec.spec.topics import TopicIdPartition
from kspec.spec.values import NO_GROUP_EPOCH, Error, GroupEpoch, GroupId, MemberId


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeRequest:
    """Describe a consumer group. Kafka: one of `ConsumerGroupDescribeRequestData.groupIds`."""

    group_id: GroupId


@dataclass(frozen=True, slots=True)
class DescribedConsumer:
    """A member: what it is responsible for, and what it is to own. Kafka: `ConsumerGroupDescribeResponseData.Member`.

    `is_classic`: it speaks the classic protocol.
    """

    member_id: MemberId
    instance_id: str | None
    rack_id: str | None
    member_epoch: GroupEpoch
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str
    assignment: tuple[TopicIdPartition, ...]
    target: tuple[TopicIdPartition, ...]
    is_classic: bool


@dataclass(frozen=True, slots=True)
class ConsumerGroupDescribeResponse:
    """A group's state, by Kafka's word, its epochs and members. Kafka: `ConsumerGroupDescribeResponseData`."""

    error: Error
    group_id: GroupId
    group_state: str = ""
    group_epoch: GroupEpoch = NO_GROUP_EPOCH
    assignment_epoch: GroupEpoch = NO_GROUP_EPOCH
    assignor: str = ""
    members: tuple[DescribedConsumer, ...] = ()
