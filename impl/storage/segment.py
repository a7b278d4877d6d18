"""A segment: a `.log` file with its two indexes, and the index of aborted transactions."""

import logging
import zlib
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple

from kspec.impl.records.batch import HEADER_SIZE, LENGTH_END, MAGIC, BatchHeader, Buffer, header_at, is_intact, placed
from kspec.impl.records.markers import marker_of
from kspec.impl.records.record import first_record
from kspec.impl.storage.disk import Disk, File, Handle, StorageError
from kspec.impl.storage.index import AbortedIndex, Index, OffsetIndex, TimeIndex
from kspec.spec.log.batch import EndMarker
from kspec.spec.log.segments import (
    LARGEST_RELATIVE_OFFSET,
    ActiveSegment,
    IndexedBatch,
    StoredSegment,
    dates_batch,
    names_batch,
    needs_index_entry,
)
from kspec.spec.values import NO_TIMESTAMP, Epoch, Offset, TimestampMs

LOG = logging.getLogger("kspec.storage")

base_of = attrgetter("base_offset")
"""The base offset of a segment."""

CHUNK = 8_192
"""Bytes that are read at once while headers are looked at one after the other."""

LONGEST_TAIL = 8 << 20
"""Bytes behind the last index entry: with more, entries are missing. Kafka up to 3.9 has none within one append."""

LEAST_SIZE = 26
"""Bytes of the smallest message of formats 0 and 1. Kafka: `LegacyRecord.RECORD_OVERHEAD_V0` and the length before it."""

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


def indexed(header: BatchHeader) -> IndexedBatch:
    """A batch as the rules of indexes see it."""
    return IndexedBatch(header.base_offset, header.last_offset, header.max_timestamp)


class Segment:
    """A segment's files. `next_offset` is the offset after its last batch, `size` the bytes of its batches."""

    def __init__(
        self,
        disk: Disk,
        folder: str,
        base_offset: Offset,
        index_interval: int,
        created: TimestampMs,
        create: bool,
        suffix: str = "",
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
        self.aborted = AbortedIndex(disk, f"{path}.txnindex{suffix}")
        self.has_markers = False
        """Whether a check of all batches has met a marker."""
        self._next_offset = base_offset if create else None
        self._first_timestamp = int(NO_TIMESTAMP)
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
        """The offset after the last batch: read from the last index entry on. **Kafka:** `LogSegment.readNextOffset`.

        Raises: `InvalidSegmentError`, if the segment does not end with a whole batch, or with one of another segment.
        """
        if self._next_offset is None:
            self._read_end()
        assert self._next_offset is not None
        return self._next_offset

    def _read_end(self) -> None:
        """Read the batches behind the last index entry. If they should have entries, too, the indexes are made anew."""
        start = self._position_up_to(self.size)
        following, largest, is_behind = self.base_offset, int(NO_TIMESTAMP), False
        for header in self.headers_in_order(start):
            is_behind |= header.position - start > LONGEST_TAIL + self._interval
            following = header.next_offset
            largest = max(largest, int(header.max_timestamp))
        self._next_offset = following
        if is_behind or largest > self.max_timestamp[0]:
            self.rebuild_indexes("entries are missing")

    @property
    def max_timestamp(self) -> tuple[int, Offset]:
        """The largest timestamp of a batch, and the last offset of the first such batch; -1 without any."""
        if self._max_timestamp is None:
            last = len(self.times) - 1
            if not self._is_right(self.times, last):
                self.rebuild_indexes(f"entry {last} of the time index has another time than its batch")
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
        """The facts that decide whether it is full; `index_bytes` is segment.index.bytes."""
        full = len(self.offsets) >= index_bytes // 8 or len(self.times) >= index_bytes // 12 - 1
        return ActiveSegment(self.base_offset, self.log.size, self.first_timestamp, self.created, full)

    def as_stored(self) -> StoredSegment:
        """The facts that decide whether it may be deleted."""
        return StoredSegment(self.base_offset, self.size, self.largest_timestamp)

    # ---- the indexes

    def _position_for(self, offset: Offset) -> int:
        """A position at which a batch begins, not after the batch that contains the offset. **Kafka:** `translateOffset`."""
        number = self.offsets.number_for(offset)
        if not self._is_right(self.offsets, number):
            self.rebuild_indexes(f"entry {number} names no batch")
            number = self.offsets.number_for(offset)
        return self.offsets[number][1] if number >= 0 else 0

    def _position_up_to(self, position: int) -> int:
        """The largest known position of a batch up to this one."""
        number = self.offsets.number_up_to(position)
        if not self._is_right(self.offsets, number):
            self.rebuild_indexes(f"entry {number} names no batch")
            number = self.offsets.number_up_to(position)
        return self.offsets[number][1] if number >= 0 else 0

    def headers_from(self, timestamp: int, offset: Offset) -> Iterator[BatchHeader]:
        """The headers from the first record on that has this timestamp or a later one, or from one before it.

        `offset`: where the log starts.
        """
        number = self.times.number_for(timestamp)
        if not self._is_right(self.times, number):
            self.rebuild_indexes(f"entry {number} of the time index has another time than its batch")
            number = self.times.number_for(timestamp)
        first = self.times.offset_at(number) if number >= 0 else self.base_offset
        return self.headers(self._position_for(max(first, offset)))

    def _is_right(self, index: Index, number: int) -> bool:
        """Whether an entry is right by the header of its batch. It is looked at once, before it is used."""
        if number < 0 or index.is_known(number):
            return True
        is_right = self._names(number) if index is self.offsets else self._dates(number)
        if is_right:
            index.note_right(number)
        return is_right

    def _names(self, number: int) -> bool:
        header = self._header_at(self.offsets[number][1])
        return header is not None and names_batch(self.offsets.offset_at(number), self.base_offset, indexed(header))

    def _dates(self, number: int) -> bool:
        timestamp, offset = self.times[number][0], self.times.offset_at(number)
        position = self._position_for(offset)
        header = next((one for one in self.headers(position) if one.next_offset > offset), None)
        return header is not None and dates_batch(timestamp, offset, indexed(header))

    def _header_at(self, position: int) -> BatchHeader | None:
        """The header of the batch that begins at a position; none, if none can begin there."""
        if not 0 <= position <= self.size - HEADER_SIZE:
            return None
        header = header_at(self.log.read(position, HEADER_SIZE), of_file=position)
        is_one = header.magic == MAGIC and HEADER_SIZE <= header.size <= self.size - position
        return header if is_one else None

    def rebuild_indexes(self, why: str) -> None:
        """Make both indexes anew from the headers of all batches; the batches stay as they are.

        Raises: `InvalidSegmentError`, where no batch can begin: what follows cannot be indexed.
        """
        LOG.warning("%s and its time index are made anew: %s", self.offsets.path, why)
        self.indexes_missing = False
        self._begin_anew()
        try:
            for header in self.headers_in_order():
                self._note(header)
        finally:
            self._end_anew()

    def _begin_anew(self) -> None:
        self.offsets.begin_anew()
        self.times.begin_anew()
        self._starts.clear()
        self._latest.clear()
        base = self.base_offset
        self._next_offset, self._max_timestamp, self._since_entry = base, (NO_TIMESTAMP, base), 0

    def _end_anew(self) -> None:
        if self.size and self._max_timestamp is not None:
            self.times.append(*self._max_timestamp)
        self.offsets.rebuilt()
        self.times.rebuilt()

    def around(self, offset: Offset) -> tuple[BatchHeader | None, BatchHeader | None]:
        """The last batch of this segment that begins before an offset, and the one that contains it or comes next."""
        before = None
        for header in self.headers(self._position_for(Offset(offset - 1))):
            if header.next_offset > offset:
                return (header if header.base_offset < offset else before), header
            before = header
        return before, None

    def headers_in_order(self, position: int = 0) -> Iterator[BatchHeader]:
        """The headers of the batches from a position on. The offsets grow, and lie within the segment.

        Raises: `InvalidSegmentError`, where no batch can begin, or one has an offset that cannot be there.
        """
        following = self.base_offset
        for header in self.headers(position):
            if not 0 <= header.last_offset_delta <= LARGEST_RELATIVE_OFFSET or header.base_offset < following:
                raise self._misplaced(header, following)
            if header.last_offset - self.base_offset > LARGEST_RELATIVE_OFFSET:
                raise self._misplaced(header, following)
            following = header.next_offset
            yield header

    def _misplaced(self, header: BatchHeader, following: Offset) -> InvalidSegmentError:
        return InvalidSegmentError(
            f"{self.log.path}: the batch at byte {header.position} begins at offset {header.base_offset}, "
            f"where {following} or one soon after it comes next"
        )

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
            position = self._position_for(offset)
        return next((header for header in self.headers(position) if header.next_offset > offset), None)

    def read(self, offset: Offset, max_offset: Offset, max_bytes: int, at_least_one: bool) -> FileSlice | None:
        """Batches from `offset` on, as `PartitionFiles.read` says; none if the segment has no batch at or after it."""
        first = self._latest.get(offset) or self.find(offset)
        if first is None:
            return None
        handle = self.log.handle()
        start, size, next_offset = first.position, first.size, first.next_offset
        if next_offset > self.next_offset:  # no reader would ever come past it
            raise InvalidSegmentError(
                f"{self.log.path}: the batch at byte {start} would end at offset {next_offset}, "
                f"and the segment ends at {self.next_offset}"
            )
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
        """The end of the last batch that lies before `limit` and `max_offset`, found from the index entries before both."""
        end, next_offset = first.position + first.size, first.next_offset
        while (known := self._latest.get(next_offset)) is not None:
            if known.position + known.size > limit or known.next_offset > max_offset:
                return end, next_offset
            end, next_offset = known.position + known.size, known.next_offset
        if next_offset >= self.next_offset:
            return end, next_offset
        from_index = min(self._position_up_to(limit), self._position_for(Offset(max_offset - 1)))
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
        self.aborted.truncate_to(offset)
        self._starts.clear()
        self._latest.clear()
        if found is not None:
            self.log.truncate(found.position)
        self._since_entry = 0
        self._next_offset = None
        if self.size == 0:
            self._first_timestamp = int(NO_TIMESTAMP)
        self._max_timestamp = None
        self._max_timestamp = self.max_timestamp
        for header in self.headers(self._position_for(self._max_timestamp[1])):
            if header.max_timestamp > self._max_timestamp[0]:
                self._max_timestamp = (header.max_timestamp, header.last_offset)

    def recover(self) -> Iterator[BatchHeader]:
        """Check each batch in full, make the indexes anew, and yield each valid header; then cut what follows.

        **Kafka:** `LogSegment.recover`, `DefaultRecordBatch.ensureValid`.
        """
        base = following = self.base_offset
        self._begin_anew()
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
                self.has_markers |= header.control
                valid, following = header.position + size, self._note(header)
                yield header
        except InvalidSegmentError:
            pass
        if valid < self.size:
            self._refuse_other_format(valid)
            self.log.truncate(valid)
        self._end_anew()

    def _refuse_other_format(self, position: int) -> None:
        """A batch of another format whose checksum is right was written by another release: it is not cut off.

        Raises: `StorageError`. **Kafka:** `LogSegment.recover` cuts off formats that are newer.
        """
        front = self.log.read(position, HEADER_SIZE)
        if len(front) < LEAST_SIZE or front[16] == MAGIC:
            return
        size = LENGTH_END + int.from_bytes(front[8:LENGTH_END], signed=True)
        if not LEAST_SIZE <= size <= self.size - position:
            return
        batch = self.log.read(position, size)
        is_newer = len(batch) >= HEADER_SIZE and is_intact(batch, header_at(batch))
        if is_newer or zlib.crc32(batch[16:]) == int.from_bytes(batch[LENGTH_END:16]):
            raise StorageError(
                f"{self.log.path}: the batch at byte {position} has format {front[16]}, and only {MAGIC} can be read here"
            )

    def handles(self, with_indexes: bool) -> tuple[Handle, ...]:
        """The files to sync: its indexes, too, if it is to be opened without being recovered."""
        handles = (self.log.handle(),)
        if not with_indexes:
            return handles
        return (*handles, self.offsets.handle(), self.times.handle(), *self.aborted.handles())

    def close(self) -> None:
        """Write the indexes and close the files."""
        self.finish()
        self.log.close()
        self.offsets.close()
        self.times.close()
        self.aborted.close()

    def forget(self) -> None:
        """Close the files, which are about to be deleted or renamed, without writing."""
        for file in (self.log, self.offsets, self.times, self.aborted):
            file.close()

    def batch(self, header: BatchHeader) -> bytes:
        """The bytes of a batch, by the header that was read here."""
        return self.log.read(header.position, header.size)

    def marker(self, header: BatchHeader) -> EndMarker | None:
        """The marker in a batch, by the header that was read here; none if it is no control batch."""
        return marker_of(header, self.batch(header)) if header.control else None


# ---- records by their timestamps, as ListOffsets asks for them


class TimestampAndOffset(NamedTuple):
    """A record's timestamp (ms), its offset, and its batch's leader epoch: what ListOffsets answers."""

    timestamp: int
    offset: Offset
    leader_epoch: Epoch


def first_from(segments: Sequence[Segment], timestamp: int, start: Offset) -> TimestampAndOffset | None:
    """The first record from `start` on whose timestamp is at least this. **Kafka:** `UnifiedLog.fetchOffsetByTimestamp`."""
    for segment in segments:
        if segment.max_timestamp[0] < timestamp:
            continue
        for header in segment.headers_from(timestamp, start):
            if header.max_timestamp >= timestamp and header.next_offset > start:
                batch = segment.log.read(header.position, header.size)
                found = first_record(batch, lambda record: record.timestamp >= timestamp and record.offset >= start)
                if found is not None:
                    return TimestampAndOffset(found.timestamp, Offset(found.offset), header.leader_epoch)
    return None


def with_largest(segments: Sequence[Segment]) -> TimestampAndOffset | None:
    """The first record with the largest timestamp; none in an empty log. **Kafka:** the same, `MAX_TIMESTAMP`."""
    segment = max(segments, key=lambda segment: segment.max_timestamp[0])
    largest, offset = segment.max_timestamp
    header = segment.find(offset)
    if header is None or largest < 0:
        return None
    batch = segment.log.read(header.position, header.size)
    found = first_record(batch, lambda record: record.timestamp == header.max_timestamp)
    return None if found is None else TimestampAndOffset(found.timestamp, Offset(found.offset), header.leader_epoch)
