"""Handling of a producer's batch by a leader."""

from kspec.spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, Effect, Persist
from kspec.spec.broker.leader.verification import transaction_rules
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
from kspec.spec.transactions.log.partition import (
    CheckedBatch,
    LoggedBatch,
    LoggedMarker,
    PartitionTransactions,
    append_batch,
    append_marker,
    logged,
    verification_of,
)
from kspec.spec.transactions.log.reading import on_high_watermark
from kspec.spec.values import NO_PRODUCER_ID, NO_SEQUENCE, UNKNOWN_OFFSET, Error, MonotonicMs, Offset


def handle_produce(broker: Broker, partition: Partition[LogT], request: ProduceRequest, now: MonotonicMs) -> Handled[LogT]:
    """Append a producer's batch, or a transaction coordinator's marker, and answer at once or when it is committed.

    The leader checks the acks first, then whether it leads, then the size of the ISR, then whether the batch is a duplicate
    of one in the log, then that a transaction was verified, then its producer epoch and sequence. A duplicate gets the same
    answer as the first copy.

    Errors: `INVALID_REQUIRED_ACKS`, `NOT_LEADER_OR_FOLLOWER`, `NOT_ENOUGH_REPLICAS`, `INVALID_PRODUCER_EPOCH`,
    `INVALID_TXN_STATE`, `OUT_OF_ORDER_SEQUENCE_NUMBER`; of a marker `TRANSACTION_COORDINATOR_FENCED`; later
    `NOT_ENOUGH_REPLICAS_AFTER_APPEND`, `REQUEST_TIMED_OUT`.

    **Kafka:** `ReplicaManager.appendRecords`, `Partition.appendRecordsToLeader`, `UnifiedLog.append`. **Leaves out:**
    everything about a batch but its producer, sequence, transaction and number of records.
    """
    error = check_produce(role_of(partition), request.acks, min_isr_of(broker, partition))
    if error != Error.INVALID_REQUIRED_ACKS and not leads(broker, partition):
        error = Error.NOT_LEADER_OR_FOLLOWER
    if error != Error.NONE:
        return Step(partition, (_refusal(request, error),))
    batch = producer_batch(request.batch, partition.local.log.end_offset)
    checked = _checked(broker, partition, request, batch)
    if checked.duplicate is not None:
        return _acknowledge(broker, partition, request, checked.duplicate, ())
    if checked.error != Error.NONE:
        return Step(partition, (_refusal(request, checked.error),))
    batches = (request.batch.in_epoch(partition.leader_epoch),)
    appended = partition._replace(
        local=LocalLog(partition.local.log.append(batches), partition.local.high_watermark), transactions=checked.state
    )
    stored = Persist(BatchesAppended(batch.base_offset, batches))
    return _acknowledge(broker, advance(broker, appended, now), request, batch, (stored,))


def _checked(broker: Broker, partition: Partition[LogT], request: ProduceRequest, batch: ProducerBatch) -> CheckedBatch:
    """Whether the log takes a batch, and what is remembered then.

    **Kafka:** `UnifiedLog.analyzeAndValidateProducerState`.
    """
    state, rules = partition.transactions, transaction_rules(broker)
    if batch.producer_id <= NO_PRODUCER_ID:
        return CheckedBatch(state)
    entry = logged(request.batch, batch.base_offset)
    match entry:
        case LoggedMarker():
            known = on_high_watermark(state, partition.local.high_watermark)
            return append_marker(rules, known, entry, request.transaction_version)
        case _ if _concerns_transaction(state, entry):
            return append_batch(rules, state, entry, request.guard, batch.first_sequence != NO_SEQUENCE)
        case _:
            return _checked_alone(broker, state, batch)


def _concerns_transaction(state: PartitionTransactions, appended: LoggedBatch) -> bool:
    """Whether a batch is of a transaction, or its producer has one, or is about to."""
    producer_id = appended.batch.producer_id
    is_open = entry_of(state.producers, producer_id).transaction_start != UNKNOWN_OFFSET
    return appended.is_transactional or is_open or verification_of(state, producer_id) is not None


def _checked_alone(broker: Broker, state: PartitionTransactions, batch: ProducerBatch) -> CheckedBatch:
    """Whether the log takes a batch of an idempotent producer that has no transaction."""
    entry = entry_of(state.producers, batch.producer_id)
    known = broker.protocol.finds_duplicate(entry, batch)
    error = broker.protocol.check_sequences(entry, batch) if known is None else Error.NONE
    if known is not None or error != Error.NONE:
        return CheckedBatch(state, error, known)
    return CheckedBatch(state._replace(producers=remember(state.producers, batch)))


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
