"""What a replica has stored: the fold of its `Persist` effects, and of nothing else.

It is written without the log algebra, so that an error in the algebra, or an effect that is missing, out of order or
different from what the broker keeps in memory, shows as a difference of the two.
"""

from typing import Any

from spec.broker.effects import (
    BatchesAppended,
    EpochOpened,
    LogChange,
    LogDeleted,
    LogRestarted,
    LogStartMoved,
    LogTruncated,
)
from spec.broker.recovery import Checkpoints, recovery_point_after_truncation
from spec.log.record_log import RecordLog
from spec.values import NO_EPOCH, Epoch, Offset


class StoredWronglyError(Exception):
    """An effect that cannot be carried out on what is stored."""


class Disk:
    """The stored log of one replica, its checkpoint files, and how much of the log is flushed."""

    __slots__ = ("checkpoints", "flushed", "opened_epoch", "records", "start")

    def __init__(self) -> None:
        self.records: list[Any] = []
        self.start = 0
        self.opened_epoch = NO_EPOCH
        self.flushed = 0
        self.checkpoints = Checkpoints()

    @property
    def end(self) -> int:
        return self.start + len(self.records)

    @property
    def latest_epoch(self) -> Epoch:
        if self.opened_epoch != NO_EPOCH:
            return self.opened_epoch
        latest: Epoch = self.records[-1].leader_epoch if self.records else NO_EPOCH
        return latest

    def holds(self, log: RecordLog) -> bool:
        """Whether a log is the stored one, values included."""
        if log.start_offset != self.start or log.opened_epoch != self.opened_epoch:
            return False
        return log.records == tuple(self.records)

    def as_log(self) -> RecordLog:
        """The stored log as a starting broker reads it."""
        return RecordLog(tuple(self.records), Offset(self.start), self.opened_epoch)

    def replace(self, log: RecordLog) -> None:
        """What is stored once a starting broker has opened and repaired it."""
        self.records, self.start, self.opened_epoch = list(log.records), log.start_offset, log.opened_epoch
        self._limit_flushed()

    def store(self, change: LogChange) -> None:
        """Carry out one change."""
        match change:
            case BatchesAppended(base_offset, batches):
                if base_offset != self.end:
                    raise StoredWronglyError(f"batches at {base_offset} in a log that ends at {self.end}")
                for batch in batches:
                    self.records.extend(batch.records)
                if batches:
                    self.opened_epoch = NO_EPOCH
            case LogTruncated(end_offset):
                if end_offset > self.end:
                    raise StoredWronglyError(f"cut at {end_offset} of a log that ends at {self.end}")
                del self.records[max(0, end_offset - self.start) :]
                self.start, self.opened_epoch = min(self.start, end_offset), NO_EPOCH
            case LogRestarted(offset):
                self.records, self.start, self.opened_epoch = [], offset, NO_EPOCH
            case LogStartMoved(start_offset):
                if not self.start < start_offset <= self.end:
                    raise StoredWronglyError(f"start at {start_offset} in a log from {self.start} to {self.end}")
                latest = self.latest_epoch
                del self.records[: start_offset - self.start]
                self.start = start_offset
                if not self.records:
                    self.opened_epoch = latest
            case EpochOpened(leader_epoch, start_offset):
                if start_offset != self.end or leader_epoch <= self.latest_epoch:
                    raise StoredWronglyError(f"epoch {leader_epoch} at {start_offset} in {self.as_log()}")
                self.opened_epoch = leader_epoch
            case LogDeleted():
                self.records, self.start, self.opened_epoch = [], 0, NO_EPOCH
                self.checkpoints = Checkpoints()
        self._limit_flushed()

    def _limit_flushed(self) -> None:
        self.flushed = min(self.flushed, self.end)
        point = recovery_point_after_truncation(self.checkpoints.recovery_point, Offset(self.end))
        if point != self.checkpoints.recovery_point:
            self.checkpoints = self.checkpoints._replace(recovery_point=point)
