"""Becoming leader and follower: rules B1-B7, P11, H7, S4, S5 of docs/rules.md, and the loss that S5 makes possible (Z19)."""

from typing import Any

import pytest

from kspec.spec.broker.effects import AnswerProducer, EpochOpened, LogDeleted, LogTruncated, Persist, RebuildProducers
from kspec.spec.broker.leader.fetch import handle_fetch, read_partition
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.roles import (
    apply_change,
    become_follower,
    become_leader,
    leave,
    producers_expired,
    producers_rebuilt,
)
from kspec.spec.broker.rules.divergence import is_diverging
from kspec.spec.broker.rules.fetcher import NOT_FETCHING, FetchStatus
from kspec.spec.broker.rules.followers import UNKNOWN_FOLLOWER, Follower, follower_of, forget
from kspec.spec.broker.rules.isr.proposal import nothing_pending, propose
from kspec.spec.log.batch import Batch
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.producers import ProducerBatch, rebuilt_from
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ProduceRequest, ProduceResponse
from kspec.spec.metadata import (
    DELETED,
    UNCHANGED,
    LocalChange,
    LocalRole,
    PartitionChangeRecord,
    PartitionRegistration,
    local_change,
    merge,
)
from kspec.spec.releases.broker import (
    BROKER_0_10,
    BROKER_0_11,
    BROKER_2_0,
    BROKER_2_8,
    BROKER_3_2,
    BROKER_3_9,
    BROKER_4_0,
    BROKER_NEXT,
)
from kspec.spec.transactions.log.partition import PartitionTransactions
from kspec.spec.values import (
    NO_LEADER,
    UNKNOWN_OFFSET,
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
    fetch_of,
    fetched,
    follower,
    leader,
    log_of,
)

NEW: Partition[RecordLog] = Partition(PartitionId(0), LocalLog(EMPTY_LOG))


# ---- B1


@pytest.mark.parametrize("partition_epoch", [6, 7, 8])
def test_an_older_announcement_is_ignored_the_same_is_taken(partition_epoch: int) -> None:
    leads = become_leader(broker(), leader(log_of(5)), announced(SELF, 6, partition_epoch=partition_epoch), NOW)
    follows = become_follower(broker(), leader(log_of(5)), announced(OTHER, 6, partition_epoch=partition_epoch))
    taken = partition_epoch >= 7
    assert (leads.state.leader_epoch == 6, follows.state.leader == OTHER) == (taken, taken)


def test_up_to_2_8_only_a_later_leader_epoch_is_taken() -> None:
    same_epoch = announced(SELF, EPOCH, isr=(SELF,))
    assert become_leader(broker(BROKER_2_8), leader(log_of(5)), same_epoch, NOW).effects == ()
    assert become_leader(broker(BROKER_2_8), leader(log_of(5)), same_epoch, NOW).state.isr.isr == set(EVERYBODY)
    assert become_leader(broker(BROKER_3_2), leader(log_of(5)), same_epoch, NOW).state.isr.isr == {SELF}
    assert become_leader(broker(), leader(log_of(5)), same_epoch, NOW).state.isr.isr == {SELF}


# ---- B2


def test_a_new_leaders_epoch_starts_at_its_end_even_without_a_record() -> None:
    step = become_leader(broker(), follower(log_of(4, 4), 1), announced(SELF, 6), NOW)
    assert step.effects == (Persist(EpochOpened(Epoch(6), Offset(2))),)
    assert (step.state.epoch_start, step.state.local.log.latest_epoch) == (2, 6)
    assert (step.state.leader, step.state.leader_epoch, step.state.fetcher) == (SELF, 6, NOT_FETCHING)
    assert step.state.local.high_watermark == 1


def test_up_to_2_0_it_notes_nothing() -> None:
    step = become_leader(broker(BROKER_2_0), follower(log_of(4, 4)), announced(SELF, 6), NOW)
    assert (step.effects, step.state.local.log.latest_epoch) == ((), 4)


def test_in_the_same_epoch_the_leader_keeps_start_and_followers() -> None:
    ends = {OTHER: fetched(2), THIRD: fetched(1)}
    before = leader(log_of(4, 5), 1, follower_ends=ends, epoch_start=1)
    step = become_leader(broker(), before, announced(SELF, EPOCH, isr=(SELF, OTHER)), NOW)
    assert (step.state.epoch_start, step.state.followers) == (1, before.followers)
    assert step.state.local.high_watermark == 2, "an ISR without broker 3 commits what broker 2 has"


def test_a_pending_proposal_is_dropped() -> None:
    before = leader(log_of(5))
    pending = before._replace(isr=propose(before.isr, frozenset({SELF})).leader)
    assert nothing_pending(become_leader(broker(), pending, announced(SELF, EPOCH), NOW).state.isr)


def test_a_new_leader_forgets_its_followers_and_follows_the_assignment() -> None:
    step = become_leader(broker(), follower(log_of(4)), announced(SELF, 6, isr=(SELF, OTHER)), NOW)
    expected = (
        Follower(OTHER, forget(UNKNOWN_FOLLOWER, NOW, in_isr=True)),
        Follower(THIRD, forget(UNKNOWN_FOLLOWER, NOW, in_isr=False)),
    )
    assert step.state.followers == expected


# ---- B3, P11


def test_a_leader_that_must_follow_tells_whoever_waits_and_forgets_its_followers() -> None:
    waiting = handle_produce(broker(), leader(log_of(5)), ProduceRequest(9, ACKS_ALL, Batch(1)), NOW).state
    step = become_follower(broker(), waiting, announced(OTHER, 6))
    assert step.effects == (AnswerProducer(9, ProduceResponse(Error.NOT_LEADER_OR_FOLLOWER, Offset(1))),)
    after = step.state
    assert (after.followers, after.waiting, after.isr.isr, after.epoch_start) == ((), (), frozenset(), UNKNOWN_OFFSET)
    assert after.fetcher.leader == OTHER
    assert after.local.log.end_offset == 2, "nothing is truncated yet"


def test_the_fetcher_restarts_in_every_epoch_since_2_1() -> None:
    before = follower(log_of(4, 4))._replace(fetcher=follower(log_of(4)).fetcher)
    same = become_follower(broker(), before, announced(OTHER, EPOCH))
    assert same.state.fetcher == before.fetcher
    later = become_follower(broker(), before, announced(OTHER, 6))
    assert (later.state.fetcher.leader_epoch, later.state.fetcher.fetch_offset) == (6, 2)
    old = become_follower(broker(BROKER_2_0), before, announced(OTHER, 6))
    assert old.state.fetcher == before.fetcher
    other = become_follower(broker(BROKER_2_0), before, announced(THIRD, 6))
    assert (other.state.fetcher.leader, other.state.fetcher.status) == (THIRD, FetchStatus.TRUNCATING)


def test_a_failed_partition_is_fetched_again_in_a_new_epoch_only() -> None:
    before = follower(log_of(4), status=FetchStatus.FAILED)
    assert become_follower(broker(), before, announced(OTHER, EPOCH)).state.fetcher.status == FetchStatus.FAILED
    assert become_follower(broker(), before, announced(OTHER, 6)).state.fetcher.status == FetchStatus.FETCHING


def test_up_to_0_10_a_new_follower_truncates_at_once() -> None:
    step = become_follower(broker(BROKER_0_10), leader(log_of(5, 5), 1), announced(OTHER, 6))
    assert step.state.local.log.end_offset == step.state.fetcher.fetch_offset == 1
    assert step.effects == (Persist(LogTruncated(Offset(1))), RebuildProducers())
    kept = become_follower(broker(BROKER_0_11), leader(log_of(5, 5), 1), announced(OTHER, 6))
    assert (kept.state.local.log.end_offset, kept.effects) == (2, ())
    nothing_to_cut = become_follower(broker(BROKER_0_10), leader(log_of(5), 1), announced(OTHER, 6))
    assert nothing_to_cut.effects == ()


# ---- B5, B6


def test_a_new_follower_fetches_from_its_end_or_its_high_watermark() -> None:
    from_end = become_follower(broker(), leader(log_of(5, 5), 1), announced(OTHER, 6)).state.fetcher
    assert (from_end.status, from_end.fetch_offset) == (FetchStatus.FETCHING, 2)
    empty = become_follower(broker(), NEW, announced(OTHER, 6)).state.fetcher
    assert (empty.status, empty.fetch_offset) == (FetchStatus.TRUNCATING, 0)


def test_without_a_leader_nobody_is_followed() -> None:
    step = become_follower(broker(), leader(log_of(5)), announced(NO_LEADER, 6))
    assert (step.state.leader, step.state.fetcher) == (NO_LEADER, NOT_FETCHING)


def test_a_broker_that_shuts_down_stops_following_once_it_is_out_of_the_isr() -> None:
    leaving = broker(shutting_down=True)
    out = become_follower(leaving, follower(log_of(5)), announced(OTHER, 6, isr=(OTHER, THIRD)))
    assert out.state.fetcher == NOT_FETCHING
    assert become_follower(leaving, follower(log_of(5)), announced(OTHER, 6)).state.fetcher != NOT_FETCHING


# ---- deltas: B4


@pytest.mark.parametrize(
    ("change", "leads"),
    [
        (LocalChange(LocalRole.LEADER, announced(SELF, 6), elected=True), SELF),
        (LocalChange(LocalRole.FOLLOWER, announced(OTHER, 6)), OTHER),
        (UNCHANGED, SELF),
        (DELETED, NO_LEADER),
    ],
)
def test_a_delta_asks_for_one_role(change: LocalChange, leads: int) -> None:
    assert apply_change(broker(), leader(log_of(5)), change, NOW).state.leader == leads


def test_who_leaves_has_nothing_left_and_tells_whoever_waits() -> None:
    waiting = handle_produce(broker(), leader(log_of(5)), ProduceRequest(9, ACKS_ALL, Batch(1)), NOW).state
    step = leave(broker(), waiting)
    refused = AnswerProducer(9, ProduceResponse(Error.NOT_LEADER_OR_FOLLOWER, Offset(1)))
    assert step == (NEW, (refused, Persist(LogDeleted())))


def test_producers_are_rebuilt_from_the_log_and_no_guard_is_given_out_again() -> None:
    found = PartitionTransactions(rebuilt_from((ProducerBatch(ProducerId(4), ProducerEpoch(0), 3, 2),)))
    before = NEW._replace(transactions=PartitionTransactions(guards=3))
    after = producers_rebuilt(before, found)
    assert [entry.last_sequence for entry in after.producers] == [4]
    assert after.transactions.guards == 3


# ---- a start


def test_a_broker_that_acted_on_its_past_would_give_an_epoch_a_second_history() -> None:
    """It led epoch 5, lost the record at offset 1 that others have, and leads epoch 5 again: `has_caught_up` prevents it."""
    lost: Partition[RecordLog] = Partition(PartitionId(0), LocalLog(log_of(5)))
    again = become_leader(broker(), lost, announced(SELF, EPOCH), NOW).state
    other = handle_produce(broker(), again, ProduceRequest(9, ACKS_LEADER, Batch(1, payload=77)), NOW).state.local.log
    everybody = log_of(5, 5)
    assert not other.holds_as(everybody, Offset(1))
    unseen = read_partition(broker(), leader(everybody), fetch_of(OTHER, 2, last_epoch=EPOCH))
    assert (unseen.error, is_diverging(unseen)) == (Error.NONE, False)


# ---- Z19: the same leader over a missed epoch


def registration(leads: int, epoch: int, isr: tuple[Any, ...], partition_epoch: int) -> PartitionRegistration:
    return announced(SELF if leads == SELF else OTHER, epoch, isr, partition_epoch)


def before_the_elections(protocol: Any) -> Partition[RecordLog]:
    """Broker 1 leads epoch 5 and has two records that only broker 3 has fetched; an acks=all producer waits."""
    ends = {OTHER: fetched(0), THIRD: fetched(0)}
    partition = leader(EMPTY_LOG, isr=EVERYBODY, follower_ends=ends)
    appended = handle_produce(broker(protocol, min_isr=2), partition, ProduceRequest(9, ACKS_ALL, Batch(2)), NOW)
    return handle_fetch(broker(protocol, min_isr=2), appended.state, fetch_of(THIRD, 2), NOW).state


@pytest.mark.parametrize(
    ("protocol", "high_watermark", "acknowledged"), [(BROKER_3_9, 2, True), (BROKER_4_0, 2, True), (BROKER_NEXT, 0, False)]
)
def test_a_leader_elected_again_over_a_missed_epoch_trusts_old_fetches(
    protocol: Any, high_watermark: int, acknowledged: bool
) -> None:
    """Broker 2 leads epoch 6, in which broker 3 truncates; broker 1 hears of epochs 6 and 7 in one delta.

    It still holds that broker 3 has both records, commits them and tells the producer so. Nobody else has them.
    """
    before = registration(SELF, 5, EVERYBODY, 7)
    moved = merge(before, PartitionChangeRecord(PartitionId(0), leader=OTHER))
    back = merge(moved, PartitionChangeRecord(PartitionId(0), leader=SELF, isr=frozenset({SELF, THIRD})))
    change = local_change(before, back, SELF)
    assert (change.role, back.leader_epoch, back.partition_epoch) == (LocalRole.LEADER, 7, PartitionEpoch(9))
    step = apply_change(broker(protocol, min_isr=2), before_the_elections(protocol), change, NOW)
    assert step.state.local.high_watermark == high_watermark
    answers = [effect for effect in step.effects if isinstance(effect, AnswerProducer)]
    assert answers == ([AnswerProducer(9, ProduceResponse(Error.NONE, Offset(0)))] if acknowledged else [])


@pytest.mark.parametrize("protocol", [BROKER_4_0, BROKER_NEXT])
def test_no_epoch_missed_no_harm_done(protocol: Any) -> None:
    """Epoch 6 is broker 1's as well: nobody has truncated, and what broker 3 fetched counts on."""
    after = registration(SELF, 6, (SELF, THIRD), 8)
    step = become_leader(broker(protocol, min_isr=2), before_the_elections(protocol), after, NOW)
    assert step.state.local.high_watermark == 2


@pytest.mark.parametrize("protocol", [BROKER_4_0, BROKER_NEXT])
def test_an_epoch_followed_in_between_makes_it_forget(protocol: Any) -> None:
    follows = become_follower(broker(protocol), before_the_elections(protocol), registration(OTHER, 6, EVERYBODY, 8))
    step = become_leader(broker(protocol, min_isr=2), follows.state, registration(SELF, 7, (SELF, THIRD), 9), NOW)
    state = follower_of(step.state.followers, THIRD)
    assert state is not None
    assert (state.end_offset, step.state.local.high_watermark) == (UNKNOWN_OFFSET, 0)


def test_producers_that_have_expired_are_forgotten() -> None:
    batches = tuple(ProducerBatch(ProducerId(one), ProducerEpoch(0), 0, 1, Offset(one)) for one in (1, 2))
    known = producers_rebuilt(NEW, PartitionTransactions(rebuilt_from(batches)))
    assert producers_expired(known, ()) == known
    assert producers_expired(known, (ProducerId(1),)).producers == rebuilt_from(batches[1:])
