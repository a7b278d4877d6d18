"""Each handler of `spec` that a process calls is told of, so that a trace has all of its steps."""

import ast
import importlib
import inspect
from collections.abc import Iterator

import pytest

from tests.places import REPOSITORY

OUTCOMES = ("spec.step.Step",)
"""The results of handlers, as their annotations name it."""


def handlers_called_in(source: str) -> Iterator[str]:
    """The handlers of `spec` that a module calls by itself."""
    tree = ast.parse(source)
    imported = {
        name.asname or name.name: getattr(importlib.import_module(node.module), name.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("kspec.spec.")
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = imported.get(node.func.id)
            if inspect.isfunction(called) and any(one in str(called.__annotations__.get("return")) for one in OUTCOMES):
                yield f"{node.func.id} in line {node.lineno}"


MODULES = sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "impl").rglob("*.py"))


@pytest.mark.parametrize("module", MODULES)
def test_no_handler_is_called_without_being_told_of(module: str) -> None:
    assert list(handlers_called_in((REPOSITORY / module).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "handler",
    [
        ("spec.broker.lifecycle", "next_communication"),
        ("spec.broker.leader.produce", "handle_produce"),
        ("spec.controller.brokers", "handle_broker_heartbeat"),
        ("spec.controller.topics.creation", "handle_create_topics"),
        ("spec.coordinator.joining", "handle_join_group"),
    ],
)
def test_a_handler_that_is_called_so_is_found(handler: tuple[str, str]) -> None:
    module, name = handler
    assert list(handlers_called_in(f"from kspec.{module} import {name}\n{name}()\n")) == [f"{name} in line 2"]
