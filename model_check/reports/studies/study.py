"""Studies: where the checker finds a failure, what it means, and which rule repairs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

WITH_MESSAGES = ("kafka", "group", "quorum")
"""The models in which messages are under way, which are larger."""


class Configuration(NamedTuple):
    """A model, and its parameters where they differ from the defaults."""

    model: str
    parameters: Mapping[str, Any]

    @property
    def symmetry(self) -> bool:
        """Whether states are explored up to renaming of brokers, or of consumers. They are in models with messages."""
        return self.model in WITH_MESSAGES

    def command(self, invariant: str) -> str:
        """The command that checks `invariant` in this configuration."""
        words = ["kspec check", self.model]
        for name, value in self.parameters.items():
            option = f"--{name.replace('_', '-')}"
            if value is True:
                words.append(option)
            elif isinstance(value, tuple):
                words += [f"{option} {choice}" for choice in value]
            else:
                words.append(f"{option} {value}")
        return " ".join([*words, *(["--symmetry"] if self.symmetry else []), f"--invariant {invariant}"])


@dataclass(frozen=True, slots=True)
class Study:
    """A failure of a version or release, and its repair.

    - `hazard`: the number of the failure in `hazards.py`; empty if it is not listed there;
    - `reference`: where Kafka's developers discuss it;
    - `setup`: what the reader must know before the run; `outcome`: what the run has led to in the end;
    - `invariant`: the property that fails in `failing` and holds in `repaired`;
    - `rules`: the functions of `spec` that repair it; `repair`: why that helps.
    """

    name: str
    title: str
    summary: str
    reference: str
    setup: str
    failing: Configuration
    invariant: str
    outcome: str
    rules: tuple[Callable[..., Any], ...]
    repair: str
    repaired: Configuration
    hazard: str = ""
