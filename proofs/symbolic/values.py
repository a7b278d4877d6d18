"""Symbolic values: numbers, Booleans, members of enumerations and values that may be absent.

A symbolic number stands for any number. A comparison of symbolic values is a `SymbolicBool`. Where Python asks whether it is
true (`if`, `and`, `min`, `in`), the run forks (`proofs.symbolic.paths`).
"""

from collections.abc import Callable
from typing import Any

import z3

from kspec.proofs.symbolic.paths import decide, explore
from kspec.proofs.symbolic.terms import conjunction, settled


class SymbolicBool:
    """A Boolean that depends on symbolic values. As a condition it forks the run; `&`, `|`, `~` and `==` do not."""

    __slots__ = ("term",)

    def __init__(self, term: z3.BoolRef) -> None:
        self.term = term

    def __bool__(self) -> bool:
        return decide(self.term)

    def __and__(self, other: "SymbolicBool | bool") -> "SymbolicBool":
        return SymbolicBool(z3.And(self.term, truth(other)))

    def __or__(self, other: "SymbolicBool | bool") -> "SymbolicBool":
        return SymbolicBool(z3.Or(self.term, truth(other)))

    def __invert__(self) -> "SymbolicBool":
        return SymbolicBool(z3.Not(self.term))

    def __eq__(self, other: object) -> "SymbolicBool":  # type: ignore[override]
        return SymbolicBool(self.term == truth(other))

    __rand__, __ror__ = __and__, __or__
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return str(self.term)


class SymbolicInt:
    """Any whole number: an offset, an epoch, a broker id, a record's value.

    A comparison with a float is answered at once, without a fork: lifted bounds of a model are infinite.
    """

    __slots__ = ("term",)

    def __init__(self, term: z3.ArithRef) -> None:
        self.term = term

    def __add__(self, other: Any) -> "SymbolicInt":
        return SymbolicInt(self.term + number(other))

    def __sub__(self, other: Any) -> "SymbolicInt":
        return SymbolicInt(self.term - number(other))

    def __rsub__(self, other: Any) -> "SymbolicInt":
        return SymbolicInt(number(other) - self.term)

    def __floordiv__(self, divisor: int) -> "SymbolicInt":
        assert divisor > 0, "Z3 rounds down for these alone"
        return SymbolicInt(self.term / divisor)

    def __lt__(self, other: Any) -> "SymbolicBool | bool":
        return other > 0 if isinstance(other, float) else SymbolicBool(self.term < number(other))

    def __le__(self, other: Any) -> "SymbolicBool | bool":
        return other > 0 if isinstance(other, float) else SymbolicBool(self.term <= number(other))

    def __gt__(self, other: Any) -> "SymbolicBool | bool":
        return other < 0 if isinstance(other, float) else SymbolicBool(self.term > number(other))

    def __ge__(self, other: Any) -> "SymbolicBool | bool":
        return other < 0 if isinstance(other, float) else SymbolicBool(self.term >= number(other))

    def __eq__(self, other: object) -> Any:
        return SymbolicBool(self.term == number(other)) if isinstance(other, SymbolicInt | int) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return SymbolicBool(self.term != number(other)) if isinstance(other, SymbolicInt | int) else NotImplemented

    __radd__ = __add__

    def __hash__(self) -> int:
        raise TypeError("a rule must not hash a number: it may stand for many (no dict or set keyed by an offset or epoch)")

    def __index__(self) -> int:
        raise TypeError("a rule must not turn a number into an int: it may stand for many (no range over offsets)")

    def __repr__(self) -> str:
        return str(self.term)


class AnyTruth(SymbolicBool):
    """A Boolean of which nothing is known, in sets: two of them may be equal, so all have one hash."""

    __slots__ = ()

    __eq__ = SymbolicBool.__eq__

    def __hash__(self) -> int:  # type: ignore[override]
        return 0


class AnyNumber(SymbolicInt):
    """A number of which nothing is known, in sets: two of them may be equal, so all have one hash."""

    __slots__ = ()

    __eq__ = SymbolicInt.__eq__
    __ne__ = SymbolicInt.__ne__

    def __ge__(self, other: Any) -> "SymbolicBool | bool":
        return AnyTruth(self.term >= number(other))

    def __le__(self, other: Any) -> "SymbolicBool | bool":
        return AnyTruth(self.term <= number(other))

    def __gt__(self, other: Any) -> "SymbolicBool | bool":
        return AnyTruth(self.term > number(other))

    def __neg__(self) -> "AnyNumber":
        return AnyNumber(-self.term)

    def __hash__(self) -> int:
        return 0


Kind = Any
"""The kind of a number, by its type: an `Offset`, an `Epoch`, a `PartitionEpoch` or another `NewType` of numbers."""


class Name(SymbolicInt):
    """A number that a model's builder may use as an argument and a key: one arbitrary, but fixed, broker or epoch.

    Two names of brokers are two different brokers; the code that makes them asserts it (`z3.Distinct`).
    """

    __slots__ = ("kind",)

    def __init__(self, name: str, kind: Kind) -> None:
        super().__init__(z3.Int(name))
        self.kind = kind

    def __eq__(self, other: object) -> Any:
        return self is other if isinstance(other, Name) else super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        return self is not other if isinstance(other, Name) else super().__ne__(other)

    def __hash__(self) -> int:
        return id(self)


class SymbolicEnum:
    """Some member of an enumeration, by its position in it."""

    __slots__ = ("kind", "position")

    def __init__(self, kind: type, position: z3.ArithRef) -> None:
        self.kind, self.position = kind, position


class SymbolicOptional:
    """A value that may be absent."""

    __slots__ = ("present", "value")

    def __init__(self, present: z3.BoolRef, value: Any) -> None:
        self.present, self.value = present, value


def number(value: Any) -> Any:
    """A number as a term."""
    if isinstance(value, SymbolicInt):
        return value.term
    return z3.IntVal(value) if isinstance(value, int) else value


def truth(value: Any) -> z3.BoolRef:
    """A Boolean as a formula."""
    if isinstance(value, SymbolicBool):
        return value.term
    return z3.BoolVal(value) if isinstance(value, bool) else value


def formula(function: Callable[[], Any]) -> z3.BoolRef:
    """A function that returns a Boolean, as one formula."""
    value = None
    paths = explore(function, None)
    if len(paths) == 1:
        value = truth(_as_truth(paths[0].value))
        return z3.Implies(paths[0].facts, value) if not z3.is_true(paths[0].facts) else value
    return conjunction(
        [
            z3.Implies(conjunction([path.condition, path.facts]), truth(_as_truth(path.value)))
            for path in paths
            if not settled(truth(_as_truth(path.value)))
        ]
    )


def _as_truth(value: Any) -> Any:
    return value if isinstance(value, SymbolicBool | bool) else bool(value)
