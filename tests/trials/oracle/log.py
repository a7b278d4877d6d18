"""A log as the oracles see it: its start, its end, and the offset at which each of its epochs begins."""

from itertools import pairwise
from typing import Any

from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, Epoch, EpochEndOffset, Offset


def starts_of(log: EpochLog) -> list[tuple[int, int]]:
    """Each epoch of the log with its first offset."""
    return [(entry.leader_epoch, entry.start_offset) for entry in log.epoch_history.entries]


def log_of(starts: list[tuple[int, int]], start: int, end: int) -> EpochLog:
    """The log with these epochs."""
    entries = tuple(EpochEntry(Epoch(epoch), Offset(offset)) for epoch, offset in starts)
    return EpochLog(EpochHistory(entries), Offset(start), Offset(end))


def latest_epoch(log: EpochLog) -> Epoch:
    """The epoch opened last, or that of the last record."""
    return Epoch(max((epoch for epoch, _ in starts_of(log)), default=NO_EPOCH))


def end_of(log: EpochLog) -> Offset:
    """The offset after the last record."""
    return log.end_offset


def epoch_at(log: EpochLog, offset: int) -> Epoch:
    """The epoch of the record at an offset, or the one opened there."""
    return Epoch(max((epoch for epoch, start in starts_of(log) if start <= offset), default=NO_EPOCH))


def epoch_end(log: EpochLog, epoch: Epoch) -> EpochEndOffset:
    """The largest epoch up to this one, and where the next begins; below all epochs, this one and where the first begins."""
    starts = dict(starts_of(log))
    if epoch == NO_EPOCH or not starts or epoch > max(starts):
        return UNDEFINED_EPOCH_END
    later = [start for one, start in starts.items() if one > epoch]
    named = max([one for one in starts if one <= epoch], default=epoch)
    return EpochEndOffset(Epoch(named), Offset(min(later)) if later else end_of(log))


def read(log: EpochLog, offset: int, end: int) -> tuple[Batch, ...]:
    """The records from one offset up to another: how many there are of each epoch."""
    edges = [offset, *[start for _, start in starts_of(log) if offset < start < end], end]
    pairs = pairwise(edges)
    return tuple(Batch(second - first, epoch_at(log, first)) for first, second in pairs if second > first)


def cut(log: EpochLog, offset: int) -> EpochLog:
    """The records before the offset; an epoch that was opened there, or later, is gone."""
    end = min(offset, log.end_offset)
    return log_of([one for one in starts_of(log) if one[1] < end], min(log.start_offset, offset), end)


def from_start(log: EpochLog, offset: int) -> EpochLog:
    """The records from the offset on; the epoch there stays known, and begins there."""
    kept = [one for one in starts_of(log) if one[1] > offset]
    there = epoch_at(log, offset)
    return log_of(kept if there == NO_EPOCH else [(there, offset), *kept], offset, log.end_offset)


def opened(log: EpochLog, epoch: Epoch) -> EpochLog:
    """The log with an epoch that begins at its end; one that has no records is forgotten."""
    end = log.end_offset
    return log_of([*[one for one in starts_of(log) if one[1] < end], (epoch, end)], log.start_offset, end)


def with_batches(log: EpochLog, base: Offset, batches: Any) -> EpochLog:
    """The log with more records, the first of them at `base`."""
    starts, end = starts_of(log), log.end_offset
    for batch in batches:
        if batch.leader_epoch > latest_epoch(log_of(starts, 0, 0)):
            starts = [*[one for one in starts if one[1] < base], (batch.leader_epoch, base)]
        base = end = Offset(base + batch.record_count)
    return log_of(starts, log.start_offset, end)
