"""The fields of Kafka's messages in bytes: integers, strings and bytes with their length, in the old and the compact form.

Kafka: `ByteBufferAccessor`; the compact form is that of KIP-482.
"""

import struct


class UnreadableRecordError(ValueError):
    """A record that is not what its version says."""


class FieldReader:
    """Reads fields one after the other. `flexible`: lengths are in the compact form."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0
        self.flexible = False

    def int8(self) -> int:
        """A number of one byte."""
        return int.from_bytes(self._take(1), "big", signed=True)

    def uuid(self) -> bytes:
        """An id of 16 bytes."""
        return self._take(16)

    def int16(self) -> int:
        """A number of two bytes."""
        return int.from_bytes(self._take(2), "big", signed=True)

    def int32(self) -> int:
        """A number of four bytes."""
        return int.from_bytes(self._take(4), "big", signed=True)

    def int64(self) -> int:
        """A number of eight bytes."""
        return int.from_bytes(self._take(8), "big", signed=True)

    def unsigned_varint(self) -> int:
        """A number in groups of seven bits, the lowest first."""
        result = shift = 0
        while True:
            byte = self._take(1)[0]
            result |= (byte & 0x7F) << shift
            if byte < 0x80:
                return result
            shift += 7

    def string(self) -> str:
        """A string that is not null."""
        text = self.nullable_string()
        if text is None:
            raise UnreadableRecordError("a string is null that may not be")
        return text

    def nullable_string(self) -> str | None:
        """A string, or null."""
        length = self.unsigned_varint() - 1 if self.flexible else self.int16()
        return None if length < 0 else self._take(length).decode("utf-8", "replace")

    def data(self) -> bytes:
        """Bytes that are not null, with their length."""
        length = self.count()
        if length < 0:
            raise UnreadableRecordError("bytes are null that may not be")
        return self._take(length)

    def count(self) -> int:
        """The number of entries of an array, or of the bytes that follow; -1 for null."""
        return self.unsigned_varint() - 1 if self.flexible else self.int32()

    def tags(self) -> dict[int, bytes]:
        """The tagged fields at the end of a structure, none in the old form."""
        if not self.flexible:
            return {}
        return {self.unsigned_varint(): self._take(self.unsigned_varint()) for _ in range(self.unsigned_varint())}

    def _take(self, size: int) -> bytes:
        taken = self._data[self._position : self._position + size]
        if len(taken) != size:
            raise UnreadableRecordError(f"{len(self._data)} bytes, where at least {self._position + size} are needed")
        self._position += size
        return taken


def int8(value: int) -> bytes:
    """A number of one byte."""
    return struct.pack(">b", value)


def int16(value: int) -> bytes:
    """A number of two bytes."""
    return struct.pack(">h", value)


def int32(value: int) -> bytes:
    """A number of four bytes."""
    return struct.pack(">i", value)


def int64(value: int) -> bytes:
    """A number of eight bytes."""
    return struct.pack(">q", value)


def unsigned_varint(value: int) -> bytes:
    """A number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def string(text: str | None) -> bytes:
    """A string in the old form, or null."""
    if text is None:
        return int16(-1)
    encoded = text.encode("utf-8", "replace")
    return int16(len(encoded)) + encoded


def compact_string(text: str) -> bytes:
    """A string in the compact form."""
    encoded = text.encode("utf-8", "replace")
    return unsigned_varint(len(encoded) + 1) + encoded


def compact_nullable_string(text: str | None) -> bytes:
    """A string in the compact form, or null."""
    return unsigned_varint(0) if text is None else compact_string(text)


def compact_data(content: bytes) -> bytes:
    """Bytes in the compact form."""
    return unsigned_varint(len(content) + 1) + content


def data(content: bytes) -> bytes:
    """Bytes in the old form."""
    return int32(len(content)) + content


def tags(fields: dict[int, bytes]) -> bytes:
    """Tagged fields, in order of their tags."""
    written = (unsigned_varint(tag) + unsigned_varint(len(value)) + value for tag, value in sorted(fields.items()))
    return unsigned_varint(len(fields)) + b"".join(written)
