"""Traces that together cover an explored model: every action, every pair of actions, every error, every property decided.

The tables of an exploration (`tables.py`) say where each goal is met first. The way to it is found backwards, one level at a
time, for all goals at once. A goal that a longer trace covers on its way needs no trace of its own. Traces that distinguish
mutants from the model are found by exploring both side by side, in a task of Spark for each mutant.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.model import Action, Model, State
from kspec.model_check.engines.spark.session import SparkError, collected
from kspec.model_check.engines.spark.worker.runs import Folder
from kspec.model_check.models import MODELS
from kspec.model_check.search.ways import Ways, covering
from kspec.model_check.traces.encode import as_json
from kspec.spec.values import Error

Move = tuple[str, str]
"""An action's name and its arguments as JSON."""


class _Goal(NamedTuple):
    """Something to cover: the state at the end of a shortest way to it, the depth of the state, and the moves from there."""

    name: str
    depth: int
    state: bytes
    moves: tuple[Move, ...]


class CoveringTrace(NamedTuple):
    """A trace, the goals that no earlier trace covers, and a remark on its end."""

    trace: Trace
    goals: list[str]
    remark: str = ""


def _name_of_pair(first: Move, second: Move) -> str:
    return f"{first[0]} > {second[0]}"


_COVERED: dict[str, Callable[[Sequence[Move]], Iterable[str]]] = {
    "actions": lambda moves: (action for action, _ in moves),
    "arguments": lambda moves: (f"{action} {arguments}" for action, arguments in moves),
    "pairs": lambda moves: (_name_of_pair(first, second) for first, second in pairwise(moves)),
    "properties": lambda moves: (),
    "errors": lambda moves: (),
}
"""The goals that the moves of a trace cover, by the kind of goal in the tables."""

MOST_COMPARED = 20_000
"""The most states in which a mutant is compared with the model. A mutant that does the same in all of them gets no trace."""


def model_of(url: str) -> Model:
    """The model that the tables in this folder describe."""
    folder = Folder(url)
    names = [name for name in folder.names() if name.startswith("transitions/")]
    if not names:
        raise SparkError(f"{url} holds no tables of an exploration; kspec check --engine spark --tables DIR writes them")
    described = folder.metadata(names[0])
    given = {
        name.replace("-", "_"): tuple(value) if isinstance(value, list) else value
        for name, value in json.loads(described[b"kspec.parameters"]).items()
        if value is not None
    }
    name = described[b"kspec.model"].decode()
    if name not in MODELS:
        raise SparkError(f"{url} is of {name}, a model of somebody's own; traces are chosen for {', '.join(MODELS)}")
    return MODELS[name].build(given)


def covering_traces(context: Any, url: str, kind: str, compared: int = MOST_COMPARED) -> list[CoveringTrace]:
    """Traces that meet every goal of a kind, the longest first; kinds are named as for `kspec cover --goals`.

    Mutants are compared with the model in up to `compared` states.
    """
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    model = model_of(url)
    if kind == "mutants":
        return traces_that_tell_mutants(context, model, compared)
    session = SparkSession(context)
    transitions = session.read.parquet(f"{url}/transitions")
    goals = _goals_in_states(session.read.parquet(f"{url}/states")) if kind == "properties" else _goals(transitions, kind)
    ways = _ways_to(transitions, {goal.state: goal.depth for goal in goals})
    longest_first = sorted(goals, key=lambda goal: (-goal.depth - len(goal.moves), goal.name))
    runs = ((goal.name, [*ways[goal.state], *goal.moves]) for goal in longest_first)

    def met(moves: list[Move]) -> set[str]:
        return _errors_answered(_trace(model, moves)) if kind == "errors" else set(_COVERED[kind](moves))

    return [CoveringTrace(_trace(model, moves), new) for moves, new in covering(runs, met)]


def _errors_answered(trace: Trace) -> set[str]:
    """The errors that are answered in a run."""
    steps = [(before.state, step.action) for before, step in pairwise(trace)]
    errors = {action.answer.bind()(state) for state, action in steps if action is not None and action.answer is not None}
    return {error.name for error in errors if error is not Error.NONE}


def _goals(transitions: Any, kind: str) -> list[_Goal]:
    """The places at which each action, action with arguments, or pair of actions is first taken, or each error is first
    answered.
    """
    from pyspark.sql import functions as sql  # noqa: PLC0415

    first = transitions.select("depth", "source", "action", "arguments", "target", "error")
    if kind == "errors":
        refused = first.where((sql.col("error") != Error.NONE.name) & sql.col("error").isNotNull())
        earliest = sql.min(sql.struct("depth", "source", "action", "arguments")).alias("first")
        return [
            _Goal(row.error, row.first.depth, bytes(row.first.source), ((row.first.action, row.first.arguments),))
            for row in refused.groupBy("error").agg(earliest).collect()
        ]
    if kind != "pairs":
        keys = ["action"] if kind == "actions" else ["action", "arguments"]
        earliest = sql.min(sql.struct("depth", "source", "action", "arguments")).alias("first")
        rows = [row.first for row in first.groupBy(*keys).agg(earliest).collect()]
        moves = [(row.action, row.arguments) for row in rows]
        return [
            _Goal(next(iter(_COVERED[kind]([move]))), row.depth, bytes(row.source), (move,))
            for row, move in zip(rows, moves, strict=True)
        ]
    second = transitions.select(sql.col("source").alias("target"), sql.struct("action", "arguments").alias("second"))
    earliest = sql.min(sql.struct("depth", "source", "action", "arguments", "second")).alias("first")
    pairs = first.join(second, "target").groupBy("action", "second.action").agg(earliest)
    goals = []
    for row in (row.first for row in pairs.collect()):
        before, after = (row.action, row.arguments), (row.second.action, row.second.arguments)
        goals.append(_Goal(_name_of_pair(before, after), row.depth, bytes(row.source), (before, after)))
    return goals


def _goals_in_states(states: Any) -> list[_Goal]:
    """The states in which each property is first decided."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    decided = states.select("depth", "state", sql.explode(sql.concat("violated", "reached")).alias("property"))
    rows = decided.groupBy("property").agg(sql.min(sql.struct("depth", "state")).alias("first")).collect()
    return [_Goal(row.property, row.first.depth, bytes(row.first.state), ()) for row in rows]


def _ways_to(transitions: Any, depths: dict[bytes, int]) -> dict[bytes, list[Move]]:
    """Shortest ways from the initial state to these states, given their depths."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    ways: dict[bytes, list[Move]] = {state: [] for state in depths}
    at = {state: state for state in depths}
    for depth in range(max(depths.values(), default=0), 0, -1):
        wanted = {at[state] for state, own in depths.items() if own >= depth}
        reaching = transitions.where((sql.col("depth") == depth - 1) & sql.col("target").isin(*map(sql.lit, wanted)))
        earliest = sql.min(sql.struct("source", "action", "arguments")).alias("first")
        before = {bytes(row.target): row.first for row in reaching.groupBy("target").agg(earliest).collect()}
        for state, own in depths.items():
            if own >= depth:
                row = before[at[state]]
                ways[state].insert(0, (row.action, row.arguments))
                at[state] = bytes(row.source)
    return ways


def _trace(model: Model, moves: Sequence[Move]) -> Trace:
    """The run of these moves. Actions that differ only in the epoch they lead to have the same name and arguments."""
    by_move: dict[Move, list[Action]] = {}
    for action in model.actions:
        by_move.setdefault((action.name, json.dumps(as_json(action.args))), []).append(action)
    trace = [TraceStep(None, model.initial)]
    for move in moves:
        taken = [(action, action.bind()(trace[-1].state)) for action in by_move[move]]
        enabled = [(action, successor) for action, successor in taken if successor is not None]
        assert len(enabled) == 1, f"{move[0]} {move[1]}: one way to take it, not {len(enabled)}"
        trace.append(TraceStep(*enabled[0]))
    return tuple(trace)


class MutantDifference(NamedTuple):
    """A mutant's first difference: in `action`, after the actions `before`, by number. `enabled`: in the model itself."""

    mutant: str
    before: tuple[int, ...]
    action: int
    enabled: bool


def traces_that_tell_mutants(context: Any, model: Model, compared: int = MOST_COMPARED) -> list[CoveringTrace]:
    """Shortest runs of the model, up to a step that a mutant takes differently, or to a state where it may do more.

    Mutants that do the same as the model in all states, or in the first `compared`, are left out.
    """
    names = mutants_of(model)
    if not names:
        raise SparkError(f"model {model.name} has no mutants")
    described = model.name, dict(model.parameters)

    def find(asked: Iterator[str]) -> Iterator[MutantDifference]:
        name, given = described
        for mutant in asked:
            difference = first_difference(MODELS[name].build(_given(given)), mutant, compared)
            if difference:
                yield difference

    found = collected(context.parallelize(names, len(names)).mapPartitions(find))
    mutants = {difference.mutant: _mutant_of(model, difference.mutant) for difference in found}
    longest_first = sorted(found, key=lambda difference: (-len(difference.before), difference.mutant))

    def told(difference: MutantDifference) -> set[str]:
        trace = _trace_to(model, difference)
        return {name for name, mutant in mutants.items() if _is_told(model, mutant, trace)}

    runs = ((difference.mutant, difference) for difference in longest_first)
    return [
        CoveringTrace(_trace_to(model, difference), names, f"{difference.mutant} {_remark(model, difference)}")
        for difference, names in covering(runs, told)
    ]


def _trace_to(model: Model, difference: MutantDifference) -> Trace:
    """The run of the model to a difference, with the step itself where the model may take it."""
    trace = [TraceStep(None, model.initial)]
    for number in (*difference.before, *([difference.action] if difference.enabled else [])):
        action = model.actions[number]
        successor = action.bind()(trace[-1].state)
        assert successor is not None, f"{action.label} is not enabled where it was taken"
        trace.append(TraceStep(action, successor))
    return tuple(trace)


def _remark(model: Model, difference: MutantDifference) -> str:
    label = model.actions[difference.action].label
    return f"takes {label} otherwise" if difference.enabled else f"may take {label} then, which the model may not"


def mutants_of(model: Model) -> list[str]:
    """The mutants that a model knows, by name."""
    return [name for parameter in MODELS[model.name].parameters if parameter.name == "mutant" for name in parameter.choices]


def first_difference(model: Model, mutant: str, most: int) -> MutantDifference | None:
    """The nearest state of the model in which a mutant does something else."""
    other = _mutant_of(model, mutant)
    both = [(own.bind(), theirs.bind()) for own, theirs in zip(model.actions, other.actions, strict=True)]
    inside = [term.bind() for term in model.constraint]
    ways = Ways[State, int](model.initial)
    for state in islice(ways.places(), most):
        differing = []
        for number, (own, theirs) in enumerate(both):
            successor = own(state)
            if theirs(state) != successor:
                differing.append((successor is None, number))
            if successor is not None and all(term(successor) for term in inside):
                ways.reach(state, number, successor)
        if differing:
            unable, action = min(differing)
            return MutantDifference(mutant, tuple(ways.to(state)), action, not unable)
    return None


def _is_told(model: Model, mutant: Model, trace: Sequence[TraceStep]) -> bool:
    """Whether the mutant takes a step of the trace differently."""
    numbers = {action: number for number, action in enumerate(map(id, model.actions))}
    return any(
        mutant.actions[numbers[id(step.action)]].bind()(before.state) != step.state for before, step in pairwise(trace)
    )


def _mutant_of(model: Model, mutant: str) -> Model:
    return MODELS[model.name].build(_given(model.parameters) | {"mutant": mutant})


def _given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}
