"""Voters are added and removed one at a time, each change effective once it is in a log (KIP-853)."""

from dataclasses import replace

import pytest

from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.fetch import FetchPosition
from kspec.spec.messages.quorum.fetch import QuorumFetchRequest, SnapshotId
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, RemoveVoterRequest, UpdateVoterRequest
from kspec.spec.messages.quorum.voters import VoterSetEntry
from kspec.spec.quorum.effects import LeaderChangeAppended, VersionsWanted, VoterChangeEnded, VotersAppended
from kspec.spec.quorum.elections import on_timeout
from kspec.spec.quorum.following import after_own_snapshot, on_snapshot
from kspec.spec.quorum.leading import handle_fetch
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.reconfiguration import (
    CAUGHT_UP_MS,
    handle_add_voter,
    handle_remove_voter,
    handle_update_voter,
    handle_update_voter_response,
    join_of,
    on_versions,
    on_voter_change_timeout,
    update_of,
)
from kspec.spec.quorum.refusals import check_changed_voter
from kspec.spec.quorum.replica import NO_CHANGE, QuorumReplica, VoterChange, progress_of, voters_of, votes
from kspec.spec.quorum.requests import asks_anybody, requests_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import OBSERVER_MS, is_forgotten, reaches_end
from kspec.spec.quorum.transitions import LEADER_CHANGE_AND_VOTERS, QuorumStep, become_leader, fetch_timer, follow_or_wait
from kspec.spec.releases.quorum import QUORUM_4_1, QUORUM_NEXT
from kspec.spec.step import Send, Step
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, Epoch, Error, MonotonicMs, Offset, ReplicaKey
from tests.spec.quorum.driver import NEWEST, NOW, ONE, THREE, TWO, VOTERS, VoterQuorum, directory_of, key_of

FOUR = BrokerId(4)
NEW = key_of(FOUR)


def quorum(protocol: QuorumProtocol = NEWEST, voters_in_log: bool = True) -> VoterQuorum:
    """Three voters, of which one leads, and an observer; all know all that is committed."""
    found = VoterQuorum(protocol, VOTERS, frozenset({NEW}), voters_in_log=voters_in_log)
    found.elect(ONE, TWO)
    settle(found, ONE, TWO, THREE, FOUR)
    return found


def settle(found: VoterQuorum, leader: BrokerId, *others: BrokerId) -> None:
    """Let the others hear of the leader, and fetch until they know what is committed."""
    for other in (one for one in others if one != leader):
        found.ask(leader, other)
    for _ in range(3):
        for other in (one for one in others if one != leader):
            found.ask(other, leader)


def elect_anew(found: VoterQuorum, one: BrokerId, by: BrokerId) -> None:
    """Make another server the leader: by one that hears of its leader no more."""
    found.time_out(by)
    found.elect(one, by)
    assert found.states[one].role == VoterRole.LEADER


def asked(found: VoterQuorum, one: BrokerId, step: QuorumStep[RecordLog]) -> list[Error]:
    """Take a step; the errors that are answered."""
    found.take(one, step)
    return [effect.response.error for effect in step.effects if isinstance(effect, VoterChangeEnded)]


def add(found: VoterQuorum, one: BrokerId = ONE, voter: ReplicaKey = NEW) -> list[Error]:
    return asked(found, one, handle_add_voter(found.servers[one], found.states[one], AddVoterRequest(voter), NOW))


def versions(
    found: VoterQuorum, one: BrokerId = ONE, error: Error = Error.NONE, known: bool = True, now: MonotonicMs = NOW
) -> list[Error]:
    return asked(found, one, on_versions(found.servers[one], found.states[one], error, known, now))


def remove(found: VoterQuorum, one: BrokerId, voter: ReplicaKey) -> list[Error]:
    return asked(found, one, handle_remove_voter(found.servers[one], found.states[one], RemoveVoterRequest(voter), NOW))


def time_out(found: VoterQuorum) -> list[Error]:
    return asked(found, ONE, on_voter_change_timeout(found.servers[ONE], found.states[ONE], NOW))


def test_the_first_leader_writes_the_voters_into_the_log() -> None:
    found = quorum()
    leader = found.states[ONE]
    assert [entry.offset for entry in leader.voter_sets] == [UNKNOWN_OFFSET, 2]
    assert (leader.local.log.end_offset, leader.high_watermark) == (3, 3)
    assert [found.states[one].voter_sets for one in (TWO, THREE, FOUR)] == [leader.voter_sets] * 3
    elect_anew(found, TWO, THREE)
    assert len(found.states[TWO].voter_sets) == 2, "the second leader has them in its log"


def test_the_first_voters_are_in_the_batch_of_the_leader_change() -> None:
    found = VoterQuorum(NEWEST, VOTERS, voters_in_log=True)
    log = found.states[ONE].local.log
    leading = become_leader(found.servers[ONE], found.states[ONE])
    (told,) = [effect for effect in leading.effects if isinstance(effect, LeaderChangeAppended)]
    assert (told.base_offset, told.first_voters) == (log.end_offset, VOTERS)
    assert leading.state.local.log.end_offset == log.end_offset + LEADER_CHANGE_AND_VOTERS.record_count
    again = become_leader(found.servers[ONE], leading.state)
    (told,) = [effect for effect in again.effects if isinstance(effect, LeaderChangeAppended)]
    assert told.first_voters == frozenset()


def test_a_snapshot_tells_the_voters() -> None:
    found = quorum()
    observer = found.states[FOUR]
    snapshot = SnapshotId(Offset(9), Epoch(1))
    taken = on_snapshot(found.servers[FOUR], observer, snapshot, NOW, VOTERS | {NEW})
    assert taken.state.voter_sets == (VoterSetEntry(Offset(8), VOTERS | {NEW}),)
    assert votes(found.servers[FOUR], taken.state)
    own = after_own_snapshot(observer, SnapshotId(observer.high_watermark, Epoch(1)))
    assert own.voter_sets == observer.voter_sets[-1:], "the one in force stays"


def test_an_observer_whose_leader_is_silent_asks_anybody() -> None:
    found = quorum()
    bootstrap = BrokerId(-2)
    server, observer = replace(found.servers[FOUR], bootstrap=(bootstrap,)), found.states[FOUR]
    assert [send.to for send in requests_of(server, observer, NOW)] == [ONE]
    lost = on_timeout(server, observer, NOW).state
    assert (lost.role, lost.election, asks_anybody(lost)) == (VoterRole.FOLLOWER, observer.election, True)
    assert [send.to for send in requests_of(server, lost, NOW)] == [ONE, TWO, THREE, bootstrap]
    told = follow_or_wait(server, lost, ONE, lost.election.epoch)
    assert [send.to for send in requests_of(server, told.state, NOW)] == [ONE]


def test_a_voter_is_added_once_it_has_told_its_versions() -> None:
    found = quorum()
    step = handle_add_voter(found.servers[ONE], found.states[ONE], AddVoterRequest(NEW), NOW)
    assert step.effects == (VersionsWanted(NEW),)
    found.take(ONE, step)
    assert voters_of(found.states[ONE]) == VOTERS
    step = on_versions(found.servers[ONE], found.states[ONE], Error.NONE, True, NOW)
    assert step.effects[0] == VotersAppended(
        found.states[ONE].local.log.end_offset, found.states[ONE].election.epoch, VOTERS | {NEW}
    )
    assert asked(found, ONE, step) == []
    assert voters_of(found.states[ONE]) == VOTERS | {NEW}, "before it is committed"
    assert found.states[ONE].change == VoterChange(NEW, found.states[ONE].voter_sets[-1].offset)
    assert not votes(found.servers[FOUR], found.states[FOUR])
    settle(found, ONE, TWO, FOUR)
    assert votes(found.servers[FOUR], found.states[FOUR])
    assert found.states[ONE].change == NO_CHANGE
    assert found.states[ONE].high_watermark == found.states[ONE].local.log.end_offset


def test_a_voter_that_was_removed_may_vote_again_before_it_fetches() -> None:
    found = quorum()
    assert remove(found, ONE, key_of(THREE)) == []
    assert found.ask(TWO, ONE)
    assert found.ask(TWO, ONE)
    behind = progress_of(found.states[ONE], key_of(THREE)).end_offset
    assert (add(found, voter=key_of(THREE)), versions(found)) == ([], [])
    assert behind < found.states[ONE].voter_sets[-1].offset
    assert voters_of(found.states[ONE]) == VOTERS


def test_a_replica_catches_up_with_a_log_that_grows() -> None:
    assert reaches_end(Offset(5), Offset(5), UNKNOWN_OFFSET)
    assert reaches_end(Offset(5), Offset(8), Offset(5))
    assert not reaches_end(Offset(4), Offset(8), Offset(5))
    assert not reaches_end(Offset(0), Offset(8), Offset(0))
    found, late = quorum(), key_of(BrokerId(5))
    for fetched, has_caught_up in ((2, False), (3, False), (5, True)):
        found.append(ONE, 7)
        request = QuorumFetchRequest(late, FetchPosition(Epoch(1), Offset(fetched), Epoch(1)))
        found.take(ONE, handle_fetch(found.servers[ONE], found.states[ONE], request, NOW))
        known = progress_of(found.states[ONE], late)
        assert (known.has_caught_up, known.leader_end == UNKNOWN_OFFSET) == (has_caught_up, has_caught_up)
        assert known.end_offset < found.states[ONE].local.log.end_offset


def test_four_voters_need_three() -> None:
    found = quorum()
    assert (add(found), versions(found)) == ([], [])
    settle(found, ONE, TWO)
    assert found.states[ONE].high_watermark < found.states[ONE].local.log.end_offset
    settle(found, ONE, THREE)
    assert found.states[ONE].high_watermark == found.states[ONE].local.log.end_offset


def test_who_waits_for_a_change_is_answered_when_it_is_committed() -> None:
    found = quorum()
    step = handle_remove_voter(found.servers[ONE], found.states[ONE], RemoveVoterRequest(key_of(THREE)), NOW)
    assert asked(found, ONE, step) == []
    found.ask(TWO, ONE)
    before = found.states[ONE]
    (send,) = requests_of(found.servers[TWO], found.states[TWO], NOW)
    found.arrive(send)
    assert (before.change.offset, found.states[ONE].change) == (3, NO_CHANGE)
    assert found.states[ONE].role == VoterRole.LEADER
    assert voters_of(found.states[ONE]) == VOTERS - {key_of(THREE)}


def test_changes_that_are_refused() -> None:
    found = quorum()
    assert add(found, TWO) == [Error.NOT_LEADER_OR_FOLLOWER]
    assert add(found, ONE, key_of(THREE, 2)) == [Error.DUPLICATE_VOTER]
    assert remove(found, ONE, NEW) == [Error.VOTER_NOT_FOUND]
    assert remove(found, ONE, key_of(THREE, 2)) == [Error.VOTER_NOT_FOUND]
    assert add(found) == []
    assert remove(found, ONE, key_of(THREE)) == [Error.REQUEST_TIMED_OUT], "another change is under way"
    assert versions(found) == []
    assert versions(found) == [], "nobody is asked for versions any more"
    found.take(ONE, on_voter_change_timeout(found.servers[ONE], found.states[ONE], NOW))
    assert found.states[ONE].change == NO_CHANGE
    assert remove(found, ONE, key_of(THREE)) == [Error.REQUEST_TIMED_OUT], "the last change is not committed"


def test_the_only_voter_stays() -> None:
    found = VoterQuorum(NEWEST, frozenset({key_of(ONE)}), voters_in_log=True)
    assert found.states[ONE].role == VoterRole.LEADER
    assert remove(found, ONE, key_of(ONE)) == [Error.VOTER_NOT_FOUND]


def test_voters_of_the_configuration_stay() -> None:
    assert add(quorum(voters_in_log=False)) == [Error.UNSUPPORTED_VERSION]


def test_a_leader_changes_nothing_before_a_record_of_its_epoch_is_committed() -> None:
    found = VoterQuorum(NEWEST, VOTERS, frozenset({NEW}), voters_in_log=True)
    found.elect(ONE, TWO)
    assert add(found) == [Error.REQUEST_TIMED_OUT]


@pytest.mark.parametrize(
    ("error", "known", "later_ms", "expected"),
    [
        (Error.UNSUPPORTED_VERSION, True, 0, Error.REQUEST_TIMED_OUT),
        (Error.NONE, False, 0, Error.INVALID_REQUEST),
        (Error.NONE, True, CAUGHT_UP_MS, Error.REQUEST_TIMED_OUT),
    ],
)
def test_a_replica_that_cannot_vote_is_not_added(error: Error, known: bool, later_ms: int, expected: Error) -> None:
    found = quorum()
    assert add(found) == []
    assert versions(found, ONE, error, known, MonotonicMs(NOW + later_ms)) == [expected]
    assert (found.states[ONE].change, voters_of(found.states[ONE])) == (NO_CHANGE, VOTERS)


def test_a_replica_that_has_never_caught_up_is_not_added() -> None:
    found = quorum()
    other = ReplicaKey(BrokerId(5), directory_of(BrokerId(5)))
    assert add(found, ONE, other) == []
    assert versions(found) == [Error.REQUEST_TIMED_OUT]


def test_a_change_times_out_once() -> None:
    found = quorum()
    assert asked(found, ONE, on_voter_change_timeout(found.servers[ONE], found.states[ONE], NOW)) == []
    add(found)
    assert asked(found, ONE, on_voter_change_timeout(found.servers[ONE], found.states[ONE], NOW)) == [
        Error.REQUEST_TIMED_OUT
    ]


def test_a_leader_that_is_removed_resigns_when_that_is_committed() -> None:
    found = quorum()
    assert remove(found, ONE, key_of(ONE)) == []
    assert (found.states[ONE].role, votes(found.servers[ONE], found.states[ONE])) == (VoterRole.LEADER, False)
    found.ask(TWO, ONE)
    found.ask(TWO, ONE)
    assert found.states[ONE].role == VoterRole.LEADER, "it does not count itself: one of two has the record"
    settle(found, ONE, THREE)
    assert found.states[ONE].role == VoterRole.RESIGNED
    removed, follower = found.states[THREE].voter_sets[-1].offset, found.states[THREE]
    assert follower.high_watermark > removed, "the answer to the fetch that committed it says so"
    elect_anew(found, TWO, THREE)
    assert found.states[TWO].role == VoterRole.LEADER


@pytest.mark.parametrize(("protocol", "role"), [(NEWEST, VoterRole.LEADER), (QUORUM_NEXT, VoterRole.RESIGNED)])
def test_a_leader_that_is_removed_too_late_for_who_has_asked(protocol: QuorumProtocol, role: VoterRole) -> None:
    found = quorum(protocol)
    assert remove(found, ONE, key_of(ONE)) == []
    found.take(ONE, on_voter_change_timeout(found.servers[ONE], found.states[ONE], NOW))
    settle(found, ONE, TWO, THREE)
    assert found.states[ONE].role == role


@pytest.mark.parametrize(("protocol", "role"), [(NEWEST, VoterRole.UNATTACHED), (QUORUM_NEXT, VoterRole.LEADER)])
def test_who_has_written_its_own_removal_and_starts_again(protocol: QuorumProtocol, role: VoterRole) -> None:
    """One voter of two has the record of its removal, and the other needs the vote of the longer log. Up to 4.4 nobody leads
    any more.
    """
    found = VoterQuorum(protocol, frozenset({key_of(ONE), key_of(TWO)}), voters_in_log=True)
    found.elect(ONE, TWO)
    settle(found, ONE, TWO)
    assert remove(found, ONE, key_of(ONE)) == []
    found.restart(ONE)
    for _ in range(3):
        found.elect(TWO, ONE)
        found.elect(ONE, TWO)
    assert found.states[TWO].role != VoterRole.LEADER, "its log is shorter"
    assert found.states[ONE].role == role
    if protocol is QUORUM_NEXT:
        settle(found, ONE, TWO)
        assert found.states[ONE].role == VoterRole.RESIGNED
        found.time_out(ONE)
        found.elect(TWO, ONE)
        assert found.states[TWO].role == VoterRole.LEADER
        found.ask(ONE, TWO)
        found.ask(ONE, TWO)
        found.time_out(ONE)
        assert found.states[ONE].role == VoterRole.FOLLOWER, "it knows that its removal is committed"


def test_who_stands_without_a_vote_of_its_own_starts_again() -> None:
    found = VoterQuorum(QUORUM_NEXT, frozenset({key_of(ONE), key_of(TWO)}), voters_in_log=True)
    found.elect(ONE, TWO)
    settle(found, ONE, TWO)
    remove(found, ONE, key_of(ONE))
    found.restart(ONE)
    found.time_out(TWO)
    for _ in range(2):
        found.time_out(ONE)
    found.ask(ONE, TWO)
    assert found.states[ONE].role == VoterRole.CANDIDATE
    assert found.restart(ONE) == []
    assert (found.states[ONE].role, found.states[ONE].tally.granted) == (VoterRole.CANDIDATE, frozenset())


def test_a_truncation_takes_back_the_voters() -> None:
    found = quorum()
    elect_anew(found, TWO, THREE)
    settle(found, TWO, THREE)
    found.append(TWO, 1)
    state = found.states[ONE]
    assert state.role == VoterRole.LEADER, "it has not heard of the other"
    assert remove(found, ONE, key_of(THREE)) == []
    assert voters_of(found.states[ONE]) == VOTERS - {key_of(THREE)}
    found.ask(TWO, ONE)
    for _ in range(2):
        found.ask(ONE, TWO)
    assert voters_of(found.states[ONE]) == VOTERS
    assert found.states[ONE].voter_sets == found.states[TWO].voter_sets


def test_a_leader_that_loses_its_office_fails_who_waits() -> None:
    found = quorum()
    add(found)
    elect_anew(found, TWO, THREE)
    state: QuorumReplica[RecordLog] = found.states[ONE]
    assert state.change == VoterChange(NEW)
    found.ask(TWO, ONE)
    assert found.states[ONE].change == NO_CHANGE


def update(found: VoterQuorum, voter: ReplicaKey) -> list[Error]:
    return asked(found, ONE, handle_update_voter(found.servers[ONE], found.states[ONE], UpdateVoterRequest(voter), NOW))


def test_who_does_not_wait_is_answered_when_it_is_written() -> None:
    request = AddVoterRequest(NEW, waits=False)
    found = quorum()
    assert asked(found, ONE, handle_add_voter(found.servers[ONE], found.states[ONE], request, NOW)) == []
    assert versions(found) == [Error.NONE]
    assert found.states[ONE].change != NO_CHANGE, "no other change comes before it is committed"
    assert time_out(found) == [], "once is enough"
    assert found.states[ONE].change == NO_CHANGE
    found = quorum()
    assert asked(found, ONE, handle_add_voter(found.servers[ONE], found.states[ONE], request, NOW)) == []
    assert versions(found, known=False) == [Error.INVALID_REQUEST], "nothing is written"
    found = quorum()
    assert asked(found, ONE, handle_add_voter(found.servers[ONE], found.states[ONE], request, NOW)) == []
    assert versions(found) == [Error.NONE]
    settle(found, ONE, TWO, THREE)
    assert found.states[ONE].change == NO_CHANGE


def test_a_voter_that_moves_is_written_anew() -> None:
    found = quorum()
    before = found.states[ONE].voter_sets
    assert update(found, key_of(TWO)) == [Error.NONE]
    assert [entry.voters for entry in found.states[ONE].voter_sets] == [*(entry.voters for entry in before), VOTERS]
    assert update(found, key_of(TWO)) == [Error.REQUEST_TIMED_OUT], "the last one is not yet committed"
    settle(found, ONE, TWO, THREE)
    assert update(found, NEW) == [Error.VOTER_NOT_FOUND]


def test_a_change_is_for_this_cluster_its_leader_and_a_voter() -> None:
    assert check_changed_voter(False, True, True, True) == Error.INCONSISTENT_CLUSTER_ID
    assert check_changed_voter(True, False, True, True) == Error.NOT_LEADER_OR_FOLLOWER
    assert check_changed_voter(True, True, False, True) == Error.INVALID_REQUEST
    assert check_changed_voter(True, True, True, False) == Error.INVALID_REQUEST
    assert check_changed_voter(True, True, True, True) == Error.NONE


def test_a_follower_that_has_moved_tells_its_leader() -> None:
    found = quorum()
    moved = replace(found.servers[TWO], has_moved=True)
    wanted = update_of(moved, found.states[TWO])
    assert wanted == Send(ONE, UpdateVoterRequest(key_of(TWO)))
    assert update_of(found.servers[TWO], found.states[TWO]) is None
    assert update_of(replace(found.servers[ONE], has_moved=True), found.states[ONE]) is None, "a leader asks nobody"
    assert update_of(replace(found.servers[FOUR], has_moved=True), found.states[FOUR]) is None, "it does not vote"
    epoch = found.states[TWO].election.epoch
    answered = handle_update_voter_response(moved, found.states[TWO], Error.NONE, epoch, ONE, NOW)
    assert answered == Step(found.states[TWO], (fetch_timer(moved),))
    refused = handle_update_voter_response(moved, found.states[TWO], Error.REQUEST_TIMED_OUT, epoch, ONE, NOW)
    assert refused == Step(found.states[TWO])


def test_a_leader_that_has_moved_writes_the_voters_with_its_epoch() -> None:
    found = quorum()
    state = found.states[ONE]
    for has_moved, voters in ((True, VOTERS), (False, frozenset())):
        step = become_leader(replace(found.servers[ONE], has_moved=has_moved), state)
        (told,) = [effect for effect in step.effects if isinstance(effect, LeaderChangeAppended)]
        assert (told.first_voters, told.base_offset) == (voters, state.local.log.end_offset)


def test_a_controller_that_is_to_join_asks_for_its_vote_or_to_remove_its_earlier_disk() -> None:
    found = quorum()
    joins = replace(found.servers[FOUR], joins=True)
    wanted = Send(ONE, AddVoterRequest(NEW, waits=False))
    assert join_of(joins, found.states[FOUR]) == wanted
    assert join_of(found.servers[FOUR], found.states[FOUR]) is None
    assert join_of(replace(joins, protocol=QUORUM_4_1), found.states[FOUR]) is None
    assert join_of(replace(joins, may_vote=False), found.states[FOUR]) is None
    assert join_of(joins, found.states[FOUR]._replace(voters_in_log=False)) is None
    assert join_of(replace(found.servers[TWO], joins=True), found.states[TWO]) is None, "it votes"
    other_disk = found.states[TWO]._replace(directory=directory_of(TWO, life=2))
    assert join_of(replace(found.servers[TWO], joins=True), other_disk) == Send(ONE, RemoveVoterRequest(key_of(TWO)))


def test_an_observer_that_does_not_fetch_is_forgotten_after_five_minutes() -> None:
    assert is_forgotten(OBSERVER_MS)
    assert not is_forgotten(OBSERVER_MS - 1)
