"""Batches: the unit in which records are appended to a log, stored and sent."""

from typing import NamedTuple, TypeAlias, cast

from spec.values import (
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


class Batch(NamedTuple):
    """Records that one producer sent together and one leader appended together: how many, and in which leader epoch.

    `record_count` counts offsets, at least one: a batch that compaction has thinned out keeps the offsets it had.
    `leader_epoch` is `NO_EPOCH` until a leader appends the batch. No rule looks into `payload`: in a model it is a number,
    in a broker it is bytes, or says where they lie; `NO_VALUE` where it is not known. Of a producer that is not
    idempotent, `producer_id` is `NO_PRODUCER_ID`. Kafka: `RecordBatch`. **Leaves out:** timestamps, transactions.
    """

    record_count: int
    leader_epoch: Epoch = NO_EPOCH
    payload: int | bytes = NO_VALUE
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    first_sequence: int = NO_SEQUENCE

    @property
    def records(self) -> tuple[Record, ...]:
        """The batch record by record, as models keep it: each record has the payload for its value."""
        return (Record(cast(int, self.payload), self.leader_epoch),) * self.record_count

    def in_epoch(self, leader_epoch: Epoch) -> "Batch":
        """The batch as the leader of this epoch appends it. **Kafka:** `MutableRecordBatch.setPartitionLeaderEpoch`."""
        return self._replace(leader_epoch=leader_epoch)


AnyBatch: TypeAlias = Record | Batch
"""A record counts as a batch of one, and models write nothing else."""

Batches: TypeAlias = tuple[AnyBatch, ...]
"""Batches that follow each other without a gap."""


def count_records(batches: Batches) -> int:
    """How many records (offsets) the batches have, at a cost of one step for each batch."""
    return sum(batch.record_count for batch in batches)


def records_of(batches: Batches) -> tuple[Record, ...]:
    """The batches record by record: what models and laws compare. No broker does this, for it costs a step each."""
    return tuple(record for batch in batches for record in batch.records)
