"""Proofs from finitely many instances of the invariant: what it says of that of which a claim speaks.

A claim speaks of certain offsets, epochs, partition epochs and messages. A conjunct is about any of a kind; here Z3 is only
given what it says of those. Without quantifiers Z3 decides, and soon. What follows from instances follows from the whole.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import z3

Kind = str
"""What a number is about: an offset, an epoch, a version, a fetch or a proposal."""

About = Iterable[tuple[Kind, z3.ExprRef]]
"""Terms with their kinds."""

ARGUMENTS: Mapping[str, tuple[Kind, ...]] = {
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

MOST_INSTANCES = 6_000
"""With more instances of the invariant a claim is left to other ways."""

MOST_OF_ONE = (150, 600)
"""With more instances, in each round, a conjunct is only asked about what the claim itself is about."""


class Quantified(NamedTuple):
    """A formula about any numbers of certain kinds."""

    formula: z3.QuantifierRef
    kinds: tuple[Kind | None, ...]


class Terms:
    """The ground terms of each kind in some formulas; `core` has those that a claim itself is about."""

    def __init__(self, core: About, seeds: About) -> None:
        self.every: dict[Kind, dict[int, z3.ExprRef]] = {}
        self.core: dict[Kind, dict[int, z3.ExprRef]] = {}
        self._seen: dict[int, z3.ExprRef] = {}
        for kind, term in core:
            self._add(self.core, kind, term)
            self._add(self.every, kind, term)
        for kind, term in seeds:
            self._add(self.every, kind, term)

    def _add(self, found: dict[Kind, dict[int, z3.ExprRef]], kind: Kind, term: z3.ExprRef) -> None:
        if z3.is_app_of(term, z3.Z3_OP_ITE):
            self._add(found, kind, term.arg(1))
            self._add(found, kind, term.arg(2))
            return
        term = z3.simplify(term)
        if not (z3.is_int_value(term) and term.as_long() < 0):
            found.setdefault(kind, {})[term.get_id()] = term

    def collect(self, formula: z3.ExprRef) -> None:
        """Find what functions are asked about in a formula."""
        waiting = [formula]
        while waiting:
            term = waiting.pop()
            if term.get_id() in self._seen:
                continue
            self._seen[term.get_id()] = term
            if z3.is_quantifier(term):
                waiting.append(term.body())
            elif z3.is_app(term):
                for kind, argument in zip(kinds_of_arguments(term), term.children(), strict=False):
                    if kind != "broker" and is_ground(argument):
                        self._add(self.every, kind, argument)
                waiting += term.children()

    def choices(self, kinds: Sequence[Kind | None], most: int) -> list[list[z3.ExprRef]]:
        """What the variables of a formula may be."""
        wide = [list(self.every.get(kind or "", {}).values()) for kind in kinds]
        if prod(map(len, wide)) <= most:
            return wide
        return [list(self.core.get(kind or "", {}).values()) for kind in kinds]


def kinds_of_arguments(term: z3.ExprRef) -> tuple[Kind, ...]:
    """Of which kind the arguments of a function are."""
    declaration = term.decl()
    if declaration.kind() != z3.Z3_OP_UNINTERPRETED:
        return ()
    name = declaration.name()
    return ARGUMENTS.get(name.split("!", 1)[0] if "!" in name else name.split(".", 1)[0].split(" ", 1)[0], ())


def is_ground(term: z3.ExprRef) -> bool:
    """Whether nothing in a term is bound by a quantifier."""
    return not z3.is_var(term) and not z3.is_quantifier(term) and all(is_ground(child) for child in term.children())


def has_quantifier(term: z3.ExprRef) -> bool:
    """Whether anything in a term is quantified."""
    return z3.is_quantifier(term) or any(has_quantifier(child) for child in term.children())


def quantified(formula: z3.QuantifierRef, named: Mapping[str, Kind]) -> Quantified:
    """A quantifier with the kinds of its variables: by their names, else by what they are arguments of."""
    count = formula.num_vars()
    kinds: list[Kind | None] = [named.get(formula.var_name(index)) for index in range(count)][::-1]
    seen: set[int] = set()

    def look(term: z3.ExprRef) -> None:
        if term.get_id() in seen or z3.is_quantifier(term):
            return
        seen.add(term.get_id())
        for position, argument in enumerate(term.children()):
            known = kinds_of_arguments(term) if z3.is_app(term) else ()
            if position < len(known) and known[position] != "broker":
                for variable in _variables_in(argument):
                    kinds[variable] = kinds[variable] or known[position]
            look(argument)

    look(formula.body())
    return Quantified(formula, tuple(kinds[::-1]))


def _variables_in(term: z3.ExprRef) -> list[int]:
    """The bound variables in an argument that is one, or a few more or less."""
    if z3.is_var(term):
        return [z3.get_var_index(term)]
    if z3.is_add(term) or z3.is_sub(term):
        return [index for child in term.children() for index in _variables_in(child)]
    return []


class Instances:
    """The hypotheses of an induction, ready for proofs by instances. `named`: kinds of variables by name."""

    def __init__(self, hypotheses: Iterable[z3.BoolRef], named: Mapping[str, Kind]) -> None:
        self.named = named
        known = list(hypotheses)
        self.ground = [formula for formula in known if not z3.is_quantifier(formula)]
        self.general = [quantified(formula, named) for formula in known if z3.is_quantifier(formula)]
        self._made: dict[tuple[int, ...], tuple[z3.BoolRef, Sequence[z3.ExprRef]]] = {}
        """Instances, with what they are about: a term's id is its own only as long as the term is kept."""

    def attempts(self, claim: Sequence[z3.BoolRef], core: About, seeds: About, milliseconds: int) -> Iterator[bool]:
        """Whether the formulas of a claim, its goal negated, contradict the hypotheses: by more instances each time."""
        claimed = _normal(claim)
        terms = Terms(core, seeds)
        for formula in claimed:
            terms.collect(formula)
        for most in MOST_OF_ONE:
            if sum(prod(map(len, terms.choices(general.kinds, most))) for general in self.general) > MOST_INSTANCES:
                return
            told = [instance for general in self.general for instance in self._instances(general, terms, most)]
            told += [self._spelled_out(formula, terms, most) for formula in claimed]
            solver = z3.SolverFor("QF_UFLIA")
            solver.set("timeout", milliseconds)
            solver.add(*self.ground, *told)
            yield bool(solver.check() == z3.unsat)
            for formula in told:
                terms.collect(formula)

    def _instances(self, general: Quantified, terms: Terms, most: int) -> Iterator[z3.BoolRef]:
        body = general.formula.body()
        for chosen in product(*terms.choices(general.kinds, most)):
            key = (general.formula.get_id(), *(term.get_id() for term in chosen))
            if key not in self._made:
                self._made[key] = z3.substitute_vars(body, *reversed(chosen)), (general.formula, *chosen)
            instance = self._made[key][0]
            yield self._spelled_out(instance, terms, most) if has_quantifier(instance) else instance

    def _spelled_out(self, formula: z3.BoolRef, terms: Terms, most: int) -> z3.BoolRef:
        """A formula in negation normal form, with instances in place of each quantifier."""
        if z3.is_quantifier(formula):
            return z3.And(list(self._instances(quantified(formula, self.named), terms, most)))
        if z3.is_and(formula) or z3.is_or(formula):
            children = [self._spelled_out(child, terms, most) for child in formula.children()]
            return z3.And(children) if z3.is_and(formula) else z3.Or(children)
        return formula


def _normal(formulas: Iterable[z3.BoolRef]) -> list[z3.BoolRef]:
    """Formulas in negation normal form, with names for what exists."""
    goal = z3.Goal()
    goal.add(*formulas)
    (after,) = z3.Tactic("nnf")(goal)
    return list(after)
