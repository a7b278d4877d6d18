"""ListOffsets: where a log starts or ends, or which record has a timestamp."""

from enum import Enum
from typing import NamedTuple

from spec.messages.fetch import Isolation
from spec.values import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Error, Offset


class Wanted(Enum):
    """What a ListOffsets request asks for. Kafka: the negative timestamps of `ListOffsetsRequest`."""

    LATEST = "latest"
    EARLIEST = "earliest"
    BY_TIMESTAMP = "by timestamp"


class ListOffsetsRequest(NamedTuple):
    """Asks for an offset in the epoch that the sender knows. `isolation` is `LOG_END` for a follower.

    `leader_only`: only a leader may answer; so unless the sender debugs a replica (`DEBUGGING_REPLICA_ID`).

    Kafka: `ListOffsetsRequest`. **Leaves out:** the timestamp itself: finding a record by it is no rule of replication.
    """

    wanted: Wanted
    current_leader_epoch: Epoch = NO_EPOCH
    isolation: Isolation = Isolation.LOG_END
    leader_only: bool = True


class ListOffsetsResponse(NamedTuple):
    """An error, else the offset (`UNKNOWN_OFFSET`: none) with the epoch it belongs to. Kafka: `TimestampAndOffset`."""

    error: Error
    offset: Offset = UNKNOWN_OFFSET
    leader_epoch: Epoch = NO_EPOCH


NOT_FOUND = ListOffsetsResponse(Error.NONE)
"""No record has this timestamp or a later one."""
