"""The log algebra: the few operations through which every rule touches a log.

A rule is written against `Log` and does not know what carries it. `RecordLog`, a tuple of records, is the carrier in
models; `EpochLog`, an epoch history between two offsets, is the carrier in a broker, whose records lie in files. The
laws that every carrier obeys are listed in `proofs/laws.py`.
"""

from typing import NamedTuple, Protocol, Self

from spec.epochs import EpochEntry, EpochHistory
from spec.values import NO_EPOCH, NO_VALUE, Epoch, EpochEndOffset, Offset, Record


class Log(Protocol):
    """What a rule may ask of a log and do to it. All values are immutable: a change returns a new log."""

    @property
    def start_offset(self) -> Offset:
        """Offset of the first record kept. **Kafka:** `UnifiedLog.logStartOffset`."""

    @property
    def end_offset(self) -> Offset:
        """Offset that the next record will get. **Kafka:** `UnifiedLog.logEndOffset`."""

    @property
    def latest_epoch(self) -> Epoch:
        """The latest epoch of the log's epoch history, `NO_EPOCH` if it has none. **Kafka:** `UnifiedLog.latestEpoch`."""

    def epoch_at(self, offset: Offset) -> Epoch:
        """Leader epoch of the record at `offset`, `NO_EPOCH` where the log holds none."""

    def end_offset_for_epoch(self, epoch: Epoch) -> EpochEndOffset:
        """The largest epoch up to `epoch` and its end. **Kafka:** `UnifiedLog.endOffsetForEpoch`."""

    def largest_epoch_up_to(self, epoch: Epoch) -> EpochEndOffset:
        """The largest epoch up to `epoch` and its end, as KIP-279 designed it: defined for every epoch."""

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        """At most `limit` records from `start` on. **Kafka:** `UnifiedLog.read`."""

    def append(self, records: tuple[Record, ...]) -> Self:
        """The log with `records` at its end. **Kafka:** `UnifiedLog.append`."""

    def append_at(self, base_offset: Offset, records: tuple[Record, ...]) -> Self:
        """The log with `records` from `base_offset` on, not before its end; what lies in between holds no record.

        Such a gap is where compaction has removed records from the leader's log. **Kafka:** `UnifiedLog.appendAsFollower`.
        """

    def truncate_to(self, offset: Offset) -> Self:
        """The log without what lies at or after `offset`, and without an opened epoch that has no record (KAFKA-10706).

        **Kafka:** `UnifiedLog.truncateTo`.
        """

    def start_at(self, offset: Offset) -> Self:
        """The log without what lies before `offset`, which is within it; the epoch in force there stays known.

        **Kafka:** `UnifiedLog.updateLogStartOffset` with `LeaderEpochFileCache.truncateFromStart`.
        """

    def restart_at(self, offset: Offset) -> Self:
        """An empty log without any epoch, that starts and ends at `offset`.

        **Kafka:** `UnifiedLog.truncateFullyAndStartAt`.
        """

    def open_epoch(self, epoch: Epoch) -> Self:
        """The log with `epoch` starting at its end, even before any record; unchanged if that is its latest epoch.

        **Kafka:** `UnifiedLog.assignEpochStartOffset`.
        """

    def without_values(self) -> Self:
        """The log with `NO_VALUE` in every record: what its epochs alone tell."""

    def holds_as(self, other: Self, offset: Offset) -> bool:
        """Whether both logs hold a record at `offset`, and the same one."""

    def agrees_below(self, other: Self, end: Offset) -> bool:
        """Whether both logs hold the same records at all offsets from 0 up to `end`, which is exclusive."""

    def agreement_end(self, other: Self) -> Offset:
        """The offset after the last one at which both logs hold the same record; their lower start if there is none.

        No broker can see this, for it compares two replicas' logs: it abbreviates a whole exchange of messages, and
        properties are stated with it.
        """


class RecordLog(NamedTuple):
    """A log as a tuple of records: the carrier in models.

    Its epoch history follows from its records, except for an epoch that a leader has opened and not yet written in.
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

    def read(self, start: Offset, limit: int) -> tuple[Record, ...]:
        position = start - self.start_offset
        return self.records[position : position + limit] if position >= 0 else ()

    def append(self, records: tuple[Record, ...]) -> "RecordLog":
        if not records:
            return self
        return RecordLog(self.records + records, self.start_offset)

    def append_at(self, base_offset: Offset, records: tuple[Record, ...]) -> "RecordLog":
        assert base_offset >= self.end_offset, (
            f"records at {base_offset} would overwrite a log that ends at {self.end_offset}"
        )
        gap = base_offset - self.end_offset
        if gap:
            return RecordLog(self.records + (Record(NO_VALUE, self.latest_epoch),) * gap + records, self.start_offset)
        return self.append(records)

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


EMPTY_LOG = RecordLog()
EMPTY_EPOCH_LOG = EpochLog()
