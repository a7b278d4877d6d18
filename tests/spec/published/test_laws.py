"""Inputs on which the published models' rules and those of a broker agree, and one on which they do not."""

from collections.abc import Callable, Iterator
from importlib import import_module
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kspec.spec import published
from kspec.spec.broker.effects import AnswerProducer
from kspec.spec.broker.follower import next_request, process_records
from kspec.spec.broker.leader.fetch import read_partition
from kspec.spec.broker.leader.isr import consider_joining, may_join
from kspec.spec.broker.leader.produce import handle_produce
from kspec.spec.broker.partition import Partition
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.broker.rules.divergence import AGREES, diverges
from kspec.spec.broker.rules.epoch_lookup import look_up_as_designed, look_up_as_released, look_up_end_only
from kspec.spec.broker.rules.fencing import check_leader_epoch, check_serves_unfenced
from kspec.spec.broker.rules.fetcher import (
    FetchStatus,
    after_truncation,
    needs_no_answer,
    start_at_high_watermark,
    start_by_asking,
    started,
    truncation_by_answer,
)
from kspec.spec.broker.rules.followers import Follower, FollowerFetch, FollowerState, after_fetch, forget
from kspec.spec.broker.rules.high_watermark import awaited_if_caught_up, leader_high_watermark
from kspec.spec.broker.rules.isr.announcement import is_later_leader_epoch
from kspec.spec.broker.rules.isr.membership import has_reached_high_watermark, out_of_sync
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr, isr_with, isr_without
from kspec.spec.broker.rules.produce import completion
from kspec.spec.broker.rules.truncation import truncation_step
from kspec.spec.controller.rules.isr_proposals import proposed_isr
from kspec.spec.log.batch import Batch
from kspec.spec.log.local_log import LocalLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import FetchPosition, FetchRequest, FetchResponse
from kspec.spec.messages.produce import ACKS_ALL, ACKS_LEADER, ACKS_NONE, ProduceRequest
from kspec.spec.published.async_isr import change_isr, high_watermark_of, may_propose_expand, may_propose_shrink
from kspec.spec.published.election import (
    fail_broker_emptying_isr,
    may_elect_cleanly,
    may_elect_uncleanly,
    may_fail,
    may_lead_next,
)
from kspec.spec.published.fetch import (
    answer_fetch,
    apply_fetch_response,
    fetch_fenced_by_last_epoch,
    fetch_fenced_by_leader_epoch,
    fetch_request,
    fetch_without_fencing,
)
from kspec.spec.published.high_watermark import (
    has_record_to_commit,
    holds_back_high_watermark,
    replicated_by_last_epoch,
    replicated_by_leader_epoch,
    replicated_by_offset,
)
from kspec.spec.published.isr import (
    join_after_epoch_start,
    join_at_high_watermark,
    may_join_isr,
    may_leave_isr,
    with_replica,
    without_replica,
)
from kspec.spec.published.produce import acknowledged_on_append, acknowledged_on_commit, append_as_leader
from kspec.spec.published.replica import role_after_restart
from kspec.spec.published.truncation import (
    answer_anyone,
    clamped,
    look_up_in_records,
    truncate_to_common_epoch,
    truncate_to_epoch_end,
    truncate_to_high_watermark,
)
from kspec.spec.releases.broker import BROKER_2_0, BROKER_2_1, BROKER_2_7, BROKER_2_8
from kspec.spec.step import SendToController
from kspec.spec.values import (
    NO_EPOCH,
    NO_LEADER,
    NO_PARTITION_EPOCH,
    UNDEFINED_EPOCH_END,
    BrokerEpoch,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    LeaderAndIsr,
    MonotonicMs,
    Offset,
    PartitionEpoch,
    PartitionId,
    Record,
)
from kspec.spec.zookeeper.decisions import elect_cleanly, elect_uncleanly
from kspec.spec.zookeeper.node import ConditionalWrite, PartitionNode, isr_write, write_partition, written_node
from kspec.spec.zookeeper.rules import elect_offline, elect_preferred, keep_last
from tests.limits.turns import Turns
from tests.spec.broker_driver import EPOCH, EVERYBODY, NOW, OTHER, SELF, THIRD, broker, fetched, follower, leader, log_of
from tests.spec.strategies import brokers, epochs_or_none, fetches, isrs, offsets, record_logs, replica_logs, roles

ROLE = LeaderAndIsr(SELF, EPOCH, frozenset(EVERYBODY))
FOLLOWERS = (OTHER, THIRD)
ends = st.integers(-1, 6).map(Offset)
members = st.frozensets(st.sampled_from(FOLLOWERS)).map(lambda others: others | {SELF})


def published_rules() -> Iterator[Callable[..., Any]]:
    for file in sorted(Path(published.__path__[0]).glob("*.py")):
        module = import_module(f"kspec.spec.published.{file.stem}")
        yield from (rule for _, rule in getmembers(module, isfunction) if rule.__module__ == module.__name__)


@pytest.mark.parametrize("rule", list(published_rules()), ids=lambda rule: rule.__name__)
def test_a_published_rule_says_how_it_departs_and_has_a_law_here(rule: Callable[..., Any]) -> None:
    assert "**Departs:**" in str(rule.__doc__)
    assert globals()[rule.__name__] == rule


# ---- fetching


@given(record_logs())
def test_a_fetch_is_that_of_a_broker_unless_an_epoch_is_opened(log: RecordLog) -> None:
    asked = next_request(broker(BROKER_2_8), follower(log))
    assert isinstance(asked, FetchRequest)
    role = LeaderAndIsr(OTHER, EPOCH, frozenset())
    assert (asked.fetch == fetch_request(role, log, log.end_offset)) == (log.opened_epoch == NO_EPOCH)


FENCES = [
    pytest.param(fetch_without_fencing, BROKER_2_0, id="2.0"),
    pytest.param(fetch_fenced_by_leader_epoch, BROKER_2_1, id="2.1"),
]


def in_role(role: LeaderAndIsr, log: RecordLog, high_watermark: Offset) -> Partition[RecordLog]:
    members = LeaderIsr(role.isr, PartitionEpoch(7), frozenset(), NO_PARTITION_EPOCH)
    return leader(log, high_watermark, leader=role.leader, leader_epoch=role.leader_epoch, isr=())._replace(isr=members)


@pytest.mark.parametrize(("fence", "protocol"), FENCES)
@given(roles(), record_logs(), fetches(), offsets, st.integers(0, 3))
def test_an_assigned_follower_is_answered_as_by_a_broker(
    fence: Callable[..., Error],
    protocol: BrokerProtocol,
    role: LeaderAndIsr,
    log: RecordLog,
    asked: FetchPosition,
    high_watermark: Offset,
    max_records: int,
) -> None:
    answer = answer_fetch(SELF, role, log, high_watermark, asked, max_records, fence(role, log, asked))
    request = FetchRequest(OTHER, asked, max_records=max_records)
    assert answer == read_partition(broker(protocol), in_role(role, log, high_watermark), request)


def test_a_broker_also_looks_whether_the_follower_is_assigned_and_later_where_the_logs_part() -> None:
    log, asked = log_of(1, 5), FetchPosition(EPOCH, Offset(2), Epoch(4))
    answer = answer_fetch(SELF, ROLE, log, Offset(0), asked, 1, fetch_fenced_by_leader_epoch(ROLE, log, asked))
    request = FetchRequest(OTHER, asked, max_records=1)
    unassigned = read_partition(broker(), leader(log)._replace(followers=()), request)
    parted = read_partition(broker(BROKER_2_8), leader(log), request)
    assert answer.error == Error.NONE
    assert unassigned.error == Error.UNKNOWN_LEADER_EPOCH
    assert (answer.diverging, parted.diverging) == (UNDEFINED_EPOCH_END, EpochEndOffset(Epoch(1), Offset(1)))


@given(replica_logs())
def test_of_a_log_of_the_same_leaders_the_last_epoch_is_refused_where_kip_595_sees_them_part(pair: Any) -> None:
    own, theirs = (
        EMPTY_LOG.append(tuple(Record(value, Epoch(epoch)) for epoch, value in log.pairs)).open_epoch(Epoch(9))
        for log in pair
    )
    assume(own.end_offset <= theirs.end_offset and own.end_offset > 0)
    asked = fetch_request(ROLE, own, own.end_offset)
    refused = fetch_fenced_by_last_epoch(ROLE, theirs, asked) != Error.NONE
    assert refused == (diverges(theirs, asked) != AGREES)


def test_of_other_logs_the_last_epoch_is_refused_where_kip_595_sees_no_difference() -> None:
    asked = FetchPosition(EPOCH, Offset(1), Epoch(2))
    assert fetch_fenced_by_last_epoch(ROLE, log_of(1, 2), asked) == Error.LOG_TRUNCATION
    assert diverges(log_of(1, 2), asked) == AGREES


@given(record_logs(), st.lists(st.integers(0, 5), max_size=3), offsets)
def test_a_follower_takes_what_a_broker_takes_from_its_end(
    log: RecordLog, record_epochs: list[int], high_watermark: Offset
) -> None:
    records = tuple(Record(7, Epoch(epoch)) for epoch in record_epochs)
    answer = FetchResponse(Error.NONE, log.end_offset, records, high_watermark, log.start_offset)
    after = process_records(broker(BROKER_2_1), follower(log, log.start_offset), EPOCH, answer)
    assert after.state.local == apply_fetch_response(log, answer)


def test_a_broker_also_deletes_what_its_leader_has_deleted() -> None:
    log = log_of(1, 1)
    answer = FetchResponse(Error.NONE, Offset(2), (), Offset(2), Offset(1))
    after = process_records(broker(BROKER_2_1), follower(log), EPOCH, answer)
    assert after.state.local.log.start_offset == 1
    assert apply_fetch_response(log, answer).log.start_offset == 0


# ---- what a leader knows of a follower


def noted(fetch: FetchPosition, leader_end: Offset) -> FollowerState:
    return after_fetch(FollowerState(), FollowerFetch(NOW, fetch.fetch_offset, Offset(0), leader_end, BrokerEpoch(-1)))


@given(roles(), record_logs(), fetches(), offsets)
def test_by_offset_a_follower_has_replicated_what_a_broker_has_noted(
    role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition, offset: Offset
) -> None:
    end = noted(fetch, log.end_offset).end_offset
    assert replicated_by_offset(role, log, fetch, offset) == has_reached_high_watermark(end, offset, Offset(0))


def test_a_new_leader_forgets_what_the_published_one_still_counts() -> None:
    log, fetch = log_of(1, 1), FetchPosition(Epoch(1), Offset(2), Epoch(1))
    forgotten = forget(noted(fetch, log.end_offset), NOW, in_isr=True).end_offset
    assert replicated_by_offset(ROLE, log, fetch, Offset(2))
    assert not has_reached_high_watermark(forgotten, Offset(2), Offset(0))


@given(record_logs(in_order=True), offsets)
def test_by_last_epoch_a_follower_with_the_leaders_records_has_replicated_as_by_offset(log: RecordLog, kept: Offset) -> None:
    own = log.truncate_to(max(kept, log.start_offset))
    fetch = fetch_request(ROLE, own, own.end_offset)
    assert replicated_by_last_epoch(ROLE, log, fetch, own.end_offset)
    assert replicated_by_offset(ROLE, log, fetch, own.end_offset)


def test_by_last_epoch_a_follower_has_not_replicated_what_lies_in_an_earlier_epoch() -> None:
    log = log_of(1, 2)
    fetch = fetch_request(ROLE, log, log.end_offset)
    assert not replicated_by_last_epoch(ROLE, log, fetch, Offset(1))
    assert replicated_by_offset(ROLE, log, fetch, Offset(1))


@given(roles(), record_logs(), fetches(), offsets)
def test_a_fetch_that_names_an_epoch_counts_as_behind_a_brokers_fence(
    role: LeaderAndIsr, log: RecordLog, fetch: FetchPosition, offset: Offset
) -> None:
    passes = check_leader_epoch(role, fetch.current_leader_epoch) == Error.NONE
    counts = passes and has_reached_high_watermark(fetch.fetch_offset, offset, Offset(0))
    names_no_epoch = fetch.current_leader_epoch == NO_EPOCH
    assert replicated_by_leader_epoch(role, log, fetch, offset) == (counts and not names_no_epoch)


# ---- the high watermark


@given(st.integers(0, 4), offsets, members, st.tuples(ends, ends))
def test_step_by_step_the_high_watermark_gets_where_a_broker_moves_it(
    records: int, high_watermark: Offset, isr: frozenset[BrokerId], known: tuple[Offset, Offset]
) -> None:
    log, role = log_of(*[1] * records), ROLE._replace(isr=isr)
    assume(high_watermark <= log.end_offset)
    fetch_of = {replica: FetchPosition(EPOCH, end, NO_EPOCH) for replica, end in zip(FOLLOWERS, known, strict=True)}
    reached = high_watermark
    turns = Turns()
    while has_record_to_commit(log, reached) and not any(
        holds_back_high_watermark(role, replica, replicated_by_offset(role, log, fetch, Offset(reached + 1)))
        for replica, fetch in fetch_of.items()
    ):
        turns.go()
        reached = Offset(reached + 1)
    awaited = tuple(fetch.fetch_offset for replica, fetch in fetch_of.items() if replica in isr)
    assert reached == leader_high_watermark(high_watermark, log.end_offset, awaited, may_advance=True)


def test_a_broker_from_0_10_2_on_also_waits_for_who_is_about_to_join() -> None:
    role = ROLE._replace(isr=frozenset({SELF}))
    assert not holds_back_high_watermark(role, OTHER, has_replicated=False)
    assert awaited_if_caught_up(in_isr=False, caught_up=True, eligible=True)


known_ends = st.fixed_dictionaries(dict.fromkeys(EVERYBODY, offsets))


@given(known_ends, members, offsets)
def test_a_high_watermark_that_is_not_kept_is_the_brokers_unless_that_is_higher(
    end_offsets: dict[BrokerId, Offset], counted: frozenset[BrokerId], so_far: Offset
) -> None:
    awaited = tuple(end_offsets[replica] for replica in counted - {SELF})
    kept = leader_high_watermark(so_far, end_offsets[SELF], awaited, may_advance=True)
    assert kept == max(so_far, high_watermark_of(SELF, end_offsets, counted))


def test_a_high_watermark_that_is_not_kept_goes_back_when_somebody_joins() -> None:
    end_offsets = {SELF: Offset(2), OTHER: Offset(1)}
    assert high_watermark_of(SELF, end_offsets, frozenset({SELF})) == 2
    assert high_watermark_of(SELF, end_offsets, frozenset({SELF, OTHER})) == 1
    assert leader_high_watermark(Offset(2), Offset(2), (Offset(1),), may_advance=True) == 2


# ---- leaving and joining the ISR


def known(end_offsets: tuple[Offset, Offset], caught_up_time: int = 0) -> tuple[Follower, ...]:
    pairs = zip(FOLLOWERS, end_offsets, strict=True)
    return tuple(Follower(replica, FollowerState(end, caught_up_time=MonotonicMs(caught_up_time))) for replica, end in pairs)


@given(members, st.tuples(ends, ends), st.integers(0, 6))
def test_without_patience_a_broker_drops_whoever_may_leave(
    isr: frozenset[BrokerId], end_offsets: tuple[Offset, Offset], leader_end: int
) -> None:
    assume(max(end_offsets) <= leader_end)
    log, role = log_of(*[1] * leader_end), ROLE._replace(isr=isr)
    fetch_of = {replica: FetchPosition(EPOCH, end, NO_EPOCH) for replica, end in zip(FOLLOWERS, end_offsets, strict=True)}
    leaving = {
        replica
        for replica, fetch in fetch_of.items()
        if may_leave_isr(role, replica, replicated_by_offset(role, log, fetch, log.end_offset))
    }
    assert leaving == out_of_sync(isr, SELF, known(end_offsets), log.end_offset, NOW, max_lag=0)
    assert all(may_propose_shrink(LeaderIsr(isr, PartitionEpoch(7), isr, PartitionEpoch(7)), SELF, one) for one in leaving)


def test_a_broker_waits_for_a_lag_to_last() -> None:
    followers = known((Offset(1), Offset(2)), caught_up_time=NOW)
    assert may_leave_isr(ROLE, OTHER, has_replicated_all=False)
    assert may_propose_shrink(leader(log_of(1, 1)).isr, SELF, OTHER)
    assert out_of_sync(ROLE.isr, SELF, followers, Offset(2), NOW, max_lag=30_000) == frozenset()


@given(members, ends, offsets)
def test_up_to_2_0_whoever_may_join_is_proposed_by_a_broker(
    isr: frozenset[BrokerId], end: Offset, high_watermark: Offset
) -> None:
    log = log_of(1, 1, 5)
    partition = leader(log, high_watermark, tuple(isr), {OTHER: fetched(end)}, epoch_start=2)
    role, fetch = ROLE._replace(isr=isr), FetchPosition(EPOCH, end, NO_EPOCH)
    joins = join_at_high_watermark(role, log, high_watermark)
    joins = joins and may_join_isr(role, OTHER, replicated_by_offset(role, log, fetch, high_watermark))
    assert joins == may_join(broker(BROKER_2_0), partition, OTHER, NOW)


@given(members, ends, st.lists(st.integers(0, 4), max_size=3), st.integers(0, 3), offsets)
def test_since_2_1_whoever_may_join_is_proposed_by_a_broker_and_nobody_else_above_the_epochs_start(
    isr: frozenset[BrokerId], end: Offset, earlier: list[int], own: int, high_watermark: Offset
) -> None:
    log = log_of(*sorted(earlier), *[EPOCH] * own)
    assume(high_watermark <= log.end_offset)
    epoch_start = len(earlier)
    partition = leader(log, high_watermark, tuple(isr), {OTHER: fetched(end)}, epoch_start)
    role, fetch = ROLE._replace(isr=isr), FetchPosition(EPOCH, end, NO_EPOCH)
    joins = join_after_epoch_start(role, log, high_watermark)
    joins = joins and may_join_isr(role, OTHER, replicated_by_leader_epoch(role, log, fetch, high_watermark))
    proposed = may_join(broker(BROKER_2_1), partition, OTHER, NOW)
    assert proposed or not joins
    assert proposed == joins or high_watermark < epoch_start


def test_a_broker_since_2_1_admits_who_has_reached_the_epochs_start_before_that_is_committed() -> None:
    log, role = log_of(1, 5), ROLE._replace(isr=frozenset({SELF}))
    partition = leader(log, 0, (SELF,), {OTHER: fetched(1)}, epoch_start=1)
    assert not join_after_epoch_start(role, log, Offset(0))
    assert may_join(broker(BROKER_2_1), partition, OTHER, NOW)


def test_a_broker_proposes_nobody_while_a_proposal_is_unanswered() -> None:
    partition = leader(log_of(1), 1, (SELF,), {OTHER: fetched(1)})
    pending = partition.isr._replace(pending_epoch=PartitionEpoch(7))
    assert may_join_isr(ROLE._replace(isr=frozenset({SELF})), OTHER, has_replicated_committed=True)
    assert may_propose_expand(pending, OTHER, Offset(1), Offset(1))
    assert may_join(broker(BROKER_2_7), partition, OTHER, NOW)
    assert not may_join(broker(BROKER_2_7), partition._replace(isr=pending), OTHER, NOW)


@given(members, ends, offsets)
def test_with_nothing_pending_a_leader_by_kip_497_proposes_as_a_broker(
    isr: frozenset[BrokerId], end: Offset, high_watermark: Offset
) -> None:
    partition = leader(log_of(1, 1), high_watermark, tuple(isr), {OTHER: fetched(end)})
    assert may_propose_expand(partition.isr, OTHER, end, high_watermark) == may_join(
        broker(BROKER_2_7), partition, OTHER, NOW
    )


@given(roles(), brokers)
def test_the_proposed_states_have_the_isrs_that_a_broker_proposes(role: LeaderAndIsr, replica: BrokerId) -> None:
    assert with_replica(role, replica) == role._replace(isr=isr_with(role.isr, replica))
    assert without_replica(role, replica) == role._replace(isr=isr_without(role.isr, frozenset({replica})))


def test_a_proposed_isr_is_in_force_at_once_and_in_a_broker_when_it_is_granted() -> None:
    partition, role = leader(log_of(1), 1, (SELF,), {OTHER: fetched(1)}), ROLE._replace(isr=frozenset({SELF}))
    step = consider_joining(broker(BROKER_2_7), partition, OTHER, NOW)
    ((request,),) = ([effect.message for effect in step.effects if isinstance(effect, SendToController)],)
    assert proposed_isr(request) == with_replica(role, OTHER).isr == {SELF, OTHER}
    assert step.state.isr.isr == {SELF}


@given(isrs, isrs, st.integers(0, 5).map(PartitionEpoch))
def test_a_changed_isr_is_what_a_write_to_zookeeper_leaves(
    isr: frozenset[BrokerId], proposed: frozenset[BrokerId], epoch: PartitionEpoch
) -> None:
    write = isr_write(PartitionId(0), ROLE._replace(isr=proposed), Epoch(1), epoch)
    node = written_node(write)
    assert change_isr(PartitionIsr(isr, epoch), proposed) == PartitionIsr(node.state.isr, node.partition_epoch)


def test_a_write_to_zookeeper_that_is_refused_changes_nothing() -> None:
    node = PartitionNode(ROLE, Epoch(1), PartitionEpoch(4))
    write = ConditionalWrite(PartitionId(0), ROLE._replace(isr=frozenset({SELF})), Epoch(1), PartitionEpoch(3))
    assert write_partition(node, Epoch(1), write).node == node
    assert change_isr(PartitionIsr(ROLE.isr, PartitionEpoch(4)), frozenset({SELF})).partition_epoch == 5


# ---- writing


@given(record_logs(in_order=True), st.integers(0, 9), st.sampled_from([ACKS_ALL, ACKS_NONE, ACKS_LEADER]))
def test_one_record_is_written_and_answered_as_by_a_broker_that_is_not_alone(log: RecordLog, value: int, acks: int) -> None:
    step = handle_produce(broker(), leader(log), ProduceRequest(1, acks, Record(value, NO_EPOCH)), NOW)
    assert step.state.local.log == append_as_leader(log, EPOCH, value)
    assert any(isinstance(effect, AnswerProducer) for effect in step.effects) == acknowledged_on_append(acks)


def test_a_broker_that_is_alone_in_sync_answers_acks_all_at_once_and_appends_batches() -> None:
    step = handle_produce(broker(), leader(EMPTY_LOG, isr=(SELF,)), ProduceRequest(1, ACKS_ALL, Batch(2)), NOW)
    assert any(isinstance(effect, AnswerProducer) for effect in step.effects)
    assert not acknowledged_on_append(ACKS_ALL)
    assert step.state.local.log.end_offset == append_as_leader(EMPTY_LOG, EPOCH, 7).end_offset + 1


@given(members, offsets, offsets, st.integers(1, 4))
def test_what_is_committed_is_acknowledged_as_by_a_leader(
    isr: frozenset[BrokerId], required: Offset, high_watermark: Offset, min_isr: int
) -> None:
    told = completion(True, high_watermark, required, len(isr), min_isr)
    acknowledged = acknowledged_on_commit(ROLE._replace(isr=isr), ACKS_ALL, high_watermark, min_isr)
    assert (told == Error.NONE) == (acknowledged and required <= high_watermark)


def test_a_deposed_broker_acknowledges_nothing() -> None:
    assert completion(False, Offset(1), Offset(1), 3, 1) == Error.NOT_LEADER_OR_FOLLOWER
    assert acknowledged_on_commit(ROLE, ACKS_ALL, Offset(1), 1)


# ---- elections, failures, restarts


@given(roles(), brokers)
def test_an_alive_replica_may_be_elected_cleanly_if_kafka_would_elect_it_anew(
    state: LeaderAndIsr, candidate: BrokerId
) -> None:
    elected = elect_preferred((candidate,), state, frozenset({candidate}))
    assert may_elect_cleanly(state, candidate) == (elected is not None and state.leader != candidate)
    assert elected in (None, elect_cleanly(state, candidate))


@given(roles(), brokers)
def test_of_a_partition_without_a_leader_the_only_alive_replica_is_elected_as_in_kafka(
    state: LeaderAndIsr, candidate: BrokerId
) -> None:
    leaderless = state._replace(leader=NO_LEADER)
    elected = elect_offline((candidate,), leaderless, frozenset({candidate}), unclean=True)
    if may_elect_uncleanly(leaderless, candidate):
        assert elected == elect_uncleanly(leaderless, candidate)
    else:
        assert elected == elect_cleanly(leaderless._replace(isr=frozenset({candidate})), candidate)


def test_kafka_elects_uncleanly_only_if_nobody_in_sync_is_alive() -> None:
    state = LeaderAndIsr(NO_LEADER, EPOCH, frozenset({OTHER}))
    elected = elect_offline((THIRD, OTHER), state, frozenset({OTHER, THIRD}), unclean=True)
    assert may_elect_uncleanly(state, THIRD)
    assert elected == elect_cleanly(state, OTHER)


@given(roles(), st.permutations([SELF, OTHER, THIRD]), isrs, st.booleans())
def test_whom_kafka_elects_may_lead_next(
    state: LeaderAndIsr, replicas: list[BrokerId], online: frozenset[BrokerId], unclean: bool
) -> None:
    leaderless = state._replace(leader=NO_LEADER)
    elected = elect_offline(tuple(replicas), leaderless, online, unclean)
    assert elected is None or may_lead_next(leaderless, elected.leader, unclean)


def test_kafka_elects_nobody_who_is_down() -> None:
    state = LeaderAndIsr(NO_LEADER, EPOCH, frozenset({OTHER}))
    assert may_lead_next(state, OTHER, unclean=False)
    assert elect_offline((OTHER,), state, frozenset(), unclean=False) is None


@given(roles(), brokers)
def test_whose_failure_changes_nothing_may_not_fail(state: LeaderAndIsr, failed: BrokerId) -> None:
    after = keep_last(state, failed, unclean=False)
    changes = (after.leader, after.isr) != (state.leader, state.isr)
    is_last = state.leader != failed and state.isr == {failed}
    assert may_fail(state, failed) == (changes or is_last)


@given(roles(), brokers)
def test_a_failed_broker_is_removed_as_in_kafka_unless_it_is_the_last_one_in_sync(
    state: LeaderAndIsr, failed: BrokerId
) -> None:
    agree = fail_broker_emptying_isr(state, failed) == keep_last(state, failed, unclean=False)
    assert agree == (state.leader == failed or state.isr != {failed})


@given(roles(), roles())
def test_a_restarted_replica_takes_the_present_state_as_a_started_broker_does(
    partition: LeaderAndIsr, announced: LeaderAndIsr
) -> None:
    takes = is_later_leader_epoch(role_after_restart(partition).leader_epoch, announced.leader_epoch)
    starts_with = Partition(PartitionId(0), LocalLog(EMPTY_LOG)).leader_epoch
    assert is_later_leader_epoch(starts_with, announced.leader_epoch)
    assert takes == (announced.leader_epoch >= partition.leader_epoch)


# ---- truncation


@given(record_logs(), offsets)
def test_a_follower_of_0_10_keeps_what_a_broker_keeps(log: RecordLog, high_watermark: Offset) -> None:
    kept = truncate_to_high_watermark(log, high_watermark, lambda epoch: UNDEFINED_EPOCH_END)
    assert kept == start_at_high_watermark(log, high_watermark).fetch_offset


@given(record_logs(), record_logs(), offsets)
def test_once_it_is_clamped_kip_101_keeps_what_a_brokers_fetcher_keeps(
    log: RecordLog, leader_log: RecordLog, high_watermark: Offset
) -> None:
    assume(log.latest_epoch != NO_EPOCH)
    kept = clamped(truncate_to_epoch_end(log, high_watermark, lambda epoch: look_up_end_only(leader_log, epoch)), log)
    assert kept == truncation_step(log, high_watermark, look_up_end_only(leader_log, log.latest_epoch)).offset


def test_as_published_kip_101_would_keep_more_than_there_is() -> None:
    log, leader_log = log_of(1), log_of(1, 1)
    assert truncate_to_epoch_end(log, Offset(0), lambda epoch: look_up_end_only(leader_log, epoch)) == 2
    assert truncation_step(log, Offset(0), look_up_end_only(leader_log, Epoch(1))).offset == 1


def kept_by_fetcher(log: RecordLog, high_watermark: Offset, ask: Callable[[Epoch], EpochEndOffset]) -> Offset:
    """The log end of a broker that asks by the rules of its fetcher until it may fetch."""
    fetcher = started(
        follower(log).fetcher._replace(leader_epoch=Epoch(0)), OTHER, EPOCH, start_by_asking(log, high_watermark)
    )
    turns = Turns()
    while fetcher.status == FetchStatus.TRUNCATING:
        turns.go()
        if needs_no_answer(fetcher, log):
            return log.truncate_to(fetcher.fetch_offset).end_offset
        truncation = truncation_by_answer(fetcher, log, ask(log.latest_epoch))
        log = log.truncate_to(truncation.offset)
        fetcher = after_truncation(fetcher, truncation, log)
    return log.end_offset


@given(record_logs(), record_logs(), offsets)
def test_answers_as_designed_leave_what_they_leave_a_broker(
    log: RecordLog, leader_log: RecordLog, high_watermark: Offset
) -> None:
    assume(log.latest_epoch != NO_EPOCH)

    def ask(epoch: Epoch) -> EpochEndOffset:
        return look_up_as_designed(leader_log, epoch)

    assert truncate_to_common_epoch(log, high_watermark, ask) == kept_by_fetcher(log, high_watermark, ask)


def test_after_a_first_truncation_an_undefined_answer_cuts_no_more_from_a_broker() -> None:
    """Its fetcher has put the offset that it truncated to in the place of the high watermark."""
    log, answers = log_of(0, 1, 3), {Epoch(3): EpochEndOffset(Epoch(2), Offset(2)), Epoch(1): UNDEFINED_EPOCH_END}
    assert truncate_to_common_epoch(log, Offset(1), answers.__getitem__) == 1
    assert kept_by_fetcher(log, Offset(1), answers.__getitem__) == 2


@given(brokers, roles(), epochs_or_none)
def test_whoever_answers_anyone_answers_as_a_broker_where_it_leads(
    self_id: BrokerId, role: LeaderAndIsr, claimed: Epoch
) -> None:
    published = answer_anyone(self_id, role, claimed, True)
    assert (published == check_serves_unfenced(self_id, role, claimed, True)) == (role.leader == self_id)


def test_kip_279_looks_epochs_up_as_released_except_above_the_latest_and_below_the_first() -> None:
    log = log_of(1, 1, 3)
    asked = [Epoch(epoch) for epoch in range(-1, 5)]
    assert [epoch for epoch in asked if look_up_as_designed(log, epoch) == look_up_as_released(log, epoch)] == [1, 2, 3]


@given(record_logs(), epochs_or_none)
def test_kip_101_finds_in_records_what_the_history_has_where_epochs_grow(log: RecordLog, epoch: Epoch) -> None:
    assume(epoch != NO_EPOCH)
    epochs = [record.leader_epoch for record in log.records]
    assume(epochs == sorted(epochs))
    found = look_up_in_records(log, epoch)
    assert found.end_offset == look_up_as_released(log, epoch).end_offset
    if found != UNDEFINED_EPOCH_END and epoch >= log.epoch_history.entries[0].leader_epoch:
        assert found == look_up_end_only(log, epoch)


def test_records_have_epochs_that_the_history_has_forgotten_where_epochs_go_back() -> None:
    log, asked = log_of(0, 2, 1), Epoch(0)
    assert look_up_in_records(log, asked).end_offset == 1
    assert look_up_as_released(log, asked).end_offset == 2
    assert log.epoch_history.latest_epoch == 1


def test_0_11_does_not_place_an_epoch_below_all_of_the_log() -> None:
    log = log_of(1, 1, 3)
    assert look_up_in_records(log, Epoch(0)).end_offset == 0
    assert look_up_end_only(log, Epoch(0)) == UNDEFINED_EPOCH_END
