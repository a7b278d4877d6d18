"""Liveness: decides on the whole state graph of a model whether all fair runs satisfy a property."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.model import Condition, Fairness, LivenessProperty, Local, PropertyCase, Slot, View
from kspec.model_check.core.temporal import assumed, groups_of
from kspec.model_check.engines.compiled.interning import CaughtError
from kspec.model_check.engines.compiled.tables import result_of
from kspec.model_check.graphs.fair_cycles import Circuit, Constraint, Flags, Paths
from kspec.model_check.graphs.graph import StateGraph

WIDEST_KEY = 1 << 62


@dataclass(frozen=True, slots=True)
class Lasso:
    """A fair run that violates a property: it leads from the initial state to a loop, and goes round it for ever.

    `states[loop_start:]` are the states of the loop, `closing` is the action that leads from the last one back to
    `states[loop_start]`, `None` if the run stutters there. From `states[since]` on, the goal is never reached. `why`
    says for each assumed fairness how the loop satisfies it.
    """

    steps: Trace
    loop_start: int
    closing: TraceStep | None
    since: int
    case: str
    why: list[tuple[str, str]]


@dataclass(slots=True)
class LivenessVerdict:
    """Whether a property holds under these assumptions; if not, a run that shows it.

    `cases` is the number of instances examined; `met` counts those with a state where the premise holds and the goal fails.
    """

    prop: LivenessProperty
    fairness: list[Fairness]
    holds: bool = True
    lasso: Lasso | None = None
    cases: int = 0
    met: int = 0


@dataclass(slots=True)
class LivenessResult:
    """The verdicts, and the graph on which they were decided."""

    graph: StateGraph
    verdicts: list[LivenessVerdict] = field(default_factory=list)

    @property
    def violated(self) -> bool:
        return any(not verdict.holds for verdict in self.verdicts)


def check_liveness(
    graph: StateGraph,
    properties: Sequence[LivenessProperty],
    assumptions: Callable[[LivenessProperty], list[Fairness]] | None = None,
) -> LivenessResult:
    """Decide the properties on a graph, each under its model's fairness and its own unless `assumptions` says otherwise."""
    judge = _Judge(graph)
    result = LivenessResult(graph)
    for prop in properties:
        fairness = assumptions(prop) if assumptions else assumed(graph.model.fairness, prop.assuming)
        result.verdicts.append(judge.decide(prop, fairness))
    return result


def _values_of(view: View, known: dict[Slot, list[Any]]) -> list[Any]:
    """The view's value for each combination of the slots' values, `CaughtError` where it is not defined."""
    return [result_of(view.function, values) for values in zip(*[known[slot] for slot in view.reads], strict=True)]


class _Where(NamedTuple):
    """The states in which a term holds, those in which it raises an error, and the first such error."""

    holds: Flags
    raises: Flags
    error: Exception | None


class _Judge:
    def __init__(self, graph: StateGraph) -> None:
        self.graph = graph
        self.paths = Paths(graph.transitions, graph.depth)
        self.terms = cache(self._where)
        self.constraints = cache(self._constraints)

    def decide(self, prop: LivenessProperty, fairness: list[Fairness]) -> LivenessVerdict:
        """Decide a property. The shortest lasso of all cases counts; of those of equal length, the first."""
        verdict = LivenessVerdict(prop, fairness, cases=len(prop.cases))
        constraints = [constraint for one in fairness for constraint in self.constraints(one)]
        best: tuple[int, PropertyCase, Circuit] | None = None
        for case in prop.cases:
            missing = ~self.holds(case.goal)
            starts = self.holds(case.premise) & missing if prop.kind == "leads-to" else missing & (self.graph.depth == 0)
            if not starts.any():
                continue
            verdict.met += 1
            circuit = self.paths.fair_circuit(starts, missing, constraints)
            if circuit is not None:
                length = len(circuit.prefix) + len(circuit.loop)
                if best is None or length < best[0]:
                    best = length, case, circuit
        if best is not None:
            verdict.holds = False
            verdict.lasso = self._lasso(best[1], best[2], constraints)
        return verdict

    def holds(self, condition: Condition) -> Flags:
        """The states in which a condition holds.

        A term need not be defined where an earlier term of its group fails, or an earlier group holds.
        """
        answer = np.zeros(self.graph.states, np.bool_)
        for group in condition:
            together = np.ones(self.graph.states, np.bool_)
            for term in group:
                where = self.terms(term)
                if where.error is not None and (where.raises & together & ~answer).any():
                    raise where.error
                together &= where.holds
            answer |= together
        return answer

    def _where(self, term: Local) -> "_Where":
        """The states in which a term holds. It is evaluated once for each combination of the values that it depends on."""
        columns = {slot: self.graph.values_of(slot.position) for slot in term.slots}
        if not columns:
            nowhere = np.zeros(self.graph.states, np.bool_)
            return _Where(nowhere | bool(term.function()), nowhere, None)
        key: NDArray[np.int64] = np.zeros(self.graph.states, np.int64)
        width = 1
        for values in columns.values():
            if width * len(values.known) >= WIDEST_KEY:
                _, key = np.unique(key, return_inverse=True)
                width = int(key.max()) + 1
            key = key * len(values.known) + values.numbers
            width *= len(values.known)
        _, examples, which = np.unique(key, return_index=True, return_inverse=True)
        known: dict[Slot, list[Any]] = {
            slot: [values.known[number] for number in values.numbers[examples].tolist()] for slot, values in columns.items()
        }
        reads = [known[read] if isinstance(read, Slot) else _values_of(read, known) for read in term.reads]
        answers = [result_of(term.function, arguments) for arguments in zip(*reads, strict=True)]
        raised = [type(answer) is CaughtError for answer in answers]
        holds = [not failed and bool(answer) for answer, failed in zip(answers, raised, strict=True)]
        places = which.reshape(-1)
        error = answers[raised.index(True)].error if any(raised) else None
        return _Where(np.array(holds, np.bool_)[places], np.array(raised, np.bool_)[places], error)

    def _constraints(self, fairness: Fairness) -> list[Constraint]:
        groups = groups_of(fairness, self.graph.model.actions)
        return [self.paths.constraint(label, fairness.strong, actions) for label, actions in groups]

    # ---- lassos

    def _lasso(self, case: PropertyCase, circuit: Circuit, constraints: list[Constraint]) -> Lasso:
        graph, transitions = self.graph, self.graph.transitions
        moves = [*circuit.prefix, *circuit.loop]
        steps = [TraceStep(None, graph.model.initial)]
        for move in moves:
            action = graph.model.actions[int(transitions.action[move])]
            steps.append(TraceStep(action, graph.state(int(transitions.target[move]))))
        closing = steps.pop() if circuit.loop else None
        states = [0, *(int(transitions.target[move]) for move in moves)][len(circuit.prefix) : len(steps)]
        why = [(constraint.label, self._reason(constraint, states, circuit)) for constraint in constraints]
        return Lasso(tuple(steps), len(circuit.prefix), closing, circuit.since, case.label, why)

    def _reason(self, constraint: Constraint, states: list[int], circuit: Circuit) -> str:
        """The way in which a loop satisfies a fairness condition."""
        if constraint.taken[circuit.loop].any():
            return "taken in the loop"
        impossible = [place for place, state in enumerate(states) if not constraint.possible[state]]
        if len(impossible) == len(states):
            return "never possible in the loop"
        assert impossible
        assert not constraint.strong
        return f"not possible in state {len(circuit.prefix) + impossible[0] + 1}"
