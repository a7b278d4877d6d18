"""Proofs for any number of replicas: what they speak of is the model with any number one cares to try."""

import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import z3

from kspec.model_check.core.audit import reachable_states
from kspec.proofs.commands.choice import proof_of
from kspec.proofs.commands.confirm import answer
from kspec.proofs.commands.prove import prove
from kspec.proofs.induction.any_number import ObligationsForAnyNumber
from kspec.proofs.induction.claims import Claim
from kspec.proofs.induction.invariant import conjunct
from kspec.proofs.induction.proof import Proof
from kspec.proofs.induction.strategies.few_brokers import ByFewBrokers
from kspec.proofs.refutation.counterexample import explored_view, search_for
from kspec.proofs.refutation.finite import spelled_out
from kspec.proofs.settings import ANY, ProofSettings
from kspec.proofs.symbolic.anyone import ANOTHER, ONE
from kspec.proofs.symbolic.brokers import IS_BROKER
from kspec.proofs.symbolic.logic import all_of, implies, member
from kspec.proofs.symbolic.relation import SymbolicStep
from kspec.proofs.theorems import THEOREMS
from kspec.spec.values import NO_LEADER, BrokerId, Epoch
from tests.limits.marks import marked
from tests.proofs.commands.test_prove import BROKEN

THEOREM = THEOREMS["kip-320"]
REPLICAS, SIZE, EPOCHS = 3, 2, 2
MOST_TRIED = 2
NUMBERS = range(-1, SIZE + 3)
"""Offsets, epochs and brokers that cover every state here."""


@pytest.fixture(scope="module")
def obligations() -> ObligationsForAnyNumber:
    return ObligationsForAnyNumber(THEOREM, ProofSettings(THEOREM.name, ANY))


def the_state(obligations: ObligationsForAnyNumber, model: Any, state: Any) -> z3.Solver:
    """The facts about `REPLICAS` brokers in a state of the bounded model."""
    solver = z3.Solver()
    solver.add(*(IS_BROKER(number) == (1 <= number <= REPLICAS) for number in NUMBERS))
    for slot, value in zip(model.slots, state, strict=True):
        unknown = obligations.before.at(slot.name, slot.key)
        shape = obligations.shapes[slot.name]
        solver.add(spelled_out(shape.is_value(unknown, value), NUMBERS))
    return solver


def small(formula: z3.BoolRef) -> z3.BoolRef:
    return spelled_out(formula, NUMBERS)


def states() -> tuple[Any, list[Any]]:
    """A model, and some of its states in which no log is full and no epoch the last."""
    model, smaller = THEOREM.bounded(REPLICAS, SIZE + 1, EPOCHS), THEOREM.bounded(REPLICAS, SIZE, EPOCHS)
    partition = next(slot for slot in model.slots if slot.name == "partition")
    seen = reachable_states(smaller, 4000, seed=5)
    inside = [state for state in seen if state[partition.position].leader_epoch < EPOCHS]
    random.Random(2).shuffle(inside)
    return model, inside


@pytest.mark.slow
def test_what_is_claimed_of_all_brokers_holds_of_three(obligations: ObligationsForAnyNumber) -> None:
    """Reachable states have the invariant in the form in which Z3 knows it, so it does not contradict itself.

    One of them is such that the theorem says something of it.
    """
    model, seen = states()
    speaking = next(state for state in seen if THEOREM.witness.holds(explored_view(THEOREM, model, state, REPLICAS)))
    known = [small(formula) for formula in obligations.premises]
    for each, instance in obligations.hypotheses:
        known.append(small(instance.closed()))
        assert satisfiable(the_state(obligations, model, speaking), known[-1]), each.name
    for state in (speaking, *seen[:2]):
        assert satisfiable(the_state(obligations, model, state), *known)


def satisfiable(solver: z3.Solver, *formulas: z3.BoolRef) -> bool:
    solver.add(*formulas)
    return bool(solver.check() == z3.sat)


@pytest.mark.slow
def test_committing_keeps_the_invariant(obligations: ObligationsForAnyNumber) -> None:
    """The rule that asks every member of the ISR, however many there are."""
    proof = Proof(obligations, ByFewBrokers(obligations))
    found = proof.prove("FencedLeaderIncHighWatermark(leader=a)")
    assert {obligation.status for obligation in found} == {"proved"}
    assert len(found) == 19


@pytest.mark.nightly  # by day one action, and all of them for two replicas
def test_kip_320_is_proved_for_any_number_of_replicas(tmp_path: Path) -> None:
    """Each obligation is about any brokers. Another solver finds most of a sample unsatisfiable, and contradicts none."""
    outcome = prove(ProofSettings(THEOREM.name, ANY, export=tmp_path), workers=2)
    assert (outcome.status, len(outcome.obligations)) == ("proved", 197)
    assert outcome.as_json()["replicas"] == "any"
    assert outcome.witness is not None
    files = sorted(tmp_path.glob("*.smt2"))
    assert len(files) == 197
    answers = [answer(path, 1_000_000) for path in random.Random(1).sample(files, 20)]
    assert answers.count("sat") == 0
    assert answers.count("unsat") >= 15


@pytest.mark.slow
@pytest.mark.parametrize("mutant", marked(THEOREM.mutants, nightly=set(THEOREM.mutants) - {"join-before-epoch-start"}))
def test_a_mutant_breaks_the_proof_for_any_number(mutant: str) -> None:
    """This proof fails where the one for three replicas does, and a counterexample has few replicas."""
    action, broken = BROKEN[THEOREM.name, mutant]
    weakened = proof_of(THEOREM, ProofSettings(THEOREM.name, ANY, mutant))
    found: list[Any] = []
    search = search_for(weakened.obligations)

    def look(claim: Claim) -> bool:
        found.append(search.find(claim))
        return found[-1] is not None

    task = next(label for label, each in weakened.obligations.actions.items() if each.name == action)
    (obligation,) = weakened.prove(task, look, only=broken)
    assert obligation.status == "refuted"
    assert found[-1].broken == broken


def the_arguments(action: Any, general: Any) -> z3.BoolRef:
    """The values of the names in an action for any number of replicas, in an action of the bounded model."""
    names = {name: action.args[argument] for argument, name in general.args.items()}
    anybody = next(broker for broker in range(1, REPLICAS + 1) if broker != names[ONE])
    return z3.And(*(name.term == value for name, value in ({ANOTHER: anybody} | names).items()))


@pytest.mark.slow
def test_an_action_of_some_brokers_is_the_action_of_these(obligations: ObligationsForAnyNumber) -> None:
    """For three replicas, the relation of an action is what Python does: also where it asks every other broker."""
    model, seen = states()
    steps = {action.name: obligations.step(action) for action in obligations.actions.values()}
    assert {action.name for action in model.actions} == steps.keys()
    formulas = {name: (small(taken.enabled), small(taken.facts)) for name, taken in steps.items()}
    tried = {name: {True: 0, False: 0} for name in steps}
    for state, (action, fire) in product(seen, by_label(model)):
        taken = steps[action.name]
        after = next((after for after in (each(state) for each in fire) if after is not None), None)
        if tried[action.name][after is not None] >= MOST_TRIED:
            continue
        tried[action.name][after is not None] += 1
        solver = the_state(obligations, model, state)
        solver.add(the_arguments(action, taken.action), *formulas[action.name])
        assert (solver.check() == z3.sat) == (after is not None), action.label
        if after is not None:
            solver.add(z3.Not(leads_to(obligations, taken, model, after)))
            assert solver.check() == z3.unsat, action.label
    assert all(set(each.values()) == {MOST_TRIED} for each in tried.values()), tried


def by_label(model: Any) -> list[tuple[Any, list[Any]]]:
    """Actions as functions; those that differ in the epoch that they open have one label, and are one here."""
    labels: dict[str, tuple[Any, list[Any]]] = {}
    for action in model.actions:
        labels.setdefault(action.label, (action, []))[1].append(action.bind())
    return list(labels.values())


def leads_to(obligations: ObligationsForAnyNumber, taken: SymbolicStep, model: Any, state: Any) -> z3.BoolRef:
    same = (
        obligations.shapes[slot.name].is_value(taken.after.at(slot.name, slot.key), value)
        for slot, value in zip(model.slots, state, strict=True)
    )
    return z3.And(*map(small, same))


@conjunct("NobodyWasAnnounced", "False as soon as a second epoch begins.")
def nobody_was_announced(s: Any, epoch: Epoch) -> Any:
    return implies(all_of(epoch >= 0, epoch < s.partition.leader_epoch), s.announced_leader(epoch) == NO_LEADER)


@conjunct("NobodyLeaves", "False as soon as a replica leaves the ISR.")
def nobody_leaves(s: Any, replica: BrokerId) -> Any:
    return member(replica, s.partition.isr)


@conjunct("OnlyOneLeads", "False as soon as a leader is replaced that does not know it yet.")
def only_one_leads(s: Any, leader: BrokerId, other: BrokerId) -> Any:
    return implies(all_of(s.leads(leader), s.leads(other)), leader == other)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("false", "action"),
    [
        (nobody_was_announced, "ControllerElectLeader(replica=a)"),
        (nobody_leaves, "FencedLeaderShrinkIsr(leader=a, follower=b)"),
        (only_one_leads, "BecomeLeader(leader=a, epoch=epoch)"),
    ],
)
def test_what_is_false_is_not_proved(false: Any, action: str) -> None:
    theorem = replace(THEOREM, conjuncts=(*THEOREM.conjuncts, false))
    general = proof_of(theorem, ProofSettings(THEOREM.name, ANY, effort=3_000_000))
    (obligation,) = general.prove(action, only=false.name)
    assert obligation.status == "unknown"
