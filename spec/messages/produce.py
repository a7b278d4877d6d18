"""Produce: a producer's records, and the answer."""

from typing import NamedTuple

from kspec.spec.log.batch import AnyBatch
from kspec.spec.values import UNKNOWN_OFFSET, Error, MonotonicMs, Offset

ACKS_NONE = 0
ACKS_LEADER = 1
ACKS_ALL = -1
NO_DEADLINE = MonotonicMs(-1)
"""The deadline of a request that may wait without limit."""


class ProduceRequest(NamedTuple):
    """One batch for one partition, with the number that its connection gave the request.

    The batch has no leader epoch yet. `deadline`: when a producer with acks=all gets a time-out (milliseconds). `guard`: the
    one under which its transaction was verified. `transaction_version`: that of a marker, which comes from a transaction
    coordinator and not from a producer. Kafka: `ProduceRequestData.PartitionProduceData`, `WritableTxnMarker`.
    """

    request: int
    acks: int
    batch: AnyBatch
    deadline: MonotonicMs = NO_DEADLINE
    guard: int = 0
    transaction_version: int = 0


class ProduceResponse(NamedTuple):
    """The answer to a producer: an error, or the offset of the first record. Kafka: `PartitionProduceResponse`."""

    error: Error
    base_offset: Offset = UNKNOWN_OFFSET
