"""Batches whose header is right and whose records are not: a broker looks into a batch before it appends it."""

from collections.abc import Callable

from kspec.conformance.wire.model.batches import BatchShape
from kspec.conformance.wire.model.partition import LogState, led_partition, topic_ready
from kspec.conformance.wire.model.received.headers import HOUR_MS, LATEST, SentHeader, receive, sent_as
from kspec.conformance.wire.model.subject import Subject
from kspec.impl.records.batch import HEADER_SIZE, LENGTH_END, MAGIC, BatchHeader, packed_header
from kspec.impl.records.compression import compress
from kspec.spec.broker.clients.batches import BatchLimits
from kspec.spec.values import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Epoch, Offset

CONFIGS = (
    ("cleanup.policy", "compact"),
    ("message.timestamp.before.max.ms", str(HOUR_MS)),
    ("message.timestamp.after.max.ms", str(HOUR_MS)),
)
LIMITS = BatchLimits(1 << 20, HOUR_MS, HOUR_MS, compacted=True)
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
KEY, VALUE = b"\x02k", b"\x02v"
"""A byte behind its length, as records have it."""

MISSING = b"\x01"


def number(value: int) -> bytes:
    """A number of variable length, with its sign in the last bit."""
    value = (value << 1) ^ (value >> 63)
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def record(
    offset: int = 0, time: int = 0, key: bytes = KEY, value: bytes = VALUE, headers: bytes = b"\0", longer: int = 0
) -> bytes:
    """A record, which may say that it is longer than it is. `headers`: how many, and what they are."""
    body = b"\0" + number(time) + number(offset) + key + value + headers
    return number(len(body) + longer) + body


def sent(body: bytes, count: int = 2, codec: int = NONE, packed: bytes | None = None) -> SentHeader:
    """A batch of a header for so many records, all now, and this body. `packed`: in place of the compressed body."""
    shape = BatchShape(count, step=0, codec=codec)
    content = compress(codec, body) if packed is None else packed
    header = BatchHeader(
        Offset(0),
        HEADER_SIZE - LENGTH_END + len(content),
        Epoch(-1),
        MAGIC,
        0,
        codec,
        count - 1,
        0,
        0,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        -1,
        count,
        0,
    )
    return sent_as(shape, packed_header(header) + content)


TWO = record(0) + record(1)
AHEAD = record(0) + record(1, time=2 * HOUR_MS)
KEYLESS = record(0) + record(1, key=MISSING)
DAMAGED = bytes(range(40, 90))

KINDS: tuple[tuple[str, str, Callable[[], SentHeader]], ...] = (
    ("sound", "two records", lambda: sent(TWO)),
    ("sound-gzip", "two records, gzip", lambda: sent(TWO, codec=GZIP)),
    ("sound-snappy", "two records, snappy", lambda: sent(TWO, codec=SNAPPY)),
    ("sound-lz4", "two records, lz4", lambda: sent(TWO, codec=LZ4)),
    ("sound-zstd", "two records, zstd", lambda: sent(TWO, codec=ZSTD)),
    ("header", "a record with a header without a value", lambda: sent(record(headers=b"\x02\x02a\x01") + record(1))),
    ("empty-key", "a record with an empty key", lambda: sent(record(key=b"\0") + record(1))),
    ("no-value", "a record without a value", lambda: sent(record(value=MISSING) + record(1))),
    ("fewer", "two records in a batch that says it has three", lambda: sent(TWO, 3)),
    ("fewer-gzip", "the same, gzip", lambda: sent(TWO, 3, GZIP)),
    ("fewer-zstd", "the same, zstd", lambda: sent(TWO, 3, ZSTD)),
    ("more", "three records in a batch that says it has two", lambda: sent(TWO + record(2))),
    ("more-lz4", "the same, lz4", lambda: sent(TWO + record(2), codec=LZ4)),
    ("behind", "a byte behind the last record", lambda: sent(TWO + b"\0")),
    ("damaged", "bytes that are no records", lambda: sent(DAMAGED)),
    ("damaged-gzip", "bytes that are no records, gzip", lambda: sent(DAMAGED, codec=GZIP)),
    ("too-long", "a record that says it is longer", lambda: sent(TWO[:-1] + record(longer=1))),
    ("key-too-long", "a key that ends behind the batch", lambda: sent(record() + record(1, key=b"\x7ek"))),
    ("headers-missing", "a record that has fewer headers than it says", lambda: sent(record() + record(1, headers=b"\x02"))),
    ("headers-negative", "a record with a negative number of headers", lambda: sent(record() + record(1, headers=b"\x01"))),
    ("header-without-key", "a header without a key", lambda: sent(record(headers=b"\x02\x01\x02b") + record(1))),
    ("no-number", "a length of six bytes", lambda: sent(b"\xff" * 5 + b"\x01" + TWO[1:])),
    ("not-compressed", "plain records in a batch that says gzip", lambda: sent(TWO, codec=GZIP, packed=TWO)),
    ("cut-gzip", "gzip whose end is missing", lambda: sent(TWO, codec=GZIP, packed=compress(GZIP, TWO)[:-5])),
    ("cut-zstd", "zstd whose end is missing", lambda: sent(TWO, codec=ZSTD, packed=compress(ZSTD, TWO)[:-1])),
    ("no-key", "a record without a key, in a compacted topic", lambda: sent(KEYLESS)),
    ("no-key-snappy", "the same, snappy", lambda: sent(KEYLESS, codec=SNAPPY)),
    ("ahead", "a record of two hours ahead, and a header that says now", lambda: sent(AHEAD)),
    ("ahead-zstd", "the same, zstd", lambda: sent(AHEAD, codec=ZSTD)),
    ("ahead-and-no-key", "one record of two hours ahead, and one without a key", lambda: sent(
        record(time=2 * HOUR_MS) + record(1, key=MISSING)
    )),
    ("offsets", "offsets 0 and 5 in a batch of two", lambda: sent(record() + record(5))),
    ("offsets-gzip", "offsets 0 and 5 in a batch of two, gzip", lambda: sent(record() + record(5), codec=GZIP)),
)  # fmt: skip

STAMPED_KINDS: tuple[tuple[str, str, Callable[[], SentHeader]], ...] = (
    *(one for one in KINDS if one[0] in ("sound", "ahead", "ahead-zstd", "no-key", "no-key-snappy", "ahead-and-no-key")),
    ("both", "a record of two hours ahead without a key", lambda: sent(record(time=2 * HOUR_MS, key=MISSING) + record(1))),
    ("before", "a record of two hours ago", lambda: sent(record(time=-2 * HOUR_MS) + record(1))),
)
STAMPING = (("message.timestamp.type", "LogAppendTime"), *CONFIGS)
STAMPED_RECORDS = Subject(
    "stamped-records",
    "records of a compacted topic whose broker sets their times: a key is needed, and the producer's time is not looked at",
    LogState(led_partition()),
    (*(receive(name, words, make, LIMITS._replace(create_time=False)) for name, words, make in STAMPED_KINDS), LATEST),
    lambda state, holes: topic_ready(STAMPING, holes),
    {"records": 4, "hours": 1},
    looks=(LATEST,),
    by_release=True,
)

RECORDS_INSIDE = Subject(
    "records",
    "batches whose header is right and whose records are not",
    LogState(led_partition()),
    (*(receive(name, words, make, LIMITS) for name, words, make in KINDS), LATEST),
    lambda state, holes: topic_ready(CONFIGS, holes),
    {"records": 4, "hours": 1},
    looks=(LATEST,),
    by_release=True,
)
