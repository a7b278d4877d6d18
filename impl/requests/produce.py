"""Produce: each batch is checked by its header and checksum, and then handed to `spec`."""

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.pending import PendingProduce, answer_of, refusal
from impl.records.batch import HEADER_SIZE, LENGTH_END, BatchHeader, header_at, is_intact, stamped
from impl.wire.values import Message
from spec.broker.clients.batches import (
    ProduceTerms,
    ReceivedBatch,
    check_batch_for_log,
    check_batch_of_request,
    check_framing,
)
from spec.messages.produce import ACKS_ALL, NO_DEADLINE, ProduceResponse
from spec.values import Error

LENGTH_AT, MAGIC_AT, FIXED = 8, 16, 17


def produce(core: Core, call: Call, now: int) -> list[Effect]:
    """Append the batches of a request. **Kafka:** `KafkaApis.handleProduceRequest`."""
    request = call.message
    count = sum([len(topic.partition_data) for topic in request.topic_data])
    named = "topic_id" if call.version >= 13 else "name"
    pending = PendingProduce(call, request.acks, count)
    terms = ProduceTerms(call.version, request.acks, request.transactional_id is not None)
    effects: list[Effect] = []
    place = 0
    for topic in request.topic_data:
        first = place
        for data in topic.partition_data:
            effects += _produce_one(core, pending, place, topic, data, terms, now)
            place += 1
        if place > first:
            pending.topics.append(({named: getattr(topic, named)}, range(first, place)))
    call.message = Message()  # the batches are in the effects; while the answer waits, it holds no memory
    return effects if count else pending.finish()


def _produce_one(
    core: Core, pending: PendingProduce, place: int, topic: Message, data: Message, terms: ProduceTerms, now: int
) -> list[Effect]:
    call = pending.call
    replica, error = core.find(topic.name, topic.topic_id, data.index, by_id=call.version >= 13)
    if replica is None:
        return pending.take(place, refusal(data.index, error))
    records = data.records if data.records is not None else memoryview(b"")
    header = header_at(records) if len(records) >= HEADER_SIZE else None
    error = _framing_error(records, header)
    if error != Error.NONE or header is None:
        return pending.take(place, refusal(data.index, error))
    received = _received(header, records)
    error = check_batch_of_request(terms, received, core.is_internal(replica.place.topic))
    if error != Error.NONE:
        return pending.take(place, refusal(data.index, error))
    error = check_batch_for_log(received, replica.limits, now)
    if error != Error.NONE and core.takes_records(replica, pending.acks):
        return pending.take(place, answer_of(replica, ProduceResponse(error)))
    batch = records[: header.size]
    if replica.config.message_timestamp_type == "LogAppendTime":
        batch = stamped(batch, header, now)
        pending.append_times[place] = now
    deadline = now + call.message.timeout_ms if pending.acks == ACKS_ALL else NO_DEADLINE
    return core.append(replica, pending, place, header, batch, now, pending.acks, deadline)


def _framing_error(records: memoryview, header: BatchHeader | None) -> Error:
    """Why the records are not a whole batch of the right format, if they are not. Without a header they are too short."""
    if header is not None:
        error = check_framing(header.length, header.magic, len(records) >= header.size)
        return Error.CORRUPT_MESSAGE if error == Error.NONE and header.size < HEADER_SIZE else error
    has_length = len(records) >= FIXED
    length = int.from_bytes(records[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) if has_length else None
    magic = records[MAGIC_AT] if has_length else 0
    whole = length is not None and len(records) >= LENGTH_END + length
    error = check_framing(length, magic - 256 if magic > 127 else magic, whole)
    return Error.CORRUPT_MESSAGE if error == Error.NONE else error


def _received(header: BatchHeader, records: memoryview) -> ReceivedBatch:
    return ReceivedBatch(
        header.size,
        header.magic,
        header.base_offset,
        header.last_offset_delta,
        header.record_count,
        header.compression,
        header.control,
        header.transactional,
        header.producer_id,
        header.base_sequence,
        header.max_timestamp,
        is_intact(records, header),
        _another_follows(records, header.size),
    )


def _another_follows(records: memoryview, size: int) -> bool:
    """Whether a second whole batch lies behind the first; an incomplete one does not count."""
    rest = len(records) - size
    if rest < FIXED:
        return False
    length = int.from_bytes(records[size + LENGTH_AT : size + LENGTH_AT + 4], "big", signed=True)
    return rest >= LENGTH_END + length
