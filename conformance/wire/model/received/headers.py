"""Batches that a broker looks at before it appends them: what their headers say, and whether the bytes are whole."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from kspec.conformance.wire.exchange import AtLeast, Constraint, Exchange, Hole, RecordParts, equals
from kspec.conformance.wire.model.batches import BatchShape, batch, plain_bytes, with_holes
from kspec.conformance.wire.model.partition import LogState, append, broker, led_partition, reply_of, stored_at, topic_ready
from kspec.conformance.wire.model.requests import LISTED, PRODUCED, list_offsets, produce
from kspec.conformance.wire.model.subject import Move, MoveResult, Subject
from kspec.impl.records.batch import CRC_START, LENGTH_END, header_at
from kspec.impl.records.reading import read_records, records_in
from kspec.impl.wire.schema import FOREVER, Versions
from kspec.spec.broker.clients.batches import (
    CODECS,
    FIRST_VERSION_WITH_ZSTD,
    ZSTD,
    BatchLimits,
    ProduceTerms,
    ReceivedBatch,
    check_batch_of_request,
    check_framing,
    check_received_batch,
)
from kspec.spec.broker.clients.records import RecordFault, RecordsChecked, check_records, is_skimmed
from kspec.spec.broker.leader.offsets import handle_list_offsets
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.log.batch import Batch
from kspec.spec.log.found_records import FoundRecord
from kspec.spec.messages.fetch import Isolation
from kspec.spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.produce import ACKS_ALL
from kspec.spec.values import NO_PRODUCER_ID, Error, MonotonicMs, ProducerId, TimestampMs

INTACT = "a batch that is damaged, or is not what its header says, is not stored"
MOST_BYTES, HOUR_MS = 300, 3_600_000
CONFIGS = (
    ("max.message.bytes", str(MOST_BYTES)),
    ("message.timestamp.before.max.ms", str(HOUR_MS)),
    ("message.timestamp.after.max.ms", str(HOUR_MS)),
)
LIMITS = BatchLimits(MOST_BYTES, HOUR_MS, HOUR_MS)
NOW = TimestampMs(10 * HOUR_MS)
CONTROL, TRANSACTIONAL, STAMPED = 0x20, 0x10, 0x08
CLOCKS = "the clocks of client and broker may be far apart, but not by a day"
MAGIC_AT, LAST_DELTA_AT, COUNT_AT, LENGTH_AT = 16, 23, 57, 8
NEVER_MAGIC = 9


class SentHeader(NamedTuple):
    """A producer's batch: its bytes, what a broker reads in the header, and the framing (`length` in bytes, or none).

    `raw` is the batch with 0 wherever a hole will be, `time` that of its first record after the broker's (ms).
    """

    records: RecordParts
    header: ReceivedBatch
    length: int | None
    magic: int = 2
    whole: bool = True
    version: int = FOREVER
    raw: bytes = b""
    time: int = 0


def _header(shape: BatchShape, size: int) -> ReceivedBatch:
    """The header of a sound batch."""
    return ReceivedBatch(
        size,
        2,
        shape.base_offset,
        shape.records - 1,
        shape.records,
        shape.codec,
        bool(shape.flags & CONTROL),
        bool(shape.flags & TRANSACTIONAL),
        ProducerId(1) if shape.producer_epoch >= 0 else NO_PRODUCER_ID,
        shape.sequence,
        shape.time + shape.step * (shape.records - 1),
        intact=True,
        more=False,
        stamped=bool(shape.flags & STAMPED),
    )


def _sound(shape: BatchShape) -> SentHeader:
    raw = plain_bytes(shape)
    return sent_as(shape, raw)


def sent_as(shape: BatchShape, raw: bytes) -> SentHeader:
    """A batch of these bytes, whose header says what the shape does."""
    records = RecordParts(with_holes(shape, raw))
    return SentHeader(records, _header(shape, len(raw)), len(raw) - LENGTH_END, raw=raw, time=shape.time)


def _patched(at: int, value: bytes) -> SentHeader:
    """A batch with some bytes of the header replaced, and a checksum that fits."""
    raw = bytearray(plain_bytes(BatchShape(2)))
    raw[at : at + len(value)] = value
    return _sound(BatchShape(2))._replace(records=RecordParts(with_holes(BatchShape(2), bytes(raw))))


def _wrong_checksum() -> SentHeader:
    raw = bytearray(plain_bytes(BatchShape()))
    raw[CRC_START - 1] ^= 1
    sent = _sound(BatchShape())
    return sent._replace(records=RecordParts((bytes(raw),)), header=sent.header._replace(intact=False))


def _last_delta() -> SentHeader:
    sent = _patched(LAST_DELTA_AT, (9).to_bytes(4, "big"))
    return sent._replace(header=sent.header._replace(last_offset_delta=9))


def _no_count() -> SentHeader:
    sent = _patched(COUNT_AT, (0).to_bytes(4, "big"))
    return sent._replace(header=sent.header._replace(record_count=0))


def _magic(magic: int) -> SentHeader:
    sent = _patched(MAGIC_AT, bytes([magic]))
    return sent._replace(magic=magic)


def _short() -> SentHeader:
    raw = plain_bytes(BatchShape())
    return _sound(BatchShape())._replace(records=RecordParts((raw[:-7],)), whole=False)


def _short_length() -> SentHeader:
    raw = bytearray(plain_bytes(BatchShape()))
    raw[LENGTH_AT:LENGTH_END] = (5).to_bytes(4, "big")
    return _sound(BatchShape())._replace(records=RecordParts((bytes(raw),)), length=5)


def _two() -> SentHeader:
    one, sent = batch().parts, _sound(BatchShape())
    return sent._replace(records=RecordParts((*one, *one)), header=sent.header._replace(more=True))


def _too_large() -> SentHeader:
    return _sound(BatchShape(value=bytes(MOST_BYTES)))


def _exactly_as_large() -> SentHeader:
    room = MOST_BYTES - len(plain_bytes(BatchShape(value=bytes(MOST_BYTES // 2)))) + MOST_BYTES // 2
    return _sound(BatchShape(value=bytes(room)))


Kinds = tuple[tuple[str, str, Callable[[], SentHeader]], ...]

KINDS: Kinds = (
    ("sound", "a sound batch", lambda: _sound(BatchShape())),
    ("claimed-epoch", "a batch that claims a leader epoch", lambda: _sound(BatchShape(leader_epoch=99))),
    ("base-offset", "a batch whose base offset is not 0", lambda: _sound(BatchShape(base_offset=77))),
    ("checksum", "a batch with a wrong checksum", _wrong_checksum),
    ("codec", "a batch of a codec that there is not", lambda: _coded(CODECS + 2)),
    ("last-offset-delta", "a batch whose last offset delta does not fit its count", _last_delta),
    ("no-records", "a batch that says it has no records", _no_count),
    ("control", "a control batch", lambda: _sound(BatchShape(flags=CONTROL))),
    ("transactional", "a transactional batch, and no transactional id", lambda: _numbered(TRANSACTIONAL, 0)),
    ("unnumbered", "a batch with a producer id and without a sequence number", lambda: _numbered(0, -1)),
    ("stamped", "a batch that says its broker has set the times", lambda: _sound(BatchShape(flags=STAMPED))),
    ("two", "two batches for one partition", _two),
    ("truncated", "a batch whose end is missing", _short),
    ("short-length", "a batch with a length that no batch has", _short_length),
    ("empty", "no batch at all", lambda: _sound(BatchShape())._replace(records=RecordParts((b"",)), length=None)),
    ("magic-1", "a batch of the old format", lambda: _magic(1)),
    ("magic-unknown", "a batch of a format that never was", lambda: _magic(NEVER_MAGIC)),
    ("zstd-too-old", "zstd in a version of the request that does not know it", lambda: _coded(ZSTD)._replace(version=6)),
)

LIMITED: Kinds = (
    ("sound", "a sound batch", lambda: _sound(BatchShape())),
    ("too-large", "a batch larger than max.message.bytes", _too_large),
    ("just-not-too-large", "a batch just as large as max.message.bytes allows", _exactly_as_large),
    ("too-early", "a record of two hours ago, where one hour is allowed", lambda: _sound(BatchShape(time=-2 * HOUR_MS))),
    ("too-late", "a record of two hours ahead, where one hour is allowed", lambda: _sound(BatchShape(time=2 * HOUR_MS))),
)


def _numbered(flags: int, sequence: int) -> SentHeader:
    """A batch of an idempotent producer whose id nobody has given out: it is refused before that matters."""
    shape = BatchShape(producer_epoch=0, sequence=sequence, flags=flags)
    sent = _sound(shape)
    raw = bytearray(plain_bytes(shape))
    raw[43:51] = (1).to_bytes(8, "big")
    return sent._replace(records=RecordParts(with_holes(shape, bytes(raw))))


def _coded(codec: int) -> SentHeader:
    """A batch that names a codec, and whose records are not compressed: it is refused before that matters."""
    sent = _sound(BatchShape())
    raw = bytearray(plain_bytes(BatchShape()))
    raw[CRC_START + 1] |= codec
    return sent._replace(records=RecordParts(with_holes(BatchShape(), bytes(raw))), header=sent.header._replace(codec=codec))


def sound_batch() -> ReceivedBatch:
    """The header of a batch with which nothing is wrong."""
    return _sound(BatchShape()).header


def judge(sent: SentHeader, limits: BatchLimits = LIMITS) -> RecordsChecked:
    """The first error of the rules about received batches, in the order in which a broker asks them, and refused records.

    What is in the batch is read from its bytes, as of the broker's clock: batches of the model are made at time 0.
    """
    error = check_framing(sent.length, sent.magic, sent.whole)
    if error == Error.NONE:
        error = check_batch_of_request(ProduceTerms(sent.version, ACKS_ALL, False), sent.header, internal=False)
    if error == Error.NONE:
        error = check_received_batch(sent.header, limits.max_size)
    if error != Error.NONE:
        return RecordsChecked(error)
    header = header_at(sent.raw)._replace(base_timestamp=NOW + sent.time)
    skims = is_skimmed(header.compression, limits.stored_codec)
    found = read_records(sent.raw, header, skims)
    aged = sent.header._replace(max_timestamp=sent.header.max_timestamp + NOW)
    return check_records(aged, found, limits, NOW, lambda: records_in(sent.raw, header, skims))


def receive(name: str, words: str, make: Callable[[], SentHeader], limits: BatchLimits = LIMITS) -> Move:
    """A producer sends it to a topic with these limits."""

    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        if state.partition.local.log.end_offset > 1:
            return None
        sent = make()
        error, refused = judge(sent, limits)
        knows_zstd = sent.header.codec == ZSTD and sent.version >= FIRST_VERSION_WITH_ZSTD
        versions = Versions(FIRST_VERSION_WITH_ZSTD if knows_zstd else 3, sent.version)
        request = produce(ACKS_ALL, sent.records, versions)
        if error != Error.NONE:
            constraints = (*_says(error), *(_named(refused) if error == Error.INVALID_TIMESTAMP else ()))
            return MoveResult(state, Exchange(request, error.name, error, constraints=constraints))
        done = append(protocol, state.partition, ACKS_ALL, Batch(sent.header.record_count, payload=0))
        assert done.answer is not None, "a lone leader commits at once"
        told = stored_at(done.answer, state.partition)
        if not limits.create_time:
            time = f"{PRODUCED}.log_append_time_ms"
            told = (*(one for one in told if one.path != time), AtLeast(time, Hole("now", -24 * HOUR_MS), CLOCKS))
        constraints = (*_says(done.answer.error), *told)
        exchange = Exchange(request, "appended", done.answer.error, constraints=constraints)
        return MoveResult(state._replace(partition=done.partition), exchange)

    return Move(f"batch.{name}", f"produce {words}", handle_produce, INTACT, take)


def _says(error: Error) -> tuple[Constraint, ...]:
    return (equals(f"{PRODUCED}.error_code", error.value),)


def _named(refused: Sequence[tuple[FoundRecord, RecordFault]]) -> Iterator[Constraint]:
    """The answer names the records that are refused, each by its place in the batch."""
    errors = f"{PRODUCED}.record_errors"
    yield equals(f"{errors}[#]", len(refused))
    yield from (equals(f"{errors}[{number}].batch_index", record.place) for number, (record, _) in enumerate(refused))


def _latest() -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> MoveResult | None:
        request = ListOffsetsRequest(OffsetSpec.LATEST, isolation=Isolation.HIGH_WATERMARK)
        answer = reply_of(
            handle_list_offsets(broker(protocol), state.partition, request, MonotonicMs(0)).effects, ListOffsetsResponse
        )
        constraints = (equals(f"{LISTED}.error_code", answer.error.value), equals(f"{LISTED}.offset", answer.offset))
        return MoveResult(state, Exchange(list_offsets(-1), f"{answer.offset} records", constraints=constraints))

    return Move("latest", "ask for the latest offset", handle_list_offsets, INTACT, take)


LATEST = _latest()

RECEIVED = Subject(
    "received",
    "batches that are damaged, or not what their header says",
    LogState(led_partition()),
    (*(receive(name, words, make) for name, words, make in KINDS), LATEST),
    lambda state, holes: topic_ready((), holes),
    {"records": 2},
    looks=(LATEST,),
    by_release=True,
)

LIMITS_OF_A_TOPIC = Subject(
    "limits",
    "batches that are too large or of another time for the settings of their topic",
    LogState(led_partition()),
    (*(receive(name, words, make) for name, words, make in LIMITED), LATEST),
    lambda state, holes: topic_ready(CONFIGS, holes),
    {"records": 2, "max_message_bytes": MOST_BYTES, "hours": 1},
    looks=(LATEST,),
    by_release=True,
)
