"""A claim split into its parts, and into cases: whether the claim's variables are the action's arguments.

Z3 often proves all parts where it does not prove the whole. To prove the parts is to prove the whole.
"""

from collections.abc import Iterator, Sequence

import z3

Piece = tuple[tuple[z3.BoolRef, ...], z3.BoolRef]
"""Premises, and the claim that follows from them."""


def pieces(goal: z3.BoolRef, names: Sequence[z3.ArithRef]) -> Iterator[Piece]:
    """The parts of a goal. `names` are the arguments of the action: each variable of the goal is one of them or is not."""
    for premises, part in _parts(goal):
        for added, case in _by_name(part, premises, names):
            yield from (((*added, *more), smaller) for more, smaller in _parts(case))


def _parts(goal: z3.BoolRef) -> Iterator[Piece]:
    """The parts of a goal, one by one."""
    if z3.is_true(goal):
        return
    if z3.is_and(goal):
        for child in goal.children():
            yield from _parts(child)
    elif z3.is_implies(goal):
        premise, claim = goal.children()
        yield from (((premise, *more), part) for more, part in _parts(claim))
    elif z3.is_eq(goal) and z3.is_bool(goal.arg(0)):
        one, other = goal.children()
        yield (one,), other
        yield (other,), one
    elif z3.is_app_of(goal, z3.Z3_OP_ITE):
        condition, then, otherwise = goal.children()
        yield from (((condition, *more), part) for more, part in _parts(then))
        yield from (((z3.Not(condition), *more), part) for more, part in _parts(otherwise))
    else:
        yield (), goal


def _by_name(goal: z3.BoolRef, premises: tuple[z3.BoolRef, ...], names: Sequence[z3.ArithRef]) -> Iterator[Piece]:
    """The goal in each case: a variable is an action's argument, or it is not."""
    asked = _comparison([goal, *premises], names)
    if asked is None:
        yield premises, goal
        return
    variable, name, atom = asked

    def substituted(*pairs: tuple[z3.ExprRef, z3.ExprRef]) -> Iterator[Piece]:
        after = [z3.simplify(z3.substitute(term, *pairs)) for term in (*premises, goal)]
        if not any(z3.is_false(premise) for premise in after[:-1]) and not z3.is_true(after[-1]):
            yield from _by_name(after[-1], tuple(after[:-1]), names)

    yield from (((variable == name, *more), part) for more, part in substituted((atom, z3.BoolVal(True)), (variable, name)))
    yield from (((variable != name, *more), part) for more, part in substituted((atom, z3.BoolVal(False))))


def _comparison(
    terms: Sequence[z3.ExprRef], names: Sequence[z3.ArithRef]
) -> tuple[z3.ExprRef, z3.ExprRef, z3.BoolRef] | None:
    """A comparison of a variable with one of the names, in the terms."""
    named = {name.get_id() for name in names}
    seen: set[int] = set()
    waiting = list(terms)
    while waiting:
        term = waiting.pop()
        if term.get_id() in seen or z3.is_quantifier(term):
            continue
        seen.add(term.get_id())
        if z3.is_eq(term):
            one, other = term.children()
            if other.get_id() in named and z3.is_const(one) and one.get_id() not in named:
                return one, other, term
            if one.get_id() in named and z3.is_const(other) and other.get_id() not in named:
                return other, one, term
        waiting += term.children()
    return None
