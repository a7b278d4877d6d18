"""Theorem quorum-logs: what the quorum has committed stays, and is the same for all."""

import pytest

from kspec.cli.prove import jobs
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.theorems.quorum import majorities
from kspec.proofs.theorems.quorum.logs import CONJUNCTS, NAME, PROPERTIES, TASKS
from kspec.proofs.theorems.quorum.steps import STEPS_IN_ROLES

QUICK = ("Time(candidate)", "Send(candidate)", "EndQuorumEpoch(candidate)", "BeginQuorumEpochAnswer(candidate)")

BROKEN = {
    "commits-at-epoch-start": ("Log(leader)", {"CommittedByMajority", "CommittedIsWritten"}),
    "keeps-high-watermark": ("VoteAnswer(candidate)", {"KnowsCommitted", "LeaderHasHistory"}),
    "longest-log-wins": ("Vote(unattached)", {"VotesUpToDate"}),
}
"""A step, and the conjuncts that a mutant breaks in it."""


def failing(task: str, mutant: str | None = None) -> set[str]:
    """The conjuncts of a task that are not proved."""
    found = TASKS[task](ProofSettings(NAME, ANY, mutant))
    assert [one.conjunct for one in found] == [*CONJUNCTS]
    return {one.conjunct for one in found if one.status != "proved"}


def test_the_theorem_follows_from_the_invariant() -> None:
    found = TASKS["Property"](ProofSettings(NAME, ANY))
    assert {one.conjunct: one.status for one in found} == dict.fromkeys(PROPERTIES, "proved")


@pytest.mark.parametrize("task", QUICK)
def test_some_steps_are_proved(task: str) -> None:
    assert failing(task) == set()


def test_it_is_proved_by_all_steps() -> None:
    assert [*TASKS] == [majorities.TASK, "Property", *STEPS_IN_ROLES]


def test_it_is_about_any_number_of_voters() -> None:
    assert jobs((NAME,), None) == [(NAME, ANY)]


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", BROKEN)
def test_a_weaker_rule_breaks_a_step(mutant: str) -> None:
    task, conjuncts = BROKEN[mutant]
    assert failing(task, mutant) == conjuncts


@pytest.mark.nightly
@pytest.mark.parametrize("task", STEPS_IN_ROLES)
def test_all_steps_are_proved(task: str) -> None:
    assert failing(task) == set()
