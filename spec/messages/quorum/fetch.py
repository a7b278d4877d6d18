"""Fetch of the metadata log (KIP-595): a replica asks a voter for records, or for the leader.

The API is that of partitions. A fetch of the metadata log names its sender's directory and high watermark besides, and every
answer names the leader.
"""

from dataclasses import dataclass
from typing import NamedTuple

from kspec.spec.log.batch import Batches
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.voters import VoterSets
from kspec.spec.values import (
    NO_EPOCH,
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


class SnapshotId(NamedTuple):
    """Names a snapshot: it says what the records before `end_offset` say, of which the last is of this epoch.

    Kafka: `OffsetAndEpoch`, `Snapshots.filenameFromSnapshotId`.
    """

    end_offset: Offset
    epoch: Epoch


NO_SNAPSHOT = SnapshotId(UNKNOWN_OFFSET, NO_EPOCH)


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

    `diverging`: the end to which the follower has to truncate first, undefined if it does not. `snapshot`: the one that it
    has to fetch first, as the records that it asks for are no longer kept. `voter_sets`: those that are among the records.
    """

    error: Error
    epoch: Epoch
    leader: BrokerId = NO_LEADER
    records: Batches = ()
    high_watermark: Offset = UNKNOWN_OFFSET
    diverging: EpochEndOffset = UNDEFINED_EPOCH_END
    snapshot: SnapshotId = NO_SNAPSHOT
    voter_sets: VoterSets = ()
