"""The part of a partition that is on the disk for certain: its recovery point, and the files to be synced to move that."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from kspec.impl.storage.config import NEVER, LogConfig
from kspec.impl.storage.disk import Disk, Handle
from kspec.impl.storage.files import PartitionFolder
from kspec.impl.storage.segment import Segment, base_of
from kspec.impl.storage.small_files import PARTITION_METADATA
from kspec.spec.broker.recovery import recovery_point_after_truncation
from kspec.spec.values import MonotonicMs, Offset


@dataclass(frozen=True, slots=True)
class FlushJob:
    """The files to be synced so that everything before `up_to` is on the disk. `run` may be called in another thread."""

    disk: Disk
    handles: tuple[Handle, ...]
    folders: tuple[str, ...]
    up_to: Offset
    active: Offset
    generation: int
    names: int

    def run(self) -> None:
        """Sync the files, and the folders if they have new ones."""
        for handle in self.handles:
            handle.sync()
        for folder in self.folders:
            if self.disk.exists(folder):
                self.disk.sync_folder(folder)


class FlushedPart:
    """The part of a partition that is on the disk. `generation`: the number of cuts of the log since it was opened."""

    __slots__ = ("generation", "is_new", "last_flush", "names", "recovery_point", "synced_names")

    def __init__(self, now_ms: MonotonicMs) -> None:
        self.recovery_point = Offset(0)
        self.generation = 0
        self.last_flush = now_ms
        self.names = self.synced_names = 0
        """The number of new names in the folder, and of those that are synced."""
        self.is_new = False
        """Whether the folder itself, and the file that says whose partition it is, are not synced yet."""

    def cut(self, offset: Offset) -> bool:
        """Note that the log is cut; whether the recovery point is lower now."""
        self.generation += 1
        before, self.recovery_point = self.recovery_point, recovery_point_after_truncation(self.recovery_point, offset)
        return self.recovery_point < before

    def job(self, folder: PartitionFolder, segments: Sequence[Segment], end_offset: Offset) -> FlushJob:
        """The files that are to be synced.

        The indexes of the active segment are left out: it holds the recovery point, so a start makes them anew.
        """
        active = segments[-1]
        first = max(bisect_right(segments, self.recovery_point, key=base_of) - 1, 0)
        handles = [handle for segment in segments[first:] for handle in segment.handles(with_indexes=segment is not active)]
        folders = [folder.path] if self.names > self.synced_names or self.is_new else []
        if self.is_new:
            handles.append(folder.disk.open(f"{folder.path}/{PARTITION_METADATA}").handle())
            folders.append(folder.path.rpartition("/")[0])
        base, generation = active.base_offset, self.generation
        return FlushJob(folder.disk, tuple(handles), tuple(folders), end_offset, base, generation, self.names)

    def note(self, job: FlushJob, segments: Sequence[Segment], now_ms: MonotonicMs) -> None:
        """A job has run. If the log was cut meanwhile, it does not count.

        The indexes of the segment that was active are not synced. If it has been rolled meanwhile, the recovery point stays
        within it.
        """
        if job.generation != self.generation:
            return
        number = bisect_right(segments, job.active, key=base_of)
        is_within = number == len(segments) or job.up_to < segments[number].base_offset
        self.recovery_point = max(self.recovery_point, job.up_to if is_within else job.active)
        self.synced_names = max(self.synced_names, job.names)
        self.last_flush = now_ms
        self.is_new = False

    def is_due(self, config: LogConfig, active: Segment, end_offset: Offset, now_ms: MonotonicMs) -> bool:
        """Whether a segment was rolled since the last flush, or flush.ms have passed with records to flush."""
        if self.recovery_point >= end_offset:
            return False
        return self.recovery_point < active.base_offset or now_ms - self.last_flush >= config.flush_ms

    def may_be_due(self, config: LogConfig, active: Segment, end_offset: Offset) -> bool:
        """Whether a flush may be due later, though nothing is written meanwhile."""
        if self.recovery_point >= end_offset:
            return False
        return config.flush_ms < NEVER or self.recovery_point < active.base_offset
