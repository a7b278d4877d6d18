"""Batches made by hand, that no client sends: what a broker answers them with, and what consumers then find in the log.

`python -m tests.impl.requests.hand_made HOST:PORT` asks a broker and prints what it says as JSON. What Apache Kafka 4.4.0
says is in `tests/data/kafka-4.4-batches.json`. Times are told relative to the broker's, and leader epochs are left out.
"""

import gzip
import json
import re
import struct
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import cramjam
import crc32c

from kspec.impl.records.batch import HEADER_SIZE, headers
from kspec.impl.records.compression import XERIAL, CompressionError, compress
from kspec.impl.records.record import RecordError, records_of
from kspec.impl.wire.values import Message
from tests.impl.broker.process import BrokerClient, wait_until
from tests.limits.turns import Turns

HOUR = 3_600_000
LAST_BYTE = 0x40
"""A batch that says it is short leaves the last byte of its time where the next one's magic is."""

HEADER = struct.Struct(">qiibIhiqqqhii")

TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup_policy": "compact"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "stamped-compacted": {"message_timestamp_type": "LogAppendTime", "cleanup_policy": "compact"},
    "hour": {"message_timestamp_before_max_ms": str(HOUR), "message_timestamp_after_max_ms": str(HOUR)},
    "compacted-hour": {
        "cleanup_policy": "compact,delete",
        "message_timestamp_before_max_ms": str(HOUR),
        "message_timestamp_after_max_ms": str(HOUR),
    },
    "small": {"max_message_bytes": "300"},
    "gzip": {"compression_type": "gzip"},
    "zstd": {"compression_type": "zstd"},
    "uncompressed": {"compression_type": "uncompressed"},
    "uncompressed-small": {"compression_type": "uncompressed", "max_message_bytes": "300"},
    "lz4-stamped": {"compression_type": "lz4", "message_timestamp_type": "LogAppendTime"},
    "snappy-compacted": {"compression_type": "snappy", "cleanup_policy": "compact"},
    "bounded": {"max_decompressed_message_bytes": "100"},
    "large": {"max_message_bytes": str(2 << 20), "segment_bytes": str(1 << 20)},
}
"""Topics by their kind, with their settings."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")


def varint(value: int, bits: int = 64) -> bytes:
    """A number as records have it, zigzag encoded."""
    return unsigned(((value << 1) ^ (value >> (bits - 1))) & ((1 << bits) - 1))


def unsigned(value: int) -> bytes:
    """A number of variable length."""
    found = bytearray()
    turns = Turns()
    while value >= 0x80:
        turns.go()
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


OVERLONG = b"\xff\xff\xff\xff\xff\x01"
"""No 32-bit number: it has six bytes."""


def sized(content: bytes | None, length: int | None = None) -> bytes:
    """Bytes behind their length, or behind another one."""
    if content is None:
        return varint(-1)
    return varint(len(content) if length is None else length) + content


def fields(
    offset: int = 0,
    time: int = 0,
    key: bytes = sized(b"k"),
    value: bytes = sized(b"v"),
    count: int | bytes = 0,
    headers: bytes = b"",
    attributes: int = 0,
) -> bytes:
    """A record without its length."""
    counted = count if isinstance(count, bytes) else varint(count)
    return bytes([attributes]) + varint(time) + varint(offset) + key + value + counted + headers


def rec(offset: int = 0, length: int | bytes | None = None, more: int = 0, **given: Any) -> bytes:
    """A record; its length may be wrong: another one, or by `more`."""
    body = fields(offset, **given)
    if isinstance(length, bytes):
        return length + body
    return varint(len(body) + more if length is None else length) + body


def recs(count: int, **given: Any) -> bytes:
    """Records at offsets from 0 on."""
    return b"".join(rec(number, **given) for number in range(count))


class HandMadeBatch(NamedTuple):
    """A batch: its body as it is sent, and what its header says."""

    body: bytes
    record_count: int = 1
    codec: int = 0
    last: int | None = None
    flags: int = 0
    base_time: int = 0
    max_time: int = 0
    base_offset: int = 0
    epoch: int = -1
    magic: int = 2
    producer: int = -1
    producer_epoch: int = -1
    sequence: int = -1
    length: int | None = None
    crc: int | None = None
    at: bool = True

    def raw(self, now: int) -> bytes:
        """Its bytes, with times (ms) from `now` on, unless `at` is false."""
        start = now if self.at else 0
        last = self.record_count - 1 if self.last is None else self.last
        length = HEADER_SIZE - 12 + len(self.body) if self.length is None else self.length
        attributes = self.codec | self.flags

        def packed(crc: int) -> bytes:
            return HEADER.pack(
                self.base_offset, length, self.epoch, self.magic, crc, attributes, last, wrapped(self.base_time + start),
                wrapped(self.max_time + start), self.producer, self.producer_epoch, self.sequence, self.record_count,
            )  # fmt: skip

        covered = packed(0)[21:] + self.body
        return packed(crc32c.crc32c(covered) if self.crc is None else self.crc) + self.body


def wrapped(value: int) -> int:
    """A number in 64 bits."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def made(body: bytes, count: int = 1, codec: int = 0, **given: Any) -> HandMadeBatch:
    """A batch whose body is compressed as its codec says."""
    return HandMadeBatch(compress(codec, body) if codec in CODECS else body, count, codec, **given)


Data = Callable[[int], bytes]
"""The records sent for a partition, at a time (ms)."""


class BatchCase(NamedTuple):
    """Batches that are sent one after the other to a partition of a topic of this kind."""

    topic: str
    steps: tuple[Data, ...]
    version: int = 12
    acks: int = -1


def one(topic: str, batch: HandMadeBatch, version: int = 12, again: int = 1, acks: int = -1) -> BatchCase:
    """A batch, sent once or again."""
    return BatchCase(topic, (batch.raw,) * again, version, acks)


def raw(topic: str, build: Data, version: int = 12) -> BatchCase:
    """Any bytes."""
    return BatchCase(topic, (build,), version)


def cut(batch: HandMadeBatch, end: int) -> Data:
    """A batch without its last bytes."""
    return lambda now: batch.raw(now)[:end]


def behind(batch: HandMadeBatch, more: bytes) -> Data:
    """A batch, and bytes behind it."""
    return lambda now: batch.raw(now) + more


def _xerial(blocks: Sequence[bytes]) -> bytes:
    head = XERIAL + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def _snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def xxh32(data: bytes) -> int:
    """The checksum of LZ4 frames, for fewer than 16 bytes."""
    p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask = 0xFFFFFFFF

    def rotated(value: int, by: int) -> int:
        return ((value << by) | (value >> (32 - by))) & mask

    assert len(data) < 16
    found = (p5 + len(data)) & mask
    position = 0
    turns = Turns()
    while position + 4 <= len(data):
        turns.go()
        found = (found + int.from_bytes(data[position : position + 4], "little") * p3) & mask
        found = rotated(found, 17) * p4 & mask
        position += 4
    for byte in data[position:]:
        found = (found + byte * p5) & mask
        found = rotated(found, 11) * p1 & mask
    found ^= found >> 15
    found = found * p2 & mask
    found ^= found >> 13
    found = found * p3 & mask
    return found ^ (found >> 16)


def lz4(
    blocks: Sequence[bytes],
    flags: int = 0x60,
    size: int = 0x40,
    descriptor: bytes = b"",
    checksum: int | None = None,
    end: bytes = b"\0\0\0\0",
    plain: bool = False,
    tails: Sequence[bytes] = (),
) -> bytes:
    """A frame of LZ4, block by block."""
    head = bytes([flags, size]) + descriptor
    found = b"\x04\x22\x4d\x18" + head + bytes([(xxh32(head) >> 8) & 0xFF if checksum is None else checksum])
    for number, block in enumerate(blocks):
        packed = block if plain else bytes(cramjam.lz4.compress_block(block, store_size=False))
        found += struct.pack("<I", len(packed) | (0x80000000 if plain else 0)) + packed
        found += tails[number] if tails else b""
    return found + end


GOOD = recs(2)
LINKED = lz4([GOOD], flags=0x40)
TWO = [f"two-{name}" for name in CODEC_NAMES]


def _cases() -> dict[str, BatchCase]:
    found: dict[str, BatchCase] = {}
    for codec, name in enumerate(CODEC_NAMES):

        def of(body: bytes, count: int = 2, codec: int = codec, **given: Any) -> HandMadeBatch:
            return made(body, count, codec, **given)

        found |= {
            f"good.{name}": one("plain", of(GOOD)),
            f"count-3-records-2.{name}": one("plain", of(GOOD, 3)),
            f"count-2-records-3.{name}": one("plain", of(recs(3))),
            f"count-2-last-5.{name}": one("plain", of(GOOD, last=5)),
            f"garbage.{name}": one("plain", of(bytes(range(1, 60)) * 2)),
            f"zeros.{name}": one("plain", of(bytes(60), 60)),
            f"nothing.{name}": one("plain", of(b"", 1)),
            f"trailing-byte.{name}": one("plain", of(GOOD + b"\0")),
            f"offsets-0-5.{name}": one("plain", of(rec(0) + rec(5))),
            f"offsets-0-5-last-5.{name}": one("plain", of(rec(0) + rec(5), last=5)),
            f"offsets-0-0.{name}": one("plain", of(rec(0) + rec(0))),
            f"offsets-1-2.{name}": one("plain", of(rec(1) + rec(2))),
            f"offsets-1-0.{name}": one("plain", of(rec(1) + rec(0))),
            f"offset-negative.{name}": one("plain", of(rec(-1) + rec(0))),
            f"offset-over.{name}": one("plain", of(rec(2**31 - 1) + rec(0))),
            f"length-too-long.{name}": one("plain", of(rec(0, more=1) + rec(1))),
            f"length-too-short.{name}": one("plain", of(rec(0, more=-1) + rec(1))),
            f"length-zero.{name}": one("plain", of(rec(0, length=0) + rec(1))),
            f"length-negative.{name}": one("plain", of(rec(0, length=-1) + rec(1))),
            f"length-huge.{name}": one("plain", of(rec(0, length=2**30) + rec(1))),
            f"length-overlong.{name}": one("plain", of(rec(0, length=OVERLONG) + rec(1))),
            f"last-length-too-long.{name}": one("plain", of(rec(0) + rec(1, more=1))),
            f"last-length-too-short.{name}": one("plain", of(rec(0) + rec(1, more=-1))),
            f"key-too-long.{name}": one("plain", of(rec(0) + rec(1, key=sized(b"k", 200)))),
            f"key-negative.{name}": one("plain", of(rec(0, key=varint(-9)) + rec(1))),
            f"key-overlong.{name}": one("plain", of(rec(0, key=OVERLONG) + rec(1))),
            f"key-over-the-record.{name}": one("plain", of(rec(0, key=sized(b"k", 5)) + rec(1))),
            f"value-too-long.{name}": one("plain", of(rec(0) + rec(1, value=sized(b"v", 200)))),
            f"value-negative.{name}": one("plain", of(rec(0, value=varint(-(2**31), 32)) + rec(1))),
            f"value-huge.{name}": one("plain", of(rec(0, value=sized(b"v", 2**31 - 1)) + rec(1))),
            f"value-null.{name}": one("plain", of(rec(0, value=sized(None)) + rec(1))),
            f"headers.{name}": one("plain", of(rec(0, count=1, headers=sized(b"a") + sized(b"b")) + rec(1))),
            f"headers-twice.{name}": one("plain", of(rec(0, count=2, headers=(sized(b"a") + sized(None)) * 2) + rec(1))),
            f"header-key-null.{name}": one("plain", of(rec(0, count=1, headers=sized(None) + sized(b"b")) + rec(1))),
            f"header-key-empty.{name}": one("plain", of(rec(0, count=1, headers=sized(b"") + sized(b"b")) + rec(1))),
            f"header-key-no-utf8.{name}": one(
                "plain", of(rec(0, count=1, headers=sized(b"\xff\xfe") + sized(b"b")) + rec(1))
            ),
            f"header-value-negative.{name}": one("plain", of(rec(0, count=1, headers=sized(b"a") + varint(-7)) + rec(1))),
            f"header-count-negative.{name}": one("plain", of(rec(0, count=-1) + rec(1))),
            f"header-count-too-large.{name}": one("plain", of(rec(0, count=1) + rec(1))),
            f"header-count-huge.{name}": one("plain", of(rec(0) + rec(1, count=2**31 - 1))),
            f"header-count-overlong.{name}": one("plain", of(rec(0, count=OVERLONG) + rec(1))),
            f"headers-missing-count-0.{name}": one("plain", of(rec(0, headers=sized(b"a") + sized(b"b")) + rec(1))),
            f"record-attributes.{name}": one("plain", of(rec(0, attributes=0xFF) + rec(1, attributes=3))),
            f"time-overlong.{name}": one(
                "plain", of(varint(18) + b"\0" + b"\xff" * 10 + b"\x01" + varint(0) + sized(b"k") + sized(b"v") + b"\0", 1)
            ),
            f"time-long-last-byte.{name}": one(
                "plain", of(varint(17) + b"\0" + b"\x80" * 9 + b"\x7e" + varint(0) + sized(b"k") + sized(b"v") + b"\0", 1)
            ),
            f"varint-long-last-byte.{name}": one(
                "plain", of(varint(12) + b"\0\0" + b"\x80\x80\x80\x80\x70" + sized(b"k") + sized(b"v") + b"\0", 1)
            ),
            f"varint-padded.{name}": one(
                "plain", of(b"\x98\x00" + b"\0\0" + b"\x80\x80\x80\x80\x00" + sized(b"k") + sized(b"v") + b"\0", 1)
            ),
            f"cut-in-a-record.{name}": one("plain", of(GOOD[:-3])),
            f"cut-in-a-length.{name}": one("plain", of(rec(0) + b"\x80")),
            f"max-time-too-small.{name}": one("plain", of(rec(0, time=5) + rec(1, time=9), max_time=-1000)),
            f"max-time-too-large.{name}": one("plain", of(rec(0, time=5) + rec(1, time=9), max_time=10 * HOUR)),
            f"base-time-other.{name}": one("plain", of(rec(0, time=5) + rec(1, time=9), base_time=-7, max_time=9)),
            f"first-delta-not-0.{name}": one("plain", of(rec(0, time=7) + rec(1, time=3), max_time=7)),
            f"two-hours-ahead-header-now.{name}": one("plain", of(rec(0) + rec(1, time=2 * HOUR))),
            f"header-two-hours-ahead-records-now.{name}": one("plain", of(GOOD, max_time=2 * HOUR)),
            f"two-hours-ahead.{name}": one("plain", of(GOOD, base_time=2 * HOUR, max_time=2 * HOUR)),
            f"two-hours-ago-in-an-hour.{name}": one("hour", of(rec(0, time=-2 * HOUR) + rec(1))),
            f"all-two-hours-ago-in-an-hour.{name}": one("hour", of(GOOD, base_time=-2 * HOUR)),
            f"no-time.{name}": one("plain", of(GOOD, base_time=-1, max_time=-1, at=False)),
            f"no-time-in-an-hour.{name}": one("hour", of(GOOD, base_time=-1, max_time=-1, at=False)),
            f"time-negative.{name}": one("plain", of(GOOD, base_time=-5, max_time=-5, at=False)),
            f"time-negative-in-an-hour.{name}": one("hour", of(GOOD, base_time=-5, max_time=-5, at=False)),
            f"time-wraps.{name}": one("plain", of(rec(0, time=1) + rec(1), base_time=2**63 - 1, max_time=0, at=False)),
            f"time-least.{name}": one("plain", of(GOOD, base_time=-(2**63), max_time=0, at=False)),
            f"stamped.{name}": one("stamped", of(rec(0, time=5) + rec(1, time=9), max_time=9)),
            f"stamped-two-hours-ahead.{name}": one("stamped", of(rec(0) + rec(1, time=2 * HOUR))),
            f"stamped-flag.{name}": one("stamped", of(GOOD, flags=0x08)),
            f"stamped-garbage.{name}": one("stamped", of(GOOD[:-1])),
            f"stamped-no-time.{name}": one("stamped", of(GOOD, base_time=-1, max_time=-1, at=False)),
            f"plain-flag-stamped.{name}": one("plain", of(rec(0, time=5) + rec(1, time=9), flags=0x08, max_time=3)),
            f"plain-flag-stamped-two-hours-ahead.{name}": one("plain", of(GOOD, flags=0x08, max_time=2 * HOUR)),
            f"plain-flag-stamped-no-time.{name}": one("plain", of(GOOD, flags=0x08, max_time=-1, at=False)),
            f"no-key-compacted.{name}": one("compacted", of(rec(0) + rec(1, key=sized(None)))),
            f"no-keys-compacted.{name}": one("compacted", of(recs(5, key=sized(None)), 5)),
            f"no-key-plain.{name}": one("plain", of(rec(0) + rec(1, key=sized(None)))),
            f"empty-key-compacted.{name}": one("compacted", of(rec(0) + rec(1, key=sized(b"")))),
            f"no-key-and-two-hours-ahead-compacted.{name}": one(
                "compacted-hour",
                of(rec(0) + rec(1, key=sized(None), time=2 * HOUR) + rec(2, time=2 * HOUR) + rec(3, key=sized(None)), 4),
            ),
            f"no-key-then-garbage-compacted.{name}": one("compacted", of(rec(0, key=sized(None)) + b"\x02\x80")),
            f"no-key-offsets-0-5-compacted.{name}": one("compacted", of(rec(0, key=sized(None)) + rec(5))),
            f"stamped-no-key.{name}": one("stamped-compacted", of(rec(0) + rec(1, key=sized(None)))),
            f"stamped-flag-no-key.{name}": one("stamped-compacted", of(rec(0) + rec(1, key=sized(None)), flags=0x08)),
            f"delete-horizon.{name}": one("plain", of(GOOD, flags=0x40)),
            f"delete-horizon-time-other.{name}": one("plain", of(GOOD, flags=0x40, max_time=5)),
            f"unused-flags.{name}": one("plain", of(GOOD, flags=0x80)),
            f"unused-flags-time-other.{name}": one("plain", of(GOOD, flags=0x80, max_time=5)),
            f"high-flags.{name}": one("plain", of(GOOD, flags=0x7F00)),
            f"high-flags-time-other.{name}": one("plain", of(GOOD, flags=0x7F00, max_time=5)),
            f"control.{name}": one("plain", of(GOOD, flags=0x20)),
            f"old-leader-epoch.{name}": one("plain", of(GOOD, epoch=77)),
            f"idempotent.{name}": one("plain", of(GOOD, producer=5001, producer_epoch=0, sequence=0), again=2),
            f"idempotent-garbage.{name}": one("plain", of(GOOD[:-1], producer=5002, producer_epoch=0, sequence=0), again=2),
            f"idempotent-rebuilt.{name}": one(
                "plain", of(rec(0) + rec(5), producer=5003, producer_epoch=0, sequence=0), again=2
            ),
            f"to-gzip.{name}": one("gzip", of(rec(0, time=5) + rec(1, time=9), max_time=9)),
            f"to-gzip-max-time-other.{name}": one("gzip", of(rec(0, time=5) + rec(1, time=9), max_time=7)),
            f"to-gzip-base-time-other.{name}": one("gzip", of(rec(0, time=5) + rec(1, time=9), base_time=-3, max_time=6)),
            f"to-gzip-offsets-0-5.{name}": one("gzip", of(rec(0) + rec(5))),
            f"to-gzip-count-3.{name}": one("gzip", of(GOOD, 3)),
            f"to-gzip-records-3.{name}": one("gzip", of(recs(3))),
            f"to-gzip-length-too-long.{name}": one("gzip", of(rec(0, more=1) + rec(1))),
            f"to-gzip-last-length-too-long.{name}": one("gzip", of(rec(0) + rec(1, more=1))),
            f"to-gzip-length-too-short.{name}": one("gzip", of(rec(0, more=-1) + rec(1))),
            f"to-gzip-length-negative.{name}": one("gzip", of(rec(0, length=-1) + rec(1))),
            f"to-gzip-length-overlong.{name}": one("gzip", of(rec(0, length=OVERLONG) + rec(1))),
            f"to-gzip-header-count-too-large.{name}": one("gzip", of(rec(0, count=1) + rec(1))),
            f"to-gzip-flags.{name}": one("gzip", of(GOOD, flags=0x7FC0)),
            f"to-gzip-time-negative.{name}": one("gzip", of(GOOD, base_time=-5, max_time=-5, at=False)),
            f"to-gzip-headers.{name}": one("gzip", of(rec(0, count=1, headers=sized(b"a") + sized(None)) + rec(1))),
            f"to-gzip-header-key-no-utf8.{name}": one(
                "gzip", of(rec(0, count=1, headers=sized(b"\xff\xfe") + sized(b"b")) + rec(1))
            ),
            f"to-gzip-record-attributes.{name}": one("gzip", of(rec(0, attributes=0xFF) + rec(1, attributes=3))),
            f"to-gzip-idempotent.{name}": one(
                "gzip", of(GOOD, producer=5004, producer_epoch=2, sequence=0, epoch=9), again=2
            ),
            f"to-zstd.{name}": one("zstd", of(GOOD)),
            f"to-uncompressed.{name}": one("uncompressed", of(rec(0, time=5) + rec(1, time=9), max_time=9)),
            f"to-uncompressed-offsets-0-5.{name}": one("uncompressed", of(rec(0) + rec(5))),
            f"to-uncompressed-too-large.{name}": one("uncompressed-small", of(rec(0, value=sized(bytes(400))), 1)),
            f"to-lz4-stamped.{name}": one("lz4-stamped", of(rec(0, time=5) + rec(1, time=9), max_time=9)),
            f"to-lz4-stamped-flag.{name}": one("lz4-stamped", of(GOOD, flags=0x08)),
            f"to-snappy-no-key.{name}": one("snappy-compacted", of(rec(0) + rec(1, key=sized(None)))),
            f"large-when-decompressed.{name}": one("small", of(rec(0, value=sized(bytes(5000))), 1)),
            f"bounded-longer.{name}": one("bounded", of(rec(0, value=sized(bytes(200))), 1)),
            f"bounded-says-longer.{name}": one("bounded", of(rec(0, more=200), 1)),
            f"bounded-just.{name}": one("bounded", of(rec(0, value=sized(bytes(91))), 1)),
            f"bounded-just-not.{name}": one("bounded", of(rec(0, value=sized(bytes(92))), 1)),
            f"version-3.{name}": one("plain", of(GOOD), 3),
            f"version-6-garbage.{name}": one("plain", of(GOOD[:-1]), 6),
            f"version-7-no-key-compacted.{name}": one("compacted", of(recs(2, key=sized(None))), 7),
            f"version-8-no-key-compacted.{name}": one("compacted", of(recs(2, key=sized(None))), 8),
            f"acks-1-garbage.{name}": one("plain", of(GOOD[:-1]), acks=1),
        }
        if codec:
            found |= {
                f"codec-on-plain.{name}": one("plain", HandMadeBatch(GOOD, 2, codec)),
                f"cut-data.{name}": one("plain", HandMadeBatch(compress(codec, GOOD)[:-5], 2, codec)),
                f"cut-data-by-1.{name}": one("plain", HandMadeBatch(compress(codec, GOOD)[:-1], 2, codec)),
                f"data-and-garbage.{name}": one("plain", HandMadeBatch(compress(codec, GOOD) + b"garbage", 2, codec)),
                f"data-and-more-garbage.{name}": one(
                    "plain", HandMadeBatch(compress(codec, GOOD) + b"garbage" * 9, 2, codec)
                ),
                f"data-and-zeros.{name}": one("plain", HandMadeBatch(compress(codec, GOOD) + bytes(40), 2, codec)),
                f"data-in-two.{name}": one(
                    "plain", HandMadeBatch(compress(codec, GOOD[:7]) + compress(codec, GOOD[7:]), 2, codec)
                ),
                f"data-twice.{name}": one("plain", HandMadeBatch(compress(codec, GOOD) * 2, 2, codec)),
                f"empty-data.{name}": one("plain", HandMadeBatch(b"", 1, codec)),
                f"one-byte.{name}": one("plain", HandMadeBatch(b"\0", 1, codec)),
                f"flipped-data.{name}": one("plain", HandMadeBatch(flipped(compress(codec, recs(40)), 30), 40, codec)),
                f"bomb-16-mib.{name}": one("plain", of(rec(0, value=sized(bytes(16 << 20))), 1)),
            }
    for codec in (5, 6, 7):
        found |= {
            f"codec-{codec}": one("plain", HandMadeBatch(GOOD, 2, codec)),
            f"codec-{codec}-version-6": one("plain", HandMadeBatch(GOOD, 2, codec), 6),
        }
    good = HandMadeBatch(GOOD, 2)
    plain = compress(GZIP, GOOD)
    found |= {
        "snappy-raw": one("plain", HandMadeBatch(_snappy(GOOD), 2, SNAPPY)),
        "snappy-raw-garbage": one("plain", HandMadeBatch(_snappy(GOOD) + b"xx", 2, SNAPPY)),
        "snappy-two-blocks": one("plain", HandMadeBatch(_xerial([_snappy(GOOD[:7]), _snappy(GOOD[7:])]), 2, SNAPPY)),
        "snappy-no-block": one("plain", HandMadeBatch(_xerial([]), 1, SNAPPY)),
        "snappy-empty-block": one("plain", HandMadeBatch(_xerial([_snappy(b""), _snappy(GOOD)]), 2, SNAPPY)),
        "snappy-block-of-0-bytes": one("plain", HandMadeBatch(_xerial([b"", _snappy(GOOD)]), 2, SNAPPY)),
        "snappy-block-negative": one("plain", HandMadeBatch(_xerial([]) + struct.pack(">i", -5), 1, SNAPPY)),
        "snappy-block-huge": one("plain", HandMadeBatch(_xerial([]) + struct.pack(">i", 2**30), 1, SNAPPY)),
        "snappy-claims-much": one("plain", HandMadeBatch(unsigned(2**31 - 1) + b"\0a", 1, SNAPPY)),
        "snappy-claims-more": one("plain", HandMadeBatch(unsigned(2**32 - 1) + b"\0a", 1, SNAPPY)),
        "snappy-old-version": one(
            "plain", HandMadeBatch(XERIAL + struct.pack(">ii", 0, 0) + _xerial([_snappy(GOOD)])[16:], 2, SNAPPY)
        ),
        "snappy-new-version": one(
            "plain", HandMadeBatch(XERIAL + struct.pack(">ii", 9, 9) + _xerial([_snappy(GOOD)])[16:], 2, SNAPPY)
        ),
        "lz4-plain-block": one("plain", HandMadeBatch(lz4([GOOD], plain=True), 2, LZ4)),
        "lz4-two-blocks": one("plain", HandMadeBatch(lz4([GOOD[:7], GOOD[7:]]), 2, LZ4)),
        "lz4-dependent": one("plain", HandMadeBatch(LINKED, 2, LZ4)),
        "lz4-content-size": one("plain", HandMadeBatch(lz4([GOOD], 0x68, descriptor=struct.pack("<q", len(GOOD))), 2, LZ4)),
        "lz4-content-size-wrong": one("plain", HandMadeBatch(lz4([GOOD], 0x68, descriptor=struct.pack("<q", 9999)), 2, LZ4)),
        "lz4-content-checksum-wrong": one("plain", HandMadeBatch(lz4([GOOD], 0x64, end=bytes(4) + b"abcd"), 2, LZ4)),
        "lz4-content-checksum-missing": one("plain", HandMadeBatch(lz4([GOOD], 0x64), 2, LZ4)),
        "lz4-block-checksum": one(
            "plain",
            HandMadeBatch(lz4([b"\0" * 0 + recs(1)], 0x70, plain=True, tails=[struct.pack("<I", xxh32(recs(1)))]), 1, LZ4),
        ),
        "lz4-block-checksum-wrong": one(
            "plain", HandMadeBatch(lz4([recs(1)], 0x70, plain=True, tails=[b"abcd"]), 1, LZ4)
        ),
        "lz4-dictionary": one("plain", HandMadeBatch(lz4([GOOD], 0x61, descriptor=b"abcd"), 2, LZ4)),
        "lz4-reserved-flag": one("plain", HandMadeBatch(lz4([GOOD], 0x62), 2, LZ4)),
        "lz4-version-2": one("plain", HandMadeBatch(lz4([GOOD], 0xA0), 2, LZ4)),
        "lz4-reserved-size": one("plain", HandMadeBatch(lz4([GOOD], size=0x4F), 2, LZ4)),
        "lz4-size-3": one("plain", HandMadeBatch(lz4([GOOD], size=0x30), 2, LZ4)),
        "lz4-size-7": one("plain", HandMadeBatch(lz4([GOOD], size=0x70), 2, LZ4)),
        "lz4-descriptor-checksum-wrong": one("plain", HandMadeBatch(lz4([GOOD], checksum=7), 2, LZ4)),
        "lz4-no-end": one("plain", HandMadeBatch(lz4([GOOD], end=b""), 2, LZ4)),
        "lz4-no-end-not-read": one("plain", HandMadeBatch(lz4([recs(3)], end=b""), 2, LZ4)),
        "lz4-no-block": one("plain", HandMadeBatch(lz4([]), 1, LZ4)),
        "lz4-block-too-large": one("plain", HandMadeBatch(lz4([bytes(70_000)], plain=True), 1, LZ4)),
        "lz4-block-inflates-too-large": one("plain", HandMadeBatch(lz4([rec(0, value=sized(bytes(70_000)))]), 1, LZ4)),
        "lz4-skippable-frame": one(
            "plain", HandMadeBatch(b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc" + lz4([GOOD]), 2, LZ4)
        ),
        "zstd-skippable-frame": one(
            "plain", HandMadeBatch(b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc" + compress(ZSTD, GOOD), 2, ZSTD)
        ),
        "gzip-trailer-wrong": one("plain", HandMadeBatch(plain[:-8] + b"abcdefgh", 2, GZIP)),
        "gzip-trailer-wrong-count-3": one("plain", HandMadeBatch(plain[:-8] + b"abcdefgh", 3, GZIP)),
        "gzip-zlib": one("plain", HandMadeBatch(zlib.compress(GOOD), 2, GZIP)),
        "gzip-named": one("plain", HandMadeBatch(b"\x1f\x8b\x08\x08" + plain[4:10] + b"name\0" + plain[10:], 2, GZIP)),
        "gzip-reserved-flag": one("plain", HandMadeBatch(plain[:3] + b"\xe0" + plain[4:], 2, GZIP)),
        "gzip-other-method": one("plain", HandMadeBatch(plain[:2] + b"\x07" + plain[3:], 2, GZIP)),
        "gzip-many-members": one("plain", HandMadeBatch(b"".join(gzip.compress(bytes([byte])) for byte in GOOD), 2, GZIP)),
        "gzip-empty-member-first": one("plain", HandMadeBatch(gzip.compress(b"") + plain, 2, GZIP)),
        "zstd-version-6": one("plain", made(GOOD, 2, ZSTD), 6),
        "zstd-and-transactional-version-6": one("plain", made(GOOD, 2, ZSTD, flags=0x10), 6),
        "count-0": one("plain", good._replace(record_count=0, last=1)),
        "count-0-last-minus-1": one("plain", good._replace(record_count=0, last=-1)),
        "count-0-last-0": one("plain", HandMadeBatch(b"", 0, last=0)),
        "count-negative": one("plain", good._replace(record_count=-2, last=1)),
        "count-negative-last-negative": one("plain", good._replace(record_count=-2, last=-3)),
        "last-least": one("plain", good._replace(last=-(2**31))),
        "last-largest": one("plain", good._replace(last=2**31 - 1)),
        "count-largest": one("plain", good._replace(record_count=2**31 - 1)),
        "count-largest-gzip": one("plain", made(GOOD, 2, GZIP)._replace(record_count=2**31 - 1)),
        "base-offset-5": one("plain", good._replace(base_offset=5)),
        "base-offset-negative": one("plain", good._replace(base_offset=-1)),
        "magic-0": one("plain", good._replace(magic=0)),
        "magic-1": one("plain", good._replace(magic=1)),
        "magic-3": one("plain", good._replace(magic=3)),
        "magic-negative": one("plain", good._replace(magic=-1)),
        "crc-wrong": one("plain", good._replace(crc=5)),
        "crc-wrong-garbage": one("plain", HandMadeBatch(b"garbage", 2, crc=5)),
        "crc-wrong-count-0": one("plain", HandMadeBatch(b"garbage", 0, crc=5)),
        "transactional": one("plain", good._replace(flags=0x10)),
        "transactional-garbage": one("plain", HandMadeBatch(GOOD[:-1], 2, flags=0x10)),
        "transactional-magic-1": one("plain", good._replace(flags=0x10, magic=1)),
        "producer-minus-5": one("plain", good._replace(producer=-5, producer_epoch=3, sequence=7), again=2),
        "producer-without-sequence": one("plain", good._replace(producer=6001, producer_epoch=0)),
        "producer-sequence-minus-5": one("plain", good._replace(producer=6002, producer_epoch=0, sequence=-5)),
        "producer-epoch-minus-1": one("plain", good._replace(producer=6003, sequence=0), again=3),
        "producer-epoch-minus-1-sequence-7": one("plain", good._replace(producer=6004, sequence=7), again=2),
        "producer-epoch-minus-5": one("plain", good._replace(producer=6005, producer_epoch=-5, sequence=0), again=2),
        "sequence-without-producer": one("plain", good._replace(sequence=4, producer_epoch=2), again=2),
        "sequence-wraps": BatchCase(
            "plain",
            (
                good._replace(producer=6006, producer_epoch=0, sequence=2**31 - 1).raw,
                good._replace(producer=6006, producer_epoch=0, sequence=2**31 - 1).raw,
                good._replace(producer=6006, producer_epoch=0, sequence=1).raw,
                good._replace(producer=6006, producer_epoch=0, sequence=0).raw,
            ),
        ),
        "duplicate-with-garbage": BatchCase(
            "plain",
            (
                good._replace(producer=6007, producer_epoch=0, sequence=0).raw,
                HandMadeBatch(GOOD[:-1], 2, producer=6007, producer_epoch=0, sequence=0).raw,
                HandMadeBatch(rec(0, value=sized(b"other")) + rec(1), 2, producer=6007, producer_epoch=0, sequence=0).raw,
            ),
        ),
        "stamped-duplicate": one("stamped", good._replace(producer=6008, producer_epoch=0, sequence=0), again=2),
        "gap-with-garbage": BatchCase(
            "plain",
            (
                good._replace(producer=6009, producer_epoch=0, sequence=0).raw,
                HandMadeBatch(GOOD[:-1], 2, producer=6009, producer_epoch=0, sequence=9).raw,
            ),
        ),
        "two-batches": raw("plain", lambda now: good.raw(now) * 2),
        "two-batches-second-wrong": raw("plain", lambda now: good.raw(now) + HandMadeBatch(b"x", 2).raw(now)),
        "batch-and-half": raw("plain", lambda now: good.raw(now) + good.raw(now)[:-1]),
        "batch-and-9-bytes": raw("plain", behind(good, bytes(9))),
        "batch-and-12-zeros": raw("plain", behind(good, bytes(12))),
        "batch-and-20-zeros": raw("plain", behind(good, bytes(20))),
        "batch-and-length-13": raw("plain", behind(good, bytes(8) + struct.pack(">i", 13))),
        "batch-and-length-14-no-magic": raw("plain", behind(good, bytes(8) + struct.pack(">i", 14))),
        "batch-and-length-negative": raw("plain", behind(good, bytes(8) + struct.pack(">i", -1) + bytes(20))),
        "batch-and-bad-magic": raw("plain", behind(good, bytes(8) + struct.pack(">i", 1000) + bytes(4) + b"\x09")),
        "batch-and-magic-1": raw("plain", behind(good, bytes(8) + struct.pack(">i", 14) + bytes(4) + b"\x01" + bytes(9))),
        "garbage-batch-and-12-zeros": raw("plain", behind(HandMadeBatch(b"garbage", 2), bytes(12))),
        "nothing-at-all": raw("plain", lambda now: b""),
        "5-bytes": raw("plain", cut(good, 5)),
        "16-bytes": raw("plain", cut(good, 16)),
        "17-bytes": raw("plain", cut(good, 17)),
        "cut-by-1": raw("plain", cut(good, -1)),
        "length-13": one("plain", good._replace(length=13)),
        "length-14": one("plain", good._replace(length=14)),
        "length-14-then-magic-1": one("plain", good._replace(length=14, max_time=1 - LAST_BYTE)),
        "length-14-then-negative": one("plain", good._replace(length=14, base_time=LAST_BYTE, max_time=1 - LAST_BYTE)),
        "length-14-then-magic-0": one("plain", good._replace(length=14, max_time=-LAST_BYTE)),
        "length-15": one("plain", good._replace(length=15)),
        "length-48": one("plain", good._replace(length=48)),
        "length-49": one("plain", good._replace(length=49)),
        "length-largest": one("plain", good._replace(length=2**31 - 1)),
        "length-14-alone": raw("plain", cut(good._replace(length=14), 26)),
        "length-15-alone": raw("plain", cut(good._replace(length=15), 27)),
        "length-38-alone": raw("plain", cut(good._replace(length=38), 50)),
        "length-39-alone": raw("plain", cut(good._replace(length=39), 51)),
        "length-39-alone-base-offset": raw("plain", cut(good._replace(length=39, base_offset=4), 51)),
        "length-48-alone": raw("plain", cut(good._replace(length=48), 60)),
        "length-14-alone-version-6": raw("plain", cut(good._replace(length=14), 26), 6),
        "too-large": one("small", made(rec(0, value=sized(bytes(400))), 1)),
        "too-large-garbage": one("small", made(bytes(400), 1, crc=7)),
        "larger-than-a-segment": one("large", made(rec(0, value=sized(bytes((1 << 20) + 1000))), 1)),
        "larger-than-a-segment-garbage": one("large", made(bytes((1 << 20) + 1000), 1)),
        "larger-than-a-segment-bad-sequence": one(
            "large",
            made(rec(0, value=sized(bytes((1 << 20) + 1000))), 1, producer=6010, producer_epoch=0, sequence=9),
            again=2,
        ),
        "many-keyless": one("compacted", made(recs(30, key=sized(None)), 30)),
        "many-keyless-and-garbage": one("compacted", made(recs(30, key=sized(None)) + b"\0", 30)),
    }  # fmt: skip
    return found


def flipped(data: bytes, at: int) -> bytes:
    """Data with one byte changed."""
    return data[:at] + bytes([data[at] ^ 0x55]) + data[at + 1 :]


CASES = _cases()


class Together(NamedTuple):
    """A request for several partitions; each case has three of its own, and there is none of number `MISSING`."""

    parts: tuple[tuple[int, Data], ...]
    version: int = 12
    acks: int = -1


MISSING = 3
TOGETHER_TOPIC = "hand-made-together"


def _together() -> dict[str, Together]:
    good, bad = HandMadeBatch(GOOD, 2), HandMadeBatch(GOOD[:-1], 2)
    other = HandMadeBatch(recs(3), 3)

    def of(*parts: tuple[int, HandMadeBatch | Data], **given: Any) -> Together:
        return Together(
            tuple((part, data.raw if isinstance(data, HandMadeBatch) else data) for part, data in parts), **given
        )

    return {
        "good-bad-good": of((0, good), (1, bad), (2, good)),
        "good-missing": of((0, good), (MISSING, good)),
        "missing-garbage": of((MISSING, lambda now: b"garbage")),
        "good-crc": of((0, good), (1, good._replace(crc=1))),
        "good-magic-3": of((0, good), (1, good._replace(magic=3))),
        "good-magic-1": of((0, good), (1, good._replace(magic=1))),
        "missing-magic-3-good": of((MISSING, good._replace(magic=3)), (0, good)),
        "good-length-5": of((0, good), (1, good._replace(length=5))),
        "good-length-largest": of((0, good), (1, good._replace(length=2**31 - 1))),
        "good-transactional": of((0, good), (1, good._replace(flags=0x10))),
        "transactional-magic-3": of((0, good._replace(flags=0x10)), (1, good._replace(magic=3))),
        "magic-3-transactional": of((0, good._replace(magic=3)), (1, good._replace(flags=0x10))),
        "transactional-cut-good": of((0, cut(good._replace(flags=0x10), -1)), (1, good)),
        "good-codec-7-version-6": of((0, good), (1, good._replace(codec=7)), version=6),
        "good-codec-7": of((0, good), (1, good._replace(codec=7))),
        "missing-codec-7-version-6-good": of((MISSING, good._replace(codec=7)), (0, good), version=6),
        "codec-7-version-6-cut-good": of((0, cut(good._replace(codec=7), -1)), (1, good), version=6),
        "good-short": of((0, good), (1, cut(good._replace(length=14), 26))),
        "good-short-zstd-version-6": of((0, good), (1, cut(good._replace(length=14, codec=4), 26)), version=6),
        "missing-short-good": of((MISSING, cut(good._replace(length=14), 26)), (0, good)),
        "short-acks-7": of((0, good), (1, cut(good._replace(length=14), 26)), acks=7),
        "acks-7-bad": of((0, good), (1, bad), (2, lambda now: b""), acks=7),
        "acks-7-missing": of((0, good), (MISSING, good), acks=7),
        "twice": of((0, good), (0, other)),
        "twice-first-bad": of((0, bad), (0, good)),
        "twice-last-bad": of((0, good), (0, bad)),
        "twice-first-empty": of((0, lambda now: b""), (0, good)),
        "twice-last-empty": of((0, good), (0, lambda now: b"")),
        "twice-both-empty": of((0, lambda now: b""), (0, good._replace(magic=1))),
        "three-times": of((0, good), (0, lambda now: b""), (0, other)),
        "twice-missing": of((MISSING, good), (MISSING, good)),
        "twice-behind-another": of((0, good), (1, good), (0, other)),
        "behind-largest": of((0, good), (1, behind(good, bytes(8) + struct.pack(">i", 2**31 - 1) + bytes(4) + b"\2" * 9))),
        "good-behind-zeros": of((0, good), (1, behind(good, bytes(20)))),
    }


TOGETHER = _together()

NAMES = {kind: f"hand-made-{kind}" for kind in TOPICS}


def places() -> dict[str, int]:
    """The partition of each case: each has its own."""
    counted: dict[str, int] = {}
    found = {}
    for name, case in CASES.items():
        found[name] = counted[case.topic] = counted.get(case.topic, -1) + 1
    return found


NOT_YET = (3, 6)
"""A partition that was made is led a moment later."""


def create_topics(client: BrokerClient) -> None:
    """Make the topics, with a partition for each case, and wait until all are led."""
    counts = {kind: sum(case.topic == kind for case in CASES.values()) for kind in TOPICS}
    for kind, settings in TOPICS.items():
        client.create(NAMES[kind], counts[kind], **settings)
        wait_until(lambda kind=kind: _led(client, NAMES[kind], counts[kind]))
    client.create(TOGETHER_TOPIC, MISSING * len(TOGETHER))
    wait_until(lambda: _led(client, TOGETHER_TOPIC, MISSING * len(TOGETHER)))


def _led(client: BrokerClient, topic: str, count: int) -> bool:
    """Whether each partition can be read."""
    partitions = [Message(partition_index=number, timestamp=-1) for number in range(count)]
    answer = client.call("ListOffsets", 7, replica_id=-1, topics=[Message(name=topic, partitions=partitions)])
    return all(one.error_code == 0 for one in answer.topics[0].partitions)


def time_of_sending() -> int:
    """A moment (ms) a second ago, whose last byte is the same at all times."""
    now = int(time.time() * 1000) - 1000
    return now - (now - LAST_BYTE) % 256


def ask(port: int, name: str, partition: int) -> dict[str, Any]:
    """A broker's answer to a case, and the log afterwards."""
    case = CASES[name]
    topic = NAMES[case.topic]
    answers: list[Any] = []
    now = time_of_sending()
    with BrokerClient(port) as client:
        for build in case.steps:
            data = Message(name=topic, partition_data=[Message(index=partition, records=build(now))])
            sent = Message(acks=case.acks, timeout_ms=10_000, topic_data=[data], transactional_id=None)
            client.send("Produce", case.version, sent)
            try:
                answer = client.receive("Produce", case.version)
            except ConnectionError:
                return {"answers": [*answers, "closed"]}
            told = answer.responses[0].partition_responses[0]
            assert told.error_code not in NOT_YET, f"{topic}-{partition} is not led yet"
            answers.append(_told(told, case.version))
        last = case.steps[-1](now)
        found = client.fetch(topic, 0, partition)
        return {"answers": answers, "log": _log(bytes(found.records or b""), now, last), "end": found.high_watermark}


def ask_together(port: int, name: str) -> dict[str, Any]:
    """A broker's answers for the partitions of a request, and their log ends afterwards."""
    case, first = TOGETHER[name], MISSING * list(TOGETHER).index(name)
    now = time_of_sending()
    numbers = [first + part if part < MISSING else 9999 for part, _ in case.parts]
    data = [Message(index=number, records=one(now)) for number, (_, one) in zip(numbers, case.parts, strict=True)]
    topics = [Message(name=TOGETHER_TOPIC, partition_data=data)]
    with BrokerClient(port) as client:
        answer = client.call("Produce", case.version, acks=case.acks, timeout_ms=10_000, topic_data=topics)
        answered = {one.index: _told(one, case.version) for topic in answer.responses for one in topic.partition_responses}
        count = sum(len(topic.partition_responses) for topic in answer.responses)
        assert (count, len(answer.responses)) == (len(answered), 1), "a partition is answered once"
        ends = [client.fetch(TOGETHER_TOPIC, 0, first + part).high_watermark for part in range(MISSING)]
    return {
        "answers": [
            [part, answered[number]] for part, number in enumerate(range(first, first + MISSING)) if number in answered
        ]
        + ([[MISSING, answered[9999]]] if 9999 in answered else []),
        "ends": ends,
    }


def _told(answer: Message, version: int) -> dict[str, Any]:
    found = {
        "error": answer.error_code,
        "base_offset": answer.base_offset,
        "log_start": answer.log_start_offset if version >= 5 else -1,
        "stamped": answer.log_append_time_ms > 0,
    }
    if version >= 8:
        found["record_errors"] = [[one.batch_index, _words(one.batch_index_error_message)] for one in answer.record_errors]
        found["message"] = _words(answer.error_message)
    return found


def _words(text: str | None) -> str | None:
    """A message without the topic's name and what differs from run to run."""
    if text is None:
        return None
    text = re.sub(r"hand-made-([a-z-]+)-(\d+)", r"TOPIC", text)
    text = re.sub(r" (in|at) [^.\]]*?(DefaultRecord\([^)]*\)|timestamp -?\d+)\. Producer", r" here. Producer", text)
    return re.sub(r"-?\d{9,}|@[0-9a-f]{4,8}\b", "#", text)


def _log(data: bytes, now: int, sent: bytes) -> list[dict[str, Any]]:
    """The batches of a log: their headers, and their records or why they cannot be read."""
    found = []
    for header in headers(data):
        batch = data[header.position : header.position + header.size]
        told: dict[str, Any] = {
            "base_offset": header.base_offset,
            "attributes": header.attributes,
            "last_offset_delta": header.last_offset_delta,
            "base_time": _near(header.base_timestamp, now),
            "max_time": _near(header.max_timestamp, now),
            "producer": [header.producer_id, header.producer_epoch, header.base_sequence],
            "count": header.record_count,
            "as_sent": batch[HEADER_SIZE:] == sent[HEADER_SIZE : len(batch)],
        }
        if len(batch) < 10_000:
            try:
                told["records"] = [
                    [
                        one.offset,
                        _near(one.timestamp, now),
                        _hex(one.key),
                        _hex(one.value),
                        [[name, _hex(value)] for name, value in one.headers],
                    ]
                    for one in records_of(batch)
                ]
            except (RecordError, CompressionError):
                told["records"] = "unreadable"
        found.append(told)
    return found


def _hex(value: bytes | None) -> str | int | None:
    """A value, or its length if it is a long one."""
    return value.hex() if value is not None and len(value) < 100 else None if value is None else len(value)


NEAR, SOON = 30 * HOUR, 120_000


def _near(value: int, now: int) -> int | str:
    """A time as the distance from when the batch was sent (ms); `now` for one that the broker has set."""
    if abs(value - now) > NEAR:
        return value
    return "now" if 500 < value - now < SOON else value - now


def ask_all(port: int) -> dict[str, dict[str, Any]]:
    """A broker's answers to all cases."""
    with BrokerClient(port) as client:
        create_topics(client)
    alone = {name: ask(port, name, partition) for name, partition in places().items()}
    return alone | {f"together.{name}": ask_together(port, name) for name in TOGETHER}


if __name__ == "__main__":
    print(json.dumps(ask_all(int(sys.argv[1].rpartition(":")[2])), indent=0))
