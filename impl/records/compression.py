"""The compression of records in a batch, by the codes in its attributes. Kafka: `CompressionType`."""

from struct import Struct
from typing import Any

import cramjam

from impl.records.batch import Buffer

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

XERIAL = b"\x82SNAPPY\x00"
"""Java's snappy streams begin with this, and two version numbers; then blocks, each behind its length."""

_LENGTH = Struct(">i")


MOST_BYTES = 256 << 20
"""The most that the records of one batch may become. A few bytes of a hostile client could fill the memory otherwise."""

LEAST, LIKELY_RATIO = 1 << 16, 8


class CompressionError(Exception):
    """Compressed records that cannot be decompressed."""


def decompress(codec: int, data: Buffer) -> bytes:
    """The records of a batch as they were before compression.

    Raises: `CompressionError`, for an unknown codec or damaged data.
    """
    try:
        match codec:
            case 0:
                return bytes(data)
            case 1:
                return _within_limit(cramjam.gzip, data)
            case 2:
                return _from_snappy(data)
            case 3:
                return _within_limit(cramjam.lz4, data)
            case 4:
                return _within_limit(cramjam.zstd, data)
    except cramjam.DecompressionError as error:
        raise CompressionError(f"damaged {NAMES[codec]} data: {error}") from error
    raise CompressionError(f"there is no codec {codec}")


def _within_limit(codec: Any, data: Buffer) -> bytes:
    """Decompress into memory that grows until everything fits, or the limit is reached."""
    size = max(LEAST, LIKELY_RATIO * len(data))
    while True:
        size = min(size, MOST_BYTES)
        found = bytearray(size)
        try:
            return bytes(memoryview(found)[: codec.decompress_into(data, found)])
        except cramjam.DecompressionError as error:
            if size == MOST_BYTES or "whole buffer" not in str(error):
                raise
        size *= LIKELY_RATIO


def _block(data: memoryview, already: int) -> bytes:
    if already + cramjam.snappy.decompress_raw_len(data) > MOST_BYTES:
        raise CompressionError(f"snappy data of more than {MOST_BYTES} bytes")
    return bytes(cramjam.snappy.decompress_raw(data))


def _from_snappy(data: Buffer) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(XERIAL)]) != XERIAL:
        return _block(view, 0)
    parts: list[bytes] = []
    position = len(XERIAL) + 8
    while position < len(view):
        if position + 4 > len(view):
            raise CompressionError("damaged snappy data: it ends within a block's length")
        (length,) = _LENGTH.unpack_from(view, position)
        parts.append(_block(view[position + 4 : position + 4 + length], sum(map(len, parts))))
        position += 4 + length
    return b"".join(parts)


def compress(codec: int, data: bytes) -> bytes:
    """The records of a batch in compressed form, as Kafka's clients read it."""
    match codec:
        case 0:
            return data
        case 1:
            return bytes(cramjam.gzip.compress(data))
        case 2:
            block = bytes(cramjam.snappy.compress_raw(data))
            return XERIAL + _LENGTH.pack(1) + _LENGTH.pack(1) + _LENGTH.pack(len(block)) + block
        case 3:
            return _to_lz4(data)
        case 4:
            return bytes(cramjam.zstd.compress(data))
    raise CompressionError(f"there is no codec {codec}")


def _to_lz4(data: bytes) -> bytes:
    """A frame of independent blocks: Kafka's Java reads no others."""
    compressor = cramjam.lz4.Compressor(block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())
