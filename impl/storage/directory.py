"""A broker's log directory: the lock, the files of the whole directory, and the folders of partitions."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from threading import RLock
from typing import NamedTuple
from uuid import uuid4

from impl.storage.cleaner import compact
from impl.storage.config import LogConfig
from impl.storage.disk import Disk, Lock, StorageError
from impl.storage.partition import PartitionFiles
from impl.storage.small_files import (
    CLEAN_SHUTDOWN,
    CLEANED_OFFSETS,
    HIGH_WATERMARKS,
    LOCK,
    LOG_STARTS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    new_uuid,
    read_clean_shutdown,
    read_meta,
    read_offsets,
    read_partition_metadata,
    split_folder_name,
    write_clean_shutdown,
    write_meta,
    write_offsets,
)
from spec.broker.recovery import Checkpoints, is_checkpointed, is_noted_as_clean
from spec.log.checkpoint_files import OffsetEntry
from spec.values import NO_BROKER_EPOCH, UNKNOWN_OFFSET, BrokerEpoch, Offset

DELETE, STRAY = "-delete", "-stray"


CLOSED_AT_ONCE = 32
"""Partitions that are closed at a time: most of it is waiting for the disk. Kafka: `num.recovery.threads.per.data.dir`."""


class TopicPartition(NamedTuple):
    """A partition by its topic's name and its number."""

    topic: str
    partition: int


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
        self.directory_id = meta.get("directory.id", "")
        self.partitions: dict[TopicPartition, PartitionFiles] = {}
        self.closed_at_once = CLOSED_AT_ONCE
        """How many partitions are closed at a time, each in a thread of its own."""
        self._changing = RLock()
        self._disk = disk
        self._lock = lock
        noted = read_clean_shutdown(disk, path)
        self.clean = noted is not None
        self.previous_broker_epoch = NO_BROKER_EPOCH if noted is None else noted
        self._high_watermarks = read_offsets(disk, path, HIGH_WATERMARKS)
        self._recovery_points = _ignoring_damage(disk, path, RECOVERY_POINTS)
        self._log_starts = _ignoring_damage(disk, path, LOG_STARTS)
        self._cleaned = _ignoring_damage(disk, path, CLEANED_OFFSETS)
        self._lines = (self._high_watermarks, self._recovery_points, self._log_starts, self._cleaned)
        self._stale: set[tuple[str, int]] = set()
        """Partitions that are gone and may still have lines in the checkpoint files."""
        self.found: dict[TopicPartition, str] = {}
        self._deletions: list[tuple[int, str]] = []
        for name in disk.listdir(path):
            folder = f"{path}/{name}"
            if not disk.is_folder(folder):
                continue
            if name.endswith(DELETE):
                self._deletions.append((0, folder))
                continue
            named = split_folder_name(name)
            if named is not None:
                self.found[TopicPartition(*named)] = read_partition_metadata(disk, folder, self.clean)
        if self.clean:
            disk.unlink(f"{path}/{CLEAN_SHUTDOWN}")
            disk.sync_folder(path)

    @classmethod
    def open(cls, path: str, disk: Disk, cluster_id: str, node_id: int) -> "LogDirectory":
        """Lock a directory, and format it if it is new or empty.

        The note of a clean stop is read and deleted, before any log is touched.

        Raises: `StorageError` if it is locked, damaged, or of another cluster or node.
        """
        path = path.rstrip("/")
        disk.make_folder(path)
        lock = disk.lock(f"{path}/{LOCK}")
        if lock is None:
            raise StorageError(f"{path} is in use: another process holds {LOCK}; stop it, or use another log.dirs")
        try:
            if not disk.exists(f"{path}/{META_PROPERTIES}"):
                others = [name for name in disk.listdir(path) if name not in (LOCK, f"{META_PROPERTIES}.tmp")]
                if others:
                    raise StorageError(f"{path} has no {META_PROPERTIES}, and is not empty: it has {others[0]}")
                write_meta(disk, path, cluster_id, node_id, new_uuid())
            meta = read_meta(disk, path)
            for name, wanted in (("cluster.id", cluster_id), ("node.id", str(node_id))):
                if meta[name] != wanted:
                    raise StorageError(f"{path} belongs to {name}={meta[name]}, not to {wanted}: see its {META_PROPERTIES}")
            return cls(path, disk, lock, meta)
        except BaseException:
            lock.release()
            raise

    def folder_of(self, topic: str, partition: int) -> str:
        """The path of a partition's folder."""
        return f"{self.path}/{topic}-{partition}"

    def create_partition(self, topic: str, partition: int, topic_id: str, config: LogConfig, now_ms: int) -> PartitionFiles:
        """A new partition, which is on the disk after its first flush. Raises: `StorageError`, if its folder is there."""
        key, folder = TopicPartition(topic, partition), self.folder_of(topic, partition)
        if key in self.found or self._disk.exists(folder):
            raise StorageError(f"{folder} exists already: a new partition needs a new folder")
        with self._changing:
            if key in self._stale or any(key in known for known in self._lines):
                self._drop_lines(key)
                self._drop_stale_lines()
        files = PartitionFiles.create(self._disk, folder, topic_id, config, now_ms)
        self.found[key] = topic_id
        return self._add(files)

    def has_partition(self, topic: str, partition: int, topic_id: str) -> bool:
        """Whether a partition was found that is this topic's, or does not say whose it is: that was lost with the power.

        **Kafka:** `LogManager.isStrayReplica`, `UnifiedLog.assignTopicId`.
        """
        return self.found.get(TopicPartition(topic, partition)) in ("", topic_id)

    def set_aside(self, topic: str, partition: int) -> str | None:
        """Give a folder that is of another topic of this name, or of no partition of this broker, the ending `-stray`.

        Returns its new name, or `None` if there is no such folder.

        **Kafka:** `LogManager.addStrayLog`.
        """
        if self.found.pop(TopicPartition(topic, partition), None) is None:
            return None
        folder = self.folder_of(topic, partition)
        renamed = f"{folder}.{uuid4().hex}{STRAY}"
        self._disk.rename(folder, renamed)
        self._disk.sync_folder(self.path)
        self._drop_lines((topic, partition))
        return renamed

    def open_partition(
        self, topic: str, partition: int, config: LogConfig, now_ms: int, topic_id: str = ""
    ) -> PartitionFiles:
        """A partition that was found; if it does not say whose it is, it is this topic's from now on.

        Raises: `StorageError`, if its files are damaged.
        """
        key = (topic, partition)
        checkpoints = Checkpoints(
            Offset(self._high_watermarks.get(key, 0)),
            Offset(self._recovery_points.get(key, 0)),
            Offset(self._log_starts.get(key, 0)),
        )
        folder = self.folder_of(topic, partition)
        files = PartitionFiles.open(self._disk, folder, config, checkpoints, self.clean, now_ms)
        if topic_id and not files.topic_id:
            files.identify(topic_id)
            self.found[TopicPartition(topic, partition)] = topic_id
        return self._add(files)

    def _add(self, files: PartitionFiles) -> PartitionFiles:
        with self._changing:
            self.partitions[TopicPartition(files.topic, files.partition)] = files
        files.keeper = self
        return files

    def forget(self, files: PartitionFiles, now_ms: int) -> None:
        """A partition was deleted. Its lines leave the checkpoints with the next write, or before it is created again."""
        key = TopicPartition(files.topic, files.partition)
        self._deletions.append((now_ms + files.config.file_delete_delay_ms, files.folder))
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
            for key, offset in high_watermarks.items():
                self._high_watermarks[key] = offset
            self._write(HIGH_WATERMARKS, self._high_watermarks)

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

    def compact(self, files: PartitionFiles, high_watermark: Offset, now_ms: int) -> bool:
        """Compact a partition with cleanup.policy=compact if it is worth it; whether it was.

        **Kafka:** `LogCleaner`, `LogCleanerManager.updateCheckpoints`.
        """
        key = TopicPartition(files.topic, files.partition)
        cleaned = compact(files, Offset(self._cleaned.get(key, UNKNOWN_OFFSET)), high_watermark, now_ms)
        if cleaned is None:
            return False
        with self._changing:
            self._cleaned[key] = cleaned
            self._write(CLEANED_OFFSETS, self._cleaned)
        return True

    def clean_up(self, now_ms: int) -> None:
        """Remove what was deleted file.delete.delay.ms ago."""
        for files in self.partitions.values():
            files.clean_up(now_ms)
        for _, folder in [entry for entry in self._deletions if entry[0] <= now_ms]:
            for name in self._disk.listdir(folder):
                self._disk.unlink(f"{folder}/{name}")
            self._disk.remove_folder(folder)
        self._deletions = [entry for entry in self._deletions if entry[0] > now_ms]

    def to_flush(self, now_ms: int) -> list[PartitionFiles]:
        """The partitions whose flush is due: run their `flush_job` in a thread, or call `flush`."""
        return [files for files in self.partitions.values() if files.flush_is_due(now_ms)]

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
                files.close()
        else:
            with ThreadPoolExecutor(self.closed_at_once) as threads:
                list(threads.map(PartitionFiles.close, self.partitions.values()))
        self.checkpoint_logs()
        self.checkpoint_high_watermarks(high_watermarks)
        if broker_epoch is not None and is_noted_as_clean(self.clean, logs_loaded):
            write_clean_shutdown(self._disk, self.path, broker_epoch)
        self._lock.release()


def _ignoring_damage(disk: Disk, path: str, name: str) -> dict[tuple[str, int], int]:
    """The offsets in a file that may be ignored if it is damaged. **Kafka:** `LogManager.loadLogs`."""
    try:
        return read_offsets(disk, path, name)
    except StorageError:
        return {}
