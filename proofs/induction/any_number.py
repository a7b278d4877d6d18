"""The obligations for any number of replicas at once.

Every conjunct is one formula about all brokers, and a goal is about brokers of which nothing is known.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import z3

from kspec.model_check.core.model import Action, Local
from kspec.proofs.induction.invariant import Conjunct, Instance, Theorem
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.anyone import ANOTHER, ANYONE, EVERY_OTHER, IS_OTHER, ONE, PREMISES, speaks_of_others
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.relation import as_formula
from kspec.proofs.symbolic.state import SymbolicState


class ObligationsForAnyNumber(Obligations):
    """The obligations of a theorem for any number of replicas."""

    def __init__(self, theorem: Theorem, settings: ProofSettings) -> None:
        super().__init__(theorem, settings)
        self.premises += PREMISES
        self._instantiated: dict[tuple[str, tuple[int, ...]], tuple[z3.BoolRef, Sequence[z3.ExprRef]]] = {}
        """Instances for some brokers, with the brokers: a term's id is unique only as long as the term is kept."""

    def all_brokers(self) -> Brokers:
        return ANYONE

    def guard(self, local: Local, state: SymbolicState, solver: z3.Solver | None) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """A guard as a formula. If it speaks of the brokers that do not act, it is asked for all of them."""
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
        """For actions that differ only in their brokers: the action of `ONE`, and `ANOTHER` if there are two brokers.

        These are any two brokers, so the action stands for all.
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
                solver.add(*self.about(conjunct, instance, [ONE.term, ANOTHER.term, EVERY_OTHER.term]))
        return solver

    def about(self, conjunct: Conjunct, instance: Instance, brokers: Sequence[z3.ExprRef]) -> Iterator[z3.BoolRef]:
        """A conjunct for each choice of these brokers, and all offsets and epochs.

        These offsets and epochs are not the goal's, even if they share a name and the brokers were found through the goal's.
        """
        any_number = [z3.Int(f"any {number}") for number in conjunct.variables[1]]
        for chosen in product(brokers, repeat=len(conjunct.brokers)):
            key = (conjunct.name, tuple(broker.get_id() for broker in chosen))
            if key not in self._instantiated:
                body = z3.substitute(instance.body, *zip(instance.variables, (*chosen, *any_number), strict=True))
                self._instantiated[key] = (z3.ForAll(any_number, body) if any_number else body, chosen)
            yield self._instantiated[key][0]


def _brokers(action: Action) -> list[Any]:
    arguments: list[Any] = list(action.args.values())
    return [argument for argument in arguments if any(argument is name for name in ANYONE.names)]
