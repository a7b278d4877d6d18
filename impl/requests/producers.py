"""Ids for idempotent producers; those of producers of transactions are their coordinator's."""

from kspec.impl.broker.calls import TURN_SIZE, Call, Effect, InTurns, Steps, ends_turn
from kspec.impl.broker.core import BrokerCore
from kspec.impl.requests.transactions.coordinator import Transactions
from kspec.impl.requests.transactions.requests import init_transactional_producer
from kspec.impl.wire.values import Message
from kspec.spec.broker.clients.named_partitions import check_named_topic
from kspec.spec.controller.topics.names import wrong_with_name
from kspec.spec.controller.topics.producer_ids import handle_init_producer_id
from kspec.spec.messages.producers.init_producer_id import InitProducerIdRequest
from kspec.spec.values import NO_TIMESTAMP, Error, Instant, ProducerEpoch, ProducerId


def init_producer_id(transactions: Transactions, call: Call, now: Instant) -> list[Effect]:
    """Give a producer an id. **Kafka:** `TransactionCoordinator.handleInitProducerId`."""
    core = transactions.core
    if call.message.transactional_id is not None:
        return init_transactional_producer(transactions, call, now)
    if core.producer_ids.following >= core.producer_ids.end:
        return core.controller.producer_ids(lambda now: _give_id(core, call, now), now)
    return _give_id(core, call, now)


def _give_id(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    message = call.message
    request = InitProducerIdRequest(ProducerId(message.producer_id), ProducerEpoch(message.producer_epoch))
    step = core.step(handle_init_producer_id, None, core.producer_ids, request, now.monotonic)
    core.producer_ids = step.state
    answer = step.effects[0].message
    return [_answer(call, answer.error, answer.producer_id, answer.producer_epoch)]


def _answer(call: Call, error: Error, producer_id: int, producer_epoch: int) -> Effect:
    return call.respond(error_code=error.value, producer_id=producer_id, producer_epoch=producer_epoch)


def describe_producers(core: BrokerCore, call: Call, now: Instant) -> list[Effect]:
    """The producers that a partition remembers. **Kafka:** `UnifiedLog.activeProducers`."""
    return [InTurns(call, _describe(core, call))]


def _describe(core: BrokerCore, call: Call) -> Steps:
    topics, number = [], 0
    for topic in call.message.topics:
        answers = []
        for index in topic.partition_indexes:
            replica, error = core.find(topic.name, b"", index, by_id=False)
            error = check_named_topic(wrong_with_name(topic.name) is None, error)
            times = {} if replica is None else replica.files.states.times()
            active = [
                Message(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.producer_epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=times.get(entry.producer_id, NO_TIMESTAMP),
                    coordinator_epoch=entry.coordinator_epoch,
                    current_txn_start_offset=entry.transaction_start,
                )
                for entry in (replica.partition.producers if replica is not None else ())
            ]
            answers.append(Message(partition_index=index, error_code=error.value, active_producers=active))
            if ends_turn(number):
                yield []
            number += 1
        topics.append(Message(name=topic.name, partitions=answers))
    return [call.respond(topics=topics).long_if(number > TURN_SIZE)]
