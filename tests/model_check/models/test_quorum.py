"""The model of the quorum: what holds within which bounds, what does not, and which mutants it finds."""

from typing import Any

import pytest

from kspec.model_check.core.audit import audit, reachable_states
from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.liveness import check_liveness
from kspec.model_check.models import MODELS
from kspec.model_check.models.quorum.board import directory_of
from kspec.model_check.reports.catalogues.quorum import ALL_MUTANTS, CATALOGUE, HUNTS, LIVENESS_HUNTS, NOT_CAUGHT
from kspec.model_check.traces.encode import in_words
from kspec.spec.messages.quorum.begin_quorum_epoch import BeginQuorumEpochRequest
from kspec.spec.messages.quorum.end_quorum_epoch import EndQuorumEpochRequest
from kspec.spec.quorum.effects import IllegalState
from kspec.spec.values import BrokerId, Epoch, ReplicaKey
from tests.limits.marks import marked

OLDER = {"release": "3.9"}
NEXT = {"release": "next"}

COUNTS: list[tuple[dict[str, Any], int, int, int]] = [
    ({**NEXT, "servers": 1, "power_losses": 1}, 6, 6, 5),
    ({**OLDER, "servers": 2}, 87, 169, 208),
    ({**OLDER, "servers": 2, "lost_answers": 1}, 247, 484, 752),
    ({**OLDER, "servers": 2, "restarts": 1}, 401, 792, 1_079),
    ({**OLDER, "servers": 2, "power_losses": 1}, 461, 912, 1_203),
    ({**OLDER, "servers": 2, "late_answers": 1}, 386, 762, 1_092),
    ({**OLDER, "servers": 2, "late_requests": 1}, 1_016, 2_022, 3_265),
    ({"servers": 2, "resignations": 1}, 367, 732, 1_299),
    ({"servers": 2, "upgrades": 1, "power_losses": 1, "max_epoch": 3, "records": 0}, 1_063, 2_122, 4_092),
    ({**OLDER, "servers": 4, "max_epoch": 1, "records": 0}, 487, 9_786, 3_395),
    ({"max_epoch": 1}, 3_266, 19_496, 20_238),
    ({**NEXT, "voters": 2, "voter_changes": 1, "records": 0}, 5_538, 33_222, 32_585),
    ({**OLDER, "snapshots": 1, "servers": 2}, 185, 365, 498),
    ({**OLDER, "snapshots": 1, "records": 0}, 3_144, 18_663, 16_580),
    (OLDER, 5_326, 31_677, 26_801),
    ({**OLDER, "max_epoch": 3, "records": 0}, 12_957, 77_203, 67_659),
    ({**NEXT, "max_epoch": 1, "restarts": 1, "resignations": 1}, 18_348, 109_888, 133_456),
    ({**OLDER, "lost_answers": 1}, 19_181, 114_432, 120_546),
    ({**OLDER, "restarts": 1}, 30_513, 182_190, 164_526),
    ({**OLDER, "power_losses": 1}, 32_389, 193_332, 171_762),
    ({**OLDER, "late_answers": 1}, 46_546, 278_622, 263_718),
    ({}, 56_853, 340_338, 361_627),
    ({**OLDER, "late_requests": 1}, 167_251, 0, 992_432),
    ({"resignations": 1}, 158_460, 0, 1_045_296),
    ({"lost_answers": 1}, 204_991, 0, 1_573_772),
    ({**NEXT, "restarts": 1}, 224_308, 0, 1_587_296),
    ({**NEXT, "late_answers": 1}, 559_542, 3_355_810, 3_858_139),
]
"""Bounds within which everything holds; states up to renaming and all of them (0: not said), and transitions."""

LARGE = [row for row in COUNTS if row[1] > 5_000]
"""Rows of three servers that are explored by night: by day there are two, or fewer epochs, and one is looked at below."""


def violations(parameters: dict[str, Any], *names: str) -> dict[str, int]:
    """The properties of these names that are violated, each with the steps of a shortest run."""
    model = MODELS["quorum"].build({**MODELS["quorum"].defaults(parameters), **parameters})
    properties = [prop for prop in model.properties if prop.name in names]
    found = explore(model, properties, Limits(), symmetry=Symmetry(model))
    return {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in found.verdicts if verdict.violated}


SAFETY = (
    "ElectionSafety",
    "VotesOnce",
    "SameEpochSameRecords",
    "CommittedOnNewestLeader",
    "CommittedIsFinal",
    "HighWatermarkGrows",
)


@pytest.mark.parametrize("row", marked(COUNTS, slow=LARGE, nightly=LARGE))
def test_everything_holds_within_these_bounds(row: tuple[dict[str, Any], int, int, int]) -> None:
    parameters, states, represented, transitions = row
    model = MODELS["quorum"].build(parameters)
    found = explore(model, model.properties, Limits(), symmetry=Symmetry(model))
    assert found.complete
    assert [verdict.prop.name for verdict in found.verdicts if verdict.violated] == []
    assert (found.distinct_states, found.transitions) == (states, transitions)
    assert represented in (0, found.represented)


def test_without_symmetry_there_are_as_many_states_as_it_represents() -> None:
    model = MODELS["quorum"].build({"servers": 2, "resignations": 1})
    found = explore(model, model.properties, Limits())
    assert found.distinct_states == 732


@pytest.mark.slow
def test_what_the_model_shows_to_be_possible() -> None:
    model = MODELS["quorum"].build(OLDER)
    found = explore(model, model.properties, Limits(), symmetry=Symmetry(model))
    steps = {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in found.verdicts if verdict.trace}
    assert steps == {"TwoEpochsHaveLeaders": 4, "RecordIsCommitted": 5}
    assert found.complete
    assert [verdict.prop.name for verdict in found.verdicts if verdict.violated] == []
    assert (OLDER, found.distinct_states, found.represented, found.transitions) in COUNTS


# ---- defects of Apache Kafka, and what a lost disk does


@pytest.mark.slow
def test_a_controller_that_lost_an_election_stops_when_it_starts_again() -> None:
    """Since 4.0 a follower keeps its vote for itself, and stands again in an epoch that has a leader."""
    assert violations({"restarts": 1, "records": 0}, "NoIllegalState") == {"NoIllegalState": 9}
    assert violations({**OLDER, "restarts": 1, "records": 0}, "NoIllegalState") == {}


def test_a_controller_that_is_alone_loses_a_committed_record_with_its_power() -> None:
    alone = {"servers": 1, "power_losses": 1}
    assert violations(alone, "CommittedOnNewestLeader") == {"CommittedOnNewestLeader": 1}
    assert violations({**alone, **NEXT}, *SAFETY) == {}


@pytest.mark.slow
def test_a_lost_disk_breaks_elections_unless_directories_are_known() -> None:
    lost = {**OLDER, "wipes": 1, "records": 0}
    assert violations({**lost, "without_directories": True}, "ElectionSafety") == {"ElectionSafety": 5}
    assert violations({**lost, "without_directories": True}, "CommittedOnNewestLeader") == {"CommittedOnNewestLeader": 8}
    assert violations(lost, *SAFETY) == {}


def test_a_leader_that_lost_its_disk_is_told_that_it_leads() -> None:
    assert violations({**OLDER, "wipes": 1, "records": 0}, "NoIllegalState") == {"NoIllegalState": 5}


# ---- mutants


def test_every_mutant_is_caught_or_explained() -> None:
    listed = [*HUNTS, *LIVENESS_HUNTS, *NOT_CAUGHT]
    assert sorted(ALL_MUTANTS) == sorted(listed)
    assert all(map(CATALOGUE.is_listed, ALL_MUTANTS))


SLOW_HUNTS = [
    "promises-while-following",
    "snapshots-uncommitted",
    "stands-without-majority",
    "commits-at-epoch-start",
    "keeps-high-watermark",
    "late-answers-count",
    "longest-log-wins",
    "never-flushes",
]


@pytest.mark.parametrize("name", marked(HUNTS, slow=SLOW_HUNTS, nightly=["commits-at-epoch-start"]))
def test_a_mutant_is_caught(name: str) -> None:
    bounds, prop, steps = HUNTS[name]
    assert violations({**bounds, "mutant": name}, prop) == {prop: steps}


COMMITTED_TOO_EARLY = (
    "TimeOut(server=1)",
    "Vote(server=1, asked=2)",
    "TimeOut(server=2)",
    "BeginQuorumEpoch(server=1, asked=2)",
    "TimeOut(server=1)",
    "Vote(server=2, asked=3)",
    "Vote(server=1, asked=3)",
    "BeginQuorumEpoch(server=2, asked=3)",
    "Fetch(server=3, asked=1)",
    "FetchUnanswered(server=3, asked=1)",
    "TimeOut(server=2)",
    "Vote(server=2, asked=3)",
)
"""A shortest run in which a record of an earlier epoch is committed, and the next leader lacks it."""


@pytest.mark.parametrize("mutant", ["commits-at-epoch-start", None])
def test_a_record_of_an_earlier_epoch_is_committed_too_early_in_this_run_by_the_mutant_only(mutant: str | None) -> None:
    """All that shorter runs do not show is looked for by night, when the mutant is hunted."""
    bounds, name, steps = HUNTS["commits-at-epoch-start"]
    assert replayed({**bounds, "mutant": mutant}, COMMITTED_TOO_EARLY, name) == [True] * steps + [mutant is None]


CHANGED_TOO_EARLY = (
    "TimeOut(server=1)",
    "Vote(server=1, asked=2)",
    "Vote(server=1, asked=3)",
    "RemoveVoter(server=1, voter=4)",
    "TimeOut(server=2)",
    "Vote(server=2, asked=3)",
    "Vote(server=2, asked=4)",
    "RemoveVoter(server=2, voter=1)",
    "Fetch(server=4, asked=2)",
    "Fetch(server=4, asked=2)",
    "BeginQuorumEpoch(server=1, asked=3)",
    "TimeOut(server=1)",
    "Vote(server=1, asked=3)",
)
"""Two leaders remove a voter each, before a record of their epochs is committed: two and four have committed without one and
three, who are a majority of the voters that one knows.
"""


@pytest.mark.parametrize("mutant", ["changes-before-own-record", None])
def test_voters_that_are_changed_too_early_lose_a_committed_record_in_this_run(mutant: str | None) -> None:
    """The erratum of Raft's single-server changes. A search up to there takes too long."""
    bounds = {**OLDER, "servers": 4, "voter_changes": 2, "records": 0, "max_epoch": 3, "mutant": mutant}
    kept = replayed(bounds, CHANGED_TOO_EARLY, "CommittedOnNewestLeader")
    if mutant is None:
        assert kept == [True] * 4, "the first of them may not be removed"
    else:
        assert kept == [True] * len(CHANGED_TOO_EARLY) + [False]


def replayed(parameters: dict[str, Any], run: tuple[str, ...], name: str) -> list[bool]:
    """Whether a property holds in each state of a run, up to a step that is not possible."""
    model = MODELS["quorum"].build(parameters)
    prop = model.property_named(name)
    assert prop is not None
    state, kept = model.initial, [prop.bind()(model.initial)]
    for label in run:
        (action,) = (one for one in model.actions if one.label == label)
        following = action.bind()(state)
        if following is None:
            break
        state = following
        kept.append(prop.bind()(state))
    return kept


def test_one_that_is_not_caught_is_not_explored() -> None:
    assert not CATALOGUE.hunt("votes-by-id").caught
    assert CATALOGUE.hunt("votes-for-itself").caught_by == {"VotesOnce": 4}


# ---- liveness, and elections that nobody needed

FAIR: dict[str, Any] = {"records": 0, "fair_timers": True}
ALL_LIVE = ["LeaderIsElected", "LeaderCommits", "VoterFollows"]


def lassos(parameters: dict[str, Any], without: str = "") -> tuple[int, dict[str, int]]:
    """The states, and the steps of a lasso for each liveness property that is violated."""
    model = MODELS["quorum"].build({**MODELS["quorum"].defaults(parameters), **parameters})
    fairness = [one for one in model.fairness if one.action != without]
    found = check_liveness(state_graph(model, 1), model.liveness, lambda prop: fairness)
    steps = {one.prop.name: len(one.lasso.steps) - 1 + bool(one.lasso.closing) for one in found.verdicts if one.lasso}
    premises = [one.prop.name for one in found.verdicts if one.met]
    assert premises[:1] == ["LeaderIsElected"]
    if parameters.get("max_epoch", 2) > 1:
        assert premises[1:3] == ALL_LIVE[1:]
    return found.graph.states, steps


def test_all_properties_of_liveness_are_asked() -> None:
    model = MODELS["quorum"].build(FAIR)
    assert [prop.name for prop in model.liveness] == [*ALL_LIVE, "CutOffLeaderResigns"]
    assert [prop.name for prop in MODELS["quorum"].build({}).liveness] == ALL_LIVE


@pytest.mark.parametrize(
    "row",
    marked(
        LIVE := [
            ({**FAIR, "servers": 2}, 38),
            ({**FAIR, **OLDER}, 2_496),
            ({"fair_timers": True, **OLDER}, 9_384),
            ({"fair_timers": True}, 13_034),
            ({**FAIR, **NEXT, "restarts": 1}, 34_426),
            ({**FAIR, "cuts": 1}, 38_122),
            ({**FAIR, **OLDER, "cuts": 2}, 116_430),
        ],
        slow=LIVE[2:],
        nightly=LIVE[4:],
    ),
)
def test_with_fair_timers_a_leader_is_elected_commits_and_is_followed(row: tuple[dict[str, Any], int]) -> None:
    assert lassos(row[0]) == (row[1], {})


def test_a_timer_that_ends_too_early_keeps_everybody_from_leading() -> None:
    """Since 4.0 one that asks in vain is in no later epoch: all may do so for ever, and then the epochs never end."""
    assert lassos({"records": 0, "servers": 2, "max_epoch": 1})[1] == {"LeaderIsElected": 4, "LeaderCommits": 6}


@pytest.mark.parametrize(
    ("without", "steps"),
    [
        ("PreVote", {"LeaderIsElected": 2}),
        ("Vote", {}),
        ("BeginQuorumEpoch", {}),
        ("Fetch", {"LeaderCommits": 4}),
        ("TimeOut", {"LeaderIsElected": 0}),
    ],
)
def test_which_assumption_each_needs(without: str, steps: dict[str, int]) -> None:
    assert lassos({**FAIR, "servers": 2}, without)[1] == steps


@pytest.mark.parametrize("release", marked(["2.8", "3.7"], slow=["3.7"]))
def test_a_leader_that_is_cut_off_leads_on_up_to_3_6(release: str) -> None:
    steps = {"CutOffLeaderResigns": 5} if release == "2.8" else {}
    assert lassos({**FAIR, "release": release, "cuts": 2, "max_epoch": 1})[1] == steps


@pytest.mark.nightly
@pytest.mark.slow
def test_a_leader_that_is_cut_off_leads_on_without_check_quorum() -> None:
    bounds = LIVENESS_HUNTS["no-check-quorum"]
    assert lassos({**bounds, "mutant": "no-check-quorum"})[1] == {"CutOffLeaderResigns": 8}
    assert lassos({**bounds, **NEXT})[1] == {}


@pytest.mark.parametrize("release", marked(["3.9", "4.2", "next"], slow=["4.2", "next"]))
def test_one_that_is_cut_off_from_its_leader_stands_up_to_3_9(release: str) -> None:
    """Since 4.0 it asks before, and those whom the leader serves refuse (KIP-996)."""
    needless = {"NoNeedlessElection": 5} if release == "3.9" else {}
    assert violations({**FAIR, "cuts": 1, "release": release}, "NoNeedlessElection", *SAFETY) == needless


@pytest.mark.parametrize(("release", "steps"), [("2.8", 4), ("3.9", 4), ("4.2", 5)])
def test_a_stranger_unseats_a_leader(release: str, steps: int) -> None:
    bounds = {"records": 0, "strangers": 1, "release": release}
    assert violations(bounds, "StrangerUnseatsNobody") == {"StrangerUnseatsNobody": steps}


REPAIRED: dict[str, Any] = {"repair": ("refuse-while-served",), "strangers": 1}


@pytest.mark.parametrize("release", marked(["3.9", "4.2"], slow=["4.2"]))
def test_a_stranger_unseats_nobody_if_who_is_served_refuses(release: str) -> None:
    bounds = {"records": 0, "release": release, **REPAIRED}
    assert violations(bounds, "StrangerUnseatsNobody", *SAFETY) == {}


@pytest.mark.parametrize(
    "row",
    marked(
        SHELTERED := [
            ({**FAIR, **REPAIRED, "servers": 2}, 228),
            ({**FAIR, **REPAIRED}, 16_921),
            ({**FAIR, **REPAIRED, **OLDER, "cuts": 1}, 53_286),
        ],
        slow=SHELTERED[1:],
        nightly=SHELTERED[2:],
    ),
)
def test_a_voter_of_a_later_epoch_is_let_in_though_who_is_served_refuses(row: tuple[dict[str, Any], int]) -> None:
    """A voter that the leader reaches tells it of its epoch, when that says that it leads."""
    assert lassos(row[0]) == (row[1], {})


# ---- the model itself


def test_the_model_reads_and_writes_what_it_declares() -> None:
    everything = {
        "restarts": 1,
        "power_losses": 1,
        "wipes": 1,
        "resignations": 1,
        "lost_answers": 1,
        "cuts": 1,
        "snapshots": 1,
    }
    model = MODELS["quorum"].build(
        {**everything, "late_requests": 1, "late_answers": 1, "strangers": 1, "fair_timers": True, "servers": 2}
    )
    assert audit(model, most=60, unused=False).findings == []


TAKES_A_SNAPSHOT = (
    "TimeOut(server=1)",
    "Vote(server=1, asked=2)",
    "Fetch(server=2, asked=1)",
    "Fetch(server=2, asked=1)",
    "TakeSnapshot(server=1)",
    "BeginQuorumEpoch(server=1, asked=3)",
    "Fetch(server=3, asked=1)",
    "FetchSnapshot(server=3, asked=1)",
)
"""A follower that has nothing is sent to the snapshot with which its leader's log begins."""


@pytest.mark.parametrize("parameters", [{"restarts": 1}, {"voter_changes": 1}])
def test_a_follower_takes_the_snapshot_of_its_leader(parameters: dict[str, Any]) -> None:
    model = MODELS["quorum"].build({**OLDER, "snapshots": 2, "records": 0, **parameters})
    state = model.initial
    run = (*TAKES_A_SNAPSHOT, *(["Restart(server=3)"] if "restarts" in parameters else []))
    for label in run:
        (action,) = (one for one in model.actions if one.label == label)
        following = action.bind()(state)
        assert following is not None, label
        state = following
        assert all(prop.bind()(state) for prop in model.properties if prop.kind == "always")
    leader, follower = (state[model.slot_named(f"server[{one}]").position] for one in (1, 3))
    assert follower.in_snapshot == leader.in_snapshot
    assert follower.replica.snapshot == leader.replica.snapshot
    assert follower.replica.local.log.records == ()
    assert "snapshot to" in in_words(follower)


def test_a_snapshot_that_is_there_no_more_is_not_waited_for() -> None:
    model = MODELS["quorum"].build({**OLDER, "snapshots": 2, "records": 1})
    later = ("Append(server=1)", "Fetch(server=2, asked=1)", "Fetch(server=2, asked=1)", "TakeSnapshot(server=1)")
    state = model.initial
    for label in (*TAKES_A_SNAPSHOT[:-1], *later, TAKES_A_SNAPSHOT[-1]):
        (action,) = (one for one in model.actions if one.label == label)
        following = action.bind()(state)
        assert following is not None, label
        before, state = state, following
    place = model.slot_named("server[3]").position
    assert "fetches a snapshot to 1" in in_words(before[place])
    assert "snapshot" not in in_words(state[place])


@pytest.mark.slow
def test_states_are_told_in_words() -> None:
    parameters = {**OLDER, "late_requests": 1, "late_answers": 1, "wipes": 1, "without_directories": True}
    model = MODELS["quorum"].build({**parameters, "servers": 2, "mutant": "late-answers-count"})
    told = {in_words(value) for state in _some_states(model) for value in state}
    for words in ("leader in epoch 1", "has votes of {1}", "Fetch at 0 in epoch", "forgotten"):
        assert any(words in one for one in told), words
    server = model.initial[model.slot_named("server[1]").position]._replace(halted=IllegalState.TWO_LEADERS)
    assert in_words(server) == "has stopped: another leader in the same epoch"
    assert in_words(ReplicaKey(BrokerId(2), directory_of(2))) == "2 (disk 2)"
    assert in_words(EndQuorumEpochRequest(Epoch(3), BrokerId(1))) == "EndQuorumEpoch 3"
    assert in_words(BeginQuorumEpochRequest(Epoch(3), BrokerId(1))) == "BeginQuorumEpoch 3"


def _some_states(model: Any) -> list[Any]:
    return reachable_states(model, 400, seed=2)


def test_a_leader_leads_on_after_its_removal_if_nobody_waits_for_that_any_more() -> None:
    """In Apache Kafka the request times out before the record of the change is committed; `next` resigns all the same."""
    bounds = {"release": "3.9", "voters": 2, "voter_changes": 1, "records": 0, "max_epoch": 1}
    assert violations(bounds, "RemovedLeaderResigns", *SAFETY) == {"RemovedLeaderResigns": 8}


def test_the_late_answer_of_a_removed_voter_stops_the_leader() -> None:
    """`next` does not mind it; up to 4.4 the process ends."""
    bounds = {"voters": 2, "voter_changes": 1, "late_answers": 1, "records": 0, "max_epoch": 1}
    assert violations({**bounds, "release": "3.9"}, "NoIllegalState", *SAFETY) == {"NoIllegalState": 7}
    assert violations({**bounds, "release": "next"}, "NoIllegalState", *SAFETY) == {}
