"""The files of the metadata log, a controller's own or a broker's copy: batches and a snapshot.

They lie in the folder `__cluster_metadata-0`, as Kafka keeps them. Now and then a snapshot takes the place of the records
before it, so that a start reads little.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord, decode_record
from kspec.impl.metadata.snapshots import (
    BOOTSTRAP,
    PARTIAL,
    from_bytes,
    snapshot_name,
    snapshot_of,
    to_bytes,
    version_of_snapshot,
)
from kspec.impl.metadata.voters import KnownVoters, version_in_batch
from kspec.impl.records.batch import LENGTH_END, BatchHeader, InvalidBatchError, headers
from kspec.impl.records.record import records_of
from kspec.impl.storage import Disk, LogConfig, PartitionFiles, StorageError
from kspec.impl.storage.small_files import METADATA_FOLDER
from kspec.spec.broker.recovery import CheckpointedOffsets
from kspec.spec.log.epoch_log import EpochLog
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.quorum.rules.snapshots import lacks_records
from kspec.spec.values import Epoch, Instant, Offset

FOLDER = METADATA_FOLDER
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Kafka: `Uuid.METADATA_TOPIC_ID`."""

READ_BYTES = 8 << 20


class MetadataBatch(NamedTuple):
    """A batch of the metadata log. A control batch has offsets, and no records: it changes nothing in the image, but for the
    `kraft.version`, if it sets that.
    """

    base_offset: Offset
    next_offset: Offset
    records: tuple[LogRecord, ...]
    kraft_version: int | None = None


def replay_into(image: ClusterImage, batches: Iterable[MetadataBatch]) -> None:
    """Take batches, which are next: the records of those without an offset between them together, which is quicker."""
    records: list[LogRecord] = []
    following = image.spec.end_offset
    for batch in batches:
        if batch.base_offset != following:
            image.replay_all(records)
            image.go_to(batch.base_offset)
            records = []
        records += batch.records
        following = Offset(batch.base_offset + len(batch.records))
        if following != batch.next_offset:
            image.replay_all(records)
            image.go_to(batch.next_offset)
            records, following = [], batch.next_offset
            image.kraft_version = image.kraft_version if batch.kraft_version is None else batch.kraft_version
    image.replay_all(records)


def records_in(batch: bytes) -> tuple[LogRecord, ...]:
    """The records of one batch that is no control batch. Raises: `DecodeError`."""
    return tuple(decode_record(memoryview(record.value or b"")) for record in records_of(batch))


Reader = Callable[[bytes], tuple[LogRecord, ...]]


def batches_of(content: memoryview, read: Reader = records_in) -> list[MetadataBatch]:
    """The batches in a buffer, each read by `read`. Raises: `InvalidBatchError`, `DecodeError`."""
    return [_batch(content, header, read) for header in headers(content)]


def _batch(content: memoryview, header: BatchHeader, read: Reader) -> MetadataBatch:
    start = header.position
    if header.control:
        return MetadataBatch(header.base_offset, header.next_offset, (), version_in_batch(content, header))
    records = read(bytes(content[start : start + LENGTH_END + header.length]))
    return MetadataBatch(header.base_offset, header.next_offset, records)


class ImageReader:
    """The image that a controller has written into the metadata log in its folder, read while it runs: each time only what
    is new.

    A batch that is being written does not count yet.
    """

    def __init__(self, data: Path) -> None:
        self._folder = data / FOLDER
        self._image = ClusterImage()
        self._read: dict[Path, int] = {}

    def image(self) -> ClusterImage:
        """The image as it is now."""
        for segment in sorted(self._folder.glob("*.log")):
            position = self._read.get(segment, 0)
            with segment.open("rb") as file:
                file.seek(position)
                content = memoryview(file.read())
            found: list[MetadataBatch] = []
            with suppress(InvalidBatchError):
                for header in headers(content):
                    found.append(_batch(content, header, records_in))
                    self._read[segment] = position + header.position + header.size
            replay_into(self._image, found)
        return self._image


def image_in(data: Path) -> ClusterImage:
    """The image that a controller has written into the metadata log in its folder, while it runs."""
    return ImageReader(data).image()


class MetadataFiles:
    """The folder, open."""

    def __init__(self, disk: Disk, log_dir: Path, now: Instant) -> None:
        self.disk = disk
        self.read: Callable[[bytes], tuple[LogRecord, ...]] = records_in
        """The decoder of a batch's records."""
        self.folder = folder = str(log_dir / FOLDER)
        config = LogConfig(retention_ms=-1, file_delete_delay_ms=0)
        if disk.exists(folder):
            self.files = PartitionFiles.open(disk, folder, config, CheckpointedOffsets(), False, now)
        else:
            self.files = PartitionFiles.create(disk, folder, TOPIC_ID, config, now)
        names = disk.listdir(folder)
        for name in names:
            if name.endswith(PARTIAL):
                disk.unlink(f"{folder}/{name}")
        known = [found for found in map(snapshot_of, names) if found is not None and found != BOOTSTRAP]
        self.snapshot = max(known, default=NO_SNAPSHOT)
        """The snapshot with which the log begins, `NO_SNAPSHOT` if it begins with its first record."""
        self.voters: KnownVoters = {}
        """The voters that a snapshot of this log tells; none with `kraft.version` 0, and in the copy of a broker."""
        if self.end_offset < self.snapshot.end_offset:
            self.files.restart_at(self.snapshot.end_offset, now.timestamp)

        if lacks_records(self.files.log.start_offset, self.snapshot):
            raise StorageError(
                f"{folder} begins at offset {self.files.log.start_offset}, and has no snapshot (OFFSET-EPOCH.checkpoint) "
                "of the records before it: put that back"
            )

    @property
    def log(self) -> EpochLog:
        """The log as the rules of `spec` see it."""
        return self.files.log

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self.files.log.end_offset

    @property
    def last_epoch(self) -> Epoch:
        """The controller epoch of the last batch, or of the snapshot."""
        return max(self.files.log.latest_epoch, self.snapshot.epoch)

    @property
    def size(self) -> int:
        """The bytes of the records that no snapshot has."""
        return self.files.size

    # ---- reading

    def restored(self, before: ClusterImage | None = None) -> ClusterImage:
        """The image of the snapshot. Raises: `StorageError`, if it is damaged."""
        image = ClusterImage(before)
        if self.snapshot != NO_SNAPSHOT:
            path = self.path_of(self.snapshot)
            content = self.disk.read_file(path)
            image.restore(from_bytes(content, path), self.snapshot.end_offset)
            image.kraft_version = version_of_snapshot(content)
        return image

    def batches(self) -> list[MetadataBatch]:
        """All batches after the snapshot. Older ones may still be there, if the power was lost amid a snapshot."""
        found: list[MetadataBatch] = []
        offset = max(self.files.log.start_offset, self.snapshot.end_offset)
        while offset < self.end_offset:
            piece = self.files.read(offset, self.end_offset, READ_BYTES, at_least_one=True)
            found += self.batches_in(memoryview(piece.bytes()))
            offset = piece.next_offset
        return found

    def batches_in(self, content: memoryview) -> list[MetadataBatch]:
        """The batches in a buffer, with their records. Raises: `InvalidBatchError`, `DecodeError`."""
        return batches_of(content, self.read)

    def path_of(self, snapshot: SnapshotId) -> str:
        """The file of a snapshot."""
        return f"{self.folder}/{snapshot_name(snapshot)}"

    # ---- snapshots

    def take_snapshot(self, image: ClusterImage, now: Instant) -> None:
        """Write down what the log says, and then forget the records and the snapshot before.

        **Kafka:** `SnapshotEmitter`, `FileRawSnapshotWriter.freeze`, `KafkaRaftLog.deleteBeforeSnapshot`.
        """
        offset, epoch = self.end_offset, self.last_epoch
        assert image.spec.end_offset == offset, f"the image is at {image.spec.end_offset}, the log at {offset}"
        content = to_bytes(image.records(), epoch, now.timestamp, self.voters, image.kraft_version)
        before = self.keep_snapshot(SnapshotId(offset, epoch), content)
        self.files.start_at(offset, now)
        self.files.clean_up(now.monotonic)
        self._forget(before)

    def begin_with(self, snapshot: SnapshotId, content: bytes, now: Instant) -> None:
        """Keep a snapshot from elsewhere, and go on after it. **Kafka:** `KafkaRaftClient.handleFetchSnapshotResponse`."""
        before = self.keep_snapshot(snapshot, content)
        self.files.restart_at(snapshot.end_offset, now.timestamp)
        self._forget(before)

    def keep_snapshot(self, snapshot: SnapshotId, content: bytes) -> SnapshotId:
        """Write a snapshot, which is on the disk under its name before anything is deleted; the one that was there."""
        path = self.path_of(snapshot)
        self.disk.write_file(path + PARTIAL, content)
        self.disk.rename(path + PARTIAL, path)
        self.disk.sync_folder(self.folder)
        before, self.snapshot = self.snapshot, snapshot
        return before

    def _forget(self, before: SnapshotId) -> None:
        if before not in (NO_SNAPSHOT, self.snapshot):
            self.disk.unlink(self.path_of(before))

    def close(self) -> None:
        """Close the files."""
        self.files.close()
