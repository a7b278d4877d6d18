"""Ids for idempotent producers."""

from typing import TYPE_CHECKING

from impl.broker.calls import Call, Effect
from impl.wire.values import Message
from spec.values import Error

if TYPE_CHECKING:
    from impl.broker.core import Core


def init_producer_id(core: "Core", call: Call, now: int) -> list[Effect]:
    """A new producer id with epoch 0. **Kafka:** `TransactionCoordinator.handleInitProducerId`.

    A producer that asks for another epoch of its id gets a new id: Kafka does so for producers without transactions.
    """
    request = call.message
    if request.transactional_id == "":
        return [_failed(call, Error.INVALID_REQUEST)]
    if request.transactional_id is not None:
        return [_failed(call, Error.COORDINATOR_NOT_AVAILABLE)]
    effects, producer_id = core.next_producer_id(now)
    return [*effects, call.respond(error_code=0, producer_id=producer_id, producer_epoch=0)]


def _failed(call: Call, error: Error) -> Effect:
    return call.respond(error_code=error.value, producer_id=-1, producer_epoch=-1)


def describe_producers(core: "Core", call: Call, now: int) -> list[Effect]:
    """The producers that a partition remembers. **Kafka:** `UnifiedLog.activeProducers`."""
    topics = []
    for topic in call.message.topics:
        answers = []
        for index in topic.partition_indexes:
            replica, error = core.find(topic.name, b"", index, by_id=False)
            active = []
            for entry in replica.partition.producers if replica is not None else ():
                active.append(
                    Message(
                        producer_id=entry.producer_id,
                        producer_epoch=entry.producer_epoch,
                        last_sequence=entry.last_sequence,
                        last_timestamp=-1,
                        coordinator_epoch=-1,
                        current_txn_start_offset=-1,
                    )
                )
            answers.append(Message(partition_index=index, error_code=error.value, active_producers=active))
        topics.append(Message(name=topic.name, partitions=answers))
    return [call.respond(topics=topics)]
