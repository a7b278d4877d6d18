"""ListOffsets: where a log starts or ends, or which record has a timestamp."""

from enum import Enum
from typing import NamedTuple

from kspec.spec.messages.fetch import Isolation
from kspec.spec.values import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Error, Offset


class OffsetSpec(Enum):
    """The offset that a ListOffsets request asks for. Kafka: the negative timestamps of `ListOffsetsRequest`."""

    LATEST = "latest"
    EARLIEST = "earliest"
    BY_TIMESTAMP = "by timestamp"


class ListOffsetsRequest(NamedTuple):
    """A request for an offset, in the epoch that the sender knows. `isolation` is `LOG_END` for a follower.

    `leader_only`: only a leader may answer; true unless the sender debugs a replica (`DEBUGGING_REPLICA_ID`).

    Kafka: `ListOffsetsRequest`. **Leaves out:** the timestamp itself; the search for it is not a rule of replication.
    """

    wanted: OffsetSpec
    current_leader_epoch: Epoch = NO_EPOCH
    isolation: Isolation = Isolation.LOG_END
    leader_only: bool = True


class ListOffsetsResponse(NamedTuple):
    """The answer: an error, or the offset (`UNKNOWN_OFFSET`: none) with its epoch. Kafka: `TimestampAndOffset`."""

    error: Error
    offset: Offset = UNKNOWN_OFFSET
    leader_epoch: Epoch = NO_EPOCH


NOT_FOUND = ListOffsetsResponse(Error.NONE)
"""No record has this timestamp or a later one."""
