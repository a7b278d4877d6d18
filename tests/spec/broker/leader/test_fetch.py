"""Answers of a leader to a fetch, and their dependence on the high watermark (rules F, H)."""

import pytest

from kspec.spec.broker.leader.fetch import handle_fetch, read_partition
from kspec.spec.broker.partition import is_under_min_isr
from kspec.spec.broker.rules.followers import Follower, follower_of
from kspec.spec.broker.rules.isr.proposal import LeaderIsr
from kspec.spec.broker.rules.reading import answers_at_once, leaving_now, may_throttle, readable_replicas
from kspec.spec.messages.fetch import FetchResponse
from kspec.spec.releases.broker import (
    BROKER_0_10,
    BROKER_2_0,
    BROKER_2_6,
    BROKER_2_7,
    BROKER_2_8,
    BROKER_3_0,
    BROKER_3_5,
    BROKER_3_6,
    BROKER_3_7,
)
from kspec.spec.transactions.log.partition import OpenTransaction, PartitionTransactions
from kspec.spec.values import (
    NO_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerEpoch,
    BrokerId,
    Error,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    ProducerId,
)
from tests.spec.broker_driver import (
    EVERYBODY,
    LATE,
    NOW,
    OTHER,
    SELF,
    THIRD,
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

# ---- fetch: F1-F10


def open_at(offset: int) -> PartitionTransactions:
    """A log in which a transaction is open from this offset on."""
    return PartitionTransactions(ongoing=(OpenTransaction(Offset(offset), ProducerId(1)),))


@pytest.mark.parametrize(
    ("epoch", "error"), [(4, Error.FENCED_LEADER_EPOCH), (6, Error.UNKNOWN_LEADER_EPOCH), (5, Error.NONE), (-1, Error.NONE)]
)
def test_a_fetch_of_another_epoch_is_refused(epoch: int, error: Error) -> None:
    assert read_partition(broker(), leader(log_of(5)), fetch_of(OTHER, 0, epoch=epoch)).error == error
    assert read_partition(broker(BROKER_2_0), leader(log_of(5)), fetch_of(OTHER, 0, epoch=epoch)).error == Error.NONE


@pytest.mark.parametrize(("epoch", "error"), [(4, Error.FENCED_LEADER_EPOCH), (6, Error.UNKNOWN_LEADER_EPOCH)])
def test_the_epoch_is_looked_at_before_the_logs_are_compared(epoch: int, error: Error) -> None:
    """`Partition.readRecords`: `localLogWithEpochOrThrow` comes first, so a fenced follower is not told to truncate."""
    asked = fetch_of(OTHER, 2, 3, epoch=epoch)
    assert read_partition(broker(), leader(log_of(2, 4, 5)), asked) == FetchResponse(error)


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
    partition = leader(log_of(5, 5, 5, 5), 3, transactions=open_at(2))
    answer = read_partition(broker(), partition, request_)  # type: ignore[arg-type]
    assert (answer.error, len(answer.records)) == (Error.NONE, records)
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (3, 2, 0)


def test_an_open_transaction_beyond_the_high_watermark_hides_nothing() -> None:
    partition = leader(log_of(5, 5), 1, transactions=open_at(1))
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
    assert handle_fetch(broker(), partition, fetch_of(OTHER, 3), MonotonicMs(NOW + LATE)).state.local.high_watermark == 3


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
        handle_fetch(
            broker(protocol, min_isr=3), partition, fetch_of(OTHER, 2), MonotonicMs(NOW + LATE)
        ).state.local.high_watermark
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
    step = handle_fetch(broker(), partition._replace(isr=pending), fetch_of(OTHER, 3 - 1), MonotonicMs(NOW + LATE))
    assert step.state.local.high_watermark == 0
    fetched_on = handle_fetch(broker(), partition._replace(isr=pending), fetch_of(THIRD, 2), MonotonicMs(NOW + LATE))
    assert fetched_on.state.local.high_watermark == 2
