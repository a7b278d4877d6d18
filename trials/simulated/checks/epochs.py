"""Epochs of logs, and what leaders have committed: a log holds that if it has the same epochs at the same offsets."""

from contextlib import suppress
from dataclasses import dataclass
from typing import TypeAlias

from kspec.impl.broker.replica import Replica
from kspec.impl.storage import InvalidSegmentError
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.values import Offset

Stretches: TypeAlias = tuple[EpochEntry, ...]
"""The epochs of a part of a log, from its start on, with their first offsets."""


def _from(start_offset: int, known: Stretches) -> Stretches:
    """The stretches from an offset on, where what is before it is deleted."""
    return EpochHistory(known).truncate_from_start(Offset(start_offset)).entries if start_offset else known


def stretches(log: EpochLog, end_offset: int) -> Stretches:
    """The epochs of a log below an offset."""
    return log.epoch_history.truncate_from_end(Offset(end_offset)).entries


def stretches_of_batches(replica: Replica, end_offset: int) -> Stretches:
    """The epochs of the whole batches in the files of a log below an offset, whatever its epoch history says."""
    known = EpochHistory()
    with suppress(InvalidSegmentError):  # a write that failed has left a part of a batch
        for segment in replica.files.segments:
            for header in segment.headers():
                if header.leader_epoch > known.latest_epoch:
                    known = known.assign(header.leader_epoch, header.base_offset)
    return known.truncate_from_end(Offset(end_offset)).truncate_from_start(replica.files.log.start_offset).entries


@dataclass(frozen=True, slots=True)
class CommittedPrefix:
    """The committed part of a partition, by the high watermarks of all its leaders: its end and its epochs."""

    end_offset: int = 0
    stretches: Stretches = ()

    def between(self, start_offset: int, end_offset: int) -> Stretches:
        """The part of it from one offset up to another."""
        return EpochHistory(_from(start_offset, self.stretches)).truncate_from_end(Offset(end_offset)).entries

    def grown(self, start_offset: int, end_offset: int, shown: Stretches) -> "CommittedPrefix":
        """The same with what a leader shows whose log starts at an offset; what is before that stays as it is known."""
        known = EpochHistory(self.stretches).truncate_from_end(Offset(start_offset)).entries if start_offset else ()
        goes_on = bool(known and shown and known[-1].leader_epoch == shown[0].leader_epoch)
        return CommittedPrefix(end_offset, (*known, *shown[goes_on:]))


def in_words(found: Stretches) -> str:
    """The last epochs of a log, each with its first offset."""
    told = ", ".join(f"{entry.leader_epoch} from {entry.start_offset}" for entry in found[-5:])
    return f"epochs {told}" if told else "nothing"
