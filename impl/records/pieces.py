"""The records of a batch as they come out of a decompressor, piece by piece. It takes what Kafka's decompressors take.

A few bytes can become gigabytes; here they never lie in memory together, but for zstd. Kafka: `Compression.wrapForInput`.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from struct import error as struct_error

import cramjam

from kspec.impl.records.batch import Buffer
from kspec.impl.records.compression import MOST_BYTES, NAMES, XERIAL, CompressionError, FullError, from_zstd

PIECE = 1 << 18
"""The most bytes of a piece of gzip."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)


class MoreBytesError(Exception):
    """The records of a batch have more bytes than are wanted for now."""


def pieces(codec: int, data: memoryview, most: int | None = None) -> Iterator[Buffer]:
    """The pieces, none of them empty. `most`: how many bytes compressed data may become.

    Raises: `CompressionError`, where the data are damaged or of no known codec; pieces before that place have been given.
    `MoreBytesError`, if they become more than `most`.
    """
    match codec:
        case 0:
            found: Iterator[Buffer] = iter([data])
        case 1:
            found = _from_gzip(data)
        case 2:
            found = _from_snappy(data)
        case 3:
            found = _from_lz4(data)
        case 4:
            found = iter([_from_zstd(data, most)] if data else [])
        case _:
            raise CompressionError(f"there is no codec {codec}")
    try:
        if most is None or codec == NONE:
            yield from (piece for piece in found if len(piece))
        else:
            yield from _limited(found, most)
    except (zlib.error, cramjam.DecompressionError, struct_error, IndexError) as error:
        raise CompressionError(f"damaged data: {error}") from error


def _limited(found: Iterator[Buffer], most: int) -> Iterator[Buffer]:
    size = 0
    for piece in found:
        size += len(piece)
        if size > most:
            raise MoreBytesError
        if len(piece):
            yield piece


def _from_zstd(data: memoryview, most: int | None) -> bytes:
    if most is None:
        return from_zstd(data)
    try:
        return from_zstd(data, most)
    except FullError:
        raise MoreBytesError from None


def decompress(codec: int, data: Buffer, most: int | None = None) -> Buffer:
    """The records of a batch as they were before compression, all at once. `most`: see `pieces`.

    Raises: `CompressionError`, for an unknown codec, for damaged data, and for more than `MOST_BYTES`; `MoreBytesError`.
    """
    if codec == NONE:
        return data
    found, size = [], 0
    for piece in pieces(codec, memoryview(data), most):
        size += len(piece)
        if size > MOST_BYTES:
            raise CompressionError(f"{NAMES[codec]} data of more than {MOST_BYTES} bytes")
        found.append(piece)
    return found[0] if len(found) == 1 else b"".join(found)


# ---- gzip

_GZIP_HEADER = Struct("<HBBIBB")
_TRAILER = Struct("<II")
GZIP_MAGIC, DEFLATE = 0x8B1F, 8
HEADER_CHECKSUM, EXTRA, NAME, COMMENT = 2, 4, 8, 16
LEAST_MEMBER = 26
"""A trailer and more than this many bytes with it: there is another member. Kafka: `GZIPInputStream.readTrailer`."""


def _gzip_header(data: memoryview, start: int) -> int:
    """The position after a member's header."""
    magic, method, flags, _, _, _ = _GZIP_HEADER.unpack_from(data, start)
    if (magic, method) != (GZIP_MAGIC, DEFLATE):
        raise CompressionError("it is not gzip")
    position = start + _GZIP_HEADER.size
    if flags & EXTRA:
        position += 2 + int.from_bytes(data[position : position + 2], "little")
    for flag in (NAME, COMMENT):
        while flags & flag:
            position += 1
            if data[position - 1] == 0:
                break
    if flags & HEADER_CHECKSUM:
        told = int.from_bytes(data[position : position + 2], "little")
        if told != zlib.crc32(data[start:position]) & 0xFFFF:
            raise CompressionError("a wrong checksum of a gzip header")
        position += 2
    if position > len(data):
        raise CompressionError("the data end within a gzip header")
    return position


def _from_gzip(data: memoryview) -> Iterator[Buffer]:
    position = _gzip_header(data, 0)
    while True:
        decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        left: Buffer = data[position:]
        checksum = size = 0
        while not decompressor.eof:
            piece = decompressor.decompress(left, PIECE)
            left = decompressor.unconsumed_tail
            if not piece and not left and not decompressor.eof:
                raise CompressionError("the data end within gzip")
            checksum = zlib.crc32(piece, checksum)
            size += len(piece)
            yield piece
        rest = len(decompressor.unused_data)
        if _TRAILER.unpack_from(data, len(data) - rest) != (checksum, size & 0xFFFFFFFF):
            raise CompressionError("a wrong checksum of gzip data")
        if rest <= LEAST_MEMBER:
            return
        try:
            position = _gzip_header(data, len(data) - rest + _TRAILER.size)
        except (CompressionError, struct_error, IndexError):
            return


# ---- snappy

_LENGTH = Struct(">i")
XERIAL_SIZE = 16
MINIMUM_VERSION = 1
_XERIAL_WORD = _LENGTH.unpack(XERIAL[:4])[0]


def _snappy_block(block: memoryview) -> Buffer:
    size = cramjam.snappy.decompress_raw_len(block)
    if size > MOST_BYTES:
        raise CompressionError(f"a block of snappy of {size} bytes")
    return bytes(cramjam.snappy.decompress_raw(block))


def _from_snappy(data: memoryview) -> Iterator[Buffer]:
    """**Kafka:** `SnappyInputStream` of snappy-java."""
    if not data:
        raise CompressionError("there is no snappy data")
    if len(data) < XERIAL_SIZE or data[: len(XERIAL)] != XERIAL:
        yield _snappy_block(data)
        return
    position = XERIAL_SIZE
    while position + 4 <= len(data):
        (length,) = _LENGTH.unpack_from(data, position)
        if length == _XERIAL_WORD:  # another stream
            if position + XERIAL_SIZE > len(data):
                raise CompressionError("the data end within the header of a snappy stream")
            if data[position : position + len(XERIAL)] != XERIAL:
                return
            if _LENGTH.unpack_from(data, position + len(XERIAL))[0] < MINIMUM_VERSION:
                raise CompressionError("a snappy stream of an old version")
            position += XERIAL_SIZE
            continue
        position += 4
        if not 0 <= length <= len(data) - position:
            raise CompressionError(f"a snappy block of {length} bytes, where {len(data) - position} are left")
        yield _snappy_block(data[position : position + length])
        position += length


# ---- lz4

_LZ4_SIZE = Struct("<I")
LZ4_MAGIC = b"\x04\x22\x4d\x18"
VERSION, INDEPENDENT, BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM, RESERVED = 0x40, 0x20, 0x10, 0x08, 0x04, 0x03
LZ4_SIZES = {0x40: 1 << 16, 0x50: 1 << 18, 0x60: 1 << 20, 0x70: 1 << 22}
"""The largest block of a frame, by the byte of its descriptor that says so."""
UNCOMPRESSED_BLOCK = 0x80000000


def _from_lz4(data: memoryview) -> Iterator[Buffer]:
    """The blocks of the first frame; what is behind it is left alone. **Kafka:** `Lz4BlockInputStream`."""
    if data[:4] != LZ4_MAGIC or len(data) < 7:
        raise CompressionError("it is no frame of lz4")
    flags, largest = data[4], LZ4_SIZES.get(data[5])
    if flags & 0xC0 != VERSION or flags & RESERVED or largest is None or not flags & INDEPENDENT:
        raise CompressionError("a frame of lz4 of a kind that is not supported")
    position = 14 if flags & CONTENT_SIZE else 6
    descriptor = bytes(data[4:position])
    if data[position] != (xxh32(descriptor) >> 8) & 0xFF:
        raise CompressionError("a wrong checksum of an lz4 descriptor")
    position += 1
    out = bytearray(min(largest, MOST_BYTES))
    checked = bool(flags & BLOCK_CHECKSUM)
    while True:
        (size,) = _LZ4_SIZE.unpack_from(data, position)
        plain, size = bool(size & UNCOMPRESSED_BLOCK), size & ~UNCOMPRESSED_BLOCK
        position += 4
        if size == 0:
            if flags & CONTENT_CHECKSUM:
                _LZ4_SIZE.unpack_from(data, position)
            return
        end = position + size
        if size > largest or end + 4 * checked > len(data):
            raise CompressionError(f"an lz4 block of {size} bytes")
        if checked:
            _check_lz4_block(data[5], data[position - 4 : end + 4])
        block = data[position:end]
        if plain:
            yield block
        else:
            yield bytes(memoryview(out)[: cramjam.lz4.decompress_block_into(block, out, largest)])
        position = end + 4 * checked


def _check_lz4_block(size_byte: int, block: memoryview) -> None:
    """A frame with this block alone is read by the library, which looks at the block's checksum."""
    descriptor = bytes([VERSION | INDEPENDENT | BLOCK_CHECKSUM, size_byte])
    frame = LZ4_MAGIC + descriptor + bytes([(xxh32(descriptor) >> 8) & 0xFF]) + block + bytes(4)
    cramjam.lz4.decompress(frame)


_P1, _P2, _P3, _P4, _P5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
_WORD = 0xFFFFFFFF


def xxh32(data: bytes) -> int:
    """XXH32 of fewer than 16 bytes, such as a frame's descriptor."""
    assert len(data) < 16, "a descriptor is short"
    found = (_P5 + len(data)) & _WORD
    words = len(data) // 4 * 4
    for position in range(0, words, 4):
        found = (found + int.from_bytes(data[position : position + 4], "little") * _P3) & _WORD
        found = ((found << 17) | (found >> 15)) * _P4 & _WORD
    for byte in data[words:]:
        found = (found + byte * _P5) & _WORD
        found = ((found << 11) | (found >> 21)) * _P1 & _WORD
    found = (found ^ (found >> 15)) * _P2 & _WORD
    found = (found ^ (found >> 13)) * _P3 & _WORD
    return found ^ (found >> 16)
