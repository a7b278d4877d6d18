"""Fetch of the metadata log (KIP-595): a replica asks a voter for records, or for the leader.

The API is that of partitions. A fetch of the metadata log names its sender's directory and high watermark besides, and every
answer names the leader.
"""

from dataclasses import dataclass

from kspec.spec.log.batch import Batches
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.values import (
    NO_LEADER,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    Offset,
    ReplicaKey,
)


@dataclass(frozen=True, slots=True)
class QuorumFetchRequest:
    """A fetch of the metadata log. Kafka: `FetchRequestData.FetchPartition`.

    `high_watermark` is the follower's, `UNKNOWN_OFFSET` if it has none or its release does not say (before version 18).
    """

    replica: ReplicaKey
    fetch: FetchPosition
    high_watermark: Offset = UNKNOWN_OFFSET


@dataclass(frozen=True, slots=True)
class QuorumFetchResponse:
    """The answer to a fetch of the metadata log. Kafka: `FetchResponseData.PartitionData`.

    `diverging`: the end to which the follower has to truncate first, undefined if it does not.
    """

    error: Error
    epoch: Epoch
    leader: BrokerId = NO_LEADER
    records: Batches = ()
    high_watermark: Offset = UNKNOWN_OFFSET
    diverging: EpochEndOffset = UNDEFINED_EPOCH_END
