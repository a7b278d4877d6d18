"""Small instances: a formula with its quantifiers spelled out over few numbers, so that Z3 finds real states."""

from itertools import product

import z3


def spelled_out(formula: z3.ExprRef, numbers: range) -> z3.ExprRef:
    """The formula with each quantifier over whole numbers (or truths) replaced by its instances.

    It means the same for states whose logs and epochs stay below the last number, since claims about an offset or an
    epoch say nothing beyond the end of the logs and the last epoch.
    """
    done: dict[int, z3.ExprRef] = {}

    def replaced(term: z3.ExprRef) -> z3.ExprRef:
        known = done.get(term.get_id())
        if known is not None:
            return known
        result: z3.ExprRef = term
        if z3.is_quantifier(term):
            result = _instances(term)
        elif z3.is_app(term) and term.num_args() > 0:
            children = [replaced(child) for child in term.children()]
            if any(not new.eq(old) for new, old in zip(children, term.children(), strict=True)):
                result = _rebuilt(term, children)
        done[term.get_id()] = result
        return result

    def _instances(term: z3.QuantifierRef) -> z3.ExprRef:
        domains = [
            [z3.BoolVal(value) for value in (False, True)]
            if term.var_sort(index) == z3.BoolSort()
            else [z3.IntVal(value) for value in numbers]
            for index in range(term.num_vars())
        ]
        bodies = [replaced(z3.simplify(z3.substitute_vars(term.body(), *reversed(values)))) for values in product(*domains)]
        return z3.And(*bodies) if term.is_forall() else z3.Or(*bodies)

    return replaced(formula)


def _rebuilt(term: z3.ExprRef, children: list[z3.ExprRef]) -> z3.ExprRef:
    if z3.is_and(term):
        return z3.And(*children)
    return z3.Or(*children) if z3.is_or(term) else term.decl()(*children)
