"""The header of a record batch (magic 2), read from bytes without decoding the records.

The base offset and the partition leader epoch are set by the broker that appends the batch. Both lie before the bytes that
the checksum covers, so a batch is stored as its producer sent it.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from struct import Struct
from struct import error as struct_error
from typing import NamedTuple

import crc32c

from kspec.spec.values import Epoch, Offset, ProducerEpoch, ProducerId

Buffer = bytes | bytearray | memoryview

HEADER_SIZE = 61
"""Bytes before the records. Kafka: `DefaultRecordBatch.RECORD_BATCH_OVERHEAD`."""

LENGTH_END = 12
"""Bytes before those that the field `length` counts. Kafka: `Records.LOG_OVERHEAD`."""

CRC, CRC_AT, CRC_START = Struct(">I"), 17, 21
"""The checksum: what it is, where it lies, and the attributes, from which on it covers the batch."""

MAGIC = 2

COMPRESSION = 0x07
"""The bits of the attributes that tell how the records are compressed."""

_HEADER = Struct(">qiibIhiqqqhii")
_LENGTH = Struct(">i")
_FIRST_FIELDS = Struct(">qii")
FIRST_FIELDS = _FIRST_FIELDS.size


class InvalidBatchError(Exception):
    """Bytes that are no batch: `position` is where it would begin."""

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"no valid batch at byte {position}: {reason}")
        self.position = position
        self.reason = reason


class BatchHeader(NamedTuple):
    """The fields of a record batch in their order, and the place of its first byte in the buffer or file it was read from.

    `length` counts the bytes after itself; times are in ms. Kafka: `DefaultRecordBatch`.
    """

    base_offset: Offset
    length: int
    leader_epoch: Epoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    base_sequence: int
    record_count: int
    position: int

    def moved(self, base_offset: Offset, leader_epoch: Epoch, position: int) -> "BatchHeader":
        """The header of the same batch at another offset, in another epoch, at another place."""
        return _header((base_offset, self[1], leader_epoch, *self[3:-1], position))

    @property
    def size(self) -> int:
        """The size of the whole batch in bytes."""
        return LENGTH_END + self.length

    @property
    def last_offset(self) -> Offset:
        """The offset of the last record, of those that the batch was appended with."""
        return Offset(self.base_offset + self.last_offset_delta)

    @property
    def next_offset(self) -> Offset:
        """The offset after the last record."""
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def compression(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. Kafka: `CompressionType`."""
        return self.attributes & COMPRESSION

    @property
    def log_append_time(self) -> bool:
        """Whether all records have the time of their append, which is then `max_timestamp`."""
        return bool(self.attributes & 0x08)

    @property
    def transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & 0x10)

    @property
    def control(self) -> bool:
        """Whether the batch holds a marker that ends a transaction, and no data."""
        return bool(self.attributes & 0x20)

    @property
    def delete_horizon(self) -> int | None:
        """The time at which tombstones of a compacted batch may go, in ms: it is kept in place of the base timestamp."""
        return self.base_timestamp if self.attributes & 0x40 else None


_header = partial(tuple.__new__, BatchHeader)
"""A header of its fields, which are given together: many are made."""


def header_at(buffer: Buffer, position: int = 0, of_file: int | None = None) -> BatchHeader:
    """The header of the batch that begins at a byte of a buffer. The records themselves may be missing.

    `of_file`: where it begins in the file that the buffer is a part of.

    Raises: `InvalidBatchError`, if fewer bytes are there than a header has.
    """
    try:
        fields = _HEADER.unpack_from(buffer, position)
    except struct_error:
        left = max(len(buffer) - position, 0)
        raise InvalidBatchError(position, f"{left} bytes are fewer than a header has ({HEADER_SIZE})") from None
    return _header((*fields, position if of_file is None else of_file))


def headers(buffer: Buffer) -> Iterator[BatchHeader]:
    """The headers of the batches that fill a buffer, one after the other.

    Raises: `InvalidBatchError` for a batch that is longer than what is left, or too short to be one, or of another magic.
    """
    position, end = 0, len(buffer)
    while position < end:
        header = header_at(buffer, position)
        size = LENGTH_END + header.length
        if header.magic != MAGIC:
            raise InvalidBatchError(position, f"magic {header.magic} is not {MAGIC}")
        if size < HEADER_SIZE or position + size > end:
            raise InvalidBatchError(position, f"a size of {size} bytes, where {end - position} are left")
        yield header
        position += size


def is_intact(buffer: Buffer, header: BatchHeader, position: int | None = None) -> bool:
    """Whether the checksum of a batch in this buffer is right. **Kafka:** `DefaultRecordBatch.isValid`.

    `position`: where it begins in the buffer, if that is another place than the header says.
    """
    size = LENGTH_END + header.length
    if size < HEADER_SIZE:
        return False
    start = header.position if position is None else position
    return crc32c.crc32c(memoryview(buffer)[start + CRC_START : start + size]) == header.crc


def packed_header(header: BatchHeader) -> bytes:
    """The bytes of a header, as its fields say."""
    return _HEADER.pack(*header[:-1])


def first_fields(base_offset: Offset, length: int, leader_epoch: Epoch) -> bytes:
    """The first 16 bytes of a batch: the two fields that a broker sets, and the length between them."""
    return _FIRST_FIELDS.pack(base_offset, length, leader_epoch)


def placed(batches: Sequence[tuple[Epoch, BatchHeader, Buffer]], base_offset: Offset) -> list[Buffer]:
    """The bytes of batches as they are appended one after the other from `base_offset` on, each in its leader epoch.

    The bytes that were given are not changed. **Kafka:** `DefaultRecordBatch.setLastOffset`, `setPartitionLeaderEpoch`.
    """
    parts: list[Buffer] = []
    for leader_epoch, header, buffer in batches:
        start, end = header.position, header.position + LENGTH_END + header.length
        if header.base_offset != base_offset or header.leader_epoch != leader_epoch:  # a follower's are in their place
            parts.append(first_fields(base_offset, header.length, leader_epoch))
            start += FIRST_FIELDS
        parts.append(memoryview(buffer)[start:end])
        base_offset = Offset(base_offset + header.last_offset_delta + 1)
    return parts


LOG_APPEND_TIME, TRANSACTIONAL = 0x08, 0x10
KNOWN_ATTRIBUTES = 0x7F
"""Compression, timestamp type, transactional, control, delete horizon: what is left where attributes are written anew."""

_ATTRIBUTES, _MAX_TIMESTAMP = Struct(">h"), Struct(">q")


def stamped(batch: Buffer, header: BatchHeader, is_stamped: bool, max_timestamp: int) -> Buffer:
    """A batch with these times in its header: itself if it has them, else a copy with its checksum made anew.

    `is_stamped`: whether its records have the time of their append (ms), which is then the largest.

    **Kafka:** `DefaultRecordBatch.setMaxTimestamp`.
    """
    whole = memoryview(batch)[: header.size]
    if header.log_append_time == is_stamped and header.max_timestamp == max_timestamp:
        return whole
    copied = bytearray(whole)
    attributes = header.attributes & KNOWN_ATTRIBUTES & ~LOG_APPEND_TIME | (LOG_APPEND_TIME if is_stamped else 0)
    _ATTRIBUTES.pack_into(copied, CRC_START, attributes)
    _MAX_TIMESTAMP.pack_into(copied, 35, max_timestamp)
    CRC.pack_into(copied, CRC_AT, crc32c.crc32c(memoryview(copied)[CRC_START:]))
    return memoryview(copied)
