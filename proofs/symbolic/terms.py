"""Terms and formulas of Z3, built without their trivial parts."""

from collections.abc import Iterator, Sequence
from typing import Any

import z3


def parts_of(term: z3.ExprRef) -> Iterator[z3.ExprRef]:
    """All subterms of a term or formula, each once."""
    seen: set[int] = set()
    waiting = [term]
    while waiting:
        part = waiting.pop()
        if part.get_id() not in seen:
            seen.add(part.get_id())
            yield part
            waiting += [part.body()] if z3.is_quantifier(part) else part.children()


def settled(term: z3.BoolRef) -> bool | None:
    """The truth value of a trivial formula, `None` for others."""
    if z3.is_true(term):
        return True
    return False if z3.is_false(term) else None


def conjunction(terms: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Conjunction, without what is trivially true."""
    kept = [term for term in terms if not z3.is_true(term)]
    if any(z3.is_false(term) for term in kept):
        return z3.BoolVal(False)
    return z3.BoolVal(True) if not kept else kept[0] if len(kept) == 1 else z3.And(*kept)


def disjunction(terms: Sequence[z3.BoolRef]) -> z3.BoolRef:
    """Disjunction, without what is trivially false."""
    kept = [term for term in terms if not z3.is_false(term)]
    if any(z3.is_true(term) for term in kept):
        return z3.BoolVal(True)
    return z3.BoolVal(False) if not kept else kept[0] if len(kept) == 1 else z3.Or(*kept)


def negation(term: z3.BoolRef) -> z3.BoolRef:
    """Negation."""
    known = settled(term)
    return z3.Not(term) if known is None else z3.BoolVal(not known)


def choice(condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
    """If-then-else, but no choice if there is nothing to choose."""
    known = settled(condition)
    if known is not None:
        return then if known else otherwise
    return then if then.eq(otherwise) else z3.If(condition, then, otherwise)
