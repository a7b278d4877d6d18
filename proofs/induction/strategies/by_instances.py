"""Proofs piece by piece, from finitely many instances of the invariant.

A claim is split into pieces (`proofs.induction.strategies.pieces`). Each piece is proved by Z3's own search if that finds a
proof at once, or else from instances of the invariant (`proofs.induction.strategies.instances`).
"""

from collections.abc import Iterator
from functools import cached_property

import z3

from kspec.proofs.effort import Effort
from kspec.proofs.induction.claims import INIT, Claim, Status
from kspec.proofs.induction.invariant import Conjunct, ReplicaView
from kspec.proofs.induction.obligations import Obligations, names_in
from kspec.proofs.induction.strategies.instances import Instances, Kinds
from kspec.proofs.induction.strategies.pieces import pieces
from kspec.proofs.induction.strategies.search import BySearch
from kspec.proofs.induction.strategies.strategy import OnFailure, Strategy, export
from kspec.proofs.symbolic.log import kinds_in_laws
from kspec.proofs.symbolic.state import kinds_of_arguments
from kspec.proofs.symbolic.terms import negation
from kspec.proofs.symbolic.values import Kind, number
from kspec.spec.values import Epoch, Offset

AT_FIRST = 400_000
"""The first limit of Z3's own search with a whole claim, or a piece, in Z3's units: a tenth of a second."""

BY_INSTANCES = 6_000_000
"""The limit of Z3 each time it gets instances: a few seconds."""

Formulas = tuple[z3.BoolRef, ...]
"""A piece of a claim: its premises, and its goal negated."""

Names = list[tuple[Kind, z3.ArithRef]]
"""The arguments of an action that stand for any number, with their kinds."""


class ByInstances(Strategy):
    """Z3 gets instances of the invariant for the numbers in a piece, and then for others, as long as it needs more."""

    def __init__(self, obligations: Obligations) -> None:
        super().__init__(obligations)
        self._exported = 0
        """The number of files that were written: an obligation has one for each outcome."""
        conjuncts = (*obligations.conjuncts, *obligations.theorem.consequences)
        self._about = {conjunct.name: _numbers_of(conjunct) for conjunct in conjuncts}
        variables = kinds_in_laws() | {str(variable): kind for about in self._about.values() for kind, variable in about}
        self.kinds = Kinds(variables, kinds_of_arguments(obligations.model, obligations.shapes))
        """The kinds of the numbers in formulas: an offset, an epoch, or another number."""
        closed = [instance.closed() for _, instance in obligations.hypotheses]
        view = obligations.view(obligations.before)
        assert isinstance(view, ReplicaView), f"{obligations.theorem.name} is not about replicas with logs"
        self._view = view
        self._hypotheses = Instances([*obligations.premises, *closed], self.kinds)
        self._whole = BySearch(obligations)
        """The strategy for claims about the start: they need no invariant."""

    @cached_property
    def _labelled(self) -> Instances:
        """The hypotheses, each under the name of its conjunct."""
        under = [(z3.Bool(conjunct.name), instance.closed()) for conjunct, instance in self.obligations.hypotheses]
        return Instances(self.obligations.premises, self.kinds, under)

    def begin(self, task: str) -> None:
        """Get ready for claims about the start, if the task is about these."""
        if task == INIT:
            self._whole.begin(task)

    def prove_claim(self, claim: Claim, on_failure: OnFailure) -> Status:
        """Try the whole claim, then each piece; at the first piece without a proof ask for a counterexample."""
        if claim.action == INIT:
            return self._whole.prove_claim(claim, on_failure)
        if self.settings.export is not None:
            self._export(claim)
        effort = self.effort()
        if z3.is_true(claim.goal) or self._searched(effort, (*claim.premises, negation(claim.goal))):
            return "proved"
        for formulas, names in self._pieces(claim):
            if not self._proves_piece(effort, self._hypotheses, claim, formulas, names):
                return "refuted" if self.settings.search and on_failure(claim) else "unknown"
        return "proved"

    def core_of(self, claim: Claim) -> frozenset[str]:
        """The core of one proof, piece by piece. Raises `ValueError` if there is no proof. The start rests on nothing."""
        if claim.action == INIT:
            return frozenset()
        found: set[str] = set()
        for formulas, names in self._pieces(claim):
            if self._proves_piece(self.effort(), self._labelled, claim, formulas, names):
                found |= self._labelled.core
            else:
                raise ValueError(f"no proof was found that {claim.action} keeps {claim.conjunct}")
        return frozenset(found)

    def _export(self, claim: Claim) -> None:
        solver = self.obligations.solver()
        solver.add(*claim.premises, negation(claim.goal))
        self._exported += 1
        export(self.settings, claim, solver, part=self._exported)

    def _pieces(self, claim: Claim) -> Iterator[tuple[Formulas, Names]]:
        """The formulas of each piece of a claim, its goal negated, with the arguments of the action."""
        action = self.obligations.actions.get(claim.action)
        names = [(name.kind, name.term) for name in (names_in(action) if action else [])]
        for premises, part in pieces(claim.goal, [term for _, term in names]):
            yield (*claim.premises, *premises, negation(part)), names

    def _proves_piece(self, effort: Effort, hypotheses: Instances, claim: Claim, formulas: Formulas, names: Names) -> bool:
        searched = self._searched(effort, formulas, hypotheses if hypotheses.labels else None)
        return searched or any(self._attempts(effort, hypotheses, claim, formulas, names))

    def _attempts(
        self, effort: Effort, hypotheses: Instances, claim: Claim, formulas: Formulas, names: Names
    ) -> Iterator[bool]:
        brokers = self.obligations.brokers.ids or ()
        logs = [self._view.log(broker) for broker in brokers]
        about = self._about.get(claim.conjunct, [])
        written_in = [(Epoch, log.epoch(term)) for kind, term in about if kind is Offset for log in logs]
        ends = [(Offset, z3.IntVal(0)), *((Offset, number(log.end_offset - 1)) for log in logs)]
        landmarks = [(kind, number(value)) for kind, value in self.obligations.theorem.landmarks(self._view)]
        core = [*about, *written_in, *names, *landmarks]
        return hypotheses.attempts(formulas, core, ends, effort, BY_INSTANCES)

    def _searched(self, effort: Effort, formulas: Formulas, labelled: Instances | None = None) -> bool:
        """Whether Z3's own search finds the contradiction soon; `labelled`: the labelled hypotheses, if there are labels."""
        solver = self.obligations.solver() if labelled is None else z3.Solver()
        solver.add(*formulas)
        if labelled is None:
            return bool(effort.part(AT_FIRST).ask(solver) == z3.unsat)
        solver.add(*labelled.ground, *(known.told(known.formula) for known in labelled.general))
        return labelled.contradicts(solver, effort.part(AT_FIRST))


def _numbers_of(conjunct: Conjunct) -> list[tuple[Kind, z3.ExprRef]]:
    """The offsets and epochs that a conjunct speaks of, with their kinds."""
    return list(zip(conjunct.kinds, conjunct.variables[1], strict=True))
