"""The metadata log as its controller has it: each append is synced before it counts, so all of it is committed.

One controller epoch is the leader epoch of the batches. It grows with every start, as with every election of a controller.
"""

from collections.abc import Sequence
from pathlib import Path

from kspec.impl.metadata.files import MetadataFiles, replay_into
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord, encode_record
from kspec.impl.metadata.snapshots import CONTROL, leader_change
from kspec.impl.records.record import new_batch
from kspec.impl.storage import Disk
from kspec.spec.values import Epoch, Instant, Offset

FIRST_EPOCH = Epoch(1)
"""The first controller epoch: there is no leader in epoch 0, in which observers begin. Kafka: `QuorumState.initialize`."""


class MetadataLog(MetadataFiles):
    """The records of the metadata log, durable once `append` has returned."""

    def __init__(self, disk: Disk, log_dir: Path, now: Instant) -> None:
        super().__init__(disk, log_dir, now)
        self.epoch = max(Epoch(self.last_epoch + 1), FIRST_EPOCH)

    def image(self) -> ClusterImage:
        """The image of the snapshot, and of the records after it. Raises: `StorageError`, if the snapshot is damaged."""
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

    def begin_epoch(self, node: int, now: Instant) -> Offset:
        """Say that this node leads the log in the present epoch, through to the disk; the offset of the next record.

        **Kafka:** `LeaderState.appendStartOfEpochControlRecords`.
        """
        self._append(new_batch([(now.timestamp, *leader_change(node))], attributes=CONTROL), now)
        return self.end_offset

    def append(self, records: Sequence[LogRecord], now: Instant) -> None:
        """Write records as one batch, so that all of them survive or none, and return when they are on the disk."""
        self._append(new_batch([(now.timestamp, None, encode_record(record)) for record in records]), now)

    def _append(self, batch: bytes, now: Instant) -> None:
        self.files.append(self.end_offset, self.epoch, [batch], now)
        self.files.flush(now.monotonic)
