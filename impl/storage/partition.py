"""The files of one partition: what a broker appends, reads, cuts and deletes."""

from collections.abc import Sequence
from typing import NamedTuple

from impl.records.batch import Buffer
from impl.storage.config import LogConfig
from impl.storage.disk import Disk
from impl.storage.segment import FileSlice
from spec.broker.effects import LogChange
from spec.broker.recovery import Checkpoints, Recovered
from spec.log.epoch_log import EpochLog
from spec.log.producers import ProducerBatch, Producers
from spec.values import Epoch, Offset


class TimestampAndOffset(NamedTuple):
    """A record's timestamp (ms), its offset, and its batch's leader epoch: what ListOffsets answers."""

    timestamp: int
    offset: Offset
    leader_epoch: Epoch


class PartitionFiles:
    """One partition's folder, open. One user at a time; nothing here waits for anything but the disk.

    `log` is what `spec.broker` calls the log: after `apply(change)` it equals the log in the state that the handler returned.
    """

    folder: str
    topic: str
    partition: int
    topic_id: str
    config: LogConfig
    log: EpochLog
    recovery_point: Offset
    recovered: Recovered[EpochLog]
    """The log, the high watermark and the recovery point as they were when the folder was opened."""

    @classmethod
    def create(cls, disk: Disk, folder: str, topic_id: str, config: LogConfig, now_ms: int) -> "PartitionFiles":
        """A new, empty partition. The folder is named TOPIC-PARTITION. `topic_id` is 22 characters of URL-safe base64."""
        raise NotImplementedError

    @classmethod
    def open(
        cls, disk: Disk, folder: str, config: LogConfig, checkpoints: Checkpoints, clean: bool, now_ms: int
    ) -> "PartitionFiles":
        """A partition that is there, recovered if the broker did not stop cleanly. See `docs/storage.md`."""
        raise NotImplementedError

    # ---- what a broker writes

    def apply(self, change: LogChange, payloads: Sequence[Buffer], now_ms: int) -> None:
        """Carry out a `Persist` effect. `payloads`: for `BatchesAppended`, the bytes of each of its batches, in order."""
        raise NotImplementedError

    def append(self, base_offset: Offset, leader_epoch: Epoch, batches: Sequence[Buffer], now_ms: int) -> None:
        """Append batches as a leader: one buffer for each. A gap may lie before `base_offset`, none between them."""
        raise NotImplementedError

    def append_fetched(self, batches: Buffer, now_ms: int) -> None:
        """Append whole batches behind each other in one buffer, with the offsets and epochs they have, as a follower does."""
        raise NotImplementedError

    def open_epoch(self, leader_epoch: Epoch) -> None:
        """Note that an epoch starts at the log's end, through to the disk."""
        raise NotImplementedError

    def truncate_to(self, offset: Offset) -> None:
        """Cut the log. Whole batches go: one that contains `offset` goes, too."""
        raise NotImplementedError

    def restart_at(self, offset: Offset, now_ms: int) -> None:
        """Delete everything; the log is empty and starts at `offset`."""
        raise NotImplementedError

    def start_at(self, offset: Offset, now_ms: int) -> None:
        """Records before `offset` are no longer read; segments that have no others are deleted."""
        raise NotImplementedError

    def flush(self, now_ms: int) -> None:
        """Sync everything up to the log's end, which becomes the recovery point."""
        raise NotImplementedError

    def delete(self, now_ms: int) -> None:
        """Rename the folder to TOPIC-PARTITION.UUID-delete; `clean_up` removes it after file.delete.delay.ms."""
        raise NotImplementedError

    def close(self) -> None:
        """Sync everything, write the indexes and a snapshot of the producers, close the files."""
        raise NotImplementedError

    # ---- what a broker reads

    def read(self, offset: Offset, max_offset: Offset, max_bytes: int, at_least_one: bool = False) -> FileSlice:
        """Whole batches from the one that contains `offset` on.

        They end at or before `max_offset` (the high watermark or log end), and have at most `max_bytes`; with
        `at_least_one` the first batch is given even if it is larger. `offset` lies within the log.
        """
        raise NotImplementedError

    def timestamp_lookup(self, timestamp: int) -> TimestampAndOffset | None:
        """The first record whose timestamp is at least this. **Kafka:** `UnifiedLog.fetchOffsetByTimestamp`."""
        raise NotImplementedError

    def max_timestamp(self) -> TimestampAndOffset | None:
        """The record with the largest timestamp; the first of them. None in an empty log."""
        raise NotImplementedError

    def producers(self) -> Producers:
        """The state of the idempotent producers, for `Partition.producers` after a start."""
        raise NotImplementedError

    def producer_batches(self) -> tuple[ProducerBatch, ...]:
        """The batches that `spec.broker.roles.producers_rebuilt` wants after a truncation (effect `RebuildProducers`)."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """The bytes of all segments."""
        raise NotImplementedError

    # ---- what a broker does from time to time

    def retain(self, high_watermark: Offset, now_ms: int) -> Offset:
        """Delete old segments as retention.ms and retention.bytes say; the new log start, to be told to `spec`."""
        raise NotImplementedError

    def clean_up(self, now_ms: int) -> None:
        """Flush by flush.ms, and remove files whose deletion is due."""
        raise NotImplementedError
