"""DescribeTransactions: the state of some transactional ids."""

from dataclasses import dataclass

from kspec.spec.topics import TopicPartition
from kspec.spec.values import Error, ProducerEpoch, ProducerId, TimestampMs, TransactionalId

NO_TIME, NO_ID, NO_EPOCH = TimestampMs(0), ProducerId(0), ProducerEpoch(0)
"""Fields of an answer that has an error."""


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transactional id; times in milliseconds. Kafka: `DescribeTransactionsResponseData.TransactionState`."""

    error: Error
    transactional_id: TransactionalId
    state: str = ""
    timeout_ms: int = 0
    start_ms: TimestampMs = NO_TIME
    producer_id: ProducerId = NO_ID
    producer_epoch: ProducerEpoch = NO_EPOCH
    partitions: tuple[TopicPartition, ...] = ()
