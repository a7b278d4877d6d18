"""Formulas with their quantifiers spelled out over few numbers, so that Z3 finds real states."""

from collections.abc import Callable
from itertools import product

import z3


class SpelledOut:
    """Formulas with each quantifier over whole numbers (or Booleans) replaced by its instances.

    They mean the same for states whose logs and epochs stay below the last number, since claims about an offset or an
    epoch say nothing beyond the end of the logs and the last epoch.
    """

    def __init__(self, numbers: range) -> None:
        self.numbers = numbers
        self.done: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}
        """Results by the id of their term, with the term: its id is unique only as long as it is kept."""

    def of(self, term: z3.ExprRef) -> z3.ExprRef:
        """The term, spelled out."""
        known = self.done.get(term.get_id())
        if known is not None:
            return known[0]
        result: z3.ExprRef = term
        if z3.is_quantifier(term):
            result = self._instances(term)
        elif z3.is_app(term):
            children = term.children()
            spelled = [self.of(child) for child in children]
            if any(new is not old and not new.eq(old) for new, old in zip(spelled, children, strict=True)):
                result = _rebuilt(term, spelled)
        self.done[term.get_id()] = (result, term)
        return result

    def _instances(self, term: z3.QuantifierRef) -> z3.ExprRef:
        domains = [
            [z3.BoolVal(value) for value in (False, True)]
            if term.var_sort(index) == z3.BoolSort()
            else [z3.IntVal(value) for value in self.numbers]
            for index in range(term.num_vars())
        ]
        bodies = [self.of(z3.simplify(z3.substitute_vars(term.body(), *reversed(values)))) for values in product(*domains)]
        return z3.And(*bodies) if term.is_forall() else z3.Or(*bodies)


def spelled_out(formula: z3.ExprRef, numbers: range) -> z3.ExprRef:
    """One formula, spelled out over these numbers."""
    return SpelledOut(numbers).of(formula)


def _rebuilt(term: z3.ExprRef, children: list[z3.ExprRef]) -> z3.ExprRef:
    if z3.is_and(term):
        return z3.And(*children)
    return z3.Or(*children) if z3.is_or(term) else term.decl()(*children)


class SmallNumbers:
    """Formulas without quantifiers as bits: numbers are bit vectors, and functions are a constant for each argument.

    They mean the same as long as every number fits into its bits, and all arguments of functions are in `numbers`.
    """

    def __init__(self, width: int, numbers: range) -> None:
        self.sort, self.numbers = z3.BitVecSort(width), numbers
        self.done: dict[int, tuple[z3.ExprRef, z3.ExprRef]] = {}

    def of(self, term: z3.ExprRef) -> z3.ExprRef:
        """The term as bits."""
        known = self.done.get(term.get_id())
        if known is None:
            known = self.done[term.get_id()] = (self._made(term), term)
        return known[0]

    def _made(self, term: z3.ExprRef) -> z3.ExprRef:
        if z3.is_int_value(term):
            return self.value(term.as_long())
        kind = term.decl().kind()
        if kind == z3.Z3_OP_UNINTERPRETED:
            return self._asked(term.decl(), [], list(term.children()))
        parts = [self.of(part) for part in term.children()]
        if kind in _ARITHMETIC:
            return _ARITHMETIC[kind](*parts)
        return _rebuilt(term, parts) if parts else term

    def _asked(self, function: z3.FuncDeclRef, known: list[str], arguments: list[z3.ExprRef]) -> z3.ExprRef:
        """A function's value: a constant named after the arguments, or a choice of several if these are not known."""
        if not arguments:
            sort = self.sort if function.range() == z3.IntSort() else function.range()
            return z3.Const(" ".join([str(function.name()), *known]), sort)
        first, *others = arguments
        first = z3.simplify(first)
        if z3.is_int_value(first) or z3.is_true(first) or z3.is_false(first):
            return self._asked(function, [*known, str(first)], others)
        if first.sort() == z3.BoolSort():
            cases = [self._asked(function, [*known, value], others) for value in ("True", "False")]
            return z3.If(self.of(first), *cases)
        asked = self.of(first)
        value = self._asked(function, [*known, "elsewhere"], others)
        for number in self.numbers:
            value = z3.If(asked == self.value(number), self._asked(function, [*known, str(number)], others), value)
        return value

    def value(self, number: int) -> z3.BitVecNumRef:
        """A number in bits."""
        return z3.BitVecVal(number, self.sort)


_ARITHMETIC: dict[int, Callable[..., z3.ExprRef]] = {
    z3.Z3_OP_ADD: lambda first, *others: sum(others, start=first),
    z3.Z3_OP_SUB: lambda one, other: one - other,
    z3.Z3_OP_MUL: lambda one, other: one * other,
    z3.Z3_OP_UMINUS: lambda one: -one,
    z3.Z3_OP_LE: lambda one, other: one <= other,
    z3.Z3_OP_LT: lambda one, other: one < other,
    z3.Z3_OP_GE: lambda one, other: one >= other,
    z3.Z3_OP_GT: lambda one, other: one > other,
    z3.Z3_OP_EQ: lambda one, other: one == other,
    z3.Z3_OP_ITE: z3.If,
    z3.Z3_OP_DISTINCT: z3.Distinct,
}
