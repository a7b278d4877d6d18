"""A log as a tuple of records: the carrier in models."""

from typing import NamedTuple

from kspec.spec.log.batch import Batches, records_of
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.values import NO_EPOCH, NO_VALUE, Epoch, EpochEndOffset, Offset, Record


class RecordLog(NamedTuple):
    """A log as a tuple of records: the carrier in models.

    Its epoch history follows from its records, except for an epoch that a leader has opened and that has no record yet. A
    batch is kept record by record, without its producer: models write batches of one, and the value tells the producer.
    """

    records: tuple[Record, ...] = ()
    start_offset: Offset = Offset(0)
    opened_epoch: Epoch = NO_EPOCH

    @property
    def end_offset(self) -> Offset:
        return Offset(self.start_offset + len(self.records))

    @property
    def latest_epoch(self) -> Epoch:
        if self.opened_epoch != NO_EPOCH:
            return self.opened_epoch
        return self.records[-1].leader_epoch if self.records else NO_EPOCH

    @property
    def epoch_history(self) -> EpochHistory:
        """The history that Kafka's `LeaderEpochFileCache` holds after appending these records in order."""
        history = EpochHistory()
        for position, record in enumerate(self.records):
            if record.leader_epoch not in (history.latest_epoch, NO_EPOCH):
                history = history.assign(record.leader_epoch, Offset(self.start_offset + position))
        if self.opened_epoch != NO_EPOCH:
            history = history.assign(self.opened_epoch, self.end_offset)
        return history

    def epoch_at(self, offset: Offset) -> Epoch:
        if self.start_offset <= offset < self.end_offset:
            return self.records[offset - self.start_offset].leader_epoch
        return NO_EPOCH

    def end_offset_for_epoch(self, epoch: Epoch) -> EpochEndOffset:
        return self.epoch_history.end_offset_for(epoch, self.end_offset)

    def largest_epoch_up_to(self, epoch: Epoch) -> EpochEndOffset:
        return self.epoch_history.largest_epoch_up_to(epoch, self.end_offset)

    def first_above(self, epoch: Epoch) -> Offset:
        above = (position for position, record in enumerate(self.records) if record.leader_epoch > epoch)
        return Offset(self.start_offset + next(above, len(self.records)))

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        position = start - self.start_offset
        return self.records[position : position + limit] if position >= 0 else ()

    def append(self, batches: Batches) -> "RecordLog":
        if not batches:
            return self
        return RecordLog(self.records + records_of(batches), self.start_offset)

    def append_at(self, base_offset: Offset, batches: Batches) -> "RecordLog":
        assert base_offset >= self.end_offset, (
            f"batches at {base_offset} would overwrite a log that ends at {self.end_offset}"
        )
        gap = base_offset - self.end_offset
        if gap:
            filler = (Record(NO_VALUE, self.latest_epoch),) * gap
            return RecordLog(self.records + filler + records_of(batches), self.start_offset)
        return self.append(batches)

    def truncate_to(self, offset: Offset) -> "RecordLog":
        if offset >= self.end_offset and self.opened_epoch == NO_EPOCH:
            return self
        start = min(self.start_offset, offset)
        return RecordLog(self.records[: max(offset - self.start_offset, 0)], start)

    def start_at(self, offset: Offset) -> "RecordLog":
        assert self.start_offset <= offset <= self.end_offset, f"the log holds nothing at {offset} to start with"
        kept = self.records[offset - self.start_offset :]
        return RecordLog(kept, offset, self.opened_epoch if kept else self.latest_epoch)

    def restart_at(self, offset: Offset) -> "RecordLog":
        return RecordLog((), offset)

    def open_epoch(self, epoch: Epoch) -> "RecordLog":
        return self if epoch == self.latest_epoch else RecordLog(self.records, self.start_offset, epoch)

    def without_values(self) -> "RecordLog":
        records = tuple(Record(NO_VALUE, record.leader_epoch) for record in self.records)
        return RecordLog(records, self.start_offset, self.opened_epoch)

    def holds_as(self, other: "RecordLog", offset: Offset) -> bool:
        if not (self.start_offset <= offset < self.end_offset and other.start_offset <= offset < other.end_offset):
            return False
        return self.records[offset - self.start_offset] == other.records[offset - other.start_offset]

    def agrees_below(self, other: "RecordLog", end: Offset) -> bool:
        return all(self.holds_as(other, Offset(offset)) for offset in range(end))

    def agreement_end(self, other: "RecordLog") -> Offset:
        lowest = min(self.start_offset, other.start_offset)
        end = min(self.end_offset, other.end_offset)
        while end > lowest and not self.holds_as(other, Offset(end - 1)):
            end = Offset(end - 1)
        return end


EMPTY_LOG = RecordLog()
