"""The metadata log: a partition's files, in the folder `__cluster_metadata-0`, each append synced before it counts.

One controller epoch is the leader epoch of the batches. It grows with every start, as with every election of a controller.
Now and then a snapshot takes the place of the records before it, so that a start reads little.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from impl.metadata.image import ClusterImage
from impl.metadata.records import LogRecord, decode_record, encode_record
from impl.metadata.snapshots import PARTIAL, from_bytes, snapshot_name, snapshot_of, to_bytes
from impl.records.batch import headers
from impl.records.record import new_batch, records_of
from impl.storage import Disk, LogConfig, PartitionFiles
from spec.broker.recovery import Checkpoints
from spec.values import Epoch, Offset

FOLDER = "__cluster_metadata-0"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Kafka: `Uuid.METADATA_TOPIC_ID`."""

READ_BYTES = 8 << 20


class MetadataLog:
    """The records of the metadata log, durable once `append` has returned."""

    def __init__(self, disk: Disk, log_dir: Path, now_ms: int) -> None:
        self._disk = disk
        self._folder = folder = str(log_dir / FOLDER)
        config = LogConfig(retention_ms=-1, file_delete_delay_ms=0)
        if disk.exists(folder):
            self._files = PartitionFiles.open(disk, folder, config, Checkpoints(), False, now_ms)
        else:
            self._files = PartitionFiles.create(disk, folder, TOPIC_ID, config, now_ms)
        names = self._disk.listdir(folder)
        for name in names:
            if name.endswith(PARTIAL):
                disk.unlink(f"{folder}/{name}")
        self._snapshot = max((found for found in map(snapshot_of, names) if found is not None), default=None)
        latest = self._files.log.latest_epoch
        if self._snapshot is not None:
            offset, epoch = self._snapshot
            latest = max(latest, epoch)
            if self.end_offset < offset:
                self._files.restart_at(offset, now_ms)
        self.epoch = Epoch(latest + 1)

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self._files.log.end_offset

    @property
    def size(self) -> int:
        """The bytes of the records that no snapshot has."""
        return self._files.size

    def image(self) -> ClusterImage:
        """What the log says: the snapshot, and the records after it. Raises: `StorageError`, if the snapshot is damaged."""
        image = ClusterImage()
        if self._snapshot is not None:
            path = f"{self._folder}/{snapshot_name(*self._snapshot)}"
            image.restore(from_bytes(self._disk.read_file(path), path), self._snapshot[0])
        for record in self._read_from(image.spec.end_offset):
            image.replay(record)
        return image

    def take_snapshot(self, image: ClusterImage, now_ms: int) -> None:
        """Write down what the log says, and then forget the records and the snapshot before.

        The file is on the disk under its name before anything is deleted.
        **Kafka:** `SnapshotEmitter`, `FileRawSnapshotWriter.freeze`, `KafkaMetadataLog.deleteBeforeSnapshot`.
        """
        offset, epoch = self.end_offset, self.epoch
        assert image.spec.end_offset == offset, f"the image is at {image.spec.end_offset}, the log at {offset}"
        path = f"{self._folder}/{snapshot_name(offset, epoch)}"
        self._disk.write_file(path + PARTIAL, to_bytes(image.records(), epoch, now_ms))
        self._disk.rename(path + PARTIAL, path)
        self._disk.sync_folder(self._folder)
        before, self._snapshot = self._snapshot, (offset, epoch)
        self._files.start_at(offset, now_ms)
        self._files.clean_up(now_ms)
        if before is not None and before != self._snapshot:
            self._disk.unlink(f"{self._folder}/{snapshot_name(*before)}")

    def _read_from(self, first: Offset) -> list[LogRecord]:
        """The records from an offset on, which is the first of a batch, the oldest first."""
        found: list[LogRecord] = []
        offset = max(first, self._files.log.start_offset)
        while offset < self.end_offset:
            piece = self._files.read(offset, self.end_offset, READ_BYTES, at_least_one=True)
            content = memoryview(piece.bytes())
            for header in headers(content):
                batch = content[header.position : header.position + header.size]
                found += [decode_record(memoryview(record.value or b"")) for record in records_of(batch)]
            offset = piece.next_offset
        return found

    def append(self, records: Sequence[LogRecord]) -> list[LogRecord]:
        """Write records as one batch, so that all of them survive or none, and return when they are on the disk.

        The records come back as they will be read: with every field.
        """
        now_ms = int(time.time() * 1000)
        encoded = [encode_record(record) for record in records]
        batch = new_batch([(now_ms, None, value) for value in encoded])
        self._files.append(self.end_offset, self.epoch, [batch], now_ms)
        self._files.flush(now_ms)
        return [decode_record(memoryview(value)) for value in encoded]

    def close(self) -> None:
        """Close the files."""
        self._files.close()
