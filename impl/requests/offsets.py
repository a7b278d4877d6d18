"""Offsets by time and by epoch, and deleting records from the start of a log."""

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.broker.replica import Replica
from impl.records.compression import CompressionError
from impl.records.record import RecordError
from impl.wire.values import Message
from spec.broker.clients.offset_requests import UNREADABLE, Question, judge_timestamp
from spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from spec.messages.fetch import Isolation
from spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, Wanted
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spec.values import NO_EPOCH, UNKNOWN_OFFSET, Epoch, Error

NO_TIMESTAMP = -1
DEBUGGING_REPLICA = -2
"""Kafka: `ListOffsetsRequest.DEBUGGING_REPLICA_ID`."""


def list_offsets(core: Core, call: Call, now: int) -> list[Effect]:
    """Where logs start or end, or which record has a timestamp. **Kafka:** `ReplicaManager.fetchOffset`."""
    seen: set[tuple[str, int]] = set()
    topics, repeated = [], set()
    for topic in call.message.topics:
        for one in topic.partitions:
            place = (topic.name, one.partition_index)
            if place in seen:
                repeated.add(place)
            seen.add(place)
    for topic in call.message.topics:
        if not topic.partitions:
            continue
        answers = [
            _offset_answer(one, ListOffsetsResponse(Error.INVALID_REQUEST), NO_TIMESTAMP)
            if (topic.name, one.partition_index) in repeated
            else _list_one(core, call, topic.name, one, now)
            for one in topic.partitions
        ]
        topics.append(Message(name=topic.name, partitions=answers))
    return [call.respond(topics=topics)]


def _list_one(core: Core, call: Call, topic: str, one: Message, now: int) -> Message:
    replica, error = core.find(topic, b"", one.partition_index, by_id=False)
    question = judge_timestamp(one.timestamp, call.version)
    if replica is None or question == Question.UNSUPPORTED:
        wrong = Error.UNSUPPORTED_VERSION if question == Question.UNSUPPORTED else error
        return _offset_answer(one, ListOffsetsResponse(wrong), NO_TIMESTAMP)
    replica_id = call.message.replica_id
    isolation = Isolation.LOG_END
    if replica_id == -1:
        committed = call.message.isolation_level == 1
        isolation = Isolation.COMMITTED_TRANSACTIONS if committed else Isolation.HIGH_WATERMARK
    try:
        found, timestamp = _found(replica, question, one.timestamp)
    except (RecordError, CompressionError):
        return _offset_answer(one, UNREADABLE, NO_TIMESTAMP)
    wanted = {Question.LATEST: Wanted.LATEST, Question.EARLIEST: Wanted.EARLIEST}.get(question, Wanted.BY_TIMESTAMP)
    request = ListOffsetsRequest(wanted, Epoch(one.current_leader_epoch), isolation, replica_id != DEBUGGING_REPLICA)
    answer: ListOffsetsResponse = core.run(handle_list_offsets, replica, request, now, found, now=now).reply
    is_found = wanted == Wanted.BY_TIMESTAMP and answer.error == Error.NONE and answer.offset != UNKNOWN_OFFSET
    return _offset_answer(one, answer, timestamp if is_found else NO_TIMESTAMP)


def _found(replica: Replica, question: Question, timestamp: int) -> tuple[ListOffsetsResponse, int]:
    """The record that the files hold for a timestamp, or the one with the largest."""
    if question == Question.LARGEST_TIMESTAMP:
        record = replica.files.max_timestamp()
    elif question == Question.BY_TIMESTAMP:
        record = replica.files.timestamp_lookup(timestamp)
    else:
        return NOT_FOUND, NO_TIMESTAMP
    if record is None:
        return NOT_FOUND, NO_TIMESTAMP
    return ListOffsetsResponse(Error.NONE, record.offset, record.leader_epoch), record.timestamp


def _offset_answer(one: Message, answer: ListOffsetsResponse, timestamp: int) -> Message:
    return Message(
        partition_index=one.partition_index,
        error_code=answer.error.value,
        timestamp=timestamp,
        offset=answer.offset,
        leader_epoch=answer.leader_epoch,
    )


def offset_for_leader_epoch(core: Core, call: Call, now: int) -> list[Effect]:
    """Where leader epochs end. **Kafka:** `ReplicaManager.lastOffsetForLeaderEpoch`."""
    topics = []
    for topic in call.message.topics:
        answers = []
        for one in topic.partitions:
            replica, error = core.find(topic.topic, b"", one.partition, by_id=False)
            epoch, end = NO_EPOCH, UNKNOWN_OFFSET
            if replica is not None:
                request = OffsetForLeaderEpochRequest(Epoch(one.current_leader_epoch), Epoch(one.leader_epoch))
                response = core.run(handle_offset_for_leader_epoch, replica, request, now, now=now).reply
                error = response.error
                if error == Error.NONE:
                    epoch, end = response.end
            answers.append(Message(error_code=error.value, partition=one.partition, leader_epoch=epoch, end_offset=end))
        topics.append(Message(topic=topic.topic, partitions=answers))
    return [call.respond(topics=topics)]
