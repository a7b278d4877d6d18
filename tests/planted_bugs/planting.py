"""How a bug is planted: the source of one function is changed at one place, and its code replaced while the bug lasts."""

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple


class PlantedBug(NamedTuple):
    """In `function` (module below `spec`, a colon, its name), the text `old` becomes `new`."""

    name: str
    function: str
    old: str
    new: str


def function_of(bug: PlantedBug) -> FunctionType:
    """The function in which a bug is planted."""
    module, _, path = bug.function.partition(":")
    found: Any = importlib.import_module(f"spec.{module}")
    for part in path.split("."):
        found = inspect.getattr_static(found, part)
    if isinstance(found, property):
        found = found.fget
    assert isinstance(found, FunctionType), bug
    return found


def source_with(bug: PlantedBug) -> str:
    """The source of the function with the bug in it."""
    source = textwrap.dedent(inspect.getsource(function_of(bug)))
    assert source.count(bug.old) == 1, f"{bug.name}: {source.count(bug.old)} places to plant it in {bug.function}"
    planted = source.replace(bug.old, bug.new)
    return planted[planted.index("def ") :]


def code_with(bug: PlantedBug) -> CodeType:
    """The code of the function with the bug in it."""
    function, names = function_of(bug), {}  # type: FunctionType, dict[str, Any]
    compiled = compile("from __future__ import annotations\n" + source_with(bug), f"<{bug.name}>", "exec")
    exec(compiled, function.__globals__, names)
    planted = names[function.__name__]
    assert isinstance(planted, FunctionType)
    return planted.__code__


@contextmanager
def planted(bug: PlantedBug) -> Iterator[None]:
    """While the block runs, everybody who calls the function gets the bug."""
    function = function_of(bug)
    sound, function.__code__ = function.__code__, code_with(bug)
    try:
        yield
    finally:
        function.__code__ = sound
