"""Produce requests on their way: one answer for several partitions, each of which is answered by `spec` in its own time."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from impl.broker.calls import Call, Drop, Effect, NoResponse, Respond, Then
from impl.broker.replica import Replica
from impl.wire.values import Message
from spec.broker.clients.batches import answered_log_start
from spec.messages.produce import ACKS_NONE, ProduceResponse
from spec.values import Error


class Pending(Protocol):
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
    topics: list[tuple[dict[str, Any], range]] = field(default_factory=list)
    """Each topic of the request, by its name or id, with the places of its partitions."""
    append_times: dict[int, int] = field(default_factory=dict)
    """When the batch of a place was appended (ms), where that is the time of its records."""
    failed: bool = False

    def take(self, place: int, answer: Message) -> list[Effect]:
        """Note a partition's answer; the effects of the last one answer the request."""
        self.answers[place] = answer
        if place in self.append_times and answer.error_code == 0:
            answer.__dict__["log_append_time_ms"] = self.append_times[place]
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
        responses = [
            Message(**topic, partition_responses=[self.answers[place] for place in places]) for topic, places in self.topics
        ]
        return [Respond(self.call, Message(responses=responses))]


def refusal(index: int, error: Error) -> Message:
    """The answer for a partition that was not asked."""
    return Message(index=index, error_code=error.value, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1)


def answer_of(replica: Replica, response: ProduceResponse) -> Message:
    """A partition's answer in the words of the wire."""
    return Message(
        index=replica.place.partition,
        error_code=response.error.value,
        base_offset=response.base_offset,
        log_append_time_ms=-1,
        log_start_offset=answered_log_start(response.error, replica.partition.local.log.start_offset),
    )
