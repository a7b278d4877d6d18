"""Handling of a producer's batch by a leader."""

from kspec.spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, Effect, Persist
from kspec.spec.broker.partition import (
    Broker,
    Handled,
    Partition,
    WaitingProduce,
    advance,
    complete_waiting,
    leads,
    min_isr_of,
    role_of,
)
from kspec.spec.broker.rules.produce import AppendedRecords, check_produce
from kspec.spec.log.algebra import LogT
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import ProducerBatch, entry_of, producer_batch, remember
from kspec.spec.messages.produce import ACKS_ALL, ACKS_NONE, ProduceRequest, ProduceResponse
from kspec.spec.step import Step
from kspec.spec.values import NO_PRODUCER_ID, Error, MonotonicMs, Offset


def handle_produce(broker: Broker, partition: Partition[LogT], request: ProduceRequest, now: MonotonicMs) -> Handled[LogT]:
    """Append a producer's batch, and answer at once or when it is committed.

    The leader checks the acks first, then whether it leads, then the size of the ISR, then whether the batch is a duplicate
    of one in the log, then its producer epoch and sequence. A duplicate gets the same answer as the first copy.

    Errors: `INVALID_REQUIRED_ACKS`, `NOT_LEADER_OR_FOLLOWER`, `NOT_ENOUGH_REPLICAS`, `INVALID_PRODUCER_EPOCH`,
    `OUT_OF_ORDER_SEQUENCE_NUMBER`; later `NOT_ENOUGH_REPLICAS_AFTER_APPEND`, `REQUEST_TIMED_OUT`.

    **Kafka:** `ReplicaManager.appendRecords`, `Partition.appendRecordsToLeader`, `UnifiedLog.append`. **Leaves out:**
    everything about a batch but its producer, sequence and number of records; transactions.
    """
    error = check_produce(role_of(partition), request.acks, min_isr_of(broker, partition))
    if error != Error.INVALID_REQUIRED_ACKS and not leads(broker, partition):
        error = Error.NOT_LEADER_OR_FOLLOWER
    if error != Error.NONE:
        return Step(partition, (_refusal(request, error),))
    batch = producer_batch(request.batch, partition.local.log.end_offset)
    entry = entry_of(partition.producers, batch.producer_id)
    known = broker.protocol.finds_duplicate(entry, batch) if batch.producer_id > NO_PRODUCER_ID else None
    if known is not None:
        return _acknowledge(broker, partition, request, known, ())
    if batch.producer_id > NO_PRODUCER_ID:
        error = broker.protocol.check_sequences(entry, batch)
    if error != Error.NONE:
        return Step(partition, (_refusal(request, error),))
    batches = (request.batch.in_epoch(partition.leader_epoch),)
    appended = partition._replace(
        local=LocalLog(partition.local.log.append(batches), partition.local.high_watermark),
        producers=remember(partition.producers, batch),
    )
    stored = Persist(BatchesAppended(batch.base_offset, batches))
    return _acknowledge(broker, advance(broker, appended, now), request, batch, (stored,))


def _refusal(request: ProduceRequest, error: Error) -> Effect:
    if request.acks == ACKS_NONE:
        return CloseConnection(request.request)
    return AnswerProducer(request.request, ProduceResponse(error))


def _acknowledge(
    broker: Broker, partition: Partition[LogT], request: ProduceRequest, batch: ProducerBatch, stored: tuple[Effect, ...]
) -> Handled[LogT]:
    """Answer as the acks require, and answer the waiting requests whose records are committed now.

    **Kafka:** `ReplicaManager.maybeAddDelayedProduce`.
    """
    if request.acks == ACKS_ALL:
        waiting = AppendedRecords(batch.base_offset, Offset(batch.last_offset + 1), request.deadline)
        partition = partition._replace(waiting=(*partition.waiting, WaitingProduce(request.request, waiting)))
    elif request.acks != ACKS_NONE:
        stored = (*stored, AnswerProducer(request.request, ProduceResponse(Error.NONE, batch.base_offset)))
    completed = complete_waiting(broker, partition)
    return Step(completed.state, stored + completed.effects)
