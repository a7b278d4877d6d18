"""What the components of test vectors do: a class for each, a method for each operation. See `tests.conformance.vectors`."""

from dataclasses import dataclass, field
from typing import Any

from spec.values import Error


@dataclass(frozen=True)
class Answer:
    """What an operation answers: an error by its name, else a value, and more that a vector may ask for by name."""

    error: str = "NONE"
    value: Any = None
    named: dict[str, Any] = field(default_factory=dict)


def refused(error: Error) -> Answer:
    """An answer that is an error, or none of any content."""
    return Answer(error.name)


class Anything:
    """Equal to whatever a vector expects, where Kafka's test says nothing for the mode it runs in."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0
