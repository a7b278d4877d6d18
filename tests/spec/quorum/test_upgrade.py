"""`kraft.version` is raised from 0 to 1: the voters of the settings become those of the log (KAFKA-16538)."""

from dataclasses import replace

import pytest

from kspec.spec.messages.quorum.fetch import SnapshotId
from kspec.spec.messages.quorum.voter_changes import AddVoterRequest, UpdateVoterRequest
from kspec.spec.quorum.effects import VoterChangeEnded, VotersAppended
from kspec.spec.quorum.following import on_snapshot
from kspec.spec.quorum.protocol import QuorumProtocol
from kspec.spec.quorum.reconfiguration import (
    check_upgrade,
    handle_add_voter,
    handle_update_voter,
    handle_update_voter_response,
    update_of,
    upgrade_voters,
)
from kspec.spec.quorum.replica import progress_of, voters_of, votes
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.quorum.rules.voters import never_upgrades, upgrades_when_all_have_reported, with_report
from kspec.spec.quorum.transitions import VERSION_AND_VOTERS, fetch_timer
from kspec.spec.releases.quorum import QUORUM_4_0, QUORUM_NEXT, QUORUM_RELEASES
from kspec.spec.step import Send, Step
from kspec.spec.values import UNKNOWN_OFFSET, BrokerId, Epoch, Error, Offset, ReplicaKey
from tests.spec.quorum.driver import IDS, NEWEST, NOW, ONE, THREE, TWO, VOTERS, VoterQuorum, directory_of, key_of
from tests.spec.quorum.test_reconfiguration import asked, elect_anew, settle

SETTINGS = frozenset(ReplicaKey(one) for one in IDS)


def quorum(protocol: QuorumProtocol = NEWEST) -> VoterQuorum:
    """Three voters of settings, of which one leads; all know all that is committed."""
    found = VoterQuorum(protocol, SETTINGS)
    found.elect(ONE, TWO)
    settle(found, ONE, TWO, THREE)
    return found


def report(found: VoterQuorum, voter: ReplicaKey, may_upgrade: bool = True, to: BrokerId = ONE) -> list[Error]:
    request = UpdateVoterRequest(voter, may_upgrade)
    return asked(found, to, handle_update_voter(found.servers[to], found.states[to], request, NOW))


def upgrade(found: VoterQuorum, one: BrokerId = ONE) -> Error:
    error = check_upgrade(found.servers[one], found.states[one])
    found.take(one, upgrade_voters(found.servers[one], found.states[one], NOW))
    return error


def upgraded() -> VoterQuorum:
    found = quorum()
    assert [report(found, key_of(one)) for one in (TWO, THREE)] == [[Error.NONE]] * 2
    assert upgrade(found) == Error.NONE
    return found


def test_voters_that_have_reported_are_written_in_one_batch_with_the_version() -> None:
    found = quorum()
    before = found.states[ONE].local.log.end_offset
    assert [report(found, key_of(one)) for one in (TWO, THREE)] == [[Error.NONE]] * 2
    step = upgrade_voters(found.servers[ONE], found.states[ONE], NOW)
    assert VotersAppended(before, Epoch(1), VOTERS, upgrades=True) in step.effects
    found.take(ONE, step)
    leader = found.states[ONE]
    assert (leader.voters_in_log, voters_of(leader), leader.reported) == (True, VOTERS, frozenset())
    assert leader.local.log.end_offset == before + VERSION_AND_VOTERS.record_count
    assert leader.voter_sets[-1].offset == before + VERSION_AND_VOTERS.record_count - 1
    assert leader.high_watermark == before, "it is not yet committed"
    assert progress_of(leader, key_of(TWO)).end_offset == before, "what was known of a voter is known on"
    settle(found, ONE, TWO, THREE)
    assert found.states[ONE].high_watermark == leader.local.log.end_offset
    for one in (TWO, THREE):
        follower = found.states[one]
        assert (follower.voters_in_log, voters_of(follower), votes(found.servers[one], follower)) == (True, VOTERS, True)
    assert upgrade(found) == Error.NONE, "once more: it is done"
    assert found.states[ONE].local.log.end_offset == leader.local.log.end_offset
    elect_anew(found, TWO, THREE)


def test_the_leader_knows_its_own_directory_and_of_the_others_what_they_report() -> None:
    found = quorum()
    assert found.states[ONE].reported == {key_of(ONE)}
    assert upgrade(found) == Error.INVALID_UPDATE_VERSION
    assert report(found, key_of(TWO)) == [Error.NONE]
    assert report(found, key_of(THREE), may_upgrade=False) == [Error.NONE]
    assert upgrade(found) == Error.INVALID_UPDATE_VERSION, "one of them does not work with it"
    assert report(found, key_of(BrokerId(9))) == [Error.VOTER_NOT_FOUND]
    assert report(found, key_of(THREE)) == [Error.NONE]
    assert report(found, key_of(THREE, life=2)) == [Error.NONE], "another disk, in place of the one before"
    assert found.states[ONE].reported == {key_of(ONE), key_of(TWO), key_of(THREE, life=2)}
    assert upgrade(found, TWO) == Error.NOT_LEADER_OR_FOLLOWER
    assert not found.states[TWO].voters_in_log
    assert report(found, key_of(TWO), to=TWO) == [Error.NOT_LEADER_OR_FOLLOWER]


def test_a_new_leader_knows_nothing_of_what_the_one_before_was_told() -> None:
    found = quorum()
    assert [report(found, key_of(one)) for one in (TWO, THREE)] == [[Error.NONE]] * 2
    elect_anew(found, TWO, THREE)
    assert found.states[TWO].reported == {key_of(TWO)}
    assert upgrade(found, TWO) == Error.INVALID_UPDATE_VERSION
    found.states[TWO] = found.states[TWO]._replace(high_watermark=UNKNOWN_OFFSET)
    assert report(found, key_of(THREE), to=TWO) == [Error.REQUEST_TIMED_OUT], "it does not know what is committed"


def test_a_follower_reports_until_its_leader_has_taken_it() -> None:
    found = quorum()
    server, state = found.servers[TWO], found.states[TWO]
    assert update_of(server, state) == Send(ONE, UpdateVoterRequest(key_of(TWO)))
    assert update_of(found.servers[ONE], found.states[ONE]) is None, "a leader knows itself"
    assert update_of(replace(server, protocol=QUORUM_4_0), state) is None
    epoch = state.election.epoch
    refused = handle_update_voter_response(server, state, Error.REQUEST_TIMED_OUT, epoch, ONE, NOW)
    assert refused == Step(state)
    for error in (Error.NONE, Error.UNSUPPORTED_VERSION):
        taken = handle_update_voter_response(server, state, error, epoch, ONE, NOW)
        assert taken == Step(state._replace(has_reported=True), (fetch_timer(server),))
        assert update_of(server, taken.state) is None
    found.states[TWO] = state._replace(has_reported=True)
    elect_anew(found, THREE, TWO)
    settle(found, THREE, TWO)
    assert update_of(server, found.states[TWO]) == Send(THREE, UpdateVoterRequest(key_of(TWO))), "to each leader"


def test_a_report_is_a_sign_of_life() -> None:
    found = quorum()
    step = handle_update_voter(found.servers[ONE], found.states[ONE], UpdateVoterRequest(key_of(TWO)), NOW)
    heard = found.states[ONE].heard_from
    assert step.state.heard_from != heard or len(step.effects) > 1


def test_a_truncation_takes_the_version_back() -> None:
    found = upgraded()
    assert found.states[ONE].voters_in_log
    found.append(ONE, 7)
    elect_anew(found, TWO, THREE)
    assert not found.states[TWO].voters_in_log, "the record was with the first leader alone"
    settle(found, TWO, ONE, THREE)
    first = found.states[ONE]
    assert (first.voters_in_log, voters_of(first)) == (False, SETTINGS)
    assert first.role == VoterRole.FOLLOWER
    add = AddVoterRequest(key_of(BrokerId(4)))
    step = handle_add_voter(found.servers[TWO], found.states[TWO], add, NOW)
    assert [one.response.error for one in step.effects if isinstance(one, VoterChangeEnded)] == [Error.UNSUPPORTED_VERSION]


def test_one_that_lost_its_disk_after_its_report_votes_no_more() -> None:
    found = quorum()
    assert [report(found, key_of(one)) for one in (TWO, THREE)] == [[Error.NONE]] * 2
    found.wipe(THREE)
    assert votes(found.servers[THREE], found.states[THREE]), "by its id, before"
    assert upgrade(found) == Error.NONE
    settle(found, ONE, TWO, THREE)
    assert found.states[THREE].voters_in_log
    assert not votes(found.servers[THREE], found.states[THREE])
    assert voters_of(found.states[THREE]) == VOTERS


def test_the_version_is_read_at_a_start_and_in_a_snapshot() -> None:
    found = upgraded()
    settle(found, ONE, TWO, THREE)
    for one in (TWO, ONE):
        found.restart(one)
        assert (found.states[one].voters_in_log, voters_of(found.states[one])) == (True, VOTERS)
    fresh = quorum()
    snapshot = SnapshotId(Offset(50), Epoch(1))
    step = on_snapshot(fresh.servers[THREE], fresh.states[THREE], snapshot, NOW, VOTERS)
    assert (step.state.voters_in_log, voters_of(step.state)) == (True, VOTERS)
    older = on_snapshot(fresh.servers[THREE], fresh.states[THREE], snapshot, NOW)
    assert (older.state.voters_in_log, voters_of(older.state)) == (False, SETTINGS)


def test_one_that_voted_for_itself_stands_again_though_it_had_stored_no_directory() -> None:
    """With `kraft.version` 0 the file has the id alone."""
    found = VoterQuorum(NEWEST, SETTINGS)
    found.time_out(TWO)
    found.ask(TWO, THREE)
    assert found.disks[TWO].election.voted == key_of(TWO)
    election = found.disks[TWO].election._replace(voted=ReplicaKey(TWO))
    found.disks[TWO] = found.disks[TWO]._replace(election=election)
    found.restart(TWO)
    assert found.states[TWO].role == VoterRole.CANDIDATE


@pytest.mark.parametrize("release", QUORUM_RELEASES, ids=lambda release: release.name)
def test_releases(release: QuorumProtocol) -> None:
    is_new = release.name in ("4.1", "4.2", "next")
    assert (release.takes_reports, release.may_upgrade is upgrades_when_all_have_reported) == (is_new, is_new)
    if is_new:
        return
    found = quorum(release)
    assert report(found, key_of(TWO)) == [Error.UNSUPPORTED_VERSION]
    assert upgrade(found) == Error.INVALID_UPDATE_VERSION
    assert not never_upgrades(SETTINGS, VOTERS)


def test_reports() -> None:
    one, two, other = key_of(ONE), key_of(TWO), ReplicaKey(TWO, directory_of(TWO, life=2))
    assert with_report(frozenset({one, two}), other, True) == {one, other}
    assert with_report(frozenset({one, two}), other, False) == {one}
    assert upgrades_when_all_have_reported(SETTINGS, VOTERS)
    assert not upgrades_when_all_have_reported(SETTINGS, VOTERS - {two})
    assert QUORUM_NEXT.may_upgrade is upgrades_when_all_have_reported
