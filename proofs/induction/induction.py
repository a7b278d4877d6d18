"""Induction: the invariant holds initially, every action keeps it, and the properties follow from it.

Each pair of an action and a conjunct is an *obligation*: Z3 is asked for a state in which the invariant holds and from
which the action leads to a state in which the conjunct does not. That there is none is a proof.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import z3

from model_check.core.model import Action, Local
from proofs.effort import Effort, StoppedByClockError
from proofs.induction.invariant import Conjunct, Instance, StateView, Theorem, instances
from proofs.settings import ProofSettings
from proofs.symbolic.relation import SymbolicStep, as_formula, step
from proofs.symbolic.state import SymbolicState, initial_state, shapes_of, unknown_state
from proofs.symbolic.values import Brokers, Name, conjunction, negation, truth

Status = Literal["proved", "refuted", "unknown", "stopped"]
"""What became of an obligation. `stopped`: by the clock, so that nothing is known of what Z3 would have answered."""

GRAVEST_FIRST: tuple[Status, ...] = ("refuted", "stopped", "unknown", "proved")
"""What is said of several obligations: the first of these that one of them is."""

ATTEMPTS = (5_000_000, 5_000_000, 10_000_000)
"""How much Z3 may do in each of the first attempts at a proof, in its own units; in the last one whatever is left.

A counterexample is looked for before the last.
"""

PATHS = "(the ways through the rules)"
"""In place of a conjunct where the clock stopped the evaluation of an action, before there were any obligations."""

INIT, PROPERTIES = "Init", "Property"
"""What stands in the place of an action for the obligations that are about none."""


class Obligation(NamedTuple):
    """What became of one obligation; `paths` counts the ways through the rules that it is about."""

    action: str
    conjunct: str
    status: Status
    seconds: float
    paths: int


class Claim(NamedTuple):
    """Something to be proved under the invariant: that `goal` follows from `premises`. `conjunct` names it."""

    action: str
    conjunct: str
    premises: tuple[z3.BoolRef, ...]
    goal: z3.BoolRef
    paths: int
    brokers: tuple[z3.ExprRef, ...] = ()
    numbers: tuple[z3.ExprRef, ...] = ()
    """Of which brokers, and offsets or epochs, the goal speaks: any."""


class Induction:
    """A theorem for a number of replicas, ready to be proved obligation by obligation."""

    def __init__(self, theorem: Theorem, settings: ProofSettings) -> None:
        self.theorem, self.settings = theorem, settings
        self.conjuncts = [conjunct for conjunct in theorem.conjuncts if conjunct.name not in settings.without]
        self.brokers = self.all_brokers()
        self.model = theorem.model(settings.replicas, settings.mutant)
        self.actions = self._numbered(self.acting(self.model.actions))
        self.shapes = shapes_of(self.model, self.brokers)
        self.before = unknown_state(self.model, self.shapes)
        self.premises = [truth(premise) for premise in theorem.premises]
        self.hypotheses = [
            (conjunct, instance) for conjunct in self.conjuncts for instance in self.instances(conjunct, self.before)
        ]
        self.known = {(conjunct.name, instance.brokers): instance.body for conjunct, instance in self.hypotheses}

    def all_brokers(self) -> Brokers:
        """The brokers that the theorem is about."""
        return Brokers(range(1, self.settings.number_of_replicas + 1))

    def acting(self, actions: Sequence[Action]) -> Sequence[Action]:
        """The actions of a model that have to be looked at."""
        return actions

    def view(self, state: SymbolicState) -> StateView:
        """A state as conjuncts read it."""
        return self.theorem.view(state.at, self.brokers)

    def instances(self, conjunct: Conjunct, state: SymbolicState) -> list[Instance]:
        """A conjunct of `state`, for each choice of brokers."""
        return list(instances(conjunct, self.view(state), self.brokers))

    def tasks(self) -> list[str]:
        """What can be worked on separately: the start, each action, what the theorem adds, and the properties."""
        extra = [PROPERTIES] if self.theorem.properties or self.theorem.consequences else []
        return [INIT, *self.actions, *(name for name, _ in self.theorem.lemmas), *extra]

    def _numbered(self, actions: Sequence[Action]) -> dict[str, Action]:
        """Actions by label; those that share one are told apart by a number."""
        labels: dict[str, Action] = {}
        for action in actions:
            same = sum(1 for known in labels.values() if known.label == action.label)
            labels[f"{action.label} #{same + 1}" if same else action.label] = action
        return labels

    def claims(self, task: str) -> Iterator[Claim]:
        """The obligations of a task."""
        lemmas = dict(self.theorem.lemmas)
        if task == INIT:
            yield from self._initial_claims()
        elif task == PROPERTIES:
            yield from self.property_claims()
        elif task in lemmas:
            yield from lemmas[task](self)
        else:
            yield from self.action_claims(task, self.actions[task])

    def _initial_claims(self) -> Iterator[Claim]:
        start = initial_state(self.model, self.shapes)
        for conjunct in self.conjuncts:
            goal = conjunction([instance.body for instance in self.instances(conjunct, start)])
            yield Claim(INIT, conjunct.name, (), goal, 1)

    def step(self, action: Action) -> SymbolicStep:
        """The relation of an action, from any state of which what is quantifier-free in the invariant is known."""
        return step(action, self.before, self.pruning(action), self.guard)

    def guard(self, local: Local, state: SymbolicState, solver: z3.Solver | None) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """A guard as a formula; the laws that it rests on; and how many paths it has."""
        return as_formula(local, state, solver)

    def term(self, local: Local) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """The same of a property's term."""
        return as_formula(local, self.before, self.pruning())

    def pruning(self, action: Action | None = None) -> z3.Solver:
        """A solver that rules paths out: it knows what the invariant says without quantifiers, and of the arguments."""
        solver = z3.Solver()
        solver.add(*self.premises)
        names = [name.term for name in names_in(action)] if action is not None else []
        for _, instance in self.hypotheses:
            if not instance.variables:
                solver.add(instance.body)
            elif len(instance.variables) == 1 and self.brokers.ids is not None:
                solver.add(*(z3.substitute(instance.body, (instance.variables[0], name)) for name in names))
        return solver

    def action_claims(self, label: str, action: Action) -> Iterator[Claim]:
        """That an action keeps each conjunct. Instances that it does not touch are left out: they hold already."""
        taken = self.step(action)
        for conjunct in self.conjuncts:
            changed = [
                instance.body
                for instance in self.instances(conjunct, taken.after)
                if not instance.body.eq(self.known[conjunct.name, instance.brokers])
            ]
            goal, about = conjunction(changed), conjunct.variables
            yield Claim(label, conjunct.name, (taken.enabled, taken.facts), goal, taken.paths, *about)

    def property_claims(self) -> Iterator[Claim]:
        for conjunct in self.theorem.consequences:
            goal = conjunction([instance.body for instance in self.instances(conjunct, self.before)])
            yield Claim(PROPERTIES, conjunct.name, (), goal, 1)
        for name in self.theorem.properties:
            prop = self.model.property_named(name)
            assert prop is not None, f"model {self.model.name} has no property {name}"
            terms = [self.term(term) for term in prop.terms]
            yield Claim(
                PROPERTIES,
                name,
                tuple(facts for _, facts, _ in terms),
                conjunction([claim for claim, _, _ in terms]),
                sum(paths for _, _, paths in terms),
            )

    def solver(self) -> z3.Solver:
        """A solver that knows the invariant of the state before."""
        solver = z3.Solver()
        solver.set("random_seed", self.settings.seed)
        solver.add(*self.premises)
        solver.add(*(instance.closed() for _, instance in self.hypotheses))
        return solver

    def prove(
        self, task: str, on_failure: Callable[[Claim], bool] = lambda claim: False, only: str | None = None
    ) -> list[Obligation]:
        """Ask Z3 for each obligation of a task, or for those about one conjunct `only`.

        Where Z3 finds no proof, `on_failure` says whether it has found a counterexample.
        """
        solver = z3.Solver() if task == INIT else self.solver()
        obligations = []
        started = time.perf_counter()
        try:
            for claim in (claim for claim in self.claims(task) if only in (None, claim.conjunct)):
                started = time.perf_counter()
                status = self._status(solver, claim, on_failure)
                seconds = time.perf_counter() - started
                obligations.append(Obligation(claim.action, claim.conjunct, status, seconds, claim.paths))
        except StoppedByClockError:
            obligations.append(Obligation(task, PATHS, "stopped", time.perf_counter() - started, 0))
        return obligations

    def _status(self, solver: z3.Solver, claim: Claim, on_failure: Callable[[Claim], bool]) -> Status:
        try:
            return self.prove_claim(solver, claim, on_failure)
        except StoppedByClockError:
            return "stopped"

    def prove_claim(self, solver: z3.Solver, claim: Claim, on_failure: Callable[[Claim], bool]) -> Status:
        """Ask Z3 for a proof of one claim; `solver` knows the invariant, and is left as it was."""
        solver.push()
        try:
            solver.add(*claim.premises, negation(claim.goal))
            if self.settings.export is not None:
                export(self.settings, claim, solver)
            return "proved" if z3.is_true(claim.goal) else self._answer(solver, claim, on_failure)
        finally:
            solver.pop()

    def effort(self) -> Effort:
        """How much may be done for one obligation."""
        return Effort(self.settings.effort, self.settings.time_limit)

    def _answer(self, solver: z3.Solver, claim: Claim, on_failure: Callable[[Claim], bool]) -> Status:
        """Proofs are found soon, or not at all by one way of searching: then Z3 starts anew with another seed.

        After a few attempts a counterexample is looked for, and only then goes the rest of the effort.
        """
        effort, asked = self.effort(), solver
        for attempt, units in enumerate(ATTEMPTS, start=1):
            if effort.part(units).ask(asked) == z3.unsat:
                return "proved"
            asked = self._fresh_solver(solver, attempt)
            if effort.left <= 0:
                break
        if self.settings.search and on_failure(claim):
            return "refuted"
        return "proved" if effort.ask(asked) == z3.unsat else "unknown"

    def _fresh_solver(self, solver: z3.Solver, attempt: int) -> z3.Solver:
        fresh = z3.Solver()
        fresh.set("random_seed", self.settings.seed + 1000 * attempt)
        fresh.add(solver.assertions())
        return fresh

    def cores(self, task: str) -> dict[str, frozenset[str]]:
        """For each conjunct that a task is about: the conjuncts on which Z3's proof rests."""
        return {claim.conjunct: self.core_of(claim) for claim in self.claims(task)}

    def core_of(self, claim: Claim) -> frozenset[str]:
        if z3.is_true(claim.goal):
            return frozenset()
        solver = z3.Solver()
        solver.add(*self.premises, *claim.premises, negation(claim.goal))
        names = {conjunct.name: z3.Bool(conjunct.name) for conjunct in self.conjuncts}
        for conjunct, instance in self.hypotheses:
            solver.add(z3.Implies(names[conjunct.name], instance.closed()))
        if claim.action == INIT or self.effort().ask(solver, *names.values()) != z3.unsat:
            return frozenset()
        return frozenset(str(name) for name in solver.unsat_core())


def gravest(found: Iterable[Status]) -> Status:
    """What is said of obligations together: proved if all are, or if there are none."""
    statuses = set(found)
    return next((status for status in GRAVEST_FIRST if status in statuses), "proved")


def names_in(action: Action) -> list[Name]:
    """The arguments of an action that stand for any number."""
    values: list[Any] = list(action.args.values())
    return [value for value in values if isinstance(value, Name)]


def export(settings: ProofSettings, claim: Claim, solver: z3.Solver, part: int | None = None) -> None:
    """Write an obligation as SMT-LIB 2: unsatisfiable exactly if it is proved."""
    assert settings.export is not None
    name = "-".join("".join(c if c.isalnum() else " " for c in f"{claim.action} {claim.conjunct}").split())
    name = name if part is None else f"{name}-{part}"
    header = f"; {settings.theorem}, {settings.replicas_in_words}: {claim.action} keeps {claim.conjunct} if unsat\n"
    text = header + "(set-logic ALL)\n" + solver.to_smt2()
    (settings.export / f"{name}.smt2").write_text(text, encoding="utf-8")
