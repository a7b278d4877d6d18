"""How a theorem is to be proved."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Settings:
    """Of which theorem, for how many replicas, against which mutant, with how much time (in seconds) for one obligation."""

    theorem: str
    replicas: int
    mutant: str | None = None
    timeout: float = 10.0
    seed: int = 0
    export: Path | None = None
    without: frozenset[str] = field(default_factory=frozenset)
    """Conjuncts that are left out, to see what fails without them."""
