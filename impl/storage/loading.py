"""Opening a partition's folder: what was left half done is finished or undone; after an unclean stop batches are checked.

**Kafka:** `LogLoader`.
"""

import logging
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from kspec.impl.records.batch import BatchHeader
from kspec.impl.storage.config import LogConfig
from kspec.impl.storage.disk import StorageError
from kspec.impl.storage.files import CLEANED, DELETED, INDEXES, LOG, SWAP, PartitionFolder
from kspec.impl.storage.segment import InvalidSegmentError, Segment, file_name
from kspec.impl.storage.small_files import LEADER_EPOCHS, LOG_STARTS, PARTITION_METADATA
from kspec.spec.broker.recovery import (
    CheckpointedOffsets,
    EpochOrder,
    RecoveredLog,
    SurvivingFiles,
    begins_as_left,
    explains_start,
    is_clean_for,
    next_epoch,
    recover,
    recovered_epochs,
)
from kspec.spec.log.epoch_history import EpochEntry, EpochHistory, Neighbours, describes
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.log.segments import continues, is_too_long
from kspec.spec.values import NO_EPOCH, Epoch, Offset, TimestampMs

LOGGER = logging.getLogger("kspec.storage")

OF_SEGMENT = re.compile(r"\d{20}\.")
"""The beginning of the name of a segment's file, whatever state it is in."""


BelievesEpochs: TypeAlias = Callable[[EpochHistory, Offset, Offset, tuple[Neighbours, ...], Epoch], bool]
"""The rule that says whether the epochs in the file of a log are believed: `BrokerProtocol.believes_epochs`."""


class LoadedLog(NamedTuple):
    """The segments of a log, at least one, and the log as `spec` says it is now."""

    segments: list[Segment]
    recovered: RecoveredLog[EpochLog]


def load(
    folder: PartitionFolder,
    config: LogConfig,
    checkpoints: CheckpointedOffsets,
    clean: bool,
    epochs: EpochHistory,
    now_ms: TimestampMs,
    was_compacted: bool = False,
    believes: BelievesEpochs = describes,
) -> LoadedLog:
    """Open the segments in a folder.

    What was flushed must be whole, but for its indexes, which are made anew if they are wrong. What was not flushed is
    checked batch by batch, and cut at the first invalid one: so is the whole last segment of a log that does not end as it
    did when the broker stopped cleanly.

    Parameters: the partition's offsets in the files of the directory; whether the broker stopped cleanly; the history in
    `leader-epoch-checkpoint`; whether the log was compacted once, by `cleaner-offset-checkpoint`; whether the
    epochs in the file are believed.

    Raises: `StorageError`, if what was flushed is damaged: the files stay as they are.
    """
    finish_replacement(folder, config, now_ms)
    remove_orphans(folder)
    segments = [folder.segment(base, config, now_ms) for base in folder.offsets_of(LOG)]
    may_have_gaps = was_compacted or config.compacts
    is_clean = clean
    is_emptied = not segments and checkpoints.recovery_point > 0
    if is_emptied and (clean or not {PARTITION_METADATA, LEADER_EPOCHS} & set(folder.names())):
        # a log that was about to begin anew when the power was lost has no segment, and its other files
        raise StorageError(f"{folder.path} has no segment, and was flushed up to offset {checkpoints.recovery_point}")
    if clean:
        end = end_of(segments)
        is_clean = end is not None and is_clean_for(clean, checkpoints.recovery_point, end)
        if not is_clean:
            told = "does not end with a whole batch" if end is None else f"ends at offset {end}"
            LOGGER.warning("%s %s, and ended at %d when the broker stopped", folder.path, told, checkpoints.recovery_point)
    found: list[EpochEntry] = []
    first_unflushed = len(segments) if is_clean else segment_of(segments, checkpoints.recovery_point)
    _look_at_flushed(segments, first_unflushed, may_have_gaps)
    _recover(folder, segments, first_unflushed, config, found, is_loud=clean)
    if not segments:
        segments = [folder.segment(checkpoints.log_start, config, now_ms, create=True)]
    start, end = segments[0].base_offset, segments[-1].next_offset
    if not explains_start(is_clean, checkpoints.log_start, end):
        raise StorageError(
            f"{folder.path} ends at offset {end}, and {LOG_STARTS} says that it starts at {checkpoints.log_start}"
        )
    start_now = max(start, min(checkpoints.log_start, end))
    if is_clean and not begins_as_left(epochs, start_now):
        LOGGER.warning("%s begins at offset %d, and began before that when the broker stopped", folder.path, start_now)
    history = recovered_epochs(epochs, start_now, end, tuple(found))
    if not _is_believed(believes, history, segments, start_now):
        history = _epochs_of(folder, segments, start_now)
    log = EpochLog(history, start, end)
    recovered = recover(SurvivingFiles(log, checkpoints, is_clean))
    _mend_aborted(folder, segments, first_unflushed, start_now)
    if recovered.local.log.end_offset != end:
        segments = restarted(folder, segments, recovered.local.log.end_offset, config, now_ms)
    return LoadedLog(segments, recovered)


def end_of(segments: list[Segment]) -> Offset | None:
    """The end of the last whole batch of a log, as its last segment tells; none if that is damaged at its end."""
    try:
        if segments:
            mend_indexes(segments[-1])
        return segments[-1].next_offset if segments else Offset(0)
    except InvalidSegmentError as error:
        LOGGER.warning("%s", error)
        return None


def last_segment_end(folder: PartitionFolder) -> Offset | None:
    """The end of the last whole batch of a log, by its last segment; none if that cannot be told. No batch is changed."""
    try:
        bases = folder.offsets_of(LOG)
        if not bases:
            return Offset(0)
        segment = folder.segment(bases[-1], LogConfig(), TimestampMs(0))
        mend_indexes(segment)
        end = segment.next_offset
        segment.forget()
    except (OSError, StorageError):
        return None
    return end


def mend_indexes(segment: Segment) -> None:
    """Make the indexes anew, if one is missing or cannot be right by its length. Raises: `InvalidSegmentError`."""
    if segment.indexes_missing:
        segment.rebuild_indexes("one of them was missing")
    elif segment.offsets.is_damaged or segment.times.is_damaged:
        segment.rebuild_indexes("the length of one, or its order, is impossible")


def _look_at_flushed(segments: list[Segment], first_unflushed: int, may_have_gaps: bool) -> None:
    """Look at the segments that are not checked: at their indexes, their ends, and that none is missing between them.

    Raises: `StorageError`.
    """
    for number, segment in enumerate(segments[: first_unflushed + 1]):
        if number:
            end_before = segments[number - 1].next_offset
            is_there = is_too_long(end_before, segment.base_offset)
            if not is_there and not continues(end_before, segment.base_offset, may_have_gaps):
                raise StorageError(
                    f"{segments[number - 1].log.path} ends at offset {end_before}, and the next segment begins at "
                    f"{segment.base_offset}"
                )
        if number < first_unflushed:
            mend_indexes(segment)
            segment.next_offset  # noqa: B018  the end is read, and must be that of a batch


def _recover(
    folder: PartitionFolder,
    segments: list[Segment],
    first: int,
    config: LogConfig,
    found: list[EpochEntry],
    *,
    is_loud: bool,
) -> None:
    """Check the batches of all segments from a number on, and note the epochs in them; cut the log at the first invalid one.

    `is_loud`: what is cut is a warning, as no loss of power explains it.
    """
    for number in range(first, len(segments)):
        segment = segments[number]
        end_before = segments[number - 1].next_offset if number > first else segment.base_offset
        if not continues(end_before, segment.base_offset, config.compacts):
            LOGGER.log(_level(is_loud), "%s does not begin at %d, and is deleted", segment.log.path, end_before)
            drop(folder, segments, number)
            return
        size = segment.size
        if not check(segment, found):
            end = segment.next_offset
            LOGGER.log(
                _level(is_loud),
                "%s has %d bytes behind its last valid batch, which are cut off: it ends at offset %d",
                segment.log.path,
                size - segment.size,
                end,
            )
            drop(folder, segments, number + 1)
            return


def _level(is_loud: bool) -> int:
    return logging.WARNING if is_loud else logging.INFO


def _is_believed(believes: BelievesEpochs, history: EpochHistory, segments: list[Segment], start: Offset) -> bool:
    """Whether the epochs in the file are believed, beside those of the batches."""
    around = tuple(_around(segments, entry.start_offset, start) for entry in history.entries)
    last = _around(segments, segments[-1].next_offset, start).before
    return believes(history, start, segments[-1].next_offset, around, last)


def _around(segments: list[Segment], offset: Offset, start: Offset) -> Neighbours:
    """The epochs of the batches next to an offset, of those that reach into the log. An empty segment is looked through."""
    number = segment_of(segments, offset)
    before, following = segments[number].around(offset)
    if before is None and number > 0:
        before = segments[number - 1].around(segments[number - 1].next_offset)[0]
    if following is None and number + 1 < len(segments):
        following = segments[number + 1].around(segments[number + 1].base_offset)[1]
    near = [one if one is not None and one.next_offset > start else None for one in (before, following)]
    return Neighbours(*(NO_EPOCH if one is None else one.leader_epoch for one in near))


def _epochs_of(folder: PartitionFolder, segments: list[Segment], start: Offset) -> EpochHistory:
    """The epochs of all batches, made anew."""
    LOGGER.warning("%s/%s does not tell the epochs of the batches: it is made anew", folder.path, LEADER_EPOCHS)
    found: list[EpochEntry] = []
    for segment in segments:
        for header in segment.headers_in_order():
            if header.next_offset > start:
                note_epoch(segment, found, header)
    return recovered_epochs(EpochHistory(), start, segments[-1].next_offset, tuple(found))


def _mend_aborted(folder: PartitionFolder, segments: list[Segment], first_unflushed: int, log_start: Offset) -> None:
    """Make indexes of aborted transactions anew: where batches were checked, and where one cannot be right."""
    checked = range(first_unflushed, len(segments))
    wrong = [number for number in checked if segments[number].has_markers or segments[number].aborted.exists]
    for number, segment in enumerate(segments[:first_unflushed]):
        if segment.aborted.is_damaged(segment.base_offset, segment.next_offset):
            LOGGER.warning("%s is made anew: an entry, or its length, is impossible", segment.aborted.path)
            wrong.append(number)
    if wrong:
        folder.index_aborted(segments, wrong, log_start)


def segment_of(segments: list[Segment], offset: Offset) -> int:
    """The number of the segment in which an offset lies."""
    return max(sum(segment.base_offset <= offset for segment in segments) - 1, 0)


def drop(folder: PartitionFolder, segments: list[Segment], first: int) -> None:
    """Delete segments from a number on, the last one first."""
    while len(segments) > first:
        folder.unlink_segment(segments.pop())


def check(segment: Segment, found: list[EpochEntry]) -> bool:
    """Check all batches of a segment, and note the epochs in it; whether nothing had to be cut."""
    size = segment.size
    for header in segment.recover():
        note_epoch(segment, found, header)
    segment.finish()
    return segment.size == size


def note_epoch(segment: Segment, found: list[EpochEntry], header: BatchHeader) -> None:
    """Note the epoch of a batch if it is a new one. The checksum of a batch does not cover it.

    Raises: `StorageError`, if it is lower than that of a batch before: one of the two was changed.
    """
    latest = found[-1].leader_epoch if found else NO_EPOCH
    order = next_epoch(latest, header.leader_epoch)
    if order == EpochOrder.BACK:
        raise StorageError(
            f"{segment.log.path}: the batch at byte {header.position} has epoch {header.leader_epoch}, "
            f"and one before it {latest}"
        )
    if order == EpochOrder.NEW:
        found.append(EpochEntry(header.leader_epoch, header.base_offset))


def restarted(
    folder: PartitionFolder, segments: list[Segment], offset: Offset, config: LogConfig, now_ms: TimestampMs
) -> list[Segment]:
    """Delete all segments; the log goes on with a new one at `offset`."""
    for segment in reversed(segments):
        folder.unlink_segment(segment)
    folder.unlink_snapshots(())
    return [folder.segment(offset, config, now_ms, create=True)]


def remove_orphans(folder: PartitionFolder) -> None:
    """Delete files that a deletion has left, and indexes without their `.log`."""
    names = folder.names()
    folder.unlink(name for name in names if name.endswith(DELETED))
    for suffix in INDEXES:
        without = [base for base in folder.offsets_of(suffix) if file_name(base, LOG) not in names]
        folder.unlink(file_name(base, suffix) for base in without)


def finish_replacement(folder: PartitionFolder, config: LogConfig, now_ms: TimestampMs) -> None:
    """After a compaction that was interrupted: `.cleaned` files are deleted, `.swap` files take their segments' place.

    A `.swap` file beside a `.cleaned` file of a lower offset belongs to a replacement that had not begun. It goes, too.

    **Kafka:** `LogLoader.load`, `removeTempFilesAndCollectSwapFiles`.
    """
    names = [name for name in folder.names() if OF_SEGMENT.match(name)]
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
