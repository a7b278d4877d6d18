"""The records of a consumer group (KIP-848) in `__consumer_offsets`."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kspec.spec.coordinator.modern.state import AssignedPartitions, ClassicMetadata, MemberState
from kspec.spec.coordinator.rules.consumers import Places
from kspec.spec.values import GroupEpoch, GroupId, MemberId, TimestampMs


class ConsumerRecordKind(Enum):
    """The kinds of records, by the number with which their keys begin. Kafka: `CoordinatorRecordType`.

    `PARTITION_METADATA` is written by 4.0 alone; later releases write tombstones for it.
    """

    GROUP = 3
    PARTITION_METADATA = 4
    MEMBER = 5
    TARGET_EPOCH = 6
    TARGET = 7
    CURRENT = 8
    REGULAR_EXPRESSION = 16


@dataclass(frozen=True, slots=True)
class ConsumerGroupEpochRecord:
    """The group epoch, and the hash of the topics that it is for. Kafka: `ConsumerGroupMetadataValue`."""

    group_id: GroupId
    epoch: GroupEpoch
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberRecord:
    """A member as it has described itself; its time-out in milliseconds. Kafka: `ConsumerGroupMemberMetadataValue`."""

    group_id: GroupId
    member_id: MemberId
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: frozenset[str]
    regex: str | None
    rebalance_timeout_ms: int
    assignor: str | None
    classic: ClassicMetadata | None


@dataclass(frozen=True, slots=True)
class TargetEpochRecord:
    """All targets are those of this epoch; `assigned_at_ms` is 0 where no time is known.

    Kafka: `ConsumerGroupTargetAssignmentMetadataValue`.
    """

    group_id: GroupId
    epoch: GroupEpoch
    assigned_at_ms: TimestampMs


@dataclass(frozen=True, slots=True)
class TargetRecord:
    """The partitions that a member is to own. Kafka: `ConsumerGroupTargetAssignmentMemberValue`."""

    group_id: GroupId
    member_id: MemberId
    places: Places


@dataclass(frozen=True, slots=True)
class CurrentAssignmentRecord:
    """The progress of a member: epochs, state, partitions. Kafka: `ConsumerGroupCurrentMemberAssignmentValue`."""

    group_id: GroupId
    member_id: MemberId
    epoch: GroupEpoch
    previous_epoch: GroupEpoch
    state: MemberState
    assigned: AssignedPartitions
    pending: AssignedPartitions


@dataclass(frozen=True, slots=True)
class RegularExpressionRecord:
    """The topics of a regular expression when it was resolved, in milliseconds and by the offset of the metadata.

    Kafka: `ConsumerGroupRegularExpressionValue`.
    """

    group_id: GroupId
    regex: str
    topics: frozenset[str]
    metadata_offset: int
    resolved_at_ms: TimestampMs


@dataclass(frozen=True, slots=True)
class ConsumerTombstone:
    """A record of a consumer group is forgotten; `name` is the member's id, or the regular expression, if there is one.

    Kafka: the `new…TombstoneRecord` methods of `GroupCoordinatorRecordHelpers`.
    """

    group_id: GroupId
    kind: ConsumerRecordKind
    name: str = ""


ConsumerRecord: TypeAlias = (
    ConsumerGroupEpochRecord
    | ConsumerGroupMemberRecord
    | TargetEpochRecord
    | TargetRecord
    | CurrentAssignmentRecord
    | RegularExpressionRecord
    | ConsumerTombstone
)
