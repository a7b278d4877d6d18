"""The model of transactions: what holds within which bounds, what does not in which release, and which mutants it finds."""

from typing import Any

import pytest

from kspec.model_check.core.audit import audit
from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.liveness import check_liveness
from kspec.model_check.models import MODELS
from kspec.model_check.reports.catalogues.transactions import (
    ALL_MUTANTS,
    CATALOGUE,
    HUNTS,
    LIVENESS_HUNTS,
    NOT_CAUGHT,
    PROCESSES,
)
from tests.limits.marks import marked_pairs, most_by_day

PLAIN: dict[str, Any] = {"transaction_version": "0"}
UNSURE: dict[str, Any] = {"uncommitted_loads": 1, "moves": 1, "transactions": 1, "timeouts": 1}
COUNTS: list[tuple[dict[str, Any], int, int]] = [
    ({}, 90, 121),
    (PLAIN, 225, 288),
    ({"late_requests": 1}, 1_566, 3_079),
    ({"late_requests": 1, "disconnects": 1, "timeouts": 1}, 14_384, 34_214),
    ({"producers": 2, "transactions": 1, "moves": 1}, 15_641, 34_460),
    ({"late_markers": 1, "moves": 1}, 2_855, 5_416),
    ({"producers": 2, "late_markers": 1, "transactions": 1}, 7_162, 16_812),
    ({**PLAIN, "producers": 2, "late_markers": 1, "transactions": 1}, 17_712, 42_576),
    ({"refusals": 1, "unknown_appends": 1, "moves": 1, "disconnects": 1}, 10_361, 22_036),
    ({"topic_partitions": 2, "moves": 1, "late_markers": 1, "transactions": 1}, 2_113, 4_570),
    ({"leader_changes": 1, "late_requests": 2}, 19_888, 46_968),
    ({**UNSURE, "topic_partitions": 2}, 1_989, 3_646),
    ({"first_epoch": 32766, "timeouts": 2}, 527, 825),
    ({**PLAIN, "late_requests": 1, "transactions": 1}, 613, 1_044),
    ({"inputs": 1}, 176, 253),
    ({**PLAIN, "inputs": 1}, 442, 643),
    ({"inputs": 2, "transactions": 3}, 731, 1_102),
    (PROCESSES, 8_930, 22_732),
    ({**PROCESSES, **PLAIN}, 21_765, 57_186),
    ({**PROCESSES, "timeouts": 1}, 53_583, 156_538),
    ({"inputs": 1, "producers": 2, "rebalances": 1, "transactions": 1}, 7_996, 18_663),
]
"""Bounds within which everything holds, states, and transitions."""

SEEN_BY_DAY = 10_000


def violations(parameters: dict[str, Any], *names: str, most: int | None = None) -> dict[str, int]:
    """The properties that are violated, each with the steps of a shortest run; among so many states, or all of them."""
    model = MODELS["transactions"].build(parameters)
    properties = [prop for prop in model.properties if not names or prop.name in names]
    found = explore(model, properties, Limits(max_states=most))
    return {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in found.verdicts if verdict.violated}


@pytest.mark.parametrize(
    ("parameters", "states", "transitions"), marked_pairs(COUNTS, nightly=[one for one in COUNTS if one[1] > 20_000])
)
def test_everything_holds_within_these_bounds(parameters: dict[str, Any], states: int, transitions: int) -> None:
    model = MODELS["transactions"].build(parameters)
    found = explore(model, model.properties, Limits())
    assert found.complete
    assert [verdict.prop.name for verdict in found.verdicts if not verdict.holds] == []
    assert (found.distinct_states, found.transitions) == (states, transitions)


@pytest.mark.parametrize("version", ["0", "1"])
def test_a_late_end_ends_a_later_transaction_before_version_2(version: str) -> None:
    bounds = {"late_requests": 1, "transaction_version": version}
    assert violations(bounds, "OnlyCommittedIsRead") == {"OnlyCommittedIsRead": 25}


def test_before_version_2_a_late_marker_does_as_well() -> None:
    assert violations({**PLAIN, "late_markers": 1}, "OnlyCommittedIsRead") == {"OnlyCommittedIsRead": 23}
    assert violations({**PLAIN, "late_markers": 1, "topic_partitions": 2}, "OneEnd") == {"OneEnd": 36}


def test_a_second_marker_of_a_fence_refuses_the_next_producer_up_to_4_4() -> None:
    bounds = {"producers": 2, "late_markers": 1, "transactions": 1}
    assert violations({**bounds, **PLAIN, "release": "4.3"}, "FailsIfFenced") == {"FailsIfFenced": 26}
    assert violations({**bounds, "mutant": "guard-of-equal-epoch"}, "FailsIfFenced") == {"FailsIfFenced": 23}


def test_a_coordinator_that_acts_on_what_is_not_committed_loses_what_it_has_promised() -> None:
    for level, found in (("2", {"CommittedIsKept": 17}), ("1", {"CommittedIsKept": 20})):
        assert violations({**UNSURE, "transaction_version": level, "release": "4.3"}, "CommittedIsKept") == found
    assert violations({**UNSURE, "topic_partitions": 2, "release": "4.3"}, "OneEnd") == {"OneEnd": 22}
    without_time = {**UNSURE, "timeouts": 0, "release": "4.3"}
    assert violations(without_time, "OpenIsKnown") == {"OpenIsKnown": 12}, "a transaction hangs"


@pytest.mark.parametrize(("setting", "steps"), [("unnamed_members", 39), ("unstable_reads", 39)])
def test_what_a_former_member_commits_is_done_twice_without_kip_447(setting: str, steps: int) -> None:
    assert violations({**PROCESSES, setting: True}, "EachInputOnce") == {"EachInputOnce": steps}
    fenced = {**PROCESSES, "own_ids": False, setting: True}
    assert violations(fenced, "EachInputOnce") == {"EachInputOnce": 41}, "an id that all share fences too late"


@pytest.mark.parametrize(
    ("bounds", "prop", "steps", "broken", "repaired"),
    [
        ({**PLAIN, "late_requests": 1, "transactions": 1}, "OpenIsKnown", 15, "2.6", "3.6"),
        ({"late_markers": 1}, "OnlyCommittedIsRead", 21, "4.1", "4.2"),
        ({"first_epoch": 32766, "timeouts": 1}, "EpochWithinBounds", 9, "4.0", "4.3"),
        ({"first_epoch": 32766, "timeouts": 2}, "EpochWithinBounds", 21, "4.2", "4.3"),
        ({"timeouts": 1}, "FailsIfFenced", 16, "4.3", "next"),
    ],
)
def test_releases_differ(bounds: dict[str, Any], prop: str, steps: int, broken: str, repaired: str) -> None:
    assert violations({**bounds, "release": broken}, prop) == {prop: steps}
    assert violations({**bounds, "release": repaired}, prop) == {}


@pytest.mark.parametrize("name", HUNTS)
def test_a_mutant_violates_its_property(name: str) -> None:
    parameters, prop, steps = HUNTS[name]
    assert violations({**parameters, "mutant": name}, prop) == {prop: steps}


EXPLORED_ANYHOW = [parameters for parameters, *_ in COUNTS]
"""Bounds in which all properties are asked above."""


@pytest.mark.parametrize("name", [name for name, (bounds, *_) in HUNTS.items() if bounds not in EXPLORED_ANYHOW])
def test_without_the_mutant_its_property_holds(name: str) -> None:
    """By day as far as `SEEN_BY_DAY`, where the space is larger."""
    parameters, prop, _ = HUNTS[name]
    assert violations(parameters, prop, most=most_by_day(SEEN_BY_DAY)) == {}


def transaction_ends(parameters: dict[str, Any]) -> bool:
    model = MODELS["transactions"].build(parameters)
    (prop,) = model.liveness
    (verdict,) = check_liveness(state_graph(model, 1), [prop]).verdicts
    assert verdict.met
    return verdict.lasso is None


@pytest.mark.parametrize("name", LIVENESS_HUNTS)
def test_a_mutant_keeps_a_transaction_from_its_end(name: str) -> None:
    bounds = LIVENESS_HUNTS[name]
    assert transaction_ends(bounds)
    assert not transaction_ends({**bounds, "mutant": name})


def test_every_mutant_has_a_hunt_or_a_reason() -> None:
    assert all(CATALOGUE.is_listed(name) for name in ALL_MUTANTS)
    assert set(HUNTS) | set(LIVENESS_HUNTS) | set(NOT_CAUGHT) == set(ALL_MUTANTS)
    assert not set(HUNTS) & set(NOT_CAUGHT)
    assert CATALOGUE.hunt("stable-when-ended").not_caught_because == NOT_CAUGHT["stable-when-ended"]


def test_actions_read_what_they_say() -> None:
    several = ({"late_requests": 1, "timeouts": 1}, {**PLAIN, "late_markers": 1, "moves": 1, "leader_changes": 1})
    groups = ({**PROCESSES, "moves": 1, "leader_changes": 1}, {**PROCESSES, **PLAIN, "late_requests": 1, "disconnects": 1})
    for parameters in (*several, *groups):
        assert audit(MODELS["transactions"].build(parameters), 30, seed=1, unused=False).findings == []
