"""The brokers of a model, a given or any number of them, and sets of brokers."""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import permutations
from typing import Any

import z3

from kspec.proofs.symbolic.paths import decide
from kspec.proofs.symbolic.terms import conjunction, disjunction, negation, parts_of
from kspec.proofs.symbolic.values import Name, SymbolicBool, SymbolicInt, number

IS_BROKER = z3.Function("is a broker", z3.IntSort(), z3.BoolSort())
"""Says which numbers are brokers' ids if there is any number of brokers: nothing is known of it."""


class Brokers:
    """All brokers of a model: the ids 1 to N, or any number of brokers, some of which have names."""

    def __init__(self, ids: Sequence[int] | None, names: Sequence[Name] = ()) -> None:
        self.ids, self.names = ids, names
        self._claims = 0

    def exists(self, broker: Any) -> z3.BoolRef:
        """States that there is a broker with this id."""
        if self.ids is None:
            return IS_BROKER(number(broker))
        if isinstance(broker, int):
            return z3.BoolVal(broker in self.ids)
        return z3.And(broker >= self.ids[0], broker <= self.ids[-1])

    def pairs(self) -> Sequence[tuple[Any, Any]]:
        """Every broker with every other one; for any number of brokers, one pair that stands for all."""
        return [(self.names[0], self.names[1])] if self.ids is None else list(permutations(self.ids, 2))

    def is_everyone(self, members: Collection[Any]) -> bool:
        """Whether a set made by a model's builder is the set of all brokers."""
        everyone = self.names if self.ids is None else self.ids
        return len(everyone) > 0 and set(everyone) == set(members)

    def every(self, claim: Callable[[Any], z3.BoolRef]) -> z3.BoolRef:
        """States that the claim holds for every broker."""
        if self.ids is not None:
            return conjunction([claim(broker) for broker in self.ids])
        anyone, claimed = self._claimed(claim)
        return z3.ForAll([anyone], z3.Implies(self.exists(anyone), claimed))

    def some(self, claim: Callable[[Any], z3.BoolRef]) -> z3.BoolRef:
        """States that the claim holds for some broker."""
        if self.ids is not None:
            return disjunction([claim(broker) for broker in self.ids])
        anyone, claimed = self._claimed(claim)
        parts = claimed.children() if z3.is_and(claimed) else [claimed]
        for known, others in ((part, [other for other in parts if other is not part]) for part in parts):
            named = _equated(anyone, known)
            if named is not None:  # some broker equals this one, so it is this one
                return z3.substitute(conjunction([self.exists(anyone), *others]), (anyone, named))
        return z3.Exists([anyone], conjunction([self.exists(anyone), *parts]))

    def _claimed(self, claim: Callable[[Any], z3.BoolRef]) -> tuple[z3.ArithRef, z3.BoolRef]:
        """An arbitrary broker, and the claim about it. The same claim gives the same formula."""
        self._claims += 1
        anyone = z3.Int(f"some broker {self._claims}")
        claimed = claim(anyone)
        self._claims -= 1
        return anyone, claimed


class SymbolicSet:
    """A set of brokers: for each broker, whether it is in the set."""

    __slots__ = ("brokers", "holds")

    def __init__(self, brokers: Brokers, holds: Callable[[Any], z3.BoolRef]) -> None:
        self.brokers, self.holds = brokers, holds

    @classmethod
    def of(cls, value: Any, brokers: Brokers) -> "SymbolicSet":
        """A set as a symbolic one."""
        if isinstance(value, SymbolicSet):
            return value
        members = list(value)
        if brokers.is_everyone(value):
            return cls(brokers, lambda broker: brokers.exists(broker) if brokers.ids is None else z3.BoolVal(True))
        return cls(brokers, lambda broker: disjunction([number(broker) == number(member) for member in members]))

    def has(self, broker: Any) -> z3.BoolRef:
        """A formula: `broker` is in the set."""
        return self.holds(broker.term if isinstance(broker, SymbolicInt) else broker)

    def __contains__(self, broker: Any) -> bool:
        return decide(self.has(broker))

    def __iter__(self) -> Iterator[int]:
        """The members: forks at every broker."""
        if self.brokers.ids is None:
            raise TypeError("a set of any number of brokers cannot be walked through")
        return (broker for broker in self.brokers.ids if decide(self.has(broker)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return decide(self.brokers.some(self.has))

    def __or__(self, other: Any) -> "SymbolicSet":
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicSet(self.brokers, lambda broker: disjunction([self.has(broker), right.has(broker)]))

    def __and__(self, other: Any) -> "SymbolicSet":
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicSet(self.brokers, lambda broker: conjunction([self.has(broker), right.has(broker)]))

    def __sub__(self, other: Any) -> "SymbolicSet":
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicSet(self.brokers, lambda broker: conjunction([self.has(broker), negation(right.has(broker))]))

    def __rsub__(self, other: Any) -> "SymbolicSet":
        return SymbolicSet.of(other, self.brokers) - self

    def __le__(self, other: Any) -> SymbolicBool:
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicBool(self.brokers.every(lambda broker: z3.Implies(self.has(broker), right.has(broker))))

    def __ge__(self, other: Any) -> SymbolicBool:
        return SymbolicSet.of(other, self.brokers) <= self

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, SymbolicSet | frozenset | set):
            return NotImplemented
        right = SymbolicSet.of(other, self.brokers)
        return SymbolicBool(self.brokers.every(lambda broker: self.has(broker) == right.has(broker)))

    __ror__, __rand__ = __or__, __and__

    def __hash__(self) -> int:
        """The same for all symbolic sets, so that Python compares those in a set of sets. The comparison forks."""
        return 0


def _equated(variable: z3.ArithRef, formula: z3.BoolRef) -> z3.ExprRef | None:
    """The value of a variable according to an equation."""
    if not z3.is_eq(formula):
        return None
    left, right = formula.children()
    found = right if left.eq(variable) else left if right.eq(variable) else None
    return found if found is not None and not any(part.eq(variable) for part in parts_of(found)) else None
