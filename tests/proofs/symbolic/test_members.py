"""Symbolic sets of any size: what Python's sets say of members and sizes."""

from itertools import compress, product

import pytest
import z3

from kspec.proofs.symbolic.members import AnyMembers, is_part, majorities_share, membership_of, size_term
from kspec.proofs.symbolic.paths import explore
from kspec.spec.quorum.rules.votes import size_of
from kspec.spec.values import BrokerId

IDS = tuple(map(BrokerId, (1, 2, 3)))
SETS = [frozenset(compress(IDS, chosen)) for chosen in product((False, True), repeat=3)]


def members(known: frozenset[BrokerId]) -> AnyMembers:
    """A set of which the proof knows all."""
    return AnyMembers(membership_of(known), size_term(known), IDS)


@pytest.mark.parametrize("known", SETS)
@pytest.mark.parametrize("changed", SETS)
def test_it_changes_as_sets_of_python_do(known: frozenset[BrokerId], changed: frozenset[BrokerId]) -> None:
    for found, wanted in ((members(known) - changed, known - changed), (members(known) | changed, known | changed)):
        assert frozenset(found) == wanted
        assert [one in found for one in IDS] == [one in wanted for one in IDS]
        assert z3.simplify(size_term(found)).eq(z3.IntVal(len(wanted)))


def test_it_may_be_any_set() -> None:
    unknown = AnyMembers.named("some", IDS[:1])
    assert {path.value for path in explore(lambda: IDS[0] in unknown)} == {True, False}
    assert {path.value for path in explore(lambda: bool(size_of(unknown) > 1))} == {True, False}


def test_two_halves_need_not_share_a_member() -> None:
    one, other, whole = (AnyMembers.named(name, IDS) for name in ("one", "other", "whole"))
    all_of_it = (whole.has, whole.size)
    shared = majorities_share((one.has, one.size), (other.has, other.size), (all_of_it, all_of_it), z3.Int("shared"))
    member = z3.Int("member")
    apart = z3.ForAll([member], z3.Not(z3.And(one.has(member), other.has(member))))
    parts = [is_part(one.has, whole.has), is_part(other.has, whole.has), apart, shared]
    halves, majorities = (z3.And(one.size * 2 >= most, other.size * 2 >= most) for most in (whole.size, whole.size + 1))
    solver = z3.Solver()
    assert solver.check(*parts, majorities) == z3.unsat
    assert solver.check(*parts, halves, whole.size == 2) != z3.unsat
