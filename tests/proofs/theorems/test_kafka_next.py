"""The message-passing protocol: its model, what its invariant says of reachable states, and proofs of some obligations."""

import json
import random
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import z3

from kspec.model_check.core.model import Model, State
from kspec.model_check.core.parameters import resolve
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.models import messages
from kspec.model_check.models.messages import board
from kspec.model_check.models.messages.settings import PARAMETERS
from kspec.model_check.models.messages.values import FIRST_BROKER_EPOCH, FetchId, ProposalId
from kspec.proofs.commands import prove
from kspec.proofs.commands.choice import proof_of
from kspec.proofs.induction.by_outcome import ObligationsByOutcome
from kspec.proofs.induction.invariant import Theorem, conjunct
from kspec.proofs.induction.proof import Proof
from kspec.proofs.induction.strategies.by_instances import ByInstances
from kspec.proofs.induction.strategies.instances import Kinds
from kspec.proofs.refutation.counterexample import BoundedState
from kspec.proofs.refutation.weakened import TheoremOutcomes, WeakenedObligations, WeakenedSearch, calls
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.state import UnknownSlotError
from kspec.proofs.symbolic.values import truth
from kspec.proofs.theorems import EFFORT_BY_OUTCOME
from kspec.proofs.theorems.kafka_next.theorem import (
    CONSEQUENCES,
    INVARIANT,
    KAFKA_NEXT_POWER_LOSS_THEOREM,
    KAFKA_NEXT_THEOREM,
    REALISTIC,
)
from kspec.proofs.theorems.kafka_next.view import KafkaNextView, LossyView
from kspec.spec.mutation import Mutant
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS
from kspec.spec.releases.kraft import KRAFT_NEXT
from kspec.spec.releases.kraft_mutants import CONTROLLER_MUTANTS
from kspec.spec.values import BrokerId, Epoch, Offset, PartitionEpoch
from tests.limits.marks import marked
from tests.limits.turns import Turns
from tests.model_check.commands import Command
from tests.places import DOCS

BOUNDS = {"max_epoch": 2, "max_partition_epoch": 3, "fetches": 5, "proposals": 2, "values": 2}
WITH_STOPS = BOUNDS | {"max_epoch": 4, "max_partition_epoch": 6, "unclean_shutdowns": 3}

LITTLE_EFFORT = 3_000_000
"""The limit of Z3, in its own units, where there is nothing to be found: about a second's work."""

OFTEN = {
    "HandleFetch": 3,
    "TakeFetchAnswer": 4,
    "ReplayMetadataAsFollower": 2,
    "ReplayMetadataAsNewLeader": 2,
    "SendFetch": 2,
    "GrantIsr": 3,
    "TakeIsrAnswer": 2,
}
SELDOM = {
    "LoseConnection": 0.2,
    "FenceQuietly": 0.3,
    "Fence": 0.4,
    "Unfence": 2,
    "UnfenceQuietly": 0.5,
    "RefuseIsr": 0.2,
    "ElectPreferred": 0.7,
    "UncleanShutdown": 0.1,
    "ReplayRegistration": 0.3,
}


def model_of(**given: Any) -> Model:
    return messages.build("messages", resolve("messages", PARAMETERS, given))


def walked(model: Model, steps: int, walks: int) -> set[State]:
    """States along random walks, that go on with what was begun more often than not."""
    chance = random.Random(7)
    steps_of = [(action.name, action.bind()) for action in model.actions]
    seen: set[State] = set()
    for _ in range(walks):
        state = model.initial
        for _ in range(steps):
            possible = [(name, after) for name, fire in steps_of if (after := fire(state)) is not None]
            weights = [(OFTEN | SELDOM).get(name, 1) for name, _ in possible]
            _, state = chance.choices(possible, weights)[0]
            seen.add(state)
    return seen


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


def failing(model: Model, state: State) -> list[str]:
    """The conjuncts that do not hold of a state, and what else should follow from them."""
    bounds = model.parameters
    brokers = range(1, bounds["brokers"] + 1)
    domains: dict[Any, Sequence[int]] = {
        BrokerId: brokers,
        Offset: range(bounds["values"] + 1),
        Epoch: range(bounds["max_epoch"] + 1),
        PartitionEpoch: range(bounds["max_partition_epoch"] + 1),
        FetchId: range(bounds["fetches"]),
        ProposalId: range(bounds["proposals"]),
    }
    of = KafkaNextView if bounds["min_isr"] == 1 else LossyView
    view = of(BoundedState(model, state).at, Brokers(brokers))
    return [
        claim.name
        for claim in (*INVARIANT, *CONSEQUENCES, *REALISTIC)
        if not all(
            claim.claim(view, *values)
            for values in product(
                *[domains[kind.annotation] for kind in list(signature(claim.claim).parameters.values())[1:]]
            )
        )
    ]


@pytest.mark.parametrize(
    ("brokers", "walks", "bounds"),
    [
        (2, 2, BOUNDS),
        pytest.param(2, 6, BOUNDS, marks=pytest.mark.nightly),
        pytest.param(2, 6, WITH_STOPS | {"min_isr": 1}, marks=pytest.mark.nightly),
        pytest.param(2, 2, WITH_STOPS | {"min_isr": 2}, marks=pytest.mark.slow),
        pytest.param(2, 6, WITH_STOPS | {"min_isr": 2}, marks=[pytest.mark.slow, pytest.mark.nightly]),
        pytest.param(3, 2, BOUNDS, marks=pytest.mark.nightly),
        pytest.param(3, 8, WITH_STOPS | {"min_isr": 2}, marks=[pytest.mark.slow, pytest.mark.nightly]),
    ],
)
def test_the_invariant_holds_of_states_that_walks_reach(brokers: int, walks: int, bounds: dict[str, int]) -> None:
    model = model_of(brokers=brokers, **bounds)
    seen = walked(model, 30, walks)
    assert {name for state in seen for name in failing(model, state)} == set()
    assert (
        "unclean_shutdowns" not in bounds or {broker for state in seen for broker in registered_again(model, state)} != set()
    )


def registered_again(model: Model, state: State) -> list[int]:
    """The brokers whose first incarnation is over, and whose next one is registered."""
    at = BoundedState(model, state).at
    return [broker for broker in range(1, model.parameters["brokers"] + 1) if at("brokerEpoch", broker) > FIRST_BROKER_EPOCH]


@pytest.mark.slow
@pytest.mark.parametrize("brokers", marked([2, 3], nightly=[3]))
def test_actions_of_one_broker_stand_for_those_of_all(brokers: int) -> None:
    """The model tells no brokers apart, so the prover looks at one action of those that are the same but for names."""
    model = model_of(brokers=brokers, unclean_shutdowns=1)
    Symmetry(model).check(model.properties)
    obligations = ObligationsByOutcome(KAFKA_NEXT_THEOREM, ProofSettings(KAFKA_NEXT_THEOREM.name, brokers))
    twice = ["Fence", "Unfence", "Register"]  # the preferred replica is the broker itself, or another
    names = {action.name for action in model.actions}
    assert sorted(action.name for action in obligations.actions.values()) == sorted([*names, *twice])


@pytest.mark.slow
def test_the_invariant_does_not_hold_of_every_weaker_protocol() -> None:
    model = model_of(brokers=2, mutant="no-divergence-check", **BOUNDS)
    assert any(failing(model, state) for state in walked(model, 30, 12))


@pytest.mark.slow
def test_a_weakened_rule_is_not_proved() -> None:
    task, mutant = "ProposeShrink(leader=1, proposal=proposal)", "shrink-before-confirmation"
    settings = ProofSettings(KAFKA_NEXT_THEOREM.name, 2, mutant, effort=LITTLE_EFFORT)
    obligations = ObligationsByOutcome(KAFKA_NEXT_THEOREM, settings)
    proof = Proof(obligations, ByInstances(obligations))
    sound, broken = {"LogShape", "Decisions"}, {"LeaderIsrIsDecided", "LatestProposal", "LeaderCountsIsr"}
    found = {conjunct: proof.prove(task, only=conjunct) for conjunct in sound | broken}
    assert all(found.values())
    assert {conjunct for conjunct, each in found.items() if {one.status for one in each} == {"proved"}} == sound


@conjunct("NothingIsWritten", "A claim that is false: a leader that appends breaks it.")
def nothing_is_written(s: KafkaNextView, broker: BrokerId) -> Any:
    return s.log(broker).end_offset == 0


@pytest.mark.slow
def test_what_is_false_is_not_proved() -> None:
    theorem = replace(KAFKA_NEXT_THEOREM, conjuncts=(*INVARIANT[:12], nothing_is_written))
    proof = proof_of(theorem, ProofSettings(theorem.name, 2, effort=LITTLE_EFFORT))
    (found,) = proof.prove("Produce(leader=1, epoch=epoch)", only="NothingIsWritten")
    assert found.status == "unknown"


@pytest.mark.slow
def test_each_outcome_is_exported(tmp_path: Path) -> None:
    proof = proof_of(KAFKA_NEXT_THEOREM, ProofSettings(KAFKA_NEXT_THEOREM.name, 2, export=tmp_path))
    task = "CreatePartition(leader=1, partition_epoch=partition epoch, epoch=epoch)"
    conjunct = INVARIANT[0].name
    proof.prove(task, only=conjunct)
    claims = [claim for claim in proof.obligations.claims(task) if claim.conjunct == conjunct]
    assert claims
    assert len(list(tmp_path.iterdir())) == len(claims)


LITTLE = [
    (KAFKA_NEXT_THEOREM, "Init"),
    (KAFKA_NEXT_POWER_LOSS_THEOREM, "Init"),
]
MORE = [
    (KAFKA_NEXT_POWER_LOSS_THEOREM, "UncleanShutdown(broker=1, checkpointed=checkpointed, survives=survives)"),
    (KAFKA_NEXT_POWER_LOSS_THEOREM, "ProposeShrink(leader=1, proposal=proposal)"),
]
BY_NIGHT = [
    (KAFKA_NEXT_THEOREM, "UncleanShutdown(broker=1, checkpointed=checkpointed)"),
    (KAFKA_NEXT_POWER_LOSS_THEOREM, "Property"),
    (KAFKA_NEXT_POWER_LOSS_THEOREM, "RegisterQuietly(broker=1, epoch=epoch)"),
    (KAFKA_NEXT_THEOREM, "CreatePartition(leader=1, partition_epoch=partition epoch, epoch=epoch)"),
    (KAFKA_NEXT_THEOREM, "Property"),
    (KAFKA_NEXT_THEOREM, "TakeFetchAnswer(follower=1, leader=2, fetch=fetch)"),
    (KAFKA_NEXT_POWER_LOSS_THEOREM, "SendFetch(follower=1, leader=2, fetch=fetch, epoch=epoch)"),
]


@pytest.mark.parametrize(
    ("theorem", "task"),
    [
        *LITTLE,
        *(pytest.param(*each, marks=pytest.mark.slow) for each in MORE),
        *(pytest.param(*each, marks=[pytest.mark.slow, pytest.mark.nightly]) for each in BY_NIGHT),
    ],
    ids=lambda value: value.name if isinstance(value, Theorem) else value,
)
def test_obligations_of_a_task_are_proved(theorem: Theorem, task: str) -> None:
    proof = proof_of(theorem, ProofSettings(theorem.name, 2, effort=EFFORT_BY_OUTCOME))
    assert {obligation.status for obligation in proof.prove(task)} == {"proved"}


# ---- weakened rules


def table(name: str) -> dict[str, Any]:
    """Outcomes of mutants: made by
    `python -m kspec.proofs.commands.mutants THEOREM --write tests/proofs/theorems/NAME.json [MUTANT]...`."""
    rows = json.loads((Path(__file__).parent / f"{name}.json").read_text())
    return {row["mutant"]: row for row in rows}


POWER_LOSS, NO_LOSS = table("kafka_next_power_loss_mutants"), table("kafka_next_mutants")
"""Of all mutants; and of those that break nothing in the first table."""

HEAVY = ("HandleFetch", "TakeFetchAnswer", "ReplayMetadataAsFollower", "GrantIsr", "RefuseIsr")
"""Actions with so many ways through the rules that some of the mutants have to do for all."""

TRIED_OF_HEAVY = (
    "no-divergence-check",
    "join-before-epoch-start",
    "take-answer-of-other-epoch",
    "truncate-to-high-watermark",
)


def broken(rows: dict[str, Any]) -> list[str]:
    return [name for name, row in rows.items() if row["action"]]


def unchanged(rows: dict[str, Any]) -> list[str]:
    return [name for name, row in rows.items() if not row["different"]]


TRIED = [
    (theorem, name, rows[name])
    for theorem, rows in ((KAFKA_NEXT_POWER_LOSS_THEOREM, POWER_LOSS), (KAFKA_NEXT_THEOREM, NO_LOSS))
    for name in broken(rows)
    if not rows[name]["action"].startswith(HEAVY) or name in TRIED_OF_HEAVY
]


TRIED_BY_NIGHT = (
    "election-outside-isr-and-elr",
    "min-isr-of-one",
    "no-divergence-check",
    "advance-below-min-isr",
    "join-before-epoch-start",
    "take-answer-of-other-epoch",
    "high-watermark-over-committed-isr",
)

WITHOUT_AN_END = {"refusal-without-trace"}
"""Mutants whose search did not end within 25 minutes on one core."""


def test_every_mutant_is_in_the_tables() -> None:
    assert set(POWER_LOSS) | WITHOUT_AN_END == set(KAFKA_NEXT_THEOREM.mutants)
    assert not WITHOUT_AN_END & set(POWER_LOSS)
    assert sorted(NO_LOSS) == sorted(set(POWER_LOSS) - set(broken(POWER_LOSS)))
    assert broken(POWER_LOSS)
    assert unchanged(POWER_LOSS)
    assert [row["mutant"] for rows in (POWER_LOSS, NO_LOSS) for row in rows.values() if row["left_open"]] == []


def test_the_page_has_what_the_tables_have() -> None:
    page = (DOCS / "proofs.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\| `([\w-]+)` \| (\w+) \| ([\w, ]+) \| (\d) \|$", page, re.MULTILINE))
    assert shown == {
        (name, row["action"].partition("(")[0], ", ".join(row["conjuncts"]), str(row["size"]))
        for name, row in POWER_LOSS.items()
        if row["action"]
    }
    (alike,) = re.findall(r"make no difference, in any action of either theorem: ([^.]*)\.", page)
    assert set(re.findall(r"`([\w-]+)`", alike)) == {*unchanged(POWER_LOSS)} & {*unchanged(NO_LOSS)}


@pytest.fixture(scope="module")
def unweakened() -> dict[str, TheoremOutcomes]:
    theorems = (KAFKA_NEXT_THEOREM, KAFKA_NEXT_POWER_LOSS_THEOREM)
    return {theorem.name: TheoremOutcomes(theorem, ProofSettings(theorem.name, 2)) for theorem in theorems}


def test_an_action_is_as_it_was_if_it_never_asks_the_weakened_rule(unweakened: dict[str, TheoremOutcomes]) -> None:
    theorem, task = KAFKA_NEXT_THEOREM, "ProposeShrink(leader=1, proposal=proposal)"
    known = unweakened[theorem.name]
    assert [mutant for mutant in theorem.mutants if known.asks(task, mutant)] == ["shrink-before-confirmation"]
    assert known.asks(task, None)
    for mutant, differs in (("no-epoch-entry", False), ("shrink-before-confirmation", True)):
        obligations = WeakenedObligations(theorem, ProofSettings(theorem.name, 2, mutant), known)
        assert obligations.differs(task) is differs


def test_what_is_called_is_noted_and_profiling_goes_on_as_before() -> None:
    before = sys.getprofile()
    with calls() as called:
        truth(True)
    assert truth.__code__ in called
    assert sys.getprofile() is before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("theorem", "mutant", "row"),
    [
        pytest.param(*each, marks=[pytest.mark.nightly] if each[1] in TRIED_BY_NIGHT else [], id=f"{each[0].name}-{each[1]}")
        for each in TRIED
    ],
)
def test_a_weakened_rule_breaks_the_induction(
    theorem: Theorem, mutant: str, row: dict[str, Any], unweakened: dict[str, TheoremOutcomes]
) -> None:
    """The counterexample's states are Python values, and the step is the model's own: only such a one is found."""
    search = WeakenedSearch(WeakenedObligations(theorem, ProofSettings(theorem.name, 2, mutant), unweakened[theorem.name]))
    found = search.in_task(row["action"], sizes=(row["size"],), simplify=False)
    assert found is not None
    before, after = found.trace
    assert after.action is not None
    assert after.action.name == row["action"].partition("(")[0]
    assert after.action.bind()(before.state) == after.state
    assert found.failing


@pytest.mark.slow
@pytest.mark.nightly
def test_a_weakened_rule_is_told_in_words(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prove, "MOST_STATES_TO_START", 2_000)
    done = command("prove", "kafka-next", "--mutant", "election-outside-isr-and-elr", "--workers", "1", "--quiet")
    assert done.status == 1
    assert "kafka-next with election-outside-isr-and-elr, 2 replicas: refuted" in done.stdout
    assert "so not proved again: Init, CreatePartition" in done.stdout
    assert "not looked at: Fence, Unfence, Register, GrantIsr, FenceQuietly" in done.stdout


def together(protocol: Any, mutants: Sequence[Mutant]) -> tuple[Any, list[Mutant]]:
    """A protocol with several rules weakened at once, and the mutants that are left: each rule is weakened in one way."""
    weakened: dict[str, Mutant] = {}
    for mutant in mutants:
        weakened.setdefault(mutant.field, mutant)
    return replace(protocol, **{field: mutant.rule for field, mutant in weakened.items()}), [
        mutant for mutant in mutants if weakened[mutant.field] is not mutant
    ]


@pytest.mark.slow
@pytest.mark.nightly
def test_rules_that_do_not_matter_here_make_no_difference(
    unweakened: dict[str, TheoremOutcomes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them weakened at once: an action has the outcomes that it has without. The command that makes the tables looks
    at the heavy ones, too."""
    brokers = [mutant for mutant in BROKER_MUTANTS if mutant.name in unchanged(NO_LOSS)]
    controllers = [mutant for mutant in CONTROLLER_MUTANTS if mutant.name in unchanged(NO_LOSS)]
    turns = Turns()
    while brokers or controllers:
        turns.go()
        rules, brokers = together(BROKER_NEXT, brokers)
        control, controllers = together(KRAFT_NEXT, controllers)
        monkeypatch.setattr(board, "BROKER_NEXT", rules)
        monkeypatch.setattr(board, "KRAFT_NEXT", control)
        weakened = [each.name for each in BROKER_MUTANTS if getattr(rules, each.field) is each.rule]
        weakened += [each.name for each in CONTROLLER_MUTANTS if getattr(control, each.field) is each.rule]
        assert weakened
        known = unweakened[KAFKA_NEXT_THEOREM.name]
        obligations = WeakenedObligations(KAFKA_NEXT_THEOREM, ProofSettings(KAFKA_NEXT_THEOREM.name, 2), known)
        light = [task for task in obligations.actions if not task.startswith(HEAVY)]
        asked = [task for task in light if any(known.asks(task, mutant) for mutant in weakened)]
        assert [task for task in asked if obligations.differs(task)] == []


class ReadsAnOldName(KafkaNextView):
    """A view that has not heard that a slot is named otherwise now."""

    def leader_log(self, epoch: Any) -> Any:
        return self.at("ledger", epoch)


def test_a_slot_that_only_the_theorem_has_is_an_error() -> None:
    theorem = replace(KAFKA_NEXT_THEOREM, view=ReadsAnOldName)
    with pytest.raises(UnknownSlotError, match=r"the model has no slot 'ledger'; it has .*leaderLog"):
        ByInstances(ObligationsByOutcome(theorem, ProofSettings(theorem.name, 2)))


def test_a_function_that_no_slot_is_made_up_of_is_an_error() -> None:
    """Otherwise no instance would be found of what it is about, and proofs would be missed without a word."""
    offset, ledger = z3.Int("offset"), z3.Function("ledger.epoch", z3.IntSort(), z3.IntSort(), z3.IntSort())
    known = Kinds({}, {"leaderLog.epoch": (Epoch, Offset)})
    with pytest.raises(UnknownSlotError, match=r"no slot of the model is made up of 'ledger.epoch'"):
        known.asked_in(ledger(0, offset) == 0)


def test_kinds_follow_from_the_models_slots() -> None:
    strategy = ByInstances(ObligationsByOutcome(KAFKA_NEXT_THEOREM, ProofSettings(KAFKA_NEXT_THEOREM.name, 2)))
    kinds = strategy.kinds.functions
    assert kinds["leaderLog.epoch"] == (Epoch, Offset)
    assert kinds["log.value"] == (BrokerId, Offset)
    assert kinds["decision.isr"] == (PartitionEpoch, BrokerId)
    assert kinds["fetchAnswer.record?"] == (FetchId,)
    assert kinds["named 1"] == (ProposalId,)
    assert kinds["furthestCommit.end"] == ()
    assert strategy.kinds.variables["any offset"] is Offset
