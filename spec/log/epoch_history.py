"""The epoch history of a log: which leader epoch starts at which offset.

Kafka keeps it in memory and in the file `leader-epoch-checkpoint` (`LeaderEpochFileCache`). With it a follower finds the end
of the history that it shares with its leader: it asks about epochs, and compares no records.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from kspec.spec.values import NO_EPOCH, UNDEFINED_EPOCH_END, UNKNOWN_OFFSET, Epoch, EpochEndOffset, Offset


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """`leader_epoch` starts at `start_offset` in this log. Kafka: `EpochEntry`.

    It is not a tuple: a tuple would equal an `EpochEndOffset` of the same numbers.
    """

    leader_epoch: Epoch
    start_offset: Offset


NO_ENTRY = EpochEntry(NO_EPOCH, UNKNOWN_OFFSET)


class EpochHistory(NamedTuple):
    """Entries in growing order of both epoch and start offset; every method returns a new history or an answer.

    Kafka: `LeaderEpochFileCache`.
    """

    entries: tuple[EpochEntry, ...] = ()

    @property
    def pairs(self) -> tuple[tuple[Epoch, Offset], ...]:
        """Each epoch with its start offset: the lines of `leader-epoch-checkpoint`."""
        return tuple((entry.leader_epoch, entry.start_offset) for entry in self.entries)

    @property
    def latest_epoch(self) -> Epoch:
        """The last epoch of the history, `NO_EPOCH` when it is empty.

        **Kafka:** `LeaderEpochFileCache.latestEpoch`.
        """
        return self.entries[-1].leader_epoch if self.entries else NO_EPOCH

    @property
    def previous_epoch(self) -> Epoch:
        """The epoch before the latest one, `NO_EPOCH` if there is none.

        **Kafka:** `LeaderEpochFileCache.previousEpoch`.
        """
        return self.entries[-2].leader_epoch if len(self.entries) > 1 else NO_EPOCH

    def assign(self, epoch: Epoch, start_offset: Offset) -> "EpochHistory":
        """The history with `epoch` starting at `start_offset`; entries that contradict it are dropped.

        Nothing changes when `epoch` is already the latest and starts no later. Otherwise trailing entries are dropped first
        if they have the same or a higher epoch, or start at or after `start_offset`. So a *lower* epoch erases later ones,
        and an epoch that never got a record is replaced by its successor.

        **Kafka:** `LeaderEpochFileCache.assign`, `maybeTruncateNonMonotonicEntries`.
        """
        assert epoch >= 0, f"an epoch entry needs an epoch of at least 0, not {epoch}"
        assert start_offset >= 0, f"an epoch starts at an offset of at least 0, not {start_offset}"
        if self.entries and epoch == self.latest_epoch and start_offset >= self.entries[-1].start_offset:
            return self
        kept = len(self.entries)
        while kept and (self.entries[kept - 1].leader_epoch >= epoch or self.entries[kept - 1].start_offset >= start_offset):
            kept -= 1
        return EpochHistory((*self.entries[:kept], EpochEntry(epoch, start_offset)))

    def end_offset_for(self, epoch: Epoch, log_end_offset: Offset) -> EpochEndOffset:
        """The largest epoch up to `epoch`, with the offset at which it ends in a log that ends at `log_end_offset`.

        In Kafka's order of cases: no epoch asked: undefined. The latest: it ends where the log ends. No higher epoch
        known (an empty history, or `epoch` above the latest): undefined. All known epochs are higher: the answer names
        the epoch *asked*, ending where the first known one starts. Otherwise the largest known epoch up to the asked
        one ends where the next starts.

        **Kafka:** `LeaderEpochFileCache.endOffsetFor` (the case of a largest smaller epoch is KIP-279's).
        """
        if epoch == NO_EPOCH:
            return UNDEFINED_EPOCH_END
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        floor = NO_EPOCH
        for entry in self.entries:
            if entry.leader_epoch > epoch:
                return EpochEndOffset(epoch if floor == NO_EPOCH else floor, entry.start_offset)
            floor = entry.leader_epoch
        return UNDEFINED_EPOCH_END

    def largest_epoch_up_to(self, epoch: Epoch, log_end_offset: Offset) -> EpochEndOffset:
        """The same answer as KIP-279 designed it: always defined, with no epoch if all known ones are higher.

        Unlike `end_offset_for`, the latest epoch ends where the log ends even when a later one is asked about.

        **Kafka:** the text of KIP-279; `FirstNonMatchingOffsetFromTail` in `Kip279.tla` abbreviates an exchange of it.
        """
        floor = NO_EPOCH
        for entry in self.entries:
            if entry.leader_epoch > epoch:
                return EpochEndOffset(floor, entry.start_offset)
            floor = entry.leader_epoch
        return EpochEndOffset(floor, log_end_offset)

    def truncate_from_end(self, end_offset: Offset) -> "EpochHistory":
        """Drop entries that start at or after `end_offset`; a negative offset changes nothing.

        **Kafka:** `LeaderEpochFileCache.truncateFromEnd`.
        """
        if end_offset < 0 or not self.entries or self.entries[-1].start_offset < end_offset:
            return self
        return EpochHistory(tuple(entry for entry in self.entries if entry.start_offset < end_offset))

    def truncate_from_start(self, start_offset: Offset) -> "EpochHistory":
        """Drop the entries that end before `start_offset`; the epoch in force there stays, and now starts at it.

        **Kafka:** `LeaderEpochFileCache.truncateFromStart`.
        """
        dropped = [entry for entry in self.entries if entry.start_offset <= start_offset]
        if not dropped:
            return self
        in_force = EpochEntry(dropped[-1].leader_epoch, start_offset)
        return EpochHistory((in_force, *self.entries[len(dropped) :]))

    def epoch_at(self, offset: Offset) -> Epoch:
        """The epoch in force at `offset`, `NO_EPOCH` below the first entry.

        **Kafka:** `LeaderEpochFileCache.epochForOffset`.
        """
        index = bisect_right(self.entries, offset, key=attrgetter("start_offset"))
        return self.entries[index - 1].leader_epoch if index else NO_EPOCH

    def between(self, start: Offset, end: Offset) -> tuple[EpochEntry, ...]:
        """The epochs in force from `start` to `end`, which is exclusive; the first entry starts at `start`.

        It has no epoch (`NO_EPOCH`) if it lies below the history.
        """
        first = bisect_right(self.entries, start, key=attrgetter("start_offset"))
        last = bisect_left(self.entries, end, lo=first, key=attrgetter("start_offset"))
        return (EpochEntry(self.epoch_at(start), start), *self.entries[first:last])

    def entry_of(self, epoch: Epoch) -> EpochEntry:
        """The entry of exactly this epoch, `NO_ENTRY` if it has none. **Kafka:** `LeaderEpochFileCache.epochEntry`."""
        return next((entry for entry in self.entries if entry.leader_epoch == epoch), NO_ENTRY)

    def entry_before(self, epoch: Epoch) -> EpochEntry:
        """The last entry of a smaller epoch, `NO_ENTRY` if there is none.

        **Kafka:** `LeaderEpochFileCache.previousEntry`.
        """
        return next((entry for entry in reversed(self.entries) if entry.leader_epoch < epoch), NO_ENTRY)

    def epoch_after(self, epoch: Epoch) -> Epoch:
        """The first larger epoch, `NO_EPOCH` if there is none. **Kafka:** `LeaderEpochFileCache.nextEpoch`."""
        return next((entry.leader_epoch for entry in self.entries if entry.leader_epoch > epoch), NO_EPOCH)


# ---- the file


class Neighbours(NamedTuple):
    """The epochs of the batches on both sides of an offset in a log: of the last one that begins before it, and of the one
    that holds it or comes next. `NO_EPOCH` where there is none. A batch that holds it in its middle is both.
    """

    before: Epoch
    following: Epoch


def describes(
    history: EpochHistory, start_offset: Offset, end_offset: Offset, around: tuple[Neighbours, ...], last: Epoch
) -> bool:
    """Whether an epoch history tells the epochs of all batches of a log.

    Epochs never go back in a log, so it is enough to look at both sides of each entry, and at the last batch. A file that
    was lost, that is behind the log, or that is another log's does not tell them; the history is then made anew from all
    batches. The batches of an entry may be gone by compaction. Where no batch follows, up to a log's end that lies in a gap,
    and in a log without a record, there is only the file.

    Parameters: the history between the log's start and end; these two; the batches around the start of each entry; the epoch
    of the last batch, `NO_EPOCH` without one.

    **Kafka:** no release.
    """
    if start_offset == end_offset:
        return True
    known = NO_EPOCH
    for entry, (before, following) in zip(history.entries, around, strict=True):
        if entry.start_offset > start_offset and before > known:
            return False
        if NO_EPOCH < following < entry.leader_epoch:
            return False
        known = entry.leader_epoch
    return last <= known


def describes_any(
    history: EpochHistory, start_offset: Offset, end_offset: Offset, around: tuple[Neighbours, ...], last: Epoch
) -> bool:
    """The epochs in the file are believed, whatever the batches tell.

    A replica with an empty file has no epochs, and truncates to its high watermark when it follows. One whose file is behind
    names an epoch before its last, and truncates to where that ends.

    **Kafka:** `LogLoader.load`, `LeaderEpochFileCache`, from 0.11 on (KAFKA-16541, KAFKA-20961).

    **Leaves out:** a log directory with a file that cannot be read fails.
    """
    return True
