"""What simulated clusters find is what the page says: the seeds again, with the same promise after the same steps."""

import pytest

from impl.sim.causes import rules_that_repair
from impl.sim.runs import run
from spec.releases.broker import BROKER_NEXT
from spec.releases.kraft import KRAFT_NEXT
from tests.impl.sim.mutants import MUTANTS, ONE_ACK, OTHERS, PAGE, known, page, setup_of

FOUND = {name: one for name, one in known().items() if "promise" in one}
FEW = 450
QUICK = [name for name, one in FOUND.items() if one["steps"] <= FEW]


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


def test_the_page_says_what_was_found() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(known())
    assert set(known()) <= {one.name for one in MUTANTS} | set(OTHERS)


def test_the_rule_is_named_that_would_have_kept_the_promise() -> None:
    name = "count-what-is-sent"
    setup = setup_of(name, FOUND[name]["seed"])
    outcome = run(setup, FOUND[name]["limit"])
    assert rules_that_repair(setup, outcome, BROKER_NEXT, KRAFT_NEXT) == ("notes_fetch",)


def test_records_of_acks_1_are_lost_with_the_leader() -> None:
    assert FOUND[ONE_ACK]["promise"] in ("AcknowledgedOnNextLeader", "LostWrite")
