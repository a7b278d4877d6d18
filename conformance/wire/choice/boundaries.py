"""Runs to the boundaries of rules: each tells weakened rules that no run of a goal tells.

`boundaries.json` has the names of their moves, by subject. `python -m tests.conformance.wire.power` chooses them: it weakens
one place of a rule after the other and looks for a shortest run that is answered otherwise.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from kspec.conformance.wire.choice.graph import GraphStep, Run
from kspec.conformance.wire.model.subject import Subject
from kspec.spec.broker.protocol import BrokerProtocol

FILE = Path(__file__).with_name("boundaries.json")


class BoundaryRun(NamedTuple):
    """The moves of a run, by their names, and the rule to whose boundary it goes (its module, a colon, its name)."""

    rule: str
    moves: tuple[str, ...]


@cache
def boundary_runs() -> dict[str, tuple[BoundaryRun, ...]]:
    """The runs by subject."""
    kept = json.loads(FILE.read_text(encoding="utf-8"))
    return {subject: tuple(BoundaryRun(one["rule"], tuple(one["moves"])) for one in runs) for subject, runs in kept.items()}


def as_text(runs: Mapping[str, Sequence[BoundaryRun]]) -> str:
    """The file with these runs, one a line."""
    lines = []
    for subject in sorted(runs):
        inner = ",\n".join(
            f"    {json.dumps({'rule': one.rule, 'moves': list(one.moves)})}" for one in sorted(runs[subject])
        )
        lines.append(f'  "{subject}": [\n{inner}\n  ]')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def taken(subject: Subject, moves: Sequence[str], protocol: BrokerProtocol) -> Run:
    """A run by the names of its moves."""
    return tuple(_steps(subject, moves, protocol))


def _steps(subject: Subject, moves: Sequence[str], protocol: BrokerProtocol) -> Iterator[GraphStep]:
    by_name = {move.name: move for move in (*subject.looks, *subject.moves)}
    state = subject.initial
    for name in moves:
        done = by_name[name].take(protocol, state)
        assert done is not None, f"{subject.name}: {name} is not possible after {', '.join(moves)}; choose again"
        yield GraphStep(state, by_name[name], done.exchange)
        state = done.state
