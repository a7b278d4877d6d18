"""Induction one outcome at a time, for actions with many ways through the rules.

All ways that write the same values are one outcome. What has to be shown of each is taken apart (`proofs.pieces`), and each
piece is proved by Z3's own search, if that finds a proof at once, or else from instances of the invariant
(`proofs.instances`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import z3

from model_check.core.model import Action
from proofs.effort import Effort
from proofs.induction.induction import INIT, PROPERTIES, Claim, Induction, Obligation, Status, export, gravest, names_in
from proofs.induction.instances import Instances, Kinds
from proofs.induction.invariant import Conjunct, ReplicaView, Theorem
from proofs.induction.pieces import pieces
from proofs.settings import ProofSettings
from proofs.symbolic.log import in_order, kinds_in_laws
from proofs.symbolic.relation import SymbolicStep, outcomes
from proofs.symbolic.state import kinds_of_arguments
from proofs.symbolic.values import Kind, conjunction, negation, number
from spec.values import Epoch, Offset

AT_FIRST = 400_000
"""How much Z3 may do with a whole claim, or a piece, by its own search first, in its own units: a tenth of a second."""

BY_INSTANCES = 6_000_000
"""How much it may do with instances each time: a few seconds."""

IN_ORDER = "LogsInOrder"
"""What the laws of the log algebra presume: in a log, epochs never go back."""


class InductionByOutcome(Induction):
    """A theorem that is proved one outcome at a time."""

    def __init__(self, theorem: Theorem, settings: ProofSettings) -> None:
        super().__init__(theorem, settings)
        self.exported = 0
        """How many files were written: an obligation has one for each outcome."""
        self.about = {conjunct.name: self._about(conjunct) for conjunct in (*self.conjuncts, *theorem.consequences)}
        variables = kinds_in_laws() | {str(variable): kind for about in self.about.values() for kind, variable in about}
        self.kinds = Kinds(variables, kinds_of_arguments(self.model, self.shapes))
        closed = [instance.closed() for _, instance in self.hypotheses]
        view = theorem.view(self.before.at, self.brokers)
        assert isinstance(view, ReplicaView), f"{theorem.name} is not about replicas with logs"
        self._view = view
        self.orders = [in_order(view.log(broker)) for broker in self.brokers.ids or ()]
        """That epochs never go back along the brokers' logs: a premise of laws, and an obligation of its own."""
        self.instances_of = Instances([*self.premises, *closed], self.kinds)

    def acting(self, actions: Sequence[Action]) -> Sequence[Action]:
        """Of actions that are the same but for brokers' names, one: brokers are interchangeable."""
        assert self.model.interchangeable, f"the brokers of {self.model.name} are not interchangeable"
        kept: dict[tuple[Any, ...], Action] = {}
        for action in actions:
            brokers = [value for value in action.args.values() if isinstance(value, int)]
            alike = tuple(brokers.index(broker) for broker in brokers)
            kept.setdefault((action.name, *action.args, alike), action)
        return list(kept.values())

    def _about(self, conjunct: Conjunct) -> list[tuple[Kind, z3.ExprRef]]:
        return list(zip(conjunct.kinds, conjunct.variables[1], strict=True))

    def outcomes(self, label: str, action: Action) -> list[SymbolicStep]:
        """The outcomes of an action that have to be looked at."""
        return outcomes(action, self.before, self.pruning(action), self.guard)

    def action_claims(self, label: str, action: Action) -> Iterator[Claim]:
        """That an action keeps each conjunct, whatever its outcome."""
        taken = self.outcomes(label, action)
        known = [(order, z3.BoolVal(True)) for order in self.orders]
        for conjunct in self.conjuncts:
            for step in taken:
                changed = [
                    instance.body
                    for instance in self.instances(conjunct, step.after)
                    if not instance.body.eq(self.known[conjunct.name, instance.brokers])
                ]
                goal, about = conjunction(changed), conjunct.variables
                premises = step.enabled, z3.simplify(z3.substitute(step.facts, *known))
                yield Claim(label, conjunct.name, premises, goal, step.paths, *about)

    def property_claims(self) -> Iterator[Claim]:
        yield Claim(PROPERTIES, IN_ORDER, (), conjunction(self.orders), 1)
        yield from super().property_claims()

    def prove(
        self, task: str, on_failure: Callable[[Claim], bool] = lambda claim: False, only: str | None = None
    ) -> list[Obligation]:
        """Ask Z3 for each obligation; one is proved if it is for every outcome."""
        single = super().prove(task, on_failure, only)
        joined: dict[tuple[str, str], Obligation] = {}
        for found in single:
            key = (found.action, found.conjunct)
            before = joined.get(key)
            joined[key] = found if before is None else _both(before, found)
        return list(joined.values())

    def prove_claim(self, solver: z3.Solver, claim: Claim, on_failure: Callable[[Claim], bool]) -> Status:
        if claim.action == INIT:
            return super().prove_claim(solver, claim, on_failure)
        if self.settings.export is not None:
            solver.push()
            solver.add(*claim.premises, negation(claim.goal))
            self.exported += 1
            export(self.settings, claim, solver, part=self.exported)
            solver.pop()
        effort = self.effort()
        if z3.is_true(claim.goal) or self._searched(effort, (*claim.premises, negation(claim.goal))):
            return "proved"
        for formulas, names in self._pieces(claim):
            if not self._proves_piece(effort, self.instances_of, claim, formulas, names):
                return "refuted" if self.settings.search and on_failure(claim) else "unknown"
        return "proved"

    def _pieces(self, claim: Claim) -> Iterator[tuple[tuple[z3.BoolRef, ...], list[tuple[Kind, z3.ArithRef]]]]:
        """The formulas of each piece of a claim, its goal negated, with the arguments of the action."""
        action = self.actions.get(claim.action)
        names = [(name.kind, name.term) for name in (names_in(action) if action else [])]
        for premises, part in pieces(claim.goal, [term for _, term in names]):
            yield (*claim.premises, *premises, negation(part)), names

    def cores(self, task: str) -> dict[str, frozenset[str]]:
        """For each conjunct: the conjuncts on which the proofs of all outcomes rest."""
        found: dict[str, frozenset[str]] = {}
        for claim in self.claims(task):
            found[claim.conjunct] = found.get(claim.conjunct, frozenset()) | self.core_of(claim)
        return found

    def core_of(self, claim: Claim) -> frozenset[str]:
        """The conjuncts on which a proof of a claim rests, piece by piece."""
        if claim.action == INIT:
            return frozenset()
        found: set[str] = set()
        for formulas, names in self._pieces(claim):
            if self._proves_piece(self.effort(), self.labelled, claim, formulas, names):
                found |= self.labelled.core
            else:
                raise ValueError(f"no proof was found that {claim.action} keeps {claim.conjunct}")
        return frozenset(found)

    @cached_property
    def labelled(self) -> Instances:
        """The hypotheses, each under the name of its conjunct."""
        under = [(z3.Bool(conjunct.name), instance.closed()) for conjunct, instance in self.hypotheses]
        return Instances(self.premises, self.kinds, under)

    def _proves_piece(
        self,
        effort: Effort,
        hypotheses: Instances,
        claim: Claim,
        formulas: tuple[z3.BoolRef, ...],
        names: list[tuple[Kind, z3.ArithRef]],
    ) -> bool:
        searched = self._searched(effort, formulas, hypotheses if hypotheses.labels else None)
        return searched or any(self._by_instances(effort, hypotheses, claim, formulas, names))

    def _by_instances(
        self,
        effort: Effort,
        hypotheses: Instances,
        claim: Claim,
        formulas: tuple[z3.BoolRef, ...],
        names: list[tuple[Kind, z3.ArithRef]],
    ) -> Iterator[bool]:
        brokers = self.brokers.ids or ()
        logs = [self._view.log(broker) for broker in brokers]
        about = self.about.get(claim.conjunct, [])
        written_in = [(Epoch, log.epoch(term)) for kind, term in about if kind is Offset for log in logs]
        ends = [(Offset, z3.IntVal(0)), *((Offset, number(log.end_offset - 1)) for log in logs)]
        landmarks = [(kind, number(value)) for kind, value in self.theorem.landmarks(self._view)]
        core = [*about, *written_in, *names, *landmarks]
        return hypotheses.attempts(formulas, core, ends, effort, BY_INSTANCES)

    def _searched(self, effort: Effort, formulas: tuple[z3.BoolRef, ...], labelled: Instances | None = None) -> bool:
        """Whether Z3's own search finds the contradiction soon; `labelled`: what it is told under labels, if it is."""
        solver = self.solver() if labelled is None else z3.Solver()
        solver.add(*formulas)
        if labelled is None:
            return bool(effort.part(AT_FIRST).ask(solver) == z3.unsat)
        solver.add(*labelled.ground, *(known.told(known.formula) for known in labelled.general))
        return labelled.contradicts(solver, effort.part(AT_FIRST))


def _both(one: Obligation, other: Obligation) -> Obligation:
    """Two parts of one obligation."""
    status = gravest([one.status, other.status])
    return one._replace(status=status, seconds=one.seconds + other.seconds, paths=one.paths + other.paths)
