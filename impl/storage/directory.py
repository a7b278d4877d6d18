"""A broker's log directory: the lock, the files of the whole directory, and the folders of partitions."""

import logging
import re
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import RLock

from kspec.impl.storage.cleaner import Steps, at_once, compact
from kspec.impl.storage.config import LogConfig
from kspec.impl.storage.disk import Disk, Lock, StorageError
from kspec.impl.storage.files import PartitionFolder
from kspec.impl.storage.loading import BelievesEpochs, last_segment_end
from kspec.impl.storage.partition import PartitionFiles
from kspec.impl.storage.small_files import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    METADATA_FOLDER,
    RECOVERY_POINTS,
    check_owner,
    format_directory,
    is_formatted,
    other_name,
    random_uuid,
    read_clean_shutdown,
    read_offsets,
    read_partition_metadata,
    refuse_unformatted,
    split_folder_name,
    with_directory_id,
    write_clean_shutdown,
    write_offsets,
)
from kspec.spec.broker.recovery import CheckpointedOffsets, is_checkpointed, is_clean_for, is_noted_as_clean, may_begin_anew
from kspec.spec.log.checkpoint_files import OffsetEntry
from kspec.spec.log.epoch_history import describes
from kspec.spec.topics import TopicPartition
from kspec.spec.values import NO_BROKER_EPOCH, UNKNOWN_OFFSET, BrokerEpoch, Instant, MonotonicMs, Offset

LOG = logging.getLogger("kspec.storage")

DELETE, STRAY = "-delete", "-stray"
RENAMED = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})\.[0-9a-f]{32}-delete")
"""The folder of a partition that was deleted."""

DAMAGED = "?"
"""In place of a topic id that cannot be read."""


CLOSED_AT_ONCE = 32
"""Partitions that are closed at a time: most of it is waiting for the disk. Kafka: `num.recovery.threads.per.data.dir`."""


class LogDirectory:
    """A log directory that this process has locked.

    `directory_id`: 22 characters of URL-safe base64, made when the directory was formatted. `clean`: whether the broker
    before stopped cleanly, and `previous_broker_epoch` what it noted. `found`: the topic id of each partition's folder.
    `partitions`: those that are open. Partitions are opened, created and closed in several threads: what they share is
    changed by one after the other.
    """

    def __init__(self, path: str, disk: Disk, lock: Lock, meta: Mapping[str, str]) -> None:
        self.path = path
        self.cluster_id = meta["cluster.id"]
        self.node_id = int(meta["node.id"])
        self.directory_id = meta["directory.id"]
        self.partitions: dict[TopicPartition, PartitionFiles] = {}
        self.closed_at_once = CLOSED_AT_ONCE
        """The number of partitions that are closed at a time, each in a thread of its own."""
        self.believes_epochs: BelievesEpochs = describes
        """Whether the epochs in the file of a log that is opened are believed."""
        self._changing = RLock()
        self._disk = disk
        self._lock = lock
        noted = read_clean_shutdown(disk, path)
        self.clean = noted is not None
        self.previous_broker_epoch = NO_BROKER_EPOCH if noted is None else noted
        self._damaged: set[str] = set()
        """The checkpoint files that could not be read, and are as if they were empty."""
        self._high_watermarks = self._read(HIGH_WATERMARKS)
        self._recovery_points = self._read(RECOVERY_POINTS)
        self._log_starts = self._read(LOG_STARTS)
        self._cleaned = self._read(CLEANED_OFFSETS)
        self._lines = (self._high_watermarks, self._recovery_points, self._log_starts, self._cleaned)
        self._is_written = HIGH_WATERMARKS not in self._damaged
        """Whether the checkpoint of the high watermarks has all that is known of them."""
        self._stale: set[tuple[str, int]] = set()
        """Partitions that are gone and may still have lines in the checkpoint files."""
        self.found: dict[TopicPartition, str] = {}
        self._deletions: list[tuple[MonotonicMs, str]] = []
        for name in disk.listdir(path):
            folder = f"{path}/{name}"
            if not disk.is_folder(folder):
                continue
            if name.endswith(DELETE):
                self._deletions.append((MonotonicMs(0), folder))
                continue
            named = split_folder_name(name)
            if named is not None:
                self.found[TopicPartition(*named)] = self._owner_of(folder)
        self._noted = dict(self._recovery_points)
        """The recovery points as they were written last, of all partitions whose folders were there then."""
        for name in disk.listdir(path):
            renamed = RENAMED.fullmatch(name)
            if (
                renamed is not None and not self.clean
            ):  # the line is the deleted log's, and the folder that is not there a new one's
                self._noted.pop((renamed[1], int(renamed[2])), None)
        if self.clean and not self._is_as_left():
            self.previous_broker_epoch = NO_BROKER_EPOCH
        if self.clean:
            disk.unlink(f"{path}/{CLEAN_SHUTDOWN}")
            disk.sync_folder(path)

    def _read(self, name: str) -> dict[tuple[str, int], int]:
        """The offsets in a checkpoint; none if it is damaged: logs are then checked from their start.

        **Kafka:** `LogManager.loadLogs`, for recovery points and log starts. With a damaged file of high watermarks the log
        directory fails.
        """
        if self._disk.is_folder(f"{self.path}/{name}.tmp"):
            raise StorageError(f"{self.path}/{name}.tmp is a folder, and should be a file")
        try:
            return read_offsets(self._disk, self.path, name)
        except StorageError as error:
            if self._disk.is_folder(f"{self.path}/{name}"):
                raise
            LOG.warning("%s; it counts as empty", error)
            self._damaged.add(name)
            return {}

    def _owner_of(self, folder: str) -> str:
        """The topic id of a partition's folder; none if that is damaged: then the partition cannot be opened."""
        try:
            return read_partition_metadata(self._disk, folder, self.clean)
        except (OSError, StorageError):
            return DAMAGED

    def _is_as_left(self) -> bool:
        """Whether each log ends where it ended when the broker stopped cleanly, as far as its last segment tells.

        A broker that has lost a part of a log since does not say to the controller that it stopped cleanly.
        """
        own = {one for one in self.found if f"{one.topic}-{one.partition}" != METADATA_FOLDER}
        for key in sorted(self._recovery_points.keys() | own):
            folder, recovery_point = self.folder_of(*key), Offset(self._recovery_points.get(key, 0))
            end = last_segment_end(PartitionFolder(self._disk, folder)) if TopicPartition(*key) in self.found else None
            if end is None or not is_clean_for(self.clean, recovery_point, end):
                told = "cannot be told" if end is None else f"is {end}"
                LOG.warning("%s has changed since the broker stopped: its end was %d, and %s", folder, recovery_point, told)
                return False
        return True

    @classmethod
    def open(cls, path: str, disk: Disk, cluster_id: str, node_id: int, may_format: bool = True) -> "LogDirectory":
        """Lock a directory, and format it if it is new or empty, and may be formatted.

        The note of a clean stop is read and deleted, before any log is touched.

        Raises: `StorageError` if it is locked, damaged, not formatted, or of another cluster or node.
        """
        path = path.rstrip("/")
        if not may_format and not is_formatted(disk, path):
            raise refuse_unformatted(path)
        disk.make_folder(path)
        lock = disk.lock(f"{path}/{LOCK}")
        if lock is None:
            raise StorageError(f"{path} is in use: another process holds {LOCK}; stop it, or use another log.dirs")
        try:
            if not is_formatted(disk, path):
                format_directory(disk, path, cluster_id, node_id)
            meta = with_directory_id(disk, path, check_owner(disk, path, cluster_id, node_id))
            return cls(path, disk, lock, meta)
        except BaseException:
            lock.release()
            raise

    def folder_of(self, topic: str, partition: int) -> str:
        """The path of a partition's folder."""
        return f"{self.path}/{topic}-{partition}"

    def create_partition(self, topic: str, partition: int, topic_id: str, config: LogConfig, now: Instant) -> PartitionFiles:
        """A new partition, which is on the disk after its first flush. Raises: `StorageError`, if its folder is there."""
        key, folder = TopicPartition(topic, partition), self.folder_of(topic, partition)
        if key in self.found or self._disk.exists(folder):
            raise StorageError(f"{folder} exists already: a new partition needs a new folder")
        with self._changing:
            if key in self._stale or any(key in known for known in self._lines):
                self._drop_lines(key)
                self._drop_stale_lines()
        files = PartitionFiles.create(self._disk, folder, topic_id, config, now)
        self.found[key] = topic_id
        return self._add(files)

    def has_partition(self, topic: str, partition: int, topic_id: str) -> bool:
        """Whether a partition was found that is this topic's, or does not say whose it is: that was lost with the power.

        **Kafka:** `LogManager.isStrayReplica`, `UnifiedLog.assignTopicId`.
        """
        return self.found.get(TopicPartition(topic, partition)) in ("", DAMAGED, topic_id)

    def set_aside(self, topic: str, partition: int) -> str | None:
        """Give a folder that is of another topic of this name, or of no partition of this broker, the ending `-stray`.

        Returns its new name, or `None` if there is no such folder.

        **Kafka:** `LogManager.addStrayLog`.
        """
        if self.found.pop(TopicPartition(topic, partition), None) is None:
            return None
        folder = self.folder_of(topic, partition)
        renamed = f"{self.path}/{other_name(f'{topic}-{partition}', f'.{random_uuid().hex}{STRAY}')}"
        self._disk.rename(folder, renamed)
        self._disk.sync_folder(self.path)
        self._drop_lines((topic, partition))
        return renamed

    def open_partition(
        self, topic: str, partition: int, config: LogConfig, now: Instant, topic_id: str = ""
    ) -> PartitionFiles:
        """A partition that was found; if it does not say whose it is, it is this topic's from now on.

        Raises: `StorageError`, if its files are damaged.
        """
        key = (topic, partition)
        checkpoints = CheckpointedOffsets(
            Offset(self._high_watermarks.get(key, 0)),
            Offset(self._recovery_points.get(key, 0)),
            Offset(self._log_starts.get(key, 0)),
        )
        folder = self.folder_of(topic, partition)
        was_compacted = key in self._cleaned or CLEANED_OFFSETS in self._damaged
        files = PartitionFiles.open(
            self._disk, folder, config, checkpoints, self.clean, now, was_compacted, self.believes_epochs
        )
        if topic_id and not files.topic_id:
            files.identify(topic_id)
            self.found[TopicPartition(topic, partition)] = topic_id
        return self._add(files)

    def may_begin_anew(self, topic: str, partition: int, may_lead: bool) -> bool:
        """Whether a replica may begin with an empty log, its folder not being there."""
        return may_begin_anew(self.clean, Offset(self._noted.get((topic, partition), UNKNOWN_OFFSET)), may_lead)

    def drop_unknown_lines(self, known: Collection[tuple[str, int]]) -> None:
        """Leave out of the checkpoints what has neither a folder nor a partition of this broker, which are `known`."""
        for key in {one for lines in self._lines for one in lines} - self.found.keys() - set(known):
            self._drop_lines(key)

    def unopened(self, topic: str, partition: int, config: LogConfig, now: Instant) -> PartitionFiles:
        """The files of a partition that cannot be opened: they stay as they are, and so do its lines in the checkpoints."""
        files = PartitionFiles.unopened(self._disk, self.folder_of(topic, partition), config, now)
        files.keeper = self
        return files

    def _add(self, files: PartitionFiles) -> PartitionFiles:
        with self._changing:
            self.partitions[TopicPartition(files.topic, files.partition)] = files
        files.keeper = self
        return files

    def forget(self, files: PartitionFiles, now_ms: MonotonicMs) -> None:
        """A partition was deleted. Its lines leave the checkpoints with the next write, or before it is created again."""
        key = TopicPartition(files.topic, files.partition)
        self._deletions.append((MonotonicMs(now_ms + files.config.file_delete_delay_ms), files.folder))
        with self._changing:
            self.partitions.pop(key, None)
            self.found.pop(key, None)
            self._drop_lines(key)

    # ---- checkpoints

    def _drop_lines(self, key: tuple[str, int]) -> None:
        with self._changing:
            for known in self._lines:
                known.pop(key, None)
            self._stale.add(key)
            self._is_written = False

    def _drop_stale_lines(self) -> None:
        """Write all checkpoints: by the recovery point of an earlier log, a start would not look at the new one's batches.

        **Kafka:** `LogManager.asyncDelete`, which writes them with each deletion.
        """
        self.checkpoint_logs()
        self._write(HIGH_WATERMARKS, self._high_watermarks)
        if self._cleaned:
            self._write(CLEANED_OFFSETS, self._cleaned)
        self._stale.clear()

    def checkpoint_high_watermarks(self, high_watermarks: Mapping[TopicPartition, Offset]) -> None:
        """Write `replication-offset-checkpoint`: every 5 s in Kafka. Partitions that are not named keep their line."""
        with self._changing:
            self._is_written = False
            for key, offset in high_watermarks.items():
                self._high_watermarks[key] = offset
            self._write(HIGH_WATERMARKS, self._high_watermarks)
            self._is_written = True

    def differ_from_checkpoint(self, high_watermarks: Mapping[TopicPartition, Offset]) -> bool:
        """Whether a checkpoint with these high watermarks would be another one than was written last."""
        known = self._high_watermarks
        return not self._is_written or any(known.get(key) != offset for key, offset in high_watermarks.items())

    def checkpoint_logs(self) -> None:
        """Write `recovery-point-offset-checkpoint` and `log-start-offset-checkpoint`: every 60 s in Kafka.

        They are written as well before a log is cut below its recovery point. Partitions that are worked on in several
        threads write one after the other.
        """
        with self._changing:
            moves: dict[PartitionFiles, int] = {}
            for key, files in self.partitions.items():
                moves[files] = files.start_moves  # looked at first: it may move while this is written in a thread
                start = files.log.start_offset
                self._recovery_points[key] = files.recovery_point
                self._log_starts.pop(key, None)
                if is_checkpointed(start, files.segments[0].base_offset):
                    self._log_starts[key] = start
            self._write(RECOVERY_POINTS, self._recovery_points)
            self._write(LOG_STARTS, self._log_starts)
            for files, noted in moves.items():
                files.noted_moves = noted

    def _write(self, name: str, offsets: Mapping[tuple[str, int], int]) -> None:
        entries = tuple(OffsetEntry(topic, partition, Offset(offset)) for (topic, partition), offset in offsets.items())
        write_offsets(self._disk, self.path, name, entries)

    # ---- from time to time

    def compact(self, files: PartitionFiles, stable_end: Offset, now: Instant) -> bool:
        """Compact a partition with cleanup.policy=compact up to its last stable offset; whether that was worth it."""
        return at_once(self.compact_by_batch(files, stable_end, now))

    def compact_by_batch(self, files: PartitionFiles, stable_end: Offset, now: Instant) -> Steps[bool]:
        """The same with a pause after each batch; the first comes only if it is worth it.

        **Kafka:** `LogCleaner`, `LogCleanerManager.updateCheckpoints`.
        """
        key = TopicPartition(files.topic, files.partition)
        cleaned = yield from compact(files, Offset(self._cleaned.get(key, UNKNOWN_OFFSET)), stable_end, now)
        if cleaned is None:
            return False
        with self._changing:
            self._cleaned[key] = cleaned
            self._write(CLEANED_OFFSETS, self._cleaned)
        return True

    def clean_up(self, now_ms: MonotonicMs) -> None:
        """Remove what was deleted file.delete.delay.ms ago."""
        for files in self.partitions.values():
            files.clean_up(now_ms)
        self.remove_deleted(now_ms)

    def remove_deleted(self, now_ms: MonotonicMs) -> None:
        """Remove the folders of partitions that were deleted file.delete.delay.ms ago."""
        due = [folder for when, folder in self._deletions if when <= now_ms]
        self._deletions = [entry for entry in self._deletions if entry[0] > now_ms]
        for folder in due:
            try:
                if self._disk.is_link(folder):
                    self._disk.unlink(folder)
                    continue
                for name in self._disk.listdir(folder):
                    self._disk.unlink(f"{folder}/{name}")
                self._disk.remove_folder(folder)
            except (OSError, StorageError) as error:
                LOG.warning("%s cannot be removed, which the next start tries again: %s", folder, error)

    def to_flush(self, now_ms: MonotonicMs) -> list[PartitionFiles]:
        """The partitions whose flush is due: run their `flush_job` in a thread, or call `flush`."""
        return [files for files in self.partitions.values() if files.flush_is_due(now_ms)]

    def _close(self, files: PartitionFiles) -> None:
        """Close one partition; if that fails, the stop counts as clean for the others."""
        try:
            files.close()
        except (OSError, StorageError) as error:
            LOG.error("%s-%d is not closed in order: %s", files.topic, files.partition, error)
            files.fail()

    def close(
        self,
        high_watermarks: Mapping[TopicPartition, Offset],
        broker_epoch: BrokerEpoch | None,
        logs_loaded: bool = True,
    ) -> None:
        """Close all partitions and unlock. With a broker epoch the stop is in order, and noted if it counts as clean.

        `logs_loaded`: whether the partitions that this broker has by its metadata were all opened.

        **Kafka:** `LogManager.shutdown`.
        """
        if self.closed_at_once == 1:
            for files in self.partitions.values():
                self._close(files)
        else:
            with ThreadPoolExecutor(self.closed_at_once) as threads:
                list(threads.map(self._close, self.partitions.values()))
        self.checkpoint_logs()
        self.checkpoint_high_watermarks(high_watermarks)
        if broker_epoch is not None and is_noted_as_clean(self.clean, logs_loaded):
            write_clean_shutdown(self._disk, self.path, broker_epoch)
        self._lock.release()
