"""Strategies: ways to try claims, and to find out what a proof rests on."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import z3

from kspec.model_check.core.files import write_whole
from kspec.proofs.effort import Effort
from kspec.proofs.induction.claims import Claim, Status
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.settings import ProofSettings

OnFailure = Callable[[Claim], bool]
"""Called with a claim for which no proof was found; says whether there is a counterexample to it."""


class Strategy(ABC):
    """A way to try the claims of some obligations."""

    def __init__(self, obligations: Obligations) -> None:
        self.obligations, self.settings = obligations, obligations.settings

    def begin(self, task: str) -> None:  # noqa: B027 - most have nothing to get ready
        """Get ready for the claims of a task."""

    @abstractmethod
    def prove_claim(self, claim: Claim, on_failure: OnFailure) -> Status:
        """Try one claim of the current task."""

    @abstractmethod
    def core_of(self, claim: Claim) -> frozenset[str]:
        """The names of the conjuncts that a proof of a claim rests on."""

    def effort(self) -> Effort:
        """The effort allowed for one obligation."""
        return Effort(self.settings.effort, self.settings.time_limit)


def export(settings: ProofSettings, claim: Claim, solver: z3.Solver, part: int | None = None) -> None:
    """Write an obligation as SMT-LIB 2, which is unsatisfiable exactly if the obligation is proved."""
    assert settings.export is not None
    name = "-".join("".join(c if c.isalnum() else " " for c in f"{claim.action} {claim.conjunct}").split())
    name = name if part is None else f"{name}-{part}"
    header = f"; {settings.theorem}, {settings.replicas_in_words}: {claim.action} keeps {claim.conjunct} if unsat\n"
    text = header + "(set-logic ALL)\n" + solver.to_smt2()
    write_whole(settings.export / f"{name}.smt2", text)
