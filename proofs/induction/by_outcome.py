"""The obligations one outcome of an action at a time, for actions with many ways through the rules.

All ways that write the same values are one outcome.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import z3

from kspec.model_check.core.model import Action
from kspec.proofs.induction.claims import PROPERTIES, Claim
from kspec.proofs.induction.invariant import ReplicaView
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.symbolic.log import in_order
from kspec.proofs.symbolic.relation import SymbolicStep, outcomes
from kspec.proofs.symbolic.terms import conjunction

IN_ORDER = "LogsInOrder"
"""The premise of the laws of the log algebra: in a log, epochs never go back."""


class ObligationsByOutcome(Obligations):
    """The obligations of a theorem, one outcome at a time."""

    def acting(self, actions: Sequence[Action]) -> Sequence[Action]:
        """One of the actions that differ only in their brokers' names: brokers are interchangeable."""
        assert self.model.interchangeable, f"the brokers of {self.model.name} are not interchangeable"
        kept: dict[tuple[Any, ...], Action] = {}
        for action in actions:
            brokers = [value for value in action.args.values() if isinstance(value, int)]
            alike = tuple(brokers.index(broker) for broker in brokers)
            kept.setdefault((action.name, *action.args, alike), action)
        return list(kept.values())

    @cached_property
    def orders(self) -> list[z3.BoolRef]:
        """States that epochs never go back along the brokers' logs: a premise of laws, and an obligation of its own."""
        view = self.view(self.before)
        assert isinstance(view, ReplicaView), f"{self.theorem.name} is not about replicas with logs"
        return [in_order(view.log(broker)) for broker in self.brokers.ids or ()]

    def outcomes(self, label: str, action: Action) -> list[SymbolicStep]:
        """The outcomes of an action that have obligations."""
        return outcomes(action, self.before, self.pruning(action), self.guard)

    def facts(self, taken: SymbolicStep) -> z3.BoolRef:
        """The laws, without their premise that logs are in order."""
        return z3.simplify(z3.substitute(taken.facts, *((order, z3.BoolVal(True)) for order in self.orders)))

    def property_claims(self) -> Iterator[Claim]:
        yield Claim(PROPERTIES, IN_ORDER, (), conjunction(self.orders), 1)
        yield from super().property_claims()
