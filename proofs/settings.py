"""How a theorem is to be proved."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

ANY: Literal["any"] = "any"
"""In place of a number of replicas: however many there are."""

Replicas = int | Literal["any"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Of which theorem, for how many replicas, against which mutant, with how much time (in seconds) for one obligation."""

    theorem: str
    replicas: Replicas
    mutant: str | None = None
    timeout: float = 10.0
    seed: int = 0
    export: Path | None = None
    runs_from: int | None = None
    """Refute by runs from the initial state of so many states or more."""
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
        """For how many replicas."""
        return "any number of replicas" if self.replicas == ANY else f"{self.replicas} replicas"
