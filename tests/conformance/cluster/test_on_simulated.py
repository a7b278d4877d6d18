"""Cases of level 1 on simulated clusters: the steps that drivers take on processes, in virtual time."""

import pytest

from kspec.conformance.cluster.cases import all_cases, random_case, scheduled
from kspec.spec.controller.protocol import Controller
from kspec.spec.mutation import Mutant, weaken
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.trials.faults.plans.scheduled import plan_of
from kspec.trials.faults.plans.steps import LEADER
from kspec.trials.faults.simulated_run import PlanOutcome, run_plan
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import marked

CASES = {case.name: case for case in (*(one for one in all_cases() if not one.by_hand), *map(random_case, (1, 2, 3)))}
BY_DAY = {
    "acks-1/leader-dies-alone",
    "rules/announced_isr/forget-proposal-on-old-news",
    "rules/counts_fetch/count-diverging-fetch",
    "rules/elect/election-outside-isr-and-elr",
    "rules/min_isr/min-isr-of-one",
    "random/seed-1",
}
FOUND = {
    "election-outside-isr-and-elr": "LeaderInIsr",
    "join-before-high-watermark": "AcknowledgedOnNextLeader",
    "advance-below-min-isr": "CommittedOnNextLeader",
    "min-isr-of-one": "CommittedOnNextLeader",
    "count-what-is-sent": "CommittedOnNextLeader",
    "truncate-to-high-watermark": "AcknowledgedOnNextLeader",
}
"""The promise that each mutant breaks in its case; those of other cases need a fetch that is held by itself."""


def outcome_of(name: str, mutant: Mutant | None = None) -> PlanOutcome:
    """The case on a simulated cluster by the rules of `next`, or with one of them weakened."""
    case = CASES[name]
    plan = plan_of(name, case.title, "", scheduled(case).schedule, case.acks)
    broker, controller = BROKER_NEXT, KRAFT_NEXT
    if mutant in BROKER_MUTANTS:
        broker = weaken(broker, mutant)
    elif mutant is not None:
        controller = weaken(controller, mutant)
    return run_plan(plan, RunSetup(1, dict.fromkeys((1, 2, 3), broker), Controller(controller)))


@pytest.mark.slow
@pytest.mark.parametrize("name", marked(sorted(CASES), nightly=set(CASES) - BY_DAY))
def test_sound_rules_go_through_a_case_to_its_end_and_keep_every_promise(name: str) -> None:
    outcome = outcome_of(name)
    assert (outcome.missed, outcome.run.broken) == ("", None)
    assert outcome.run.acknowledged > 20 or CASES[name].acks == LEADER


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", marked(sorted(FOUND), nightly=set(FOUND) - {"min-isr-of-one", "election-outside-isr-and-elr"})
)
def test_a_weakened_rule_breaks_a_promise_in_its_case(mutant: str) -> None:
    (name,) = [one.name for one in CASES.values() if one.source == mutant]
    (weaker,) = [one for one in (*BROKER_MUTANTS, *CONTROLLER_MUTANTS) if one.name == mutant]
    broken = outcome_of(name, weaker).run.broken
    assert broken is not None
    assert broken.name == FOUND[mutant]
