"""OffsetDelete: a group forgets how far it has read in some partitions."""

from dataclasses import dataclass

from kspec.spec.messages.groups.offset_commit import PartitionError
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition
from kspec.spec.values import Error, GroupId


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest:
    """Delete the offsets of these partitions. Kafka: `OffsetDeleteRequestData`."""

    group_id: GroupId
    partitions: tuple[OffsetFetchPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse:
    """The outcome for the group, and for each partition in the order asked. Kafka: `OffsetDeleteResponseData`."""

    error: Error
    partitions: tuple[PartitionError, ...] = ()
