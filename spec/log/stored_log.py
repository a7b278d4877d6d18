"""A log as a broker has it, its epoch history in memory over records in its files: the other carrier in models."""

from typing import NamedTuple

from kspec.spec.log.batch import Batches, count_records, records_of
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.values import NO_VALUE, Epoch, EpochEndOffset, Offset, Record


class StoredLog(NamedTuple):
    """An `EpochLog`, which answers every question of a rule, and the records in the files, which no rule sees.

    What is done to the log is done to both. A read asks the `EpochLog` which stretch to send, and takes the records of that
    stretch from the files, as a broker does. Whether two logs hold the same record is asked of the files: properties ask
    so, and no rule does. So a mistake in `EpochLog` or `EpochHistory` leads a model to wrong records, as it would a broker.

    Where the epochs of a log never go back, this carrier and `RecordLog` are the same log in two forms: each follows from
    the other (`stored`), and so does each outcome of an operation. Where they go back, the history has lost entries, as
    Kafka's does, and rules may get other answers.
    """

    epochs: EpochLog = EMPTY_EPOCH_LOG
    records: tuple[Record, ...] = ()
    first_offset: Offset = Offset(0)
    """The offset of the first record in the files."""

    @property
    def start_offset(self) -> Offset:
        return self.epochs.start_offset

    @property
    def end_offset(self) -> Offset:
        return self.epochs.end_offset

    @property
    def latest_epoch(self) -> Epoch:
        return self.epochs.latest_epoch

    @property
    def epoch_history(self) -> EpochHistory:
        return self.epochs.epoch_history

    def epoch_at(self, offset: Offset) -> Epoch:
        return self.epochs.epoch_at(offset)

    def end_offset_for_epoch(self, epoch: Epoch) -> EpochEndOffset:
        return self.epochs.end_offset_for_epoch(epoch)

    def largest_epoch_up_to(self, epoch: Epoch) -> EpochEndOffset:
        return self.epochs.largest_epoch_up_to(epoch)

    def first_above(self, epoch: Epoch) -> Offset:
        return self.epochs.first_above(epoch)

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        count = count_records(self.epochs.read(start, limit))
        position = start - self.first_offset
        return self.records[position : position + count] if position >= 0 else ()

    def append(self, batches: Batches) -> "StoredLog":
        return self._replace(epochs=self.epochs.append(batches), records=self.records + records_of(batches))

    def append_at(self, base_offset: Offset, batches: Batches) -> "StoredLog":
        filler = (Record(NO_VALUE, self.latest_epoch),) * (base_offset - self.end_offset)
        records = self.records + filler + records_of(batches)
        return self._replace(epochs=self.epochs.append_at(base_offset, batches), records=records)

    def truncate_to(self, offset: Offset) -> "StoredLog":
        kept = self.records[: max(offset - self.first_offset, 0)]
        return StoredLog(self.epochs.truncate_to(offset), kept, min(self.first_offset, offset))

    def start_at(self, offset: Offset) -> "StoredLog":
        return StoredLog(self.epochs.start_at(offset), self.records[offset - self.first_offset :], offset)

    def restart_at(self, offset: Offset) -> "StoredLog":
        return StoredLog(self.epochs.restart_at(offset), (), offset)

    def open_epoch(self, epoch: Epoch) -> "StoredLog":
        return self._replace(epochs=self.epochs.open_epoch(epoch))

    def without_values(self) -> "StoredLog":
        records = tuple(Record(NO_VALUE, record.leader_epoch) for record in self.records)
        return self._replace(epochs=self.epochs.without_values(), records=records)

    def holds_as(self, other: "StoredLog", offset: Offset) -> bool:
        mine, theirs = offset - self.first_offset, offset - other.first_offset
        if not (0 <= mine < len(self.records) and 0 <= theirs < len(other.records)):
            return False
        return self.records[mine] == other.records[theirs]

    def agrees_below(self, other: "StoredLog", end: Offset) -> bool:
        return all(self.holds_as(other, Offset(offset)) for offset in range(end))

    def agreement_end(self, other: "StoredLog") -> Offset:
        lowest = min(self.first_offset, other.first_offset)
        end = min(self.first_offset + len(self.records), other.first_offset + len(other.records))
        while end > lowest and not self.holds_as(other, Offset(end - 1)):
            end -= 1
        return Offset(end)


EMPTY_STORED_LOG = StoredLog()
