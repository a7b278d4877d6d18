"""Fetch: a follower or a consumer asks for a partition's records."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.log.batch import Batches
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    Offset,
)


class FetchPosition(NamedTuple):
    """The offset and the epochs of a follower's fetch; in the published models also the leader's whole state of that
    follower.

    `fetch_offset` is the follower's log end offset, `last_fetched_epoch` the leader epoch of the record before it
    (`NO_EPOCH` for an empty log), `current_leader_epoch` the epoch in which the follower follows.
    Kafka: `FetchRequestData.FetchPartition`; remembered in `Replica.updateFetchStateOrThrow`.
    """

    current_leader_epoch: Epoch
    fetch_offset: Offset
    last_fetched_epoch: Epoch


NO_FETCH = FetchPosition(NO_EPOCH, UNKNOWN_OFFSET, NO_EPOCH)
"""A leader's state of a follower that has not fetched from it."""

CONSUMER = BrokerId(-1)
"""The replica id of a fetch that does not come from a broker. Kafka: `FetchRequest.CONSUMER_REPLICA_ID`."""

NO_LIMIT = 2**31 - 1


class Isolation(Enum):
    """The offset before which a fetch may read. Kafka: `FetchIsolation`."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    COMMITTED_TRANSACTIONS = "committed transactions"


class FetchRequest(NamedTuple):
    """A fetch of one partition, by a follower or a consumer. Kafka: `FetchParams` and `FetchRequest.PartitionData`.

    `fetch` holds the epochs and the offset. `replica` is the follower, or `CONSUMER`. `start_offset` is the follower's log
    start. `has_client_metadata`: the consumer says where it is, and a follower may serve it (KIP-392). `max_records` stands
    for Kafka's limits in bytes: a broker sets it so that a read ends where a batch ends.
    """

    replica: BrokerId
    fetch: FetchPosition
    broker_epoch: BrokerEpoch = NO_BROKER_EPOCH
    start_offset: Offset = Offset(0)
    max_records: int = NO_LIMIT
    read_committed: bool = False
    has_client_metadata: bool = False


class FetchResponse(NamedTuple):
    """The answer to a fetch. `diverging`: the end to which the follower has to truncate first, undefined if it does not.

    `base_offset` is the offset of the first record. The records come in batches without a gap. A leader that keeps no
    payloads says with them which range of its log is to be sent. Where compaction has left a gap between two batches, the
    follower gets the answer in two parts. Kafka: `FetchResponseData.PartitionData`, `LogReadInfo`. **Leaves out:** that
    Kafka sends whole batches, so that the first one may start before the offset that was asked for.
    """

    error: Error
    base_offset: Offset = UNKNOWN_OFFSET
    records: Batches = ()
    high_watermark: Offset = UNKNOWN_OFFSET
    log_start_offset: Offset = UNKNOWN_OFFSET
    last_stable_offset: Offset = UNKNOWN_OFFSET
    diverging: EpochEndOffset = UNDEFINED_EPOCH_END
