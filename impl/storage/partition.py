"""The files of one partition: what a broker appends, reads, cuts and deletes."""

import logging
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Protocol

from kspec.impl.records.batch import LENGTH_END, BatchHeader, Buffer, header_at, headers
from kspec.impl.records.markers import batch_in
from kspec.impl.storage.config import LogConfig
from kspec.impl.storage.disk import Disk, StorageError
from kspec.impl.storage.files import PartitionFolder
from kspec.impl.storage.flushing import FlushedPart, FlushJob
from kspec.impl.storage.loading import BelievesEpochs, load, restarted
from kspec.impl.storage.producer_state import ProducerStates
from kspec.impl.storage.segment import FileSlice, Segment, TimestampAndOffset, base_of, first_from, with_largest
from kspec.impl.storage.small_files import (
    read_epochs,
    read_partition_metadata,
    split_folder_name,
    write_epochs,
    write_partition_metadata,
)
from kspec.spec.broker.effects import (
    BatchesAppended,
    EpochOpened,
    LogChange,
    LogDeleted,
    LogRestarted,
    LogStartMoved,
    LogTruncated,
)
from kspec.spec.broker.recovery import CheckpointedOffsets, RecoveredLog, is_checkpointed, recovery_point_after_truncation
from kspec.spec.log.batch import Batch
from kspec.spec.log.epoch_history import EpochHistory, describes
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.segments import IncomingBatches, Retention, must_roll, new_segment_base
from kspec.spec.releases.upkeep import NEWEST as RULES
from kspec.spec.transactions.log.partition import AbortedTransaction, PartitionTransactions
from kspec.spec.values import NO_PRODUCER_ID, Epoch, Instant, MonotonicMs, Offset, ProducerId, TimestampMs

LOG = logging.getLogger("kspec.storage")


class Keeper(Protocol):
    """The keeper of a partition's checkpoints."""

    def checkpoint_logs(self) -> None:
        """Write recovery points and log starts as they are now, through to the disk."""

    def forget(self, files: "PartitionFiles", now_ms: MonotonicMs) -> None:
        """A partition was deleted: its folder has another name, and is to be removed later."""


class PartitionFiles:
    """One partition's folder, open. One user at a time; nothing here waits for anything but the disk.

    `log` is what `spec.broker` calls the log: after `apply(change)` it equals the one in the state that a handler returned.
    `recovered` has the log, the high watermark and the recovery point as they were when the folder was opened.
    """

    def __init__(
        self, folder: PartitionFolder, topic_id: str, config: LogConfig, segments: list[Segment], now: Instant
    ) -> None:
        named = split_folder_name(folder.path.rpartition("/")[2])
        assert named is not None, f"{folder.path} is no folder of a partition"
        self.topic, self.partition = named
        self.topic_id = topic_id
        self.config = config
        self.failed = False
        """Whether a write or a sync has failed."""
        self.log = EpochLog()
        self.recovered: RecoveredLog[EpochLog]
        self.segments = segments
        self.keeper: Keeper | None = None
        """The directory, which is told before the log is cut below its recovery point, and after it was deleted."""
        self.start_moves = self.noted_moves = 0
        """The number of moves of the log start, and of those that are in the directory's checkpoint."""
        self._folder = folder
        self._written_epochs = EpochHistory()
        self.states = ProducerStates()
        """The producers and transactions in the log, as they are remembered."""
        self._flushed = FlushedPart(now.monotonic)
        self._deletions: list[tuple[MonotonicMs, str]] = []
        self._deleted = False

    @classmethod
    def create(cls, disk: Disk, folder: str, topic_id: str, config: LogConfig, now: Instant) -> "PartitionFiles":
        """A new, empty partition. The folder is named TOPIC-PARTITION. `topic_id` is 22 characters of URL-safe base64."""
        disk.make_folder(folder)
        write_partition_metadata(disk, folder, topic_id)
        files = cls.open(disk, folder, config, CheckpointedOffsets(), True, now)
        files._flushed.is_new = True
        return files

    @classmethod
    def open(
        cls,
        disk: Disk,
        folder: str,
        config: LogConfig,
        checkpoints: CheckpointedOffsets,
        clean: bool,
        now: Instant,
        was_compacted: bool = False,
        believes_epochs: BelievesEpochs = describes,
    ) -> "PartitionFiles":
        """A partition that is there, recovered if the broker did not stop cleanly. See `docs/storage.md`.

        Raises: `StorageError`, if a file is damaged in a way that no loss of power explains, and that cannot be mended.
        """
        inside = PartitionFolder(disk, folder)
        topic_id = read_partition_metadata(disk, folder, clean)
        try:
            epochs = read_epochs(disk, folder)
        except StorageError as error:
            LOG.warning("%s", error)
            epochs = EpochHistory()
        loaded = load(inside, config, checkpoints, clean, epochs, now.timestamp, was_compacted, believes_epochs)
        files = cls(inside, topic_id, config, loaded.segments, now)
        files.recovered = loaded.recovered
        files.log, files._flushed.recovery_point = loaded.recovered.local.log, loaded.recovered.recovery_point
        files._flushed.names = int(not clean or files.log.end_offset == files._active.base_offset)
        if files.log.epoch_history != epochs:
            write_epochs(disk, folder, files.log.epoch_history)
        files._written_epochs = files.log.epoch_history
        files._replay(now.timestamp)
        return files

    @classmethod
    def unopened(cls, disk: Disk, folder: str, config: LogConfig, now: Instant) -> "PartitionFiles":
        """A partition whose files cannot be used: they stay as they are, and can only be deleted."""
        files = cls(PartitionFolder(disk, folder), "", config, [], now)
        files.recovered = RecoveredLog(LocalLog(files.log, files.log.start_offset), files.recovery_point)
        return files

    def identify(self, topic_id: str) -> None:
        """Note whose partition this is. **Kafka:** `UnifiedLog.assignTopicId`."""
        write_partition_metadata(self._folder.disk, self.folder, topic_id)
        self.topic_id = topic_id
        self._flushed.is_new = True

    @property
    def folder(self) -> str:
        """The path of the folder; another one after `delete`."""
        return self._folder.path

    @property
    def recovery_point(self) -> Offset:
        """The offset up to which everything is on the disk for certain."""
        return self._flushed.recovery_point

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def _active(self) -> Segment:
        return self.segments[-1]

    # ---- what a broker writes

    def apply(self, change: LogChange, payloads: Sequence[Buffer], now: Instant, separately: bool = False) -> None:
        """Carry out a `Persist` effect.

        `payloads`: for `BatchesAppended`, the bytes of each of its batches, in order. `separately`: a new segment may begin
        before each batch, as if they were appended one after the other.
        """
        match change:
            case BatchesAppended(base_offset, batches):
                given = zip(batches, payloads, strict=True)
                together = [(batch.leader_epoch, header_at(payload), payload) for batch, payload in given]
                self._append(base_offset, together, now, separately)
            case LogTruncated(end_offset):
                self.truncate_to(end_offset)
            case LogRestarted(offset):
                self.restart_at(offset, now.timestamp)
            case LogStartMoved(start_offset):
                self.start_at(start_offset, now)
            case EpochOpened(leader_epoch, start_offset):
                assert start_offset == self.log.end_offset, f"an epoch opens at the log's end, not at {start_offset}"
                self.open_epoch(leader_epoch)
            case LogDeleted():
                self.delete(now.monotonic)

    def append(self, base_offset: Offset, leader_epoch: Epoch, batches: Sequence[Buffer], now: Instant) -> None:
        """Append batches as a leader: one buffer for each. A gap may lie before `base_offset`, none between them.

        Raises: `StorageError`, if the disk does not take them. The batches before are then still there.
        """
        self._append(base_offset, [(leader_epoch, header_at(batch), batch) for batch in batches], now)

    def append_fetched(self, batches: Buffer, now: Instant) -> None:
        """Append whole batches behind each other in one buffer, with the offsets and epochs they have, as a follower does.

        Gaps may lie between them. Raises: `StorageError`, as `append`; `InvalidBatchError`, if they are no batches.
        """
        group: list[tuple[Epoch, BatchHeader, Buffer]] = []
        for header in list(headers(batches)):
            if group and header.base_offset != group[-1][1].next_offset:
                self._append(group[0][1].base_offset, group, now)
                group = []
            group.append((header.leader_epoch, header, batches))
        if group:
            self._append(group[0][1].base_offset, group, now)

    def _append(
        self,
        base_offset: Offset,
        batches: list[tuple[Epoch, BatchHeader, Buffer]],
        now: Instant,
        separately: bool = False,
    ) -> None:
        if not batches:
            return
        end, size, max_timestamp = base_offset, 0, batches[0][1].max_timestamp
        for _, header, _ in batches:
            end = Offset(end + header.last_offset_delta + 1)
            size += LENGTH_END + header.length
            max_timestamp = max(max_timestamp, header.max_timestamp)
        incoming = IncomingBatches(size, max_timestamp, Offset(end - 1))
        rolls = self._must_roll_for(incoming, now.timestamp)
        if len(batches) > 1 and (size > self.config.segment_bytes or (rolls and separately)):
            for one in batches:
                self._append(base_offset, [one], now)
                base_offset = Offset(base_offset + one[1].last_offset_delta + 1)
            return
        records = tuple([Batch(header.last_offset_delta + 1, leader_epoch) for leader_epoch, header, _ in batches])
        log = self.log.append_at(base_offset, records)
        if log.epoch_history != self._written_epochs:  # a moved log start has changed the history, and not the file
            self._save_epochs(log.epoch_history)
        if rolls:
            self._roll_for(incoming, base_offset, now)
        active = self.segments[-1]
        for header, (_, given, buffer) in zip(active.append(batches, base_offset), batches, strict=True):
            if header.producer_id > NO_PRODUCER_ID:
                aborted = self.states.remember(header, batch_in(given, buffer).marker if header.control else None)
                self._flushed.names += aborted is not None and active.aborted.append(aborted)
        self.states.forget_ended()
        self.log = log
        if log.end_offset - self._flushed.recovery_point >= self.config.flush_messages:
            self.flush(now.monotonic)

    def _must_roll_for(self, incoming: IncomingBatches, now_ms: TimestampMs) -> bool:
        active, config = self.segments[-1], self.config
        segment_ms = config.segment_ms - config.segment_jitter_ms
        return must_roll(active.as_active(config.segment_index_bytes), incoming, config.segment_bytes, segment_ms, now_ms)

    def _roll_for(self, incoming: IncomingBatches, base_offset: Offset, now: Instant) -> None:
        batches_end = self._active.next_offset
        new_base = new_segment_base(batches_end, incoming, base_offset)
        self.roll(new_base, now.timestamp)
        if new_base != batches_end:  # a start would delete it behind the gap, unless the recovery point lies in it
            self.log = self.log.append_at(new_base, ())
            self.flush(now.monotonic)
            if self.keeper:
                self.keeper.checkpoint_logs()

    def roll(self, base_offset: Offset, now_ms: TimestampMs) -> None:
        """Begin a new segment at an offset, not before the last batch's end.

        An empty segment stays, and with it the log's start, unless the new one has its name.

        **Kafka:** `UnifiedLog.roll`, `LocalLog.roll`.
        """
        if self._active.base_offset == base_offset:
            self._folder.unlink_segment(self.segments.pop())
        else:
            self._active.finish()
            if self.recovery_point >= base_offset:  # a start will not look at the segment that ends here
                for handle in self._active.handles(with_indexes=True):
                    handle.sync()
        self._folder.write_snapshot(base_offset, self.states.for_snapshot())
        self.segments.append(self._folder.segment(base_offset, self.config, now_ms, create=True))
        self._flushed.names += 1

    def open_epoch(self, leader_epoch: Epoch) -> None:
        """Note that an epoch starts at the log's end, through to the disk."""
        self._change_log(self.log.open_epoch(leader_epoch))

    def _change_log(self, log: EpochLog) -> None:
        if log.epoch_history != self._written_epochs:
            self._save_epochs(log.epoch_history)
        self.log = log

    @property
    def start_moved(self) -> bool:
        """Whether the log start has moved since the directory wrote it down."""
        return self.start_moves != self.noted_moves

    def _save_epochs(self, history: EpochHistory) -> None:
        """Write the epochs; before that the log start, if it has moved: the history below it is then no longer known."""
        if self.start_moved and self.keeper:
            self.keeper.checkpoint_logs()
        write_epochs(self._folder.disk, self.folder, history)
        self._written_epochs = history

    @property
    def cuts(self) -> int:
        """The number of cuts of the log since it was opened: with another number, what was read before may be no more."""
        return self._flushed.generation

    def truncate_to(self, offset: Offset) -> None:
        """Cut the log. Whole batches go: one that contains `offset` goes, too.

        The directory first notes the lower recovery point. Then files are cut, from the last segment on, and synced.

        **Kafka:** `LogManager.truncateTo`, `UnifiedLog.truncateTo`, `LocalLog.truncateTo`.
        """
        if offset >= self.log.end_offset:
            self._change_log(self.log.truncate_to(offset))
            return
        if self.segments[0].base_offset > offset:
            self.restart_at(offset, self._active.created)
            return
        self._lower_recovery_point(offset)
        while self._active.base_offset > offset:
            self._folder.unlink_segment(self.segments.pop())
        self._active.truncate_to(offset)
        start = self.log.start_offset
        if self._active.next_offset < start:  # nothing is left but what lies below the log start, and a gap up to it
            self.segments = restarted(self._folder, self.segments, start, self.config, self._active.created)
        for handle in self._active.handles(with_indexes=False):
            handle.sync()
        self._folder.disk.sync_folder(self.folder)
        self._change_log(self.log.truncate_to(offset))
        self._replay()

    def _lower_recovery_point(self, offset: Offset) -> None:
        if self._flushed.cut(offset) and self.keeper:
            self.keeper.checkpoint_logs()

    def restart_at(self, offset: Offset, now_ms: TimestampMs) -> None:
        """Delete everything; the log is empty and starts at `offset`. **Kafka:** `UnifiedLog.truncateFullyAndStartAt`."""
        self._flushed.cut(offset)
        self.log = self.log.restart_at(offset)
        if self.keeper:
            self.keeper.checkpoint_logs()
        self.segments = restarted(self._folder, self.segments, offset, self.config, now_ms)
        self.states = ProducerStates()
        write_epochs(self._folder.disk, self.folder, self.log.epoch_history)
        self._written_epochs = self.log.epoch_history

    def start_at(self, offset: Offset, now: Instant) -> None:
        """Records before `offset` are no longer read; segments that have no others are deleted.

        Their files are renamed, and removed after file.delete.delay.ms. The epoch file is written with its next change,
        after the new log start: a start that finds the old log start still finds the old epochs. A log start within a
        segment is written at once: else deleted records come back, and may be others than the leader has had there.

        **Kafka:** `UnifiedLog.maybeIncrementLogStartOffset`, `deleteLogStartOffsetBreachedSegments`.
        """
        self.log = self.log.start_at(offset)
        self.start_moves += 1
        gone = self._count_deletable(self.log.end_offset, Retention(-1, -1, deletes=False), now.timestamp)
        holds_more = self._active.next_offset > offset
        if not holds_more and gone == len(self.segments) - 1 and self._active.base_offset < offset:
            self.roll(offset, now.timestamp)
            gone = len(self.segments) - 1
        self._delete_later(self.segments[:gone], now)
        if gone:
            self._folder.disk.sync_folder(self.folder)
        del self.segments[:gone]
        self._folder.unlink_snapshots(
            base for base in self._folder.offsets_of(".snapshot") if base >= self.segments[0].base_offset
        )
        if self.keeper and is_checkpointed(self.log.start_offset, self.segments[0].base_offset):
            self.keeper.checkpoint_logs()

    def _delete_later(self, segments: Sequence[Segment], now: Instant) -> None:
        due = now.after(self.config.file_delete_delay_ms)
        self._deletions += [(due, path) for segment in segments for path in self._folder.mark_deleted(segment)]

    def _count_deletable(self, high_watermark: Offset, retention: Retention, now_ms: TimestampMs) -> int:
        stored = tuple(segment.as_stored() for segment in self.segments)
        start, end = self.log.start_offset, self.log.end_offset
        return RULES.deletable_segments(stored, start, end, high_watermark, retention, now_ms)

    def retention_offset(self, high_watermark: Offset, now_ms: TimestampMs) -> Offset:
        """The log start that retention.ms and retention.bytes want, for `spec.broker.leader.deletion.apply_retention`."""
        config = self.config
        retention = Retention(config.retention_ms, config.retention_bytes, config.deletes)
        gone = self._count_deletable(high_watermark, retention, now_ms)
        wanted = self.segments[gone].base_offset if gone < len(self.segments) else self.log.end_offset
        return max(self.log.start_offset, wanted)

    def delete(self, now_ms: MonotonicMs) -> None:
        """Rename the folder; the directory removes it after file.delete.delay.ms. **Kafka:** `LogManager.asyncDelete`."""
        for segment in self.segments:
            segment.forget()
        self._folder = self._folder.set_aside()
        self.segments, self._deletions, self._deleted = [], [], True
        if self.keeper:
            self.keeper.forget(self, now_ms)

    # ---- compaction

    @property
    def inside(self) -> PartitionFolder:
        """The files of segments; in another folder after `delete`."""
        return self._folder

    def replace(self, old: Sequence[Segment], cleaned: Segment, now: Instant) -> None:
        """Put a compacted segment in the place of those it was made from.

        Its files are synced, and renamed to `.swap`; from there on a start goes on with it. Then the old ones are deleted,
        and the new ones get their names. **Kafka:** `LocalLog.replaceSegments`.
        """
        stems = self._folder.mark_whole(cleaned)
        self._delete_later(old, now)
        self._folder.put_in_place(stems)
        first = self.segments.index(old[0])
        self.segments[first : first + len(old)] = [self._folder.segment(cleaned.base_offset, self.config, now.timestamp)]

    # ---- flushing

    def flush(self, now_ms: MonotonicMs) -> None:
        """Sync everything up to the log's end, which becomes the recovery point. **Kafka:** `UnifiedLog.flush`."""
        job = self.flush_job()
        job.run()
        self.flushed(job, now_ms)

    def flush_job(self) -> FlushJob:
        """The files that `flush` would sync. Run it anywhere, then tell `flushed`; the log may be written to meanwhile."""
        return self._flushed.job(self._folder, self.segments, self.log.end_offset)

    def flushed(self, job: FlushJob, now_ms: MonotonicMs) -> None:
        """A job has run. If the log was cut meanwhile, it does not count."""
        if not self._deleted:
            self._flushed.note(job, self.segments, now_ms)

    def flush_is_due(self, now_ms: MonotonicMs) -> bool:
        """Whether a segment was rolled since the last flush, or flush.ms have passed with records to flush."""
        if self._deleted or self.failed or not self.segments:
            return False
        return self._flushed.is_due(self.config, self._active, self.log.end_offset, now_ms)

    @property
    def expects_work(self) -> bool:
        """Whether `flush_is_due` or `clean_up` may have something to do later, though nothing is written meanwhile."""
        if self._deleted:
            return False
        is_flushed_later = not self.failed and self._flushed.may_be_due(self.config, self._active, self.log.end_offset)
        return bool(self._deletions) or is_flushed_later

    def clean_up(self, now_ms: MonotonicMs) -> None:
        """Remove files whose deletion is due."""
        due = [path for when, path in self._deletions if when <= now_ms]
        self._deletions = [entry for entry in self._deletions if entry[0] > now_ms]
        self._folder.unlink(path.rpartition("/")[2] for path in due)

    def fail(self) -> None:
        """A write or a sync has failed, and nothing more is written until the next start.

        That start checks the batches of the last segment, as the stop counts as clean for no log that does not end at its
        recovery point. A second sync would say nothing: the system forgets what it could not write.
        """
        self.failed = True
        if self.segments:
            self._flushed.recovery_point = recovery_point_after_truncation(self.recovery_point, self._active.base_offset)

    def close(self) -> None:
        """Sync everything, write the indexes and a snapshot of the producers, close the files."""
        if self._deleted or not self.segments or self.failed:
            return
        for segment in self.segments:
            segment.finish()
        if self.log.epoch_history != self._written_epochs:
            self._save_epochs(self.log.epoch_history)
        self._folder.write_snapshot(self._active.next_offset, self.states.for_snapshot(), sync=True)
        job = self.flush_job()
        job.run()
        for handle in self._active.handles(with_indexes=True):
            handle.sync()
        self._folder.disk.sync_folder(self.folder)
        self.flushed(job, self._flushed.last_flush)
        self._flushed.recovery_point = recovery_point_after_truncation(self.recovery_point, self._active.next_offset)
        for segment in self.segments:
            segment.close()

    # ---- what a broker reads

    def read(self, offset: Offset, max_offset: Offset, max_bytes: int, at_least_one: bool = False) -> FileSlice:
        """Whole batches from the one that contains `offset` on.

        They end at or before `max_offset` (the high watermark or log end), and have at most `max_bytes`; with
        `at_least_one` the first batch is given even if it is larger. `offset` lies within the log. They lie in one segment:
        there may be more behind them.
        """
        assert self.log.start_offset <= offset <= self.log.end_offset, f"{offset} is not within the log"
        number = max(bisect_right(self.segments, offset, key=base_of) - 1, 0) if len(self.segments) > 1 else 0
        for segment in self.segments[number:]:
            found = segment.read(offset, max_offset, max_bytes, at_least_one)
            if found is not None:
                return found
        return FileSlice(self._active.log.handle(), self._active.size, 0, offset, offset)

    def in_same_segment(self, offset: Offset, other: Offset) -> bool:
        """Whether two offsets lie in the same segment; the log's end lies in the active one."""
        if len(self.segments) == 1:
            return True
        return bisect_right(self.segments, offset, key=base_of) == bisect_right(self.segments, other, key=base_of)

    def timestamp_lookup(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record whose timestamp is at least this."""
        return first_from(self.segments, timestamp, self.log.start_offset)

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp; none in an empty log."""
        return with_largest(self.segments)

    # ---- producers

    def aborted(self, offset: Offset) -> Iterator[AbortedTransaction]:
        """The aborted transactions whose marker lies in the segment that contains an offset, or in a later one."""
        number = max(bisect_right(self.segments, offset, key=base_of) - 1, 0)
        return chain.from_iterable(segment.aborted.entries for segment in self.segments[number:])

    def _replay(self, now_ms: TimestampMs | None = None) -> None:
        """Fill the states of producers from the files.

        With the time, producers in the snapshot that have been silent for too long are left out.

        **Kafka:** `UnifiedLog.rebuildProducerState`.
        """
        log, expires = self.log, None if now_ms is None else (now_ms, self.config.producer_id_expiration_ms)
        self.states = self._folder.producers_in(self.segments, log, expires, self.recovered.local.high_watermark)

    def expire_producers(self, now_ms: TimestampMs) -> tuple[ProducerId, ...]:
        """Forget the producers that have been silent for too long; their ids, for `spec.broker.roles.producers_expired`."""
        return self.states.expire(now_ms, self.config.producer_id_expiration_ms)

    def transactions_left(self) -> PartitionTransactions:
        """The producers and transactions in the log, read anew.

        For `spec.broker.roles.producers_rebuilt` after a truncation (effect `RebuildProducers`).
        """
        self._replay()
        return self.transactions()

    def transactions(self) -> PartitionTransactions:
        """The producers and transactions in the log, for `Partition.transactions`.

        Of those that have ended, the ones whose end was read when the folder was opened, until more is appended.
        """
        return self.states.transactions()
