"""Proofs from finitely many instances of the invariant: the instances for the values that a claim speaks of.

A claim speaks of certain offsets, epochs, partition epochs and messages. A conjunct is about all values of a kind; here Z3
only gets its instances for the values in the claim. Without quantifiers Z3 finds an answer, and soon. What follows from the
instances follows from the whole invariant.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, product
from math import prod
from typing import Generic, NamedTuple, TypeVar

import z3

from kspec.proofs.effort import Effort
from kspec.proofs.symbolic.log import FRESH_FUNCTIONS
from kspec.proofs.symbolic.state import UnknownSlotError
from kspec.proofs.symbolic.values import Kind
from kspec.spec.values import BrokerId

About = Iterable[tuple[Kind, z3.ExprRef]]
"""Terms with their kinds."""

MOST_INSTANCES = 6_000
"""The number of instances of the invariant that a claim is first tried with."""

MOST_OF_ONE, MOST_OF_ONE_TRIED = 150, 2_000
"""A conjunct with more instances than this is only instantiated for what the claim itself is about."""

MOST_ROUNDS = 20
"""The most rounds in which instances that Z3's model violates are added."""


Result = TypeVar("Result")


class ByTerm(Generic[Result]):
    """A function of a term that remembers its results, because it is often called with the same terms."""

    def __init__(self, function: Callable[[z3.ExprRef], Result]) -> None:
        self.function = function
        self.known: dict[int, tuple[z3.ExprRef, Result]] = {}
        """Results, with the terms: a term's id is unique only as long as the term is kept."""

    def __call__(self, term: z3.ExprRef) -> Result:
        key = term.get_id()
        if key not in self.known:
            self.known[key] = term, self.function(term)
        return self.known[key][1]


class CallArguments(NamedTuple):
    """The arguments of functions in a formula."""

    ground: tuple[tuple[Kind, z3.ExprRef], ...]
    bound: tuple[tuple[Kind, z3.ExprRef, frozenset[int]], ...]
    """Terms with variables that are bound outside of the formula, with the indices of these variables."""


class General(NamedTuple):
    """A formula about any numbers of certain kinds. `label`: the label that guards its instances, if any."""

    formula: z3.QuantifierRef
    kinds: tuple[Kind | None, ...]
    asked: CallArguments
    nested: bool
    """Whether its body contains more quantifiers."""

    label: z3.BoolRef | None = None

    def told(self, instance: z3.BoolRef) -> z3.BoolRef:
        """An instance under its label."""
        return instance if self.label is None else z3.Implies(self.label, instance)


TermsByKind = dict[Kind, dict[int, z3.ExprRef]]
"""Terms by kind and id."""


class Terms:
    """The ground terms of each kind in some formulas, in circles: the first has those that the claim itself is about."""

    def __init__(self, core: About) -> None:
        self.circles: list[TermsByKind] = [{}]
        for kind, term in core:
            self.add(kind, term)

    def wider(self) -> None:
        """Begin a wider circle: the terms added from now on are further away from the claim."""
        self.circles.append({kind: dict(known) for kind, known in self.circles[-1].items()})

    def add(self, kind: Kind, term: z3.ExprRef) -> None:
        """Add a term; for an if-then-else, both of its values."""
        for value in _values(term):
            self.circles[-1].setdefault(kind, {})[value.get_id()] = value

    def told_apart(self, model: z3.ModelRef) -> "Terms":
        """The terms, with only one of those that are the same number in a model."""
        apart = Terms(())
        apart.circles = [
            {kind: _told_apart(known.values(), model) for kind, known in circle.items()} for circle in self.circles
        ]
        return apart

    def choices(self, kinds: Sequence[Kind | None], most: int) -> list[list[z3.ExprRef]]:
        """The terms for the variables of a formula, from the widest circle that does not give too many instances."""
        for circle in reversed(self.circles):
            found = [list(circle.get(kind, {}).values()) for kind in kinds]
            if prod(map(len, found)) <= most:
                break
        return found


def _told_apart(terms: Iterable[z3.ExprRef], model: z3.ModelRef) -> dict[int, z3.ExprRef]:
    by_value: dict[int, z3.ExprRef] = {}
    for term in terms:
        by_value.setdefault(model.eval(term, model_completion=True).get_id(), term)
    return {term.get_id(): term for term in by_value.values()}


@ByTerm
def _values(term: z3.ExprRef) -> tuple[z3.ExprRef, ...]:
    """The simplified values that a term may have, without numbers below 0, which mean nothing."""
    if z3.is_app_of(term, z3.Z3_OP_ITE):
        return *_values(term.arg(1)), *_values(term.arg(2))
    simple = z3.simplify(term)
    return () if z3.is_int_value(simple) and simple.as_long() < 0 else (simple,)


@ByTerm
def _variables_in(term: z3.ExprRef) -> frozenset[int] | None:
    """The indices of the variables in a term that are bound outside of it; `None` if it contains a quantifier."""
    if z3.is_var(term):
        return frozenset([z3.get_var_index(term)])
    if z3.is_quantifier(term):
        return None
    found: frozenset[int] = frozenset()
    for child in term.children():
        inside = _variables_in(child)
        if inside is None:
            return None
        found |= inside
    return found


@ByTerm
def has_quantifier(term: z3.ExprRef) -> bool:
    """Whether a term contains a quantifier."""
    return z3.is_quantifier(term) or any(has_quantifier(child) for child in term.children())


class Kinds:
    """The kinds of terms in formulas. `variables` and `functions`: the kinds of variables and of arguments, by name."""

    def __init__(self, variables: Mapping[str, Kind], functions: Mapping[str, tuple[Kind, ...]]) -> None:
        self.variables, self.functions = variables, functions
        self.asked_in = ByTerm(self._asked_in)
        self.general = ByTerm(self._general)

    def of_arguments(self, term: z3.ExprRef) -> tuple[Kind, ...]:
        """The kinds of a function's arguments.

        A function with a mark in its name is not part of the state: it is fresh, or a Skolem function of Z3.
        """
        declaration = term.decl()
        if declaration.kind() != z3.Z3_OP_UNINTERPRETED or declaration.arity() == 0:
            return ()
        name, mark, _ = declaration.name().partition("!")
        if mark:
            return FRESH_FUNCTIONS.get(name, ())
        if name not in self.functions:
            raise UnknownSlotError(f"no slot of the model is made up of {name!r}")
        return self.functions[name]

    def _asked_in(self, formula: z3.ExprRef) -> CallArguments:
        """The arguments of functions in a formula, but not inside its quantifiers."""
        seen: set[int] = set()
        ground, bound = [], []
        waiting = [formula]
        while waiting:
            term = waiting.pop()
            if term.get_id() in seen or not z3.is_app(term):
                continue
            seen.add(term.get_id())
            children = term.children()
            for kind, argument in zip(self.of_arguments(term), children, strict=False):
                variables = _variables_in(argument)
                if kind is BrokerId or variables is None:
                    continue
                if variables:
                    bound.append((kind, argument, variables))
                else:
                    ground.append((kind, argument))
            waiting += children
        return CallArguments(tuple(ground), tuple(bound))

    def _general(self, formula: z3.QuantifierRef) -> General:
        """A quantifier with the kinds of its variables: by their names, else by the functions that they are arguments of."""
        count, asked = formula.num_vars(), self.asked_in(formula.body())
        kinds: list[Kind | None] = [self.variables.get(formula.var_name(index)) for index in range(count)]
        for kind, argument, variables in asked.bound:
            if z3.is_var(argument) or z3.is_add(argument) or z3.is_sub(argument):
                for index in variables:
                    position = count - 1 - index
                    kinds[position] = kinds[position] or kind
        return General(formula, tuple(kinds), asked, has_quantifier(formula.body()))


class Instances:
    """The hypotheses of a proof, ready for proofs by instances.

    A hypothesis may have a label. Then the `core` of a proof is the labels of the hypotheses that it rests on.
    """

    def __init__(
        self,
        hypotheses: Iterable[z3.BoolRef],
        kinds: Kinds,
        labelled: Iterable[tuple[z3.BoolRef, z3.BoolRef]] = (),
    ) -> None:
        known, under = list(hypotheses), list(labelled)
        self._asked_in, self._general = kinds.asked_in, kinds.general
        self._normal = ByTerm(_normal)
        self.labels = list({label.get_id(): label for label, _ in under}.values())
        self.core: frozenset[str] = frozenset()
        self.ground = [formula for formula in known if not z3.is_quantifier(formula)]
        self.ground += [z3.Implies(label, formula) for label, formula in under if not z3.is_quantifier(formula)]
        self.general = [self._general(formula) for formula in known if z3.is_quantifier(formula)]
        self.general += [
            self._general(formula)._replace(label=label) for label, formula in under if z3.is_quantifier(formula)
        ]
        self._made: dict[tuple[int, ...], tuple[z3.BoolRef, Sequence[z3.ExprRef]]] = {}
        """Instances, with the terms that they are about, so that the ids of these stay unique."""

    def attempts(self, claim: Sequence[z3.BoolRef], core: About, seeds: About, effort: Effort, each: int) -> Iterator[bool]:
        """Whether the formulas of a claim, its goal negated, contradict the hypotheses; each attempt has more instances.

        `core` are the terms that the claim is about, and `seeds` are other terms to begin with. `effort` is for all
        attempts, and `each` question gets so many units of it.
        """
        claimed = [part for formula in claim for part in self._normal(formula)]
        terms = Terms(core)
        terms.wider()
        for kind, term in [*seeds, *(asked for formula in claimed for asked in self._asked_in(formula).ground)]:
            terms.add(kind, term)
        first = self._first(terms)
        told = [known.told(instance) for known in first for instance in self._instances(known, terms, MOST_OF_ONE)]
        told += [self._spelled_out(formula, terms, MOST_OF_ONE) for formula in claimed]
        solver = z3.SimpleSolver()
        solver.add(*self.ground, *told)
        yield self.contradicts(solver, effort.part(each))
        quantified = [known for formula in claimed for known in self._quantified_in(formula)]
        terms.wider()
        for kind, term in [asked for formula in self.ground for asked in self._asked_in(formula).ground]:
            terms.add(kind, term)
        for known in (*self.general, *quantified):
            for kind, term in _asked_of(known, terms, MOST_OF_ONE):
                terms.add(kind, term)
        for _ in range(MOST_ROUNDS):
            if effort.part(each).ask(solver, *self.labels) != z3.sat:
                break
            model = solver.model()
            apart = terms.told_apart(model)
            possible = [
                known.told(instance)
                for known in self.general
                for instance in self._instances(known, apart, MOST_OF_ONE_TRIED)
            ]
            possible += [self._spelled_out(formula, apart, MOST_OF_ONE_TRIED) for formula in claimed]
            violated = [instance for instance in possible if z3.is_false(model.eval(instance))]
            if not violated:
                break
            solver.add(*violated)
        yield self.contradicts(solver, effort.part(each))

    def contradicts(self, solver: z3.Solver, effort: Effort) -> bool:
        """Whether the formulas in a solver contradict each other; if so, `core` gets the labels that this rests on."""
        if self.labels:
            solver.set("core.minimize", True)
        found = bool(effort.ask(solver, *self.labels) == z3.unsat)
        if found and self.labels:
            self.core = frozenset(map(str, solver.unsat_core()))
        return found

    def _first(self, terms: Terms) -> list[General]:
        """The hypotheses to begin with: those with the fewest instances. The others wait until a model violates them."""
        counted = [(prod(map(len, terms.choices(known.kinds, MOST_OF_ONE))), known) for known in self.general]
        counted.sort(key=lambda pair: pair[0])
        totals = accumulate(count for count, _ in counted)
        return [known for (_, known), total in zip(counted, totals, strict=True) if total <= MOST_INSTANCES]

    def _instances(self, known: General, terms: Terms, most: int) -> Iterator[z3.BoolRef]:
        body, name = known.formula.body(), known.formula.get_id()
        for chosen in product(*terms.choices(known.kinds, most)):
            key = (name, *(term.get_id() for term in chosen))
            if key not in self._made:
                self._made[key] = z3.substitute_vars(body, *reversed(chosen)), (known.formula, *chosen)
            instance = self._made[key][0]
            yield self._spelled_out(instance, terms, most) if known.nested else instance

    def _spelled_out(self, formula: z3.BoolRef, terms: Terms, most: int) -> z3.BoolRef:
        """A formula in negation normal form, with instances in place of each quantifier."""
        if not has_quantifier(formula):
            return formula
        if z3.is_quantifier(formula):
            return z3.And(list(self._instances(self._general(formula), terms, most)))
        if z3.is_and(formula) or z3.is_or(formula):
            children = [self._spelled_out(child, terms, most) for child in formula.children()]
            return z3.And(children) if z3.is_and(formula) else z3.Or(children)
        return formula

    def _quantified_in(self, formula: z3.ExprRef) -> Iterator[General]:
        if z3.is_quantifier(formula):
            yield self._general(formula)
        elif has_quantifier(formula):
            for child in formula.children():
                yield from self._quantified_in(child)


def _asked_of(known: General, terms: Terms, most: int) -> list[tuple[Kind, z3.ExprRef]]:
    """The arguments of functions in the instances of a formula."""
    choices = terms.choices(known.kinds, most)
    if not all(choices):
        return []
    found = list(known.asked.ground)
    for kind, argument, variables in known.asked.bound:
        if z3.is_var(argument):
            continue
        count = len(choices)
        some = [choice if count - 1 - position in variables else choice[:1] for position, choice in enumerate(choices)]
        found += [(kind, z3.substitute_vars(argument, *reversed(chosen))) for chosen in product(*some)]
    return found


def _normal(formula: z3.ExprRef) -> list[z3.BoolRef]:
    """A formula in negation normal form, with Skolem functions in place of existential quantifiers."""
    goal = z3.Goal()
    goal.add(formula)
    (after,) = z3.Tactic("nnf")(goal)
    return list(after)
