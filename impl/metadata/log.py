"""The metadata log: a partition's files, in the folder `__cluster_metadata-0`, each append synced before it counts.

One controller epoch is the leader epoch of the batches. It grows with every start, as with every election of a controller.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from impl.metadata.records import LogRecord, decode_record, encode_record
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
        folder = str(log_dir / FOLDER)
        config = LogConfig(retention_ms=-1)
        if disk.exists(folder):
            self._files = PartitionFiles.open(disk, folder, config, Checkpoints(), False, now_ms)
        else:
            self._files = PartitionFiles.create(disk, folder, TOPIC_ID, config, now_ms)
        self.epoch = Epoch(self._files.log.latest_epoch + 1)

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self._files.log.end_offset

    def read_all(self) -> list[LogRecord]:
        """Every record, the oldest first."""
        found: list[LogRecord] = []
        offset = self._files.log.start_offset
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
