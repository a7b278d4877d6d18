"""The search for invariants: finds the candidates that hold and that induction keeps.

A wrong candidate is cheap to find if it fails in a reachable state. So every candidate is first tried on all states of a
bounded model. Only those that hold go to Z3, which drops those that some action does not keep, until the rest keep each
other. A dropped candidate may still be true, and need a stronger companion: its counterexample shows which.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from kspec.model_check.core.exploration import Limits, uninterrupted
from kspec.model_check.core.model import Property, when
from kspec.model_check.engines.explorer import explorer
from kspec.proofs.induction.invariant import Conjunct, Theorem, holds_in
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.induction.proof import Proof
from kspec.proofs.induction.strategies.search import BySearch
from kspec.proofs.refutation.counterexample import Counterexample, CounterexampleSearch, explored_view
from kspec.proofs.settings import ProofSettings

EFFORT = 10_000_000
"""The limit of Z3 to prove that a candidate is kept, in its own units."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The results for the candidates, by name."""

    inductive: tuple[str, ...]
    """The candidates that hold at the start and that every action keeps."""
    false: tuple[str, ...]
    """The candidates that fail in some reachable state of the bounded model."""
    not_kept: dict[str, Counterexample | None]
    """The candidates that some action does not keep, with a counterexample if there is a small one."""
    states: int
    """The number of reachable states that the candidates were tried on."""


def search(theorem: Theorem, candidates: Sequence[Conjunct], replicas: int = 2, effort: int = EFFORT) -> Candidates:
    """The largest part of the candidates that induction keeps, without any other conjuncts.

    `effort`: how much Z3 may do for each obligation, in its own units.
    """
    left, states = _hold_in_reachable_states(theorem, candidates, replicas)
    false = tuple(candidate.name for candidate in candidates if candidate not in left)
    not_kept: dict[str, Counterexample | None] = {}
    while True:
        dropped = _not_kept(replace(theorem, conjuncts=tuple(left), properties=(), lemmas=()), replicas, effort)
        if not dropped:
            return Candidates(tuple(candidate.name for candidate in left), false, not_kept, states)
        not_kept |= dropped
        left = [candidate for candidate in left if candidate.name not in dropped]


def _hold_in_reachable_states(theorem: Theorem, candidates: Sequence[Conjunct], replicas: int) -> tuple[list[Conjunct], int]:
    """The candidates that hold in every state of the bounded model that has the theorem's witness."""
    bounds = theorem.witness.bounds
    model = theorem.bounded(replicas, *bounds)
    left, most = list(candidates), max(bounds) + 1

    def look(*state: Any) -> bool:
        view = explored_view(theorem, model, state, replicas)
        left[:] = [each for each in left if holds_in(each, view, range(1, replicas + 1), most, most)]
        return True

    looked = Property("Looked", "always", (when(look, *model.slots),), "every state is looked at")
    result = uninterrupted(explorer("reference")(model, [looked], Limits(False)))
    return left, result.distinct_states


def _not_kept(theorem: Theorem, replicas: int, effort: int) -> dict[str, Counterexample | None]:
    """The conjuncts that do not hold at the start, or that some action does not keep."""
    obligations = Obligations(theorem, ProofSettings(theorem.name, replicas, effort=effort))
    proof, searcher = Proof(obligations, BySearch(obligations)), CounterexampleSearch(obligations)
    dropped: dict[str, Counterexample | None] = {}
    for task in obligations.tasks():
        failed = {each.conjunct for each in proof.prove(task) if each.status != "proved" and each.conjunct not in dropped}
        for claim in obligations.claims(task) if failed else ():
            if claim.conjunct in failed:
                dropped[claim.conjunct] = searcher.find(claim)
    return dropped
