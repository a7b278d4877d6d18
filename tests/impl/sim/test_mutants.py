"""What simulated clusters find is what the page says: the seeds again, with the same promise after the same steps."""

import pytest

from impl.sim.causes import rules_that_repair
from impl.sim.runs import run
from spec.releases.broker import BROKER_NEXT
from spec.releases.kraft import KRAFT_NEXT
from tests.impl.sim.hunting import (
    FINDINGS,
    MUTANTS,
    ONE_ACK,
    hunt_finding,
    hunt_mutants,
    repaired,
    setup_of,
    setup_of_next,
)
from tests.impl.sim.mutants import OTHERS, PAGE, STEPS, known, page

FOUND = {name: one for name, one in known().items() if "promise" in one}
FEW = 600
QUICK = [name for name, one in FOUND.items() if one["steps"] <= FEW]
LEAST_CAUGHT = 22


def check(name: str) -> None:
    one = FOUND[name]
    outcome = run(setup_of(name, one["seed"]), one["limit"])
    assert outcome.broken is not None
    assert (outcome.broken.name, outcome.steps) == (one["promise"], one["steps"])


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_is_found_after_few_steps(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FOUND) - set(QUICK)))
def test_a_mutant_is_found(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("seed", sorted({FOUND[one.name]["seed"] for one in MUTANTS if one.name in FOUND}))
def test_nothing_fails_where_no_rule_is_weakened(seed: int) -> None:
    assert run(setup_of_next(seed), STEPS).broken is None


@pytest.mark.slow
@pytest.mark.parametrize("name", FINDINGS)
def test_a_finding_needs_its_rule(name: str) -> None:
    """With the same seed, and this one rule of the release repaired, nothing fails."""
    one = FOUND[name]
    assert run(repaired(name, one["seed"]), one["limit"]).broken is None


def test_many_mutants_are_found() -> None:
    assert sum(one.name in FOUND for one in MUTANTS) >= LEAST_CAUGHT


def test_a_hunt_finds_what_the_file_says() -> None:
    name = "count-what-is-sent"
    one = FOUND[name]
    assert dict(hunt_mutants([name], range(one["seed"], one["seed"] + 1), one["limit"])) == {name: one}


def test_a_hunt_says_how_often_a_rule_had_another_answer() -> None:
    found = dict(hunt_mutants(["take-later-epochs", "join-under-min-isr"], range(1, 2), 300))
    assert found["take-later-epochs"] == {"seeds": 1, "runs": 0, "limit": 300}


def test_a_finding_is_not_hunted_where_its_rule_has_no_other_answer() -> None:
    assert hunt_finding("missed-epoch in 4.0", range(1, 2), 200) == {"seeds": 1, "runs": 0, "limit": 200}


def test_the_page_says_what_was_found() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(known())
    assert set(known()) <= {one.name for one in MUTANTS} | set(FINDINGS) | set(OTHERS)


def test_the_rule_is_named_that_would_have_kept_the_promise() -> None:
    name = "count-what-is-sent"
    setup = setup_of(name, FOUND[name]["seed"])
    outcome = run(setup, FOUND[name]["limit"])
    assert rules_that_repair(setup, outcome, BROKER_NEXT, KRAFT_NEXT) == ("notes_fetch",)


def test_records_of_acks_1_are_lost_with_the_leader() -> None:
    assert FOUND[ONE_ACK]["promise"] in ("AcknowledgedOnNextLeader", "LostWrite")
