"""Ids for idempotent producers."""

from impl.broker.calls import Call, Effect
from impl.broker.core import Core
from impl.requests.offsets import NO_TIMESTAMP
from impl.wire.values import Message
from spec.controller.topics.names import wrong_with_name
from spec.controller.topics.producer_ids import allocated, handle_allocate_producer_ids, handle_init_producer_id
from spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest
from spec.messages.producers.init_producer_id import InitProducerIdRequest
from spec.values import NO_BROKER_EPOCH, Error, ProducerEpoch, ProducerId


def init_producer_id(core: Core, call: Call, now: int) -> list[Effect]:
    """Give a producer an id. **Kafka:** `TransactionCoordinator.handleInitProducerId`.

    There is no coordinator of transactions: who asks with a transactional id is told that it may not.
    """
    message = call.message
    if message.transactional_id is not None:
        wrong = Error.INVALID_REQUEST if message.transactional_id == "" else Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        return [_answer(call, wrong, -1, -1)]
    if core.elsewhere is not None and core.producer_ids.following >= core.producer_ids.end:
        return core.elsewhere.producer_ids(lambda now: _give_id(core, call, now), now)
    return _give_id(core, call, now)


def _give_id(core: Core, call: Call, now: int) -> list[Effect]:
    message = call.message
    request = InitProducerIdRequest(ProducerId(message.producer_id), ProducerEpoch(message.producer_epoch))
    effects: list[Effect] = []
    if core.elsewhere is None and core.producer_ids.following >= core.producer_ids.end:
        registration = core.cluster.registration
        epoch = registration.broker_epoch if registration is not None else NO_BROKER_EPOCH
        asked = AllocateProducerIdsRequest(core.cluster.self_id, epoch)
        given, records = core.deciding.decide_topics(handle_allocate_producer_ids, core.topic_settings, asked, now)
        if given.error == Error.NONE:
            effects = core.change_metadata(records)
            core.producer_ids = allocated(given)
    step = core.step(handle_init_producer_id, None, core.producer_ids, request, now)
    core.producer_ids = step.state
    answer = step.effects[0].message
    return [*effects, _answer(call, answer.error, answer.producer_id, answer.producer_epoch)]


def _answer(call: Call, error: Error, producer_id: int, producer_epoch: int) -> Effect:
    return call.respond(error_code=error.value, producer_id=producer_id, producer_epoch=producer_epoch)


def describe_producers(core: Core, call: Call, now: int) -> list[Effect]:
    """The producers that a partition remembers. **Kafka:** `UnifiedLog.activeProducers`."""
    topics = []
    for topic in call.message.topics:
        answers = []
        for index in topic.partition_indexes:
            replica, error = core.find(topic.name, b"", index, by_id=False)
            if wrong_with_name(topic.name) is not None:
                error = Error.INVALID_TOPIC_EXCEPTION
            times = {} if replica is None else replica.files.producer_times()
            active = [
                Message(
                    producer_id=entry.producer_id,
                    producer_epoch=entry.producer_epoch,
                    last_sequence=entry.last_sequence,
                    last_timestamp=times.get(entry.producer_id, NO_TIMESTAMP),
                    coordinator_epoch=-1,
                    current_txn_start_offset=-1,
                )
                for entry in (replica.partition.producers if replica is not None else ())
            ]
            answers.append(Message(partition_index=index, error_code=error.value, active_producers=active))
        topics.append(Message(name=topic.name, partitions=answers))
    return [call.respond(topics=topics)]
