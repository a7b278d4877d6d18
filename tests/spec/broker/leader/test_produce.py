"""Handling of a producer's batch by a leader: acks, waiting, idempotent producers (rules P, I)."""

import pytest

from kspec.spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, Persist
from kspec.spec.broker.leader.fetch import handle_fetch
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Broker, Partition, expire_waiting
from kspec.spec.broker.roles import become_leader
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.log.batch import Batch
from kspec.spec.log.producers import LAST_SEQUENCE, ProducerBatch, append_unchecked, rebuilt_from
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE, ProduceRequest, ProduceResponse
from kspec.spec.releases.broker import BROKER_0_10, BROKER_3_6
from kspec.spec.values import (
    NO_EPOCH,
    NO_SEQUENCE,
    UNKNOWN_OFFSET,
    BrokerId,
    Error,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    ProducerEpoch,
    ProducerId,
)
from tests.spec.broker_driver import (
    EPOCH,
    EVERYBODY,
    LATE,
    NOW,
    OTHER,
    SELF,
    THIRD,
    announced,
    broker,
    fetch_of,
    fetched,
    follower,
    leader,
    log_of,
    produce,
)


def idempotent(first_sequence: int, record_count: int = 1, epoch: int = 0) -> ProduceRequest:
    batch = Batch(record_count, NO_EPOCH, 7, ProducerId(4), ProducerEpoch(epoch), first_sequence)
    return ProduceRequest(9, ACKS_LEADER, batch)


def answered(error: Error, base_offset: int = UNKNOWN_OFFSET) -> AnswerProducer:
    return AnswerProducer(9, ProduceResponse(error, Offset(base_offset)))


# ---- produce: P1-P7


@pytest.mark.parametrize("acks", [2, -2])
def test_other_acks_are_refused_by_whomever(acks: int) -> None:
    for partition in (leader(log_of(5)), follower(log_of(5))):
        step = handle_produce(broker(), partition, produce(acks), NOW)
        assert step == (partition, (answered(Error.INVALID_REQUIRED_ACKS),))


@pytest.mark.parametrize("acks", [ACKS_ALL, ACKS_LEADER])
def test_who_does_not_lead_refuses(acks: int) -> None:
    step = handle_produce(broker(), follower(log_of(5)), produce(acks), NOW)
    assert step.effects == (answered(Error.NOT_LEADER_OR_FOLLOWER),)


def test_too_few_in_sync_replicas_refuse_acks_all_only() -> None:
    partition = leader(log_of(5), isr=(SELF,))
    few = broker(min_isr=2)
    assert handle_produce(few, partition, produce(ACKS_ALL), NOW) == (partition, (answered(Error.NOT_ENOUGH_REPLICAS),))
    for acks in (ACKS_LEADER, ACKS_NONE):
        assert handle_produce(few, partition, produce(acks), NOW).state.local.log.end_offset == 2


def test_acks_0_hears_of_a_failure_by_a_closed_connection() -> None:
    assert handle_produce(broker(), follower(log_of(5)), produce(ACKS_NONE), NOW).effects == (CloseConnection(9),)


def test_min_isr_cannot_exceed_the_number_of_replicas() -> None:
    alone = leader(log_of(5), isr=(SELF,), followers=())
    assert handle_produce(broker(min_isr=3), alone, produce(ACKS_ALL), NOW).state.local.high_watermark == 2
    refused = handle_produce(broker(BROKER_3_6, min_isr=3), alone, produce(ACKS_ALL), NOW)
    assert refused.effects == (answered(Error.NOT_ENOUGH_REPLICAS),)


def test_records_are_stored_in_the_leaders_epoch_before_the_answer() -> None:
    step = handle_produce(broker(), leader(log_of(4)), produce(ACKS_LEADER, 2), NOW)
    batches = (Batch(2, EPOCH, 7),)
    assert step.effects == (Persist(BatchesAppended(Offset(1), batches)), answered(Error.NONE, 1))
    assert step.state.local.log == log_of(4).append(batches)


def test_acks_0_is_not_answered() -> None:
    (stored,) = handle_produce(broker(), leader(log_of(4)), produce(ACKS_NONE), NOW).effects
    assert isinstance(stored, Persist)


def test_a_leader_alone_commits_at_once() -> None:
    step = handle_produce(broker(), leader(log_of(4), isr=(SELF,)), produce(ACKS_ALL), MonotonicMs(NOW + LATE))
    assert step.state.local.high_watermark == 2
    assert step.effects[-1] == answered(Error.NONE, 1)


def test_acks_all_waits_for_the_high_watermark() -> None:
    ends = {OTHER: fetched(1), THIRD: fetched(1)}
    step = handle_produce(broker(), leader(log_of(4), 1, follower_ends=ends), produce(ACKS_ALL, deadline=NOW + 30), NOW)
    assert [effect for effect in step.effects if isinstance(effect, AnswerProducer)] == []
    first = handle_fetch(broker(), step.state, fetch_of(OTHER, 2), NOW)
    assert first.state.local.high_watermark == 1
    second = handle_fetch(broker(), first.state, fetch_of(THIRD, 2), NOW)
    assert second.state.local.high_watermark == 2
    assert second.effects[0] == answered(Error.NONE, 1)
    assert second.state.waiting == ()


# ---- P8-P10


def waiting_leader(isr: tuple[BrokerId, ...] = EVERYBODY, min_isr: int = 2) -> tuple[Broker, Partition[RecordLog]]:
    ends = {OTHER: fetched(1), THIRD: fetched(1)}
    settled = leader(log_of(4), 1, isr=isr, follower_ends=ends)
    request = produce(ACKS_ALL, deadline=NOW + 30)
    return broker(min_isr=min_isr), handle_produce(broker(min_isr=min_isr), settled, request, NOW).state


def test_a_request_that_takes_too_long_is_told_so_and_its_records_stay() -> None:
    _, partition = waiting_leader()
    assert expire_waiting(partition, MonotonicMs(NOW + 29)) == (partition, ())
    step = expire_waiting(partition, MonotonicMs(NOW + 30))
    assert step.effects == (answered(Error.REQUEST_TIMED_OUT, 1),)
    assert (step.state.waiting, step.state.local.log.end_offset) == ((), 2)


def test_records_committed_before_the_isr_shrank_are_acknowledged_with_an_error() -> None:
    """The high watermark passes with ISR {1, 2}; the metadata shrinks it to {1} before the check that answers."""
    few, partition = waiting_leader(isr=(SELF, OTHER))
    committed = partition._replace(local=partition.local._replace(high_watermark=Offset(2)))
    step = become_leader(few, committed, announced(SELF, EPOCH, isr=(SELF,)), NOW)
    assert step.effects == (answered(Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND, 1),)


def test_the_check_before_takes_the_committed_isr_and_the_one_after_the_maximal() -> None:
    pending = LeaderIsr(frozenset({SELF}), PartitionEpoch(7), frozenset({SELF, OTHER}), PartitionEpoch(7))
    partition = leader(log_of(4), 1)._replace(isr=pending)
    few = broker(min_isr=2)
    assert handle_produce(few, partition, produce(), NOW).effects == (answered(Error.NOT_ENOUGH_REPLICAS),)
    _, waits = waiting_leader()
    committed = waits._replace(isr=pending, local=waits.local._replace(high_watermark=Offset(2)))
    assert answered(Error.NONE, 1) in handle_fetch(few, committed, fetch_of(THIRD, 1), NOW).effects


# ---- idempotent producers: I1-I5


def after(*requests: ProduceRequest) -> Partition[RecordLog]:
    partition = leader(log_of(), isr=(SELF,))
    for request in requests:
        partition = handle_produce(broker(), partition, request, MonotonicMs(NOW + LATE)).state
    return partition


def test_a_duplicate_is_answered_as_the_first_try_and_not_appended() -> None:
    partition = after(idempotent(0, 2), idempotent(2), idempotent(3))
    step = handle_produce(broker(), partition, idempotent(0, 2), NOW)
    assert step == (partition, (answered(Error.NONE, 0),))


def test_a_duplicate_with_acks_all_waits_for_the_first_try() -> None:
    first = idempotent(0, 2)._replace(acks=ACKS_ALL)
    partition = handle_produce(broker(), leader(log_of()), first, NOW).state
    again = handle_produce(broker(), partition, first._replace(request=10), NOW).state
    assert again.local == partition.local
    assert [waiting.appended.required_offset for waiting in again.waiting] == [2, 2]


def test_five_batches_are_remembered() -> None:
    partition = after(*(idempotent(sequence) for sequence in range(6)))
    assert handle_produce(broker(), partition, idempotent(1), NOW).effects == (answered(Error.NONE, 1),)
    assert handle_produce(broker(), partition, idempotent(0), NOW).effects == (answered(Error.OUT_OF_ORDER_SEQUENCE_NUMBER),)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (idempotent(3), Error.NONE),
        (idempotent(4), Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (idempotent(2), Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (idempotent(0, epoch=-1), Error.INVALID_PRODUCER_EPOCH),
        (idempotent(0, epoch=1), Error.NONE),
        (idempotent(1, epoch=1), Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
    ],
)
def test_the_next_batch(request_: ProduceRequest, error: Error) -> None:
    partition = after(idempotent(0, 3))
    (answer,) = [
        effect for effect in handle_produce(broker(), partition, request_, NOW).effects if isinstance(effect, AnswerProducer)
    ]
    assert answer.response.error == error


def test_an_unknown_producer_may_start_anywhere_and_numbers_wrap() -> None:
    partition = after(idempotent(LAST_SEQUENCE - 1, 2), idempotent(0))
    assert partition.local.log.end_offset == 3


def test_a_batch_that_crosses_the_last_number_goes_on_behind_it() -> None:
    assert after(idempotent(LAST_SEQUENCE, 3), idempotent(2)).local.log.end_offset == 4


def test_before_idempotent_producers_any_sequence_goes() -> None:
    partition = after(idempotent(0))
    step = handle_produce(broker(BROKER_0_10), partition, idempotent(5), NOW)
    assert step.state.local.log.end_offset == 2
    assert BROKER_0_10.check_sequences == append_unchecked


def test_the_state_is_the_fold_of_the_batches_in_the_log() -> None:
    batches = [ProducerBatch(ProducerId(4), ProducerEpoch(0), sequence, 1, Offset(sequence)) for sequence in range(3)]
    partition = after(*(idempotent(sequence) for sequence in range(3)))
    assert rebuilt_from(tuple(batches)) == partition.producers
    assert rebuilt_from((ProducerBatch(ProducerId(-1), ProducerEpoch(-1), -1, 1),)) == ()
    other = ProducerBatch(ProducerId(2), ProducerEpoch(0), 0, 1)
    assert [entry.producer_id for entry in rebuilt_from((*batches, other))] == [2, 4]


def test_a_batch_without_sequence_numbers_has_no_last_one() -> None:
    """As a group coordinator writes offsets in a transaction."""
    assert ProducerBatch(ProducerId(4), ProducerEpoch(0), NO_SEQUENCE, 3).last_sequence == NO_SEQUENCE
