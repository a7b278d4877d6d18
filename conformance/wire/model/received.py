"""Batches that a broker looks at before it appends them: what their headers say, and whether the bytes are whole."""

from collections.abc import Callable
from typing import NamedTuple

from conformance.wire.exchange import Constraint, Exchange, Records, equals
from conformance.wire.model.batches import Shape, batch, plain_bytes, with_holes
from conformance.wire.model.partition import LogState, append, broker, led_partition, reply_of, topic_ready
from conformance.wire.model.requests import LISTED, PRODUCED, list_offsets, produce
from conformance.wire.model.subject import Move, Subject, Taken
from impl.records.batch import CRC_START, LENGTH_END
from impl.wire.schema import FOREVER, Versions
from spec.broker.clients.batches import (
    CODECS,
    ZSTD,
    BatchLimits,
    ProduceTerms,
    ReceivedBatch,
    check_batch_for_log,
    check_batch_of_request,
    check_framing,
)
from spec.broker.leader.offsets import handle_list_offsets
from spec.broker.leader.produce import handle_produce
from spec.broker.protocol import BrokerProtocol
from spec.log.batch import Batch
from spec.messages.fetch import Isolation
from spec.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse, Wanted
from spec.messages.produce import ACKS_ALL
from spec.values import NO_PRODUCER_ID, Error, ProducerId

INTACT = "a batch that is damaged, or is not what its header says, is not stored"
MOST_BYTES, HOUR_MS = 300, 3_600_000
CONFIGS = (
    ("max.message.bytes", str(MOST_BYTES)),
    ("message.timestamp.before.max.ms", str(HOUR_MS)),
    ("message.timestamp.after.max.ms", str(HOUR_MS)),
)
LIMITS = BatchLimits(MOST_BYTES, HOUR_MS, HOUR_MS)
NOW = 10 * HOUR_MS
CONTROL, TRANSACTIONAL = 0x20, 0x10
MAGIC_AT, LAST_DELTA_AT, COUNT_AT, LENGTH_AT = 16, 23, 57, 8
NEVER_MAGIC = 9


class Sent(NamedTuple):
    """What a producer sends: its bytes, what a broker reads in the header, and the framing (`length` in bytes, or none)."""

    records: Records
    header: ReceivedBatch
    length: int | None
    magic: int = 2
    whole: bool = True
    version: int = FOREVER


def _header(shape: Shape, size: int) -> ReceivedBatch:
    """What the header of a sound batch says."""
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
    )


def _sound(shape: Shape) -> Sent:
    raw = plain_bytes(shape)
    return Sent(Records(with_holes(shape, raw)), _header(shape, len(raw)), len(raw) - LENGTH_END)


def _patched(at: int, value: bytes) -> Sent:
    """A batch with some bytes of the header replaced, and a checksum that fits."""
    raw = bytearray(plain_bytes(Shape(2)))
    raw[at : at + len(value)] = value
    return _sound(Shape(2))._replace(records=Records(with_holes(Shape(2), bytes(raw))))


def _wrong_checksum() -> Sent:
    raw = bytearray(plain_bytes(Shape()))
    raw[CRC_START - 1] ^= 1
    sent = _sound(Shape())
    return sent._replace(records=Records((bytes(raw),)), header=sent.header._replace(intact=False))


def _last_delta() -> Sent:
    sent = _patched(LAST_DELTA_AT, (9).to_bytes(4, "big"))
    return sent._replace(header=sent.header._replace(last_offset_delta=9))


def _no_count() -> Sent:
    sent = _patched(COUNT_AT, (0).to_bytes(4, "big"))
    return sent._replace(header=sent.header._replace(record_count=0))


def _magic(magic: int) -> Sent:
    sent = _patched(MAGIC_AT, bytes([magic]))
    return sent._replace(magic=magic)


def _short() -> Sent:
    raw = plain_bytes(Shape())
    return _sound(Shape())._replace(records=Records((raw[:-7],)), whole=False)


def _short_length() -> Sent:
    raw = bytearray(plain_bytes(Shape()))
    raw[LENGTH_AT:LENGTH_END] = (5).to_bytes(4, "big")
    return _sound(Shape())._replace(records=Records((bytes(raw),)), length=5)


def _two() -> Sent:
    one, sent = batch().parts, _sound(Shape())
    return sent._replace(records=Records((*one, *one)), header=sent.header._replace(more=True))


def _too_large() -> Sent:
    return _sound(Shape(value=bytes(MOST_BYTES)))


def _exactly_as_large() -> Sent:
    room = MOST_BYTES - len(plain_bytes(Shape(value=bytes(MOST_BYTES // 2)))) + MOST_BYTES // 2
    return _sound(Shape(value=bytes(room)))


Kinds = tuple[tuple[str, str, Callable[[], Sent]], ...]

KINDS: Kinds = (
    ("sound", "a sound batch", lambda: _sound(Shape())),
    ("claimed-epoch", "a batch that claims a leader epoch", lambda: _sound(Shape(leader_epoch=99))),
    ("base-offset", "a batch whose base offset is not 0", lambda: _sound(Shape(base_offset=77))),
    ("checksum", "a batch with a wrong checksum", _wrong_checksum),
    ("codec", "a batch of a codec that there is not", lambda: _coded(CODECS + 2)),
    ("last-offset-delta", "a batch whose last offset delta does not fit its count", _last_delta),
    ("no-records", "a batch that says it has no records", _no_count),
    ("control", "a control batch", lambda: _sound(Shape(flags=CONTROL))),
    ("transactional", "a transactional batch, and no transactional id", lambda: _numbered(TRANSACTIONAL, 0)),
    ("unnumbered", "a batch with a producer id and without a sequence number", lambda: _numbered(0, -1)),
    ("two", "two batches for one partition", _two),
    ("truncated", "a batch whose end is missing", _short),
    ("short-length", "a batch with a length that no batch has", _short_length),
    ("empty", "no batch at all", lambda: _sound(Shape())._replace(records=Records((b"",)), length=None)),
    ("magic-1", "a batch of the old format", lambda: _magic(1)),
    ("magic-unknown", "a batch of a format that never was", lambda: _magic(NEVER_MAGIC)),
    ("zstd-too-old", "zstd in a version of the request that does not know it", lambda: _coded(ZSTD)._replace(version=6)),
)

LIMITED: Kinds = (
    ("sound", "a sound batch", lambda: _sound(Shape())),
    ("too-large", "a batch larger than max.message.bytes", _too_large),
    ("just-not-too-large", "a batch just as large as max.message.bytes allows", _exactly_as_large),
    ("too-early", "a record of two hours ago, where one hour is allowed", lambda: _sound(Shape(time=-2 * HOUR_MS))),
    ("too-late", "a record of two hours ahead, where one hour is allowed", lambda: _sound(Shape(time=2 * HOUR_MS))),
)


def _numbered(flags: int, sequence: int) -> Sent:
    """A batch of an idempotent producer whose id nobody has given out: it is refused before that matters."""
    shape = Shape(producer_epoch=0, sequence=sequence, flags=flags)
    sent = _sound(shape)
    raw = bytearray(plain_bytes(shape))
    raw[43:51] = (1).to_bytes(8, "big")
    return sent._replace(records=Records(with_holes(shape, bytes(raw))))


def _coded(codec: int) -> Sent:
    """A batch that names a codec, and whose records are not compressed: it is refused before that matters."""
    sent = _sound(Shape())
    raw = bytearray(plain_bytes(Shape()))
    raw[CRC_START + 1] |= codec
    return sent._replace(records=Records(with_holes(Shape(), bytes(raw))), header=sent.header._replace(codec=codec))


def judge(sent: Sent) -> Error:
    """The first error of the rules about received batches, in the order in which a broker asks them."""
    error = check_framing(sent.length, sent.magic, sent.whole)
    if error == Error.NONE:
        error = check_batch_of_request(ProduceTerms(sent.version, ACKS_ALL, False), sent.header, internal=False)
    if error == Error.NONE:
        error = check_batch_for_log(_aged(sent.header), LIMITS, NOW)
    return error


def _aged(header: ReceivedBatch) -> ReceivedBatch:
    """The header with its times as of the broker's clock: batches of the model are made at time 0."""
    return header._replace(max_timestamp=header.max_timestamp + NOW)


def _receive(name: str, words: str, make: Callable[[], Sent]) -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        if state.partition.local.log.end_offset > 1:
            return None
        sent = make()
        error = judge(sent)
        versions = Versions(3, sent.version)
        request = produce(ACKS_ALL, sent.records, versions)
        if error != Error.NONE:
            return Taken(state, Exchange(request, error.name, error, constraints=_says(error)))
        done = append(protocol, state.partition, ACKS_ALL, Batch(sent.header.record_count, payload=0))
        assert done.answer is not None, "a lone leader commits at once"
        constraints = (*_says(done.answer.error), equals(f"{PRODUCED}.base_offset", done.answer.base_offset))
        exchange = Exchange(request, "appended", done.answer.error, constraints=constraints)
        return Taken(state._replace(partition=done.partition), exchange)

    return Move(f"batch.{name}", f"produce {words}", handle_produce, INTACT, take)


def _says(error: Error) -> tuple[Constraint, ...]:
    return (equals(f"{PRODUCED}.error_code", error.value),)


def _latest() -> Move:
    def take(protocol: BrokerProtocol, state: LogState) -> Taken | None:
        request = ListOffsetsRequest(Wanted.LATEST, isolation=Isolation.HIGH_WATERMARK)
        answer = reply_of(handle_list_offsets(broker(protocol), state.partition, request, 0).effects, ListOffsetsResponse)
        constraints = (equals(f"{LISTED}.error_code", answer.error.value), equals(f"{LISTED}.offset", answer.offset))
        return Taken(state, Exchange(list_offsets(-1), f"{answer.offset} records", constraints=constraints))

    return Move("latest", "ask for the latest offset", handle_list_offsets, INTACT, take)


LATEST = _latest()

RECEIVED = Subject(
    "received",
    "batches that are damaged, or not what their header says",
    LogState(led_partition()),
    (*(_receive(name, words, make) for name, words, make in KINDS), LATEST),
    lambda state, holes: topic_ready((), holes),
    {"records": 2},
    look=LATEST,
    by_release=True,
)

LIMITS_OF_A_TOPIC = Subject(
    "limits",
    "batches that are too large or of another time for the settings of their topic",
    LogState(led_partition()),
    (*(_receive(name, words, make) for name, words, make in LIMITED), LATEST),
    lambda state, holes: topic_ready(CONFIGS, holes),
    {"records": 2, "max_message_bytes": MOST_BYTES, "hours": 1},
    look=LATEST,
    by_release=True,
)
