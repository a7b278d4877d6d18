"""Findings of simulated clusters agree with the page: the seeds again, with the same promise after the same steps."""

from dataclasses import replace

import pytest

from kspec.model_check.reports.sections import section_of
from kspec.spec.controller.protocol import Controller
from kspec.spec.controller.rules.brokers import unfences_whoever_asks
from kspec.spec.mutation import weaken
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.trials.simulated.causes import rules_that_repair
from kspec.trials.simulated.runs import run
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import marked
from tests.trials.simulated.hunting import (
    BROKERS,
    FINDINGS,
    MUTANTS,
    OF_QUORUM,
    ONE_ACK,
    TRANSACTIONAL,
    hunt_finding,
    hunt_mutants,
    repaired,
    setup_of,
    setup_of_next,
)
from tests.trials.simulated.mutants import OTHERS, PAGE, SECTION, STEPS, known, page

FOUND = {name: one for name, one in known().items() if "promise" in one}
FEW, LATER_BY_NIGHT = 600, 1_500
QUICK = [name for name, one in FOUND.items() if one["steps"] <= FEW]
LATER = sorted(set(FOUND) - set(QUICK))
LATEST = [name for name in LATER if FOUND[name]["steps"] > LATER_BY_NIGHT]
"""Findings after so many steps are found anew by night; others show by day that runs and promises are as they were."""
LEAST_CAUGHT, LEAST_OF_TRANSACTIONS, LEAST_OF_QUORUM = 31, 10, 10


def check(name: str) -> None:
    one = FOUND[name]
    outcome = run(setup_of(name, one["seed"]), one["limit"])
    assert outcome.broken is not None
    assert (outcome.broken.name, outcome.steps) == (one["promise"], one["steps"])


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_is_found_after_few_steps(name: str) -> None:
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(LATER, nightly=LATEST))
def test_a_mutant_is_found(name: str) -> None:
    check(name)


SEEDS = sorted({FOUND[one.name]["seed"] for one in MUTANTS if one.name in FOUND})


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked(SEEDS, nightly=SEEDS[3:]))
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
    assert sum(name in FOUND for name in TRANSACTIONAL) >= LEAST_OF_TRANSACTIONS
    assert sum(name in FOUND for name in OF_QUORUM) >= LEAST_OF_QUORUM


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
    assert section_of(PAGE.read_text(encoding="utf-8"), SECTION) == page(known())
    assert set(known()) <= {one.name for one in MUTANTS} | set(TRANSACTIONAL) | set(OF_QUORUM) | set(FINDINGS) | set(OTHERS)


def test_the_rule_is_named_that_would_have_kept_the_promise() -> None:
    name = "count-what-is-sent"
    setup = setup_of(name, FOUND[name]["seed"])
    outcome = run(setup, FOUND[name]["limit"])
    assert rules_that_repair(setup, outcome, BROKER_NEXT, KRAFT_NEXT) == ("notes_fetch",)


def test_records_of_acks_1_are_lost_with_the_leader() -> None:
    assert FOUND[ONE_ACK]["promise"] in ("AcknowledgedOnNextLeader", "LostWrite")


# ---- what the simulation of rules alone has found


def test_a_broker_that_is_stopping_is_elected() -> None:
    """By the rules up to 4.4: see docs/findings/stopping-broker-is-elected.md."""
    released = Controller(replace(KRAFT_NEXT, may_unfence=unfences_whoever_asks))
    outcome = run(replace(setup_of_next(71), controller=released), 500)
    assert outcome.broken is not None
    assert outcome.broken.name == "LeaderIsActive"
    assert run(setup_of_next(71), 500).broken is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["act-before-registration", "act-on-old-metadata"])
def test_a_broker_that_leads_again_before_it_is_registered_loses_records(name: str) -> None:
    """Kafka 3.5 to 4.4 acts before it is registered; its closed ports save it."""
    early = {mutant.name: mutant for mutant in BROKER_MUTANTS}
    broker = weaken(weaken(BROKER_NEXT, early[name]), early["open-ports-at-once"])
    outcome = run(RunSetup(94, dict.fromkeys(BROKERS, broker), Controller(KRAFT_NEXT)), 3_500)
    assert outcome.broken is not None
    assert outcome.broken.name == "AcknowledgedOnNextLeader"
    assert run(setup_of_next(94), 3_500).broken is None
