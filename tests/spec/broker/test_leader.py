"""A leader's handlers: rules P1-P11, I1-I5, F1-F10, S6, H1-H5, H10, E1-E6, A1, A6, A7, R1-R7 of docs/rules.md."""

from dataclasses import replace

import pytest

from spec.broker.effects import AnswerProducer, BatchesAppended, CloseConnection, LogStartMoved, Persist
from spec.broker.leader.deletion import apply_retention, delete_records, handle_delete_records, low_watermark_of
from spec.broker.leader.fetch import handle_fetch, read_partition
from spec.broker.leader.isr import consider_joining, consider_shrinking, handle_alter_partition_response
from spec.broker.leader.offsets import handle_list_offsets, handle_offset_for_leader_epoch
from spec.broker.leader.produce import handle_produce
from spec.broker.partition import Broker, Partition, expire_waiting, is_under_min_isr
from spec.broker.roles import become_leader
from spec.broker.rules.followers import NEVER_FETCHED, Follower, follower_of
from spec.broker.rules.isr.errors import (
    AfterError,
    give_up_if_invalid,
    never_roll_back,
    roll_back_always,
    roll_back_if_ineligible,
    roll_back_if_not_attempted,
)
from spec.broker.rules.isr.proposal import LeaderIsr, maximal_isr, nothing_pending
from spec.broker.rules.isr.request import WriteIsr, ask_for_isr_by_broker_epoch, members
from spec.broker.rules.offsets import is_deleted
from spec.broker.rules.reading import answers_at_once, leaving_now, may_throttle, readable_replicas
from spec.log.batch import Batch
from spec.log.producers import LAST_SEQUENCE, ProducerBatch, append_unchecked, rebuilt_from
from spec.log.record_log import RecordLog
from spec.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse, IsrMember
from spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from spec.messages.fetch import FetchResponse, Isolation
from spec.messages.list_offsets import NOT_FOUND, ListOffsetsRequest, ListOffsetsResponse, Wanted
from spec.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE, NO_DEADLINE, ProduceRequest, ProduceResponse
from spec.releases.broker import (
    BROKER_0_10,
    BROKER_2_0,
    BROKER_2_6,
    BROKER_2_7,
    BROKER_2_8,
    BROKER_3_0,
    BROKER_3_2,
    BROKER_3_3,
    BROKER_3_5,
    BROKER_3_6,
    BROKER_3_7,
    BROKER_4_0,
    BROKER_NEXT,
)
from spec.step import SendToController
from spec.values import (
    NO_BROKER_EPOCH,
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    Offset,
    PartitionEpoch,
    PartitionId,
    ProducerEpoch,
    ProducerId,
)
from tests.spec.broker_driver import (
    EPOCH,
    EVERYBODY,
    NOW,
    OTHER,
    SELF,
    THIRD,
    announced,
    broker,
    consumer_fetch,
    fetch_of,
    fetched,
    follower,
    leader,
    log_of,
    registered,
    reply,
    run_of,
)

LATE = 10**9
"""A time by which everybody has fallen behind who does not hold all."""


def produce(acks: int = ACKS_ALL, record_count: int = 1, deadline: int = NO_DEADLINE) -> ProduceRequest:
    return ProduceRequest(9, acks, Batch(record_count, payload=7), deadline)


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
    step = handle_produce(broker(), leader(log_of(4), isr=(SELF,)), produce(ACKS_ALL), NOW + LATE)
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
    assert expire_waiting(partition, NOW + 29) == (partition, ())
    step = expire_waiting(partition, NOW + 30)
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
        partition = handle_produce(broker(), partition, request, NOW + LATE).state
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


# ---- fetch: F1-F10


@pytest.mark.parametrize(
    ("epoch", "error"), [(4, Error.FENCED_LEADER_EPOCH), (6, Error.UNKNOWN_LEADER_EPOCH), (5, Error.NONE), (-1, Error.NONE)]
)
def test_a_fetch_of_another_epoch_is_refused(epoch: int, error: Error) -> None:
    assert read_partition(broker(), leader(log_of(5)), fetch_of(OTHER, 0, epoch=epoch)).error == error
    assert read_partition(broker(BROKER_2_0), leader(log_of(5)), fetch_of(OTHER, 0, epoch=epoch)).error == Error.NONE


def test_the_epoch_is_looked_at_before_the_role() -> None:
    follows = follower(log_of(5), 1)
    assert read_partition(broker(), follows, fetch_of(THIRD, 0, epoch=4)).error == Error.FENCED_LEADER_EPOCH
    assert read_partition(broker(), follows, fetch_of(THIRD, 0)).error == Error.NOT_LEADER_OR_FOLLOWER
    assert read_partition(broker(), follows, consumer_fetch(0)).error == Error.NOT_LEADER_OR_FOLLOWER


def test_a_follower_serves_consumers_that_say_where_they_are() -> None:
    answer = read_partition(broker(), follower(log_of(4, 5), 1), consumer_fetch(0, has_client_metadata=True))
    assert (answer.error, len(answer.records)) == (Error.NONE, 1)


def test_a_fetch_of_no_replica_is_refused_so_that_it_tries_again() -> None:
    stranger = BrokerId(4)
    partition = leader(log_of(5))
    assert read_partition(broker(), partition, fetch_of(stranger, 0)).error == Error.UNKNOWN_LEADER_EPOCH
    assert read_partition(broker(), partition, fetch_of(stranger, 0, epoch=NO_EPOCH)).error == Error.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(
    ("offset", "last_epoch", "error", "diverging"),
    [
        (2, 5, Error.NONE, UNDEFINED_EPOCH_END),
        (3, 4, Error.NONE, (4, 2)),  # beyond where the leader's epoch 4 ends
        (2, 3, Error.NONE, (2, 1)),  # an epoch that the leader does not have
        (1, 6, Error.OFFSET_OUT_OF_RANGE, UNDEFINED_EPOCH_END),
        (4, -1, Error.OFFSET_OUT_OF_RANGE, UNDEFINED_EPOCH_END),
        (4, 5, Error.NONE, (5, 3)),
    ],
)
def test_a_leader_says_where_the_logs_part(offset: int, last_epoch: int, error: Error, diverging: tuple[int, int]) -> None:
    answer = read_partition(broker(), leader(log_of(2, 4, 5)), fetch_of(OTHER, offset, last_epoch))
    assert (answer.error, answer.diverging) == (error, diverging)
    assert answer.records == () or not answer.diverging == diverging != UNDEFINED_EPOCH_END


def test_up_to_2_6_it_says_nothing_of_the_kind() -> None:
    answer = read_partition(broker(BROKER_2_6), leader(log_of(2, 4, 5)), fetch_of(OTHER, 2, 3))
    assert (answer.error, len(answer.records)) == (Error.NONE, 1)


def test_a_fetch_from_before_the_start_is_out_of_range_even_if_it_parts() -> None:
    partition = leader(log_of(2, 4, 4, 6).start_at(Offset(2)))
    assert read_partition(broker(), partition, fetch_of(OTHER, 1, 5)).error == Error.OFFSET_OUT_OF_RANGE
    assert read_partition(broker(BROKER_2_8), partition, fetch_of(OTHER, 1, 5)).diverging == (4, 3)
    assert BROKER_3_0.divergence != BROKER_2_8.divergence


@pytest.mark.parametrize(
    ("request_", "records"),
    [
        (fetch_of(OTHER, 0), 4),
        (fetch_of(OTHER, 0, max_records=3), 3),
        (consumer_fetch(0), 3),
        (consumer_fetch(0, read_committed=True), 2),
        (consumer_fetch(3), 0),
        (consumer_fetch(4), 0),
    ],
)
def test_what_is_visible_to_whom(request_: object, records: int) -> None:
    partition = leader(log_of(5, 5, 5, 5), 3, first_unstable_offset=Offset(2))
    answer = read_partition(broker(), partition, request_)  # type: ignore[arg-type]
    assert (answer.error, len(answer.records)) == (Error.NONE, records)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (3, 2, 0)


def test_an_open_transaction_beyond_the_high_watermark_hides_nothing() -> None:
    partition = leader(log_of(5, 5), 1, first_unstable_offset=Offset(1))
    assert read_partition(broker(), partition, consumer_fetch(0, read_committed=True)).last_stable_offset == 1


def test_a_fetch_that_parts_is_not_counted_nor_one_that_fails() -> None:
    partition = leader(log_of(2, 4, 5), follower_ends={OTHER: fetched(1)})
    for request in (fetch_of(OTHER, 3, 4), fetch_of(OTHER, 9), fetch_of(OTHER, 1, epoch=4)):
        assert handle_fetch(broker(), partition, request, NOW).state is partition


def test_2_7_counts_a_fetch_that_parts() -> None:
    """KAFKA-13141: the leader takes for replicated what is about to be truncated."""
    partition = leader(log_of(2, 4, 5), follower_ends={OTHER: fetched(1)})
    step = handle_fetch(broker(BROKER_2_7), partition, fetch_of(OTHER, 3, 4), NOW)
    state = follower_of(step.state.followers, OTHER)
    assert state is not None
    assert state.end_offset == 3


def test_the_answer_is_as_it_was_before_the_fetch_counted() -> None:
    ends = {OTHER: fetched(0), THIRD: fetched(2)}
    step = handle_fetch(broker(), leader(log_of(5, 5), follower_ends=ends), fetch_of(OTHER, 2), NOW)
    assert step.state.local.high_watermark == 2
    assert reply(step).high_watermark == 0


def test_a_fetch_of_an_earlier_run_changes_nothing() -> None:
    partition = leader(log_of(5, 5), follower_ends={OTHER: fetched(1)})
    step = handle_fetch(broker(), partition, fetch_of(OTHER, 2, broker_epoch=BrokerEpoch(run_of(OTHER) - 1)), NOW)
    assert (step.state, reply(step)) == (partition, FetchResponse(Error.NOT_LEADER_OR_FOLLOWER))


def test_when_a_fetch_is_answered_at_once() -> None:
    empty = FetchResponse(Error.NONE)
    assert not answers_at_once(empty, 1, may_wait=True, has_preferred_replica=False)
    assert answers_at_once(empty, 0, may_wait=True, has_preferred_replica=False)
    assert answers_at_once(empty, 1, may_wait=False, has_preferred_replica=False)
    assert answers_at_once(empty, 1, may_wait=True, has_preferred_replica=True)
    assert answers_at_once(FetchResponse(Error.OFFSET_OUT_OF_RANGE), 1, may_wait=True, has_preferred_replica=False)


def test_an_answer_carries_what_the_log_holds_when_it_leaves() -> None:
    answer = FetchResponse(Error.NONE, Offset(1), log_of(5, 5).read(Offset(1), 1))
    assert leaving_now(answer, log_of(5, 5, 5)) == answer
    assert leaving_now(answer, log_of(5, 6)) == answer._replace(records=log_of(5, 6).read(Offset(1), 1))
    assert leaving_now(answer, log_of(5)) is None


def test_members_of_the_isr_are_not_throttled() -> None:
    assert may_throttle(throttled=True, quota_exceeded=True, in_isr=False)
    assert not may_throttle(throttled=True, quota_exceeded=True, in_isr=True)
    assert not may_throttle(throttled=False, quota_exceeded=True, in_isr=False)


def test_consumers_are_sent_to_in_sync_replicas_that_hold_the_offset() -> None:
    followers = (Follower(OTHER, fetched(5, start=3)), Follower(THIRD, fetched(9)))
    isr = frozenset({SELF, OTHER})
    assert readable_replicas(SELF, isr, followers, Offset(4)) == {SELF, OTHER}
    assert readable_replicas(SELF, isr, followers, Offset(6)) == {SELF}
    assert readable_replicas(SELF, isr, followers, Offset(2)) == {SELF}


# ---- high watermark: H1-H5


def test_a_member_that_has_not_fetched_yet_holds_the_high_watermark() -> None:
    step = handle_fetch(broker(), leader(log_of(5, 5)), fetch_of(OTHER, 2), NOW)
    assert step.state.local.high_watermark == 0


def test_the_high_watermark_waits_for_who_is_about_to_join() -> None:
    """Broker 3 is not in the ISR, but caught up a moment ago, so it is not overtaken."""
    ends = {OTHER: fetched(1), THIRD: fetched(1, caught_up_time=NOW, broker_epoch=run_of(THIRD))}
    partition = leader(log_of(5, 5, 5), isr=(SELF, OTHER), follower_ends=ends)
    step = handle_fetch(broker(), partition, fetch_of(OTHER, 3), NOW)
    assert step.state.local.high_watermark == 1
    assert handle_fetch(broker(), partition, fetch_of(OTHER, 3), NOW + LATE).state.local.high_watermark == 3


def test_from_3_6_it_does_not_wait_for_who_may_not_join() -> None:
    """KAFKA-15021: broker 3 is shutting down."""
    ends = {OTHER: fetched(1), THIRD: fetched(1, caught_up_time=NOW, broker_epoch=run_of(THIRD))}
    partition = leader(log_of(5, 5, 5), isr=(SELF, OTHER), follower_ends=ends)
    up = (registered(SELF), registered(OTHER), registered(THIRD, in_controlled_shutdown=True))
    ends_at = {
        protocol.name: handle_fetch(
            broker(protocol, brokers=up), partition, fetch_of(OTHER, 3), NOW
        ).state.local.high_watermark
        for protocol in (BROKER_0_10, BROKER_3_5, BROKER_3_6)
    }
    assert ends_at == {"0.10": 3, "3.5": 1, "3.6": 3}


def test_from_3_7_it_stands_still_below_min_isr() -> None:
    partition = leader(log_of(5, 5), isr=(SELF, OTHER), follower_ends={OTHER: fetched(0)})
    ends_at = [
        handle_fetch(broker(protocol, min_isr=3), partition, fetch_of(OTHER, 2), NOW + LATE).state.local.high_watermark
        for protocol in (BROKER_3_6, BROKER_3_7)
    ]
    assert ends_at == [2, 0]
    assert is_under_min_isr(broker(min_isr=3), partition)
    assert not is_under_min_isr(broker(min_isr=3), follower(log_of(5)))


def test_it_waits_for_who_may_have_joined() -> None:
    """Broker 3's admission is pending: the controller may have granted it already."""
    ends = {OTHER: fetched(2), THIRD: fetched(1)}
    partition = leader(log_of(5, 5), isr=(SELF, OTHER), follower_ends=ends)
    pending = LeaderIsr(partition.isr.isr, PartitionEpoch(7), frozenset(EVERYBODY), PartitionEpoch(7))
    step = handle_fetch(broker(), partition._replace(isr=pending), fetch_of(OTHER, 3 - 1), NOW + LATE)
    assert step.state.local.high_watermark == 0
    fetched_on = handle_fetch(broker(), partition._replace(isr=pending), fetch_of(THIRD, 2), NOW + LATE)
    assert fetched_on.state.local.high_watermark == 2


# ---- ISR: E1-E6, A1


def proposal(step: object) -> AlterPartitionRequest:
    (request,) = [effect.message for effect in step.effects if isinstance(effect, SendToController)]  # type: ignore[attr-defined]
    assert isinstance(request, AlterPartitionRequest)
    return request


def outsider(end: int = 2) -> Partition[RecordLog]:
    """ISR {1, 2}; broker 3 is outside. The epoch started at 2, the high watermark is 1."""
    ends = {OTHER: fetched(1, broker_epoch=run_of(OTHER)), THIRD: fetched(end)}
    return leader(log_of(4, 4, 5), 1, isr=(SELF, OTHER), follower_ends=ends, epoch_start=2)


def test_a_follower_asks_to_join_by_a_fetch_from_the_epoch_start_on() -> None:
    assert nothing_pending(handle_fetch(broker(), outsider(0), fetch_of(THIRD, 1), NOW).state.isr)
    step = handle_fetch(broker(), outsider(0), fetch_of(THIRD, 2), NOW)
    assert step.state.isr.isr == {SELF, OTHER}
    assert maximal_isr(step.state.isr) == set(EVERYBODY)
    members_ = {IsrMember(replica, run_of(replica)) for replica in EVERYBODY}
    assert proposal(step) == AlterPartitionRequest(
        SELF, run_of(SELF), PartitionId(0), EPOCH, PartitionEpoch(7), frozenset(members_)
    )


def test_up_to_2_0_the_high_watermark_is_enough() -> None:
    step = handle_fetch(broker(BROKER_2_0), outsider(0), fetch_of(THIRD, 1), NOW)
    (written,) = [effect for effect in step.effects if isinstance(effect, WriteIsr)]
    assert {member.broker for member in written.request.isr} == set(EVERYBODY)


def test_nobody_joins_while_a_proposal_is_pending_nor_a_member_nor_a_stranger() -> None:
    pending = handle_fetch(broker(), outsider(0), fetch_of(THIRD, 2), NOW).state
    assert consider_joining(broker(), pending, THIRD, NOW).effects == ()
    assert consider_joining(broker(), outsider(), OTHER, NOW).effects == ()
    assert consider_joining(broker(), outsider(), BrokerId(4), NOW).effects == ()


@pytest.mark.parametrize("changes", [{"fenced": True}, {"in_controlled_shutdown": True}])
def test_who_is_down_or_leaving_does_not_join(changes: dict[str, bool]) -> None:
    up = (registered(SELF), registered(OTHER), registered(THIRD, **changes))
    assert consider_joining(broker(brokers=up), outsider(), THIRD, NOW).effects == ()
    assert handle_fetch(broker(BROKER_3_2, brokers=up), outsider(0), fetch_of(THIRD, 2), NOW).state.isr.pending_isr


def test_below_min_isr_the_repaired_rule_keeps_a_slow_follower_out() -> None:
    """KAFKA-19996: the high watermark stands still, so the follower has reached it, but it is far behind."""
    partition = outsider(2)
    few = {protocol.name: broker(protocol, min_isr=3) for protocol in (BROKER_4_0, BROKER_NEXT)}
    state = fetched(2, broker_epoch=run_of(THIRD))
    slow = partition._replace(followers=(partition.followers[0], Follower(THIRD, state)))
    joins = {name: len(consider_joining(each, slow, THIRD, LATE).effects) for name, each in few.items()}
    assert joins == {"4.0": 1, "next": 0}


def test_who_falls_behind_is_dropped_when_the_controller_agrees() -> None:
    ends = {OTHER: fetched(3, broker_epoch=run_of(OTHER)), THIRD: fetched(2)}
    partition = leader(log_of(4, 4, 5), 2, follower_ends=ends)
    assert consider_shrinking(broker(), partition, 10) == (partition, ())
    step = consider_shrinking(broker(), partition, LATE)
    assert {member.broker for member in proposal(step).isr} == {SELF, OTHER}
    assert maximal_isr(step.state.isr) == step.state.isr.isr == set(EVERYBODY)
    assert consider_shrinking(broker(), step.state, LATE).effects == ()
    assert consider_shrinking(broker(), follower(log_of(5)), LATE).effects == ()


def test_what_a_request_says_of_the_members_by_release() -> None:
    followers = (
        Follower(OTHER, fetched(1, broker_epoch=BrokerEpoch(4))),
        Follower(THIRD, fetched(1, broker_epoch=NEVER_FETCHED)),
    )
    isr = frozenset({*EVERYBODY, BrokerId(9)})
    runs = {member.broker: member.broker_epoch for member in members(isr, SELF, BrokerEpoch(8), followers)}
    assert runs == {SELF: 8, OTHER: 4, THIRD: NO_BROKER_EPOCH, BrokerId(9): NO_BROKER_EPOCH}
    request = AlterPartitionRequest(
        SELF, run_of(SELF), PartitionId(0), EPOCH, PartitionEpoch(7), members(isr, SELF, BrokerEpoch(8), followers)
    )
    for protocol, understands in ((BROKER_2_7, False), (BROKER_3_3, True)):
        sent = protocol.asks_for_isr(request)
        assert isinstance(sent, SendToController)
        assert {member.broker_epoch for member in sent.message.isr} == {NO_BROKER_EPOCH}
        assert sent.message.understands_ineligible_replica == understands
    assert ask_for_isr_by_broker_epoch(request) == SendToController(request)


# ---- the answer: A6, A7


def pending_leader() -> tuple[Partition[RecordLog], AlterPartitionRequest]:
    step = handle_fetch(broker(), outsider(0), fetch_of(THIRD, 2), NOW)
    return step.state, proposal(step)


def granted(leader_epoch: int = EPOCH, partition_epoch: int = 8) -> AlterPartitionResponse:
    epochs = Epoch(leader_epoch), frozenset(EVERYBODY), PartitionEpoch(partition_epoch)
    return AlterPartitionResponse(Error.NONE, PartitionId(0), SELF, *epochs)


def test_a_grant_makes_the_isr_as_the_controller_says_and_the_high_watermark_may_move() -> None:
    partition, request = pending_leader()
    step = handle_alter_partition_response(broker(), partition, request, granted(), NOW)
    assert step.state.isr == LeaderIsr(frozenset(EVERYBODY), PartitionEpoch(8), frozenset(), PartitionEpoch(-1))
    under = leader(log_of(5), isr=(SELF, OTHER), follower_ends={OTHER: fetched(1), THIRD: fetched(0)})
    few = broker(min_isr=3)
    asked = handle_fetch(few, under, fetch_of(THIRD, 1), NOW)
    assert asked.state.local.high_watermark == 0
    taken = handle_alter_partition_response(few, asked.state, proposal(asked), granted(), NOW)
    assert taken.state.local.high_watermark == 1


@pytest.mark.parametrize(("leader_epoch", "partition_epoch"), [(4, 8), (6, 8), (5, 6)])
def test_a_grant_of_another_epoch_or_an_older_state_is_ignored(leader_epoch: int, partition_epoch: int) -> None:
    partition, request = pending_leader()
    response = granted(leader_epoch, partition_epoch)
    assert handle_alter_partition_response(broker(), partition, request, response, NOW) == (partition, ())


def test_the_same_partition_epoch_is_taken() -> None:
    partition, request = pending_leader()
    step = handle_alter_partition_response(broker(), partition, request, granted(partition_epoch=7), NOW)
    assert step.state.isr.isr == set(EVERYBODY)


def test_an_answer_to_another_proposal_is_ignored() -> None:
    partition, request = pending_leader()
    other = request._replace(partition_epoch=PartitionEpoch(6))
    refused = AlterPartitionResponse(Error.INELIGIBLE_REPLICA, PartitionId(0))
    assert handle_alter_partition_response(broker(), partition, other, refused, NOW) == (partition, ())
    assert handle_alter_partition_response(broker(), outsider(), request, granted(), NOW) == (outsider(), ())


@pytest.mark.parametrize(
    ("error", "since_2_7", "since_3_1", "since_3_2", "since_3_3"),
    [
        (Error.FENCED_LEADER_EPOCH, "await", "await", "await", "await"),
        (Error.INVALID_UPDATE_VERSION, "await", "await", "await", "await"),
        (Error.UNKNOWN_TOPIC_OR_PARTITION, "await", "await", "await", "await"),
        (Error.OPERATION_NOT_ATTEMPTED, "retry", "roll", "roll", "roll"),
        (Error.INVALID_REQUEST, "retry", "retry", "await", "await"),
        (Error.INELIGIBLE_REPLICA, "retry", "retry", "retry", "roll"),
        (Error.NEW_LEADER_ELECTED, "retry", "retry", "retry", "await"),
        (Error.STALE_BROKER_EPOCH, "retry", "retry", "retry", "retry"),
        (Error.NOT_CONTROLLER, "retry", "retry", "retry", "retry"),
    ],
)
def test_what_an_error_means_by_release(
    error: Error, since_2_7: str, since_3_1: str, since_3_2: str, since_3_3: str
) -> None:
    words = {"await": AfterError.AWAIT_METADATA, "retry": AfterError.RETRY, "roll": AfterError.ROLL_BACK}
    assert never_roll_back(error) == words[since_2_7]
    assert roll_back_if_not_attempted(error) == words[since_3_1]
    assert give_up_if_invalid(error) == words[since_3_2]
    assert roll_back_if_ineligible(error) == words[since_3_3]
    assert roll_back_always(error) == AfterError.ROLL_BACK


def test_the_three_outcomes_of_an_error() -> None:
    partition, request = pending_leader()

    def after_error(error: Error, each: Broker = broker()) -> object:  # noqa: B008
        return handle_alter_partition_response(each, partition, request, AlterPartitionResponse(error, PartitionId(0)), NOW)

    assert after_error(Error.INELIGIBLE_REPLICA) == (outsider_after_fetch(), ())
    assert after_error(Error.FENCED_LEADER_EPOCH) == (partition, ())
    again = request._replace(broker_epoch=BrokerEpoch(77))
    restarted = broker(broker_epoch=BrokerEpoch(77))
    assert after_error(Error.STALE_BROKER_EPOCH, restarted) == (partition, (SendToController(again),))


def outsider_after_fetch() -> Partition[RecordLog]:
    """As `outsider`, once the fetch has counted and the proposal is taken back."""
    partition, _ = pending_leader()
    return partition._replace(isr=outsider().isr)


# ---- questions: R4, R5, R7


def test_where_an_epoch_ends() -> None:
    partition = leader(log_of(2, 4, 5))

    def ask(epoch: int, claimed: int = EPOCH) -> object:
        return reply(
            handle_offset_for_leader_epoch(
                broker(), partition, OffsetForLeaderEpochRequest(Epoch(claimed), Epoch(epoch)), NOW
            )
        )

    assert ask(3) == (Error.NONE, (2, 1))
    assert ask(5) == (Error.NONE, (5, 3))
    assert ask(5, 4) == (Error.FENCED_LEADER_EPOCH, UNDEFINED_EPOCH_END)
    asked = OffsetForLeaderEpochRequest(NO_EPOCH, Epoch(2))
    assert (
        reply(handle_offset_for_leader_epoch(broker(), follower(log_of(2)), asked, NOW)).error
        == Error.NOT_LEADER_OR_FOLLOWER
    )
    assert (
        reply(handle_offset_for_leader_epoch(broker(), follower(log_of(2)), asked._replace(leader_only=False), NOW)).error
        == Error.NONE
    )


@pytest.mark.parametrize(
    ("name", "epoch", "end"),
    [
        ("0.11", 2, (-1, 1)),
        ("0.11", 1, (-1, -1)),
        ("2.0", 3, (2, 1)),
        ("2.0", 1, (-1, -1)),
        ("2.0", 5, (5, 3)),
        ("2.1", 1, (1, 0)),
    ],
)
def test_what_a_release_knows_of_an_epochs_end(name: str, epoch: int, end: tuple[int, int]) -> None:
    lookups = {each.name: each.epoch_lookup for each in (replace(BROKER_0_10, name="0.11"), BROKER_2_0)}
    lookup = lookups.get(name, BROKER_4_0.epoch_lookup)
    assert lookup(log_of(2, 4, 5), Epoch(epoch)) == end


def listed(
    partition: Partition[RecordLog], wanted: Wanted, isolation: Isolation, found: ListOffsetsResponse = NOT_FOUND
) -> ListOffsetsResponse:
    step = handle_list_offsets(broker(), partition, ListOffsetsRequest(wanted, EPOCH, isolation), NOW, found)
    answer = reply(step)
    assert isinstance(answer, ListOffsetsResponse)
    return answer


def test_the_latest_offset_by_who_asks() -> None:
    partition = leader(log_of(4, 5, 5, 5), 3, first_unstable_offset=Offset(2))
    offsets = [listed(partition, Wanted.LATEST, isolation).offset for isolation in Isolation]
    assert offsets == [4, 3, 2]
    assert listed(partition, Wanted.LATEST, Isolation.LOG_END).leader_epoch == EPOCH
    assert listed(partition, Wanted.EARLIEST, Isolation.HIGH_WATERMARK) == (Error.NONE, 0, 4)


def test_a_new_leader_does_not_show_clients_an_offset_that_goes_back() -> None:
    partition = leader(log_of(4, 4, 5), 1, epoch_start=2)
    client, replica = Isolation.HIGH_WATERMARK, Isolation.LOG_END
    assert listed(partition, Wanted.LATEST, client).error == Error.OFFSET_NOT_AVAILABLE
    assert listed(partition, Wanted.LATEST, replica) == (Error.NONE, 3, EPOCH)
    assert listed(partition, Wanted.EARLIEST, client).error == Error.NONE
    seen, beyond = (ListOffsetsResponse(Error.NONE, Offset(offset), Epoch(4)) for offset in (0, 1))
    assert listed(partition, Wanted.BY_TIMESTAMP, client, seen) == seen
    assert listed(partition, Wanted.BY_TIMESTAMP, client, beyond).error == Error.OFFSET_NOT_AVAILABLE
    assert listed(partition._replace(epoch_start=Offset(1)), Wanted.BY_TIMESTAMP, client, beyond) == NOT_FOUND


def test_up_to_2_1_it_does() -> None:
    partition = leader(log_of(4, 4, 5), 1, epoch_start=2)
    request = ListOffsetsRequest(Wanted.LATEST, EPOCH, Isolation.HIGH_WATERMARK)
    assert reply(handle_list_offsets(broker(BROKER_2_0), partition, request, NOW)).offset == 1


def test_a_question_of_another_epoch_is_refused() -> None:
    request = ListOffsetsRequest(Wanted.LATEST, Epoch(4))
    assert reply(handle_list_offsets(broker(), leader(log_of(5)), request, NOW)) == ListOffsetsResponse(
        Error.FENCED_LEADER_EPOCH
    )


# ---- deleting: R1, R2


def test_records_are_deleted_up_to_the_high_watermark_at_most() -> None:
    ends = {OTHER: fetched(3), THIRD: fetched(3)}
    partition = leader(log_of(5, 5, 5), 2, follower_ends=ends)
    step = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(-1)), NOW)
    assert step.effects[0] == Persist(LogStartMoved(Offset(2)))
    assert reply(step) == DeleteRecordsResponse(Error.NONE, Offset(2), Offset(0))
    assert step.state.local.log.start_offset == 2
    for offset in (3, -2):
        refused = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(offset)), NOW)
        assert (refused.state, reply(refused).error) == (partition, Error.OFFSET_OUT_OF_RANGE)


def test_a_deletion_is_done_when_no_live_replica_has_the_records() -> None:
    partition = leader(log_of(5, 5, 5), 2, follower_ends={OTHER: fetched(3, start=2), THIRD: fetched(3)})
    step = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(2)), NOW)
    assert not is_deleted(reply(step), low_watermark_of(broker(), step.state))
    third_is_down = (registered(SELF), registered(OTHER), registered(THIRD, fenced=True))
    assert is_deleted(reply(step), low_watermark_of(broker(brokers=third_is_down), step.state))


def test_who_may_not_delete() -> None:
    compacted = broker(settings=broker().settings._replace(deletes_records=False))
    assert (
        reply(handle_delete_records(compacted, leader(log_of(5), 1), DeleteRecordsRequest(Offset(1)), NOW)).error
        == Error.POLICY_VIOLATION
    )
    assert (
        reply(handle_delete_records(broker(), follower(log_of(5), 1), DeleteRecordsRequest(Offset(1)), NOW)).error
        == Error.NOT_LEADER_OR_FOLLOWER
    )


def test_the_start_never_moves_back() -> None:
    partition = leader(log_of(5, 5, 5).start_at(Offset(2)), 3)
    assert delete_records(partition, Offset(1)) == (partition, ())


def test_retention_keeps_what_is_not_committed() -> None:
    step = apply_retention(follower(log_of(5, 5, 5), 2), Offset(3))
    assert (step.state.local.log.start_offset, step.effects) == (2, (Persist(LogStartMoved(Offset(2))),))
