"""Theorem quorum-elections: one leader at most in an epoch, and no voter votes twice in one."""

import pytest

from kspec.cli.prove import jobs
from kspec.proofs.commands.prove import prove
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.theorems.quorum import majorities
from kspec.proofs.theorems.quorum.elections import CONJUNCTS, NAME, TASKS
from kspec.spec.quorum.rules import votes

QUICK = ("Init", "Vote(candidate)", "VoteAnswer(candidate)", "Time(candidate)", "Time(resigned)")

BROKEN = {
    "forgets-vote": {"Time(prospective) RemembersVote"},
    "late-answers-count": {
        "PreVoteAnswer(candidate) CountsVotesCast",
        "PreVoteAnswer(candidate) ElectedByMajority",
        "PreVoteAnswer(candidate) ElectionSafety",
    },
    "same-epoch-after-resignation": {"Time(resigned) RemembersVote"},
    "votes-again": {"Vote(prospective) MessagesAreTrue", "Vote(unattached) MessagesAreTrue"},
    "votes-for-itself": {"Time(follower) VotesOnce", "Time(unattached) VotesOnce"},
}
"""Steps and conjuncts that the mutants break, of those that break anything."""


def failing(tasks: tuple[str, ...], mutant: str | None = None) -> set[str]:
    """The conjuncts of these tasks that are not proved."""
    settings = ProofSettings(NAME, ANY, mutant)
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


def test_majorities_share_a_voter_however_many_there_are() -> None:
    found = TASKS[majorities.TASK](ProofSettings(NAME, ANY))
    assert {one.conjunct: one.status for one in found} == dict.fromkeys(majorities.LEMMAS, "proved")


def test_half_of_the_voters_need_not_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(votes, "majority_of", lambda size: size // 2)
    assert failing(("VoteAnswer(candidate)",)) == {
        "VoteAnswer(candidate) ElectionSafety",
        "VoteAnswer(candidate) ElectedByMajority",
    }


def test_it_is_about_any_number_of_voters() -> None:
    assert jobs((NAME,), None) == [(NAME, ANY)]


@pytest.mark.nightly
def test_it_is_proved() -> None:
    outcome = prove(ProofSettings(NAME, ANY), workers=1)
    assert outcome.status == "proved"
    assert len(outcome.obligations) == len(majorities.LEMMAS) + (len(TASKS) - 1) * len(CONJUNCTS)
    assert "any number of voters: proved" in outcome.as_text()
