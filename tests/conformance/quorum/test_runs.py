"""Runs of three voters by the rules of each release, without a real controller."""

import json
from pathlib import Path

import pytest

from kspec.conformance.kafka.run_files import NoRunInFileError
from kspec.conformance.quorum.from_model import WALK_KINDS, read_run, run_of_actions, walk
from kspec.conformance.quorum.moves import (
    AddVoter,
    Append,
    LoseDisk,
    RemoveVoter,
    Restart,
    SnapshotTransfer,
    TakeSnapshot,
    TimeOut,
    VoterExchange,
    VoterRequestKind,
)
from kspec.conformance.quorum.named import CANDIDATES, NAMED, ONE, THREE, TWO, for_release
from kspec.conformance.quorum.power import answers_before_flush
from kspec.conformance.quorum.runs import move_in_words, states_in
from kspec.conformance.quorum.voters import by_the_clock, first_voters, rules_of, take
from kspec.model_check.models import MODELS
from kspec.spec.messages.quorum.fetch import NO_SNAPSHOT, SnapshotId
from kspec.spec.messages.quorum.voter_changes import VoterChangeResponse
from kspec.spec.quorum.effects import IllegalState
from kspec.spec.quorum.replica import voters_of
from kspec.spec.quorum.rules.epochs import VoterRole
from kspec.spec.releases.quorum import QUORUM_3_9, QUORUM_4_1, QUORUM_4_2, QUORUM_NEXT, QUORUM_RELEASES
from kspec.spec.values import BrokerId, Epoch, Error, Offset

HOLDS = {
    "kept-vote": ("4.0", "4.1", "4.2"),
    "pre-vote-unseats": ("4.0", "4.1", "4.2", "next"),
    "vote-unseats": ("3.9", "4.0", "4.1", "4.2", "next"),
    "begin-unseats": ("3.9", "4.0", "4.1", "4.2", "next"),
    "fetch-unseats": (),
    "last-epoch": ("3.9", "4.0", "4.1", "4.2", "next"),
    "old-voter": ("4.0", "4.1", "4.2", "next"),
    "new-voter": (),
    "lost-disk": ("3.9", "4.0", "4.1", "4.2", "next"),
    "goes-back": ("3.9", "4.0", "4.1", "4.2", "next"),
    "lost-leader": ("3.9", "4.0", "4.1", "4.2"),
    "another-leader": ("3.9", "4.0", "4.1", "4.2", "next"),
    "removed-voter-answers": ("3.9", "4.0", "4.1", "4.2"),
    "removed-leader": ("3.9", "4.0", "4.1", "4.2"),
    "removed-leader-resigns": (),
    "needed-voter": ("3.9", "4.0", "4.1", "4.2"),
    "lagging-voter": ("3.9", "4.0", "4.1", "4.2", "next"),
    "snapshot": ("3.9", "4.0", "4.1", "4.2", "next"),
    "snapshot-with-voters": ("3.9", "4.0", "4.1", "4.2", "next"),
}
"""The releases in which each run comes to what it claims."""


def test_what_a_run_comes_to_depends_on_the_release() -> None:
    releases = [one for one in QUORUM_RELEASES if one.name in ("3.9", "4.0", "4.1", "4.2", "next")]
    found = {}
    for run in CANDIDATES:
        there = [one for one in releases if not (run.since and one is QUORUM_3_9)]
        runs = {one.name: for_release(run, asks_before=one is not QUORUM_3_9) for one in there}
        found[run.name] = tuple(one.name for one in there if run.holds(states_in(runs[one.name], one)))
    assert found == HOLDS


def test_the_rules_of_a_release_are_the_newest_that_are_not_newer() -> None:
    assert [rules_of(kafka).name for kafka in ("3.9.2", "4.1.1", "4.4.0")] == ["3.9", "4.1", "4.2"]


def test_by_the_rules_of_next_nobody_stops_and_the_flush_comes_first() -> None:
    states = states_in(NAMED["kept-vote"], QUORUM_NEXT)
    assert states[8].of(ONE).replica.role == VoterRole.FOLLOWER
    assert all(state.of(ONE).halted is None for state in states)
    assert [answers_before_flush(one) for one in (QUORUM_3_9, QUORUM_4_2, QUORUM_NEXT)] == [True, True, False]


def test_no_other_voter_can_be_elected_while_the_loser_stops_at_each_start() -> None:
    """3 has no record of the epoch, so 1 refuses it; and 1 stops when it asks 3. The winner's disk is gone."""
    run, states = NAMED["kept-vote"], states_in(NAMED["kept-vote"], QUORUM_4_2)
    assert [state.of(ONE).halted for state in states if state.of(ONE).halted] == [IllegalState.INVALID_REQUEST] * 2
    refused = take(states[11], run.steps[11])
    assert refused is not None
    assert not getattr(refused.answer, "is_granted", True)


def test_the_clock_takes_a_voter_through_its_roles_and_deposes_a_leader_that_nobody_fetches_from() -> None:
    roles = [voters.of(ONE).replica.role.value for voters in by_the_clock(first_voters(QUORUM_4_1), ONE, 3)]
    assert roles == ["unattached", "prospective", "unattached", "prospective"]
    leading = states_in(NAMED["goes-back"], QUORUM_4_1)[3]
    assert leading.of(ONE).replica.role == VoterRole.LEADER
    deposed = take(leading, TimeOut(ONE))
    assert deposed is not None
    assert deposed.after.of(ONE).replica.role == VoterRole.RESIGNED


def test_a_run_of_the_model_is_one_of_three_voters_and_the_real_one_is_number_one() -> None:
    actions = [
        ("TimeOut", {"server": 2}),
        ("PreVote", {"server": 2, "asked": 1}),
        ("VoteUnanswered", {"server": 2, "asked": 3}),
        ("Append", {"server": 2}),
        ("Append", {"server": 1}),
        ("Restart", {"server": 1}),
        ("LoseDisk", {"server": 3}),
        ("LosePower", {"server": 2, "kept": 0}),
        ("TimeOut", {"server": 3}),
    ]
    run = run_of_actions("a run", actions, BrokerId(2))
    assert run.steps == (
        TimeOut(ONE),
        VoterExchange(VoterRequestKind.PRE_VOTE, ONE, TWO),
        VoterExchange(VoterRequestKind.VOTE, ONE, THREE, lost=True),
        Append(TWO),
        Restart(TWO),
        LoseDisk(THREE),
    )
    assert [move_in_words(step) for step in run.steps][2] == "1 asks 3: Vote, and the answer is lost"


def test_walks_are_the_same_for_the_same_seed_and_every_step_of_theirs_is_possible() -> None:
    rules = rules_of("4.4.0")
    for seed in range(4):
        run = walk(seed, rules)
        assert run.steps == walk(seed, rules).steps
        assert len(states_in(run, rules)) == len(run.steps) + 1 > 10


def test_what_check_prints_is_a_run(tmp_path: Path) -> None:
    trace = [
        {"action": None, "args": {}},
        {"action": "TimeOut", "args": {"server": 1}},
        {"action": "PreVote", "args": {"server": 1, "asked": 2}},
    ]
    file = tmp_path / "found.json"
    file.write_text(json.dumps({"model": "quorum", "properties": [{"trace": None}, {"trace": trace}]}))
    assert read_run(file, 1).steps == (TimeOut(ONE), VoterExchange(VoterRequestKind.PRE_VOTE, ONE, TWO))
    itf = tmp_path / "found.itf.json"
    states = [{"action": "init"}, {"action": "TimeOut", "args": {"server": 3}}]
    itf.write_text(json.dumps({"vars": [], "states": states}))
    assert read_run(itf, 3).steps == (TimeOut(ONE),)
    for content in ("[]", "{", '{"model": "kafka", "properties": []}'):
        file.write_text(content)
        with pytest.raises(NoRunInFileError):
            read_run(file, 1)


def test_every_action_of_the_model_that_is_not_replayed_is_known() -> None:
    bounds = {"restarts": 1, "power_losses": 1, "wipes": 1, "resignations": 1, "lost_answers": 1, "voter_changes": 1}
    model = MODELS["quorum"].build(bounds)
    names = {action.name for action in model.actions}
    some = {"server": BrokerId(2), "asked": BrokerId(3), "voter": BrokerId(1)}
    left_out = {name for name in names if not run_of_actions("", [(name, some)], BrokerId(1)).steps}
    power = {"LosePower", "LosePowerWhileAppending", "LosePowerAfterAnswer"}
    assert left_out == {"Resign", "VoterChangeTimesOut", *power}


def test_walks_remove_voters_and_add_them_again() -> None:
    rules = rules_of("4.4.0")
    runs = [walk(seed, rules, WALK_KINDS["changes"]) for seed in range(1, 7)]
    assert all(run.changes_voters and len(states_in(run, rules)) == len(run.steps) + 1 for run in runs)
    assert sum(isinstance(step, RemoveVoter) for run in runs for step in run.steps) >= 4


def test_a_voter_that_has_caught_up_is_added_again() -> None:
    exchanges = (VoterExchange(VoterRequestKind.FETCH, THREE, ONE),) * 2
    leads = NAMED["removed-voter-answers"].steps
    run = NAMED["removed-voter-answers"]._replace(steps=(*leads[:-1], *exchanges, AddVoter(ONE, THREE)))
    states = states_in(run, QUORUM_4_2)
    voters = [len(voters_of(state.of(ONE).replica)) for state in states]
    assert (len(states), min(voters), voters[-1]) == (len(run.steps) + 1, 2, 3)
    early = run._replace(steps=(*leads[:-1], AddVoter(ONE, THREE)))
    answered = take(states_in(early, QUORUM_4_2)[-2], AddVoter(ONE, THREE))
    assert answered is not None
    assert answered.changed == VoterChangeResponse(Error.REQUEST_TIMED_OUT), "it has not caught up"
    again = take(states[-1], AddVoter(ONE, THREE))
    assert again is not None
    assert again.changed == VoterChangeResponse(Error.REQUEST_TIMED_OUT), "the change before it is not committed"


def test_a_snapshot_is_of_what_is_committed_and_fetched_from_the_leader_once_it_has_told_of_it() -> None:
    run = NAMED["snapshot"]
    states = states_in(run, QUORUM_4_2)
    place = next(number for number, step in enumerate(run.steps, 1) if isinstance(step, TakeSnapshot))
    before, told, fetched = states[place], states[place + 2], states[place + 3]
    assert before.of(TWO).replica.snapshot == SnapshotId(Offset(2), Epoch(1))
    assert take(before, TakeSnapshot(TWO)) is None, "there is nothing more to take"
    assert take(before, SnapshotTransfer(ONE, TWO)) is None, "nobody has told of it"
    assert take(told, SnapshotTransfer(ONE, THREE)) is None, "3 does not lead"
    assert (told.of(ONE).wanted, fetched.of(ONE).wanted) == (SnapshotId(Offset(2), Epoch(1)), NO_SNAPSHOT)
    assert fetched.of(ONE).replica.local.log.start_offset == 2
    late = take(told, TimeOut(ONE))
    assert late is not None
    assert late.after.of(ONE).wanted == NO_SNAPSHOT, "it asks for votes, and has forgotten what it asked for"
    in_words = [move_in_words(one) for one in (TakeSnapshot(TWO), SnapshotTransfer(ONE, TWO))]
    assert in_words == ["2 takes a snapshot", "1 fetches the snapshot of 2"]


def test_voters_take_and_fetch_snapshots_in_walks() -> None:
    rules = rules_of("4.4.0")
    runs = [walk(seed, rules, WALK_KINDS["snapshots"]) for seed in range(1, 13)]
    assert all(len(states_in(run, rules)) == len(run.steps) + 1 for run in runs)
    fetched = [step for run in runs for step in run.steps if isinstance(step, SnapshotTransfer)]
    assert sum(step.server == ONE for step in fetched) >= 2
    assert sum(isinstance(step, TakeSnapshot) for run in runs for step in run.steps) > len(fetched)
    assert runs[0].steps == walk(1, rules, WALK_KINDS["snapshots"]).steps
