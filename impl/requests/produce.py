"""Produce: each batch, and what is in it, is handed to `spec`; what `spec` takes is stored."""

from functools import partial
from struct import Struct
from typing import NamedTuple

from kspec.impl.broker.calls import Aside, Call, Effect, InTurns, Steps, aside, ends_turn, in_one_go
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.pending import PendingProduce, answer_of, refusal, refusal_of_records
from kspec.impl.broker.replica import Replica
from kspec.impl.records.batch import HEADER_SIZE, LENGTH_END, BatchHeader, Buffer, header_at, is_intact, stamped
from kspec.impl.records.pieces import MoreBytesError
from kspec.impl.records.reading import read_records, records_in
from kspec.impl.records.record import rewritten
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.batches import (
    FIRST_VERSION_WITH_ZSTD,
    LEAST_LENGTH,
    MAGIC,
    BatchLimits,
    Framing,
    ProduceTerms,
    ReceivedBatch,
    check_all_framings,
    check_batch_of_request,
    check_begin,
    check_framing,
    check_received_batch,
    check_request_records,
    fails_as_a_whole,
    of_copies,
)
from kspec.spec.broker.clients.records import (
    RecordFault,
    check_records,
    check_stored_size,
    is_rewritten,
    is_skimmed,
    stored_codec,
    stored_times,
)
from kspec.spec.log.found_records import FoundRecord
from kspec.spec.messages.produce import ACKS_ALL, NO_DEADLINE, ProduceResponse
from kspec.spec.values import NO_PRODUCER_ID, Error, Instant, TimestampMs

READ_AT_ONCE = 4 << 20
"""Bytes of a batch's records that are read before others are served: compressed, a batch may become far more."""

LENGTH_AT, MAGIC_AT, ATTRIBUTES_AT, FIXED = 8, 16, 22, 17
_LENGTH, _MAGIC = Struct(">i"), Struct(">b")
TRANSACTIONAL = 0x10
NO_RECORDS = memoryview(b"")
UNKNOWN = (Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_ID)


class NamedPartition(NamedTuple):
    """A partition that a request names: its topic, its number, its records, how they begin."""

    topic: Message
    number: int
    records: memoryview
    framing: Framing


class CompleteBatch(NamedTuple):
    """A batch that is there as a whole: its header, and what `spec` asks of it."""

    header: BatchHeader
    batch: ReceivedBatch


PRODUCED_AT_ONCE = 40
"""Partitions of a request that names many to which is appended before others are served: each has files to be written."""


def produce(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Append the batches of a request. **Kafka:** `KafkaApis.handleProduceRequest`."""
    if sum([len(topic.partition_data) for topic in call.message.topic_data]) <= PRODUCED_AT_ONCE:
        return in_one_go(_produce(core, call, now))
    for topic in call.message.topic_data:  # the buffer that was received is used again before all is handled
        for data in topic.partition_data:
            if data.records is not None:
                data.__dict__["records"] = memoryview(bytes(data.records))
    return [InTurns(call, _produce(core, call, now))]


def _produce(core: BrokerCore, call: Call, now: Instant) -> Steps:
    """Look at the beginning of all batches, as one may fail the others, and then append them; some in each step."""
    request, by_id = call.message, call.version >= 13
    terms = ProduceTerms(call.version, request.acks, request.transactional_id is not None)
    copies: dict[tuple[str | bytes, int], list[NamedPartition]] = {}
    framings: list[Framing] = []
    is_odd = call.version < FIRST_VERSION_WITH_ZSTD
    for topic in request.topic_data:
        key = bytes(topic.topic_id) if by_id else topic.name
        for data in topic.partition_data:
            records = data.records if data.records is not None else NO_RECORDS
            framing = _framing(records)
            is_odd = is_odd or len(records) < HEADER_SIZE or framing.length != len(records) - LENGTH_END
            framings.append(framing)
            copies.setdefault((key, data.index), []).append(NamedPartition(topic, data.index, records, framing))
            if ends_turn(len(framings) - 1):
                yield []
    pending = PendingProduce(call, request.acks, len(copies), leader_of=core.leader_named, endpoints_of=core.endpoints_of)
    error = check_all_framings(framings, terms.has_transactional_id)
    if error == Error.NONE and is_odd:
        for number, one in enumerate(named for those in copies.values() for named in those):
            if _fails_all(core, terms, one, by_id):
                error = Error.UNKNOWN_SERVER_ERROR
                break
            if ends_turn(number):
                yield []
    words = _words(framings) if error == Error.CORRUPT_MESSAGE else None
    effects: list[Effect] = []
    for place, ((key, index), named) in enumerate(copies.items()):
        pending.topics.setdefault(key, []).append(place)
        if error != Error.NONE:
            effects += pending.take(place, refusal(index, error, words))
        else:
            effects += _produce_one(core, pending, place, named, terms, now)
        if ends_turn(place, PRODUCED_AT_ONCE):
            yield effects
            effects = []
    call.message = Message()  # the batches are in the effects; while the answer waits, it holds no memory
    return effects if copies else pending.finish()


def _fails_all(core: BrokerCore, terms: ProduceTerms, one: NamedPartition, by_id: bool) -> bool:
    """Whether one of its batches is such that all of a request fails."""
    _, error = core.find(one.topic.name, one.topic.topic_id, one.number, by_id)
    received = None if error in UNKNOWN else _received(one, intact=False)
    return received is not None and fails_as_a_whole(terms.version, received.batch)


def _produce_one(
    core: BrokerCore, pending: PendingProduce, place: int, named: list[NamedPartition], terms: ProduceTerms, now: Instant
) -> list[Effect]:
    """Append what a request has for one partition. Of several batches for the same partition one is appended."""
    topic, index, _, _ = named[-1]
    replica, found = core.find(topic.name, topic.topic_id, index, by_id=terms.version >= 13)
    if found in UNKNOWN:
        return pending.take(place, refusal(index, found))
    received = [_received(one) for one in named]
    errors = [_error_of_request(one, it, terms) for one, it in zip(named, received, strict=True)]
    chosen, error = of_copies(errors)
    if error != Error.NONE:
        pending.refuse(place, refusal(index, error))
    one = None if chosen is None else received[chosen]
    if one is None:
        return pending.take(place, refusal(index, error))
    name = topic.name if replica is None else replica.place.topic
    error = check_batch_of_request(terms, one.batch, core.is_internal(name))
    if error == Error.NONE and replica is None:
        error = found
    if error != Error.NONE or replica is None:
        return pending.take(place, refusal(index, error))
    return _append(core, pending, place, replica, one, named[chosen or 0], now)


class BatchVerdict(NamedTuple):
    """A batch that has been looked into: an error, or its bytes and header as they are stored."""

    error: Error
    header: BatchHeader
    stored: Buffer
    timestamp: TimestampMs
    """The time by the broker's clock (ms) when it was looked into."""
    refused: tuple[tuple[FoundRecord, RecordFault], ...] = ()
    """The records for which it is refused, and why."""


def _append(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    replica: Replica,
    one: CompleteBatch,
    named: NamedPartition,
    now: Instant,
) -> list[Effect]:
    """Append a batch, if what is in it is right and fits the topic. It is looked into aside if that takes long."""
    try:
        ready = _look_into(one, named.records, replica.limits, now.timestamp, READ_AT_ONCE)
    except MoreBytesError:
        kept = named._replace(  # without the buffer that was received, which is used again
            topic=Message(name=named.topic.name, topic_id=bytes(named.topic.topic_id)),
            records=memoryview(bytes(named.records)),
        )
        return [_aside(core, pending, place, replica, one, kept, pending.call.message.timeout_ms, now)]
    return _append_ready(core, pending, place, replica, one, ready, pending.call.message.timeout_ms, now)


def _aside(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    replica: Replica,
    one: CompleteBatch,
    named: NamedPartition,
    timeout_ms: int,
    now: Instant,
) -> Aside:
    """Look into a batch in a thread, and append it after that.

    Meanwhile the partition may have been deleted, moved away, made anew, or given other settings: it is looked for again.
    """
    limits = replica.limits

    def append(ready: BatchVerdict, later: Instant) -> list[Effect]:
        again, error = core.find(named.topic.name, named.topic.topic_id, named.number, by_id=pending.call.version >= 13)
        if again is None:
            return pending.take(place, refusal(named.number, error))
        if again is not replica or again.limits != limits:
            return [_aside(core, pending, place, again, one, named, timeout_ms, later)]
        return _append_ready(core, pending, place, replica, one, ready, timeout_ms, later)

    return aside(pending.call, partial(_look_into, one, named.records, limits, now.timestamp, None), append)


def _look_into(
    one: CompleteBatch, records: memoryview, limits: BatchLimits, now: TimestampMs, most: int | None
) -> BatchVerdict:
    """Read a batch, and make it what is stored. Raises: `MoreBytesError`, if its records have more than `most` bytes."""
    header, batch = one
    error = check_received_batch(batch, limits.max_size)
    if error != Error.NONE:
        return BatchVerdict(error, header, records, now)
    skims = is_skimmed(batch.codec, limits.stored_codec)
    found = read_records(records, header, skims, most)
    error, refused = check_records(batch, found, limits, now, partial(records_in, records, header, skims))
    if error != Error.NONE:
        return BatchVerdict(error, header, records, now, refused)
    times = stored_times(batch, found, limits, now)
    stored: Buffer
    if is_rewritten(batch, limits):
        stored = rewritten(records, stored_codec(batch.codec, limits.stored_codec), *times)
        header = header_at(stored)
    else:
        stored = stamped(records, header, *times)
    return BatchVerdict(check_stored_size(len(stored), is_rewritten(batch, limits), limits), header, stored, now)


def _append_ready(
    core: BrokerCore,
    pending: PendingProduce,
    place: int,
    replica: Replica,
    one: CompleteBatch,
    ready: BatchVerdict,
    timeout_ms: int,
    now: Instant,
) -> list[Effect]:
    """Append a batch that has been looked into, unless something was wrong with it."""
    header, limits = ready.header, replica.limits
    if ready.error != Error.NONE and core.takes_records(replica, pending.acks):
        if not ready.refused:
            return pending.take(place, answer_of(replica, ProduceResponse(ready.error)))
        message = refusal_of_records(replica, ready.error, one.batch, limits, ready.timestamp, ready.refused)
        return pending.take(place, message)
    if not limits.create_time:
        pending.append_times[place] = ready.timestamp
    deadline = now.after(timeout_ms) if pending.acks == ACKS_ALL else NO_DEADLINE
    before = replica.partition.local.log
    effects = core.append(replica, pending, place, header, ready.stored, now, pending.acks, deadline)
    if header.producer_id > NO_PRODUCER_ID and replica.partition.local.log is before:
        pending.append_times[place] = replica.files.time_of_duplicate(header)
    return effects


# ---- what has arrived


def _framing(records: memoryview) -> Framing:
    """The beginning of a partition's records."""
    count = len(records)
    length = _LENGTH.unpack_from(records, LENGTH_AT)[0] if count >= LENGTH_END else None
    if count < FIXED or length is None:
        return Framing(length, MAGIC, False, False)
    whole = count >= LENGTH_END + length
    transactional = whole and count > ATTRIBUTES_AT and bool(records[ATTRIBUTES_AT] & TRANSACTIONAL)
    return Framing(length, _MAGIC.unpack_from(records, MAGIC_AT)[0], whole, transactional)


def _error_of_request(one: NamedPartition, received: CompleteBatch | None, terms: ProduceTerms) -> Error:
    """Whether a request may carry these records."""
    length, magic, whole, _ = one.framing
    error = check_framing(length, magic, whole)
    return error if error != Error.NONE or received is None else check_request_records(terms.version, received.batch)


def _received(one: NamedPartition, intact: bool = True) -> CompleteBatch | None:
    """The batch, if it is there as a whole. `intact`: whether its checksum is to be looked at."""
    length, magic, whole, _ = one.framing
    if length is None or check_framing(length, magic, whole) != Error.NONE:
        return None
    records, size = one.records, LENGTH_END + length
    header = header_at(records if size >= HEADER_SIZE else bytes(records[:size]).ljust(HEADER_SIZE, b"\0"))
    more, behind = (False, Error.NONE) if len(records) == size else _behind(records[size:])
    batch = ReceivedBatch(
        size,
        magic,
        header.base_offset,
        header.last_offset_delta,
        header.record_count,
        header.compression,
        header.control,
        header.transactional,
        header.producer_id,
        header.base_sequence,
        header.max_timestamp,
        intact and is_intact(records, header),
        more,
        header.log_append_time,
        behind,
    )
    return CompleteBatch(header, batch)


def _behind(records: memoryview) -> tuple[bool, Error]:
    """Whether another whole batch lies behind the first, and the error of bytes that cannot be one."""
    length, magic, whole, _ = _framing(records)
    error = check_begin(length, magic)
    return whole and error == Error.NONE, error


def _words(framings: list[Framing]) -> str | None:
    """The defect of first bytes that are no batch, as Kafka says it."""
    for length, magic, _, _ in framings:
        if check_begin(length, magic) != Error.NONE:
            if length is not None and length < LEAST_LENGTH:
                return f"Record size {length} is less than the minimum record overhead ({LEAST_LENGTH})"
            return f"Invalid magic found in record: {magic}"
    return None
