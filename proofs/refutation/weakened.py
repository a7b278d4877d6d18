"""A theorem by outcome about a protocol with one rule weakened: only what the weakened rule changes has to be tried.

An action that never calls the rule is unchanged. An outcome that an action also has with the unweakened rule has been proved
there. For the other outcomes, the search for a counterexample comes first, in one question for all conjuncts: the weakened
rule usually breaks the induction there.
"""

import cProfile
import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain, product
from types import CodeType

import z3

from kspec.model_check.core.model import Action
from kspec.proofs.induction.by_outcome import ObligationsByOutcome
from kspec.proofs.induction.claims import INIT, PROPERTIES, Claim
from kspec.proofs.induction.invariant import Theorem
from kspec.proofs.refutation.counterexample import EVERYTHING, SIZES, Counterexample, CounterexampleSearch
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.relation import SymbolicStep
from kspec.proofs.symbolic.terms import conjunction

SLICES = (1_500_000, 6_000_000)
"""The limit of Z3 to find a counterexample to one claim, in each round; in its own units."""

SEARCH_IN_TASK = 150_000_000
"""The limit of Z3 to find a counterexample to any claim of a task."""


class TheoremOutcomes:
    """The outcomes of a theorem's actions, with every rule as it is."""

    def __init__(self, theorem: Theorem, settings: ProofSettings) -> None:
        self.obligations = ObligationsByOutcome(theorem, replace(settings, mutant=None, export=None))
        self._outcomes: dict[str, list[SymbolicStep]] = {}
        self._called: dict[str, set[CodeType]] = {}
        """The functions that were called to find the outcomes of an action."""

    def outcomes(self, label: str) -> list[SymbolicStep]:
        """The outcomes of an action. They are kept because a term's id is unique only as long as the term is kept."""
        if label not in self._outcomes:
            with calls() as self._called[label]:
                self._outcomes[label] = self.obligations.outcomes(label, self.obligations.actions[label])
        return self._outcomes[label]

    def asks(self, label: str, mutant: str | None) -> bool:
        """Whether an action calls the rule that a mutant weakens, in any outcome; without a mutant it may call any rule."""
        rule = self.obligations.theorem.mutants[mutant] if mutant is not None else None
        code = getattr(rule, "__code__", None)
        self.outcomes(label)
        return code is None or code in self._called[label]


@contextmanager
def calls() -> Iterator[set[CodeType]]:
    """Record every Python function that is called. The set is complete at the end."""
    called: set[CodeType] = set()
    before, profile = sys.getprofile(), cProfile.Profile(subcalls=False, builtins=False)
    profile.enable()
    try:
        yield called
    finally:
        profile.disable()
        sys.setprofile(before)
        called.update(entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType))


class WeakenedObligations(ObligationsByOutcome):
    """The new obligations of a theorem by outcome if one rule is weakened."""

    def __init__(self, theorem: Theorem, settings: ProofSettings, unweakened: TheoremOutcomes | None = None) -> None:
        super().__init__(theorem, settings)
        self.unweakened = unweakened or TheoremOutcomes(theorem, settings)
        self._new: dict[str, list[SymbolicStep]] = {}

    def outcomes(self, label: str, action: Action) -> list[SymbolicStep]:
        """The outcomes that the action has only with the weakened rule."""
        if label not in self._new and not self.unweakened.asks(label, self.settings.mutant):
            self._new[label] = []
        if label not in self._new:
            taken = super().outcomes(label, action)
            known = set(map(self._as_key, self.unweakened.outcomes(label)))
            self._new[label] = [step for step in taken if self._as_key(step) not in known]
        return self._new[label]

    def differs(self, task: str) -> bool:
        """Whether a task has new obligations. The start, and what follows from the invariant, do not depend on rules."""
        if task in self.actions:
            return bool(self.outcomes(task, self.actions[task]))
        return task not in (INIT, PROPERTIES)

    def _as_key(self, step: SymbolicStep) -> Hashable:
        written = {place: self.shapes[place[0]].outline(value) for place, value in step.writes.items()}
        return step.enabled.get_id(), step.facts.get_id(), frozenset(written.items())


class WeakenedSearch(CounterexampleSearch):
    """Searches for counterexamples to obligations by outcome, task by task."""

    def in_task(
        self, task: str, units: int = SEARCH_IN_TASK, sizes: Sequence[int] = SIZES, simplify: bool = True
    ) -> Counterexample | None:
        """A small counterexample to a new obligation of a task, if Z3 finds one within `units`.

        Some outcomes are decided at once, and others hardly ever. So each first gets a little effort, and then more. In the
        end Z3 is asked conjunct by conjunct.
        """
        everything = list(self._everything(task))
        single = [claim for claim in self.obligations.claims(task) if not z3.is_true(claim.goal)]
        effort = self.effort(units)
        for each, size, claim in chain(product(SLICES, sizes, everything), product(SLICES, sizes, single)):
            found = self.find(claim, effort.part(each), (size,), simplify)
            if found is not None:
                return found
        return None

    def _everything(self, task: str) -> Iterator[Claim]:
        """All claims about an outcome, as one claim."""
        together: dict[tuple[int, ...], list[Claim]] = {}
        for claim in self.obligations.claims(task):
            if not z3.is_true(claim.goal):
                together.setdefault(tuple(premise.get_id() for premise in claim.premises), []).append(claim)
        for claims in together.values():
            numbers = {str(number): number for claim in claims for number in claim.numbers}
            goal = conjunction([claim.goal for claim in claims])
            yield claims[0]._replace(conjunct=EVERYTHING, goal=goal, numbers=tuple(numbers.values()))
