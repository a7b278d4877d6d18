"""The rules of the quorum, each by itself."""

import pytest

from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT
from kspec.spec.quorum.following import successors_backoff
from kspec.spec.quorum.rules import epochs, replication, snapshots, voters, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import may_be_answered
from kspec.spec.quorum.rules.votes import Tally
from kspec.spec.releases.names import quorum_of
from kspec.spec.values import (
    NO_LEADER,
    NO_REPLICA,
    UNKNOWN_OFFSET,
    Epoch,
    EpochEndOffset,
    Offset,
    Record,
    ReplicaKey,
)
from tests.spec.quorum.driver import ONE, THREE, TWO, VOTERS, key_of

LOG = RecordLog((Record(0, Epoch(1)), Record(1, Epoch(1)), Record(2, Epoch(3))))


def end(epoch: int, offset: int) -> EpochEndOffset:
    return EpochEndOffset(Epoch(epoch), Offset(offset))


@pytest.mark.parametrize(("own", "expected"), [((1, 9), True), ((2, 4), True), ((2, 5), False), ((3, 0), False)])
def test_a_log_is_no_worse_by_its_last_epoch_then_by_its_end(own: tuple[int, int], expected: bool) -> None:
    assert votes.is_up_to_date(Epoch(2), Offset(4), Epoch(own[0]), Offset(own[1])) == expected


def test_a_vote_is_given_once_in_an_epoch_and_to_nobody_while_a_leader_is_known() -> None:
    assert votes.grants_vote(NO_LEADER, NO_REPLICA, key_of(TWO), True)
    assert not votes.grants_vote(NO_LEADER, NO_REPLICA, key_of(TWO), False)
    assert not votes.grants_vote(ONE, NO_REPLICA, key_of(TWO), True)
    assert votes.grants_vote(NO_LEADER, key_of(TWO), key_of(TWO), False)
    assert not votes.grants_vote(NO_LEADER, key_of(THREE), key_of(TWO), True)


def test_a_server_with_another_directory_is_another_replica() -> None:
    assert not votes.grants_vote(NO_LEADER, key_of(TWO), key_of(TWO, life=2), True)
    assert votes.grants_vote(NO_LEADER, ReplicaKey(TWO), key_of(TWO, life=2), True)
    assert voters.is_voter(VOTERS, key_of(ONE))
    assert not voters.is_voter(VOTERS, key_of(ONE, life=2))
    assert voters.is_voter(frozenset({ReplicaKey(ONE)}), key_of(ONE, life=2))
    assert voters.ids_of(VOTERS) == {ONE, TWO, THREE}


def test_who_has_fetched_from_its_leader_promises_no_vote() -> None:
    assert votes.grants_pre_vote(False, True, False, True)
    assert not votes.grants_pre_vote(False, True, True, True)
    assert not votes.grants_pre_vote(True, False, False, True)
    assert not votes.grants_pre_vote(False, False, False, False)
    assert not votes.never_grants_pre_vote(False, False, False, True)


def test_a_vote_is_remembered_in_its_epoch() -> None:
    assert votes.vote_in_same_epoch(key_of(TWO), True) == key_of(TWO)
    assert votes.vote_in_same_epoch(key_of(TWO), False) == NO_REPLICA
    assert votes.no_vote(key_of(TWO), True) == NO_REPLICA
    assert votes.vote_of_prospective(key_of(TWO), key_of(ONE)) == key_of(TWO)


def test_a_majority_elects_and_refuses() -> None:
    tally = votes.counted(Tally(VOTERS, frozenset({ONE})), TWO, False)
    assert not votes.is_elected(tally)
    assert not votes.is_rejected(tally)
    assert votes.is_rejected(votes.counted(tally, THREE, False))
    assert votes.is_elected(votes.counted(tally, THREE, True))
    assert votes.counted(tally, TWO, True) == Tally(tally.voters, frozenset({ONE, TWO}))
    assert [votes.majority_of(size) for size in (1, 2, 3, 4, 5)] == [1, 2, 2, 3, 3]


def test_roles_after_a_timeout_and_a_restart() -> None:
    assert {epochs.stands_at_once(role) for role in VoterRole} == {VoterRole.CANDIDATE}
    assert epochs.asks_before_candidacy(VoterRole.FOLLOWER) == VoterRole.PROSPECTIVE
    assert epochs.asks_before_candidacy(VoterRole.PROSPECTIVE) == VoterRole.UNATTACHED
    assert epochs.epoch_after_resignation(Epoch(3)) == 4
    assert epochs.resigned_if_it_led(ONE, NO_REPLICA, key_of(ONE)) == VoterRole.RESIGNED
    assert epochs.resigned_if_it_led(TWO, key_of(ONE), key_of(ONE)) == VoterRole.CANDIDATE
    assert epochs.resigned_if_it_led(TWO, key_of(TWO), key_of(ONE)) == VoterRole.FOLLOWER
    repaired = epochs.follower_if_it_knew_who_led
    assert repaired(TWO, key_of(ONE), key_of(ONE)) == VoterRole.FOLLOWER
    assert repaired(NO_LEADER, key_of(ONE), key_of(ONE)) == VoterRole.CANDIDATE


def test_a_leader_tells_voters_that_it_leads() -> None:
    rules = (epochs.needs_begin_until_acknowledged, epochs.needs_begin_always, epochs.needs_begin_when_silent)
    assert [rule(True, 0, 1_000) for rule in rules] == [False, True, False]
    assert [rule(False, 1_000, 1_000) for rule in rules] == [True, True, True]
    assert epochs.checks_quorum(3)
    assert not epochs.checks_quorum(1)
    assert not epochs.never_checks_quorum(3)
    assert epochs.takes_expected_answer(True)


def test_the_end_of_an_epoch_is_known_for_every_epoch() -> None:
    assert snapshots.end_of_epoch(LOG, NO_SNAPSHOT, Epoch(2)) == end(1, 2)
    assert snapshots.end_of_epoch(LOG, NO_SNAPSHOT, Epoch(3)) == end(3, 3)
    assert snapshots.end_of_epoch(LOG, NO_SNAPSHOT, Epoch(4)) == end(3, 3)
    assert snapshots.end_of_epoch(EMPTY_LOG, NO_SNAPSHOT, Epoch(4)) == end(0, 0)
    assert replication.last_epoch_of(EMPTY_LOG) == 0


def test_a_follower_truncates_to_the_earlier_end_of_a_common_epoch() -> None:
    assert replication.truncation_offset(LOG, NO_SNAPSHOT, end(1, 1)) == 1
    assert replication.truncation_offset(LOG, NO_SNAPSHOT, end(1, 5)) == 2
    assert replication.truncation_offset(LOG, NO_SNAPSHOT, end(2, 5)) == 2
    assert replication.truncation_offset(LOG, NO_SNAPSHOT, end(0, 0)) == 0
    assert replication.may_truncate(Offset(2), Offset(2))
    assert not replication.may_truncate(Offset(1), Offset(2))


def test_a_majority_commits_if_a_record_of_the_epoch_is_among_it() -> None:
    unknown = UNKNOWN_OFFSET
    assert replication.majority_offset((Offset(5), Offset(3), unknown)) == 3
    assert replication.majority_offset((Offset(5), unknown, unknown)) == unknown
    assert replication.majority_offset((Offset(4), Offset(3), Offset(2), Offset(1))) == 2
    assert replication.commits_own_epoch(Offset(3), Offset(2))
    assert not replication.commits_own_epoch(Offset(2), Offset(2))
    assert replication.unknown_at_first(Offset(2)) == unknown
    assert replication.is_counted_if_voter(True)
    assert not replication.flushes_if_voter(False)


def test_successors_wait_longer_the_further_behind_they_are() -> None:
    successors = (key_of(ONE), key_of(TWO), key_of(THREE))
    assert [successors_backoff(one, successors, 1_000) for one in successors] == [0, 250, 500]
    assert successors_backoff(key_of(ONE, life=2), successors, 1_000) == 1_000
    assert successors_backoff(key_of(ONE), (), 1_000) == 0


def test_a_release_has_the_rules_that_the_latest_one_up_to_it_has_changed() -> None:
    names = ("next", "4.4", "4.4 with a-mutant", "4.1", "3.9", "3.8", "3.0", "0.10")
    assert [quorum_of(name).name for name in names] == ["next", "4.2", "4.2", "4.1", "3.9", "3.7", "2.8", "2.8"]


def test_an_answer_leaves_once_all_that_it_rests_on_is_committed() -> None:
    assert [may_be_answered(Offset(7), Offset(mark)) for mark in (6, 7, 8)] == [False, True, True]
