"""A batch that waits for the answer of `spec` is itself the number that `spec` answers."""

from types import SimpleNamespace
from typing import cast

import pytest

from kspec.impl.broker.calls import Effect, Then
from kspec.impl.broker.pending import PendingBatch
from kspec.impl.broker.replica import Replica
from kspec.impl.trace.values import encode
from kspec.impl.wire.values import Message
from kspec.spec.broker.effects import AnswerProducer
from kspec.spec.messages.produce import ProduceResponse
from kspec.spec.topics import TopicPartition
from kspec.spec.values import Error, Offset


class RecordingWaiter:
    """A waiter that keeps what it is told."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []
        self.failed: list[tuple[int, int, int]] = []

    def take(self, place: int, answer: Message) -> list[Effect]:
        """Keep an answer."""
        self.taken.append((place, answer.index, answer.error_code))
        return [Then(list)]

    def fail(self, place: int, answer: Message) -> None:
        """Keep a failure."""
        self.failed.append((place, answer.index, answer.error_code))


def pending_batch(waiter: RecordingWaiter) -> PendingBatch:
    """The batch with number 17, for partition 5, at place 3 of its waiter."""
    local = SimpleNamespace(log=SimpleNamespace(start_offset=Offset(0)))
    replica = SimpleNamespace(place=TopicPartition("topic", 5), partition=SimpleNamespace(local=local))
    return PendingBatch(17, cast(Replica, replica), waiter, 3)


def test_an_answer_reaches_its_waiter_without_a_table() -> None:
    waiter = RecordingWaiter()
    effect = AnswerProducer(pending_batch(waiter), ProduceResponse(Error.NONE, Offset(40)))
    assert isinstance(effect.request, PendingBatch)
    assert effect.request.answer(effect.response) == [Then(list)]
    assert (waiter.taken, waiter.failed) == ([(3, 5, 0)], [])


def test_files_that_cannot_be_written_reach_the_same_waiter() -> None:
    waiter = RecordingWaiter()
    pending_batch(waiter).fail()
    assert (waiter.taken, waiter.failed) == ([], [(3, 5, Error.KAFKA_STORAGE_ERROR.value)])


def test_a_second_answer_is_a_defect() -> None:
    pending = pending_batch(RecordingWaiter())
    pending.answer(ProduceResponse(Error.NONE))
    with pytest.raises(AssertionError, match="batch 17 is answered twice"):
        pending.answer(ProduceResponse(Error.NONE))


def test_a_trace_has_the_number() -> None:
    """So a trace can be replayed where nobody waits."""
    effect = AnswerProducer(pending_batch(RecordingWaiter()), ProduceResponse(Error.NONE))
    recorded = AnswerProducer(17, ProduceResponse(Error.NONE))
    assert effect == recorded
    assert encode(effect, ()) == encode(recorded, ())
