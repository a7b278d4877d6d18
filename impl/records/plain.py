"""The records of a batch, read one by one as Kafka reads them: the oracle for `compiled`, which is loaded later.

`thorough` takes bytes and holds records to the lengths that they announce. `skim` takes a stream of pieces, as they come out
of a decompressor, and passes over what is in keys, values and headers. Both end with `MalformedError` where the bytes are no
records.
"""

from collections.abc import Iterator
from typing import NamedTuple

from kspec.impl.records.batch import Buffer

NO_TIMESTAMP = -1


class MalformedError(Exception):
    """Bytes that are not the records which the header announces."""


class OverlongError(MalformedError):
    """The length of a record is no number of 32 bits."""


class RecordFacts(NamedTuple):
    """A record: its offset within the batch, its timestamp (ms), whether it has a key, how long it says it is (bytes)."""

    offset_delta: int
    timestamp: int
    has_key: bool
    length: int = 0


def wrapped(value: int) -> int:
    """A number in 64 bits, as Java adds."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def unzigzag(value: int) -> int:
    """A number with its sign."""
    return (value >> 1) ^ -(value & 1)


class Bytes:
    """Reads numbers from bytes. **Kafka:** `ByteUtils`."""

    def __init__(self, data: Buffer) -> None:
        self.data = data
        self.position = 0

    def raw(self, most: int) -> int:
        """A number of variable length. Raises: `MalformedError`; `OverlongError` if it has more than `most` bytes."""
        value, data, end = 0, self.data, len(self.data)
        for number in range(most):
            if self.position >= end:
                raise MalformedError("the bytes end within a number")
            byte = data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << 7 * number
            if byte < 0x80:
                return value
        raise OverlongError("a number has too many bytes")

    def int32(self) -> int:
        """A number of 32 bits with its sign; higher bits are lost, as in Java."""
        return unzigzag(self.raw(5) & 0xFFFFFFFF)

    def int64(self) -> int:
        """A number of 64 bits with its sign."""
        return unzigzag(self.raw(10) & 0xFFFFFFFFFFFFFFFF)

    def pass_over(self, count: int) -> None:
        """Skip bytes; none, if the number is negative."""
        if count > len(self.data) - self.position:
            raise MalformedError(f"{count} bytes were announced, where {len(self.data) - self.position} are left")
        self.position += max(count, 0)


def thorough(data: Buffer, count: int, base_time: int) -> Iterator[RecordFacts]:
    """The records that fill these bytes. **Kafka:** `DefaultRecord.readFrom`, of a buffer.

    Raises: `OverlongError`, `MalformedError`.
    """
    reader = Bytes(data)
    for _ in range(count):
        yield _thorough_one(reader, base_time)
    if reader.position != len(data):
        raise MalformedError(f"{len(data) - reader.position} bytes are left after the last record")


def _thorough_one(reader: Bytes, base_time: int) -> RecordFacts:
    length = reader.int32()
    left = len(reader.data) - reader.position
    if length > left:
        raise MalformedError(f"a record of {length} bytes, where {left} are left")
    start = reader.position
    try:
        facts = _fields(reader, base_time)
    except OverlongError as error:
        raise MalformedError(str(error)) from None
    if reader.position - start != length:
        raise MalformedError(f"a record of {reader.position - start} bytes says that it has {length}")
    return facts._replace(length=length)


def _fields(reader: Bytes, base_time: int) -> RecordFacts:
    reader.pass_over(1)
    timestamp = wrapped(base_time + reader.int64())
    offset_delta = reader.int32()
    key_size = reader.int32()
    reader.pass_over(key_size)
    reader.pass_over(reader.int32())
    headers = reader.int32()
    if not 0 <= headers <= len(reader.data) - reader.position:
        raise MalformedError(f"{headers} headers")
    for _ in range(headers):
        size = reader.int32()
        if size < 0:
            raise MalformedError("a header without a key")
        reader.pass_over(size)
        reader.pass_over(reader.int32())
    return RecordFacts(offset_delta, timestamp, key_size >= 0)


class _RecordStream(Bytes):
    """Reads numbers from pieces, one after the other."""

    def __init__(self, pieces: Iterator[Buffer]) -> None:
        super().__init__(b"")
        self._pieces = pieces

    def has_more(self) -> bool:
        """Whether a byte is left: the next piece is taken where one has been read."""
        while self.position >= len(self.data):
            piece = next(self._pieces, None)
            if piece is None:
                return False
            self.data, self.position = piece, 0
        return True

    def raw(self, most: int) -> int:
        value = 0
        for number in range(most):
            if not self.has_more():
                raise MalformedError("the stream ends within a number")
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << 7 * number
            if byte < 0x80:
                return value
        raise OverlongError("a number has too many bytes")

    def pass_over(self, count: int) -> None:
        while count > 0:
            if not self.has_more():
                raise MalformedError(f"the stream ends {count} bytes before a field does")
            taken = min(count, len(self.data) - self.position)
            self.position += taken
            count -= taken


def skim(pieces: Iterator[Buffer], count: int, base_time: int) -> Iterator[RecordFacts]:
    """The records in a stream; how long a record says it is does not matter. **Kafka:** `DefaultRecord.readPartiallyFrom`.

    Raises: `MalformedError`, and what the stream raises.
    """
    stream = _RecordStream(pieces)
    for _ in range(count):
        length = stream.int32()
        stream.pass_over(1)
        timestamp = wrapped(base_time + stream.int64())
        offset_delta = stream.int32()
        key_size = stream.int32()
        stream.pass_over(key_size)
        stream.pass_over(stream.int32())
        headers = stream.int32()
        if headers < 0:
            raise MalformedError(f"{headers} headers")
        for _ in range(headers):
            size = stream.int32()
            if size < 0:
                raise MalformedError("a header without a key")
            stream.pass_over(size)
            stream.pass_over(stream.int32())
        yield RecordFacts(offset_delta, timestamp, key_size >= 0, length)
    if stream.has_more():
        raise MalformedError("bytes are left after the last record")
