"""Proofs by Z3's own search, from the whole invariant."""

import z3

from kspec.proofs.induction.claims import INIT, Claim, Status
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.induction.strategies.strategy import OnFailure, Strategy, export
from kspec.proofs.symbolic.terms import negation

ATTEMPTS = (5_000_000, 5_000_000, 10_000_000)
"""The limit of Z3 in each of the first attempts at a proof, in its own units.

The last attempt gets what is left. The search for a counterexample comes before the last attempt.
"""


class BySearch(Strategy):
    """Z3 gets the whole invariant, and searches. One solver gets all claims of a task."""

    def __init__(self, obligations: Obligations) -> None:
        super().__init__(obligations)
        self._solver = z3.Solver()
        """It knows the invariant during a task, unless the task is about the start."""

    def begin(self, task: str) -> None:
        """Start with a new solver: what Z3 learned in the last task is forgotten."""
        self._solver = z3.Solver() if task == INIT else self.obligations.solver()

    def prove_claim(self, claim: Claim, on_failure: OnFailure) -> Status:
        """Ask for a proof, with other seeds if needed; then for a counterexample; then for a proof again."""
        solver = self._solver
        solver.push()
        try:
            solver.add(*claim.premises, negation(claim.goal))
            if self.settings.export is not None:
                export(self.settings, claim, solver)
            return "proved" if z3.is_true(claim.goal) else self._answer(solver, claim, on_failure)
        finally:
            solver.pop()

    def _answer(self, solver: z3.Solver, claim: Claim, on_failure: OnFailure) -> Status:
        """One way of searching finds a proof soon, or not at all. Then Z3 starts anew with another seed.

        After a few attempts comes the search for a counterexample. Only then is the rest of the effort spent.
        """
        effort, asked = self.effort(), solver
        for attempt, units in enumerate(ATTEMPTS, start=1):
            if effort.part(units).ask(asked) == z3.unsat:
                return "proved"
            asked = self._fresh_solver(solver, attempt)
            if effort.left <= 0:
                break
        if self.settings.search and on_failure(claim):
            return "refuted"
        return "proved" if effort.ask(asked) == z3.unsat else "unknown"

    def _fresh_solver(self, solver: z3.Solver, attempt: int) -> z3.Solver:
        fresh = z3.Solver()
        fresh.set("random_seed", self.settings.seed + 1000 * attempt)
        fresh.add(solver.assertions())
        return fresh

    def core_of(self, claim: Claim) -> frozenset[str]:
        """The core of one proof, with conjuncts labelled by name; empty for the start, and if no proof is found."""
        if z3.is_true(claim.goal):
            return frozenset()
        solver = z3.Solver()
        solver.add(*self.obligations.premises, *claim.premises, negation(claim.goal))
        names = {conjunct.name: z3.Bool(conjunct.name) for conjunct in self.obligations.conjuncts}
        for conjunct, instance in self.obligations.hypotheses:
            solver.add(z3.Implies(names[conjunct.name], instance.closed()))
        if claim.action == INIT or self.effort().ask(solver, *names.values()) != z3.unsat:
            return frozenset()
        return frozenset(str(name) for name in solver.unsat_core())
