"""Batches: the unit in which records are appended to a log, stored and sent."""

from typing import NamedTuple, TypeAlias, cast

from kspec.spec.values import (
    NO_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_VALUE,
    Epoch,
    ProducerEpoch,
    ProducerId,
    Record,
)


class EndMarker(NamedTuple):
    """The end of a producer's transaction, as a control batch tells it. Kafka: `EndTransactionMarker`.

    `coordinator_epoch`: the leader epoch of the partition of `__transaction_state` that keeps the transaction.
    """

    committed: bool
    coordinator_epoch: Epoch


class Batch(NamedTuple):
    """Records that one producer sent together and one leader appended together: how many, and in which leader epoch.

    `record_count` counts offsets, at least one: a compacted batch keeps the offsets it had. `leader_epoch` is `NO_EPOCH`
    until a leader appends the batch. No rule looks into `payload`. In a model it is a number. In a broker it is bytes, or
    the place where they lie. It is `NO_VALUE` where it is not known. `producer_id` is `NO_PRODUCER_ID` for a producer that
    is not idempotent. A batch with a `marker` holds that alone. Kafka: `RecordBatch`. **Leaves out:** timestamps.
    """

    record_count: int
    leader_epoch: Epoch = NO_EPOCH
    payload: int | bytes = NO_VALUE
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    first_sequence: int = NO_SEQUENCE
    is_transactional: bool = False
    marker: EndMarker | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """The batch record by record, as models keep it: the value of each record is the payload."""
        return (Record(cast(int, self.payload), self.leader_epoch),) * self.record_count

    def in_epoch(self, leader_epoch: Epoch) -> "Batch":
        """The batch with the leader epoch in which a leader appends it.

        **Kafka:** `MutableRecordBatch.setPartitionLeaderEpoch`.
        """
        return self._replace(leader_epoch=leader_epoch)


AnyBatch: TypeAlias = Record | Batch
"""A record counts as a batch of one, and models write nothing else."""

Batches: TypeAlias = tuple[AnyBatch, ...]
"""Batches that follow each other without a gap."""


def count_records(batches: Batches) -> int:
    """The number of records (offsets) in the batches, at a cost of one step for each batch."""
    return sum(batch.record_count for batch in batches)


def records_of(batches: Batches) -> tuple[Record, ...]:
    """The batches record by record, for models and laws to compare. No broker does this, because it costs a step for each
    record.
    """
    return tuple(record for batch in batches for record in batch.records)
