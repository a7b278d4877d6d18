"""Sets of any size: who is in one is a function of the member's id, and its size is a number.

A rule may ask whether somebody is in such a set, add or take away members that are known, and ask for the size
(`spec.quorum.rules.votes.size_of`). A loop over it sees only those of its members that are `seen`.
"""

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Any

import z3

from kspec.proofs.symbolic.paths import decide
from kspec.proofs.symbolic.terms import conjunction
from kspec.proofs.symbolic.values import SymbolicInt, number
from kspec.spec.values import BrokerId

Membership = Callable[[Any], z3.BoolRef]
"""Whether the one with an id is a member."""

Whole = tuple[Membership, Any]
"""A set as its membership and its size."""


class AnyMembers(AbstractSet[BrokerId]):
    """Any finite set of ids. The size follows what is added and taken away, so it is that of the set if it was at first."""

    def __init__(self, has: Membership, size: Any, seen: tuple[BrokerId, ...]) -> None:
        self.has, self.size, self.seen = has, size, seen

    @classmethod
    def named(cls, name: str, seen: tuple[BrokerId, ...]) -> "AnyMembers":
        """The set of this name, of which nothing is known."""
        return cls(z3.Function(name, z3.IntSort(), z3.BoolSort()), z3.Int(f"size of {name}"), seen)

    def __contains__(self, member: object) -> bool:
        return decide(self.has(number(member)))

    def __iter__(self) -> Iterator[BrokerId]:
        return (member for member in self.seen if member in self)

    def __len__(self) -> Any:
        return SymbolicInt(self.size)

    def __sub__(self, members: Iterable[Any]) -> "AnyMembers":
        found = self
        for member in members:
            found = found._changed(number(member), is_member=False)
        return found

    def __or__(self, members: Iterable[Any]) -> Any:
        found = self
        for member in members:
            found = found._changed(number(member), is_member=True)
        return found

    def _changed(self, one: Any, is_member: bool) -> "AnyMembers":
        has = self.has(one)
        size = self.size + z3.If(has, 0, 1) if is_member else self.size - z3.If(has, 1, 0)
        return AnyMembers(lambda member: z3.If(member == one, is_member, self.has(member)), size, self.seen)


def membership_of(members: AbstractSet[BrokerId]) -> Membership:
    """The membership in a set, which may be one of Python's."""
    if isinstance(members, AnyMembers):
        return members.has
    return lambda member: z3.Or(*(member == number(one) for one in members))


def size_term(members: AbstractSet[BrokerId]) -> Any:
    """The size of a set, which may be one of Python's, as a term."""
    return members.size if isinstance(members, AnyMembers) else z3.IntVal(len(members))


def is_part(part: Membership, whole: Membership) -> z3.BoolRef:
    """A formula: each member of one set is a member of another."""
    member = z3.Int("any member")
    return z3.ForAll([member], z3.Implies(part(member), whole(member)))


def majorities_share(one: Whole, other: Whole, wholes: tuple[Whole, Whole], common: Any) -> z3.BoolRef:
    """A fact: a majority of one set and one of another share a member, which `common` names, a constant of its own.

    The two `wholes` are the same, or one has one member more than the other. That
    this is so for sets of any size is proved by induction (`proofs.theorems.quorum.majorities`).
    """
    (has_one, size), (has_other, other_size) = one, other
    (in_one, count), (in_other, other_count) = wholes
    parts = [is_part(has_one, in_one), is_part(has_other, in_other)]
    return z3.Implies(
        conjunction([*parts, size * 2 > count, other_size * 2 > other_count]), z3.And(has_one(common), has_other(common))
    )
