"""The records of `__transaction_state`, the log in which a coordinator keeps its transactional ids."""

from dataclasses import dataclass, replace

from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.metadata import TransactionMetadata, TransactionState
from kspec.spec.values import NO_PRODUCER_ID, ProducerEpoch, ProducerId, TimestampMs, TransactionalId

WITH_TAGS = 1
"""The transaction version of a cluster from which records have tagged fields."""


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """A transactional id as it is after a step; times in milliseconds. Kafka: `TransactionLogKey`, `TransactionLogValue`.

    The last three fields are tagged: there are none before transaction version 1.
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    timeout_ms: int
    state: TransactionState
    partitions: frozenset[TopicPartition]
    updated_ms: TimestampMs
    start_ms: TimestampMs
    previous_producer_id: ProducerId = NO_PRODUCER_ID
    next_producer_id: ProducerId = NO_PRODUCER_ID
    client_level: int = 0


def record_of(metadata: TransactionMetadata, cluster_level: int) -> TransactionRecord:
    """The record of a state. The epoch that a producer had before is not in it (`last_producer_epoch`).

    **Kafka:** `TransactionLog.valueToBytes`.
    """
    plain = TransactionRecord(
        metadata.transactional_id,
        metadata.producer_id,
        metadata.producer_epoch,
        metadata.timeout_ms,
        metadata.state,
        metadata.partitions,
        metadata.updated_ms,
        metadata.start_ms,
    )
    if cluster_level < WITH_TAGS:
        return plain
    return replace(
        plain,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        client_level=metadata.client_level,
    )


def metadata_of(record: TransactionRecord) -> TransactionMetadata:
    """The state that a record tells. **Kafka:** `TransactionLog.readTxnRecordValue`."""
    return TransactionMetadata(
        record.transactional_id,
        record.producer_id,
        record.timeout_ms,
        previous_producer_id=record.previous_producer_id,
        next_producer_id=record.next_producer_id,
        producer_epoch=record.producer_epoch,
        state=record.state,
        partitions=record.partitions,
        start_ms=record.start_ms,
        updated_ms=record.updated_ms,
        client_level=record.client_level,
    )
