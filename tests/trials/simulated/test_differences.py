"""Weakened rules are asked beside the rules of a run, which stays the same."""

from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.trials.simulated.causes import Differences, watched_setup
from kspec.trials.simulated.runs import run
from tests.trials.simulated.hunting import setup_of
from tests.trials.simulated.test_runs import setup

MUTANTS = {one.name: one for one in BROKER_MUTANTS}


def test_a_run_is_the_same_while_weakened_rules_are_asked() -> None:
    differences = Differences()
    watched = run(watched_setup(setup(3), differences, BROKER_MUTANTS, CONTROLLER_MUTANTS), 1_000)
    assert watched == run(setup(3), 1_000)
    assert differences.counts["count-what-is-sent"] > 0
    assert "take-later-epochs" not in differences.counts


def test_a_run_without_another_answer_is_the_same_with_the_mutant() -> None:
    assert run(setup_of("take-later-epochs", 3), 1_000) == run(setup(3), 1_000)


def test_the_answer_is_that_of_the_rule() -> None:
    differences = Differences()
    protocol = differences.watched(BROKER_NEXT, [MUTANTS["min-isr-of-one"]])
    assert protocol.min_isr(2, 3) == 2
    assert protocol.min_isr(1, 3) == 1
    assert differences.counts == {"min-isr-of-one": 1}
    assert protocol.serves is BROKER_NEXT.serves
    assert Differences().watched(KRAFT_NEXT, ()) == KRAFT_NEXT
