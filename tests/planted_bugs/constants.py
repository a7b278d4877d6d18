"""Constants of a module: a number that is one more or less, a collection without one of its elements."""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from types import ModuleType
from typing import Any

OPERATOR = "change_constant"


def constants_of(module: ModuleType) -> Iterator[tuple[str, int, Any]]:
    """The constants that are written in a module: name, line, value."""
    for node in ast.parse(inspect.getsource(module)).body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id.isupper():
            yield target.id, node.lineno, getattr(module, target.id)


def others(value: Any) -> Iterator[tuple[str, Any]]:
    """Values that may stand in a constant's place, in words and as a value."""
    if isinstance(value, bool):
        yield f"{not value}", not value
    elif isinstance(value, int) and not isinstance(value, Enum):
        yield from ((f"{other}", other) for other in (value + 1, value - 1))
    elif isinstance(value, Mapping):
        yield from ((f"without {key}", {one: value[one] for one in value if one != key}) for key in value)
    elif isinstance(value, frozenset) or type(value) is tuple:
        for left_out in sorted(value, key=str):
            yield f"without {left_out}", type(value)(one for one in value if one != left_out)


@contextmanager
def changed(module: ModuleType, name: str, words: str) -> Iterator[None]:
    """While the block runs, all of `spec` and `impl` that reads the constant gets the other value."""
    sound = getattr(module, name)
    other = dict(others(sound))[words]
    readers = [one for one in list(sys.modules.values()) if _reads(one, name, sound)]
    for reader in readers:
        setattr(reader, name, other)
    try:
        yield
    finally:
        for reader in readers:
            setattr(reader, name, sound)


def _reads(module: ModuleType, name: str, value: Any) -> bool:
    room = getattr(module, "__name__", "")
    return room.startswith(("kspec.spec", "kspec.impl")) and vars(module).get(name) is value
