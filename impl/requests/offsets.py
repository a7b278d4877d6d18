"""Offsets by time and by epoch, and deleting records from the start of a log."""

import logging

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.broker.replica import Replica
from kspec.impl.records.compression import CompressionError
from kspec.impl.records.record import RecordError
from kspec.impl.storage import InvalidSegmentError, StorageError
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.named_partitions import check_named_once
from kspec.spec.broker.clients.offset_requests import UNREADABLE, OffsetQuestion, check_question, judge_timestamp
from kspec.spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from kspec.spec.broker.rules.reading import unreadable
from kspec.spec.messages.fetch import Isolation
from kspec.spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, OffsetSpec
from kspec.spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kspec.spec.values import NO_EPOCH, NO_TIMESTAMP, UNKNOWN_OFFSET, Epoch, Error, Instant

LOG = logging.getLogger("kspec.broker")

NAMED_AT_ONCE = 5_000
"""Partitions that are put in order before others are served."""

DEBUGGING_REPLICA = -2
"""Kafka: `ListOffsetsRequest.DEBUGGING_REPLICA_ID`."""


def list_offsets(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Starts or ends of logs, or records by timestamp. **Kafka:** `ReplicaManager.fetchOffset`."""
    return [InTurns(call, _list(core, call, now))]


def _list(core: BrokerCore, call: Call, now: Instant) -> Steps:
    asked: dict[str, dict[int, list[Message]]] = {}
    topics, number = [], 0
    for topic in call.message.topics:
        for one in topic.partitions:
            asked.setdefault(topic.name, {}).setdefault(one.partition_index, []).append(one)
            if ends_turn(number, NAMED_AT_ONCE):
                yield []
            number += 1
    number = 0
    for name, partitions in asked.items():
        answers = []
        for mentions in partitions.values():
            error = check_named_once(len(mentions))
            answers.append(
                _list_one(core, call, name, mentions[0], now)
                if error == Error.NONE
                else _offset_answer(mentions[0], ListOffsetsResponse(error), NO_TIMESTAMP)
            )
            if ends_turn(number):
                yield []
            number += 1
        topics.append(Message(name=name, partitions=answers))
    return [call.respond(topics=topics).long_if(number > TURN_SIZE)]


def _list_one(core: BrokerCore, call: Call, topic: str, one: Message, now: Instant) -> Message:
    replica, error = core.find(topic, b"", one.partition_index, by_id=False)
    question = judge_timestamp(one.timestamp, call.version)
    error = check_question(question, error)
    if replica is None or error != Error.NONE:
        return _offset_answer(one, ListOffsetsResponse(error), NO_TIMESTAMP)
    replica_id = call.message.replica_id
    isolation = Isolation.LOG_END
    if replica_id == -1:
        committed = call.message.isolation_level == 1
        isolation = Isolation.COMMITTED_TRANSACTIONS if committed else Isolation.HIGH_WATERMARK
    try:
        found, timestamp = _found(replica, question, one.timestamp)
    except (RecordError, CompressionError):
        return _offset_answer(one, UNREADABLE, NO_TIMESTAMP)
    except (OSError, StorageError) as error_of_files:
        LOG.error("%s-%d cannot be read: %s", *replica.place, error_of_files)
        damaged = isinstance(error_of_files, InvalidSegmentError)
        return _offset_answer(one, ListOffsetsResponse(unreadable(damaged)), NO_TIMESTAMP)
    wanted = {OffsetQuestion.LATEST: OffsetSpec.LATEST, OffsetQuestion.EARLIEST: OffsetSpec.EARLIEST}.get(
        question, OffsetSpec.BY_TIMESTAMP
    )
    request = ListOffsetsRequest(wanted, Epoch(one.current_leader_epoch), isolation, replica_id != DEBUGGING_REPLICA)
    answer = core.run(handle_list_offsets, replica, request, now.monotonic, found, now=now).reply
    assert isinstance(answer, ListOffsetsResponse)
    is_found = wanted == OffsetSpec.BY_TIMESTAMP and answer.error == Error.NONE and answer.offset != UNKNOWN_OFFSET
    return _offset_answer(one, answer, timestamp if is_found else NO_TIMESTAMP)


def _found(replica: Replica, question: OffsetQuestion, timestamp: int) -> tuple[ListOffsetsResponse, int]:
    """The record that the files hold for a timestamp, or the one with the largest."""
    if question == OffsetQuestion.LARGEST_TIMESTAMP:
        record = replica.files.max_timestamp()
    elif question == OffsetQuestion.BY_TIMESTAMP:
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


def offset_for_leader_epoch(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """Ends of leader epochs. **Kafka:** `ReplicaManager.lastOffsetForLeaderEpoch`."""
    return [InTurns(call, _ends(core, call, now))]


def _ends(core: BrokerCore, call: Call, now: Instant) -> Steps:
    topics, number = [], 0
    for topic in call.message.topics:
        answers = []
        for one in topic.partitions:
            replica, error = core.find(topic.topic, b"", one.partition, by_id=False)
            epoch, end = NO_EPOCH, UNKNOWN_OFFSET
            if replica is not None:
                request = OffsetForLeaderEpochRequest(Epoch(one.current_leader_epoch), Epoch(one.leader_epoch))
                response = core.run(handle_offset_for_leader_epoch, replica, request, now.monotonic, now=now).reply
                assert isinstance(response, OffsetForLeaderEpochResponse)
                error = response.error
                if error == Error.NONE:
                    epoch, end = response.end
            answers.append(Message(error_code=error.value, partition=one.partition, leader_epoch=epoch, end_offset=end))
            if ends_turn(number):
                yield []
            number += 1
        topics.append(Message(topic=topic.topic, partitions=answers))
    return [call.respond(topics=topics).long_if(number > TURN_SIZE)]
