"""The records in a batch, read and written: for compaction, for times, and to show them. Nothing that is sent needs it."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import crc32c

from kspec.impl.records.batch import (
    COMPRESSION,
    CRC,
    CRC_AT,
    CRC_START,
    HEADER_SIZE,
    LENGTH_END,
    LOG_APPEND_TIME,
    MAGIC,
    TRANSACTIONAL,
    BatchHeader,
    Buffer,
    header_at,
    packed_header,
)
from kspec.impl.records.compression import compress
from kspec.impl.records.pieces import decompress
from kspec.impl.records.plain import wrapped
from kspec.spec.values import Epoch, Offset, ProducerEpoch, ProducerId


class RecordError(Exception):
    """Bytes in a batch that are no records."""


class StoredRecord(NamedTuple):
    """A record of a batch: offset, timestamp in ms, key and value (none where absent), and headers in order.

    `size` is its length as Kafka tells it, with the field of the length. Kafka: `DefaultRecord`.
    """

    offset: Offset
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    size: int = 0


class _Reader:
    """Reads a record's fields one after the other."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.position = 0

    def number(self, most: int = 5) -> int:
        """A number of variable length, zigzag encoded, in at most 5 bytes (32 bits) or 10 (64 bits); more bits are lost."""
        value = shift = 0
        data, position = self.data, self.position
        if position < len(data) and data[position] < 0x80:  # nearly all are that short
            self.position = position + 1
            return (data[position] >> 1) ^ -(data[position] & 1)
        while True:
            if position >= len(data) or shift == 7 * most:
                raise RecordError("a number does not end")
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        self.position = position
        value &= 0xFFFFFFFF if most == 5 else 0xFFFFFFFFFFFFFFFF
        return (value >> 1) ^ -(value & 1)

    def bytes(self) -> bytes | None:
        """A length and that many bytes; none for a negative length."""
        length = self.number()
        if length < 0:
            return None
        end = self.position + length
        if end > len(self.data):
            raise RecordError(f"{length} bytes were announced, where {len(self.data) - self.position} are left")
        found = bytes(self.data[self.position : end])
        self.position = end
        return found


def records_of(batch: Buffer) -> Iterator[StoredRecord]:
    """The records of the one batch in a buffer.

    Raises: `RecordError`, `CompressionError`. **Kafka:** `DefaultRecordBatch.iterator`, `DefaultRecord.readFrom`.
    """
    header = header_at(batch)
    data = decompress(header.compression, memoryview(batch)[HEADER_SIZE : header.size])
    reader = _Reader(data)
    for _ in range(header.record_count):
        before = reader.position
        length = reader.number()
        end = reader.position + length
        if length < 0 or end > len(data):
            raise RecordError(f"a record of {length} bytes, where {len(data) - reader.position} are left")
        yield _read_record(reader, header, end, before)
    if reader.position != len(data):
        raise RecordError(f"{len(data) - reader.position} bytes are left after the last record")


def _read_record(reader: _Reader, header: BatchHeader, end: int, before: int) -> StoredRecord:
    reader.position += 1
    timestamp = wrapped(header.base_timestamp + reader.number(10))
    offset = Offset(header.base_offset + reader.number())
    key, value = reader.bytes(), reader.bytes()
    headers = tuple(((reader.bytes() or b"").decode("utf-8", "replace"), reader.bytes()) for _ in range(reader.number()))
    if reader.position != end:
        raise RecordError(f"the record at offset {offset} is not as long as it says")
    if header.log_append_time:
        timestamp = header.max_timestamp
    return StoredRecord(offset, timestamp, key, value, headers, end - before)


def first_record(batch: Buffer, wanted: Callable[[StoredRecord], bool]) -> StoredRecord | None:
    """The first record of a batch for which a condition holds."""
    return next((record for record in records_of(batch) if wanted(record)), None)


# ---- writing


_SHORT = tuple(bytes([number]) for number in range(0x80))
"""The numbers of one byte."""


def _number(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    if value < 0x80:
        return _SHORT[value]
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _bytes(value: bytes | None) -> bytes:
    return _number(-1) if value is None else _number(len(value)) + value


def _record_bytes(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, bytes | None]] = (),
) -> bytes:
    parts = [b"\x00", _number(timestamp_delta), _number(offset_delta), _bytes(key), _bytes(value), _number(len(headers))]
    for name, content in headers:
        parts += [_bytes(name.encode()), _bytes(content)]
    body = b"".join(parts)
    return _number(len(body)) + body


def batch_of(header: BatchHeader, records: Sequence[StoredRecord]) -> bytes:
    """A batch with these records. Its length, count and checksum follow from them; all else is as the header says.

    **Kafka:** `MemoryRecordsBuilder`.
    """
    base_timestamp, base_offset = header.base_timestamp, header.base_offset
    written = [
        _record_bytes(one.timestamp - base_timestamp, one.offset - base_offset, one.key, one.value, one.headers)
        for one in records
    ]
    body = compress(header.compression, b"".join(written))
    return _sealed(header._replace(length=_length_with(body), record_count=len(records)), body)


def _length_with(body: bytes) -> int:
    return HEADER_SIZE - LENGTH_END + len(body)


def _sealed(header: BatchHeader, body: bytes) -> bytes:
    """The bytes of a batch, with its checksum."""
    packed = packed_header(header)
    rest = packed[CRC_START:] + body
    return packed[:CRC_AT] + CRC.pack(crc32c.crc32c(rest)) + rest


def rewritten(batch: Buffer, codec: int, stamped: bool, max_timestamp: int) -> bytes:
    """A batch with the records of another: in this codec, at offsets that count from 0, with these times in its header.

    Raises: `RecordError`, `CompressionError`. **Kafka:** `LogValidator.buildRecordsAndAssignOffsets`.
    """
    header = header_at(batch)
    records = [one._replace(offset=Offset(number)) for number, one in enumerate(records_of(batch))]
    attributes = codec | (LOG_APPEND_TIME if stamped else 0) | (header.attributes & TRANSACTIONAL)
    base = records[0].timestamp
    fields = header._replace(attributes=attributes, base_timestamp=base, max_timestamp=max_timestamp)
    return batch_of(fields, records)


def new_batch(
    records: Sequence[tuple[int, bytes | None, bytes | None]],
    *,
    base_offset: int = 0,
    leader_epoch: int = -1,
    codec: int = 0,
    attributes: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytes:
    """A batch of records given as (timestamp in ms, key, value), as a producer makes it."""
    timestamps = [timestamp for timestamp, _, _ in records]
    written = [
        _record_bytes(timestamp - timestamps[0], number, key, value)
        for number, (timestamp, key, value) in enumerate(records)
    ]
    body = compress((attributes | codec) & COMPRESSION, b"".join(written))
    header = BatchHeader(
        Offset(base_offset),
        _length_with(body),
        Epoch(leader_epoch),
        MAGIC,
        0,
        attributes | codec,
        len(records) - 1,
        timestamps[0],
        max(timestamps),
        ProducerId(producer_id),
        ProducerEpoch(producer_epoch),
        base_sequence,
        len(records),
        0,
    )
    return _sealed(header, body)
