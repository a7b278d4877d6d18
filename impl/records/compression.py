"""Compression of the records of a batch, by the codes in its attributes; back by `pieces`. Kafka: `CompressionType`."""

from struct import Struct
from typing import Any

import cramjam

from kspec.impl.records.batch import Buffer

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

XERIAL = b"\x82SNAPPY\x00"
"""Java's snappy streams begin with this, and two version numbers; then blocks, each behind its length."""

_LENGTH = Struct(">i")


MOST_BYTES = 256 << 20
"""The most that the records of one batch may become. A few bytes of a hostile client could fill the memory otherwise."""

LEAST, LIKELY_RATIO = 1 << 16, 8


class CompressionError(Exception):
    """Compressed records that cannot be decompressed."""


class FullError(CompressionError):
    """Compressed records that become more bytes than there is room for."""


def from_zstd(data: Buffer, most: int = MOST_BYTES) -> bytes:
    """The records of a batch as they were before compression by zstd, all frames of it.

    Raises: `CompressionError`, for damaged data; `FullError`, for more than `most` bytes.
    """
    try:
        return _within_limit(cramjam.zstd, data, most)
    except cramjam.DecompressionError as error:
        raise CompressionError(f"damaged zstd data: {error}") from error


def _within_limit(codec: Any, data: Buffer, most: int) -> bytes:
    """Decompress into memory that grows until everything fits, or the limit is reached."""
    size = max(LEAST, LIKELY_RATIO * len(data))
    while True:
        size = min(size, most)
        found = bytearray(size)
        try:
            return bytes(memoryview(found)[: codec.decompress_into(data, found)])
        except cramjam.DecompressionError as error:
            if "whole buffer" not in str(error):
                raise
            if size == most:
                raise FullError(f"more than {most} bytes of zstd data") from None
        size *= LIKELY_RATIO


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
