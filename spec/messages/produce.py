"""Produce: a producer's records, and what it is told about them."""

from typing import NamedTuple

from spec.log.producers import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, ProducerEpoch, ProducerId
from spec.values import UNKNOWN_OFFSET, Error, Offset

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1
NO_DEADLINE = -1
"""Of a request that waits for as long as it takes."""


class ProduceRequest(NamedTuple):
    """Records for one partition, as one batch, by the number that its connection gave the request.

    `deadline`: when a producer with acks=all is told that it took too long (milliseconds). Of a producer that is not
    idempotent, `producer_id` is `NO_PRODUCER_ID`. Kafka: `ProduceRequestData.PartitionProduceData`.
    """

    request: int
    acks: int
    values: tuple[int, ...]
    deadline: int = NO_DEADLINE
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    first_sequence: int = NO_SEQUENCE


class ProduceResponse(NamedTuple):
    """The answer to a producer: an error, else the offset of the first record. Kafka: `PartitionProduceResponse`."""

    error: Error
    base_offset: Offset = UNKNOWN_OFFSET
