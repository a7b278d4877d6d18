"""What producers send in a simulation: every record can be told from every other, and names its producer.

A log of `spec` keeps a batch record by record, and forgets its producer. These records remember it, so a follower learns of
idempotent producers from what it fetches, as in Kafka.
"""

from collections.abc import Sequence
from typing import NamedTuple

from spec.log.batch import AnyBatch, Batches
from spec.log.producers import ProducerBatch
from spec.values import (
    NO_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    Epoch,
    Offset,
    ProducerEpoch,
    ProducerId,
    Record,
)


class Sent(NamedTuple):
    """A batch as a producer sends it. `number` names the batch; its records have the values `number * 10 + position`."""

    number: int
    record_count: int
    leader_epoch: Epoch = NO_EPOCH
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    first_sequence: int = NO_SEQUENCE
    first_position: int = 0

    @property
    def records(self) -> tuple["Stored", ...]:
        return tuple(
            [
                Stored(
                    self.number * 10 + position,
                    self.leader_epoch,
                    self.producer_id,
                    self.producer_epoch,
                    self.first_sequence if self.producer_id == NO_PRODUCER_ID else self.first_sequence + place,
                    position,
                )
                for place, position in enumerate(range(self.first_position, self.first_position + self.record_count))
            ]
        )

    def in_epoch(self, leader_epoch: Epoch) -> "Sent":
        return self._replace(leader_epoch=leader_epoch)


class Stored(NamedTuple):
    """One record in a log, with its producer and its position in its batch. By itself it counts as a batch of one."""

    value: int
    leader_epoch: Epoch
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    first_sequence: int
    position: int

    @property
    def record_count(self) -> int:
        return 1

    @property
    def records(self) -> tuple["Stored", ...]:
        return (self,)

    def in_epoch(self, leader_epoch: Epoch) -> "Stored":
        return self._replace(leader_epoch=leader_epoch)


def as_batches(records: Sequence[AnyBatch]) -> Batches:
    """Records of a log as the batches in which they were appended; the first and the last may be a part of theirs."""
    batches: list[AnyBatch] = []
    for record in records:
        if not isinstance(record, Stored):
            return tuple(records)
        last = batches[-1] if batches else None
        number = record.value // 10
        if (
            isinstance(last, Sent)
            and last.number == number
            and last.leader_epoch == record.leader_epoch
            and last.first_position + last.record_count == record.position
        ):
            batches[-1] = last._replace(record_count=last.record_count + 1)
        else:
            batches.append(
                Sent(
                    number,
                    1,
                    record.leader_epoch,
                    record.producer_id,
                    record.producer_epoch,
                    record.first_sequence,
                    record.position,
                )
            )
    return tuple(batches)


def idempotent_batches(records: Sequence[Record], start_offset: int) -> tuple[ProducerBatch, ...]:
    """The batches of idempotent producers in a log, in order, as a broker reads them from its segments."""
    found, offset = [], start_offset
    for batch in as_batches(records):
        if batch.producer_id != NO_PRODUCER_ID:
            found.append(
                ProducerBatch(
                    batch.producer_id, batch.producer_epoch, batch.first_sequence, batch.record_count, Offset(offset)
                )
            )
        offset += batch.record_count
    return tuple(found)
