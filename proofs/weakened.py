"""A theorem by outcome of a protocol with one rule weakened: only what the rule makes different has to be looked at.

An obligation that is also one of the protocol as it is has been proved there. Of the others a counterexample is looked for
first, in one question for all conjuncts of an outcome: there the weakened rule usually breaks the induction.
"""

import time
from collections.abc import Iterator
from dataclasses import replace

import z3

from proofs.by_outcome import InductionByOutcome
from proofs.counterexample import EVERYTHING, SEARCH_S, SIZES, Counterexample, CounterexampleSearch
from proofs.induction import Claim
from proofs.invariant import Theorem
from proofs.settings import Settings
from proofs.symbolic import conjunction

Key = tuple[str, tuple[int, ...]]
"""A claim by its conjunct and the ids of its formulas, which are their own as long as those are kept."""


class WeakenedInduction(InductionByOutcome):
    """What a theorem by outcome has to show anew where one rule is weakened."""

    def __init__(self, theorem: Theorem, settings: Settings) -> None:
        super().__init__(theorem, settings)
        self.unweakened = InductionByOutcome(theorem, replace(settings, mutant=None, export=None))
        self.new: dict[str, list[Claim]] = {}
        self.search = CounterexampleSearch(self)

    def claims(self, task: str) -> Iterator[Claim]:
        """Those obligations of a task that the protocol does not have with the rule as it is."""
        if task not in self.new:
            own = list(self.unweakened.claims(task))
            known = set(map(_key, own))
            self.new[task] = [claim for claim in super().claims(task) if _key(claim) not in known]
        yield from self.new[task]

    def counterexample(self, task: str, seconds: float = SEARCH_S) -> Counterexample | None:
        """A small counterexample to what a task has to show anew, if one is found in that time."""
        end = time.perf_counter() + seconds
        outcomes = list(self._outcomes(task))
        for size in SIZES:
            for claim in outcomes:
                found = self.search.find(claim, end - time.perf_counter(), (size,))
                if found is not None:
                    return found
        return None

    def _outcomes(self, task: str) -> Iterator[Claim]:
        """All that is claimed of an outcome, as one claim."""
        together: dict[tuple[int, ...], list[Claim]] = {}
        for claim in self.claims(task):
            if not z3.is_true(claim.goal):
                together.setdefault(tuple(premise.get_id() for premise in claim.premises), []).append(claim)
        for claims in together.values():
            numbers = {str(number): number for claim in claims for number in claim.numbers}
            goal = conjunction([claim.goal for claim in claims])
            yield claims[0]._replace(conjunct=EVERYTHING, goal=goal, numbers=tuple(numbers.values()))


def _key(claim: Claim) -> Key:
    return claim.conjunct, tuple(formula.get_id() for formula in (*claim.premises, claim.goal))
