"""Induction for any number of replicas at once.

Every conjunct is one formula about all brokers, and a goal is about brokers of which nothing is known. A proof does not need
the invariant of all brokers, but of a few: those that act, those that the goal is about, and those that the controller
announced as leaders of the epochs in question. Z3 gets the conjuncts for these, and for all offsets and epochs. That is less
than the invariant says, so what follows from it follows from the invariant.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import z3

from model_check.core.model import Action, Local
from proofs.induction.induction import INIT, PROPERTIES, Claim, Induction, Status, export
from proofs.induction.invariant import Conjunct, Instance, Theorem
from proofs.settings import ProofSettings
from proofs.symbolic.anyone import ANOTHER, ANYONE, EVERY_OTHER, IS_OTHER, ONE, PREMISES, speaks_of_others
from proofs.symbolic.relation import as_formula
from proofs.symbolic.state import SymbolicState
from proofs.symbolic.values import IS_BROKER, Brokers, negation, parts_of

FIRST_ATTEMPTS = 2_000_000
"""How much Z3 may do in each of the first attempts at a proof, in its own units: less than a second. A proof takes half as
much at most. In the attempts that follow it is twice as much each time, as long as any is left."""

MOST_ATTEMPTS = 8
"""How often all of that is tried at most: Z3 may give up before it has done what it may."""

Hypothesis = tuple[str, z3.BoolRef]
"""What a conjunct says of some brokers; its name, and the formula."""


class InductionOverAnyNumber(Induction):
    """A theorem for any number of replicas."""

    def __init__(self, theorem: Theorem, settings: ProofSettings) -> None:
        super().__init__(theorem, settings)
        self.premises += PREMISES
        self.instantiated: dict[tuple[str, tuple[int, ...]], tuple[z3.BoolRef, Sequence[z3.ExprRef]]] = {}
        """What was made of a conjunct for some brokers; these are kept, because a term's id is its own only so long."""
        self.kinds = {
            str(number): kind
            for conjunct in self.conjuncts
            for number, kind in zip(conjunct.variables[1], conjunct.kinds, strict=True)
        }
        """Of each number that goals speak of: whether it is an offset or an epoch."""

    def all_brokers(self) -> Brokers:
        return ANYONE

    def guard(self, local: Local, state: SymbolicState, solver: z3.Solver | None) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """A guard as a formula; if it speaks of the brokers that do not act, it is asked of all of them."""
        if not speaks_of_others(local):
            return as_formula(local, state, solver)
        condition, facts, paths = self._about_others(local, state, solver)
        if not z3.is_true(facts):
            raise TypeError("what is asked about every broker must not search logs")
        return z3.ForAll([EVERY_OTHER.term], condition), facts, paths

    def term(self, local: Local) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        if not speaks_of_others(local):
            return super().term(local)
        return self._about_others(local, self.before, self.pruning())

    def _about_others(
        self, local: Local, state: SymbolicState, solver: z3.Solver | None
    ) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """A guard or term as a formula about any broker that does not act."""
        if solver is not None:
            solver.push()
            solver.add(IS_OTHER)
        condition, facts, paths = as_formula(local, state, solver)
        if solver is not None:
            solver.pop()
        return z3.Implies(IS_OTHER, condition), facts, paths

    def acting(self, actions: Sequence[Action]) -> list[Action]:
        """Of actions that differ only in their brokers, the one by `ONE`, with `ANOTHER` if there are two.

        These are any two brokers, so it stands for all.
        """
        chosen = [action for action in actions if _brokers(action) == [ONE, ANOTHER][: len(_brokers(action))]]
        left_out = {action.name for action in actions} - {action.name for action in chosen}
        if left_out or any(speaks_of_others(effect.local) for action in chosen for effect in action.effects):
            raise TypeError(f"actions of two brokers at most can be proved for any number of them; not {left_out or 'all'}")
        return chosen

    def pruning(self, action: Action | None = None) -> z3.Solver:
        solver = super().pruning(action)
        for conjunct, instance in self.hypotheses:
            if conjunct.brokers and not conjunct.numbers:
                solver.add(*self._about(conjunct, instance, [ONE.term, ANOTHER.term, EVERY_OTHER.term]))
        return solver

    # ---- what Z3 gets to know

    def prove_claim(self, solver: z3.Solver, claim: Claim, on_failure: Callable[[Claim], bool]) -> Status:
        """Try with the conjuncts about few brokers and about more, look for a counterexample, and try for longer."""
        status: Status = "proved" if z3.is_true(claim.goal) else "unknown"
        effort, searched = self.effort(), not self.settings.search
        for attempt, asked in self._attempts(claim):
            if status == "proved" or effort.part(FIRST_ATTEMPTS * 2**attempt).ask(asked) == z3.unsat:
                status = "proved"
                break
            if (attempt > 0 or effort.left <= 0) and not searched:
                searched = True
                if on_failure(claim):
                    status = "refuted"
                    break
            if effort.left <= 0:
                break
        if self.settings.export is not None:
            export(self.settings, claim, asked)
        return status

    def _attempts(self, claim: Claim) -> Iterator[tuple[int, z3.Solver]]:
        """Solvers that know different parts of the invariant, and how often that has been tried with less effort."""
        for attempt in range(MOST_ATTEMPTS):
            for hypotheses in self._choices(claim):
                solver = self._solver(claim, hypotheses)
                solver.set("random_seed", self.settings.seed + 1000 * attempt)
                yield attempt, solver

    def _choices(self, claim: Claim) -> Iterator[list[Hypothesis]]:
        """What of the invariant may be enough for a claim: what it says of few brokers, of more, and of all."""
        if claim.action == INIT:
            yield []
            return
        flat = [(conjunct.name, instance.closed()) for conjunct, instance in self.hypotheses if _is_flat(instance)]
        known = [*claim.brokers, ONE.term, ANOTHER.term]
        known += [EVERY_OTHER.term] if claim.action == PROPERTIES else []
        named = _distinct([*known, *self._spoken_of(claim.numbers, [])])
        in_office = _distinct([*known, *self._spoken_of([], [])])
        everyone = _distinct([*named, *in_office, *self._spoken_of(claim.numbers, known)])
        for brokers in (named, in_office, everyone):
            yield [*flat, *self._all_about(brokers)]
        yield [(conjunct.name, instance.closed()) for conjunct, instance in self.hypotheses]

    def core_of(self, claim: Claim) -> frozenset[str]:
        for hypotheses in self._choices(claim):
            solver = self._solver(claim, [])
            solver.add(*(z3.Implies(z3.Bool(name), formula) for name, formula in hypotheses))
            if self.effort().ask(solver, *(z3.Bool(conjunct.name) for conjunct in self.conjuncts)) == z3.unsat:
                return frozenset(str(name) for name in solver.unsat_core())
        return frozenset()

    def _solver(self, claim: Claim, hypotheses: Sequence[Hypothesis]) -> z3.Solver:
        solver = z3.Solver()
        solver.add(*self.premises, *(formula for _, formula in hypotheses), *claim.premises, negation(claim.goal))
        return solver

    def _all_about(self, brokers: Sequence[z3.ExprRef]) -> Iterator[Hypothesis]:
        for conjunct, instance in self.hypotheses:
            yield from ((conjunct.name, formula) for formula in self._about(conjunct, instance, brokers))

    def _about(self, conjunct: Conjunct, instance: Instance, brokers: Sequence[z3.ExprRef]) -> Iterator[z3.BoolRef]:
        """A conjunct for each choice of these brokers, and all offsets and epochs.

        Those are not the ones that a goal is about, even if they have one name and the brokers were found through them.
        """
        any_number = [z3.Int(f"any {number}") for number in conjunct.variables[1]]
        for chosen in product(brokers, repeat=len(conjunct.brokers)):
            key = (conjunct.name, tuple(broker.get_id() for broker in chosen))
            if key not in self.instantiated:
                body = z3.substitute(instance.body, *zip(instance.variables, (*chosen, *any_number), strict=True))
                self.instantiated[key] = (z3.ForAll(any_number, body) if any_number else body, chosen)
            yield self.instantiated[key][0]

    def _spoken_of(self, numbers: Sequence[z3.ExprRef], brokers: Sequence[z3.ExprRef]) -> Iterator[z3.ExprRef]:
        """Who is said to be a broker by conjuncts about one of these offsets or epochs, and about one of these brokers.

        Where none are given, by conjuncts that are about none.
        """
        for conjunct, instance in self.hypotheses:
            if (len(conjunct.brokers), len(conjunct.numbers)) != (min(len(brokers), 1), min(len(numbers), 1)):
                continue
            fitting = ([number for number in numbers if self.kinds[str(number)] == kind] for kind in conjunct.kinds)
            for chosen in product(*(brokers for _ in conjunct.brokers), *fitting):
                yield from _brokers_in(z3.substitute(instance.body, *zip(instance.variables, chosen, strict=True)))


def _distinct(terms: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    return list({term.get_id(): term for term in terms}.values())


def _brokers(action: Action) -> list[Any]:
    arguments: list[Any] = list(action.args.values())
    return [argument for argument in arguments if any(argument is name for name in ANYONE.names)]


def _is_flat(instance: Instance) -> bool:
    """Whether a conjunct speaks of one broker's slots alone, so that no new broker comes up where it is made use of."""
    if len(instance.variables) != 1:
        return False
    (anyone,) = instance.variables
    asked = filter(_is_asked, parts_of(instance.body))
    return all(argument.eq(anyone) for term in asked for argument in term.children())


def _is_asked(term: z3.ExprRef) -> bool:
    return bool(z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED)


def _brokers_in(formula: z3.ExprRef) -> Iterator[z3.ExprRef]:
    """The terms that a formula says are brokers, other than those that are bound in it."""
    for term in parts_of(formula):
        if z3.is_app(term) and term.decl().eq(IS_BROKER) and not any(map(z3.is_var, parts_of(term))):
            yield term.arg(0)
