"""A log as an epoch history between two offsets: the carrier in a broker."""

from typing import NamedTuple

from kspec.spec.log.batch import Batch, Batches
from kspec.spec.log.epoch_history import EpochHistory
from kspec.spec.values import NO_EPOCH, Epoch, EpochEndOffset, Offset


class EpochLog(NamedTuple):
    """A log as Kafka keeps it in memory: its start, its end, and its epoch history.

    The batches themselves lie in segment files. A read of this carrier says which range of them to send: a batch without
    payload for each epoch. The cost of an operation that a broker uses does not depend on the number of records or batches.
    Its epochs never go back: a batch of a lower epoch erases later epochs from the history, as in Kafka.
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

    def first_above(self, epoch: Epoch) -> Offset:
        if self.start_offset == self.end_offset:
            return self.end_offset
        entries = self.epoch_history.between(self.start_offset, self.end_offset)
        return next((entry.start_offset for entry in entries if entry.leader_epoch > epoch), self.end_offset)

    def read(self, start: Offset, limit: int) -> tuple[Batch, ...]:
        end = min(self.end_offset, Offset(start + limit))
        if start < self.start_offset or start >= end:
            return ()
        entries = self.epoch_history.between(start, end)
        ends = [entry.start_offset for entry in entries[1:]] + [end]
        return tuple(
            Batch(stretch_end - entry.start_offset, entry.leader_epoch)
            for entry, stretch_end in zip(entries, ends, strict=True)
        )

    def append(self, batches: Batches) -> "EpochLog":
        return self.append_at(self.end_offset, batches)

    def append_at(self, base_offset: Offset, batches: Batches) -> "EpochLog":
        assert base_offset >= self.end_offset, (
            f"batches at {base_offset} would overwrite a log that ends at {self.end_offset}"
        )
        history, end = self.epoch_history, base_offset
        for batch in batches:
            if batch.leader_epoch != NO_EPOCH or history.entries:
                history = history.assign(batch.leader_epoch, end)
            end = Offset(end + batch.record_count)
        return EpochLog(history, self.start_offset, end)

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
