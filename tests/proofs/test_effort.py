"""Limits are in Z3's units, so that answers do not depend on how fast a machine is; the clock only stops what hangs."""

from itertools import count
from pathlib import Path

import pytest
import z3

from kspec import proofs
from kspec.proofs import effort
from kspec.proofs.effort import Effort, StoppedByClockError


def pigeons(holes: int) -> z3.Solver:
    """More pigeons than holes, each in a hole of its own: hard to refute. Z3 knows of nothing else."""
    context = z3.Context()
    inside = [[z3.Bool(f"{pigeon} in {hole}", context) for hole in range(holes)] for pigeon in range(holes + 1)]
    solver = z3.Solver(ctx=context)
    solver.add(*map(z3.Or, inside))
    solver.add(*(z3.AtMost(*(inside[pigeon][hole] for pigeon in range(holes + 1)), 1) for hole in range(holes)))
    return solver


def test_too_little_effort_leaves_a_question_open_and_is_spent() -> None:
    spent = Effort(20_000)
    assert spent.ask(pigeons(9)) == z3.unknown
    assert spent.left <= 0
    assert spent.ask(pigeons(1)) == z3.unknown
    assert Effort(20_000).ask(pigeons(1)) == z3.unsat


def test_the_same_question_costs_the_same() -> None:
    costs = []
    for _ in range(2):
        spent = Effort(50_000_000)
        assert spent.ask(pigeons(5)) == z3.unsat
        costs.append(50_000_000 - spent.left)
    assert costs[0] == costs[1] > 100


def test_a_part_is_spent_from_the_whole_and_no_more_than_is_left_of_it() -> None:
    whole = Effort(10)
    first = whole.part(6)
    first.spend(4)
    assert (first.left, whole.left) == (2, 6)
    assert whole.part(100).left == 6
    first.part(1).spend(6)
    assert (first.left, whole.left) == (-4, 0)


def test_what_takes_too_long_is_stopped_by_the_clock_and_not_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = count()
    monkeypatch.setattr(effort, "monotonic", lambda: 3600.0 * next(hours))
    with pytest.raises(StoppedByClockError, match="the clock stopped Z3 after 600 s"):
        Effort(20_000).ask(pigeons(9))
    assert Effort(20_000).ask(pigeons(1)) == z3.unsat


def test_nothing_else_limits_a_question_in_seconds() -> None:
    """Z3 has a time limit in one place, where running into it is told apart from not knowing."""
    folder = Path(proofs.__file__).parent
    assert [path.name for path in folder.rglob("*.py") if '"timeout"' in path.read_text()] == ["effort.py"]
