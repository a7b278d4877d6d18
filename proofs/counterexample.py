"""Counterexamples to induction: small real states in which the invariant holds, and from which a step breaks it.

What Z3 finds is never shown as it is: the state is made of Python values, the step is taken again by the model's own
functions, and the invariant is evaluated before and after. Only what survives that is a counterexample.
"""

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import z3

from model_check.exploration import Limits, Step, Trace
from model_check.model import Action, Model, Property, State, when
from proofs.finite import spelled_out
from proofs.induction import INIT, PROPERTIES, Claim, Induction
from proofs.invariant import Conjunct, StateView, Theorem, holds_in
from proofs.settings import ANY
from proofs.shapes import INT
from proofs.symbolic import Brokers, Name, negation

SIZES = (1, 2, 3)
"""Lengths of logs, and last epochs, that are tried in turn."""

SEARCH_TIMEOUT_MS = 20_000

FEW_REPLICAS = (2, 3, 4)
"""With how many replicas a counterexample is looked for where any number is claimed."""


class Counterexample(NamedTuple):
    """A step (or a state, for a property) that breaks `broken`, in a bounded model of this `size`."""

    model: Model
    size: int
    trace: Trace
    broken: str


class Explored:
    """A state of the bounded model, as conjuncts read it; slots that it lacks have their first value."""

    def __init__(self, model: Model, state: State) -> None:
        self.values = {(slot.name, slot.key): value for slot, value in zip(model.slots, state, strict=True)}
        self.initial = {slot.name: value for slot, value in zip(model.slots, model.initial, strict=True)}

    def at(self, name: str, key: Any = None) -> Any:
        """The value of a slot."""
        return self.values.get((name, key), self.initial[name])


def explored_view(theorem: Theorem, model: Model, state: State, replicas: int) -> StateView:
    """A state of the bounded model as conjuncts read it."""
    return theorem.view(Explored(model, state).at, Brokers(range(1, replicas + 1)))


def failing(theorem: Theorem, conjuncts: list[Conjunct], model: Model, state: State, replicas: int, size: int) -> list[str]:
    """The conjuncts that do not hold of a state whose logs and epochs go up to `size`."""
    view = explored_view(theorem, model, state, replicas)
    return [conjunct.name for conjunct in conjuncts if not holds_in(conjunct, view, range(1, replicas + 1), size, size)]


class CounterexampleSearch:
    """Looks for counterexamples to obligations of one induction."""

    def __init__(self, induction: Induction) -> None:
        self.induction = induction
        self.solvers: dict[tuple[int, bool], z3.Solver] = {}

    def find(self, claim: Claim) -> Counterexample | None:
        """A small counterexample to a claim that Z3 could not prove, if there is one."""
        if claim.action == INIT:
            return self._initial(claim)
        for realistic, size in product((True, False), SIZES):
            solver = self._solver(size, realistic)
            solver.push()
            solver.add(*(spelled_out(term, range(-1, size + 2)) for term in (*claim.premises, negation(claim.goal))))
            found = self._replayed(claim, solver.model(), size) if solver.check() == z3.sat else None
            solver.pop()
            if found is not None:
                return found
        return None

    def _solver(self, size: int, realistic: bool) -> z3.Solver:
        """A solver for states of this size in which the invariant holds."""
        if (size, realistic) not in self.solvers:
            induction = self.induction
            solver = self.solvers[size, realistic] = z3.Solver()
            solver.set("timeout", SEARCH_TIMEOUT_MS)
            solver.add(*induction.premises)
            names = [
                value for action in induction.model.actions for value in action.args.values() if isinstance(value, Name)
            ]
            solver.add(*(INT.small(name, size + 1) for name in set(names)))
            known = [instance for _, instance in induction.hypotheses]
            for conjunct in induction.theorem.realistic if realistic else ():
                known += induction.instances(conjunct, induction.before)
            solver.add(*(spelled_out(instance.closed(), range(-1, size + 2)) for instance in known))
            for slot in self._bounded(size).slots:
                value = induction.before.at(slot.name, slot.key)
                solver.add(induction.shapes[slot.name].small(value, size))
        return self.solvers[size, realistic]

    def _bounded(self, size: int) -> Model:
        settings = self.induction.settings
        return self.induction.theorem.bounded(settings.number_of_replicas, size + 1, size + 1, settings.mutant)

    def _initial(self, claim: Claim) -> Counterexample | None:
        model = self._bounded(1)
        if claim.conjunct not in self._failing(model, model.initial, 1):
            return None
        return Counterexample(model, 1, (Step(None, model.initial),), claim.conjunct)

    def _failing(self, model: Model, state: State, size: int) -> list[str]:
        induction = self.induction
        replicas = induction.settings.number_of_replicas
        return failing(induction.theorem, induction.conjuncts, model, state, replicas, size + 1)

    def _replayed(self, claim: Claim, found: z3.ModelRef, size: int) -> Counterexample | None:
        """What Z3 found, as states of the bounded model; `None` if the model's own functions do not confirm it."""
        induction, model = self.induction, self._bounded(size)
        state = tuple(
            induction.shapes[slot.name].read(found, induction.before.at(slot.name, slot.key)) for slot in model.slots
        )
        if self._failing(model, state, size):
            return None
        if claim.action == PROPERTIES:
            prop = model.property_named(claim.conjunct)
            broken = prop is not None and not prop.bind()(state)
            return Counterexample(model, size, (Step(None, state),), claim.conjunct) if broken else None
        action = self._action(claim, model, found, state)
        after = action.bind()(state) if action is not None else None
        if after is None or claim.conjunct not in self._failing(model, after, size):
            return None
        return Counterexample(model, size, (Step(None, state), Step(action, after)), claim.conjunct)

    def _action(self, claim: Claim, model: Model, found: z3.ModelRef, state: State) -> Action | None:
        """The action of the bounded model that the claim is about, with the epoch that Z3 found."""
        general = self.induction.actions.get(claim.action)
        if general is None:
            return None
        args = {
            name: found.eval(value.term, model_completion=True).as_long() if isinstance(value, Name) else value
            for name, value in general.args.items()
        }
        candidates = [action for action in model.actions if action.name == general.name and dict(action.args) == args]
        return next((action for action in candidates if action.bind()(state) is not None), None)


class SearchWithFewReplicas:
    """Looks for a counterexample to a claim about any number of replicas: one with as few as there can be."""

    def __init__(self, induction: Induction) -> None:
        self.induction = induction
        self.searches: dict[int, CounterexampleSearch] = {}

    def find(self, claim: Claim) -> Counterexample | None:
        """A small counterexample with few replicas, if there is one; a claim about no action of the model has none."""
        if claim.action not in (INIT, PROPERTIES, *self.induction.actions):
            return None
        found = (self._find_with(replicas, claim) for replicas in FEW_REPLICAS)
        return next((counterexample for counterexample in found if counterexample is not None), None)

    def _find_with(self, replicas: int, claim: Claim) -> Counterexample | None:
        if replicas not in self.searches:
            settings = replace(self.induction.settings, replicas=replicas)
            self.searches[replicas] = CounterexampleSearch(Induction(self.induction.theorem, settings))
        search = self.searches[replicas]
        task = claim.action
        if task not in (INIT, PROPERTIES):
            name = self.induction.actions[task].name
            task = next(label for label, action in search.induction.actions.items() if action.name == name)
        return next(search.find(known) for known in search.induction.claims(task) if known.conjunct == claim.conjunct)


Search = CounterexampleSearch | SearchWithFewReplicas


def search_for(induction: Induction) -> Search:
    """What looks for counterexamples to obligations of an induction."""
    return SearchWithFewReplicas(induction) if induction.settings.replicas == ANY else CounterexampleSearch(induction)


def reachable(counterexample: Counterexample, theorem: Theorem, mutant: str | None, limits: tuple[int, float]) -> str:
    """Whether a model just large enough can reach the state from which a counterexample starts, in words.

    `limits` are states and seconds.
    """
    from model_check.engines import explorer  # noqa: PLC0415 - only failed proofs pay for it

    max_states, max_seconds = limits
    replicas = counterexample.model.parameters["replicas"]
    model = theorem.bounded(replicas, counterexample.size, counterexample.size, mutant)
    found = Explored(counterexample.model, counterexample.trace[0].state)
    start = tuple(found.at(slot.name, slot.key) for slot in model.slots)
    elsewhere = Property("Elsewhere", "always", (when(lambda *state: state != start, *model.slots),), "not this state")
    result = explorer("reference")(model, [elsewhere], Limits(True, max_states, max_seconds))
    (verdict,) = result.verdicts
    bounds = f"with logs and epochs up to {counterexample.size}"
    if verdict.trace is not None:
        return f"the start can be reached: by a run of {len(verdict.trace)} states, {bounds}"
    if result.complete:
        return f"the start cannot be reached {bounds} ({result.distinct_states:,} states explored)"
    return f"the start was not among the first {result.distinct_states:,} states explored {bounds}"
