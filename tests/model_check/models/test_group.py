"""The model of a group: what holds within which bounds, what does not, and which mutants it finds."""

from typing import Any

import pytest

from kspec.model_check.core.audit import audit
from kspec.model_check.core.exploration import Limits
from kspec.model_check.core.model import Client
from kspec.model_check.core.parameters import ParameterError
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.liveness import check_liveness
from kspec.model_check.models import MODELS
from kspec.model_check.models.group.values import member_id
from kspec.model_check.reports.catalogues.group import (
    ALL_MUTANTS,
    CATALOGUE,
    COOPERATIVE,
    HUNTS,
    KAFKAS,
    LIVENESS_HUNTS,
    MODERN,
    NOT_CAUGHT,
)
from tests.limits.marks import NIGHTLY, SLOW, is_night, marked, most_by_day
from tests.model_check.commands import Command

STATIC = {"protocol": "consumer", "static_members": True, "records": 0, "leaves": 1}
"""Consumers that leave for a while, and come back as another process."""

COUNTS: list[tuple[dict[str, Any], int, int]] = [
    ({}, 698, 1_260),
    ({"disconnects": 1}, 7_235, 15_808),
    ({"moves": 1}, 10_023, 22_386),
    ({"moves": 1, "lags": 1}, 22_769, 51_220),
    ({"moves": 1, "zombies": 1, "records": 0}, 46_715, 126_285),
    ({"moves": 1, "zombies": 1, "consumers": 1, "protocol": "consumer"}, 1_828, 4_258),
    ({"member_id_first": True}, 860, 1_626),
    (COOPERATIVE, 8_058, 14_224),
    ({"leaves": 1, "lives": 2, "generations": 3}, 6_932, 13_112),
    ({"protocol": "consumer", "records": 0}, 16_856, 55_430),
    ({"protocol": "consumer", "consumers": 1, "moves": 1, "disconnects": 1}, 1_529, 4_064),
    ({"protocol": "consumer", "consumers": 1, "late_requests": 1}, 625, 1_487),
    ({"static_members": True, "leaves": 1}, 12_158, 25_866),
    ({"static_members": True, "leaves": 1, "consumers": 1, "moves": 1, "generations": 4}, 1_664, 2_994),
    ({**STATIC, "consumers": 1, "disconnects": 1, "generations": 3, "records": 1}, 2_457, 6_382),
    ({"late_requests": 1, "lives": 2, "generations": 3}, 82_138, 188_216),
    ({"protocol": "consumer"}, 36_124, 120_090),
    ({**MODERN, "topic_partitions": 2}, 55_916, 190_250),
    ({**MODERN, "disconnects": 1}, 93_165, 339_788),
]
"""Bounds within which everything holds, states, and transitions."""


def marks_of(states: int) -> list[pytest.MarkDecorator]:
    """The largest spaces are counted by night; by day the same disturbances are, with fewer generations or alone."""
    return [mark for mark, most in ((SLOW, 20_000), (NIGHTLY, 40_000)) if states > most]


SEEN_BY_DAY = 15_000


def violations(parameters: dict[str, Any], *names: str, most: int | None = None) -> dict[str, int]:
    """The properties that are violated, each with the steps of a shortest run; among so many states, or all of them."""
    model = MODELS["group"].build(parameters)
    properties = [prop for prop in model.properties if not names or prop.name in names]
    found = explore(model, properties, Limits(max_states=most))
    return {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in found.verdicts if verdict.violated}


@pytest.mark.parametrize(
    ("parameters", "states", "transitions"),
    [pytest.param(*one, marks=marks_of(one[1])) for one in COUNTS],
)
def test_everything_holds_within_these_bounds(parameters: dict[str, Any], states: int, transitions: int) -> None:
    model = MODELS["group"].build(parameters)
    found = explore(model, model.properties, Limits())
    assert found.complete
    unmet = {verdict.prop.name for verdict in found.verdicts if not verdict.holds}
    assert unmet <= ({"CommitIsAcknowledged"} if parameters.get("records") == 0 else set())
    assert (found.distinct_states, found.transitions) == (states, transitions)


@pytest.mark.slow
def test_symmetry_gives_the_same_verdicts_with_half_the_states() -> None:
    for parameters, states, represented in (({"disconnects": 1}, 3_619, 7_235), (KAFKAS, 8_429, 16_856)):
        model = MODELS["group"].build(parameters)
        found = explore(model, model.properties, Limits(), symmetry=Symmetry(model))
        assert (found.distinct_states, found.represented) == (states, represented)
        assert not any(verdict.violated for verdict in found.verdicts)


@pytest.mark.slow
def test_with_kafkas_consumers_a_lost_answer_gives_a_partition_to_two() -> None:
    """A full heartbeat while one reconciles does not name what it is about to read; the coordinator gives it to another."""
    assert violations({**KAFKAS, "disconnects": 1}, "OwnsOnlyWhatIsAssigned") == {"OwnsOnlyWhatIsAssigned": 15}
    assert violations({**KAFKAS, "disconnects": 1}, "ExclusiveAssignment") == {}


@pytest.mark.slow
def test_two_then_read_it() -> None:
    assert violations({**KAFKAS, "disconnects": 1}, "ExclusiveOwnership") == {"ExclusiveOwnership": 21}


def test_a_late_join_of_a_static_member_takes_its_place() -> None:
    """The coordinator gives the place to whom nobody is; that one's session ends, and the member reads on until it asks."""
    bounds = {"static_members": True, "lives": 2, "records": 0, "late_requests": 1}
    assert violations(bounds, "ExclusiveOwnership") == {"ExclusiveOwnership": 19}


@pytest.mark.slow
def test_a_paused_member_reads_on_after_its_session_has_ended() -> None:
    """Nobody tells it; the classic protocol excludes this only while no consumer outlives its session."""
    bounds = {"expiries": 1, "lives": 2}
    assert violations(bounds, "ExclusiveOwnership") == {"ExclusiveOwnership": 15}
    others = ("AcknowledgedCommitsKept", "OnlyMembersCommit", "StateIsThatOfLog", "OwnsWhatIsAssigned")
    assert violations(bounds, *others) == {}


@pytest.mark.slow
def test_a_leader_that_assigns_twice_in_a_generation_leaves_two_assignments_in_the_log() -> None:
    """It loses its connection while the first is stored, and makes another, which a coordinator that loads the log has."""
    bounds = {"moves": 1, "disconnects": 1}
    assert violations(bounds, "OwnsWhatIsAssigned") == {"OwnsWhatIsAssigned": 16}
    assert violations(bounds, "ExclusiveOwnership") == {"ExclusiveOwnership": 20}
    others = ("AcknowledgedCommitsKept", "OnlyMembersCommit", "StateIsThatOfLog")
    assert violations(bounds, *others, most=most_by_day(SEEN_BY_DAY)) == {}


@pytest.mark.slow
def test_a_former_coordinator_gives_offsets_of_before() -> None:
    """A fetch of offsets names no generation in the classic protocol, so an old coordinator answers it."""
    assert violations({"moves": 1, "zombies": 1}, "ReadsAreOfNow") == {"ReadsAreOfNow": 29}
    others = ("ExclusiveOwnership", "AcknowledgedCommitsKept", "OnlyMembersCommit", "StateIsThatOfLog", "OwnsWhatIsAssigned")
    assert violations({"moves": 1, "zombies": 1}, *others, most=most_by_day(SEEN_BY_DAY)) == {}


def test_the_epoch_of_a_consumer_group_excludes_that_unless_the_former_coordinator_knows_no_group() -> None:
    bounds = {"consumers": 1, "protocol": "consumer-next", "moves": 1, "zombies": 1}
    assert violations({**bounds, "disconnects": 1, "records": 2, "generations": 3}) == {}
    assert violations({**bounds, "leaves": 1, "generations": 4}, "ReadsAreOfNow") == {"ReadsAreOfNow": 27}


def test_a_former_coordinator_and_a_lag_need_a_change_of_coordinator() -> None:
    for alone in ({"zombies": 1}, {"lags": 1}):
        with pytest.raises(ParameterError, match="go with --moves"):
            MODELS["group"].build(alone)


@pytest.mark.slow
def test_with_the_repair_of_late_requests_no_late_heartbeat_takes_a_partition() -> None:
    late = {**MODERN, "late_requests": 1}
    assert violations(late, "ExclusiveOwnership") == {"ExclusiveOwnership": 20}
    model = MODELS["group"].build({**late, "release": "next-late-requests"})
    most = most_by_day(SEEN_BY_DAY)
    found = explore(model, model.properties, Limits(max_states=most), symmetry=Symmetry(model))
    assert not is_night() or (found.complete, found.represented) == (True, 204_386)
    assert not any(verdict.violated for verdict in found.verdicts)


@pytest.mark.slow
def test_with_that_repair_a_late_leave_still_takes_one() -> None:
    """It names nothing that is over."""
    leaves = {**MODERN, "late_requests": 1, "release": "next-late-requests", "leaves": 1, "generations": 3}
    assert violations(leaves, "ExclusiveOwnership") == {"ExclusiveOwnership": 19}


@pytest.mark.slow
def test_a_commit_on_a_connection_that_was_given_up_sets_an_offset_back() -> None:
    """No number orders commits of one generation: one that arrives late overwrites a later one that is acknowledged."""
    bounds = {"late_requests": 1, "lives": 2, "records": 2}
    assert violations(bounds, "AcknowledgedCommitsKept") == {"AcknowledgedCommitsKept": 19}
    assert violations(bounds, "OnlyMembersCommit", "StateIsThatOfLog", most=most_by_day(SEEN_BY_DAY)) == {}


@pytest.mark.parametrize("name", HUNTS)
def test_a_mutant_violates_its_property(name: str) -> None:
    parameters, prop, steps = HUNTS[name]
    assert violations({**parameters, "mutant": name}, prop) == {prop: steps}


EXPLORED_ANYHOW = [parameters for parameters, *_ in COUNTS]
"""Bounds in which all properties are asked above."""


@pytest.mark.parametrize(
    "name",
    [name for name, (bounds, *_) in HUNTS.items() if bounds not in EXPLORED_ANYHOW and not name.startswith("keeps-when-")],
)
def test_without_the_mutant_its_property_holds(name: str) -> None:
    """By day as far as `SEEN_BY_DAY`, where the space is larger."""
    parameters, prop, _ = HUNTS[name]
    assert violations(parameters, prop, most=most_by_day(SEEN_BY_DAY)) == {}


def rebalance_ends(parameters: dict[str, Any]) -> bool:
    model = MODELS["group"].build(parameters)
    (prop,) = model.liveness
    (verdict,) = check_liveness(state_graph(model, 1), [prop]).verdicts
    assert verdict.met
    return verdict.lasso is None


@pytest.mark.parametrize(
    "parameters",
    marked(
        [
            {},
            {"consumers": 1, "static_members": True, "leaves": 1, "lives": 4, "generations": 6},
            {"moves": 1, "lives": 2, "generations": 3},
            {"moves": 1, "lives": 2, "generations": 4},
            {"disconnects": 1, "lives": 2, "generations": 5},
        ],
        nightly=[{"moves": 1, "lives": 2, "generations": 4}, {"disconnects": 1, "lives": 2, "generations": 5}],
    ),
)
def test_a_rebalance_ends_in_all_fair_runs(parameters: dict[str, Any]) -> None:
    assert rebalance_ends(parameters)


@pytest.mark.parametrize("name", marked(tuple(LIVENESS_HUNTS), slow=["lost-answer-forgotten"]))
def test_with_a_mutant_a_rebalance_may_never_end(name: str) -> None:
    assert not rebalance_ends({**LIVENESS_HUNTS[name], "mutant": name})


def test_every_mutant_is_caught_or_explained() -> None:
    assert len(ALL_MUTANTS) >= 20
    assert all(map(CATALOGUE.is_listed, ALL_MUTANTS))
    assert ALL_MUTANTS.keys() == HUNTS.keys() | LIVENESS_HUNTS.keys() | NOT_CAUGHT.keys()


def test_a_hunt_says_what_it_finds() -> None:
    found = CATALOGUE.hunt("free-though-owned")
    assert (found.caught_by, found.loop) == ({"ExclusiveAssignment": 4}, None)
    assert not CATALOGUE.hunt("own-pending-not-free").caught
    assert CATALOGUE.hunt("step-on-committed").loop == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(NOT_CAUGHT, nightly=tuple(NOT_CAUGHT)[1:]))
def test_no_run_tells_this_mutant_apart(name: str) -> None:
    for parameters in (
        {"moves": 1},
        {"moves": 1, "unstable_reads": True},
        {"leaves": 1, "lives": 2, "generations": 3},
        COOPERATIVE,
        {**MODERN, "disconnects": 1},
    ):
        assert violations({**parameters, "mutant": name}, most=most_by_day(2_000)) == {}


def test_the_declared_reads_are_true() -> None:
    bounds = {"disconnects": 1, "late_requests": 1, "moves": 1, "leaves": 1, "lives": 2, "expiries": 1}
    former = {"zombies": 1, "lags": 1, "static_members": True}
    for more, states in (({}, 40), ({"protocol": "consumer", "generations": 4}, 10), (former, 40)):
        assert audit(MODELS["group"].build({**bounds, **more}), states, seed=1, unused=False).findings == []


def test_consumers_are_parties_of_their_own(command: Command) -> None:
    assert str(Client(2)) == "2"
    assert member_id(2, 1) == "2.1"
    told = command("check", "group", "--mutant", "keeps-while-joining", "--symmetry").stdout
    assert "up to renaming of consumers" in told
    assert "all consumers" in told
    assert "coordinator" in told
    assert "broker" not in told.replace("engine", "")
