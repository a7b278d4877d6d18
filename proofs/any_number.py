"""Induction for any number of replicas at once.

Every conjunct is one formula about all brokers, and a goal is about brokers of which nothing is known. A proof does not need
the invariant of all brokers, but of a few: those that act, those that the goal is about, and those that the controller
announced as leaders of the epochs in question. Z3 gets the conjuncts for these, and for all offsets and epochs. That is less
than the invariant says, so what follows from it follows from the invariant.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import count, product
from typing import Any

import z3

from model_check.model import Action, Local
from proofs.anyone import ANOTHER, ANYONE, EVERY_OTHER, IS_OTHER, ONE, PREMISES, speaks_of_others
from proofs.induction import INIT, PROPERTIES, Claim, Induction, Status, export
from proofs.invariant import Conjunct, Instance, Theorem
from proofs.relation import as_formula
from proofs.settings import Settings
from proofs.state import SymbolicState
from proofs.symbolic import IS_BROKER, Brokers, negation, parts_of

FIRST_ATTEMPTS_S = 1.0
"""How long each of the first attempts at a proof takes."""


class InductionOverAnyNumber(Induction):
    """A theorem for any number of replicas."""

    def __init__(self, theorem: Theorem, settings: Settings) -> None:
        super().__init__(theorem, settings)
        self.premises += PREMISES
        self.instantiated: dict[tuple[str, tuple[int, ...]], tuple[z3.BoolRef, Sequence[z3.ExprRef]]] = {}

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

    def _prove_claim(self, solver: z3.Solver, claim: Claim, on_failure: Callable[[Claim], bool]) -> Status:
        """Try with the conjuncts about few brokers and about more, look for a counterexample, and try for longer."""
        status: Status = "proved" if z3.is_true(claim.goal) else "unknown"
        end = time.perf_counter() + self.settings.timeout
        searched = not self.has_time_for_search
        for seconds, asked in self._attempts(claim):
            if status == "proved" or asked.check() == z3.unsat:
                status = "proved"
                break
            late = time.perf_counter() >= end
            if (late or seconds > FIRST_ATTEMPTS_S) and not searched:
                searched = True
                if on_failure(claim):
                    status = "refuted"
                    break
            if late:
                break
        if self.settings.export is not None:
            export(self.settings, claim, asked)
        return status

    def _attempts(self, claim: Claim) -> Iterator[tuple[float, z3.Solver]]:
        """Solvers that know less and more of the invariant, and for how long they look: ever longer."""
        for attempt in count():
            seconds = min(FIRST_ATTEMPTS_S * 2**attempt, self.settings.timeout)
            for hypotheses in self._choices(claim):
                yield seconds, self._solver(claim, hypotheses, seconds, attempt)

    def _choices(self, claim: Claim) -> Iterator[list[z3.BoolRef]]:
        """What of the invariant may be enough for a claim: what it says of few brokers, of more, and of all."""
        if claim.action == INIT:
            yield []
            return
        flat = [instance.closed() for _, instance in self.hypotheses if _is_flat(instance)]
        known = [*claim.brokers, ONE.term, ANOTHER.term]
        known += [EVERY_OTHER.term] if claim.action == PROPERTIES else []
        for brokers in ([], known):
            spoken_of = self._spoken_of(claim, brokers)
            known = known + [broker for broker in spoken_of if not any(map(broker.eq, known))]
            yield [*flat, *self._all_about(known)]
        yield [instance.closed() for _, instance in self.hypotheses]

    def _solver(self, claim: Claim, hypotheses: Sequence[z3.BoolRef], seconds: float, attempt: int) -> z3.Solver:
        solver = z3.Solver()
        solver.set("timeout", max(int(seconds * 1000), 1))
        solver.set("random_seed", self.settings.seed + 1000 * attempt)
        solver.add(*self.premises, *hypotheses, *claim.premises, negation(claim.goal))
        return solver

    def _all_about(self, brokers: Sequence[z3.ExprRef]) -> Iterator[z3.BoolRef]:
        for conjunct, instance in self.hypotheses:
            yield from self._about(conjunct, instance, brokers)

    def _about(self, conjunct: Conjunct, instance: Instance, brokers: Sequence[z3.ExprRef]) -> Iterator[z3.BoolRef]:
        """A conjunct for each choice of these brokers, and all offsets and epochs."""
        anyone, others = instance.variables[: len(conjunct.brokers)], instance.variables[len(conjunct.brokers) :]
        for chosen in product(brokers, repeat=len(anyone)):
            key = (conjunct.name, tuple(broker.get_id() for broker in chosen))
            if key not in self.instantiated:
                body = z3.substitute(instance.body, *zip(anyone, chosen, strict=True)) if anyone else instance.body
                self.instantiated[key] = (z3.ForAll(list(others), body) if others else body, chosen)
            yield self.instantiated[key][0]

    def _spoken_of(self, claim: Claim, brokers: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
        """Who else is said to be a broker by what the invariant says of the claim's offsets or epochs and one of `brokers`.

        Where there are none of these, what it says of no broker in particular is looked at.
        """
        found: dict[int, z3.ExprRef] = {}
        for conjunct, instance in self.hypotheses:
            if len(conjunct.brokers) != min(len(brokers), 1) or len(conjunct.kinds) != 1:
                continue
            numbers = [number for number in claim.numbers if self.kinds[str(number)] == conjunct.kinds[0]]
            for chosen in product(*(brokers for _ in conjunct.brokers), numbers):
                said = z3.substitute(instance.body, *zip(instance.variables, chosen, strict=True))
                found |= {term.get_id(): term for term in _brokers_in(said)}
        return list(found.values())


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
