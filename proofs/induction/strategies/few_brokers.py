"""Proofs for any number of replicas from what the invariant says of few brokers.

A proof does not need the invariant of all brokers, but of a few: those that act, those that the goal is about, and those
that the controller announced as leaders of the epochs in question. Z3 gets the conjuncts for these, and for all offsets and
epochs. That is less than the invariant says, so what follows from it follows from the invariant.
"""

from collections.abc import Iterator, Sequence
from itertools import product

import z3

from kspec.proofs.induction.any_number import ObligationsForAnyNumber
from kspec.proofs.induction.claims import INIT, PROPERTIES, Claim, Status
from kspec.proofs.induction.invariant import Instance
from kspec.proofs.induction.strategies.strategy import OnFailure, Strategy, export
from kspec.proofs.symbolic.anyone import ANOTHER, EVERY_OTHER, ONE
from kspec.proofs.symbolic.brokers import IS_BROKER
from kspec.proofs.symbolic.terms import negation, parts_of

FIRST_ATTEMPTS = 2_000_000
"""The limit of Z3 in each of the first attempts at a proof, in its own units: less than a second. A proof takes at
most half as much. Each later round of attempts gets twice as much as the one before, as long as any effort is left."""

MOST_ATTEMPTS = 8
"""The most rounds of attempts: Z3 may give up before it has used up its effort."""

Hypothesis = tuple[str, z3.BoolRef]
"""The name of a conjunct, and the formula of what it says about some brokers."""


class ByFewBrokers(Strategy):
    """Z3 gets to know the conjuncts about few brokers, then about more, and then about all."""

    obligations: ObligationsForAnyNumber

    def __init__(self, obligations: ObligationsForAnyNumber) -> None:
        super().__init__(obligations)
        self._kinds = {
            str(number): kind
            for conjunct in obligations.conjuncts
            for number, kind in zip(conjunct.variables[1], conjunct.kinds, strict=True)
        }
        """For each number that goals speak of: whether it is an offset or an epoch."""

    def prove_claim(self, claim: Claim, on_failure: OnFailure) -> Status:
        """Try with the conjuncts about few brokers and about more, then search for a counterexample, then try for longer."""
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

    def core_of(self, claim: Claim) -> frozenset[str]:
        """The core of one proof, from the first choice of brokers that is enough; empty if no proof is found."""
        for hypotheses in self._choices(claim):
            solver = self._solver(claim, [])
            solver.add(*(z3.Implies(z3.Bool(name), formula) for name, formula in hypotheses))
            names = (z3.Bool(conjunct.name) for conjunct in self.obligations.conjuncts)
            if self.effort().ask(solver, *names) == z3.unsat:
                return frozenset(str(name) for name in solver.unsat_core())
        return frozenset()

    def _attempts(self, claim: Claim) -> Iterator[tuple[int, z3.Solver]]:
        """Solvers that know different parts of the invariant, each with the number of earlier rounds with less effort."""
        for attempt in range(MOST_ATTEMPTS):
            for hypotheses in self._choices(claim):
                solver = self._solver(claim, hypotheses)
                solver.set("random_seed", self.settings.seed + 1000 * attempt)
                yield attempt, solver

    def _choices(self, claim: Claim) -> Iterator[list[Hypothesis]]:
        """Parts of the invariant that may be enough for a claim: what it says of few brokers, of more, and of all."""
        if claim.action == INIT:
            yield []
            return
        known_of_all = self.obligations.hypotheses
        flat = [(conjunct.name, instance.closed()) for conjunct, instance in known_of_all if _is_flat(instance)]
        known = [*claim.brokers, ONE.term, ANOTHER.term]
        known += [EVERY_OTHER.term] if claim.action == PROPERTIES else []
        named = _distinct([*known, *self._spoken_of(claim.numbers, [])])
        in_office = _distinct([*known, *self._spoken_of([], [])])
        everyone = _distinct([*named, *in_office, *self._spoken_of(claim.numbers, known)])
        for brokers in (named, in_office, everyone):
            yield [*flat, *self._all_about(brokers)]
        yield [(conjunct.name, instance.closed()) for conjunct, instance in known_of_all]

    def _solver(self, claim: Claim, hypotheses: Sequence[Hypothesis]) -> z3.Solver:
        solver = z3.Solver()
        known = (formula for _, formula in hypotheses)
        solver.add(*self.obligations.premises, *known, *claim.premises, negation(claim.goal))
        return solver

    def _all_about(self, brokers: Sequence[z3.ExprRef]) -> Iterator[Hypothesis]:
        for conjunct, instance in self.obligations.hypotheses:
            about = self.obligations.about(conjunct, instance, brokers)
            yield from ((conjunct.name, formula) for formula in about)

    def _spoken_of(self, numbers: Sequence[z3.ExprRef], brokers: Sequence[z3.ExprRef]) -> Iterator[z3.ExprRef]:
        """The terms that are brokers according to conjuncts about one of these offsets or epochs, and one of these brokers.

        If no offsets and epochs, or no brokers, are given, the conjuncts are those about none.
        """
        for conjunct, instance in self.obligations.hypotheses:
            if (len(conjunct.brokers), len(conjunct.numbers)) != (min(len(brokers), 1), min(len(numbers), 1)):
                continue
            fitting = ([number for number in numbers if self._kinds[str(number)] == kind] for kind in conjunct.kinds)
            for chosen in product(*(brokers for _ in conjunct.brokers), *fitting):
                yield from _brokers_in(z3.substitute(instance.body, *zip(instance.variables, chosen, strict=True)))


def _distinct(terms: Sequence[z3.ExprRef]) -> list[z3.ExprRef]:
    return list({term.get_id(): term for term in terms}.values())


def _is_flat(instance: Instance) -> bool:
    """Whether a conjunct speaks of one broker's slots alone, so that using it brings in no new broker."""
    if len(instance.variables) != 1:
        return False
    (anyone,) = instance.variables
    asked = filter(_is_asked, parts_of(instance.body))
    return all(argument.eq(anyone) for term in asked for argument in term.children())


def _is_asked(term: z3.ExprRef) -> bool:
    return bool(z3.is_app(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED)


def _brokers_in(formula: z3.ExprRef) -> Iterator[z3.ExprRef]:
    """The terms that are brokers according to a formula, other than those that are bound in it."""
    for term in parts_of(formula):
        if z3.is_app(term) and term.decl().eq(IS_BROKER) and not any(map(z3.is_var, parts_of(term))):
            yield term.arg(0)
