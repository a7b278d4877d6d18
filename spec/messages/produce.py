"""Produce: a producer's records, and what it is told about them."""

from typing import NamedTuple

from spec.log.batch import AnyBatch
from spec.values import UNKNOWN_OFFSET, Error, Offset

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1
NO_DEADLINE = -1
"""Of a request that waits for as long as it takes."""


class ProduceRequest(NamedTuple):
    """One batch for one partition, by the number that its connection gave the request.

    The batch has no leader epoch yet. `deadline`: when a producer with acks=all is told that it took too long
    (milliseconds). Kafka: `ProduceRequestData.PartitionProduceData`.
    """

    request: int
    acks: int
    batch: AnyBatch
    deadline: int = NO_DEADLINE


class ProduceResponse(NamedTuple):
    """The answer to a producer: an error, else the offset of the first record. Kafka: `PartitionProduceResponse`."""

    error: Error
    base_offset: Offset = UNKNOWN_OFFSET
