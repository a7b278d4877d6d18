"""Plans on simulated clusters: sound rules keep every promise, and weakened ones break one, in a second each."""

from collections.abc import Awaitable, Callable, Iterator

import pytest
from click.testing import CliRunner

from kspec.cli.main import cli
from kspec.spec.controller.protocol import Controller
from kspec.spec.mutation import Mutant, weaken
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.trials.faults.plans.catalogue import PLANS
from kspec.trials.faults.plans.plan import Plan
from kspec.trials.faults.plans.plan_run import PlanRun
from kspec.trials.faults.plans.steps import LEADER
from kspec.trials.faults.simulated_run import PlanOutcome, run_plan
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import NIGHTLY

BROKERS = (1, 2, 3)
SIMULATED = [plan for plan in PLANS.values() if not plan.not_simulated]
NOT_CAUGHT = {
    ("dead-tail", "diverging-before-start"),
    ("follower-behind", "join-before-epoch-start"),
    ("parted-leaders", "diverging-before-start"),
    ("parted-leaders", "epoch-lookup-as-designed"),
    ("parted-leaders", "truncate-to-high-watermark"),
    ("second-registration", "second-registration-fences"),
}
"""Plans that keep all promises with a mutant of a rule that they are aimed at, with seed 1."""


def aimed() -> Iterator[tuple[Plan, Mutant]]:
    """Each plan with the mutants of its rules, or those that it names."""
    for plan in SIMULATED:
        of_broker = [mutant for mutant in BROKER_MUTANTS if mutant.field in plan.rules]
        of_controller = [mutant for mutant in CONTROLLER_MUTANTS if f"controller: {mutant.field}" in plan.rules]
        for mutant in (*of_broker, *of_controller):
            if not plan.mutants or mutant.name in plan.mutants:
                yield plan, mutant


def with_mutant(plan: Plan, mutant: Mutant) -> PlanOutcome:
    if mutant in BROKER_MUTANTS:
        return run_plan(plan, RunSetup(1, dict.fromkeys(BROKERS, weaken(BROKER_NEXT, mutant)), Controller(KRAFT_NEXT)))
    return run_plan(plan, RunSetup(1, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(weaken(KRAFT_NEXT, mutant))))


def sound(plan: Plan) -> PlanOutcome:
    return run_plan(plan, RunSetup(1, dict.fromkeys(BROKERS, BROKER_NEXT), Controller(KRAFT_NEXT)))


@pytest.mark.parametrize("plan", SIMULATED, ids=[plan.name for plan in SIMULATED])
def test_sound_rules_go_through_a_plan_to_its_end_and_keep_every_promise(plan: Plan) -> None:
    outcome = sound(plan)
    assert outcome.missed == ""
    assert outcome.run.broken is None
    assert outcome.run.acknowledged > 20 or plan.acks == LEADER, "records are acknowledged in it"


LONG = ("dead-tail", "no-divergence-check")
"""A plan whose run with the mutant takes ten times as long as any other. Two other plans show the same mutant by day."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "mutant"),
    [
        pytest.param(
            plan, mutant, id=f"{plan.name}-{mutant.name}", marks=[NIGHTLY] if (plan.name, mutant.name) == LONG else []
        )
        for plan, mutant in aimed()
    ],
)
def test_a_weakened_rule_breaks_a_promise_in_the_plan_that_is_aimed_at_it(plan: Plan, mutant: Mutant) -> None:
    assert (with_mutant(plan, mutant).run.broken is None) == ((plan.name, mutant.name) in NOT_CAUGHT)


def test_the_same_plan_and_seed_give_the_same_run() -> None:
    assert sound(PLANS["late-news"]) == sound(PLANS["late-news"])


def test_a_plan_that_runs_on_processes_only_says_why() -> None:
    assert [plan.name for plan in PLANS.values() if plan.not_simulated] == ["damaged-files"]
    with pytest.raises(NotImplementedError, match="on processes only"):
        sound(PLANS["damaged-files"])


def test_the_command_carries_a_plan_out() -> None:
    done = CliRunner().invoke(cli, ["simulate-cluster", "--plan", "late-news"], standalone_mode=False)
    assert done.return_value == 0
    assert "the news are under way" in done.output
    assert done.output.rstrip().endswith("seed 1: plan late-news: every promise is kept")
    weak = CliRunner().invoke(
        cli,
        ["simulate-cluster", "--plan", "late-news", "--mutant", "forget-proposal-on-old-news", "--quiet"],
        standalone_mode=False,
    )
    assert weak.return_value == 1
    assert "BROKEN QuorumSuperset" in weak.output


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--plan", "late-new"], "late-news"),
        (["--plan", "damaged-files"], "damaged-files runs on processes only"),
        (["--plan", "late-news", "--hours", "1"], "leave --hours"),
        (["--plan", "late-news", "--brokers", "4"], "three brokers"),
        (["--plan", "late-news", "--controllers", "3"], "one controller"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_bad_usage(options: list[str], complaint: str) -> None:
    done = CliRunner().invoke(cli, ["simulate-cluster", *options])
    assert done.exit_code == 2
    assert complaint in done.output


def test_a_paused_leader_is_replaced_and_comes_back() -> None:
    steps = " ".join(sound(PLANS["paused-leader"]).steps)
    assert "is paused" in steps
    assert steps.index("is paused") < steps.index("leads") < steps.index("is resumed")


async def clients_are_cut_off(run: PlanRun) -> None:
    """Nothing arrives that way, and later all does, in its order."""
    run.cut(frozenset({("clients", run.leader), (run.leader, "clients")}))
    before = run.acknowledged()
    await run.pause(1.0)
    assert run.acknowledged() == before
    run.cut(frozenset())
    await run.until_acknowledged(50)


async def records_are_erased(run: PlanRun) -> None:
    """A broker that is back without its records copies them."""
    b = run.second
    run.kill(b)
    await run.until_in_sync(run.leader, run.third)
    run.erase(b)
    await run.start(b)
    await run.until_in_sync(run.leader, run.second, run.third)


@pytest.mark.parametrize("steps", [clients_are_cut_off, records_are_erased])
def test_an_action_of_steps_that_are_data(steps: Callable[[PlanRun], Awaitable[None]]) -> None:
    outcome = sound(Plan("made-up", "an action", (), steps))
    assert (outcome.missed, outcome.run.broken) == ("", None)
    assert outcome.run.acknowledged > 20
