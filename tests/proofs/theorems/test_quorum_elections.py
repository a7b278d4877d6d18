"""Theorem quorum-elections: one leader at most in an epoch, and no voter votes twice in one."""

import pytest

from kspec.cli.prove import jobs
from kspec.proofs.commands.prove import prove
from kspec.proofs.settings import ProofSettings
from kspec.proofs.theorems.quorum_elections import CONJUNCTS, NAME, TASKS

QUICK = ("Init", "Vote(candidate)", "Time(candidate)", "Time(resigned)", "Start")

BROKEN = {
    "forgets-vote": {"Time(prospective) RemembersVote"},
    "late-answers-count": {"PreVoteAnswer(candidate) ElectionSafety", "PreVoteAnswer(candidate) ElectedByMajority"},
    "same-epoch-after-resignation": {"Time(resigned) RemembersVote"},
    "votes-again": {"Vote(prospective) MessagesAreTrue", "Vote(unattached) MessagesAreTrue"},
    "votes-for-itself": {"Time(follower) VotesOnce", "Time(unattached) VotesOnce"},
}
"""Steps and conjuncts that the mutants break, of those that break anything."""


def failing(tasks: tuple[str, ...], mutant: str | None = None, size: int = 3) -> set[str]:
    """The conjuncts of these tasks that are not proved."""
    settings = ProofSettings(NAME, size, mutant)
    found = [one for task in tasks for one in TASKS[task](settings)]
    assert [one.conjunct for one in found] == [*CONJUNCTS] * len(tasks)
    return {f"{one.action} {one.conjunct}" for one in found if one.status != "proved"}


def test_some_steps_are_proved() -> None:
    assert failing(QUICK) == set()


@pytest.mark.parametrize("mutant", BROKEN)
def test_a_weaker_rule_breaks_a_step(mutant: str) -> None:
    tasks = tuple(dict.fromkeys(task.split()[0] for task in BROKEN[mutant]))
    assert failing(tasks) == set()
    assert failing(tasks, mutant) == BROKEN[mutant]


def test_it_takes_a_number_of_voters() -> None:
    assert jobs((NAME,), None) == [(NAME, 3)]
    assert jobs((NAME,), 5) == [(NAME, 5)]


@pytest.mark.nightly
def test_it_is_proved() -> None:
    outcome = prove(ProofSettings(NAME, 3), workers=1)
    assert (outcome.status, len(outcome.obligations)) == ("proved", len(TASKS) * len(CONJUNCTS))
    assert "3 voters: proved" in outcome.as_text()
