"""No test waits without a limit: a rule that is wrong by one millisecond must fail a test, and not stop all of them."""

import ast
from collections.abc import Iterator

import pytest

from tests.limits.turns import Turns
from tests.places import REPOSITORY

FILES = [path for path in sorted((REPOSITORY / "tests").rglob("*.py")) if path.name != "turns.py"]
WAITS = ("wait", "communicate")
"""Methods that wait for a process or an event for ever unless they are told how long."""

RUNS = ("run", "check_call", "check_output")
MAY_WAIT = (*WAITS, *RUNS, "join")

STARTED = ("thread", "killer", "process", "worker", "child")
"""Names of what a test has started, and may join."""


def unlimited(tree: ast.Module) -> Iterator[str]:
    """The places at which a test may wait for ever, in words."""
    limited = _limited_outside(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.While) and not _takes_turns(node):
            yield f"line {node.lineno}: the loop does not begin with the go() of a Turns"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAY_WAIT:
            owner = ast.unparse(node.func.value)
            if _has_limit(node) or id(node) in limited:
                continue
            joins = node.func.attr == "join" and not node.args and owner.rsplit(".", 1)[-1].startswith(STARTED)
            runs = owner == "subprocess" and node.func.attr in RUNS
            if joins or runs or (node.func.attr in WAITS and not node.args):
                yield f"line {node.lineno}: {owner}.{node.func.attr} has no timeout"


def _takes_turns(loop: ast.While) -> bool:
    first = loop.body[0]
    called = first.value.func if isinstance(first, ast.Expr) and isinstance(first.value, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "go" and ast.unparse(called.value).endswith("turns")


def _has_limit(call: ast.Call) -> bool:
    return any(keyword.arg in ("timeout", None) for keyword in call.keywords)


def _limited_outside(tree: ast.Module) -> set[int]:
    """The calls that `asyncio.wait_for` waits for, by their identities."""
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    waits = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "wait_for")
    return {id(argument) for wait in waits if ast.unparse(wait.func) == "asyncio.wait_for" for argument in wait.args}


def test_a_test_waits_with_a_limit() -> None:
    found = {path: list(unlimited(ast.parse(path.read_text(encoding="utf-8")))) for path in FILES}
    assert {str(path.relative_to(REPOSITORY)): places for path, places in found.items() if places} == {}


def test_a_loop_that_waits_for_what_never_comes_is_told() -> None:
    assert len(list(unlimited(ast.parse("while waits():\n    pass")))) == 1
    assert len(list(unlimited(ast.parse("process.wait()\nthread.join()\nsubprocess.run([])\ndone.wait(1)")))) == 3
    assert list(unlimited(ast.parse("while waits():\n    turns.go()\nprocess.wait(timeout=1)\ndriver.join()"))) == []
    turns = Turns(2, 600)
    turns.go()
    turns.go()
    with pytest.raises(AssertionError, match="2 times"):
        turns.go()
    with pytest.raises(AssertionError, match="waited for 0 s"):
        Turns(2, 0).go()
