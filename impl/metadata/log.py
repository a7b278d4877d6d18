"""The metadata log as its controller has it: each append is synced before it counts, so all of it is committed.

One controller epoch is the leader epoch of the batches. It grows with every start, as with every election of a controller.
"""

from collections.abc import Sequence
from pathlib import Path

from impl.metadata.files import MetadataFiles, replay_into
from impl.metadata.image import ClusterImage
from impl.metadata.records import LogRecord, decode_record, encode_record
from impl.metadata.snapshots import CONTROL, leader_change
from impl.records.record import new_batch
from impl.storage import Disk
from impl.wire.values import Message
from spec.values import Epoch, Offset

NO_DECISION = LogRecord("LeaderChangeMessage", Message())
"""A control record: it has an offset, and changes nothing in the image."""


class MetadataLog(MetadataFiles):
    """The records of the metadata log, durable once `append` has returned."""

    def __init__(self, disk: Disk, log_dir: Path, now_ms: int) -> None:
        super().__init__(disk, log_dir, now_ms)
        self.epoch = Epoch(self.last_epoch + 1)

    def image(self) -> ClusterImage:
        """What the log says: the snapshot, and the records after it. Raises: `StorageError`, if the snapshot is damaged."""
        image = self.restored()
        replay_into(image, self.batches())
        return image

    # ---- for those who fetch it

    def batches_from(self, offset: Offset, most_bytes: int) -> bytes:
        """Whole batches from the one that has `offset` on, at least one if there is any."""
        return self.files.read(offset, self.end_offset, most_bytes, at_least_one=True).bytes()

    def snapshot_size(self) -> int:
        """The bytes of the snapshot. There is one."""
        return self.disk.size(self.path_of(self.snapshot))

    def snapshot_bytes(self, position: int, most_bytes: int) -> bytes:
        """A piece of the snapshot. There is one."""
        return self.disk.open(self.path_of(self.snapshot)).read(position, most_bytes)

    # ---- writing

    def begin_epoch(self, node: int, now_ms: int) -> list[LogRecord]:
        """Say that this node leads the log in the present epoch, through to the disk.

        **Kafka:** `LeaderState.appendStartOfEpochControlRecords`.
        """
        self._append(new_batch([(now_ms, *leader_change(node))], attributes=CONTROL), now_ms)
        return [NO_DECISION]

    def append(self, records: Sequence[LogRecord], now_ms: int) -> list[LogRecord]:
        """Write records as one batch, so that all of them survive or none, and return when they are on the disk.

        The records come back as they will be read: with every field.
        """
        encoded = [encode_record(record) for record in records]
        self._append(new_batch([(now_ms, None, value) for value in encoded]), now_ms)
        return [decode_record(memoryview(value)) for value in encoded]

    def _append(self, batch: bytes, now_ms: int) -> None:
        self.files.append(self.end_offset, self.epoch, [batch], now_ms)
        self.files.flush(now_ms)
