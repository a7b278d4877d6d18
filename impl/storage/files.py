"""The files in a partition's folder that belong to segments: found, opened, begun, and deleted."""

from collections.abc import Iterable

from impl.storage.config import LogConfig
from impl.storage.disk import Disk
from impl.storage.producer_state import ProducerState, SnapshotError, from_bytes, to_bytes
from impl.storage.segment import Segment, file_name
from spec.values import Offset

LOG, INDEXES, SNAPSHOT = ".log", (".index", ".timeindex", ".txnindex"), ".snapshot"
DELETED, CLEANED, SWAP = ".deleted", ".cleaned", ".swap"


class Folder:
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
        self, base_offset: Offset, config: LogConfig, now_ms: int, create: bool = False, suffix: str = ""
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

    # ---- snapshots of producers

    def write_snapshot(self, offset: Offset, states: Iterable[ProducerState], sync: bool = False) -> None:
        """Write the state of producers at an offset. If it is not synced, its checksum tells that it was lost."""
        self.disk.write_file(f"{self.path}/{file_name(offset, SNAPSHOT)}", to_bytes(states), sync)

    def latest_snapshot(self, log_start: Offset, log_end: Offset) -> tuple[Offset, tuple[ProducerState, ...]] | None:
        """The last valid snapshot above the log start up to the log end, and its offset.

        Those after the end, those up to the start and damaged ones are deleted. **Kafka:**
        `ProducerStateManager.truncateAndReload`, `loadFromSnapshot`.
        """
        for offset in reversed(self.offsets_of(SNAPSHOT)):
            if log_start < offset <= log_end:
                try:
                    return offset, from_bytes(self.disk.read_file(f"{self.path}/{file_name(offset, SNAPSHOT)}"))
                except SnapshotError:
                    pass
            self.unlink([file_name(offset, SNAPSHOT)])
        return None

    def unlink_snapshots(self, keep: Iterable[Offset]) -> None:
        """Delete the snapshots at all other offsets."""
        kept = set(keep)
        self.unlink(file_name(offset, SNAPSHOT) for offset in self.offsets_of(SNAPSHOT) if offset not in kept)
