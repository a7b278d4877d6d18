"""Refutation: bounded symbolic execution from the initial state, one step longer at a time, until a property fails.

All runs of a length are one formula, in which Z3 chooses the actions. The run that it finds is run again by the model's
own functions. The first length with a violation is the length of the shortest violation.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import z3

from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.files import write_whole
from kspec.model_check.core.model import Model, Property, Slot
from kspec.model_check.models import MODELS
from kspec.proofs.effort import EMERGENCY_OF_RUNS_S, Effort, StoppedByClockError
from kspec.proofs.refutation.finite import SmallNumbers, spelled_out
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.relation import as_formula, step
from kspec.proofs.symbolic.shapes import Shape
from kspec.proofs.symbolic.state import SymbolicState, shapes_of, terms
from kspec.proofs.symbolic.terms import conjunction, disjunction, negation


class Refutable(NamedTuple):
    """A model with a property that some run violates, and the smallest bounds with such a run."""

    model: str
    prop: str
    replicas: int
    log_size: int
    max_epoch: int

    def build(self, replicas: int) -> Model:
        """The model within these bounds."""
        bounds = {"replicas": replicas, "log_size": self.log_size, "max_records": self.log_size, "max_epoch": self.max_epoch}
        return MODELS[self.model].build(bounds)


MOST_STATES = 20
"""The length of runs at which the search gives up."""

TACTIC = z3.Then("simplify", "propagate-values", "solve-eqs", "simplify", "bit-blast", "sat")
"""The tactic of Z3 in the search for runs: all numbers are small, so bit vectors are enough."""

TIME, NEXT = z3.Ints("time next-time")
CHOSEN = z3.Function("chosen action", z3.IntSort(), z3.IntSort())


class Depth(NamedTuple):
    """Whether some run of this many states violates the property, `None` if Z3 did not decide, and how long Z3 took.

    `stopped`: the clock stopped Z3 before it had used up its effort.
    """

    states: int
    violated: bool | None
    seconds: float
    stopped: bool = False


class Refutation(NamedTuple):
    """A shortest violation, if there is one of at most the states tried. The trace is a real run of the model."""

    trace: Trace | None
    depths: tuple[Depth, ...]


class ReplayError(AssertionError):
    """Z3's run is not a run of the model: the relation and the model's functions disagree."""


class BoundedExecution:
    """All runs of a model from its initial state, as formulas in the number of steps."""

    def __init__(self, model: Model, prop: Property) -> None:
        self.model, self.prop = model, prop
        replicas = model.parameters["replicas"]
        self.shapes = shapes_of(model, Brokers(range(1, replicas + 1)))
        self.numbers = range(-1, max(model.parameters["log_size"], model.parameters["max_epoch"]) + 2)
        self.now = self._state_at(TIME)
        self.then = self._state_at(NEXT)
        self.transition = disjunction([self._taken(index) for index in range(len(model.actions))])
        claims = [as_formula(term, self.now) for term in prop.terms]
        self.violated = spelled_out(negation(conjunction([claim for claim, _, _ in claims])), self.numbers)

    def _state_at(self, moment: Any) -> SymbolicState:
        def family(slot: Slot) -> Callable[[Any], Any]:
            column = self.shapes[slot.name].unknown(slot.name, 1 if slot.key is None else 2)
            return lambda key: column(moment, *terms(key))

        return SymbolicState(self.shapes, {slot.name: family(slot) for slot in self.model.slots})

    def _taken(self, index: int) -> z3.BoolRef:
        """States that the action with this index is taken now, and changes what it writes and nothing else."""
        taken = step(self.model.actions[index], self.now, z3.Solver())
        changes = [
            self._same(self.shapes[slot.name], self.then.at(slot.name, slot.key), taken.after.at(slot.name, slot.key))
            for slot in self.model.slots
        ]
        return conjunction(
            [CHOSEN(TIME) == index, *(spelled_out(term, self.numbers) for term in (taken.enabled, taken.facts)), *changes]
        )

    def _same(self, shape: Shape, value: Any, other: Any) -> z3.BoolRef:
        return spelled_out(shape.equal(value, other), self.numbers)

    def _at(self, formula: z3.BoolRef, moment: int) -> z3.BoolRef:
        return z3.substitute(formula, (TIME, z3.IntVal(moment)), (NEXT, z3.IntVal(moment + 1)))

    def shortest_violation(
        self,
        most_states: int,
        effort: int,
        report: Callable[[Depth], None] = lambda depth: None,
        export: Path | None = None,
        least_states: int = 1,
        time_limit: float = EMERGENCY_OF_RUNS_S,
    ) -> Refutation:
        """Try runs of one state, two, and so on, or from `least_states` on.

        `effort`: how much Z3 may do for one length, in its own units; after `time_limit` seconds the clock stops it.
        """
        width = max(len(self.model.actions), most_states, 15).bit_length() + 1
        small = SmallNumbers(width, self.numbers)
        runs = [
            self._at(self.shapes[slot.name].is_value(self.now.at(slot.name, slot.key), value), 0)
            for slot, value in zip(self.model.slots, self.model.initial, strict=True)
        ]
        depths: list[Depth] = []
        for states in range(1, most_states + 1):
            started = time.monotonic()
            if states > 1:
                runs.append(self._at(self.transition, states - 2))
            if states < least_states:
                continue
            solver = TACTIC.solver()
            solver.add(*(small.of(term) for term in (*runs, self._at(self.violated, states - 1))))
            if export is not None:
                header = f"; {self.model.name}: no run of {states} states violates {self.prop.name}, if unsat\n"
                text = header + "(set-logic QF_BV)\n" + solver.to_smt2()
                write_whole(export / f"runs-of-{states}.smt2", text)
            stopped = False
            try:
                answer = Effort(effort, time_limit).ask(solver)
            except StoppedByClockError:
                answer, stopped = z3.unknown, True
            violated = None if answer == z3.unknown else bool(answer == z3.sat)
            depths.append(Depth(states, violated, time.monotonic() - started, stopped))
            report(depths[-1])
            if violated is None:
                break
            if violated:
                found = solver.model()
                chosen = [small.of(CHOSEN(z3.IntVal(moment))) for moment in range(states - 1)]
                actions = [found.eval(action, model_completion=True).as_long() for action in chosen]
                return Refutation(self._replayed(actions), tuple(depths))
        return Refutation(None, tuple(depths))

    def _replayed(self, actions: list[int]) -> Trace:
        """The run that Z3 found, replayed by the model's functions."""
        state = self.model.initial
        trace = [TraceStep(None, state)]
        for moment, index in enumerate(actions, start=1):
            action = self.model.actions[index]
            after = action.bind()(state)
            if after is None:
                raise ReplayError(f"{action.label} is not enabled in state {moment} of the run found")
            trace.append(TraceStep(action, after))
            state = after
        if self.prop.bind()(state):
            raise ReplayError(f"{self.prop.name} holds at the end of the run found")
        return tuple(trace)
