"""Produce: each batch is checked by its header and checksum, and then handed to `spec`."""

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.pending import PendingProduce, answer_of, refusal
from impl.broker.replica import Replica
from impl.records.batch import HEADER_SIZE, LENGTH_END, BatchHeader, header_at, is_intact, stamped
from impl.wire.values import Message
from spec.broker.clients.batches import (
    BatchLimits,
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
    count = sum(len(topic.partition_data) for topic in request.topic_data)
    named = "topic_id" if call.version >= 13 else "name"
    pending = PendingProduce(call, request.acks, count)
    effects: list[Effect] = []
    places = iter(range(count))
    for topic in request.topic_data:
        if not topic.partition_data:
            continue
        numbered = [(next(places), data) for data in topic.partition_data]
        pending.topics.append((Message(**{named: getattr(topic, named)}), [place for place, _ in numbered]))
        for place, data in numbered:
            effects += _produce_one(core, pending, place, topic, data, now)
    call.message = Message()  # the batches are in the effects; while the answer waits, it holds no memory
    return effects if count else pending.finish()


def _produce_one(core: Core, pending: PendingProduce, place: int, topic: Message, data: Message, now: int) -> list[Effect]:
    call = pending.call
    replica, error = core.find(topic.name, topic.topic_id, data.index, by_id=call.version >= 13)
    if replica is None:
        return pending.take(place, refusal(data.index, error))
    records = data.records if data.records is not None else memoryview(b"")
    error = _framing_error(records)
    if error != Error.NONE:
        return pending.take(place, refusal(data.index, error))
    header = header_at(records)
    received = _received(header, records)
    terms = ProduceTerms(call.version, pending.acks, call.message.transactional_id is not None)
    error = check_batch_of_request(terms, received, core.is_internal(replica.place.topic))
    if error != Error.NONE:
        return pending.take(place, refusal(data.index, error))
    if core.takes_records(replica, pending.acks):
        error = check_batch_for_log(received, _limits(replica), now)
    if error != Error.NONE:
        return pending.take(place, answer_of(replica, ProduceResponse(error)))
    batch = records[: header.size]
    if replica.config.message_timestamp_type == "LogAppendTime":
        batch = stamped(batch, header, now)
        pending.append_times[place] = now
    deadline = now + call.message.timeout_ms if pending.acks == ACKS_ALL else NO_DEADLINE
    return core.append(replica, pending, place, header, batch, now, pending.acks, deadline)


def _framing_error(records: memoryview) -> Error:
    """Why the records are not a whole batch of the right format, if they are not."""
    has_length = len(records) >= FIXED
    length = int.from_bytes(records[LENGTH_AT : LENGTH_AT + 4], "big", signed=True) if has_length else None
    magic = records[MAGIC_AT] if has_length else 0
    whole = length is not None and len(records) >= LENGTH_END + length
    error = check_framing(length, magic - 256 if magic > 127 else magic, whole)
    too_short_for_a_header = length is None or LENGTH_END + length < HEADER_SIZE
    return Error.CORRUPT_MESSAGE if error == Error.NONE and too_short_for_a_header else error


def _limits(replica: Replica) -> BatchLimits:
    config = replica.config
    limits = config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms
    return BatchLimits(config.max_message_bytes, *limits, config.message_timestamp_type == "CreateTime")


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
