"""The settings of a proof."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from kspec.proofs.effort import EMERGENCY_S

ANY: Literal["any"] = "any"
"""Stands for a number of replicas: any number of them."""

Replicas = int | Literal["any"]


@dataclass(frozen=True, slots=True)
class ProofSettings:
    """The theorem, the number of replicas, the mutant, and the effort."""

    theorem: str
    replicas: Replicas
    mutant: str | None = None
    effort: int = 60_000_000
    """The limit of Z3 for one obligation, or for all runs of one length, in its own units."""
    time_limit: float = EMERGENCY_S
    """After how many seconds the clock stops one question to Z3."""
    seed: int = 0
    export: Path | None = None
    runs_from: int | None = None
    """Refute by runs of this many states or more, from the initial state."""
    search: int = 60_000_000
    """The limit of Z3 to find a counterexample if no proof is found; with 0 it does not search."""
    without: frozenset[str] = field(default_factory=frozenset)
    """Conjuncts that are left out, to see what fails without them."""

    @property
    def number_of_replicas(self) -> int:
        """The number of replicas, where one is given."""
        if isinstance(self.replicas, str):
            raise TypeError("any number of replicas is no number")
        return self.replicas

    @property
    def replicas_in_words(self) -> str:
        """The number of replicas, in words."""
        return "any number of replicas" if self.replicas == ANY else f"{self.replicas} replicas"
