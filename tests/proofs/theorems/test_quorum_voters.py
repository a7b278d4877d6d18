"""Theorem quorum-voters: elections and logs of the quorum while its voters change, one at a time."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
import z3

from kspec.cli.prove import jobs
from kspec.proofs.induction.by_steps import status_of
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.theorems.quorum import changes, majorities
from kspec.proofs.theorems.quorum.changes import PROPERTIES
from kspec.proofs.theorems.quorum.voters import ALL_STEPS, CONJUNCTS, NAME, TASKS
from kspec.spec.messages.quorum.voters import VoterSetEntry, VoterSets
from kspec.spec.quorum.rules.voters import sets_below, sets_between
from kspec.spec.values import NO_DIRECTORY, UNKNOWN_OFFSET, BrokerId, Offset, ReplicaKey

QUICK = (
    "Cut",
    "Vote(candidate)",
    "ChangeTime(leader)",
    "AddVoter(leader)",
    "FetchAnswer(prospective)",
)

BROKEN = {
    ("keeps-cut-voters", "Cut"): {"EntriesFit"},
    ("changes-while-changing", "AddVoter(leader)"): {"PendingMayBeWritten"},
    ("changes-before-own-record", "AddVoter(leader)"): {"PendingMayBeWritten"},
}
"""Of a mutant and a step, the conjuncts that break."""


def failing(task: str, mutant: str | None = None) -> set[str]:
    """The conjuncts of a task that are not proved."""
    found = TASKS[task](ProofSettings(NAME, ANY, mutant))
    assert [one.conjunct for one in found] == (["EntriesFit"] if task == "Cut" else [*CONJUNCTS])
    return {one.conjunct for one in found if one.status != "proved"}


def test_the_theorem_follows_from_the_invariant() -> None:
    found = TASKS["Property"](ProofSettings(NAME, ANY))
    assert {one.conjunct: one.status for one in found} == dict.fromkeys(PROPERTIES, "proved")


@pytest.mark.parametrize("conjunct", ["changes_by_one", "changes_after_own_record", "changes_after_last_change"])
def test_candidates_sets_are_near_by_each_rule_of_a_change(conjunct: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, conjunct, lambda past, epoch, offset: z3.BoolVal(True))
    known, goal = changes.candidates_sets_are_near()
    assert status_of(ProofSettings(NAME, ANY), known, goal) == "refuted"


@pytest.mark.parametrize("conjunct", ["counted_in_near_set", "counted_in_majority", "holder_has_held"])
def test_a_leader_is_complete_by_what_a_majority_held(conjunct: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, conjunct, lambda *past: z3.BoolVal(True))
    known, goal = changes.candidate_has_what_was_committed()
    assert status_of(ProofSettings(NAME, ANY), known, goal) == "refuted"


@pytest.mark.parametrize("stated", PROPERTIES.values(), ids=PROPERTIES)
def test_the_premises_of_the_theorem_can_be_met(stated: Callable[[], Any]) -> None:
    known, _ = stated()
    assert status_of(ProofSettings(NAME, ANY), known, z3.BoolVal(False)) == "refuted"


@pytest.mark.parametrize("task", QUICK)
def test_some_steps_are_proved(task: str) -> None:
    assert failing(task) == set()


@pytest.mark.parametrize(("mutant", "task"), BROKEN)
def test_a_weaker_rule_breaks_a_step(mutant: str, task: str) -> None:
    assert failing(task, mutant) == BROKEN[mutant, task]


def test_it_is_proved_by_all_steps() -> None:
    assert [*TASKS] == [majorities.TASK, "Property", "Cut", *ALL_STEPS]


def test_it_is_about_any_number_of_voters() -> None:
    assert jobs((NAME,), None) == [(NAME, ANY)]


@pytest.mark.nightly
@pytest.mark.parametrize("task", ALL_STEPS)
def test_all_steps_are_proved(task: str) -> None:
    assert failing(task) == set()


# ---- the voter sets that a proof sees

VOTERS = tuple(ReplicaKey(BrokerId(one), NO_DIRECTORY) for one in (1, 2, 3, 4))


def logs_of_sets() -> list[VoterSets]:
    """The voter sets of some logs: from one to four, at some offsets below 6."""
    found: list[VoterSets] = []
    for number in range(4):
        for offsets in combinations(range(6), number):
            places = (UNKNOWN_OFFSET, *map(Offset, offsets))
            found.append(tuple(VoterSetEntry(at, frozenset(VOTERS[: one + 1])) for one, at in enumerate(places)))
    return found


def test_rules_see_no_difference_where_the_first_set_stands_for_those_that_are_not_there() -> None:
    for sets in logs_of_sets():
        padded = (*(sets[:1] * (4 - len(sets))), *sets)
        assert (padded[-1], set(padded)) == (sets[-1], set(sets))
        for end in map(Offset, range(7)):
            assert sets_below(padded, end)[-1] == sets_below(sets, end)[-1]
            assert all(sets_between(padded, begin, end) == sets_between(sets, begin, end) for begin in map(Offset, range(7)))
