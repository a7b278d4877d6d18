"""Lemmas about majorities among any number of voters, by induction over that number.

Voters are counted one after the other, in any order; so voter is a position, from 0 on, and the size of a set is what has
been counted of it. Theorems about the quorum assume of sets of voters what is proved here, and nothing else.
"""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import z3

from kspec.proofs.induction.by_steps import status_of
from kspec.proofs.induction.claims import Obligation, gravest
from kspec.proofs.settings import ProofSettings

TASK = "Majorities"

VOTERS = z3.Int("voters")
"""The number of voters."""


def _set(name: str) -> Any:
    return z3.Function(name, z3.IntSort(), z3.BoolSort())


def _count(name: str) -> Any:
    return z3.Function(f"counted of {name}", z3.IntSort(), z3.IntSort())


def _counts(members: Any, counted: Any, position: Any) -> z3.BoolRef:
    """The count starts at none, and the voter at a position is counted once."""
    return z3.And(counted(0) == 0, counted(position + 1) == counted(position) + z3.If(members(position), 1, 0))


ONE, OTHER = _set("one"), _set("other")
OF_ONE, OF_OTHER = _count("one"), _count("other")

Lemma = tuple[z3.BoolRef, z3.BoolRef]
"""A premise, and what follows."""


def _by_induction(claim: Callable[[Any], z3.BoolRef], known: Callable[[Any], z3.BoolRef]) -> Iterator[Lemma]:
    """The claim about no voter, and about one more."""
    position = z3.Int("position")
    yield known(z3.IntVal(0)), claim(z3.IntVal(0))
    yield z3.And(position >= 0, known(position), claim(position)), claim(position + 1)


def sets_without_common_member_fit() -> Iterator[Lemma]:
    """Two sets of voters of which none is in both are no more than all; so two majorities share a voter."""
    voter = z3.Int("voter")

    def apart(count: Any) -> z3.BoolRef:
        return z3.ForAll([voter], z3.Implies(z3.And(voter >= 0, voter < count), z3.Not(z3.And(ONE(voter), OTHER(voter)))))

    def claim(count: Any) -> z3.BoolRef:
        return z3.Implies(apart(count), OF_ONE(count) + OF_OTHER(count) <= count)

    def known(position: Any) -> z3.BoolRef:
        return z3.And(_counts(ONE, OF_ONE, position), _counts(OTHER, OF_OTHER, position))

    yield from _by_induction(claim, known)
    majorities = z3.And(OF_ONE(VOTERS) * 2 > VOTERS, OF_OTHER(VOTERS) * 2 > VOTERS)
    yield z3.And(claim(VOTERS), majorities), z3.Not(apart(VOTERS))


def sets_one_voter_apart_fit() -> Iterator[Lemma]:
    """Sets of voters before and after a voter is added; none is in both, so together they are no more than all after it.

    So a majority of the voters before a change and one of those after it share a voter. Who is removed is one who is added,
    seen from the other side.
    """
    one, voter = z3.Ints("added voter")
    before, after = _set("before"), _set("after")
    of_before, of_after = _count("before"), _count("after")
    alike = z3.ForAll([voter], after(voter) == z3.Or(before(voter), voter == one))
    is_added = z3.And(one >= 0, one < VOTERS, z3.Not(before(one)), alike)

    def apart(count: Any) -> z3.BoolRef:
        inside = z3.And(z3.Implies(ONE(voter), before(voter)), z3.Implies(OTHER(voter), after(voter)))
        alone = z3.And(inside, z3.Not(z3.And(ONE(voter), OTHER(voter))))
        return z3.ForAll([voter], z3.Implies(z3.And(voter >= 0, voter < count), alone))

    def claim(count: Any) -> z3.BoolRef:
        grows = of_after(count) == of_before(count) + z3.If(one < count, 1, 0)
        return z3.And(grows, z3.Implies(apart(count), OF_ONE(count) + OF_OTHER(count) <= of_after(count)))

    def known(position: Any) -> z3.BoolRef:
        counted = ((ONE, OF_ONE), (OTHER, OF_OTHER), (before, of_before), (after, of_after))
        return z3.And(is_added, *(_counts(members, number, position) for members, number in counted))

    yield from _by_induction(claim, known)
    majorities = z3.And(OF_ONE(VOTERS) * 2 > of_before(VOTERS), OF_OTHER(VOTERS) * 2 > of_after(VOTERS))
    yield z3.And(is_added, claim(VOTERS), majorities), z3.Not(apart(VOTERS))


def one_voter_counts_one() -> Iterator[Lemma]:
    """A set with one voter more is larger by one, if that was not in it, and so the other way round."""
    one, voter = z3.Ints("added voter")
    alike = z3.ForAll([voter], OTHER(voter) == z3.Or(ONE(voter), voter == one))

    def claim(count: Any) -> z3.BoolRef:
        more = z3.And(one >= 0, one < count, z3.Not(ONE(one)))
        return OF_OTHER(count) == OF_ONE(count) + z3.If(more, 1, 0)

    def known(position: Any) -> z3.BoolRef:
        return z3.And(alike, one >= 0, _counts(ONE, OF_ONE, position), _counts(OTHER, OF_OTHER, position))

    yield from _by_induction(claim, known)


def set_is_no_larger_than_all() -> Iterator[Lemma]:
    """A set of voters has from none to all of them."""
    yield from _by_induction(
        lambda count: z3.And(OF_ONE(count) >= 0, OF_ONE(count) <= count), lambda position: _counts(ONE, OF_ONE, position)
    )


def offset_of_majority_is_reached() -> Iterator[Lemma]:
    """Of ends in falling order, that in the middle is reached by more than half: by those up to it (`majority_offset`)."""
    end = z3.Function("end at place", z3.IntSort(), z3.IntSort())
    place, later = z3.Ints("place later")
    falling = z3.ForAll([place, later], z3.Implies(z3.And(place >= 0, place <= later), end(place) >= end(later)))
    middle = VOTERS / 2
    reached = z3.ForAll([place], z3.Implies(z3.And(place >= 0, place < middle + 1), end(place) >= end(middle)))
    yield z3.And(VOTERS >= 1, falling), z3.And(reached, (middle + 1) * 2 > VOTERS, middle < VOTERS)


LEMMAS: dict[str, Callable[[], Iterator[Lemma]]] = {
    "MajoritiesShareAVoter": sets_without_common_member_fit,
    "MajoritiesShareAVoterAfterAChange": sets_one_voter_apart_fit,
    "OneVoterCountsOne": one_voter_counts_one,
    "NoMoreThanAll": set_is_no_larger_than_all,
    "MajorityReachesOffset": offset_of_majority_is_reached,
}
"""The facts that are used about sets of voters, however many there are."""


def lemmas(settings: ProofSettings) -> list[Obligation]:
    """The results for each lemma."""
    found = []
    for name, lemma in LEMMAS.items():
        started = perf_counter()
        parts = [status_of(settings, [premise], claim) for premise, claim in lemma()]
        found.append(Obligation(TASK, name, gravest(parts), perf_counter() - started, len(parts)))
    return found
