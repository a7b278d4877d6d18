"""A log as a broker keeps it: values in a file, and of their leader epochs only where each starts."""

from typing import NamedTuple

from spec.epochs import EpochHistory
from spec.values import Epoch, EpochEndOffset, Offset, Record


class HistoryLog(NamedTuple):
    """The epoch-history carrier of the log algebra: epochs only grow, and two logs cannot be compared."""

    values: tuple[int, ...] = ()
    start_offset: Offset = Offset(0)
    history: EpochHistory = EpochHistory()

    @property
    def end_offset(self) -> Offset:
        return Offset(self.start_offset + len(self.values))

    @property
    def latest_epoch(self) -> Epoch:
        return self.history.latest_epoch

    def epoch_at(self, offset: Offset) -> Epoch:
        inside = self.start_offset <= offset < self.end_offset
        return self.history.epoch_at(offset) if inside else Epoch(-1)

    def end_offset_for_epoch(self, epoch: Epoch) -> EpochEndOffset:
        return self.history.end_offset_for(epoch, self.end_offset)

    def largest_epoch_up_to(self, epoch: Epoch) -> EpochEndOffset:
        return self.history.largest_epoch_up_to(epoch, self.end_offset)

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        if start < self.start_offset:
            return ()
        offsets = range(start, min(start + limit, self.end_offset))
        return tuple(Record(self.values[o - self.start_offset], self.epoch_at(Offset(o))) for o in offsets)

    def append(self, records: tuple[Record, ...]) -> "HistoryLog":
        history = self.history
        for offset, record in enumerate(records, start=self.end_offset):
            if record.leader_epoch != history.latest_epoch:
                history = history.assign(record.leader_epoch, Offset(offset))
        return HistoryLog(self.values + tuple(record.value for record in records), self.start_offset, history)

    def truncate_to(self, offset: Offset) -> "HistoryLog":
        end, start = min(offset, self.end_offset), min(offset, self.start_offset)
        kept = self.values[: max(end - self.start_offset, 0)]
        return HistoryLog(kept, start, self.history.truncate_from_end(end))

    def open_epoch(self, epoch: Epoch) -> "HistoryLog":
        return self if epoch == self.latest_epoch else self._replace(history=self.history.assign(epoch, self.end_offset))

    def holds_as(self, other: "HistoryLog", offset: Offset) -> bool:
        raise NotImplementedError("a broker sees no other broker's log")

    def agrees_below(self, other: "HistoryLog", end: Offset) -> bool:
        raise NotImplementedError("a broker sees no other broker's log")

    def agreement_end(self, other: "HistoryLog") -> Offset:
        raise NotImplementedError("a broker sees no other broker's log")
