"""Decisions from an earlier state are not put in place later, over what others have done meanwhile.

A function that a broker keeps to call it later (a nested one, a lambda) and that holds what was worked out from a state
before is where that can happen: groups once lost acknowledged commits so. The list below has all such places in `impl`, and
why each is sound. A new one needs a reason, or reads the state when it is called.
"""

import ast
import re
from collections.abc import Iterator

import pytest

from tests.limits.turns import Turns
from tests.places import REPOSITORY

IMPL = REPOSITORY / "impl"
ONLOOKERS = ("impl/dump/", "impl/wire/")
WORKED_OUT = re.compile(
    r"\.(step|_run|run|decide\w*|take|handle\w*)\(|\b(handle|on)_\w+\(|\.(state|partition|image|group|high_watermarks|job)\b"
    r"|\.(group|high_watermarks|flush_job|producers)\("
)
"""An expression that reads a state, or asks a handler of `spec`."""

OUTCOME = re.compile(r"^(step|state|before|after|decision|decided|image|group)$")
"""An argument that is what a handler has read, or what came of it."""

KNOWN = {
    "impl/requests/groups.py decide before": "is called before anything else happens, if the log refuses the records",
    "impl/requests/groups.py _take_event before": "as `decide before`",
    "impl/requests/groups.py _take_event step": "as `decide before`",
    "impl/server/housekeeping.py _checkpoint_high_watermarks marks": "one thread writes them, in the order they were read",
    "impl/server/housekeeping.py _flush job": "does not count if the log has been cut meanwhile",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def places_in(source: str) -> Iterator[str]:
    """Each function, and the variable in it that a nested function holds."""
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, Function):
            yield from (f"{function.name} {name}" for name in _held(function))


def _held(function: Function) -> set[str]:
    worked_out = {
        name.id
        for statement in _own(function)
        if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None
        if WORKED_OUT.search(ast.unparse(statement.value))
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        for name in ast.walk(target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    worked_out |= {one.arg for one in arguments if OUTCOME.search(one.arg)}
    return {
        name.id
        for kept in ast.walk(function)
        if kept is not function and isinstance(kept, (*Function.__args__, ast.Lambda))
        for name in ast.walk(kept)
        if isinstance(name, ast.Name) and name.id in worked_out
    }


def _own(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function without those of nested ones."""
    waiting: list[ast.AST] = list(function.body)
    turns = Turns()
    while waiting:
        turns.go()
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            waiting += ast.iter_child_nodes(node)


def test_the_places_where_something_worked_out_is_kept_are_these() -> None:
    found = set()
    for path in sorted(IMPL.rglob("*.py")):
        name = str(path.relative_to(REPOSITORY))
        if not name.startswith(ONLOOKERS):
            found |= {f"{name} {place}" for place in places_in(path.read_text(encoding="utf-8"))}
    assert found == set(KNOWN)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("def take(self):\n    step = self.run(h, g)\n    def then(error):\n        self.keep(step.state)", ["take step"]),
        ("def take(self, step):\n    def then(error):\n        self.keep(step.state)\n    append(then)", ["take step"]),
        ("def take(self):\n    before = self.core.image.topics\n    return lambda now: use(before)", ["take before"]),
        ("def take(self):\n    return lambda now: self.run(h, self.state)", []),
        ("def take(self, group):\n    step = self.run(h, group)\n    self.keep(step.state)", []),
    ],
)
def test_such_a_place_is_found(source: str, found: list[str]) -> None:
    """The second is how groups lost commits."""
    assert list(places_in(source)) == found
