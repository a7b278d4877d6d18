"""The files of one partition: what a broker appends, reads, cuts and deletes."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple, Protocol
from uuid import uuid4

from impl.records.batch import LENGTH_END, BatchHeader, Buffer, header_at, headers
from impl.records.record import first_record
from impl.storage.config import LogConfig
from impl.storage.disk import Disk, Handle
from impl.storage.files import CLEANED, SWAP, Folder
from impl.storage.loading import load, restarted
from impl.storage.producer_state import ProducerState, ProducerStates
from impl.storage.segment import FileSlice, Segment
from impl.storage.small_files import (
    PARTITION_METADATA,
    read_epochs,
    read_partition_metadata,
    split_folder_name,
    write_epochs,
    write_partition_metadata,
)
from spec.broker.effects import (
    BatchesAppended,
    EpochOpened,
    LogChange,
    LogDeleted,
    LogRestarted,
    LogStartMoved,
    LogTruncated,
)
from spec.broker.recovery import Checkpoints, Recovered, recovery_point_after_truncation
from spec.log.batch import Batch
from spec.log.epoch_history import EpochHistory
from spec.log.epoch_log import EpochLog
from spec.log.producers import ProducerBatch, Producers, is_expired, rebuilt_from
from spec.log.segments import Incoming, Retention, deletable_segments, must_roll, new_segment_base
from spec.values import NO_PRODUCER_ID, Epoch, Offset, ProducerId


class TimestampAndOffset(NamedTuple):
    """A record's timestamp (ms), its offset, and its batch's leader epoch: what ListOffsets answers."""

    timestamp: int
    offset: Offset
    leader_epoch: Epoch


@dataclass(frozen=True, slots=True)
class FlushJob:
    """What is to be synced so that everything before `up_to` is on the disk. `run` may be called in another thread."""

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


class Keeper(Protocol):
    """Who keeps the checkpoints of a partition."""

    def checkpoint_logs(self) -> None:
        """Write recovery points and log starts as they are now, through to the disk."""

    def forget(self, files: "PartitionFiles", now_ms: int) -> None:
        """A partition was deleted: its folder has another name, and is to be removed later."""


_base_of = attrgetter("base_offset")


class PartitionFiles:
    """One partition's folder, open. One user at a time; nothing here waits for anything but the disk.

    `log` is what `spec.broker` calls the log: after `apply(change)` it equals the one in the state that a handler returned.
    `recovered` has the log, the high watermark and the recovery point as they were when the folder was opened.
    """

    def __init__(self, folder: Folder, topic_id: str, config: LogConfig, segments: list[Segment], now_ms: int) -> None:
        named = split_folder_name(folder.path.rpartition("/")[2])
        assert named is not None, f"{folder.path} is no folder of a partition"
        self.topic, self.partition = named
        self.topic_id = topic_id
        self.config = config
        self.log = EpochLog()
        self.recovered: Recovered[EpochLog]
        self.recovery_point = Offset(0)
        self.segments = segments
        self.keeper: Keeper | None = None
        """The directory, which is told before the log is cut below its recovery point, and after it was deleted."""
        self.start_moves = self.noted_moves = 0
        """How often the log start has moved, and how many of these moves the directory has written down."""
        self._folder = folder
        self._written_epochs = EpochHistory()
        self._states = ProducerStates()
        self._last_flush = now_ms
        self._at_start: tuple[ProducerBatch, ...] = ()
        self._generation = 0
        self._names, self._synced_names = 0, 0
        """How many new names the folder has had, and how many of them are on the disk for certain."""
        self._is_new = False
        self._deletions: list[tuple[int, str]] = []
        self._deleted = False

    @classmethod
    def create(cls, disk: Disk, folder: str, topic_id: str, config: LogConfig, now_ms: int) -> "PartitionFiles":
        """A new, empty partition. The folder is named TOPIC-PARTITION. `topic_id` is 22 characters of URL-safe base64."""
        disk.make_folder(folder)
        write_partition_metadata(disk, folder, topic_id)
        files = cls.open(disk, folder, config, Checkpoints(), True, now_ms)
        files._is_new = True
        return files

    @classmethod
    def open(
        cls, disk: Disk, folder: str, config: LogConfig, checkpoints: Checkpoints, clean: bool, now_ms: int
    ) -> "PartitionFiles":
        """A partition that is there, recovered if the broker did not stop cleanly. See `docs/storage.md`.

        Raises: `StorageError`, if a file is damaged in a way that no loss of power explains.
        """
        inside = Folder(disk, folder)
        epochs = read_epochs(disk, folder)
        loaded = load(inside, config, checkpoints, clean, epochs, now_ms)
        files = cls(inside, read_partition_metadata(disk, folder, clean), config, loaded.segments, now_ms)
        files.recovered = loaded.recovered
        files.log = loaded.recovered.local.log
        files.recovery_point = loaded.recovered.recovery_point
        files._names = int(not clean or files.log.end_offset == files._active.base_offset)
        if files.log.epoch_history != epochs:
            write_epochs(disk, folder, files.log.epoch_history)
        files._written_epochs = files.log.epoch_history
        files._at_start = files._replay(clean, now_ms)
        return files

    def identify(self, topic_id: str) -> None:
        """Note whose partition this is. **Kafka:** `UnifiedLog.assignTopicId`."""
        write_partition_metadata(self._folder.disk, self.folder, topic_id)
        self.topic_id = topic_id
        self._is_new = True

    @property
    def folder(self) -> str:
        """The path of the folder; another one after `delete`."""
        return self._folder.path

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    @property
    def _active(self) -> Segment:
        return self.segments[-1]

    # ---- what a broker writes

    def apply(self, change: LogChange, payloads: Sequence[Buffer], now_ms: int, separately: bool = False) -> None:
        """Carry out a `Persist` effect.

        `payloads`: for `BatchesAppended`, the bytes of each of its batches, in order. `separately`: a new segment may begin
        before each batch, as if they were appended one after the other.
        """
        match change:
            case BatchesAppended(base_offset, batches):
                together = [
                    (batch.leader_epoch, header_at(payload), payload)
                    for batch, payload in zip(batches, payloads, strict=True)
                ]
                self._append(base_offset, together, now_ms, separately)
            case LogTruncated(end_offset):
                self.truncate_to(end_offset)
            case LogRestarted(offset):
                self.restart_at(offset, now_ms)
            case LogStartMoved(start_offset):
                self.start_at(start_offset, now_ms)
            case EpochOpened(leader_epoch, start_offset):
                assert start_offset == self.log.end_offset, f"an epoch opens at the log's end, not at {start_offset}"
                self.open_epoch(leader_epoch)
            case LogDeleted():
                self.delete(now_ms)

    def append(self, base_offset: Offset, leader_epoch: Epoch, batches: Sequence[Buffer], now_ms: int) -> None:
        """Append batches as a leader: one buffer for each. A gap may lie before `base_offset`, none between them.

        Raises: `StorageError`, if the disk does not take them. The batches before are then still there.
        """
        self._append(base_offset, [(leader_epoch, header_at(batch), batch) for batch in batches], now_ms)

    def append_fetched(self, batches: Buffer, now_ms: int) -> None:
        """Append whole batches behind each other in one buffer, with the offsets and epochs they have, as a follower does.

        Gaps may lie between them. Raises: `StorageError`, as `append`; `InvalidBatchError`, if they are no batches.
        """
        group: list[tuple[Epoch, BatchHeader, Buffer]] = []
        for header in list(headers(batches)):
            if group and header.base_offset != group[-1][1].next_offset:
                self._append(group[0][1].base_offset, group, now_ms)
                group = []
            group.append((header.leader_epoch, header, batches))
        if group:
            self._append(group[0][1].base_offset, group, now_ms)

    def _append(
        self,
        base_offset: Offset,
        batches: list[tuple[Epoch, BatchHeader, Buffer]],
        now_ms: int,
        separately: bool = False,
    ) -> None:
        if not batches:
            return
        end, size, max_timestamp = base_offset, 0, batches[0][1].max_timestamp
        for _, header, _ in batches:
            end = Offset(end + header.last_offset_delta + 1)
            size += LENGTH_END + header.length
            max_timestamp = max(max_timestamp, header.max_timestamp)
        incoming = Incoming(size, max_timestamp, Offset(end - 1))
        rolls = self._must_roll_for(incoming, now_ms)
        if len(batches) > 1 and (size > self.config.segment_bytes or (rolls and separately)):
            for one in batches:
                self._append(base_offset, [one], now_ms)
                base_offset = Offset(base_offset + one[1].last_offset_delta + 1)
            return
        records = tuple([Batch(header.last_offset_delta + 1, leader_epoch) for leader_epoch, header, _ in batches])
        log = self.log.append_at(base_offset, records)
        if log.epoch_history != self._written_epochs:  # a moved log start has changed the history, and not the file
            self._save_epochs(log.epoch_history)
        if rolls:
            self._roll_for(incoming, base_offset, now_ms)
        for header in self.segments[-1].append(batches, base_offset):
            if header.producer_id != NO_PRODUCER_ID:
                self._states.remember(header)
        self.log = log
        if log.end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush(now_ms)

    def _must_roll_for(self, incoming: Incoming, now_ms: int) -> bool:
        active, config = self.segments[-1], self.config
        segment_ms = config.segment_ms - config.segment_jitter_ms
        return must_roll(active.as_active(config.segment_index_bytes), incoming, config.segment_bytes, segment_ms, now_ms)

    def _roll_for(self, incoming: Incoming, base_offset: Offset, now_ms: int) -> None:
        batches_end = self._active.next_offset
        new_base = new_segment_base(batches_end, incoming, base_offset)
        self.roll(new_base, now_ms)
        if new_base != batches_end:
            self._flush_before_gap(new_base, now_ms)

    def _flush_before_gap(self, new_base: Offset, now_ms: int) -> None:
        """A start would delete a segment that does not continue the one before, unless the recovery point lies in it."""
        self.log = self.log.append_at(new_base, ())
        self.flush(now_ms)
        if self.keeper:
            self.keeper.checkpoint_logs()

    def roll(self, base_offset: Offset, now_ms: int) -> None:
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
        self._folder.write_snapshot(base_offset, self._states.for_snapshot())
        self.segments.append(self._folder.segment(base_offset, self.config, now_ms, create=True))
        self._names += 1

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

    def truncate_to(self, offset: Offset) -> None:
        """Cut the log. Whole batches go: one that contains `offset` goes, too.

        The directory first notes the lower recovery point. Then files are cut, from the last segment on, and synced.

        **Kafka:** `LogManager.truncateTo`, `UnifiedLog.truncateTo`, `LocalLog.truncateTo`.
        """
        if offset >= self.log.end_offset:
            self._change_log(self.log.truncate_to(offset))
            return
        if self.segments[0].base_offset > offset:
            self.restart_at(offset, self._last_flush)
            return
        self._lower_recovery_point(offset)
        while self._active.base_offset > offset:
            self._folder.unlink_segment(self.segments.pop())
        self._active.truncate_to(offset)
        for handle in self._active.handles(with_indexes=False):
            handle.sync()
        self._folder.disk.sync_folder(self.folder)
        self._change_log(self.log.truncate_to(offset))
        self._replay(clean=False)

    def _lower_recovery_point(self, offset: Offset) -> None:
        self._generation += 1
        lowered = recovery_point_after_truncation(self.recovery_point, offset)
        if lowered < self.recovery_point:
            self.recovery_point = lowered
            if self.keeper:
                self.keeper.checkpoint_logs()

    def restart_at(self, offset: Offset, now_ms: int) -> None:
        """Delete everything; the log is empty and starts at `offset`. **Kafka:** `UnifiedLog.truncateFullyAndStartAt`."""
        self._generation += 1
        self.recovery_point = recovery_point_after_truncation(self.recovery_point, offset)
        self.log = self.log.restart_at(offset)
        if self.keeper:
            self.keeper.checkpoint_logs()
        self.segments = restarted(self._folder, self.segments, offset, self.config, now_ms)
        self._states = ProducerStates()
        write_epochs(self._folder.disk, self.folder, self.log.epoch_history)
        self._written_epochs = self.log.epoch_history

    def start_at(self, offset: Offset, now_ms: int) -> None:
        """Records before `offset` are no longer read; segments that have no others are deleted.

        Their files are renamed, and removed after file.delete.delay.ms. The epoch file is written with its next change,
        after the new log start: a start that finds the old log start still finds the old epochs.

        **Kafka:** `UnifiedLog.maybeIncrementLogStartOffset`, `deleteLogStartOffsetBreachedSegments`.
        """
        self.log = self.log.start_at(offset)
        self.start_moves += 1
        gone = self._count_deletable(self.log.end_offset, Retention(-1, -1, deletes=False), now_ms)
        if offset == self.log.end_offset and gone == len(self.segments) - 1 and self._active.base_offset < offset:
            self.roll(offset, now_ms)
            gone = len(self.segments) - 1
        due = now_ms + self.config.file_delete_delay_ms
        for segment in self.segments[:gone]:
            self._deletions += [(due, path) for path in self._folder.mark_deleted(segment)]
        if gone:
            self._folder.disk.sync_folder(self.folder)
        del self.segments[:gone]
        self._folder.unlink_snapshots(
            base for base in self._folder.offsets_of(".snapshot") if base >= self.segments[0].base_offset
        )

    def _count_deletable(self, high_watermark: Offset, retention: Retention, now_ms: int) -> int:
        stored = tuple(segment.as_stored() for segment in self.segments)
        log = self.log
        return deletable_segments(stored, log.start_offset, log.end_offset, high_watermark, retention, now_ms)

    def retention_offset(self, high_watermark: Offset, now_ms: int) -> Offset:
        """The log start that retention.ms and retention.bytes want, for `spec.broker.leader.deletion.apply_retention`."""
        config = self.config
        retention = Retention(config.retention_ms, config.retention_bytes, config.deletes)
        gone = self._count_deletable(high_watermark, retention, now_ms)
        wanted = self.segments[gone].base_offset if gone < len(self.segments) else self.log.end_offset
        return max(self.log.start_offset, wanted)

    def delete(self, now_ms: int) -> None:
        """Rename the folder to TOPIC-PARTITION.UUID-delete; the directory removes it after file.delete.delay.ms.

        **Kafka:** `LogManager.asyncDelete`, `UnifiedLog.logDeleteDirName`.
        """
        for segment in self.segments:
            segment.forget()
        parent, _, name = self.folder.rpartition("/")
        ending = f".{uuid4().hex}-delete"
        stem, _, partition = name.rpartition("-")
        renamed = f"{parent}/{stem[: 255 - len(ending) - len(partition) - 1]}-{partition}{ending}"
        self._folder.disk.rename(self.folder, renamed)
        self._folder.disk.sync_folder(parent)
        self._folder = Folder(self._folder.disk, renamed)
        self.segments, self._deletions, self._deleted = [], [], True
        if self.keeper:
            self.keeper.forget(self, now_ms)

    # ---- compaction

    @property
    def last_offsets(self) -> dict[ProducerId, Offset]:
        """The last offset of each producer's last batch. **Kafka:** `UnifiedLog.lastRecordsOfActiveProducers`."""
        return {state.producer_id: state.last_offset for state in self._states.last()}

    def new_cleaned(self, base_offset: Offset, now_ms: int) -> Segment:
        """A segment to write compacted batches to: its files end in `.cleaned`."""
        self._folder.unlink(name + CLEANED for name in self._folder.names_of_segment(base_offset))
        return self._folder.segment(base_offset, self.config, now_ms, create=True, suffix=CLEANED)

    def replace(self, old: Sequence[Segment], cleaned: Segment, now_ms: int) -> None:
        """Put a compacted segment in the place of those it was made from.

        Its files are synced, and renamed to `.swap`; from there on a start goes on with it. Then the old ones are deleted,
        and the new ones get their names. **Kafka:** `LocalLog.replaceSegments`.
        """
        cleaned.finish()
        for handle in cleaned.handles(with_indexes=True):
            handle.sync()
        cleaned.forget()
        disk, base = self._folder.disk, cleaned.base_offset
        stems = [path.removesuffix(CLEANED) for path in reversed(cleaned.paths)]
        for stem in stems:
            disk.rename(stem + CLEANED, stem + SWAP)
        disk.sync_folder(self.folder)
        due = now_ms + self.config.file_delete_delay_ms
        for segment in old:
            self._deletions += [(due, path) for path in self._folder.mark_deleted(segment)]
        for stem in reversed(stems):
            disk.rename(stem + SWAP, stem)
        disk.sync_folder(self.folder)
        first = self.segments.index(old[0])
        self.segments[first : first + len(old)] = [self._folder.segment(base, self.config, now_ms)]

    # ---- flushing

    def flush(self, now_ms: int) -> None:
        """Sync everything up to the log's end, which becomes the recovery point. **Kafka:** `UnifiedLog.flush`."""
        job = self.flush_job()
        job.run()
        self.flushed(job, now_ms)

    def flush_job(self) -> FlushJob:
        """What `flush` would sync. Run it anywhere, and then tell `flushed`; the log may be written to meanwhile.

        The indexes of the active segment are left out: it holds the recovery point, so a start makes them anew.
        """
        first = max(bisect_right(self.segments, self.recovery_point, key=_base_of) - 1, 0)
        handles = [
            handle
            for segment in self.segments[first:]
            for handle in segment.handles(with_indexes=segment is not self._active)
        ]
        folders = [self.folder] if self._names > self._synced_names or self._is_new else []
        disk = self._folder.disk
        if self._is_new:
            handles.append(disk.open(f"{self.folder}/{PARTITION_METADATA}").handle())
            folders.append(self.folder.rpartition("/")[0])
        active = self._active.base_offset
        return FlushJob(
            disk, tuple(handles), tuple(folders), self.log.end_offset, active, self._generation, names=self._names
        )

    def flushed(self, job: FlushJob, now_ms: int) -> None:
        """A job has run. If the log was cut meanwhile, it does not count.

        The indexes of the segment that was active are not synced. If it has been rolled meanwhile, the recovery point stays
        within it.
        """
        if job.generation == self._generation and not self._deleted:
            number = bisect_right(self.segments, job.active, key=_base_of)
            is_within = number == len(self.segments) or job.up_to < self.segments[number].base_offset
            up_to = job.up_to if is_within else job.active
            self.recovery_point = max(self.recovery_point, up_to)
            self._synced_names = max(self._synced_names, job.names)
            self._last_flush = now_ms
            self._is_new = False

    def flush_is_due(self, now_ms: int) -> bool:
        """Whether a segment was rolled since the last flush, or flush.ms have passed with records to flush."""
        if self._deleted or self.recovery_point >= self.log.end_offset:
            return False
        return self.recovery_point < self._active.base_offset or now_ms - self._last_flush >= self.config.flush_ms

    def clean_up(self, now_ms: int) -> None:
        """Remove files whose deletion is due."""
        due = [path for when, path in self._deletions if when <= now_ms]
        self._deletions = [entry for entry in self._deletions if entry[0] > now_ms]
        self._folder.unlink(path.rpartition("/")[2] for path in due)

    def close(self) -> None:
        """Sync everything, write the indexes and a snapshot of the producers, close the files."""
        if self._deleted:
            return
        for segment in self.segments:
            segment.finish()
        if self.start_moved:
            self._save_epochs(self.log.epoch_history)
        self._folder.write_snapshot(self._active.next_offset, self._states.for_snapshot(), sync=True)
        job = self.flush_job()
        job.run()
        for handle in self._active.handles(with_indexes=True):
            handle.sync()
        self._folder.disk.sync_folder(self.folder)
        self.flushed(job, self._last_flush)
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
        number = max(bisect_right(self.segments, offset, key=_base_of) - 1, 0) if len(self.segments) > 1 else 0
        for segment in self.segments[number:]:
            found = segment.read(offset, max_offset, max_bytes, at_least_one)
            if found is not None:
                return found
        return FileSlice(self._active.log.handle(), self._active.size, 0, offset, offset)

    def timestamp_lookup(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record whose timestamp is at least this. **Kafka:** `UnifiedLog.fetchOffsetByTimestamp`."""
        start = self.log.start_offset
        for segment in self.segments:
            if segment.max_timestamp[0] < timestamp:
                continue
            offset = max(segment.times.offset_for(timestamp), start)
            for header in segment.headers(segment.offsets.position_for(offset)):
                if header.max_timestamp >= timestamp and header.next_offset > start:
                    batch = segment.log.read(header.position, header.size)
                    found = first_record(batch, lambda record: record.timestamp >= timestamp and record.offset >= start)
                    if found is not None:
                        return TimestampAndOffset(found.timestamp, Offset(found.offset), header.leader_epoch)
        return None

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The first record with the largest timestamp; none in an empty log. **Kafka:** the same, `MAX_TIMESTAMP`."""
        segment = max(self.segments, key=lambda segment: segment.max_timestamp[0])
        largest, offset = segment.max_timestamp
        header = segment.find(offset)
        if header is None or largest < 0:
            return None
        batch = segment.log.read(header.position, header.size)
        found = first_record(batch, lambda record: record.timestamp == header.max_timestamp)
        return None if found is None else TimestampAndOffset(found.timestamp, Offset(found.offset), header.leader_epoch)

    # ---- producers

    def _replay(self, clean: bool, now_ms: int | None = None) -> tuple[ProducerBatch, ...]:
        """Fill the states from the latest snapshot and the batches after it; the last batches of each producer, in order.

        With the time, producers in the snapshot that have been silent for too long are left out.

        **Kafka:** `UnifiedLog.rebuildProducerState`, `ProducerStateManager.loadFromSnapshot`.
        """
        log = self.log
        self._states = ProducerStates()
        snapshot = self._folder.latest_snapshot(log.start_offset, log.end_offset)
        if snapshot is None and clean:
            return ()
        start, states = snapshot or (log.start_offset, ())
        self._states = ProducerStates(states)
        if now_ms is not None:
            self.expire_producers(now_ms)
        number = max(bisect_right(self.segments, start, key=_base_of) - 1, 0)
        for segment in self.segments[number:]:
            first = segment.find(start)
            for header in segment.headers(first.position) if first else ():
                self._states.remember(header)
        return self._states.batches()

    def _is_expired(self, state: ProducerState, now_ms: int) -> bool:
        expiration_ms = self.config.producer_id_expiration_ms
        return is_expired(state.timestamp, state.transaction_start >= 0, now_ms, expiration_ms)

    def expire_producers(self, now_ms: int) -> tuple[ProducerId, ...]:
        """Forget the producers that have been silent for too long; their ids, for `spec.broker.roles.producers_expired`.

        **Kafka:** `ProducerStateManager.removeExpiredProducers`.
        """
        gone = tuple(state.producer_id for state in self._states.last() if self._is_expired(state, now_ms))
        for producer_id in gone:
            self._states.forget(producer_id)
        return gone

    def producer_batches(self) -> tuple[ProducerBatch, ...]:
        """The last batches of each producer in the log, in order of their offsets.

        For `spec.broker.roles.producers_rebuilt` after a truncation (effect `RebuildProducers`).
        """
        return self._replay(clean=False)

    def producer_times(self) -> dict[int, int]:
        """The largest timestamp of each producer's last batch (ms), by the producer's id."""
        return {state.producer_id: state.timestamp for state in self._states.last()}

    def producers(self) -> Producers:
        """The state of the idempotent producers when the folder was opened, for `Partition.producers`."""
        return rebuilt_from(self._at_start)
