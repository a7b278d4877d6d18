"""Counterexamples to induction: small real states in which the invariant holds, and from which a step breaks it.

Z3's result is never shown as it is. The state is made of Python values, the step is taken again by the model's own
functions, and the invariant is evaluated before and after. Only a result that passes this is a counterexample.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import z3
from z3 import z3util

from kspec.model_check.core.exploration import Limits, Trace, TraceStep, uninterrupted
from kspec.model_check.core.model import Action, Model, Property, Slot, State, when
from kspec.model_check.traces.render import action_in_words, field_name, owner, party_name, slot_in_words
from kspec.proofs.effort import Effort
from kspec.proofs.induction.claims import INIT, PROPERTIES, Claim
from kspec.proofs.induction.invariant import Conjunct, StateView, Theorem, holds_in, violations
from kspec.proofs.induction.obligations import Obligations
from kspec.proofs.refutation.finite import SpelledOut
from kspec.proofs.settings import ANY
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.shapes import INT
from kspec.proofs.symbolic.terms import negation
from kspec.proofs.symbolic.values import Name, truth

SIZES = (1, 2, 3)
"""The sizes that are tried in turn: lengths of logs, and last epochs."""

SIMPLER, AT_ONCE = 20_000_000, 1_000_000
"""The limit of Z3 to simplify a counterexample, and to simplify it in one slot; in its own units."""

ROUND = 100_000
"""The units for each state that Z3 finds and Python checks against the invariant: the check takes about as long."""

EVERYTHING = "the invariant"
"""Stands for a conjunct in a claim about all conjuncts: if any of them breaks, that is a counterexample."""

MOST_REPLICAS = 1_000
"""More replicas than there are: slots of no broker are shown after those of brokers."""

FEW_REPLICAS = (2, 3, 4)
"""The numbers of replicas with which a counterexample to a claim about any number is searched for."""


class Counterexample(NamedTuple):
    """A step (or a state, for a property) that breaks `broken`, in a bounded model of this `size` with this many `replicas`.

    `failing`: all conjuncts that do not hold after the step.
    """

    model: Model
    size: int
    replicas: int
    trace: Trace
    broken: str
    failing: tuple[str, ...] = ()

    def table(self) -> str:
        """The state where it differs from the initial state, then the step and its changes."""
        first, *steps = self.trace
        held = [
            (slot, "", slot_in_words(slot, value))
            for slot, value, initial in zip(self.model.slots, first.state, self.model.initial, strict=True)
            if value != initial
        ]
        lines = ["1  a state; what is not shown is as at the start", *_rows(held)]
        for step in steps:
            assert step.action is not None
            changed = [
                (slot, f"{slot_in_words(slot, before)} -> ", slot_in_words(slot, after))
                for slot, before, after in zip(self.model.slots, first.state, step.state, strict=True)
                if before != after
            ]
            lines += [f"2  {action_in_words(step.action)}", *_rows(changed)]
        return "\n".join(lines)


def _rows(values: list[tuple[Slot, str, str]]) -> list[str]:
    """Slots with their values: first the brokers' slots, then those of the controller and the messages."""
    rows = []
    for slot, before, after in values:
        party = "" if slot.bookkeeping and slot.broker is None else party_name(owner(slot))
        key = "" if slot.key is None or slot.broker is not None else f" {slot.key}"
        rows.append((slot.broker or MOST_REPLICAS, f"     {party:<11} {field_name(slot) + key:<15} {before}{after}"))
    return [line for _, line in sorted(rows, key=lambda row: row[0])]


class BoundedState:
    """A state of the bounded model, as conjuncts read it; slots that it lacks have their initial value."""

    def __init__(self, model: Model, state: State) -> None:
        self.values = {(slot.name, slot.key): value for slot, value in zip(model.slots, state, strict=True)}
        self.initial = {slot.name: value for slot, value in zip(model.slots, model.initial, strict=True)}

    def at(self, name: str, key: Any = None) -> Any:
        """The value of a slot."""
        return self.values.get((name, key), self.initial[name])


def explored_view(theorem: Theorem, model: Model, state: State, replicas: int) -> StateView:
    """A state of the bounded model as conjuncts read it."""
    return theorem.view(BoundedState(model, state).at, Brokers(range(1, replicas + 1)))


def failing(theorem: Theorem, conjuncts: list[Conjunct], model: Model, state: State, replicas: int, size: int) -> list[str]:
    """The conjuncts that do not hold in a state whose logs and epochs go up to `size`."""
    view = explored_view(theorem, model, state, replicas)
    return [conjunct.name for conjunct in conjuncts if not holds_in(conjunct, view, range(1, replicas + 1), size, size)]


class SmallStates:
    """Small states in which the invariant holds. Z3 finds a state, and then gets the instances that it violates.

    So Z3 only gets the instances of the invariant that matter, a few out of many thousands.
    """

    def __init__(self, obligations: Obligations, size: int) -> None:
        self.obligations, self.size = obligations, size
        settings, theorem = obligations.settings, obligations.theorem
        self.model = theorem.bounded(settings.number_of_replicas, size + 1, size + 1, settings.mutant)
        self.none_is_left = False
        """Whether Z3's last answer was that there is no such state."""
        self.realistic = z3.FreshBool("as in a cluster")
        self.instances = {
            (conjunct.name, instance.brokers): instance
            for conjunct in (*obligations.conjuncts, *theorem.realistic)
            for instance in obligations.instances(conjunct, obligations.before)
        }
        self.solver = z3.SimpleSolver()
        self.solver.set("arith.solver", 2)  # the older one: many times as fast if numbers are few and small
        self.solver.set("relevancy", 0)
        in_bounds = [truth(formula) for formula in theorem.in_bounds(settings.number_of_replicas)]
        self.solver.add(*obligations.premises, *in_bounds)
        bound = {str(variable) for formula in in_bounds for variable in z3util.get_vars(formula)}
        arguments: set[Any] = {value for action in obligations.model.actions for value in action.args.values()}
        named = [value for value in arguments if isinstance(value, Name)]
        self.solver.add(*(INT.small(name, size + 1) for name in named if str(name.term) not in bound))
        self.solver.add(*self._slots())
        self.spelled_out = SpelledOut(range(-1, size + 3))
        self.impossible: dict[tuple[int, ...], Sequence[z3.BoolRef]] = {}
        """Formulas that hold in no small state in which the invariant holds, by their ids."""

    def _slots(self) -> Iterator[z3.BoolRef]:
        """States that values are small, and that slots that the bounded model does not have are empty."""
        shapes, before = self.obligations.shapes, self.obligations.before
        initial = {slot.name: value for slot, value in zip(self.model.slots, self.model.initial, strict=True)}
        inside = {(slot.name, slot.key) for slot in self.model.slots}
        for slot in self.model.slots:
            yield shapes[slot.name].small(before.at(slot.name, slot.key), self.size)
        for name in {slot.name for slot in self.obligations.model.slots if isinstance(slot.key, Name)}:
            for key in range(-1, self.size + 3):
                if (name, key) not in inside:
                    yield shapes[name].is_value(before.at(name, key), initial[name])

    def find(
        self, formulas: Sequence[z3.BoolRef], effort: Effort, simplify: bool = True
    ) -> tuple[z3.ModelRef, State] | None:
        """A small state in which the invariant and these formulas hold, if one is found with this effort.

        With `simplify` it is as simple as possible.
        """
        key = tuple(formula.get_id() for formula in formulas)
        if key in self.impossible:
            return None
        wanted = z3.FreshBool("wanted")
        self.solver.add(*(z3.Implies(wanted, self.spelled_out.of(formula)) for formula in formulas))
        found = self._checked([wanted], effort)
        if found is None and self.none_is_left:
            self.impossible[key] = formulas
        if found is not None and simplify:
            found = self._simpler(found, [wanted], Effort(SIMPLER, effort.seconds))
        self.solver.add(z3.Not(wanted))
        return found

    def _simpler(
        self, found: tuple[z3.ModelRef, State], wanted: list[z3.BoolRef], effort: Effort
    ) -> tuple[z3.ModelRef, State]:
        """A simpler state: one as in a cluster if there is one, with as many slots as possible at their initial value."""
        more = self._checked([*wanted, self.realistic], effort) if self.obligations.theorem.realistic else None
        if more is not None:
            found, wanted = more, [*wanted, self.realistic]
        for slot, value in zip(self.model.slots, self.model.initial, strict=True):
            as_at_start = z3.FreshBool("as at the start")
            held = self.obligations.before.at(slot.name, slot.key)
            self.solver.add(z3.Implies(as_at_start, self.obligations.shapes[slot.name].is_value(held, value)))
            simpler = self._checked([*wanted, as_at_start], effort.part(AT_ONCE))
            if simpler is not None:
                found = simpler
                wanted = [*wanted, as_at_start]
        return found

    def _checked(self, assumed: Sequence[z3.BoolRef], effort: Effort) -> tuple[z3.ModelRef, State] | None:
        self.none_is_left = False
        while (answer := effort.ask(self.solver, *assumed)) == z3.sat:
            effort.spend(ROUND)
            found = self.solver.model()
            state = self._read(found)
            violated = list(self._violated(state, realistic=self.realistic in assumed))
            if not violated:
                return found, state
            new = [formula for formula in violated if not z3.is_true(found.eval(formula, model_completion=True))]
            if not new:
                return None  # for Z3 the invariant holds, so the state is not as it was read
            self.solver.add(*new)
        self.none_is_left = answer == z3.unsat
        return None

    def _read(self, found: z3.ModelRef) -> State:
        shapes, before = self.obligations.shapes, self.obligations.before
        return tuple(shapes[slot.name].read(found, before.at(slot.name, slot.key)) for slot in self.model.slots)

    def _violated(self, state: State, realistic: bool) -> Iterator[z3.BoolRef]:
        """The instances of the invariant that a state violates."""
        replicas, most = self.obligations.settings.number_of_replicas, self.size + 1
        view = explored_view(self.obligations.theorem, self.model, state, replicas)
        for conjunct in (*self.obligations.conjuncts, *(self.obligations.theorem.realistic if realistic else ())):
            for values in violations(conjunct, view, range(1, replicas + 1), most, most):
                instance = self.instances[conjunct.name, tuple(values[name] for name in conjunct.brokers)]
                about = [z3.IntVal(values[name]) for name in conjunct.numbers]
                about += [z3.BoolVal(each in values[name]) for name in conjunct.sets for each in range(1, replicas + 1)]
                told = z3.substitute(instance.body, *zip(instance.variables, about, strict=True))
                yield told if conjunct in self.obligations.conjuncts else z3.Implies(self.realistic, told)


class CounterexampleSearch:
    """Searches for counterexamples to the obligations of one theorem."""

    def __init__(self, obligations: Obligations) -> None:
        self.obligations = obligations
        self.states: dict[int, SmallStates] = {}

    def effort(self, units: int | None = None) -> Effort:
        """The effort for a search, with these units or as in the settings."""
        settings = self.obligations.settings
        return Effort(settings.search if units is None else units, settings.time_limit)

    def find(
        self, claim: Claim, effort: Effort | None = None, sizes: Sequence[int] = SIZES, simplify: bool = True
    ) -> Counterexample | None:
        """A small counterexample to a claim that Z3 could not prove, if one is found with this effort."""
        if claim.action == INIT:
            return self._initial(claim)
        effort = effort or self.effort()
        for size in sizes:
            states = self._states(size)
            numbers = [z3.And(number >= 0, number <= size + 1) for number in claim.numbers]
            found = states.find((*claim.premises, *numbers, negation(claim.goal)), effort, simplify)
            shown = None if found is None else self._replayed(claim, states.model, *found, size)
            if shown is not None:
                return shown
        return None

    @property
    def _replicas(self) -> int:
        return self.obligations.settings.number_of_replicas

    def _states(self, size: int) -> SmallStates:
        if size not in self.states:
            self.states[size] = SmallStates(self.obligations, size)
        return self.states[size]

    def _initial(self, claim: Claim) -> Counterexample | None:
        model = self._states(1).model
        if claim.conjunct not in self._failing(model, model.initial, 1):
            return None
        return Counterexample(model, 1, self._replicas, (TraceStep(None, model.initial),), claim.conjunct)

    def _failing(self, model: Model, state: State, size: int) -> list[str]:
        obligations = self.obligations
        return failing(obligations.theorem, obligations.conjuncts, model, state, self._replicas, size + 1)

    def _replayed(self, claim: Claim, model: Model, found: z3.ModelRef, state: State, size: int) -> Counterexample | None:
        """Z3's result as states of the bounded model; `None` if the model's own functions do not confirm it."""
        if claim.action == PROPERTIES:
            broken = claim.conjunct in self._not_following(model, state, size)
            return Counterexample(model, size, self._replicas, (TraceStep(None, state),), claim.conjunct) if broken else None
        action = self._action(claim, model, found, state)
        after = action.bind()(state) if action is not None else None
        failed = [] if after is None else self._failing(model, after, size)
        if after is None or claim.conjunct not in (*failed, EVERYTHING) or not failed:
            return None
        broken_first = failed[0] if claim.conjunct == EVERYTHING else claim.conjunct
        trace = TraceStep(None, state), TraceStep(action, after)
        return Counterexample(model, size, self._replicas, trace, broken_first, tuple(failed))

    def _not_following(self, model: Model, state: State, size: int) -> list[str]:
        """The consequences and properties that should follow from the invariant, but do not hold in a state."""
        theorem, replicas = self.obligations.theorem, self.obligations.settings.number_of_replicas
        failed = failing(theorem, list(theorem.consequences), model, state, replicas, size + 1)
        properties = (model.property_named(name) for name in theorem.properties)
        return failed + [prop.name for prop in properties if prop is not None and not prop.bind()(state)]

    def _action(self, claim: Claim, model: Model, found: z3.ModelRef, state: State) -> Action | None:
        """The action of the bounded model that the claim is about, with the epoch that Z3 found."""
        general = self.obligations.actions.get(claim.action)
        if general is None:
            return None
        args = {
            name: found.eval(value.term, model_completion=True).as_long() if isinstance(value, Name) else value
            for name, value in general.args.items()
        }
        candidates = [action for action in model.actions if action.name == general.name and dict(action.args) == args]
        return next((action for action in candidates if action.bind()(state) is not None), None)


class SearchWithFewReplicas:
    """Searches for a counterexample to a claim about any number of replicas, with as few replicas as possible."""

    def __init__(self, obligations: Obligations) -> None:
        self.obligations = obligations
        self.searches: dict[int, CounterexampleSearch] = {}

    def find(self, claim: Claim) -> Counterexample | None:
        """A small counterexample with few replicas, if there is one. A claim about no action of the model has none."""
        if claim.action not in (INIT, PROPERTIES, *self.obligations.actions):
            return None
        found = (self._find_with(replicas, claim) for replicas in FEW_REPLICAS)
        return next((counterexample for counterexample in found if counterexample is not None), None)

    def _find_with(self, replicas: int, claim: Claim) -> Counterexample | None:
        if replicas not in self.searches:
            settings = replace(self.obligations.settings, replicas=replicas)
            self.searches[replicas] = CounterexampleSearch(Obligations(self.obligations.theorem, settings))
        search = self.searches[replicas]
        task = claim.action
        if task not in (INIT, PROPERTIES):
            name = self.obligations.actions[task].name
            task = next(label for label, action in search.obligations.actions.items() if action.name == name)
        return next(search.find(known) for known in search.obligations.claims(task) if known.conjunct == claim.conjunct)


Search = CounterexampleSearch | SearchWithFewReplicas


def search_for(obligations: Obligations) -> Search:
    """The search for counterexamples to these obligations."""
    return SearchWithFewReplicas(obligations) if obligations.settings.replicas == ANY else CounterexampleSearch(obligations)


def reachable(counterexample: Counterexample, theorem: Theorem, mutant: str | None, most_states: int) -> str:
    """Whether a model just large enough can reach the state from which a counterexample starts, in words.

    At most `most_states` of that model are explored.
    """
    from kspec.model_check.engines.explorer import explorer  # noqa: PLC0415

    model = theorem.bounded(counterexample.replicas, counterexample.size, counterexample.size, mutant)
    found = BoundedState(counterexample.model, counterexample.trace[0].state)
    start = tuple(found.at(slot.name, slot.key) for slot in model.slots)
    elsewhere = Property("Elsewhere", "always", (when(lambda *state: state != start, *model.slots),), "not this state")
    result = uninterrupted(explorer("reference")(model, [elsewhere], Limits(True, most_states)))
    (verdict,) = result.verdicts
    bounds = f"with logs and epochs up to {counterexample.size}"
    if verdict.trace is not None:
        return f"the start can be reached: by a run of {len(verdict.trace)} states, {bounds}"
    if result.complete:
        return f"the start cannot be reached {bounds} ({result.distinct_states:,} states explored)"
    return f"the start was not among the first {result.distinct_states:,} states explored {bounds}"
