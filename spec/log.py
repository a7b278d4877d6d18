"""The log algebra: the few operations through which every rule touches a log.

A rule is written against `Log` and does not know what carries it. `RecordLog`, a tuple of records, is the carrier in
models. The laws that every carrier obeys are listed in `proofs/laws.py`.
"""

from typing import NamedTuple, Protocol, Self

from spec.epochs import EpochHistory
from spec.values import NO_EPOCH, Epoch, EpochEndOffset, Offset, Record


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

    def truncate_to(self, offset: Offset) -> Self:
        """The log without what lies at or after `offset`, and without an opened epoch that has no record (KAFKA-10706).

        **Kafka:** `UnifiedLog.truncateTo`.
        """

    def open_epoch(self, epoch: Epoch) -> Self:
        """The log with `epoch` starting at its end, even before any record; unchanged if that is its latest epoch.

        **Kafka:** `UnifiedLog.assignEpochStartOffset`.
        """

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
            if record.leader_epoch != history.latest_epoch:
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

    def truncate_to(self, offset: Offset) -> "RecordLog":
        if offset >= self.end_offset and self.opened_epoch == NO_EPOCH:
            return self
        start = min(self.start_offset, offset)
        return RecordLog(self.records[: max(offset - self.start_offset, 0)], start)

    def open_epoch(self, epoch: Epoch) -> "RecordLog":
        return self if epoch == self.latest_epoch else RecordLog(self.records, self.start_offset, epoch)

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
