"""Produce requests on their way: one answer for several partitions, each of which is answered by `spec` in its own time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from kspec.impl.broker.calls import Call, Drop, Effect, NoResponse, Respond, Then
from kspec.impl.broker.replica import Replica
from kspec.impl.records.plain import wrapped
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.batches import BatchLimits, ReceivedBatch, answered_log_start
from kspec.spec.broker.clients.leader_hints import tells_leader_to_producer
from kspec.spec.broker.clients.records import RecordFault
from kspec.spec.log.found_records import FoundRecord
from kspec.spec.messages.produce import ACKS_NONE, ProduceResponse
from kspec.spec.values import BrokerId, Epoch, Error


class CommitWaiter(Protocol):
    """Something that waits until a batch is committed or refused."""

    def take(self, place: int, answer: Message) -> list[Effect]:
        """It is. Several partitions may be waited for, each in its place."""

    def fail(self, place: int, answer: Message) -> None:
        """It was taken, and then could not be stored."""


@dataclass(slots=True)
class PendingProduce:
    """A produce request: the answers of its partitions so far, in the order in which they were named."""

    call: Call
    acks: int
    missing: int
    answers: dict[int, Message] = field(default_factory=dict)
    """Each partition's answer by its place in the request."""
    topics: dict[str | bytes, list[int]] = field(default_factory=dict)
    """Each topic of the request, by its name or id, with the places of its partitions."""
    refused: dict[int, Message] = field(default_factory=dict)
    """Answers of places that are refused, whatever else comes of them."""
    append_times: dict[int, int] = field(default_factory=dict)
    """The append time of the batch of a place (ms), where that is its records' time; of a duplicate its largest time."""
    failed: bool = False
    leader_of: Callable[[str | bytes, int], tuple[BrokerId, Epoch]] | None = None
    """The leader of a partition of a topic, by name or id: for producers that have asked another broker."""
    endpoints_of: Callable[[Iterable[BrokerId]], list[Message]] | None = None
    """The endpoints of brokers."""

    def refuse(self, place: int, answer: Message) -> None:
        """A partition is named more than once, and one of its batches is refused: that is its answer."""
        self.refused[place] = answer
        self.failed = True

    def take(self, place: int, answer: Message) -> list[Effect]:
        """Note a partition's answer; the effects of the last one answer the request."""
        self.answers[place] = answer
        self.failed = self.failed or answer.error_code != 0
        self.missing -= 1
        return [Then(self.finish)] if self.missing == 0 else []

    def fail(self, place: int, answer: Message) -> None:
        """Replace a partition's answer: its batch was taken, and then could not be stored."""
        self.answers[place] = answer
        self.failed = True

    def finish(self) -> list[Effect]:
        """Answer the request. With acks=0 there is no answer, and after an error the connection is closed."""
        if self.acks == ACKS_NONE:
            return [Drop(self.call)] if self.failed else [NoResponse(self.call)]
        named = "topic_id" if self.call.version >= 13 else "name"
        answers = self.answers | self.refused
        for place, time in self.append_times.items():
            if answers[place].error_code == 0:
                answers[place].__dict__["log_append_time_ms"] = time
        leaders = self._tell_leaders(answers) if self.failed else set()
        responses = [
            Message(**{named: topic, "partition_responses": [answers[place] for place in places]})
            for topic, places in self.topics.items()
        ]
        message = Message(responses=responses)
        if leaders and self.endpoints_of is not None:
            message.__dict__["node_endpoints"] = self.endpoints_of(leaders)
        return [Respond(self.call, message)]

    def _tell_leaders(self, answers: dict[int, Message]) -> set[BrokerId]:
        """Say who leads the partitions that this broker does not lead; who that is."""
        found: set[BrokerId] = set()
        for topic, places in self.topics.items():
            for answer in (answers[place] for place in places):
                if self.leader_of is not None and tells_leader_to_producer(Error(answer.error_code), self.call.version):
                    leader, epoch = self.leader_of(topic, answer.index)
                    answer.__dict__["current_leader"] = Message(leader_id=leader, leader_epoch=epoch)
                    found.add(leader)
        return found


class PendingBatch(int):
    """A batch that was handed to `spec`: the number by which `spec` answers it, and who waits for that."""

    replica: Replica
    waiter: CommitWaiter
    place: int
    """Its place among those that the waiter waits for."""
    is_answered: bool

    def __new__(cls, number: int, replica: Replica, waiter: CommitWaiter, place: int) -> "PendingBatch":
        """The batch with a number that no other has."""
        made = super().__new__(cls, number)
        made.replica, made.waiter, made.place, made.is_answered = replica, waiter, place, False
        return made

    def answer(self, response: ProduceResponse) -> list[Effect]:
        """Hand on the answer of `spec`, of which there is one."""
        assert not self.is_answered, f"batch {self:d} is answered twice"
        self.is_answered = True
        return self.waiter.take(self.place, answer_of(self.replica, response))

    def fail(self) -> None:
        """Say that the files could not be written."""
        self.waiter.fail(self.place, refusal(self.replica.place.partition, Error.KAFKA_STORAGE_ERROR))


class OwnBatch:
    """A batch of this broker's own, which nobody has sent."""

    def __init__(self) -> None:
        self.error = Error.NONE
        """The error with which the log has refused the batch."""

    def take(self, place: int, answer: Message) -> list[Effect]:
        """The log has it, or refuses it."""
        self.error = Error(answer.error_code)
        return []

    def fail(self, place: int, answer: Message) -> None:
        """The files could not be written, so the partition is offline: that is seen at the replica."""


def refusal(index: int, error: Error, words: str | None = None) -> Message:
    """The answer for a partition that was not asked, and what is wrong, if that can be said."""
    return Message(
        index=index,
        error_code=error.value,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=words,
    )


def answer_of(replica: Replica, response: ProduceResponse) -> Message:
    """A partition's answer in the words of the wire."""
    return Message(
        index=replica.place.partition,
        error_code=response.error.value,
        base_offset=response.base_offset,
        log_append_time_ms=-1,
        log_start_offset=answered_log_start(response.error, replica.partition.local.log.start_offset),
    )


def refusal_of_records(
    replica: Replica,
    error: Error,
    batch: ReceivedBatch,
    limits: BatchLimits,
    now: int,
    refused: tuple[tuple[FoundRecord, RecordFault], ...],
) -> Message:
    """The answer for a batch in which records are refused: each of them by its place, and why, in Kafka's words."""
    answer = answer_of(replica, ProduceResponse(error))
    no_key = _without_key(replica)
    words = [
        (record.place, no_key if fault == RecordFault.NO_KEY else _words_of(batch, limits, now, record, fault))
        for record, fault in refused
    ]
    shown = ", ".join(f"RecordError(batchIndex={place}, message='{said}')" for place, said in words[:3])
    if error == Error.INVALID_TIMESTAMP:
        summary = "One or more records have been rejected due to invalid timestamp"
    else:
        summary = (
            f"One or more records have been rejected due to {len(words)} record errors in total, "
            f"and only showing the first three errors at most: [{shown}]"
        )
    each = [Message(batch_index=place, batch_index_error_message=said) for place, said in words]
    answer.__dict__.update(record_errors=each, error_message=summary)
    return answer


def _without_key(replica: Replica) -> str:
    place = f"{replica.place.topic}-{replica.place.partition}"
    return f"Compacted topic cannot accept message without key in topic partition {place}"


def _words_of(batch: ReceivedBatch, limits: BatchLimits, now: int, record: FoundRecord, fault: RecordFault) -> str:
    timestamp = batch.max_timestamp if batch.stamped else record.timestamp
    if fault == RecordFault.TIMESTAMP_OUT_OF_RANGE:
        return (
            f"Timestamp {timestamp} of message with offset {record.offset} is out of range. "
            f"The timestamp should be within [{now - limits.before_max}, {wrapped(now + limits.after_max)}]"
        )
    return (
        f"Invalid timestamp type in message at offset {record.offset} with timestamp {timestamp}. "
        "Producer should not set timestamp type to LogAppendTime."
    )
