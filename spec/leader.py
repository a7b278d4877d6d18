"""What a leader does with each message and each tick: produce, fetch, ISR changes, questions about epochs and offsets.

A handler first lets the rules of its release decide, then says in its effects what has to be stored and sent, in order.
"""

from typing import NamedTuple

from spec.alter_partition import (
    AfterError,
    PartitionIsr,
    apply_partition,
    is_pending,
    isr_with,
    isr_without,
    may_take_granted,
    nothing_pending,
    roll_back,
)
from spec.controller_messages import AlterPartitionRequest, AlterPartitionResponse
from spec.followers import after_fetch, follower_of, is_caught_up, out_of_sync, with_follower
from spec.isr_requests import members
from spec.leader_fetch import (
    Divergence,
    FetchAnswer,
    PartitionFetch,
    check_assigned,
    is_diverging,
    is_follower,
    isolation_of,
    needs_leader,
    visible_end,
)
from spec.list_offsets import (
    NOT_FOUND,
    Deletion,
    ListedOffset,
    ListOffsetsRequest,
    Wanted,
    check_deletion,
    deletion_offset,
    latest_offset,
    low_watermark,
    offset_found,
)
from spec.local_log import LogT, move_start, read, retention_offset
from spec.partition import (
    AnswerProducer,
    Broker,
    CloseConnection,
    Effect,
    EpochEndRequest,
    Handled,
    LogStartMoved,
    Partition,
    Persist,
    RecordsAppended,
    WaitingProduce,
    advance,
    complete_waiting,
    is_under_min_isr,
    last_stable_offset_of,
    leads,
    min_isr_of,
    role_of,
)
from spec.produce import ACKS_ALL, ACKS_NONE, NO_DEADLINE, AppendedRecords, ProduceResponse, check_produce
from spec.producer_state import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    ProducerBatch,
    ProducerEpoch,
    ProducerId,
    duplicate_of,
    entry_of,
    remember,
)
from spec.step import Reply, Step
from spec.truncation import handle_offset_for_leader_epoch
from spec.values import BrokerId, EpochEndOffsetResponse, Error, Offset, Record

# ---- produce


class ProduceRequest(NamedTuple):
    """Records for one partition, as one batch, by the number that its connection gave the request.

    `deadline`: when a producer with acks=all is told that it took too long (milliseconds). Of a producer that is not
    idempotent, `producer_id` is `NO_PRODUCER_ID`. Kafka: `ProduceRequestData.PartitionProduceData`.
    """

    request: int
    acks: int
    values: tuple[int, ...]
    deadline: int = NO_DEADLINE
    producer_id: ProducerId = NO_PRODUCER_ID
    producer_epoch: ProducerEpoch = NO_PRODUCER_EPOCH
    first_sequence: int = NO_SEQUENCE


def handle_produce(broker: Broker, partition: Partition[LogT], request: ProduceRequest, now: int) -> Handled[LogT]:
    """Append a producer's records and answer, or let it wait until they are committed.

    The acks are looked at first, then whether this broker leads, then the size of the ISR, then whether the batch is a
    duplicate of one in the log, then its producer epoch and sequence. A duplicate is answered as its first try.

    Errors: `INVALID_REQUIRED_ACKS`, `NOT_LEADER_OR_FOLLOWER`, `NOT_ENOUGH_REPLICAS`, `INVALID_PRODUCER_EPOCH`,
    `OUT_OF_ORDER_SEQUENCE_NUMBER`; later `NOT_ENOUGH_REPLICAS_AFTER_APPEND`, `REQUEST_TIMED_OUT`.

    **Kafka:** `ReplicaManager.appendRecords`, `Partition.appendRecordsToLeader`, `UnifiedLog.append`. **Leaves out:**
    everything about a batch but its producer, sequence and size; transactions.
    """
    error = check_produce(role_of(partition), request.acks, min_isr_of(broker, partition))
    if error != Error.INVALID_REQUIRED_ACKS and not leads(broker, partition):
        error = Error.NOT_LEADER_OR_FOLLOWER
    if error != Error.NONE:
        return Step(partition, (_refusal(request, error),))
    batch = _batch(request, partition.local.log.end_offset)
    entry = entry_of(partition.producers, batch.producer_id)
    known = duplicate_of(entry, batch) if batch.producer_id != NO_PRODUCER_ID else None
    if known is not None:
        return _acknowledge(broker, partition, request, known, ())
    if batch.producer_id != NO_PRODUCER_ID:
        error = broker.protocol.check_sequences(entry, batch)
    if error != Error.NONE:
        return Step(partition, (_refusal(request, error),))
    records = tuple(Record(value, partition.leader_epoch) for value in request.values)
    appended = partition._replace(
        local=partition.local._replace(log=partition.local.log.append(records)),
        producers=remember(partition.producers, batch),
    )
    stored = Persist(RecordsAppended(batch.base_offset, records))
    return _acknowledge(broker, advance(broker, appended, now), request, batch, (stored,))


def _batch(request: ProduceRequest, base_offset: Offset) -> ProducerBatch:
    return ProducerBatch(
        request.producer_id, request.producer_epoch, request.first_sequence, len(request.values), base_offset
    )


def _refusal(request: ProduceRequest, error: Error) -> Effect:
    if request.acks == ACKS_NONE:
        return CloseConnection(request.request)
    return AnswerProducer(request.request, ProduceResponse(error))


def _acknowledge(
    broker: Broker, partition: Partition[LogT], request: ProduceRequest, batch: ProducerBatch, stored: tuple[Effect, ...]
) -> Handled[LogT]:
    """Answer as the acks ask for, and whoever waits for what may be committed by now.

    **Kafka:** `ReplicaManager.maybeAddDelayedProduce`.
    """
    if request.acks == ACKS_ALL:
        waiting = AppendedRecords(batch.base_offset, Offset(batch.last_offset + 1), request.deadline)
        partition = partition._replace(waiting=(*partition.waiting, WaitingProduce(request.request, waiting)))
    elif request.acks != ACKS_NONE:
        stored = (*stored, AnswerProducer(request.request, ProduceResponse(Error.NONE, batch.base_offset)))
    completed = complete_waiting(broker, partition)
    return Step(completed.state, stored + completed.effects)


# ---- fetch


def handle_fetch(broker: Broker, partition: Partition[LogT], request: PartitionFetch, now: int) -> Handled[LogT]:
    """Answer a fetch by a follower or a consumer; a leader learns from a follower's what the follower holds.

    Errors: those of the release's fence, `NOT_LEADER_OR_FOLLOWER`, `UNKNOWN_LEADER_EPOCH`, `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `ReplicaManager.readFromLog`, `Partition.fetchRecords`. **Leaves out:** that a fetch may wait for more to
    read; whoever makes it wait calls this again, with a `CONSUMER`'s rights, see `read_partition`.
    """
    answer = read_partition(broker, partition, request)
    counts = is_follower(request) and answer.error == Error.NONE and broker.protocol.counts_fetch(is_diverging(answer))
    if not counts:
        return Step(partition, (Reply(answer),))
    error = broker.protocol.check_run(broker.brokers, request.replica, request.broker_epoch)
    if error != Error.NONE:
        return Step(partition, (Reply(FetchAnswer(error)),))
    noted = note_fetch(partition, request, now)
    after = after_noted_fetch(broker, partition, noted, request.replica, now)
    return Step(after.state, (*after.effects, Reply(answer)))


def read_partition(broker: Broker, partition: Partition[LogT], request: PartitionFetch) -> FetchAnswer:
    """The answer to a fetch. Everything in it is as it was before the fetch changes anything.

    **Kafka:** `Partition.readRecords`.
    """
    local, fetch = partition.local, request.fetch
    error = broker.protocol.serves(broker.self_id, role_of(partition), fetch.current_leader_epoch, needs_leader(request))
    if error == Error.NONE:
        error = check_assigned(partition.followers, request)
    parted = broker.protocol.divergence(local.log, fetch) if error == Error.NONE else Divergence(error)
    if parted.error != Error.NONE:
        return FetchAnswer(parted.error)
    last_stable = last_stable_offset_of(partition)
    end = visible_end(isolation_of(request), local.log.end_offset, local.high_watermark, last_stable)
    answer = FetchAnswer(
        Error.NONE, fetch.fetch_offset, (), local.high_watermark, local.log.start_offset, last_stable, parted.end
    )
    if is_diverging(answer):
        return answer
    found = read(local.log, fetch.fetch_offset, end, request.max_records)
    return answer._replace(records=found.records) if found.error == Error.NONE else FetchAnswer(found.error)


def note_fetch(partition: Partition[LogT], request: PartitionFetch, now: int) -> Partition[LogT]:
    """The leader's state with what a fetch tells of its follower. **Kafka:** `Replica.updateFetchStateOrThrow`."""
    before = follower_of(partition.followers, request.replica)
    assert before is not None, f"replica {request.replica} is not assigned, so its fetch is not answered"
    offset, leader_end = request.fetch.fetch_offset, partition.local.log.end_offset
    state = after_fetch(before, now, offset, request.start_offset, leader_end, request.broker_epoch)
    return partition._replace(followers=with_follower(partition.followers, request.replica, state))


def after_noted_fetch(
    broker: Broker, before: Partition[LogT], partition: Partition[LogT], replica: BrokerId, now: int
) -> Handled[LogT]:
    """First the ISR, then the high watermark if the follower's end is another, then whoever waits for either.

    **Kafka:** `Partition.updateFollowerFetchState`.
    """
    joining = consider_joining(broker, partition, replica, now)
    old, new = follower_of(before.followers, replica), follower_of(partition.followers, replica)
    moved = old is not None and new is not None and old.end_offset != new.end_offset
    completed = complete_waiting(broker, advance(broker, joining.state, now) if moved else joining.state)
    return Step(completed.state, joining.effects + completed.effects)


# ---- ISR


def may_join(broker: Broker, partition: Partition[LogT], replica: BrokerId, now: int) -> bool:
    """Whether a leader asks to admit a follower that has just fetched.

    **Kafka:** `Partition.needsExpandIsr`, `canAddReplicaToIsr`, `isFollowerInSync`.
    """
    state, local = follower_of(partition.followers, replica), partition.local
    if state is None or replica in partition.isr.isr or not nothing_pending(partition.isr):
        return False
    caught_up = is_caught_up(state, local.log.end_offset, now, broker.settings.max_lag)
    return (
        broker.protocol.is_eligible(broker.brokers, replica, state.broker_epoch)
        and broker.protocol.has_reached(state, local.high_watermark, partition.epoch_start)
        and broker.protocol.joins(caught_up, is_under_min_isr(broker, partition))
    )


def consider_joining(broker: Broker, partition: Partition[LogT], replica: BrokerId, now: int) -> Handled[LogT]:
    """Ask to admit a follower to the ISR, if it may join. **Kafka:** `Partition.maybeExpandIsr`."""
    if not may_join(broker, partition, replica, now):
        return Step(partition)
    return _propose(broker, partition, isr_with(partition.isr, replica))


def consider_shrinking(broker: Broker, partition: Partition[LogT], now: int) -> Handled[LogT]:
    """Ask to drop those who have fallen behind; called every half of `max_lag`. **Kafka:** `Partition.maybeShrinkIsr`."""
    if not leads(broker, partition) or not nothing_pending(partition.isr):
        return Step(partition)
    end_offset, max_lag = partition.local.log.end_offset, broker.settings.max_lag
    leaving = out_of_sync(partition.isr.isr, broker.self_id, partition.followers, end_offset, now, max_lag)
    return _propose(broker, partition, isr_without(partition.isr, leaving)) if leaving else Step(partition)


def _propose(broker: Broker, partition: Partition[LogT], isr: frozenset[BrokerId]) -> Handled[LogT]:
    proposal = broker.protocol.propose(partition.isr, isr)
    request = AlterPartitionRequest(
        broker.self_id,
        broker.broker_epoch,
        partition.partition,
        partition.leader_epoch,
        proposal.request.partition_epoch,
        members(isr, broker.self_id, broker.broker_epoch, partition.followers),
    )
    return Step(partition._replace(isr=proposal.leader), (broker.protocol.asks_for_isr(request),))


def handle_alter_partition_response(
    broker: Broker, partition: Partition[LogT], request: AlterPartitionRequest, response: AlterPartitionResponse, now: int
) -> Handled[LogT]:
    """Take the ISR as the controller has it now; or, after an error, forget the proposal, wait for news, or ask again.

    An answer to another proposal than the pending one is ignored.

    **Kafka:** `Partition.submitAlterPartition`, `handleAlterPartitionUpdate`, `handleAlterPartitionError`.
    """
    if not is_pending(partition.isr, _as_proposed(request)):
        return Step(partition)
    if response.error == Error.NONE:
        return _take_granted(broker, partition, response, now)
    what = broker.protocol.on_isr_error(response.error)
    if what == AfterError.ROLL_BACK:
        return Step(partition._replace(isr=roll_back(partition.isr)))
    if what == AfterError.RETRY:
        again = request._replace(broker_epoch=broker.broker_epoch)
        return Step(partition, (broker.protocol.asks_for_isr(again),))
    return Step(partition)


def _as_proposed(request: AlterPartitionRequest) -> PartitionIsr:
    return PartitionIsr(frozenset(member.broker for member in request.isr), request.partition_epoch)


def _take_granted(broker: Broker, partition: Partition[LogT], response: AlterPartitionResponse, now: int) -> Handled[LogT]:
    granted = PartitionIsr(response.isr, response.partition_epoch)
    if not may_take_granted(partition.isr, partition.leader_epoch, granted, response.leader_epoch):
        return Step(partition)
    taken = partition._replace(isr=apply_partition(partition.isr, granted))
    return complete_waiting(broker, advance(broker, taken, now))


# ---- questions


def handle_epoch_end(
    broker: Broker, partition: Partition[LogT], request: EpochEndRequest, leader_only: bool = True
) -> Handled[LogT]:
    """Where an epoch ends in this replica's log. Errors: those of the release's fence.

    **Kafka:** `Partition.lastOffsetForLeaderEpoch`.
    """
    claimed = request.current_leader_epoch
    error = broker.protocol.serves(broker.self_id, role_of(partition), claimed, leader_only)
    end = broker.protocol.epoch_lookup(partition.local.log, request.leader_epoch)
    response: EpochEndOffsetResponse = handle_offset_for_leader_epoch(error, end)
    return Step(partition, (Reply(response),))


def handle_list_offsets(
    broker: Broker,
    partition: Partition[LogT],
    request: ListOffsetsRequest,
    leader_only: bool = True,
    found: ListedOffset = NOT_FOUND,
) -> Handled[LogT]:
    """Where the log starts or ends for who asks, or the record that was `found` in it by its timestamp.

    Errors: those of the release's fence; `OFFSET_NOT_AVAILABLE`.

    **Kafka:** `Partition.fetchOffsetForTimestamp`.
    """
    error = broker.protocol.serves(broker.self_id, role_of(partition), request.current_leader_epoch, leader_only)
    if error != Error.NONE:
        return Step(partition, (Reply(ListedOffset(error)),))
    return Step(partition, (Reply(_listed(broker, partition, request, found)),))


def _listed(broker: Broker, partition: Partition[LogT], request: ListOffsetsRequest, found: ListedOffset) -> ListedOffset:
    log, high_watermark = partition.local.log, partition.local.high_watermark
    last_stable = last_stable_offset_of(partition)
    lag = broker.protocol.latest_offset_lags(request.isolation, high_watermark, partition.epoch_start)
    if request.wanted == Wanted.EARLIEST:
        return ListedOffset(Error.NONE, log.start_offset, log.epoch_at(log.start_offset))
    if request.wanted == Wanted.LATEST:
        epoch = partition.leader_epoch
        return latest_offset(request.isolation, log.end_offset, high_watermark, last_stable, epoch, lag)
    return offset_found(found, visible_end(request.isolation, log.end_offset, high_watermark, last_stable), lag)


# ---- deleting


def handle_delete_records(broker: Broker, partition: Partition[LogT], requested: Offset) -> Handled[LogT]:
    """Delete up to `requested`; the client is answered once the low watermark has reached the offset, see `is_deleted`.

    Errors: `NOT_LEADER_OR_FOLLOWER`, `POLICY_VIOLATION`, `OFFSET_OUT_OF_RANGE`.

    **Kafka:** `Partition.deleteRecordsOnLeader`.
    """
    high_watermark = partition.local.high_watermark
    offset = deletion_offset(requested, high_watermark)
    deletes = broker.settings.deletes_records
    error = check_deletion(leads(broker, partition), deletes, offset, high_watermark)
    if error != Error.NONE:
        return Step(partition, (Reply(Deletion(error)),))
    moved = delete_records(partition, offset)
    deletion = Deletion(error, offset, low_watermark_of(broker, moved.state))
    return Step(moved.state, (*moved.effects, Reply(deletion)))


def low_watermark_of(broker: Broker, partition: Partition[LogT]) -> Offset:
    """Below this offset no live replica has records, as the leader knows. **Kafka:** `Partition.lowWatermarkIfLeader`."""
    return low_watermark(partition.local.log.start_offset, partition.followers, broker.brokers)


def delete_records(partition: Partition[LogT], offset: Offset) -> Handled[LogT]:
    """Let the log start at `offset`, unless it starts later or that is not committed. Followers learn it by fetching.

    **Kafka:** `UnifiedLog.maybeIncrementLogStartOffset`.
    """
    moved = move_start(partition.local, offset)
    if moved.local == partition.local:
        return Step(partition)
    return Step(partition._replace(local=moved.local), (Persist(LogStartMoved(offset)),))


def apply_retention(partition: Partition[LogT], wanted: Offset) -> Handled[LogT]:
    """Delete what time or size no longer allow, as far as it is committed; on leader and follower alike.

    **Kafka:** `UnifiedLog.deleteOldSegments`.
    """
    return delete_records(partition, retention_offset(partition.local, wanted))
