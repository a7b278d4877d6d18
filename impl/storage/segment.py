"""A segment: a `.log` file with its two indexes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from impl.records.batch import HEADER_SIZE, LENGTH_END, MAGIC, BatchHeader, Buffer, header_at, is_intact, placed
from impl.storage.disk import Disk, File, Handle, StorageError
from impl.storage.index import OffsetIndex, TimeIndex
from spec.log.segments import LARGEST_RELATIVE_OFFSET, NO_TIMESTAMP, ActiveSegment, StoredSegment, needs_index_entry
from spec.values import Epoch, Offset

CHUNK = 8_192
"""Bytes that are read at once while headers are looked at one after the other."""

READS_REMEMBERED = 64

BATCHES_REMEMBERED = 64
"""Of the batches that were appended last: whoever reads at the end of the log needs no look at the file."""


class InvalidSegmentError(StorageError):
    """A batch in a segment file that cannot be one."""


class FileSlice(NamedTuple):
    """Whole batches that lie behind each other in one segment file, to be sent from there.

    `first_offset` is the base offset of the first batch, which may be below the offset asked for. No record lies between the
    last batch and `next_offset`, from which to read on. An empty slice has length 0, and both are the offset asked for. The
    slice keeps its file open: it can be read even if the segment is deleted meanwhile.
    """

    handle: Handle
    position: int
    length: int
    first_offset: Offset
    next_offset: Offset

    def bytes(self) -> bytes:
        """The batches themselves."""
        return self.handle.read(self.position, self.length)


def file_name(base_offset: int, suffix: str) -> str:
    """The name of a segment's file. **Kafka:** `LogFileUtils.filenamePrefixFromOffset`."""
    return f"{base_offset:020d}{suffix}"


class Segment:
    """A segment's three files. `next_offset` is the offset after its last batch, `size` the bytes of its batches."""

    def __init__(
        self, disk: Disk, folder: str, base_offset: Offset, index_interval: int, created: int, create: bool, suffix: str = ""
    ) -> None:
        self.base_offset = base_offset
        self.created = created
        self._disk = disk
        self._interval = index_interval
        path = f"{folder}/{file_name(base_offset, '')}"
        self.paths = tuple(f"{path}.{kind}{suffix}" for kind in ("log", "index", "timeindex"))
        self.indexes_missing = not create and not all(disk.exists(one) for one in self.paths[1:])
        self.log: File = disk.open(self.paths[0], create=create)
        self.offsets = OffsetIndex(disk, self.paths[1], base_offset, create=True)
        self.times = TimeIndex(disk, self.paths[2], base_offset, create=True)
        self._next_offset = base_offset if create else None
        self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp: tuple[int, Offset] | None = (NO_TIMESTAMP, base_offset) if create else None
        self._since_entry = 0
        self._starts: dict[Offset, int] = {}
        self._latest: dict[Offset, BatchHeader] = {}
        """The batches that were appended last, by their base offsets."""

    # ---- what it is

    @property
    def size(self) -> int:
        """The bytes of its batches."""
        return self.log.size

    @property
    def next_offset(self) -> Offset:
        """The offset after the last batch: read from the last index entry on. **Kafka:** `LogSegment.readNextOffset`."""
        if self._next_offset is None:
            self._next_offset = self.base_offset
            for header in self.headers(self.offsets.position_up_to(self.size)):
                self._next_offset = header.next_offset
        return self._next_offset

    @property
    def max_timestamp(self) -> tuple[int, Offset]:
        """The largest timestamp of a batch, and the last offset of the first such batch; -1 without any."""
        if self._max_timestamp is None:
            self._max_timestamp = self.times.last_entry
        return self._max_timestamp

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch. **Kafka:** `LogSegment.loadFirstBatchTimestamp`."""
        if self._first_timestamp == NO_TIMESTAMP and self.log.size >= HEADER_SIZE:
            self._first_timestamp = header_at(self.log.read(0, HEADER_SIZE)).max_timestamp
        return self._first_timestamp

    @property
    def largest_timestamp(self) -> int:
        """The largest timestamp of a record; without any, when the file was written last.

        **Kafka:** `LogSegment.largestTimestamp`.
        """
        timestamp = self.max_timestamp[0]
        return timestamp if timestamp >= 0 else self._disk.modified_ms(self.paths[0])

    def as_active(self, index_bytes: int) -> ActiveSegment:
        """What decides whether it is full; `index_bytes` is segment.index.bytes."""
        full = len(self.offsets) >= index_bytes // 8 or len(self.times) >= index_bytes // 12 - 1
        return ActiveSegment(self.base_offset, self.log.size, self.first_timestamp, self.created, full)

    def as_stored(self) -> StoredSegment:
        """What decides whether it may be deleted."""
        return StoredSegment(self.base_offset, self.size, self.largest_timestamp)

    # ---- reading

    def headers(self, position: int = 0, end: int | None = None) -> Iterator[BatchHeader]:
        """The headers of the batches from a position on at which one begins, without checking more than sizes.

        Raises: `InvalidSegmentError` where no batch can begin.
        """
        size = self.log.size
        end = size if end is None else end
        chunk, start, chunk_end = b"", position, position
        while position < end:
            if position + HEADER_SIZE > chunk_end:
                chunk, start = self.log.read(position, min(CHUNK, max(end - position, HEADER_SIZE))), position
                chunk_end = start + len(chunk)
            if chunk_end - position < HEADER_SIZE:
                raise InvalidSegmentError(
                    f"{self.log.path}: at byte {position} only {end - position} bytes of a batch are left"
                )
            header = header_at(chunk, position - start, position)
            following = position + LENGTH_END + header.length
            if header.magic != MAGIC or following - position < HEADER_SIZE or following > size:
                raise InvalidSegmentError(f"{self.log.path}: no batch of format {MAGIC} begins at byte {position}")
            yield header
            position = following

    def find(self, offset: Offset) -> BatchHeader | None:
        """The batch that contains an offset, or the first one after it; none if all batches lie before it."""
        if offset >= self.next_offset:
            return None
        position = self._starts.get(offset)
        if position is None:
            position = self.offsets.position_for(offset)
        return next((header for header in self.headers(position) if header.next_offset > offset), None)

    def read(self, offset: Offset, max_offset: Offset, max_bytes: int, at_least_one: bool) -> FileSlice | None:
        """Batches from `offset` on, as `PartitionFiles.read` says; none if the segment has no batch at or after it."""
        first = self._latest.get(offset) or self.find(offset)
        if first is None:
            return None
        handle = self.log.handle()
        start, size, next_offset = first.position, first.size, first.next_offset
        fits = next_offset <= max_offset and (size <= max_bytes or at_least_one)
        if not fits:
            return FileSlice(handle, start, 0, offset, offset)
        if size >= max_bytes:
            return self._remembered(FileSlice(handle, start, size, first.base_offset, next_offset))
        limit, whole = start + max_bytes, self.log.size
        if limit >= whole and max_offset >= self.next_offset:
            return FileSlice(handle, start, whole - start, first.base_offset, self.next_offset)
        end, next_offset = self._end_of_read(first, max_offset, limit)
        return self._remembered(FileSlice(handle, start, end - start, first.base_offset, next_offset))

    def _end_of_read(self, first: BatchHeader, max_offset: Offset, limit: int) -> tuple[int, Offset]:
        """Where the last batch ends that lies before `limit` and `max_offset`, found from the index entries before both."""
        end, next_offset = first.position + first.size, first.next_offset
        while (known := self._latest.get(next_offset)) is not None:
            if known.position + known.size > limit or known.next_offset > max_offset:
                return end, next_offset
            end, next_offset = known.position + known.size, known.next_offset
        if next_offset >= self.next_offset:
            return end, next_offset
        from_index = min(self.offsets.position_up_to(limit), self.offsets.position_for(Offset(max_offset - 1)))
        for header in self.headers(max(from_index, first.position)):
            if header.position + header.size > limit or header.next_offset > max_offset:
                if header.position > end:
                    end, next_offset = header.position, header.base_offset
                break
            end, next_offset = header.position + header.size, header.next_offset
        return end, next_offset

    def _remembered(self, found: FileSlice) -> FileSlice:
        """A reader goes on where it ended: remember that position."""
        if len(self._starts) >= READS_REMEMBERED:
            self._starts.clear()
        self._starts[found.next_offset] = found.position + found.length
        return found

    # ---- writing

    def append(self, batches: Sequence[tuple[Epoch, BatchHeader, Buffer]], base_offset: Offset) -> list[BatchHeader]:
        """Append batches one after the other from an offset on, each in its leader epoch; their headers as they are stored.

        A header says where its batch lies in its buffer.
        """
        position = self.log.size
        self.log.append(placed(batches, base_offset))
        if position == 0:
            self._first_timestamp = batches[0][1].max_timestamp
        stored = []
        for leader_epoch, given, _ in batches:
            header = given.moved(base_offset, leader_epoch, position)
            stored.append(header)
            self._latest[base_offset] = header
            base_offset = self._note(header)
            position += LENGTH_END + header.length
        while len(self._latest) > BATCHES_REMEMBERED:
            del self._latest[next(iter(self._latest))]
        return stored

    def _note(self, header: BatchHeader) -> Offset:
        """A batch lies in the segment, behind the others; the offset after it."""
        last_offset = header.last_offset
        largest = self._max_timestamp or self.max_timestamp
        if header.max_timestamp > largest[0]:
            self._max_timestamp = largest = (header.max_timestamp, last_offset)
        if needs_index_entry(self._since_entry, self._interval):
            self.offsets.append(last_offset, header.position)
            self.times.append(*largest)
            self._since_entry = 0
        self._since_entry += LENGTH_END + header.length
        self._next_offset = next_offset = Offset(last_offset + 1)
        return next_offset

    def finish(self) -> None:
        """Nothing is appended any more: the time index gets its last entry. **Kafka:** `onBecomeInactiveSegment`."""
        if self.size:
            self.times.append(*self.max_timestamp)
        self.offsets.write()
        self.times.write()

    def truncate_to(self, offset: Offset) -> None:
        """Without the batches that do not end before an offset. **Kafka:** `LogSegment.truncateTo`."""
        found = self.find(offset)
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self._starts.clear()
        self._latest.clear()
        if found is not None:
            self.log.truncate(found.position)
        self._since_entry = 0
        self._next_offset = None
        if self.size == 0:
            self._first_timestamp = NO_TIMESTAMP
        self._max_timestamp = self.times.last_entry
        position = self.offsets.position_for(self._max_timestamp[1])
        for header in self.headers(position):
            if header.max_timestamp > self._max_timestamp[0]:
                self._max_timestamp = (header.max_timestamp, header.last_offset)

    def recover(self) -> Iterator[BatchHeader]:
        """Check each batch in full, make the indexes anew, and yield each valid header; then cut what follows.

        **Kafka:** `LogSegment.recover`, `DefaultRecordBatch.ensureValid`.
        """
        self.offsets.cut(0)
        self.times.cut(0)
        self._starts.clear()
        self._latest.clear()
        base = following = self.base_offset
        self._next_offset, self._max_timestamp, self._since_entry = base, (NO_TIMESTAMP, base), 0
        valid = 0
        try:
            for header in self.headers():
                too_far = not 0 <= header.base_offset + header.last_offset_delta - base <= LARGEST_RELATIVE_OFFSET
                if too_far or header.base_offset < following:
                    break
                size = LENGTH_END + header.length
                batch = self.log.read(header.position, size)
                if len(batch) != size or not is_intact(batch, header, position=0):
                    break
                valid, following = header.position + size, self._note(header)
                yield header
        except InvalidSegmentError:
            pass
        if valid < self.size:
            self.log.truncate(valid)

    def handles(self, with_indexes: bool) -> tuple[Handle, ...]:
        """The files to sync: its indexes, too, if it is to be opened without being recovered."""
        handles = (self.log.handle(),)
        return (*handles, self.offsets.handle(), self.times.handle()) if with_indexes else handles

    def close(self) -> None:
        """Write the indexes and close the files."""
        self.finish()
        self.log.close()
        self.offsets.close()
        self.times.close()

    def forget(self) -> None:
        """Close the files, which are about to be deleted or renamed, without writing."""
        for file in (self.log, self.offsets, self.times):
            file.close()
