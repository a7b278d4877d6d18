"""The obligations of a theorem: the invariant holds initially, every action keeps it, the properties follow from it.

Each pair of an action and a conjunct is an *obligation*: there is no state in which the invariant holds and from which the
action leads to a state in which the conjunct does not. A strategy tries to prove that (`proofs.induction.strategies`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import z3

from kspec.model_check.core.model import Action, Local
from kspec.proofs.induction.claims import INIT, PROPERTIES, Claim
from kspec.proofs.induction.invariant import Conjunct, Instance, StateView, Theorem, instances
from kspec.proofs.settings import ProofSettings
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.relation import SymbolicStep, as_formula, step
from kspec.proofs.symbolic.state import SymbolicState, initial_state, shapes_of, unknown_state
from kspec.proofs.symbolic.terms import conjunction
from kspec.proofs.symbolic.values import Name, truth


class Obligations:
    """The obligations of a theorem for a number of replicas, task by task."""

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
        """The actions of a model that have obligations."""
        return actions

    def view(self, state: SymbolicState) -> StateView:
        """A state as conjuncts read it."""
        return self.theorem.view(state.at, self.brokers)

    def instances(self, conjunct: Conjunct, state: SymbolicState) -> list[Instance]:
        """A conjunct in `state`, for each choice of brokers."""
        return list(instances(conjunct, self.view(state), self.brokers))

    def _numbered(self, actions: Sequence[Action]) -> dict[str, Action]:
        """Actions by label; a number distinguishes those with the same label."""
        labels: dict[str, Action] = {}
        for action in actions:
            same = sum(1 for known in labels.values() if known.label == action.label)
            labels[f"{action.label} #{same + 1}" if same else action.label] = action
        return labels

    # ---- what is claimed

    def tasks(self) -> list[str]:
        """The tasks, which can be worked on separately: the start, each action, the theorem's lemmas, and the properties."""
        extra = [PROPERTIES] if self.theorem.properties or self.theorem.consequences else []
        return [INIT, *self.actions, *(name for name, _ in self.theorem.lemmas), *extra]

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
            yield from self._action_claims(task, self.actions[task])

    def _initial_claims(self) -> Iterator[Claim]:
        start = initial_state(self.model, self.shapes)
        for conjunct in self.conjuncts:
            goal = conjunction([instance.body for instance in self.instances(conjunct, start)])
            yield Claim(INIT, conjunct.name, (), goal, 1)

    def _action_claims(self, label: str, action: Action) -> Iterator[Claim]:
        """States that an action keeps each conjunct. Instances that it does not change are left out: they hold already."""
        outcomes = self.outcomes(label, action)
        for conjunct in self.conjuncts:
            for taken in outcomes:
                changed = [
                    instance.body
                    for instance in self.instances(conjunct, taken.after)
                    if not instance.body.eq(self.known[conjunct.name, instance.brokers])
                ]
                goal, about = conjunction(changed), conjunct.variables
                yield Claim(label, conjunct.name, (taken.enabled, self.facts(taken)), goal, taken.paths, *about)

    def property_claims(self) -> Iterator[Claim]:
        """The claims that follow from the invariant, about every state in which it holds."""
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

    # ---- what actions do

    def outcomes(self, label: str, action: Action) -> list[SymbolicStep]:
        """The relation of an action, in the parts that are tried one by one."""
        return [self.step(action)]

    def facts(self, taken: SymbolicStep) -> z3.BoolRef:
        """The laws that may be assumed where an action is taken."""
        return taken.facts

    def step(self, action: Action) -> SymbolicStep:
        """The relation of an action, from any state in which the quantifier-free part of the invariant holds."""
        return step(action, self.before, self.pruning(action), self.guard)

    def guard(self, local: Local, state: SymbolicState, solver: z3.Solver | None) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """A guard as a formula; the laws that it rests on; and how many paths it has."""
        return as_formula(local, state, solver)

    def term(self, local: Local) -> tuple[z3.BoolRef, z3.BoolRef, int]:
        """A property's term as a formula, like `guard`."""
        return as_formula(local, self.before, self.pruning())

    # ---- what is known

    def pruning(self, action: Action | None = None) -> z3.Solver:
        """A solver that rules paths out. It knows what the invariant says without quantifiers, and about the arguments."""
        solver = z3.Solver()
        solver.add(*self.premises)
        names = [name.term for name in names_in(action)] if action is not None else []
        for _, instance in self.hypotheses:
            if not instance.variables:
                solver.add(instance.body)
            elif len(instance.variables) == 1 and self.brokers.ids is not None:
                solver.add(*(z3.substitute(instance.body, (instance.variables[0], name)) for name in names))
        return solver

    def solver(self) -> z3.Solver:
        """A solver that knows the invariant of the state before."""
        solver = z3.Solver()
        solver.set("random_seed", self.settings.seed)
        solver.add(*self.premises)
        solver.add(*(instance.closed() for _, instance in self.hypotheses))
        return solver


def names_in(action: Action) -> list[Name]:
    """The arguments of an action that stand for any number."""
    values: list[Any] = list(action.args.values())
    return [value for value in values if isinstance(value, Name)]
