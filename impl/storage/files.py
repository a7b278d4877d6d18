"""The files in a partition's folder that belong to segments: found, opened, begun, and deleted."""

import logging
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from kspec.impl.storage.config import LogConfig
from kspec.impl.storage.disk import Disk
from kspec.impl.storage.producer_state import ProducerState, ProducerStates, SnapshotError, from_bytes, to_bytes
from kspec.impl.storage.segment import Segment, base_of, file_name
from kspec.impl.storage.small_files import other_name, random_uuid
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.values import Offset, TimestampMs

LOGGER = logging.getLogger("kspec.storage")

LOG, INDEXES, SNAPSHOT = ".log", (".index", ".timeindex", ".txnindex"), ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"


class PartitionFolder:
    """A partition's folder on a disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        self.disk = disk
        self.path = path

    def names(self) -> list[str]:
        """The names in it, sorted."""
        return self.disk.listdir(self.path)

    def offsets_of(self, suffix: str) -> list[Offset]:
        """The offsets in the names of files of one kind, in order."""
        stems = (name.removesuffix(suffix) for name in self.names() if name.endswith(suffix))
        return sorted(Offset(int(stem)) for stem in stems if len(stem) == 20 and stem.isdecimal() and stem.isascii())

    def unlink(self, names: Iterable[str]) -> None:
        """Delete those of the files that exist."""
        for name in names:
            if self.disk.exists(f"{self.path}/{name}"):
                self.disk.unlink(f"{self.path}/{name}")

    def segment(
        self, base_offset: Offset, config: LogConfig, now_ms: TimestampMs, create: bool = False, suffix: str = ""
    ) -> Segment:
        """Open or create a segment."""
        return Segment(self.disk, self.path, base_offset, config.index_interval_bytes, now_ms, create, suffix)

    def names_of_segment(self, base_offset: Offset) -> list[str]:
        """The files of a segment; without `.log` the others are orphans, which a start deletes, so that is the first."""
        return [file_name(base_offset, suffix) for suffix in (LOG, *INDEXES)]

    def mark_deleted(self, segment: Segment) -> list[str]:
        """Rename the files of a segment so that a start deletes them. Their new paths."""
        segment.forget()
        marked = []
        for name in self.names_of_segment(segment.base_offset):
            path = f"{self.path}/{name}"
            if self.disk.exists(path):
                self.disk.rename(path, path + DELETED)
                marked.append(path + DELETED)
        return marked

    def unlink_segment(self, segment: Segment) -> None:
        """Delete a segment's files at once."""
        segment.forget()
        self.unlink(self.names_of_segment(segment.base_offset))

    def set_aside(self) -> "PartitionFolder":
        """Rename the folder to TOPIC-PARTITION.UUID-delete. **Kafka:** `UnifiedLog.logDeleteDirName`."""
        parent, _, name = self.path.rpartition("/")
        renamed = f"{parent}/{other_name(name, f'.{random_uuid().hex}-delete')}"
        self.disk.rename(self.path, renamed)
        self.disk.sync_folder(parent)
        return PartitionFolder(self.disk, renamed)

    # ---- compacted segments

    def new_cleaned(self, base_offset: Offset, config: LogConfig, now_ms: TimestampMs) -> Segment:
        """A segment to write compacted batches to: its files end in `.cleaned`."""
        self.unlink(name + CLEANED for name in self.names_of_segment(base_offset))
        return self.segment(base_offset, config, now_ms, create=True, suffix=CLEANED)

    def drop_cleaned(self, cleaned: Segment) -> None:
        """Forget such a segment: nothing comes of it."""
        cleaned.forget()
        self.unlink(name + CLEANED for name in self.names_of_segment(cleaned.base_offset))

    def mark_whole(self, cleaned: Segment) -> list[str]:
        """Sync such a segment's files, and rename them to `.swap`. Their paths without that, in the order for a start."""
        cleaned.finish()
        for handle in cleaned.handles(with_indexes=True):
            handle.sync()
        cleaned.forget()
        written = (*cleaned.paths, cleaned.aborted.path) if cleaned.aborted.exists else cleaned.paths
        stems = [path.removesuffix(CLEANED) for path in reversed(written)]
        for stem in stems:
            self.disk.rename(stem + CLEANED, stem + SWAP)
        self.disk.sync_folder(self.path)
        return stems

    def put_in_place(self, stems: Sequence[str]) -> None:
        """Give `.swap` files their names."""
        for stem in reversed(stems):
            self.disk.rename(stem + SWAP, stem)
        self.disk.sync_folder(self.path)

    # ---- snapshots of producers

    def write_snapshot(self, offset: Offset, states: Iterable[ProducerState], sync: bool = False) -> None:
        """Write the state of producers at an offset. If it is not synced, its checksum tells that it was lost."""
        self.disk.write_file(f"{self.path}/{file_name(offset, SNAPSHOT)}", to_bytes(states), sync)

    def latest_snapshot(self, log_start: Offset, log_end: Offset) -> tuple[Offset, tuple[ProducerState, ...]] | None:
        """The last valid snapshot above the log start up to the log end, and its offset.

        Those after the end, those up to the start and damaged ones are deleted, for good: one that came back after a loss of
        power would tell of batches that were cut, once the log is as long again. **Kafka:**
        `ProducerStateManager.truncateAndReload`, `loadFromSnapshot`.
        """
        unusable: list[str] = []
        latest = None
        for offset in reversed(self.offsets_of(SNAPSHOT)):
            name = file_name(offset, SNAPSHOT)
            if log_start < offset <= log_end:
                try:
                    latest = offset, from_bytes(self.disk.read_file(f"{self.path}/{name}"), offset)
                    break
                except SnapshotError as error:
                    LOGGER.info("%s/%s is not used: %s", self.path, name, error)
            unusable.append(name)
        if unusable:
            self.unlink(unusable)
            self.disk.sync_folder(self.path)
        return latest

    def unlink_snapshots(self, keep: Iterable[Offset]) -> None:
        """Delete the snapshots at all other offsets."""
        kept = set(keep)
        self.unlink(file_name(offset, SNAPSHOT) for offset in self.offsets_of(SNAPSHOT) if offset not in kept)

    def producers_in(
        self,
        segments: Sequence[Segment],
        log: EpochLog,
        expires: tuple[TimestampMs, int] | None,
        committed: Offset,
    ) -> ProducerStates:
        """The states of producers by the latest snapshot and the batches after it.

        Without a whole snapshot they come from all batches, after a clean stop as well, when Kafka would begin without.
        `expires`: the time, and after how long producers in the snapshot are left out. `committed`: the offset below which
        the ends of transactions are known to be committed, so that nobody asks for them. **Kafka:**
        `ProducerStateManager.loadFromSnapshot`.
        """
        snapshot = self.latest_snapshot(log.start_offset, log.end_offset)
        start, known = snapshot or (log.start_offset, ())
        states = ProducerStates(known)
        if expires is not None:
            states.expire(*expires)
        number = max(bisect_right(segments, start, key=base_of) - 1, 0)
        for segment in segments[number:]:
            first = segment.find(start)
            for header in segment.headers(first.position) if first else ():
                states.remember(header, segment.marker(header))
                if header.control and header.base_offset < committed:
                    states.forget_ended()
        return states

    def index_aborted(self, segments: Sequence[Segment], numbers: Iterable[int], log_start: Offset) -> None:
        """Make the indexes of aborted transactions of some segments anew, from the batches.

        **Kafka:** `UnifiedLog.rebuildProducerState` up to the segment, and `LogSegment.recover`.
        """
        states, done = ProducerStates(), -1
        for number in sorted(numbers):
            segment = segments[number]
            if number != done + 1 or done < 0:
                states = self._states_at(segments[:number], log_start, segment.base_offset)
            found = []
            for header in segment.headers():
                if header.next_offset > log_start:
                    found.append(states.remember(header, segment.marker(header)))
                    states.forget_ended()
            segment.aborted.replace(one for one in found if one is not None)
            done = number

    def _states_at(self, segments: Sequence[Segment], log_start: Offset, offset: Offset) -> ProducerStates:
        """The states of producers at the end of some segments, by a snapshot there, or by all of their batches."""
        try:
            name = file_name(offset, SNAPSHOT)
            if log_start < offset and self.disk.exists(f"{self.path}/{name}"):
                return ProducerStates(from_bytes(self.disk.read_file(f"{self.path}/{name}"), offset))
        except SnapshotError as error:
            LOGGER.info("%s/%s is not used: %s", self.path, name, error)
        states = ProducerStates()
        for segment in segments:
            for header in segment.headers():
                if header.next_offset > log_start:
                    states.remember(header, segment.marker(header))
                    states.forget_ended()
        return states
