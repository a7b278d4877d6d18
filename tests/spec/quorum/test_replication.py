"""Replication: fetches, truncation, the high watermark, the disk, and resignations."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.spec.log.epoch_log import EMPTY_EPOCH_LOG, EpochLog
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest, EndQuorumEpochResponse
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, QuorumFetchResponse, SnapshotId
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.quorum.effects import (
    FailWaiting,
    IllegalState,
    LogAppended,
    LogCommitted,
    LogCut,
    LogFlushed,
    LogReplaced,
    QuorumTimer,
    SnapshotWanted,
    StartTimer,
)
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import (
    after_own_snapshot,
    handle_begin_quorum_epoch,
    handle_end_quorum_epoch,
    handle_fetch_response,
    on_snapshot,
    on_snapshot_piece,
    truncate_by,
)
from kspec.spec.quorum.leading import (
    append,
    handle_begin_quorum_epoch_response,
    handle_end_quorum_epoch_response,
    handle_fetch,
    is_active,
    is_news,
    leads_in,
    on_check_quorum,
    on_resignation,
)
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.refusals import check_described_quorum, check_wait
from kspec.spec.quorum.replica import ElectionState, QuorumReplica, ReplicaProgress
from kspec.spec.quorum.requests import requests_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.replication import last_epoch_of
from kspec.spec.quorum.rules.voters import fixed_voters
from kspec.spec.quorum.starting import start
from kspec.spec.quorum.transitions import check_quorum_timer, count_majority, election_timer, fetch_timer, flush_and_count
from kspec.spec.releases.quorum import QUORUM_NEXT, QUORUM_RELEASES
from kspec.spec.step import Send
from kspec.spec.values import (
    NO_LEADER,
    UNDEFINED_EPOCH_END,
    UNKNOWN_OFFSET,
    BrokerId,
    Epoch,
    EpochEndOffset,
    Error,
    MonotonicMs,
    Offset,
    Record,
)
from tests.spec.quorum.driver import (
    NEWEST,
    NOW,
    ONE,
    THREE,
    TWO,
    VOTERS,
    VoterQuorum,
    directory_of,
    key_of,
    reasons,
    reply_of,
    server_of,
    started,
)

FETCH = FetchPosition(Epoch(1), Offset(0), Epoch(0))
FETCHED = Send(TWO, QuorumFetchRequest(key_of(ONE), FETCH))


def a_leader() -> VoterQuorum:
    """The first server leads in epoch 1, elected by the second; nothing is replicated yet."""
    quorum = VoterQuorum()
    quorum.elect(ONE, by=TWO)
    return quorum


def follower(log: tuple[tuple[int, int], ...] = (), high_watermark: int = -1) -> QuorumReplica[RecordLog]:
    """A follower of the second server in epoch 5, with these records (values and epochs)."""
    records = RecordLog(tuple(Record(value, Epoch(epoch)) for value, epoch in log))
    state = started(ONE, ElectionState(Epoch(5), TWO), records)
    return state._replace(high_watermark=Offset(high_watermark))


def fetched(
    state: QuorumReplica[RecordLog], offset: int = 0, last: int = 0, rules: QuorumProtocol = NEWEST, **answer: Any
) -> Any:
    asked = QuorumFetchRequest(key_of(ONE), FetchPosition(Epoch(5), Offset(offset), Epoch(last)))
    given: dict[str, Any] = {"error": Error.NONE, "epoch": Epoch(5), "leader": TWO, **answer}
    return handle_fetch_response(server_of(ONE, rules), state, Send(TWO, asked), QuorumFetchResponse(**given), NOW)


# ---- a whole log


def test_a_record_is_committed_when_the_fetch_after_it_says_that_a_majority_has_it() -> None:
    quorum = a_leader()
    quorum.append(ONE, 7)
    assert quorum.ask(TWO, ONE)
    assert quorum.states[TWO].role == VoterRole.FOLLOWER
    assert quorum.states[TWO].local.log == quorum.states[ONE].local.log
    assert quorum.disks[TWO].flushed == 2
    assert quorum.committed[ONE] == []
    quorum.ask(TWO, ONE)
    assert (quorum.committed[ONE], quorum.committed[TWO]) == ([2], [2])
    assert quorum.states[TWO].local.high_watermark == 2


def test_a_deposed_leaders_records_are_cut_where_logs_part() -> None:
    quorum = a_leader()
    quorum.ask(TWO, ONE)
    quorum.append(ONE, 7, 8)
    quorum.elect(TWO, by=THREE)
    quorum.append(TWO, 9)
    quorum.ask(TWO, ONE)
    assert quorum.states[ONE].role == VoterRole.FOLLOWER
    quorum.ask(ONE, TWO)
    assert [record.value for record in quorum.states[ONE].local.log.records] == [-1]
    quorum.ask(ONE, TWO)
    assert quorum.states[ONE].local.log == quorum.states[TWO].local.log
    quorum.ask(ONE, TWO)
    assert quorum.states[TWO].high_watermark == 3


def test_a_follower_loses_nothing_that_it_has_acknowledged() -> None:
    quorum = a_leader()
    quorum.append(ONE, 7)
    quorum.ask(TWO, ONE)
    quorum.restart(TWO, keeps=quorum.disks[TWO].flushed)
    assert quorum.states[TWO].local.log.end_offset == 2
    assert quorum.states[TWO].role == VoterRole.FOLLOWER


# ---- a leader


def test_a_leader_answers_only_in_its_epoch() -> None:
    quorum = a_leader()
    leader, server = quorum.states[ONE], server_of(ONE)

    def error_of(state: QuorumReplica[RecordLog], epoch: int, offset: int = 0, last: int = 0) -> Error:
        position = FetchPosition(Epoch(epoch), Offset(offset), Epoch(last))
        return reply_of(handle_fetch(server, state, QuorumFetchRequest(key_of(TWO), position), NOW)).error

    assert error_of(leader, 0) == Error.FENCED_LEADER_EPOCH
    assert error_of(leader, 2) == Error.UNKNOWN_LEADER_EPOCH
    assert error_of(leader, 1, last=2) == Error.INVALID_REQUEST
    assert error_of(leader, 1, offset=-1) == Error.INVALID_REQUEST
    assert error_of(leader, 1, last=-1) == Error.INVALID_REQUEST
    assert error_of(quorum.states[TWO], 1) == Error.NOT_LEADER_OR_FOLLOWER
    itself = handle_fetch(server, leader, QuorumFetchRequest(key_of(ONE), FETCH), NOW)
    assert reply_of(itself).error == Error.UNKNOWN_SERVER_ERROR


def test_a_fetch_from_where_logs_have_parted_does_not_count() -> None:
    quorum = a_leader()
    request = QuorumFetchRequest(key_of(TWO), FetchPosition(Epoch(1), Offset(4), Epoch(1)))
    step = handle_fetch(server_of(ONE), quorum.states[ONE], request, NOW)
    assert step.state is quorum.states[ONE]
    assert reply_of(step) == QuorumFetchResponse(Error.NONE, Epoch(1), ONE, diverging=EpochEndOffset(Epoch(1), Offset(1)))


def test_an_observer_is_noted_and_commits_nothing() -> None:
    quorum = a_leader()
    observer = key_of(TWO, life=2)
    request = QuorumFetchRequest(observer, FetchPosition(Epoch(1), Offset(1), Epoch(1)))
    step = handle_fetch(server_of(ONE), quorum.states[ONE], request, NOW)
    assert ReplicaProgress(observer, Offset(1), NOW, True, has_caught_up=True) in step.state.progress
    assert step.state.high_watermark == UNKNOWN_OFFSET
    again = handle_fetch(server_of(ONE), step.state, request, NOW)
    assert again.state == step.state


def test_a_high_watermark_never_goes_back() -> None:
    leader = a_leader().states[ONE]
    progress = frozenset({ReplicaProgress(key_of(TWO), Offset(1)), ReplicaProgress(key_of(THREE))})
    committed = count_majority(server_of(ONE), leader._replace(progress=progress))
    assert committed.effects == (LogCommitted(Offset(1)),)
    behind = frozenset({ReplicaProgress(key_of(TWO), Offset(0)), ReplicaProgress(key_of(THREE))})
    assert count_majority(server_of(ONE), committed.state._replace(progress=behind)).effects == ()
    assert count_majority(server_of(ONE), committed.state).effects == ()


def test_a_leader_that_is_no_voter_does_not_count_itself() -> None:
    others = frozenset({key_of(TWO), key_of(THREE)})
    leader = a_leader().states[ONE]._replace(voter_sets=fixed_voters(others))
    one_has_it = frozenset({ReplicaProgress(key_of(TWO), Offset(1)), ReplicaProgress(key_of(THREE), Offset(0))})
    assert count_majority(server_of(ONE), leader._replace(progress=one_has_it)).effects == ()
    both = frozenset({ReplicaProgress(key_of(TWO), Offset(1)), ReplicaProgress(key_of(THREE), Offset(1))})
    assert count_majority(server_of(ONE), leader._replace(progress=both)).effects == (LogCommitted(Offset(1)),)


def test_a_leader_flushes_before_it_commits_or_after() -> None:
    voters = frozenset({key_of(ONE)})
    server = server_of(ONE)
    first = replace(server, protocol=replace(server.protocol, flushes_first=True))
    leader = a_leader().states[ONE]._replace(voter_sets=fixed_voters(voters), progress=frozenset())
    assert flush_and_count(server, leader).effects == (LogCommitted(Offset(1)), LogFlushed())
    assert flush_and_count(first, leader).effects == (LogFlushed(), LogCommitted(Offset(1)))


def test_records_are_appended_in_the_leaders_epoch() -> None:
    leader = a_leader().states[ONE]
    step = append(server_of(ONE), leader, (Record(7, Epoch(0)),), NOW)
    assert step.effects == (LogAppended(Offset(1), (Record(7, Epoch(1)),)), LogFlushed())
    assert leads_in(leader, Epoch(1))
    assert not leads_in(leader, Epoch(2))
    assert not leads_in(follower(), Epoch(5))


def test_an_answer_without_news_may_wait() -> None:
    request = QuorumFetchRequest(key_of(TWO), FETCH, Offset(3))
    nothing = QuorumFetchResponse(Error.NONE, Epoch(1), ONE, high_watermark=Offset(3))
    assert not is_news(request, nothing)
    assert is_news(request, replace(nothing, high_watermark=Offset(4)))
    assert is_news(request, replace(nothing, records=(Record(7, Epoch(1)),)))
    assert is_news(request, replace(nothing, error=Error.FENCED_LEADER_EPOCH))
    assert is_news(request, replace(nothing, diverging=EpochEndOffset(Epoch(1), Offset(1))))


def test_a_fetch_from_before_the_snapshot_gets_its_id_and_waits_for_nothing() -> None:
    snapshot = SnapshotId(Offset(1), Epoch(1))
    leader = after_own_snapshot(a_leader().states[ONE], snapshot)
    assert (leader.snapshot, leader.local.log.start_offset, leader.local.log.end_offset) == (snapshot, 1, 1)
    request = QuorumFetchRequest(key_of(TWO), FETCH)
    step = handle_fetch(server_of(ONE), leader, request, NOW)
    answer = reply_of(step)
    assert isinstance(answer, QuorumFetchResponse)
    assert answer == QuorumFetchResponse(Error.NONE, Epoch(1), ONE, snapshot=snapshot)
    assert is_news(request, answer)
    assert step.state.progress == leader.progress


def test_a_follower_takes_a_snapshot_in_place_of_its_log() -> None:
    snapshot = SnapshotId(Offset(4), Epoch(3))
    state = follower(((1, 1), (2, 2)), high_watermark=1)
    asked = fetched(state, offset=2, last=2, snapshot=snapshot)
    assert asked.effects == (SnapshotWanted(snapshot), fetch_timer(server_of(ONE)))
    piece = on_snapshot_piece(server_of(ONE), asked.state, NOW)
    assert (piece.state, piece.effects) == (asked.state, (fetch_timer(server_of(ONE)),))
    taken = on_snapshot(server_of(ONE), asked.state, snapshot, NOW)
    assert taken.effects == (LogReplaced(snapshot), LogCommitted(Offset(4)), fetch_timer(server_of(ONE)))
    log = taken.state.local.log
    assert (log.start_offset, log.end_offset, taken.state.high_watermark, taken.state.snapshot) == (4, 4, 4, snapshot)
    (send,) = requests_of(server_of(ONE), taken.state, NOW)
    assert isinstance(send.message, QuorumFetchRequest)
    assert send.message.fetch == FetchPosition(Epoch(5), Offset(4), Epoch(3))
    older = on_snapshot(server_of(ONE), taken.state, SnapshotId(Offset(3), Epoch(3)), NOW)
    assert (older.state, older.effects) == (taken.state, ())


def test_a_leader_is_active_once_it_has_committed_a_record_of_its_epoch() -> None:
    quorum = a_leader()
    assert not is_active(quorum.states[ONE])
    quorum.ask(TWO, ONE)
    quorum.ask(TWO, ONE)
    assert is_active(quorum.states[ONE])
    assert not is_active(quorum.states[TWO])


def test_a_leader_that_hears_of_a_majority_starts_its_time_anew() -> None:
    leader = a_leader().states[ONE]
    request = QuorumFetchRequest(key_of(TWO), FETCH)
    assert check_quorum_timer(server_of(ONE)) in handle_fetch(server_of(ONE), leader, request, NOW).effects
    five = frozenset({*VOTERS, key_of(BrokerId(4)), key_of(BrokerId(5))})
    of_five = leader._replace(voter_sets=fixed_voters(five))
    once = handle_fetch(server_of(ONE), of_five, request, NOW)
    assert once.state.heard_from == {TWO}
    assert check_quorum_timer(server_of(ONE)) not in once.effects
    assert handle_fetch(server_of(ONE), once.state, request, NOW).state.heard_from == {TWO}


# ---- being known


def test_a_leader_tells_those_that_do_not_fetch() -> None:
    quorum = a_leader()
    quorum.ask(TWO, ONE)
    leader, server = quorum.states[ONE], server_of(ONE)
    assert [send.to for send in requests_of(server, leader, NOW)] == [THREE]
    later = MonotonicMs(NOW + 1_000)
    assert [send.to for send in requests_of(server, leader, later)] == [TWO, THREE]
    (three,) = (send.message for send in requests_of(server, leader, NOW))
    assert three == BeginQuorumEpochRequest(Epoch(1), ONE, key_of(THREE))


def test_a_voter_that_answers_is_told_no_more_up_to_3_8() -> None:
    quorum = VoterQuorum(QUORUM_RELEASES[0])
    quorum.elect(ONE, by=TWO)
    assert quorum.ask(ONE, THREE)
    assert not quorum.ask(ONE, THREE)


def begin_answered(by: BrokerId, state: QuorumReplica[RecordLog], release: QuorumProtocol = NEWEST) -> Any:
    asked = Send(by, BeginQuorumEpochRequest(Epoch(1), ONE, key_of(by)))
    return handle_begin_quorum_epoch_response(
        server_of(ONE, release), state, asked, BeginQuorumEpochResponse(Error.NONE, Epoch(1), ONE), NOW
    )


def test_the_answer_of_a_voter_that_was_removed_stops_the_leader() -> None:
    leader = a_leader().states[ONE]
    without = leader._replace(voter_sets=fixed_voters(frozenset({key_of(ONE), key_of(TWO)})))
    assert reasons(begin_answered(THREE, without)) == [IllegalState.NOT_A_VOTER]
    assert reasons(begin_answered(TWO, without)) == []
    mended = begin_answered(THREE, without, QUORUM_RELEASES[-1])
    assert (reasons(mended), mended.state) == ([], without)
    asked = Send(TWO, BeginQuorumEpochRequest(Epoch(1), ONE))
    stale = BeginQuorumEpochResponse(Error.FENCED_LEADER_EPOCH, Epoch(4))
    deposed = handle_begin_quorum_epoch_response(server_of(ONE), leader, asked, stale, NOW)
    assert deposed.state.election == ElectionState(Epoch(4))


def test_a_follower_refuses_leaders_of_earlier_epochs_and_a_second_one() -> None:
    server, state = server_of(ONE), follower()
    early = handle_begin_quorum_epoch(server, state, BeginQuorumEpochRequest(Epoch(4), THREE), NOW)
    assert reply_of(early) == BeginQuorumEpochResponse(Error.FENCED_LEADER_EPOCH, Epoch(5), TWO)
    second = handle_begin_quorum_epoch(server, state, BeginQuorumEpochRequest(Epoch(5), THREE), NOW)
    assert reasons(second) == [IllegalState.TWO_LEADERS]
    other = handle_begin_quorum_epoch(server, state, BeginQuorumEpochRequest(Epoch(6), THREE, key_of(ONE, 2)), NOW)
    assert reply_of(other) == BeginQuorumEpochResponse(Error.INVALID_VOTER_KEY, Epoch(6), THREE)
    assert other.state.role == VoterRole.FOLLOWER


# ---- a follower


def test_a_follower_appends_flushes_and_commits() -> None:
    records = (Record(7, Epoch(5)),)
    step = fetched(follower(), records=records, high_watermark=Offset(3))
    timer = fetch_timer(server_of(ONE))
    assert step.effects == (LogAppended(Offset(0), records), LogFlushed(), LogCommitted(Offset(1)), timer)
    assert (step.state.high_watermark, step.state.has_fetched) == (1, True)
    again = fetched(step.state, 1, 5, high_watermark=Offset(1))
    assert again.effects == (timer,)
    assert fetched(follower(), high_watermark=UNKNOWN_OFFSET).effects == (timer,)


def test_an_observer_that_never_votes_does_not_flush() -> None:
    broker = replace(server_of(BrokerId(9)), may_vote=False)
    asked = Send(TWO, QuorumFetchRequest(key_of(BrokerId(9)), FetchPosition(Epoch(5), Offset(0), Epoch(0))))
    answer = QuorumFetchResponse(Error.NONE, Epoch(5), TWO, (Record(7, Epoch(5)),))
    step = handle_fetch_response(broker, follower(), asked, answer, NOW)
    assert LogFlushed() not in step.effects


def test_a_follower_takes_nothing_of_a_later_epoch() -> None:
    step = fetched(follower(), records=(Record(7, Epoch(5)), Record(8, Epoch(6))))
    assert step.state.local.log.records == (Record(7, Epoch(5)),)


def test_a_follower_truncates_but_not_what_is_committed() -> None:
    state = follower(((0, 1), (1, 2), (2, 2)))
    cut = fetched(state, 3, 2, diverging=EpochEndOffset(Epoch(1), Offset(1)))
    assert cut.effects == (LogCut(Offset(1)), fetch_timer(server_of(ONE)))
    committed = follower(((0, 1), (1, 2)), high_watermark=2)
    refused = fetched(committed, 2, 2, diverging=EpochEndOffset(Epoch(1), Offset(1)))
    assert reasons(refused) == [IllegalState.BELOW_HIGH_WATERMARK]


def test_what_a_leader_never_sends_stops_a_follower() -> None:
    committed = follower(((0, 1), (1, 2)), high_watermark=2)
    assert reasons(fetched(committed, 2, 2, high_watermark=Offset(1))) == [IllegalState.HIGH_WATERMARK_BACK]
    assert reasons(fetched(committed, 0, 0, records=(Record(9, Epoch(1)),))) == [IllegalState.UNEXPECTED_OFFSET]
    asking = committed._replace(role=VoterRole.PROSPECTIVE)
    assert reasons(fetched(asking, 2, 2)) == [IllegalState.NOT_FOLLOWING]


def test_who_knows_its_leader_and_not_where_that_is_reached_follows_it_when_it_answers() -> None:
    """It starts again before it has the voters, and asks whom it has in its settings. Up to 4.4 it stops."""
    known, no_voters = ElectionState(Epoch(5), TWO), (VoterSetEntry(UNKNOWN_OFFSET, frozenset()),)
    state = start(server_of(ONE), EMPTY_LOG, known, directory_of(ONE), no_voters, voters_in_log=True).state
    assert (state.role, state.election) == (VoterRole.UNATTACHED, known)
    record = (Record(7, Epoch(5)),)
    assert reasons(fetched(state, records=record)) == [IllegalState.NOT_FOLLOWING]
    step = fetched(state, records=record, rules=QUORUM_NEXT)
    assert (step.state.role, step.state.election, step.state.local.log.records) == (VoterRole.FOLLOWER, known, record)
    assert reasons(fetched(state, leader=THREE, rules=QUORUM_NEXT)) == [IllegalState.TWO_LEADERS]


def test_an_error_of_a_fetch_tells_of_the_leader() -> None:
    assert fetched(follower(), error=Error.UNKNOWN_SERVER_ERROR).effects == ()
    moved = fetched(follower(), error=Error.NOT_LEADER_OR_FOLLOWER, epoch=Epoch(6), leader=THREE)
    assert moved.state.election.leader == THREE


def test_who_waits_asks_every_other_voter_and_follows_who_answers() -> None:
    quorum = a_leader()
    asked = requests_of(server_of(THREE), quorum.states[THREE], NOW)
    assert [send.to for send in asked] == [ONE, TWO]
    quorum.ask(THREE, TWO)
    assert quorum.states[THREE].election == ElectionState(Epoch(1))
    quorum.ask(THREE, ONE)
    assert (quorum.states[THREE].role, quorum.states[THREE].has_fetched) == (VoterRole.FOLLOWER, True)
    assert quorum.states[THREE].local.log.end_offset == 1


# ---- resigning


def test_a_leader_that_hears_of_nobody_resigns() -> None:
    quorum = a_leader()
    quorum.ask(TWO, ONE)
    quorum.ask(TWO, ONE)
    step = on_check_quorum(server_of(ONE), quorum.states[ONE], NOW)
    assert (step.state.role, step.state.high_watermark) == (VoterRole.RESIGNED, UNKNOWN_OFFSET)
    assert step.state.successors == (key_of(TWO), key_of(THREE))
    assert FailWaiting() in step.effects
    older = server_of(ONE, QUORUM_RELEASES[0])
    assert on_check_quorum(older, quorum.states[ONE], NOW).state is quorum.states[ONE]
    assert on_check_quorum(server_of(ONE), quorum.states[TWO], NOW).state is quorum.states[TWO]


def test_a_resignation_is_told_until_it_is_acknowledged() -> None:
    quorum = a_leader()
    quorum.ask(TWO, ONE)
    quorum.take(ONE, on_resignation(server_of(ONE), quorum.states[ONE], NOW))
    assert on_resignation(server_of(TWO), quorum.states[TWO], NOW).effects == ()
    told = requests_of(server_of(ONE), quorum.states[ONE], NOW)
    assert told[0] == Send(TWO, EndQuorumEpochRequest(Epoch(1), ONE, (key_of(TWO), key_of(THREE))))
    assert quorum.ask(ONE, TWO)
    assert not quorum.ask(ONE, TWO)
    assert quorum.ask(ONE, THREE)
    assert quorum.states[THREE].role == VoterRole.FOLLOWER


def test_a_follower_waits_by_its_place_among_the_successors() -> None:
    server, state = server_of(ONE), follower()
    first = EndQuorumEpochRequest(Epoch(5), TWO, (key_of(ONE), key_of(THREE)))
    step = handle_end_quorum_epoch(server, state, first, NOW)
    assert StartTimer(QuorumTimer.ROLE, 0) in step.effects
    early = handle_end_quorum_epoch(server, state, replace(first, epoch=Epoch(4)), NOW)
    assert reply_of(early) == EndQuorumEpochResponse(Error.FENCED_LEADER_EPOCH, Epoch(5), TWO)
    second = handle_end_quorum_epoch(server, state, replace(first, leader=THREE), NOW)
    assert reasons(second) == [IllegalState.TWO_LEADERS]


def test_who_asks_before_an_election_hears_of_a_resignation_in_vain() -> None:
    asking = follower()._replace(role=VoterRole.PROSPECTIVE)
    step = handle_end_quorum_epoch(server_of(ONE), asking, EndQuorumEpochRequest(Epoch(5), TWO), NOW)
    assert step.state is asking
    assert len(step.effects) == 1


def end_answered(state: QuorumReplica[RecordLog], answer: EndQuorumEpochResponse) -> Any:
    asked = Send(TWO, EndQuorumEpochRequest(Epoch(5), ONE))
    return handle_end_quorum_epoch_response(server_of(ONE), state, asked, answer, NOW)


def test_an_acknowledgement_counts_only_for_who_has_resigned() -> None:
    assert reasons(end_answered(follower(), EndQuorumEpochResponse(Error.NONE, Epoch(5)))) == [IllegalState.NOT_RESIGNED]
    later = end_answered(follower(), EndQuorumEpochResponse(Error.FENCED_LEADER_EPOCH, Epoch(7)))
    assert later.state.election == ElectionState(Epoch(7), NO_LEADER)


@pytest.mark.parametrize(("wait", "error"), [(-1, Error.INVALID_REQUEST), (0, Error.NONE), (500, Error.NONE)])
def test_no_fetch_waits_for_less_than_nothing(wait: int, error: Error) -> None:
    assert check_wait(wait) is error


@pytest.mark.parametrize(("leads", "error"), [(True, Error.NONE), (False, Error.NOT_LEADER_OR_FOLLOWER)])
def test_the_leader_alone_describes_the_quorum(leads: bool, error: Error) -> None:
    assert check_described_quorum(leads) is error


@pytest.mark.parametrize("release", QUORUM_RELEASES, ids=lambda release: str(release.name))
def test_a_quorum_commits_across_leaders_in_every_release(release: Any) -> None:
    quorum = VoterQuorum(release)
    for number, (leader, voter) in enumerate(((ONE, TWO), (TWO, ONE), (THREE, TWO))):
        quorum.take(voter, on_resignation(quorum.servers[voter], quorum.states[voter], NOW))
        quorum.elect(leader, by=voter)
        quorum.append(leader, number)
        for _ in range(4):
            for other in (ONE, TWO, THREE):
                quorum.ask(other, leader)
                quorum.ask(leader, other)
    logs = {state.local.log for state in quorum.states.values()}
    assert [record.value for record in next(iter(logs)).records] == [-1, 0, -1, 1, -1, 2]
    assert len(logs) == 1
    assert {state.high_watermark for state in quorum.states.values()} == {6}
    assert QuorumFetchResponse(Error.NONE, Epoch(0)).diverging == UNDEFINED_EPOCH_END
    assert FETCHED.to == TWO


@pytest.mark.parametrize("algebra", [EMPTY_LOG, EMPTY_EPOCH_LOG])
def test_a_log_that_is_cut_back_to_its_snapshot_has_the_epoch_of_that(algebra: RecordLog | EpochLog) -> None:
    """Else its next fetch names no epoch, is told of the same snapshot, and nothing comes of it, for ever."""
    server, snapshot = server_of(TWO), SnapshotId(Offset(5), Epoch(1))
    state = start(server, algebra, ElectionState(Epoch(2)), directory_of(TWO), fixed_voters(VOTERS)).state
    begun = on_snapshot(server, state, snapshot, NOW).state
    log = begun.local.log.append((Record(7, Epoch(2)),))
    cut = truncate_by(server, begun._replace(local=begun.local._replace(log=log)), EpochEndOffset(Epoch(1), Offset(5)))
    assert cut.effects == (LogCut(Offset(5)),)
    assert (cut.state.local.log.end_offset, last_epoch_of(cut.state.local.log)) == (5, snapshot.epoch)


def test_one_that_led_and_votes_no_more_does_not_stay_resigned() -> None:
    """Its time ends, and it reads on as an observer."""
    server, others = server_of(ONE), frozenset({key_of(TWO), key_of(THREE)})
    step = start(server, EMPTY_LOG, ElectionState(Epoch(3), ONE), directory_of(ONE), fixed_voters(others))
    assert step.state.role == VoterRole.RESIGNED
    assert election_timer(server) in step.effects
    after = on_timeout(server, step.state, NOW).state
    assert (after.role, after.election.epoch) == (VoterRole.UNATTACHED, 4)
