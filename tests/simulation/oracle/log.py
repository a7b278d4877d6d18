"""A log as the oracles see it: its records and its epochs, in plain Python."""

from typing import Any

from spec.log.record_log import RecordLog
from spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Offset


def latest_epoch(log: RecordLog) -> Epoch:
    """The epoch opened last, or that of the last record."""
    if log.opened_epoch != NO_EPOCH:
        return log.opened_epoch
    return log.records[-1].leader_epoch if log.records else NO_EPOCH


def end_of(log: RecordLog) -> Offset:
    """The offset after the last record."""
    return Offset(log.start_offset + len(log.records))


def epoch_end(log: RecordLog, epoch: Epoch) -> EpochEndOffset:
    """The largest epoch up to this one, and where the next begins; below all epochs, this one and where the first begins."""
    starts: dict[Epoch, int] = {}
    for place, record in enumerate(log.records):
        starts.setdefault(record.leader_epoch, log.start_offset + place)
    if log.opened_epoch != NO_EPOCH:
        starts[log.opened_epoch] = end_of(log)
    if epoch == NO_EPOCH or not starts or epoch > max(starts):
        return UNDEFINED_EPOCH_END
    later = [start for one, start in starts.items() if one > epoch]
    named = max([one for one in starts if one <= epoch], default=epoch)
    return EpochEndOffset(named, Offset(min(later)) if later else end_of(log))


def cut(log: RecordLog, offset: int) -> RecordLog:
    """The records before the offset; no opened epoch is left."""
    return RecordLog(log.records[: max(0, offset - log.start_offset)], Offset(min(log.start_offset, offset)))


def from_start(log: RecordLog, offset: Offset) -> RecordLog:
    """The records from the offset on; the epoch there stays known."""
    kept = log.records[offset - log.start_offset :]
    return RecordLog(kept, offset, log.opened_epoch if kept else latest_epoch(log))


def with_batches(log: RecordLog, batches: Any) -> RecordLog:
    """The log with more records."""
    if not batches:
        return log
    return RecordLog(log.records + tuple([one for batch in batches for one in batch.records]), log.start_offset)
