"""Leaders ask the coordinator of a transaction before they begin it in a log: AddPartitionsToTxn among brokers.

One request at a time is on its way to a coordinator; what is asked meanwhile goes with the next one, of all producers
together. The request is for the coordinator, whichever broker that is: this one's own is asked in the same way.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from kspec.impl.broker.calls import Ask, ChannelKey, Effect
from kspec.impl.broker.timers import Timers
from kspec.impl.config.broker import BrokerConfig
from kspec.impl.wire.values import Message
from kspec.spec.broker.leader.verification import asks_again
from kspec.spec.topics import TopicPartition
from kspec.spec.transactions.log.partition import replaces_waiting
from kspec.spec.values import (
    NO_LEADER,
    BrokerId,
    Error,
    Instant,
    MonotonicMs,
    ProducerEpoch,
    ProducerId,
    TransactionalId,
)

RETRIED_BACK_OFF, RETRIED_MOST = "add.partitions.to.txn.retry.backoff.ms", "add.partitions.to.txn.retry.backoff.max.ms"

Verdict: TypeAlias = dict[TopicPartition, Error]
"""The error of each partition that was asked about, as the coordinator says it."""

Verified: TypeAlias = Callable[[Verdict, Instant], list[Effect]]
"""The effects that follow once the coordinator has answered."""


class TransactionQuestion(NamedTuple):
    """The partitions that are to be in a producer's transaction.

    `adds`: they are added, as the producer has not done so itself (version 2); otherwise the coordinator says whether they
    are in it.
    """

    transactional_id: TransactionalId
    producer_id: ProducerId
    producer_epoch: ProducerEpoch
    partitions: tuple[TopicPartition, ...]
    adds: bool


@dataclass(slots=True)
class WaitingQuestion:
    """A question, who wants the answer, and until when it is asked again (ms)."""

    question: TransactionQuestion
    then: Verified
    until: MonotonicMs


@dataclass(slots=True)
class CoordinatorQueue:
    """The questions for one broker: those that wait, by transactional id, and whether some are on their way."""

    waiting: dict[TransactionalId, WaitingQuestion] = field(default_factory=dict)
    is_asking: bool = False


class TransactionVerifier:
    """The questions of this broker to transaction coordinators. Kafka: `AddPartitionsToTxnManager`."""

    def __init__(
        self, config: BrokerConfig, timers: Timers[Effect], coordinator_of: Callable[[TransactionalId], BrokerId]
    ) -> None:
        self._config = config
        self._timers = timers
        self._coordinator_of = coordinator_of
        self._queues: dict[int, CoordinatorQueue] = {}

    def ask(self, question: TransactionQuestion, then: Verified, now: Instant) -> list[Effect]:
        """Ask about partitions; the effects of `then` follow the answer."""
        until = now.after(self._config.number(RETRIED_MOST))
        return self._ask(WaitingQuestion(question, then, until), now)

    def _ask(self, one: WaitingQuestion, now: Instant) -> list[Effect]:
        question = one.question
        leader = self._coordinator_of(question.transactional_id)
        if leader == NO_LEADER:
            return one.then(dict.fromkeys(question.partitions, Error.COORDINATOR_NOT_AVAILABLE), now)
        queue = self._queues.setdefault(leader, CoordinatorQueue())
        known = queue.waiting.get(question.transactional_id)
        refused: list[Effect] = []
        if known is not None:
            asked = known.question
            same = asked.producer_id == question.producer_id
            error = replaces_waiting(same, asked.producer_epoch, question.producer_epoch)
            if error == Error.NONE:
                return one.then(dict.fromkeys(question.partitions, Error.INVALID_PRODUCER_EPOCH), now)
            refused = known.then(dict.fromkeys(asked.partitions, error), now)
        queue.waiting[question.transactional_id] = one
        return [*refused, *self._send(leader, queue)]

    def _send(self, leader: int, queue: CoordinatorQueue) -> list[Effect]:
        if queue.is_asking or not queue.waiting:
            return []
        asked, queue.waiting, queue.is_asking = list(queue.waiting.values()), {}, True
        message = Message(transactions=[_transaction(one.question) for one in asked])

        def take(answer: Message | None, now: Instant) -> list[Effect]:
            queue.is_asking = False
            effects = [effect for one in asked for effect in self._take(one, answer, now)]
            return [*effects, *self._send(leader, queue)]

        return [Ask(ChannelKey(leader, "transactions"), "AddPartitionsToTxn", message, take)]

    def _take(self, one: WaitingQuestion, answer: Message | None, now: Instant) -> list[Effect]:
        question = one.question
        verdict = _verdict(question, answer)
        later = now.after(self._config.number(RETRIED_BACK_OFF))
        if any(asks_again(error, question.adds, later, one.until) for error in verdict.values()):
            self._timers.at(later, lambda now: self._ask(one, now))
            return []
        return one.then(verdict, now)


def _transaction(question: TransactionQuestion) -> Message:
    topics: dict[str, list[int]] = {}
    for place in question.partitions:
        topics.setdefault(place.topic, []).append(place.partition)
    return Message(
        transactional_id=question.transactional_id,
        producer_id=question.producer_id,
        producer_epoch=question.producer_epoch,
        verify_only=not question.adds,
        topics=[Message(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def _verdict(question: TransactionQuestion, answer: Message | None) -> Verdict:
    """The error of each partition; what is not answered is undecided."""
    unanswered = Error.NETWORK_EXCEPTION
    if answer is not None and answer.error_code:
        unanswered = Error(answer.error_code)
    verdict = dict.fromkeys(question.partitions, unanswered)
    for result in _results(question, answer):
        for topic in result.topic_results:
            for part in topic.results_by_partition:
                place = TopicPartition(topic.name, part.partition_index)
                if place in verdict:
                    verdict[place] = Error(part.partition_error_code)
    return verdict


def _results(question: TransactionQuestion, answer: Message | None) -> Iterable[Message]:
    if answer is None or answer.error_code:
        return ()
    return (one for one in answer.results_by_transaction if one.transactional_id == question.transactional_id)
