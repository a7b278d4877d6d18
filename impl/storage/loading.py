"""Opening a partition's folder: what was left half done is finished or undone; after an unclean stop batches are checked.

**Kafka:** `LogLoader`.
"""

from typing import NamedTuple

from impl.storage.config import LogConfig
from impl.storage.files import CLEANED, DELETED, INDEXES, LOG, SWAP, Folder
from impl.storage.segment import Segment, file_name
from spec.broker.recovery import Checkpoints, Recovered, Survived, recover, recovered_epochs
from spec.log.epoch_history import EpochEntry, EpochHistory
from spec.log.epoch_log import EpochLog
from spec.log.segments import continues
from spec.values import NO_EPOCH, Offset


class Loaded(NamedTuple):
    """The segments of a log, at least one, and the log as `spec` says it is now."""

    segments: list[Segment]
    recovered: Recovered[EpochLog]


def load(
    folder: Folder, config: LogConfig, checkpoints: Checkpoints, clean: bool, epochs: EpochHistory, now_ms: int
) -> Loaded:
    """Open the segments in a folder.

    Parameters: the partition's offsets in the files of the directory; whether the broker stopped cleanly; the history in
    `leader-epoch-checkpoint`.
    """
    finish_replacement(folder, config, now_ms)
    remove_orphans(folder)
    found: list[EpochEntry] = []
    segments = [folder.segment(base, config, now_ms) for base in folder.offsets_of(LOG)]
    first_unflushed = len(segments) if clean else segment_of(segments, checkpoints.recovery_point)
    for number, segment in enumerate(segments):
        end_before = segments[number - 1].next_offset if number > first_unflushed else segment.base_offset
        if not continues(end_before, segment.base_offset, config.compacts):
            drop(folder, segments, number)
            break
        is_damaged = segment.indexes_missing or segment.offsets.is_damaged or segment.times.is_damaged
        if number < first_unflushed and not is_damaged:
            continue
        if not check(segment, found) and number >= first_unflushed:
            drop(folder, segments, number + 1)
            break
    if not segments:
        segments = [folder.segment(checkpoints.log_start, config, now_ms, create=True)]
    start, end = segments[0].base_offset, segments[-1].next_offset
    log = EpochLog(recovered_epochs(epochs, start, end, tuple(found)), start, end)
    recovered = recover(Survived(log, checkpoints, clean))
    if recovered.local.log.end_offset != end:
        segments = restarted(folder, segments, recovered.local.log.end_offset, config, now_ms)
    return Loaded(segments, recovered)


def segment_of(segments: list[Segment], offset: Offset) -> int:
    """The number of the segment in which an offset lies."""
    return max(sum(segment.base_offset <= offset for segment in segments) - 1, 0)


def drop(folder: Folder, segments: list[Segment], first: int) -> None:
    """Delete segments from a number on, the last one first."""
    while len(segments) > first:
        folder.unlink_segment(segments.pop())


def check(segment: Segment, found: list[EpochEntry]) -> bool:
    """Check all batches of a segment, and note the epochs in it; whether nothing had to be cut."""
    size = segment.size
    for header in segment.recover():
        latest = found[-1].leader_epoch if found else NO_EPOCH
        if header.leader_epoch > latest:
            found.append(EpochEntry(header.leader_epoch, header.base_offset))
    segment.finish()
    return segment.size == size


def restarted(folder: Folder, segments: list[Segment], offset: Offset, config: LogConfig, now_ms: int) -> list[Segment]:
    """Delete all segments; the log goes on with a new one at `offset`."""
    for segment in reversed(segments):
        folder.unlink_segment(segment)
    folder.unlink_snapshots(())
    return [folder.segment(offset, config, now_ms, create=True)]


def remove_orphans(folder: Folder) -> None:
    """Delete files that a deletion has left, and indexes without their `.log`."""
    names = folder.names()
    folder.unlink(name for name in names if name.endswith(DELETED))
    for suffix in INDEXES:
        without = [base for base in folder.offsets_of(suffix) if file_name(base, LOG) not in names]
        folder.unlink(file_name(base, suffix) for base in without)


def finish_replacement(folder: Folder, config: LogConfig, now_ms: int) -> None:
    """After a compaction that was interrupted: `.cleaned` files are deleted, `.swap` files take their segments' place.

    A `.swap` file beside a `.cleaned` file of a lower offset belongs to a replacement that had not begun. It goes, too.

    **Kafka:** `LogLoader.load`, `removeTempFilesAndCollectSwapFiles`.
    """
    names = folder.names()
    cleaned = [name for name in names if name.endswith(CLEANED)]
    swaps = [name for name in names if name.endswith(SWAP)]
    lowest = min((int(name.split(".", 1)[0]) for name in cleaned), default=None)
    invalid = [name for name in swaps if lowest is not None and int(name.split(".", 1)[0]) >= lowest]
    folder.unlink([*invalid, *cleaned])
    swaps = [name for name in swaps if name not in invalid]
    for name in swaps:
        if name.endswith(LOG + SWAP):
            base = Offset(int(name.split(".", 1)[0]))
            end = folder.segment(base, config, now_ms, suffix=SWAP).next_offset
            replaced = [one for one in folder.offsets_of(LOG) if base <= one < end]
            folder.unlink(one for old in replaced for one in folder.names_of_segment(old))
    for name in swaps:
        folder.disk.rename(f"{folder.path}/{name}", f"{folder.path}/{name.removesuffix(SWAP)}")
    if swaps:
        folder.disk.sync_folder(folder.path)
