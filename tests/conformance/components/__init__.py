"""Components of test vectors: a class for each, a method for each operation. See `tests.conformance.vectors`."""

from dataclasses import dataclass, field
from typing import Any

from kspec.spec.values import Error


@dataclass(frozen=True)
class VectorAnswer:
    """The answer of an operation: an error by its name, else a value, and more that a vector may ask for by name."""

    error: str = "NONE"
    value: Any = None
    named: dict[str, Any] = field(default_factory=dict)


def refused(error: Error) -> VectorAnswer:
    """An answer that is an error, or none of any content."""
    return VectorAnswer(error.name)


class Anything:
    """Equal to whatever a vector expects, where Kafka's test says nothing for the mode it runs in."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0


class BrokerIds(list[int]):
    """Broker ids in any order: Kafka keeps some sets as lists, whose order decides nothing."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list) and sorted(self) == sorted(other)

    def __ne__(self, other: object) -> bool:
        return not self == other


class ById(dict[str, Any]):
    """States by id, where an id that is not there has no state: a vector expects null of it."""


class Records(int):
    """A number of records, which a vector may also call "empty" or "nonempty"."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return other == ("nonempty" if self > 0 else "empty")
        return int(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other


class FoundPair(list[int]):
    """A pair, or none: a vector has the pair, its first number, or only whether there is one."""

    def matches(self, expected: Any) -> bool:
        if isinstance(expected, bool) or expected in UNDEFINED:
            return bool(self) == (expected is True)
        return in_pairs(expected) == list(self) or [expected] == self[:1]


UNDEFINED: tuple[Any, ...] = (None, -1, [-1, -1])
"""An epoch, an offset, or a pair of both that is not there."""


def in_pairs(expected: Any) -> Any:
    """A pair that is written as an object: the epoch comes first."""
    if not isinstance(expected, dict):
        return expected
    return [value for _, value in sorted(expected.items(), key=lambda part: "epoch" not in part[0].lower())]
