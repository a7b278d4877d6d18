"""Traces that together cover an explored model: every action, every pair of consecutive actions, every property decided.

The tables of an exploration (`tables.py`) say where each goal is met first. The way there is found backwards, one level at a
time, for all goals at once; what a longer trace covers on its way needs no trace of its own.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from model_check.encode import as_json
from model_check.exploration import Step, Trace
from model_check.model import Action, Model
from model_check.models import MODELS
from model_check.spark.runs import Folder
from model_check.spark.session import SparkError

Move = tuple[str, str]
"""An action's name and its arguments as JSON."""


class _Goal(NamedTuple):
    """Something to cover: the state that a shortest way to it leads to, its depth, and the moves from there."""

    name: str
    depth: int
    state: bytes
    moves: tuple[Move, ...]


class Covering(NamedTuple):
    """A trace, and the goals that no trace before it covers."""

    trace: Trace
    goals: list[str]


def _name_of_pair(first: Move, second: Move) -> str:
    return f"{first[0]} > {second[0]}"


_COVERED: dict[str, Callable[[Sequence[Move]], Iterable[str]]] = {
    "actions": lambda moves: (action for action, _ in moves),
    "arguments": lambda moves: (f"{action} {arguments}" for action, arguments in moves),
    "pairs": lambda moves: (_name_of_pair(first, second) for first, second in pairwise(moves)),
    "properties": lambda moves: (),
}
"""What the moves of a trace cover, by the kind of goals."""

KINDS = tuple(_COVERED)


def model_of(url: str) -> Model:
    """The model that the tables in this folder are of."""
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
    return MODELS[described[b"kspec.model"].decode()].build(given)


def covering_traces(context: Any, url: str, kind: str) -> list[Covering]:
    """Traces that meet every goal of a kind, the longest first. `kind` is one of `KINDS`."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 (an extra)

    model = model_of(url)
    session = SparkSession(context)
    transitions = session.read.parquet(f"{url}/transitions")
    goals = _goals_in_states(session.read.parquet(f"{url}/states")) if kind == "properties" else _goals(transitions, kind)
    ways = _ways_to(transitions, {goal.state: goal.depth for goal in goals})
    chosen, covered = list[Covering](), set[str]()
    for goal in sorted(goals, key=lambda goal: (-goal.depth - len(goal.moves), goal.name)):
        if goal.name in covered:
            continue
        moves = [*ways[goal.state], *goal.moves]
        new = ({goal.name} | set(_COVERED[kind](moves))) - covered
        covered |= new
        chosen.append(Covering(_trace(model, moves), sorted(new)))
    return chosen


def _goals(transitions: Any, kind: str) -> list[_Goal]:
    """Where each action, each action with its arguments, or each pair of actions is taken first."""
    from pyspark.sql import functions as sql  # noqa: PLC0415

    first = transitions.select("depth", "source", "action", "arguments", "target")
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
    """Where each property is decided first."""
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
    trace = [Step(None, model.initial)]
    for move in moves:
        taken = [(action, action.bind()(trace[-1].state)) for action in by_move[move]]
        enabled = [(action, successor) for action, successor in taken if successor is not None]
        assert len(enabled) == 1, f"{move[0]} {move[1]}: one way to take it, not {len(enabled)}"
        trace.append(Step(*enabled[0]))
    return tuple(trace)
