"""A log as an epoch history between two offsets: the carrier in a broker."""

from typing import NamedTuple

from spec.log.epoch_history import EpochEntry, EpochHistory
from spec.values import NO_EPOCH, NO_VALUE, Epoch, EpochEndOffset, Offset, Record


class EpochLog(NamedTuple):
    """A log as what Kafka keeps of it in memory: where it starts and ends, and its epoch history.

    The records themselves lie in segment files. A rule that reads this carrier finds in each the epoch, and no value.
    Epochs never go back in it: a record of a lower epoch erases later epochs from the history, as in Kafka.
    """

    epoch_history: EpochHistory = EpochHistory()
    start_offset: Offset = Offset(0)
    end_offset: Offset = Offset(0)

    @property
    def latest_epoch(self) -> Epoch:
        return self.epoch_history.latest_epoch

    def epoch_at(self, offset: Offset) -> Epoch:
        return self.epoch_history.epoch_at(offset) if self.start_offset <= offset < self.end_offset else NO_EPOCH

    def end_offset_for_epoch(self, epoch: Epoch) -> EpochEndOffset:
        return self.epoch_history.end_offset_for(epoch, self.end_offset)

    def largest_epoch_up_to(self, epoch: Epoch) -> EpochEndOffset:
        return self.epoch_history.largest_epoch_up_to(epoch, self.end_offset)

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        if start < self.start_offset:
            return ()
        end = min(self.end_offset, start + limit)
        entries = (EpochEntry(NO_EPOCH, self.start_offset), *self.epoch_history.entries)
        ends = [entry.start_offset for entry in entries[1:]] + [self.end_offset]
        records: tuple[Record, ...] = ()
        for entry, entry_end in zip(entries, ends, strict=True):
            count = min(entry_end, end) - max(entry.start_offset, start)
            records += (Record(NO_VALUE, entry.leader_epoch),) * max(count, 0)
        return records

    def append(self, records: tuple[Record, ...]) -> "EpochLog":
        return self.append_at(self.end_offset, records)

    def append_at(self, base_offset: Offset, records: tuple[Record, ...]) -> "EpochLog":
        assert base_offset >= self.end_offset, (
            f"records at {base_offset} would overwrite a log that ends at {self.end_offset}"
        )
        history = self.epoch_history
        for position, record in enumerate(records):
            if record.leader_epoch != history.latest_epoch:
                history = history.assign(record.leader_epoch, Offset(base_offset + position))
        return EpochLog(history, self.start_offset, Offset(base_offset + len(records)))

    def truncate_to(self, offset: Offset) -> "EpochLog":
        end = min(offset, self.end_offset)
        return EpochLog(self.epoch_history.truncate_from_end(end), min(self.start_offset, offset), end)

    def start_at(self, offset: Offset) -> "EpochLog":
        assert self.start_offset <= offset <= self.end_offset, f"the log holds nothing at {offset} to start with"
        return EpochLog(self.epoch_history.truncate_from_start(offset), offset, self.end_offset)

    def restart_at(self, offset: Offset) -> "EpochLog":
        return EpochLog(EpochHistory(), offset, offset)

    def open_epoch(self, epoch: Epoch) -> "EpochLog":
        return EpochLog(self.epoch_history.assign(epoch, self.end_offset), self.start_offset, self.end_offset)

    def without_values(self) -> "EpochLog":
        return self

    def holds_as(self, other: "EpochLog", offset: Offset) -> bool:
        return self.epoch_at(offset) != NO_EPOCH and self.epoch_at(offset) == other.epoch_at(offset)

    def agrees_below(self, other: "EpochLog", end: Offset) -> bool:
        return all(self.holds_as(other, Offset(offset)) for offset in range(end))

    def agreement_end(self, other: "EpochLog") -> Offset:
        lowest = min(self.start_offset, other.start_offset)
        end = min(self.end_offset, other.end_offset)
        while end > lowest and not self.holds_as(other, Offset(end - 1)):
            end = Offset(end - 1)
        return end


EMPTY_EPOCH_LOG = EpochLog()
