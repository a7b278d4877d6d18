"""Groups in simulated clusters: no acknowledged commit is lost, members settle, and bugs of the coordinator are found."""

from typing import Any

import pytest

from kspec.impl.requests import groups
from kspec.spec.mutation import weaken
from kspec.spec.releases.group_mutants import COORDINATOR_MUTANTS
from kspec.spec.releases.names import coordinator_of
from kspec.trials.simulated.cluster import SimulatedCluster
from kspec.trials.simulated.plan import conditions_of
from kspec.trials.simulated.runs import RunOutcome, run
from tests.limits.marks import marked
from tests.planted_bugs.planting import PlantedBug, bugs_in, planted
from tests.trials.simulated.hunting import setup_of_next

SEEDS = tuple(seed for seed in range(1, 60) if conditions_of(seed).members)


def test_groups_take_part_in_some_seeds() -> None:
    assert SEEDS == (5, 12, 19, 26, 33, 40, 47, 54)
    assert {conditions_of(seed).members for seed in SEEDS} == {2, 3, 5}
    assert [seed for seed in range(1, 100) if conditions_of(seed).consumers] == [12, 26, 40, 54, 68, 82, 96]


def committed_in(seed: int, steps: int) -> tuple[RunOutcome, list[int]]:
    """A run, and how many commits of each group were acknowledged."""
    clusters: list[SimulatedCluster] = []

    class ClusterWithGroups(SimulatedCluster):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            clusters.append(self)

    outcome = run(setup_of_next(seed), steps, kind=ClusterWithGroups)
    return outcome, [group.acknowledged for group in clusters[0].groups]


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_no_commit_is_lost_and_groups_settle(seed: int) -> None:
    outcome, acknowledged = committed_in(seed, 1_500)
    assert outcome.broken is None, outcome.in_words()
    assert len(acknowledged) == 3
    assert all(acknowledged[:2])
    assert bool(acknowledged[2]) == bool(conditions_of(seed).consumers)


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked(SEEDS[3:], nightly=SEEDS[5:]))
def test_no_commit_is_lost_and_groups_settle_later(seed: int) -> None:
    outcome, _ = committed_in(seed, 6_000)
    assert outcome.broken is None, outcome.in_words()


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked([68, 82, 96, 110], nightly=[96, 110]))
def test_consumer_groups_settle(seed: int) -> None:
    outcome, acknowledged = committed_in(seed, 6_000)
    assert outcome.broken is None, outcome.in_words()
    assert acknowledged[2]


def test_a_partition_that_two_consumers_get_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (weaker,) = (one for one in COORDINATOR_MUTANTS if one.name == "free-though-owned")
    monkeypatch.setattr(groups, "coordinator_of", lambda name: weaken(coordinator_of(name), weaker))
    outcome = run(setup_of_next(68), 2_000)
    assert outcome.broken is not None
    assert outcome.broken.name == "FencedCommit"


# ---- bugs of the coordinator


def bug_of(module: str, function: str, before: str, after: str) -> PlantedBug:
    """The bug that an operator plants there: the first whose texts begin so."""
    return next(
        bug
        for bug in bugs_in(module)
        if bug.function == f"{module}:{function}" and bug.before.startswith(before) and bug.after.startswith(after)
    )


FOUND = (
    ("coordinator.offsets", "check_commit", "not coordinator.protocol.is_present", "False", 5, "FencedCommit"),
    ("coordinator.rules.generations", "following_generation", "generation + 1", "generation", 40, "OneAssignment"),
    ("coordinator.offsets", "handle_offset_commit", "error != Error.NONE", "False", 40, "FencedCommit"),
    ("coordinator.runtime", "on_committed", "one.until <= committed", "(one.until > committed)", 19, "NeverReady"),
)
"""Bugs of the coordinator, the seed in which each is found, and what fails."""


@pytest.mark.slow
@pytest.mark.parametrize("found", FOUND, ids=lambda found: f"{found[1]}: {found[2]}")
def test_a_bug_of_the_coordinator_is_found(found: tuple[str, str, str, str, int, str]) -> None:
    *place, seed, promise = found
    with planted(bug_of(*place)):
        outcome = run(setup_of_next(seed), 2_500)
    assert outcome.broken is not None
    assert outcome.broken.name == promise


def test_offsets_that_change_places_are_found_soon() -> None:
    """The committed offset and its leader epoch, as if one were taken for the other."""
    bug = next(
        bug
        for bug in bugs_in("coordinator.offsets")
        if bug.operator == "swap_arguments" and "offset.partition, offset.leader_epoch, offset.offset" in bug.after
    )
    with planted(bug):
        outcome = run(setup_of_next(19), 1_000)
    assert outcome.broken is not None
    assert outcome.broken.name == "LostCommit"
