"""Proofs from finitely many instances of the invariant: those about what a claim speaks of.

A claim speaks of certain offsets, epochs, partition epochs and messages. A conjunct is about any; here Z3 is only given what
it says of those. Without quantifiers Z3 decides, and soon. What follows from instances follows from the invariant.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod

import z3

MOST_INSTANCES = 6000
"""With more instances of the invariant a claim is left to other ways."""

MOST_OF_ONE = 150
"""With more instances a conjunct is only asked about what the claim itself is about."""

KINDS: Mapping[str, tuple[str | None, ...]] = {
    "log": ("broker", "offset"),
    "ledger": ("epoch", "offset"),
    "term": ("epoch",),
    "reign": ("epoch", "broker"),
    "fetched": ("epoch",),
    "decision": ("version", "broker"),
    "fetch": ("fetch",),
    "reply": ("fetch",),
    "proposed": ("proposal", "broker"),
    "verdict": ("proposal", "broker"),
    "named epoch": ("epoch",),
    "its end": ("epoch",),
}
"""Of which kind the arguments of a slot's functions are, by the first word of the slot's name."""


NAMED: dict[str, str] = {}
"""Kinds of quantified variables by name."""


def family(declaration: z3.FuncDeclRef) -> str:
    """To which slot a function belongs."""
    name = declaration.name()
    if "!" in name:
        return name.split("!", 1)[0]
    return name.split(".", 1)[0].split(" ", 1)[0]


class Terms:
    """The ground terms of each kind in some formulas, in the order in which they were found."""

    def __init__(self) -> None:
        self.found: dict[str, dict[int, z3.ExprRef]] = {}
        self.core: dict[str, dict[int, z3.ExprRef]] = {}
        self.seen: set[int] = set()

    def of(self, kind: str) -> list[z3.ExprRef]:
        return list(self.found.get(kind, {}).values())

    def domains(self, kinds: Sequence[str | None]) -> list[list[z3.ExprRef]]:
        """What the variables of a conjunct may be."""
        every = [self.of(kind) if kind else [] for kind in kinds]
        if prod(map(len, every)) <= MOST_OF_ONE:
            return every
        return [list(self.core.get(kind or "", {}).values()) for kind in kinds]

    def add(self, kind: str, term: z3.ExprRef) -> None:
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            self.add(kind, term.arg(1))
            self.add(kind, term.arg(2))
            return
        term = z3.simplify(term)
        if z3.is_int_value(term) and term.as_long() < 0:
            return
        self.found.setdefault(kind, {})[term.get_id()] = term

    def collect(self, formula: z3.ExprRef) -> None:
        waiting = [formula]
        while waiting:
            term = waiting.pop()
            if term.get_id() in self.seen:
                continue
            self.seen.add(term.get_id())
            if z3.is_quantifier(term):
                waiting.append(term.body())
                continue
            if z3.is_app(term) and term.num_args() and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
                kinds = KINDS.get(family(term.decl()), ())
                for kind, argument in zip(kinds, term.children(), strict=False):
                    if kind is not None and kind != "broker" and is_ground(argument):
                        self.add(kind, argument)
            waiting += term.children()


def is_ground(term: z3.ExprRef) -> bool:
    """Whether nothing in a term is bound by a quantifier."""
    if z3.is_var(term) or z3.is_quantifier(term):
        return False
    return all(is_ground(child) for child in term.children())


def kinds_of(quantifier: z3.QuantifierRef) -> list[str | None]:
    """Of which kind the variables of a quantifier are: by what they are arguments of."""
    kinds: list[str | None] = [NAMED.get(quantifier.var_name(index)) for index in range(quantifier.num_vars())][::-1]
    seen: set[int] = set()

    def look(term: z3.ExprRef) -> None:
        if term.get_id() in seen or z3.is_quantifier(term):
            return
        seen.add(term.get_id())
        if z3.is_app(term):
            named = KINDS.get(family(term.decl()), ()) if term.decl().kind() == z3.Z3_OP_UNINTERPRETED else ()
            for position, argument in enumerate(term.children()):
                kind = named[position] if position < len(named) else None
                for variable in variables_in(argument):
                    if kind is not None and kind != "broker":
                        kinds[variable] = kinds[variable] or kind
                look(argument)

    look(quantifier.body())
    return kinds[::-1]


def variables_in(term: z3.ExprRef) -> list[int]:
    """The bound variables in an argument that is one, or one more or less."""
    if z3.is_var(term):
        return [z3.get_var_index(term)]
    if z3.is_add(term) or z3.is_sub(term):
        return [index for child in term.children() for index in variables_in(child)]
    return []


def without_quantifiers(formula: z3.BoolRef, terms: Terms) -> z3.BoolRef:
    """A formula in negation normal form with each quantifier replaced by its instances."""
    if z3.is_quantifier(formula):
        return z3.And(list(instances_of(formula, terms)))
    if z3.is_and(formula) or z3.is_or(formula):
        children = [without_quantifiers(child, terms) for child in formula.children()]
        return z3.And(children) if z3.is_and(formula) else z3.Or(children)
    return formula


def instances_of(quantifier: z3.QuantifierRef, terms: Terms) -> Iterator[z3.BoolRef]:
    """What a quantified formula says of these terms."""
    body = quantifier.body()
    for chosen in product(*terms.domains(kinds_of(quantifier))):
        instance = z3.substitute_vars(body, *reversed(chosen))
        yield without_quantifiers(instance, terms) if has_quantifier(instance) else instance


def has_quantifier(term: z3.ExprRef) -> bool:
    if z3.is_quantifier(term):
        return True
    return any(has_quantifier(child) for child in term.children())


def normal(formulas: Iterable[z3.BoolRef]) -> list[z3.BoolRef]:
    """Formulas in negation normal form, with names for what exists."""
    goal = z3.Goal()
    goal.add(*formulas)
    (after,) = z3.Tactic("nnf")(goal)
    return list(after)


def follows(
    hypotheses: Sequence[z3.BoolRef],
    claim: Sequence[z3.BoolRef],
    milliseconds: int,
    rounds: int = 1,
    about: Iterable[tuple[str, z3.ExprRef]] = (),
) -> bool:
    """Whether the claim (its negation among its formulas) contradicts the hypotheses, by instances of these."""
    terms = Terms()
    for kind, term in about:
        terms.add(kind, term)
        terms.core.setdefault(kind, {})[term.get_id()] = term
    claimed = normal(claim)
    for formula in claimed:
        terms.collect(formula)
    ground = [formula for formula in hypotheses if not z3.is_quantifier(formula)]
    quantified = [formula for formula in hypotheses if z3.is_quantifier(formula)]
    known: list[z3.BoolRef] = []
    of_kind = [kinds_of(formula) for formula in quantified]
    for _ in range(rounds):
        follows.terms, follows.count = terms, sum(prod(map(len, terms.domains(kinds))) for kinds in of_kind)
        if follows.count > MOST_INSTANCES:
            return False
        known = [instance for formula in quantified for instance in instances_of(formula, terms)]
        known += [without_quantifiers(formula, terms) for formula in claimed]
        if rounds > 1:
            for formula in known:
                terms.collect(formula)
    solver = z3.SolverFor("QF_UFLIA")
    solver.set("timeout", milliseconds)
    solver.add(*ground, *known)
    return bool(solver.check() == z3.unsat)
