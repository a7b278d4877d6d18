"""`kspec prove`: what is proved, what is refuted and where, and that the proofs speak of something."""

import json
import random
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import z3

from kspec.cli.prove import jobs
from kspec.model_check.core.exploration import Limits, Trace
from kspec.model_check.core.model import Model, Property, when
from kspec.model_check.engines.explorer import explorer
from kspec.proofs import effort
from kspec.proofs.commands.confirm import answer
from kspec.proofs.commands.prove import prove, witness
from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.refutation.bounded import BoundedExecution
from kspec.proofs.refutation.counterexample import CounterexampleSearch, explored_view, failing
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.symbolic.logic import all_of, implies
from kspec.proofs.theorems import BY_STEPS, EFFORT_OF_RUNS, HOLDING, REFUTABLE, THEOREMS
from kspec.spec.values import NO_LEADER, Epoch
from tests.limits.marks import is_night
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import assert_replays


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


# ---- the command


def test_proving_ends_with_0_and_json(command: Command) -> None:
    done = command("prove", "async-isr", "--replicas", "2", "--workers", "1", "--json", "--quiet")
    told = json.loads(done.stdout)
    assert (done.status, told["z3_version"]) == (0, z3.get_version_string())
    (theorem,) = told["theorems"]
    assert (theorem["name"], theorem["model"], theorem["replicas"], theorem["status"]) == (
        "async-isr",
        "async-isr",
        2,
        "proved",
    )
    assert all(set(each) == {"action", "conjunct", "status", "seconds", "paths"} for each in theorem["obligations"])
    assert len(theorem["obligations"]) > 50
    assert len(theorem["witness"]["trace"]) > 1


def test_each_obligation_is_a_line(command: Command) -> None:
    done = command("prove", "async-isr", "--replicas", "2", "--workers", "1")
    assert sum(line.startswith("proved ") for line in done.stdout.splitlines()) > 50
    assert "async-isr, 2 replicas: proved" in done.stdout


def test_a_weakened_rule_is_refuted_with_1(command: Command) -> None:
    done = command("prove", "--mutant", "high-watermark-over-committed-isr", "--replicas", "2", "--workers", "1")
    assert done.status == 1
    assert "async-isr with high-watermark-over-committed-isr, 2 replicas: refuted" in done.stdout
    assert "breaks; the start can" in done.stdout


@pytest.mark.slow
def test_no_effort_leaves_everything_unknown_with_3(command: Command) -> None:
    little = ("--effort", "0.000001", "--no-search")
    done = command("prove", "kip-320", "--replicas", "2", "--workers", "1", *little, "--quiet")
    assert done.status == 3
    assert "kip-320, 2 replicas: unknown (" in done.stdout


def test_what_the_clock_stops_is_reported_as_that_with_3(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock goes on by an hour whenever it is looked at, and Z3 may not do enough for most answers."""
    hours = count()
    monkeypatch.setattr(effort, "monotonic", lambda: 3600.0 * next(hours))
    done = command("prove", "async-isr", "--replicas", "2", "--workers", "1", "--effort", "0.000001", "--json", "--quiet")
    (told,) = json.loads(done.stdout)["theorems"]
    assert (done.status, told["status"]) == (3, "stopped")
    assert {each["status"] for each in told["obligations"]} == {"proved", "stopped"}
    told = command("prove", "async-isr", "--replicas", "2", "--workers", "1", "--effort", "0.000001", "--quiet").stdout
    assert "async-isr, 2 replicas: stopped by the clock (" in told
    assert "the clock stopped Z3 where one question took 600 s: that is no answer" in told


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["kip-9"], "did you mean kip-279, kip-320 or"),
        (["kip-320", "--mutant", "nonsense"], "unfenced-fetch"),
        (["--mutant", "unfenced-fetsch"], "did you mean unfenced-fetch"),
        (["--replicas", "1"], "--replicas"),
        (["--replicas", "many"], "`any`"),
        (["async-isr", "--replicas", "any"], "kip-320"),
        (["kip-101", "--replicas", "any"], "kip-320"),
        (["kip-320", "--runs", "3"], "kip-320-first-try"),
        (["kip-101", "--runs", "3", "--mutant", "unfenced-fetch"], "no --mutant"),
        (["kip-101", "--runs", "3", "--replicas", "any"], "a number of --replicas"),
        (["kip-101", "--runs", "0"], "--runs"),
        (["--effort", "0"], "--effort"),
        (["--time-limit", "0"], "--time-limit"),
        (["--export", "/dev/null/x"], "/dev/null/x"),
    ],
)
def test_bad_usage_is_told_in_a_line(command: Command, arguments: list[str], named: str) -> None:
    done = command("prove", *arguments)
    assert done.mistake == (2, 1)
    assert named in done.stderr


def test_any_number_of_replicas_is_proved_too_if_no_number_is_asked_for() -> None:
    assert jobs(("kip-101", "kip-320", "async-isr"), None) == [
        ("kip-101", 2),
        ("kip-320", 3),
        ("async-isr", 3),
        ("kip-320", "any"),
    ]
    assert jobs(("kip-320",), 4) == [("kip-320", 4)]
    assert jobs(("kip-279", "kip-320-first-try"), None) == [("kip-279", 3), ("kip-320-first-try", 3)]
    assert jobs(("kip-279", "kip-101"), None, runs_from=5) == [("kip-279", 3), ("kip-101", 2)]
    assert jobs(("kip-320",), None, "unfenced-fetch") == [("kip-320", 3)]


def test_without_z3_the_command_says_what_to_install(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kspec.model_check.extras.find_spec", lambda name: None)
    done = command("prove")
    assert done.mistake == (2, 1)
    assert "[prove]'" in done.stderr


# ---- the meaning of a proof


@conjunct("NobodyWasAnnounced", "False as soon as a second epoch begins.")
def nobody_was_announced(s: Any, epoch: Epoch) -> Any:
    return implies(all_of(epoch >= 0, epoch < s.partition.leader_epoch), s.announced_leader(epoch) == NO_LEADER)


def test_what_is_claimed_of_any_epoch_is_not_proved_of_the_actions_epoch_alone() -> None:
    """The parameter of the conjunct and the argument of the action have the same name; they are different epochs."""
    theorem = replace(THEOREMS["kip-320"], conjuncts=(*THEOREMS["kip-320"].conjuncts, nobody_was_announced))
    obligations = Obligations(theorem, ProofSettings("kip-320", 2))
    claims = obligations.claims("ControllerElectLeader(replica=1)")
    claim = next(claim for claim in claims if claim.conjunct == nobody_was_announced.name)
    assert CounterexampleSearch(obligations).find(claim) is not None


# ---- theorems


@pytest.mark.slow
@pytest.mark.nightly  # by day for any number of replicas
def test_kip_320_is_proved_for_three_replicas() -> None:
    outcome = prove(ProofSettings("kip-320", 3), workers=2)
    assert (outcome.status, len(outcome.obligations)) == ("proved", 782)


@pytest.mark.slow
def test_a_theorem_by_steps_is_proved_by_several_processes() -> None:
    steps: list[tuple[str, int]] = []
    outcome = prove(
        ProofSettings("consumer-group", ANY), 2, lambda found, done, tasks: steps.append((found[0].action, done))
    )
    tasks = [*BY_STEPS["consumer-group"].tasks]
    assert outcome.status == "proved"
    assert list(dict.fromkeys(one.action for one in outcome.obligations)) == tasks, "in the order of the theorem"
    assert sorted(name for name, _ in steps) == sorted(tasks)
    assert [done for _, done in steps] == [*range(1, len(tasks) + 1)]


@pytest.mark.slow
def test_kip_320_is_proved_for_two_replicas() -> None:
    outcome = prove(ProofSettings("kip-320", 2), workers=1)
    assert (outcome.status, len(outcome.obligations)) == ("proved", 371)


@pytest.mark.parametrize(
    "name",
    [
        *HOLDING,
        pytest.param("kafka-next", marks=pytest.mark.nightly),
        pytest.param("kafka-next-power-loss", marks=pytest.mark.slow),
    ],
)
def test_a_theorem_has_a_witness(name: str) -> None:
    """A reachable state of which the theorem speaks: every conjunct holds of it, for Python and for Z3."""
    theorem = THEOREMS[name]
    found = witness(theorem, 2)
    assert found is not None
    model, trace = found
    last = trace[-1].state
    assert theorem.witness.holds(explored_view(theorem, model, last, 2))
    assert failing(theorem, list(theorem.conjuncts), model, last, 2, 3) == []
    obligations = Obligations(theorem, ProofSettings(name, 2))
    solver = obligations.solver()
    for slot, value in zip(model.slots, last, strict=True):
        if slot.name in obligations.shapes:
            solver.add(obligations.shapes[slot.name].is_value(obligations.before.at(slot.name, slot.key), value))
    assert solver.check() != z3.unsat


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLDING)
def test_the_invariant_holds_of_every_explored_state(name: str) -> None:
    theorem = THEOREMS[name]
    model = theorem.bounded(2, *theorem.witness.bounds)
    seen: list[Any] = []

    def every(*state: Any) -> bool:
        seen.append(state)
        return not failing(theorem, list(theorem.conjuncts), model, state, 2, 3)

    prop = Property("Invariant", "always", (when(every, *model.slots),), "the invariant holds")
    result = explorer("reference")(model, [prop], Limits(True, None, None))
    assert result.verdicts[0].holds
    assert len(seen) == result.distinct_states > 40


# ---- weakened rules


BROKEN = {
    ("kip-320", "unfenced-truncation"): ("FencedBecomeFollowerAndTruncate", "FollowersAfterLeader"),
    ("kip-320", "unfenced-fetch"): ("FencedFollowerFetch", "EpochsInOrder"),
    ("kip-320", "high-watermark-without-epoch"): ("FencedLeaderIncHighWatermark", "CommittedOnTrueIsr"),
    ("kip-320", "join-before-epoch-start"): ("FencedLeaderExpandIsr", "CommittedOnTrueIsr"),
    ("async-isr", "high-watermark-over-committed-isr"): ("Property", "ValidHighWatermark"),
    ("async-isr", "shrink-before-confirmation"): ("LeaderRequestShrinkIsr", "MaximalIsrCoversTrueIsr"),
}
"""For each mutant: the action and the conjunct at which the induction fails."""


def test_every_mutant_is_here() -> None:
    assert set(BROKEN) == {(name, mutant) for name in HOLDING for mutant in THEOREMS[name].mutants}


@pytest.mark.slow
@pytest.mark.parametrize(("theorem", "mutant"), BROKEN)
def test_a_mutant_breaks_the_induction(theorem: str, mutant: str) -> None:
    action, broken = BROKEN[theorem, mutant]
    obligations = Obligations(THEOREMS[theorem], ProofSettings(theorem, 3, mutant))
    task = next(task for task in obligations.tasks() if task.split("(")[0] == action)
    claim = next(claim for claim in obligations.claims(task) if claim.conjunct == broken)
    found = CounterexampleSearch(obligations).find(claim)
    assert found is not None
    assert found.broken == broken


@pytest.mark.nightly  # by day each mutant of a theorem breaks the induction
@pytest.mark.parametrize("name", ["kip-279", "kip-320-first-try"])
def test_earlier_versions_break_the_induction(name: str) -> None:
    outcome = prove(ProofSettings(name, 2, effort=1_000_000, search=6_000_000), workers=1)
    assert outcome.status == "refuted"
    assert outcome.counterexample is not None


# ---- refutation


def shortest(name: str) -> tuple[Model, Property, Trace]:
    """A model that has a violation, of which property, and a shortest run to it that the explorer finds."""
    refutable = REFUTABLE[name]
    model = refutable.build(refutable.replicas)
    prop = model.property_named(refutable.prop)
    assert prop is not None
    explored = explorer("compiled")(model, [prop], Limits(True, None, None)).verdicts[0].trace
    assert explored is not None
    return model, prop, explored


@pytest.mark.slow
def test_z3_finds_a_run_of_three_replicas_as_long_as_the_explorers_shortest_violation() -> None:
    """Of the actions that the explorer's run has, for the sake of time; in which order, and from where, Z3 finds."""
    model, prop, explored = shortest("kip-320-first-try")
    taken = {step.action.label for step in explored if step.action is not None}
    few = replace(model, actions=[action for action in model.actions if action.label in taken])
    assert 5 < len(few.actions) < len(model.actions)
    found = BoundedExecution(few, prop).shortest_violation(12, EFFORT_OF_RUNS, least_states=12)
    assert found.trace is not None
    assert len(found.trace) == len(explored) == 12
    assert_replays(model, found.trace)


@pytest.mark.nightly  # by day truncate-to-hw, and kip-320-first-try with few actions
@pytest.mark.parametrize(("name", "states"), [("kip-101", 12)])
def test_a_symbolic_run_is_as_long_as_the_explorers_shortest_violation(command: Command, name: str, states: int) -> None:
    """That no shorter run violates the property, the explorer says; Z3 finds the same."""
    refutable = REFUTABLE[name]
    _, _, explored = shortest(name)
    assert len(explored) == states
    done = command("prove", name, "--runs", str(states), "--json", "--quiet")
    (told,) = json.loads(done.stdout)["theorems"]
    assert (done.status, told["status"], told["replicas"]) == (1, "refuted", refutable.replicas)
    assert len(told["counterexample"]["trace"]) == states


@pytest.mark.slow
def test_symbolic_runs_find_a_violation_as_short_as_the_explorers() -> None:
    refutable = REFUTABLE["truncate-to-hw"]
    model = refutable.build(2)
    prop = model.property_named(refutable.prop)
    assert prop is not None
    found = BoundedExecution(model, prop).shortest_violation(12, EFFORT_OF_RUNS)
    explored = explorer("reference")(model, [prop], Limits(True, None, None)).verdicts[0].trace
    assert found.trace is not None
    assert explored is not None
    assert len(found.trace) == len(explored) == 9
    assert [depth.violated for depth in found.depths] == [False] * 8 + [True]


# ---- certificates


@pytest.mark.slow
def test_another_solver_confirms_a_sample(tmp_path: Path) -> None:
    """cvc5 finds every obligation of the sample unsatisfiable too, or gives up; it contradicts none."""
    assert prove(ProofSettings("kip-320", 2, export=tmp_path), workers=1).status == "proved"
    files = sorted(tmp_path.glob("*.smt2"))
    assert len(files) == 371
    sample = 40 if is_night() else 12
    answers = [answer(path, 500_000) for path in random.Random(1).sample(files, sample)]
    assert answers.count("sat") == 0
    assert 4 * answers.count("unsat") >= 3 * sample
