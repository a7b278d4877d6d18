"""Changes of a partition: reassignment, eligible leaders, elections, epochs (rules A8, L2 to L5, L8, L9, L12)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.controller.decisions import change_partition
from kspec.spec.controller.protocol import Controller, ControllerProtocol, ControllerSettings
from kspec.spec.controller.rules.partition_change import (
    Election,
    ElectionOutcome,
    PartitionTarget,
    complete_when_added_are_in_sync,
    complete_when_added_are_in_sync_unless_fewer_stay,
    complete_when_added_that_stay_are_in_sync,
    complete_when_all_are_in_sync,
    elect,
    elect_first_in_sync,
    last_known_leader_if_assigned,
    last_known_leader_if_up,
    last_known_leader_never,
    last_known_leader_up_or_down,
    record_last_known_leader,
    record_last_known_leader_once,
    removes_replica,
    removes_replica_or_shrinks_isr,
    take_from_eligible,
    unchanged,
    with_assigned_eligible_leaders,
    with_eligible_leaders,
)
from kspec.spec.metadata import (
    NOBODY,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    PartitionRegistration,
    merge,
)
from kspec.spec.releases.kraft import KRAFT_3_0, KRAFT_3_2, KRAFT_3_5, KRAFT_3_9, KRAFT_4_0, KRAFT_NEXT, KRAFT_RELEASES
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, PartitionEpoch, PartitionId
from tests.spec.controller_driver import ids, order

PARTITION = PartitionId(0)
ELR = ControllerSettings(min_isr=2, eligible_leader_replicas=True)


def partition(leader: int = 1, isr: tuple[int, ...] = (1, 2, 3), **fields: Any) -> PartitionRegistration:
    made = PartitionRegistration(order(1, 2, 3), ids(*isr), BrokerId(leader), Epoch(5), PartitionEpoch(7))
    return made._replace(**fields)


def target(**fields: Any) -> PartitionTarget:
    return unchanged(partition())._replace(**fields)


# ---- reassignment


@pytest.mark.parametrize(
    ("moving", "added_rule", "all_rule"),
    [
        pytest.param(target(), False, False, id="nothing moves"),
        pytest.param(target(adding=ids(3), isr=ids(1, 3)), True, False, id="added in sync, an old one is not"),
        pytest.param(target(adding=ids(3), isr=ids(1, 2, 3)), True, True, id="all in sync"),
        pytest.param(target(adding=ids(3), isr=ids(1, 2)), False, False, id="added not in sync"),
        pytest.param(target(removing=ids(3), isr=ids(1, 2)), True, True, id="only one goes"),
        pytest.param(target(removing=ids(3), isr=ids(3)), False, False, id="nobody else in sync"),
        pytest.param(target(removing=ids(1, 2, 3)), False, False, id="nobody would stay"),
    ],
)
def test_when_a_reassignment_is_over(moving: PartitionTarget, added_rule: bool, all_rule: bool) -> None:
    assert (complete_when_added_are_in_sync(moving) != moving) is added_rule
    assert (complete_when_all_are_in_sync(moving) != moving) is all_rule


def test_the_end_of_a_reassignment() -> None:
    over = complete_when_all_are_in_sync(target(adding=ids(2), removing=ids(3)))
    assert over == target(replicas=order(1, 2), isr=ids(1, 2), adding=NOBODY, removing=NOBODY)


# ---- eligible leaders


@pytest.mark.parametrize(
    ("before", "isr", "unclean", "elr", "last_known"),
    [
        pytest.param(partition(), ids(1, 2), NOBODY, NOBODY, NOBODY, id="enough in sync"),
        pytest.param(partition(), ids(1), NOBODY, ids(2, 3), NOBODY, id="too few in sync"),
        pytest.param(partition(isr=(1,), elr=ids(2)), ids(1), ids(2), NOBODY, ids(2), id="unclean shutdown"),
        pytest.param(partition(isr=(1,), elr=ids(2)), NOBODY, NOBODY, ids(1, 2), NOBODY, id="nobody in sync"),
        pytest.param(partition(isr=(1,), elr=ids(2)), ids(1, 2), NOBODY, NOBODY, NOBODY, id="enough again"),
        pytest.param(partition(isr=(1,), last_known_elr=ids(3)), ids(1), NOBODY, NOBODY, ids(3), id="last known are kept"),
    ],
)
def test_eligible_leaders(
    before: PartitionRegistration,
    isr: frozenset[BrokerId],
    unclean: frozenset[BrokerId],
    elr: frozenset[BrokerId],
    last_known: frozenset[BrokerId],
) -> None:
    listed = with_eligible_leaders(before, unchanged(before)._replace(isr=isr), 2, unclean)
    assert (listed.elr, listed.last_known_elr) == (elr, last_known)


def test_who_is_no_replica_any_more_stays_eligible_in_kafka() -> None:
    """No release asks whether an eligible replica is still assigned; `next` does."""
    to_one = target(replicas=order(1), isr=ids(1))
    assert with_eligible_leaders(partition(), to_one, 2, NOBODY).elr == ids(2, 3)
    assert with_assigned_eligible_leaders(partition(), to_one, 2, NOBODY).elr == NOBODY


def test_an_eligible_leader_is_alone_in_sync() -> None:
    assert take_from_eligible(target(isr=NOBODY, elr=ids(1, 2)), BrokerId(2)) == target(isr=ids(2), elr=ids(1))
    assert take_from_eligible(target(), BrokerId(2)) == target()


# ---- elections


def who(
    leader: int, wanted: Election, acceptable: tuple[int, ...], isr: tuple[int, ...], elr: tuple[int, ...] = ()
) -> ElectionOutcome:
    state = partition(leader)
    return elect(state, target(isr=ids(*isr), elr=ids(*elr)), ids(*acceptable), wanted, last_known=False)


@pytest.mark.parametrize(
    ("leader", "wanted", "acceptable", "isr", "elected"),
    [
        pytest.param(2, Election.ONLINE, (1, 2, 3), (1, 2), ElectionOutcome(BrokerId(2)), id="the leader stays"),
        pytest.param(2, Election.PREFERRED, (1, 2, 3), (1, 2), ElectionOutcome(BrokerId(1)), id="the preferred one"),
        pytest.param(
            2, Election.PREFERRED, (2, 3), (1, 2), ElectionOutcome(BrokerId(2)), id="preferred is down: the leader stays"
        ),
        pytest.param(2, Election.PREFERRED, (3,), (1, 2, 3), ElectionOutcome(BrokerId(3)), id="preferred: another one"),
        pytest.param(2, Election.ONLINE, (1, 3), (2, 3), ElectionOutcome(BrokerId(3)), id="first in sync"),
        pytest.param(2, Election.ONLINE, (1,), (2, 3), ElectionOutcome(NO_LEADER), id="nobody in sync"),
        pytest.param(2, Election.PREFERRED, (1,), (2, 3), ElectionOutcome(NO_LEADER), id="preferred: nobody in sync"),
        pytest.param(2, Election.UNCLEAN, (1,), (2, 3), ElectionOutcome(BrokerId(1), unclean=True), id="anybody"),
        pytest.param(2, Election.UNCLEAN, (4,), (2, 3), ElectionOutcome(NO_LEADER), id="nobody at all"),
    ],
)
def test_elections(
    leader: int, wanted: Election, acceptable: tuple[int, ...], isr: tuple[int, ...], elected: ElectionOutcome
) -> None:
    assert who(leader, wanted, acceptable, isr) == elected


def test_eligible_replicas_lead_only_while_nobody_is_in_sync() -> None:
    assert who(1, Election.ONLINE, (2, 3), isr=(), elr=(3,)) == ElectionOutcome(BrokerId(3))
    assert who(1, Election.ONLINE, (2, 3), isr=(1,), elr=(3,)) == ElectionOutcome(NO_LEADER)


@pytest.mark.parametrize(
    ("leader", "wanted", "acceptable", "isr", "elected"),
    [
        pytest.param(
            2, Election.ONLINE, (1, 3), (1, 2), ElectionOutcome(BrokerId(2)), id="the leader stays, acceptable or not"
        ),
        pytest.param(2, Election.PREFERRED, (1, 2), (1, 2), ElectionOutcome(BrokerId(1)), id="the preferred one"),
        pytest.param(1, Election.PREFERRED, (2,), (1, 2), ElectionOutcome(BrokerId(1)), id="the preferred one leads"),
        pytest.param(2, Election.ONLINE, (1, 3), (1, 3), ElectionOutcome(BrokerId(1)), id="first in sync"),
        pytest.param(2, Election.ONLINE, (1,), (3,), ElectionOutcome(NO_LEADER), id="nobody in sync"),
        pytest.param(2, Election.UNCLEAN, (1,), (3,), ElectionOutcome(BrokerId(1), unclean=True), id="anybody"),
    ],
)
def test_elections_in_the_first_releases(
    leader: int, wanted: Election, acceptable: tuple[int, ...], isr: tuple[int, ...], elected: ElectionOutcome
) -> None:
    state = partition(leader)
    assert elect_first_in_sync(state, target(isr=ids(*isr)), ids(*acceptable), wanted, last_known=False) == elected


@pytest.mark.parametrize(
    ("isr", "elr", "remembered", "enabled", "up_or_down", "if_up"),
    [
        pytest.param((), (), (2,), True, True, True, id="the last leader, up"),
        pytest.param((), (), (3,), True, True, False, id="the last leader, down"),
        pytest.param((), (), (2,), False, False, False, id="not in use"),
        pytest.param((1,), (), (2,), True, False, False, id="somebody in sync"),
        pytest.param((), (1,), (2,), True, False, False, id="somebody eligible"),
        pytest.param((), (), (2, 3), True, False, False, id="several remembered"),
    ],
)
def test_the_last_known_leader(
    isr: tuple[int, ...], elr: tuple[int, ...], remembered: tuple[int, ...], enabled: bool, up_or_down: bool, if_up: bool
) -> None:
    arguments = (partition(last_known_elr=ids(*remembered)), target(isr=ids(*isr), elr=ids(*elr)), ids(1, 2), enabled)
    assert last_known_leader_up_or_down(*arguments) is up_or_down
    assert last_known_leader_if_up(*arguments) is if_up
    assert last_known_leader_if_assigned(*arguments) is if_up
    assert last_known_leader_never(*arguments) is False


@pytest.mark.parametrize(("before", "after", "may"), [(2, (3,), True), (2, (), True), (3, (2,), False)])
def test_the_last_known_leader_is_that_before_the_change(before: int, after: tuple[int, ...], may: bool) -> None:
    """`canElectLastKnownLeader` looks at `partition.lastKnownElr`, whatever the change makes of it."""
    wanted = target(isr=ids(), elr=ids())._replace(last_known_elr=ids(*after))
    assert last_known_leader_if_up(partition(last_known_elr=ids(before)), wanted, ids(1, 2), True) is may


def test_the_last_known_leader_is_assigned() -> None:
    arguments = (partition(last_known_elr=ids(4)), target(isr=ids(), elr=ids()), ids(1, 4), True)
    assert last_known_leader_if_up(*arguments)
    assert not last_known_leader_if_assigned(*arguments)


@pytest.mark.parametrize(
    ("leader", "remembered", "record", "until_4_1_0", "since_4_1_1"),
    [
        pytest.param(1, (), {"leader": NO_LEADER, "isr": ids()}, ids(1), ids(1), id="the last one in sync is lost"),
        pytest.param(1, (), {"leader": NO_LEADER}, None, ids(1), id="the leader is lost, others are in sync"),
        pytest.param(1, (2,), {"leader": NO_LEADER, "isr": ids()}, ids(1), None, id="another is remembered"),
        pytest.param(NO_LEADER, (1,), {"leader": BrokerId(2)}, ids(), ids(), id="a leader is elected"),
        pytest.param(2, (1,), {"isr": ids(2)}, ids(), None, id="there is a leader, and nobody is elected"),
    ],
)
def test_what_is_remembered_of_the_last_leader(
    leader: int,
    remembered: tuple[int, ...],
    record: dict[str, Any],
    until_4_1_0: frozenset[BrokerId] | None,
    since_4_1_1: frozenset[BrokerId] | None,
) -> None:
    before = partition(leader=leader, last_known_elr=ids(*remembered))
    change = PartitionChangeRecord(PartitionId(0), **record)
    assert record_last_known_leader(before, change).last_known_elr == until_4_1_0
    assert record_last_known_leader_once(before, change).last_known_elr == since_4_1_1


def test_since_4_3_a_reassignment_that_grows_waits_only_for_the_added() -> None:
    slow = target(replicas=order(1, 2, 3, 4), isr=ids(1, 3, 4), adding=ids(3, 4), removing=ids(1))
    fewer = target(replicas=order(1, 2, 3), isr=ids(3), adding=ids(3), removing=ids(1, 4))
    assert complete_when_all_are_in_sync(slow) == slow
    assert complete_when_added_are_in_sync_unless_fewer_stay(slow) == complete_when_added_are_in_sync(slow) != slow
    assert complete_when_added_are_in_sync_unless_fewer_stay(fewer) == fewer != complete_when_added_are_in_sync(fewer)


def test_an_added_replica_that_is_taken_back() -> None:
    """Executed on Kafka 4.0.0, 4.3.1 and 4.4.0: see docs/findings/reassignment-never-over.md."""
    back = target(replicas=order(1, 2, 3, 4), isr=ids(1, 2, 3), adding=ids(4), removing=ids(4))
    over = complete_when_all_are_in_sync(back)
    assert over == target(replicas=order(1, 2, 3), isr=ids(1, 2, 3))
    for isr in (ids(1, 2, 3), ids(1, 2, 3, 4)):
        stuck = back._replace(isr=isr)
        assert complete_when_added_are_in_sync_unless_fewer_stay(stuck) == stuck
        assert complete_when_added_that_stay_are_in_sync(stuck) == over
    slow = back._replace(isr=ids(1, 3))
    assert complete_when_added_that_stay_are_in_sync(slow) == slow, "it removes more than it adds, so all must be in sync"
    other = target(replicas=order(1, 2, 3, 4), isr=ids(1, 3), adding=ids(3), removing=ids(4))
    assert complete_when_added_that_stay_are_in_sync(other) == complete_when_added_are_in_sync_unless_fewer_stay(other)


def test_the_last_known_leader_comes_before_an_unclean_election_of_anybody() -> None:
    state = partition(NO_LEADER, isr=(), last_known_elr=ids(3))
    for wanted in Election:
        assert elect(state, unchanged(state), ids(1), wanted, last_known=True) == ElectionOutcome(BrokerId(3), unclean=True)


# ---- epochs


@pytest.mark.parametrize(
    ("changed", "up_to_3_5", "since_3_6"),
    [
        pytest.param(target(), False, False, id="nothing"),
        pytest.param(target(isr=ids(1, 2)), True, False, id="the ISR shrinks"),
        pytest.param(target(replicas=order(1, 2)), True, True, id="a replica goes"),
        pytest.param(target(replicas=order(3, 1, 2, 4)), False, False, id="a replica comes"),
    ],
)
def test_what_opens_an_epoch(changed: PartitionTarget, up_to_3_5: bool, since_3_6: bool) -> None:
    assert removes_replica_or_shrinks_isr(partition(), changed) is up_to_3_5
    assert removes_replica(partition(), changed) is since_3_6


# ---- records


BEFORE = PartitionRecord(PARTITION, partition())


def test_a_shrinking_isr_names_the_leader_up_to_3_5() -> None:
    """Rule A8, KAFKA-15021."""
    shrunk = target(isr=ids(1, 2))
    arguments = (BEFORE, shrunk, ids(1, 2), Election.ONLINE)
    assert change_partition(Controller(KRAFT_3_5), *arguments) == PartitionChangeRecord(
        PARTITION, isr=ids(1, 2), leader=BrokerId(1)
    )
    assert change_partition(Controller(KRAFT_3_9), *arguments) == PartitionChangeRecord(PARTITION, isr=ids(1, 2))


def test_the_last_member_of_the_isr_stays_without_eligible_leaders() -> None:
    """Rule L5."""
    alone = PartitionRecord(PARTITION, partition(isr=(1,)))
    emptied = unchanged(alone.registration)._replace(isr=NOBODY)
    arguments = (alone, emptied, ids(2, 3), Election.ONLINE)
    nobody = PartitionChangeRecord(PARTITION, leader=NO_LEADER)
    assert change_partition(Controller(KRAFT_3_9), *arguments) == nobody
    assert change_partition(Controller(KRAFT_4_0), *arguments) == nobody
    assert change_partition(Controller(KRAFT_4_0, ELR), *arguments) == nobody._replace(
        isr=NOBODY, elr=ids(1), last_known_elr=ids(1)
    )


@pytest.mark.parametrize(("rules", "recovery"), [(KRAFT_3_0, None), (KRAFT_3_2, LeaderRecoveryState.RECOVERING)])
def test_an_unclean_election(rules: ControllerProtocol, recovery: LeaderRecoveryState | None) -> None:
    """Rule L4."""
    offline = PartitionRecord(PARTITION, partition(NO_LEADER, isr=(1,)))
    record = change_partition(Controller(rules), offline, unchanged(offline.registration), ids(3), Election.UNCLEAN)
    assert record == PartitionChangeRecord(PARTITION, isr=ids(3), leader=BrokerId(3), recovery=recovery)


def test_an_unclean_election_while_recovering_says_so_no_more_than_once() -> None:
    state = partition(NO_LEADER, isr=(1,), recovery=LeaderRecoveryState.RECOVERING)
    offline = PartitionRecord(PARTITION, state)
    record = change_partition(Controller(KRAFT_3_9), offline, unchanged(state), ids(3), Election.UNCLEAN)
    assert record == PartitionChangeRecord(PARTITION, isr=ids(3), leader=BrokerId(3))


def test_an_unclean_election_ends_eligibility() -> None:
    state = partition(NO_LEADER, isr=(), elr=ids(1))
    offline = PartitionRecord(PARTITION, state)
    record = change_partition(Controller(KRAFT_4_0, ELR), offline, unchanged(state), ids(3), Election.UNCLEAN)
    assert record == PartitionChangeRecord(
        PARTITION, isr=ids(3), leader=BrokerId(3), recovery=LeaderRecoveryState.RECOVERING, elr=NOBODY
    )


def test_the_last_known_leader_is_forgotten_when_there_is_a_leader() -> None:
    state = partition(NO_LEADER, isr=(), last_known_elr=ids(2))
    offline = PartitionRecord(PARTITION, state)
    back = change_partition(Controller(KRAFT_NEXT, ELR), offline, unchanged(state), ids(2), Election.ONLINE)
    assert back == PartitionChangeRecord(
        PARTITION, isr=ids(2), leader=BrokerId(2), recovery=LeaderRecoveryState.RECOVERING, last_known_elr=NOBODY
    )
    assert change_partition(Controller(KRAFT_NEXT, ELR), offline, unchanged(state), NOBODY, Election.ONLINE) is None


broker_sets = st.frozensets(st.integers(1, 4).map(BrokerId), max_size=4)


@st.composite
def partitions(draw: st.DrawFn) -> PartitionRegistration:
    replicas = draw(st.lists(st.integers(1, 4).map(BrokerId), min_size=1, max_size=4, unique=True))
    isr = draw(broker_sets) & frozenset(replicas)
    leader = draw(st.sampled_from([NO_LEADER, *sorted(isr)]))
    elr = (draw(broker_sets) & frozenset(replicas)) - isr
    return PartitionRegistration(tuple(replicas), isr, leader, Epoch(5), PartitionEpoch(7), elr=elr)


@given(partitions(), broker_sets, broker_sets, st.sampled_from(Election), st.booleans(), st.sampled_from(KRAFT_RELEASES[1:]))
def test_clean_leaders_come_from_isr_or_elr(
    state: PartitionRegistration,
    leaving: frozenset[BrokerId],
    acceptable: frozenset[BrokerId],
    election: Election,
    eligible_leader_replicas: bool,
    rules: ControllerProtocol,
) -> None:
    """Law: an election that is not unclean takes a member of ISR or ELR; the leader is in the ISR afterwards (V2)."""
    settings = ControllerSettings(2, eligible_leader_replicas=eligible_leader_replicas, last_known_leader=False)
    without = unchanged(state)._replace(isr=state.isr - leaving)
    before = PartitionRecord(PARTITION, state)
    record = change_partition(Controller(rules, settings), before, without, acceptable - leaving, election)
    after = state if record is None else merge(state, record)
    assert after.leader == NO_LEADER or after.leader in after.isr
    if after.leader not in (NO_LEADER, state.leader) and election != Election.UNCLEAN:
        assert after.leader in state.isr | state.elr
    assert after.leader_epoch == state.leader_epoch or after.partition_epoch == state.partition_epoch + 1
    assert not after.isr & after.elr
