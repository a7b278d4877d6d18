"""A proof: the obligations of a theorem, and the strategy that tries them."""

import time
from collections.abc import Sequence

from kspec.proofs.effort import StoppedByClockError
from kspec.proofs.induction.claims import PATHS, Claim, Obligation, Status, gravest
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.induction.strategies.strategy import OnFailure, Strategy


class Proof:
    """The obligations of a theorem, proved task by task with one strategy."""

    def __init__(self, obligations: Obligations, strategy: Strategy) -> None:
        self.obligations, self.strategy = obligations, strategy

    def prove(self, task: str, on_failure: OnFailure = lambda claim: False, only: str | None = None) -> list[Obligation]:
        """Try each obligation of a task, or only those about the conjunct `only`. It is proved if every outcome is.

        If no proof is found, `on_failure` says whether it has found a counterexample.
        """
        self.strategy.begin(task)
        found: list[Obligation] = []
        started = time.perf_counter()
        try:
            for claim in (claim for claim in self.obligations.claims(task) if only in (None, claim.conjunct)):
                started = time.perf_counter()
                status = self._status(claim, on_failure)
                seconds = time.perf_counter() - started
                found.append(Obligation(claim.action, claim.conjunct, status, seconds, claim.paths))
        except StoppedByClockError:
            found.append(Obligation(task, PATHS, "stopped", time.perf_counter() - started, 0))
        return _joined(found)

    def _status(self, claim: Claim, on_failure: OnFailure) -> Status:
        try:
            return self.strategy.prove_claim(claim, on_failure)
        except StoppedByClockError:
            return "stopped"

    def cores(self, task: str) -> dict[str, frozenset[str]]:
        """For each conjunct that a task is about: the conjuncts that the proofs of all outcomes rest on."""
        found: dict[str, frozenset[str]] = {}
        for claim in self.obligations.claims(task):
            found[claim.conjunct] = found.get(claim.conjunct, frozenset()) | self.strategy.core_of(claim)
        return found


def _joined(parts: Sequence[Obligation]) -> list[Obligation]:
    """The obligations, with those joined that were tried in several parts."""
    joined: dict[tuple[str, str], Obligation] = {}
    for part in parts:
        key = (part.action, part.conjunct)
        before = joined.get(key)
        joined[key] = part if before is None else _both(before, part)
    return list(joined.values())


def _both(one: Obligation, other: Obligation) -> Obligation:
    """Two parts of one obligation, joined."""
    status = gravest([one.status, other.status])
    return one._replace(status=status, seconds=one.seconds + other.seconds, paths=one.paths + other.paths)
