"""Elections: votes, time-outs, what is stored before what is told."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.vote import VoteRequest, VoteResponse
from kspec.spec.quorum.effects import (
    FailWaiting,
    ForgetRequests,
    Halt,
    IllegalState,
    LeaderChangeAppended,
    LogCommitted,
    LogFlushed,
    PersistElection,
    QuorumTimer,
    StartTimer,
)
from kspec.spec.quorum.elections import handle_vote, handle_vote_response, on_timeout
from kspec.spec.quorum.following import handle_begin_quorum_epoch
from kspec.spec.quorum.messages import handle_answer
from kspec.spec.quorum.replica import ElectionState, QuorumReplica
from kspec.spec.quorum.requests import requests_of
from kspec.spec.quorum.rules.epochs import LAST_EPOCH, VoterRole
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.rules.votes import Tally, takes_epoch_unless_served
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import become_candidate, become_prospective, election_timer
from kspec.spec.releases.quorum import QUORUM_RELEASES
from kspec.spec.step import Reply, Send
from kspec.spec.values import (
    NO_LEADER,
    NO_REPLICA,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    Error,
    Offset,
    Record,
    ReplicaKey,
)
from tests.spec.quorum.driver import (
    IDS,
    NOW,
    ONE,
    THREE,
    TWO,
    VOTERS,
    VoterQuorum,
    directory_of,
    forgets,
    key_of,
    reasons,
    reply_of,
    server_of,
    started,
)

RELEASES = {release.name: release for release in QUORUM_RELEASES}


def vote(by: BrokerId = TWO, epoch: int = 1, **other: Any) -> VoteRequest:
    defaults: dict[str, Any] = {"last_epoch": Epoch(0), "end_offset": Offset(0)}
    return VoteRequest(Epoch(epoch), key_of(by), **{**defaults, **other})


def response(
    epoch: int = 1, is_granted: bool = True, error: Error = Error.NONE, leader: BrokerId = NO_LEADER
) -> VoteResponse:
    return VoteResponse(error, Epoch(epoch), leader, is_granted)


def answered(state: QuorumReplica[RecordLog], answer: VoteResponse, by: BrokerId = TWO) -> Any:
    return handle_vote_response(server_of(ONE), state, Send(by, vote(ONE)), answer, NOW)


def candidate() -> QuorumReplica[RecordLog]:
    return become_candidate(server_of(ONE), started(ONE)).state


def prospective() -> QuorumReplica[RecordLog]:
    return become_prospective(server_of(ONE), started(ONE)).state


def follower(of: BrokerId = TWO) -> QuorumReplica[RecordLog]:
    return handle_begin_quorum_epoch(server_of(ONE), started(ONE), BeginQuorumEpochRequest(Epoch(1), of), NOW).state


# ---- whole elections


@pytest.mark.parametrize("name", RELEASES)
def test_a_leader_is_elected_by_two_of_three(name: str) -> None:
    quorum = VoterQuorum(RELEASES[name])
    quorum.elect(ONE, by=TWO)
    leader, voter = quorum.states[ONE], quorum.states[TWO]
    assert (leader.role, leader.election) == (VoterRole.LEADER, ElectionState(Epoch(1), ONE, NO_REPLICA))
    assert (voter.role, voter.election) == (VoterRole.UNATTACHED, ElectionState(Epoch(1), NO_LEADER, key_of(ONE)))
    assert leader.local.log.records == (Record(-1, Epoch(1)),)
    assert leader.high_watermark == UNKNOWN_OFFSET
    quorum.ask(ONE, THREE)
    assert quorum.states[THREE].role == VoterRole.FOLLOWER


def test_a_server_alone_leads_as_soon_as_it_starts_and_commits_before_it_flushes() -> None:
    voters = frozenset({key_of(ONE)})
    step = start(server_of(ONE), EMPTY_LOG, ElectionState(), directory_of(ONE), fixed_voters(voters))
    assert step.state.role == VoterRole.LEADER
    assert (step.state.election.epoch, step.state.high_watermark) == (1, 1)
    repaired = start(server_of(ONE, RELEASES["next"]), EMPTY_LOG, ElectionState(), directory_of(ONE), fixed_voters(voters))
    assert repaired.effects[-2:] == (LogFlushed(), LogCommitted(Offset(1)))
    kinds = [type(effect).__name__ for effect in step.effects]
    assert kinds.index("LeaderChangeAppended") < kinds.index("LogCommitted") < kinds.index("LogFlushed")
    again = start(server_of(ONE), step.state.local.log, step.state.election, directory_of(ONE), fixed_voters(voters))
    assert (again.state.role, again.state.election.epoch) == (VoterRole.LEADER, 2)


def test_a_refused_candidate_asks_again_in_the_end() -> None:
    quorum = VoterQuorum()
    quorum.elect(ONE, by=TWO)
    quorum.append(ONE, 7)
    quorum.ask(TWO, ONE)
    quorum.time_out(THREE)
    assert quorum.states[THREE].role == VoterRole.PROSPECTIVE
    quorum.ask(THREE, TWO)
    quorum.ask(THREE, ONE)
    assert quorum.states[THREE].role == VoterRole.FOLLOWER
    assert quorum.states[THREE].election == ElectionState(Epoch(1), ONE, NO_REPLICA)


# ---- asked for a vote


def test_a_vote_is_stored_before_it_is_told() -> None:
    step = handle_vote(server_of(ONE), started(ONE), vote(), NOW)
    stored = ElectionState(Epoch(1), NO_LEADER, key_of(TWO))
    assert step.effects[-3:] == (PersistElection(stored), election_timer(server_of(ONE)), Reply(response()))
    again = handle_vote(server_of(ONE), step.state, vote(), NOW)
    assert again.effects == (Reply(response()),)
    other = handle_vote(server_of(ONE), step.state, vote(THREE), NOW)
    assert other.effects == (Reply(response(is_granted=False)),)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (vote(last_epoch=Epoch(1)), Error.INVALID_REQUEST),
        (vote(last_epoch=Epoch(2), is_pre_vote=True), Error.INVALID_REQUEST),
        (vote(end_offset=Offset(-1)), Error.INVALID_REQUEST),
        (vote(last_epoch=Epoch(-1)), Error.INVALID_REQUEST),
        (vote(epoch=2, last_epoch=Epoch(0)), Error.FENCED_LEADER_EPOCH),
    ],
)
def test_a_request_is_refused_before_its_epoch_counts(request_: VoteRequest, error: Error) -> None:
    state = started(ONE, ElectionState(Epoch(3)))
    step = handle_vote(server_of(ONE), state, request_, NOW)
    assert step.state is state
    assert step.effects == (Reply(response(3, False, error)),)


def test_a_later_epoch_counts_though_the_request_is_meant_for_another_replica() -> None:
    step = handle_vote(server_of(ONE), started(ONE), vote(epoch=5, voter=key_of(ONE, life=2)), NOW)
    assert step.state.election == ElectionState(Epoch(5))
    assert reply_of(step) == response(5, False, Error.INVALID_VOTER_KEY)


def test_a_later_epoch_unseats_a_leader_even_if_nobody_stands_for_election() -> None:
    quorum = VoterQuorum()
    quorum.elect(ONE, by=TWO)
    quorum.take(ONE, handle_vote(server_of(ONE), quorum.states[ONE], vote(BrokerId(9), 7, is_pre_vote=True), NOW))
    assert quorum.states[ONE].role == VoterRole.UNATTACHED
    assert quorum.states[ONE].election.epoch == 7


def test_a_later_epoch_counts_only_for_who_is_not_served_where_that_is_the_rule() -> None:
    """No release has it: the model asks whether it would do."""
    protocol = replace(QUORUM_RELEASES[-1], takes_epoch_of_vote=takes_epoch_unless_served)
    quorum = VoterQuorum(protocol=protocol)
    quorum.elect(ONE, by=TWO)
    server, leader, later = server_of(ONE, protocol), quorum.states[ONE], vote(BrokerId(9), 7)
    step = handle_vote(server, leader, later, NOW)
    assert step.state is leader
    assert step.effects == (Reply(response(1, False, leader=ONE)),)
    assert handle_vote(server, follower(), later, NOW).state.election.epoch == 7
    served = follower()._replace(has_fetched=True)
    assert handle_vote(server, served, later, NOW).state is served
    assert handle_vote(server_of(ONE), served, later, NOW).state.election.epoch == 7


def test_a_promise_is_not_stored() -> None:
    state = started(ONE)
    step = handle_vote(server_of(ONE), state, vote(epoch=0, is_pre_vote=True), NOW)
    assert step.state is state
    assert step.effects == (Reply(response(0)),)
    refused = handle_vote(server_of(ONE), follower()._replace(has_fetched=True), vote(THREE, is_pre_vote=True), NOW)
    assert refused.effects == (Reply(response(1, False, leader=TWO)),)


def test_a_candidate_promises_and_a_leader_does_not() -> None:
    promised = handle_vote(server_of(ONE), candidate(), vote(is_pre_vote=True), NOW)
    assert reply_of(promised) == response(1)
    assert reply_of(handle_vote(server_of(ONE), candidate(), vote(), NOW)) == response(1, False)


def test_who_asks_still_votes_for_others() -> None:
    asking = prospective()
    step = handle_vote(server_of(ONE), asking._replace(election=ElectionState(Epoch(1))), vote(), NOW)
    assert (step.state.role, step.state.election.voted) == (VoterRole.PROSPECTIVE, key_of(TWO))


# ---- answered


def test_promises_of_a_majority_make_a_candidate_who_votes_for_itself() -> None:
    step = answered(prospective(), response(0))
    assert step.state.role == VoterRole.CANDIDATE
    assert step.effects[0] == PersistElection(ElectionState(Epoch(1), NO_LEADER, key_of(ONE)))
    assert forgets(step)


def test_votes_of_a_majority_make_a_leader() -> None:
    step = answered(candidate(), response())
    assert step.state.role == VoterRole.LEADER
    assert LeaderChangeAppended(Offset(0), Epoch(1), frozenset(IDS), frozenset({ONE, TWO})) in step.effects
    assert step.effects[0] == PersistElection(ElectionState(Epoch(1), ONE))
    assert step.effects[-1] == LogFlushed()


def test_an_old_voter_makes_a_candidate_without_a_majority() -> None:
    unsupported = response(0, False, Error.UNSUPPORTED_VERSION)
    assert answered(prospective(), unsupported).state.role == VoterRole.CANDIDATE
    assert answered(started(ONE), unsupported).state == started(ONE)


def test_a_refused_prospective_follows_its_leader_again_or_waits() -> None:
    asking = become_prospective(server_of(ONE), follower()).state
    refused = answered(answered(asking, response(1, False, leader=TWO)).state, response(1, False, leader=TWO), THREE)
    assert (refused.state.role, refused.state.election.leader) == (VoterRole.FOLLOWER, TWO)
    alone = answered(answered(prospective(), response(0, False)).state, response(0, False), THREE)
    assert alone.state.role == VoterRole.UNATTACHED
    assert election_timer(server_of(ONE)) in alone.effects


def test_a_refused_candidate_asks_nobody_and_waits() -> None:
    once = answered(candidate(), response(is_granted=False))
    assert [send.to for send in requests_of(server_of(ONE), once.state, NOW)] == [THREE]
    twice = answered(once.state, response(is_granted=False), THREE)
    assert twice.state.role == VoterRole.CANDIDATE
    assert requests_of(server_of(ONE), twice.state, NOW) == ()


def test_what_the_protocol_excludes_stops_the_server() -> None:
    assert reasons(answered(candidate(), response(), BrokerId(9))) == [IllegalState.NOT_A_VOTER]
    changed = candidate()._replace(tally=Tally(VOTERS, frozenset({ONE}), frozenset({TWO})))
    assert reasons(answered(changed, response())) == [IllegalState.CHANGED_VOTE]
    assert reasons(answered(candidate(), response(error=Error.INVALID_REQUEST))) == [IllegalState.INVALID_REQUEST]
    assert reasons(answered(candidate(), response(leader=ONE))) == [IllegalState.NOT_LEADER]
    assert reasons(answered(candidate(), response(2, leader=ONE))) == [IllegalState.NOT_LEADER]
    stale = response(1, False, Error.FENCED_LEADER_EPOCH, THREE)
    assert reasons(answered(follower(), stale)) == [IllegalState.TWO_LEADERS]


def test_who_is_said_to_lead_and_does_not_waits_for_others_by_the_rules_of_next() -> None:
    """It has led, and lost its disk."""
    server, stands = server_of(ONE, QUORUM_RELEASES[-1]), candidate()
    for epoch in (1, 2):
        step = handle_vote_response(server, stands, Send(TWO, vote(ONE)), response(epoch, False, leader=ONE), NOW)
        assert reasons(step) == []
        assert (step.state.election.epoch, step.state.election.leader) == (epoch, NO_LEADER)
    told = handle_begin_quorum_epoch(server, stands, BeginQuorumEpochRequest(Epoch(2), ONE, key_of(ONE)), NOW)
    assert (reasons(told), told.state.election) == ([], ElectionState(Epoch(2)))


def test_an_answer_tells_of_leaders_and_epochs() -> None:
    assert answered(candidate(), response(0)).state == candidate()
    assert answered(candidate(), response(1, False, Error.UNKNOWN_LEADER_EPOCH)).state == candidate()
    assert answered(candidate(), response(1, False, Error.INVALID_VOTER_KEY)).state == candidate()
    assert answered(candidate(), response(1, False, Error.UNKNOWN_SERVER_ERROR)).state == candidate()
    assert answered(candidate(), response(3)).state.election == ElectionState(Epoch(3))
    followed = answered(candidate(), response(3, leader=TWO))
    assert (followed.state.role, followed.state.election.leader) == (VoterRole.FOLLOWER, TWO)
    assert FailWaiting() in followed.effects
    named = answered(candidate(), response(1, False, leader=THREE))
    assert (named.state.role, named.state.election.voted) == (VoterRole.FOLLOWER, key_of(ONE))
    older = handle_vote_response(
        server_of(ONE, RELEASES["3.9"]), candidate(), Send(TWO, vote(ONE)), response(1, False, leader=THREE), NOW
    )
    assert older.state.election.voted == NO_REPLICA
    assert answered(follower(), response(1, False, Error.FENCED_LEADER_EPOCH, TWO)).effects == ()


def test_an_answer_that_is_not_expected_is_dropped() -> None:
    server, state = server_of(ONE), candidate()
    assert handle_answer(server, state, Send(TWO, vote(ONE)), response(), False, NOW).state is state
    other = BeginQuorumEpochResponse(Error.NONE, Epoch(1))
    assert handle_answer(server, state, Send(TWO, vote(ONE)), other, True, NOW).state is state


# ---- the end of a time


def test_time_makes_an_observer_or_a_leader_do_nothing() -> None:
    observer = started(ONE)._replace(directory=directory_of(ONE, life=2))
    assert on_timeout(server_of(ONE), observer, NOW).effects == ()
    leader = answered(candidate(), response()).state
    assert on_timeout(server_of(ONE), leader, NOW).state is leader


def test_a_prospective_without_answers_begins_anew_at_once() -> None:
    step = on_timeout(server_of(ONE), prospective(), NOW)
    assert step.state.role == VoterRole.UNATTACHED
    assert step.effects[-1] == StartTimer(QuorumTimer.ROLE, 0)
    asking = become_prospective(server_of(ONE), follower()).state
    assert on_timeout(server_of(ONE), asking, NOW).state.role == VoterRole.FOLLOWER


def test_a_candidate_asks_before_it_stands_again_and_up_to_3_9_stands_at_once() -> None:
    assert on_timeout(server_of(ONE), candidate(), NOW).state.role == VoterRole.PROSPECTIVE
    older = on_timeout(server_of(ONE, RELEASES["3.9"]), candidate(), NOW).state
    assert (older.role, older.election.epoch) == (VoterRole.CANDIDATE, 2)


def test_nobody_is_elected_after_the_last_epoch() -> None:
    server, older = server_of(ONE), server_of(ONE, RELEASES["3.9"])
    last = ElectionState(LAST_EPOCH)
    asking = become_prospective(server, started(ONE)._replace(election=last)).state
    step = handle_vote_response(server, asking, Send(TWO, vote(ONE)), response(LAST_EPOCH), NOW)
    assert (reasons(step), step.state.election) == ([IllegalState.NO_EPOCH_LEFT], last)
    assert reasons(on_timeout(older, started(ONE)._replace(election=last), NOW)) == [IllegalState.NO_EPOCH_LEFT]
    led = restarted(ElectionState(LAST_EPOCH, ONE)).state
    assert reasons(on_timeout(server, led, NOW)) == [IllegalState.NO_EPOCH_LEFT]
    alone = start(server, EMPTY_LOG, last, directory_of(ONE), fixed_voters(frozenset({key_of(ONE)})))
    assert (reasons(alone), alone.state.role) == ([IllegalState.NO_EPOCH_LEFT], VoterRole.UNATTACHED)
    before = become_prospective(server, started(ONE)._replace(election=ElectionState(Epoch(LAST_EPOCH - 1)))).state
    stands = handle_vote_response(server, before, Send(TWO, vote(ONE)), response(LAST_EPOCH - 1), NOW)
    assert (stands.state.role, stands.state.election.epoch) == (VoterRole.CANDIDATE, LAST_EPOCH)


# ---- starting


def restarted(election: ElectionState, **other: Any) -> Any:
    log = other.get("log", EMPTY_LOG)
    voters = other.get("voters", VOTERS)
    return start(server_of(ONE), log, election, directory_of(ONE), fixed_voters(voters))


def test_a_leader_that_starts_again_has_resigned() -> None:
    state = restarted(ElectionState(Epoch(4), ONE)).state
    assert (state.role, state.election.epoch, state.unacknowledged) == (VoterRole.RESIGNED, 4, {TWO, THREE})
    later = on_timeout(server_of(ONE), state, NOW).state
    assert (later.role, later.election) == (VoterRole.UNATTACHED, ElectionState(Epoch(5)))
    older = on_timeout(server_of(ONE, RELEASES["3.9"]), state, NOW).state
    assert (older.role, older.election.epoch) == (VoterRole.CANDIDATE, 5)
    removed = state._replace(voter_sets=fixed_voters(frozenset({key_of(TWO)})))
    gone = on_timeout(server_of(ONE, RELEASES["3.9"]), removed, NOW).state
    assert (gone.role, gone.election.epoch) == (VoterRole.UNATTACHED, 5)


def test_what_a_replica_is_after_a_start() -> None:
    assert restarted(ElectionState(Epoch(2), TWO)).state.role == VoterRole.FOLLOWER
    waiting = restarted(ElectionState(Epoch(2), BrokerId(9), key_of(TWO))).state
    assert (waiting.role, waiting.election.leader, waiting.reaches_leader) == (VoterRole.UNATTACHED, 9, False)
    assert restarted(ElectionState(Epoch(2), NO_LEADER, key_of(TWO))).state.election.voted == key_of(TWO)
    log = RecordLog((Record(0, Epoch(6)),))
    assert restarted(ElectionState(Epoch(2), TWO), log=log).state.election == ElectionState(Epoch(6))


def test_an_observer_starts_without_a_time() -> None:
    step = restarted(ElectionState(Epoch(2)), voters=frozenset({key_of(TWO), key_of(THREE)}))
    assert step.effects == (PersistElection(ElectionState(Epoch(2))),)


def test_who_had_voted_for_itself_stands_again_though_it_knew_who_won() -> None:
    state = restarted(ElectionState(Epoch(2), TWO, key_of(ONE))).state
    assert (state.role, state.election) == (VoterRole.CANDIDATE, ElectionState(Epoch(2), NO_LEADER, key_of(ONE)))


def test_who_had_voted_for_itself_and_is_no_voter_any_more_does_not_start() -> None:
    without = frozenset({key_of(TWO), key_of(THREE)})
    step = restarted(ElectionState(Epoch(2), TWO, key_of(ONE)), voters=without)
    assert step.effects == (Halt(IllegalState.STANDS_WITHOUT_VOTE),)
    repaired = server_of(ONE, RELEASES["next"])
    step = start(repaired, EMPTY_LOG, ElectionState(Epoch(2), TWO, key_of(ONE)), directory_of(ONE), fixed_voters(without))
    assert (step.state.role, step.state.election.leader) == (VoterRole.FOLLOWER, TWO)


def test_a_leader_that_could_not_be_reached_is_followed_when_its_address_is_known() -> None:
    waiting = restarted(ElectionState(Epoch(2), BrokerId(9))).state
    step = handle_begin_quorum_epoch(server_of(ONE), waiting, BeginQuorumEpochRequest(Epoch(2), BrokerId(9)), NOW)
    assert (step.state.role, step.state.reaches_leader) == (VoterRole.FOLLOWER, True)


def test_who_asks_and_cannot_reach_the_leader_waits_for_it() -> None:
    waiting = restarted(ElectionState(Epoch(2), BrokerId(9))).state
    asking = become_prospective(server_of(ONE), waiting).state
    lost = on_timeout(server_of(ONE), asking, NOW).state
    assert (lost.role, lost.election.leader) == (VoterRole.UNATTACHED, 9)


def test_a_key_without_a_directory_is_meant_for_every_life_of_a_server() -> None:
    assert reply_of(handle_vote(server_of(ONE), started(ONE), vote(voter=ReplicaKey(ONE)), NOW)) == response()
    assert ForgetRequests() not in handle_vote(server_of(ONE), started(ONE, ElectionState(Epoch(1))), vote(), NOW).effects
