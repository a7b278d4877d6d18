"""Produce: each batch is checked by its header and checksum, and then handed to `spec`."""

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.pending import PendingProduce, answer_of, refusal
from impl.broker.replica import Replica
from impl.records.batch import HEADER_SIZE, LENGTH_END, BatchHeader, header_at, is_intact, stamped
from impl.wire.values import Message
from spec.broker.clients.batches import (
    ReceivedBatch,
    check_framing,
    check_received_batch,
    check_request_records,
    check_timestamp,
    check_transactional,
)
from spec.broker.rules.produce import check_required_acks
from spec.messages.produce import ACKS_ALL, NO_DEADLINE, ProduceResponse
from spec.values import Error

LENGTH_AT, MAGIC_AT, FIXED = 8, 16, 17


def produce(core: Core, call: Call, now: int) -> list[Effect]:
    """Append the batches of a request. **Kafka:** `KafkaApis.handleProduceRequest`."""
    request = call.message
    count = sum(len(topic.partition_data) for topic in request.topic_data)
    pending = PendingProduce(call, request.acks, count)
    effects: list[Effect] = []
    places = iter(range(count))
    for topic in request.topic_data:
        numbered = [(next(places), data) for data in topic.partition_data]
        pending.topics.append((topic, [place for place, _ in numbered]))
        for place, data in numbered:
            effects += _produce_one(core, pending, place, topic, data, now)
    return effects if count else pending.finish()


def _produce_one(core: Core, pending: PendingProduce, place: int, topic: Message, data: Message, now: int) -> list[Effect]:
    call = pending.call
    replica, error = core.find(topic.name, topic.topic_id, data.index, by_id=call.version >= 13)
    if replica is None:
        return pending.take(place, refusal(data.index, error))
    records = data.records if data.records is not None else memoryview(b"")
    error, header, received = _framed(call, records)
    if error == Error.NONE:
        error = check_required_acks(pending.acks)
    if error == Error.NONE and core.is_internal(replica.place.topic):
        error = Error.INVALID_TOPIC_EXCEPTION
    if error != Error.NONE or header is None or received is None:
        return pending.take(place, refusal(data.index, error))
    if core.takes_records(replica, pending.acks):
        error = _checked(replica, received, now)
    if error != Error.NONE:
        return pending.take(place, answer_of(replica, ProduceResponse(error)))
    batch = records[: header.size]
    if replica.config.message_timestamp_type == "LogAppendTime":
        batch = stamped(batch, header, now)
        pending.append_times[place] = now
    deadline = now + call.message.timeout_ms if pending.acks == ACKS_ALL else NO_DEADLINE
    return core.append(replica, pending, place, header, batch, now, pending.acks, deadline)


def _framed(call: Call, records: memoryview) -> tuple[Error, BatchHeader | None, ReceivedBatch | None]:
    """The first error of a request's records before any partition is looked at; otherwise the batch."""
    has_length = len(records) >= FIXED
    length = int.from_bytes(records[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) if has_length else None
    magic = records[MAGIC_AT] if has_length else 0
    whole = length is not None and len(records) >= LENGTH_END + length
    error = check_framing(length, magic - 256 if magic > 127 else magic, whole)
    if error != Error.NONE:
        return error, None, None
    if length is None or LENGTH_END + length < HEADER_SIZE:
        return Error.CORRUPT_MESSAGE, None, None
    header = header_at(records)
    received = _received(header, records)
    error = check_request_records(call.version, received)
    if error == Error.NONE:
        error = check_transactional(received.transactional, call.message.transactional_id is not None, False)
    return error, header, received


def _checked(replica: Replica, received: ReceivedBatch, now: int) -> Error:
    """The first error of a batch for this partition."""
    config = replica.config
    error = check_received_batch(received, config.max_message_bytes)
    if error == Error.NONE and config.message_timestamp_type == "CreateTime":
        limits = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
        error = check_timestamp(received.max_timestamp, now, *limits)
    return error


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
