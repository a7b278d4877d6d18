"""Theorem quorum-logs: what the quorum has committed stays, and is the same for all."""

import pytest

from kspec.cli.prove import jobs
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.theorems.quorum.logs import CONJUNCTS, NAME, PROPERTIES, TASKS
from kspec.spec.quorum.rules.epochs import VoterRole

QUICK = ("Time(candidate)", "Send(candidate)")

ROLES = tuple(role.value for role in VoterRole)

TRIED = (
    "Start",
    *(f"{step}({role})" for step in ("Time", "Log", "Send") for role in ROLES),
    *("VoteAnswer(candidate)", "PreVoteAnswer(candidate)"),
    *(f"{step}({role})" for step in ("Vote", "Fetch") for role in ROLES if role not in ("leader", "resigned")),
)
"""The steps that have been tried to the end."""

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


def test_it_is_about_any_number_of_voters() -> None:
    assert jobs((NAME,), None) == [(NAME, ANY)]


@pytest.mark.nightly
@pytest.mark.parametrize("mutant", BROKEN)
def test_a_weaker_rule_breaks_a_step(mutant: str) -> None:
    task, conjuncts = BROKEN[mutant]
    assert failing(task, mutant) == conjuncts


@pytest.mark.nightly
@pytest.mark.parametrize("task", TRIED)
def test_steps_are_proved(task: str) -> None:
    assert failing(task) == set()
