"""Values of slots as JSON that can be read back exactly, and that runs no code when it is read.

Numbers, strings, booleans and `null` are themselves and a list is a tuple. A set is `{"set": […]}`, and bytes are
`{"bytes": "hexadecimal"}`. A named tuple or a frozen dataclass is `{"module:Class": [fields in order]}`, a member of an
enumeration `{"module:Class": "NAME"}`, and a number that is a class of its own `{"module:Class": number}`.
"""

import dataclasses
import json
import sys
from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any

from kspec.model_check.core.model import NotebookState

_SET, _BYTES = "set", "bytes"


class UnknownValueError(ValueError):
    """A value of a type that cannot be written, or text that describes no value."""


def value_as_text(value: Any) -> str:
    """A value on one line."""
    return json.dumps(_written(value), separators=(",", ":"))


def value_from_text(text: str | bytes) -> Any:
    """The value that `value_as_text` has written; `UnknownValueError` for anything else."""
    try:
        return _read(json.loads(text))
    except UnknownValueError:
        raise
    except (ValueError, TypeError, KeyError) as error:
        raise UnknownValueError(f"this describes no value: {error}") from error


def _written(value: Any) -> Any:
    kind: Any = type(value)
    if kind is int or kind is str or kind is bool or value is None:
        return value
    if kind is tuple or kind is NotebookState:
        return [_written(member) for member in value]
    if kind is frozenset:
        return {_SET: [_written(member) for member in value]}
    if kind is bytes:
        return {_BYTES: value.hex()}
    if isinstance(value, Enum):
        return {_name(kind): value.name}
    if isinstance(value, int):
        return {_name(kind): int(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {_name(kind): [_written(member) for member in value]}
    if dataclasses.is_dataclass(value):
        return {_name(kind): [_written(getattr(value, name)) for name in _fields(kind)]}
    raise UnknownValueError(f"values of type {kind.__module__}.{kind.__qualname__} cannot be kept in a checkpoint")


def _read(described: Any) -> Any:
    if isinstance(described, list):
        return tuple([_read(member) for member in described])
    if not isinstance(described, dict):
        return described
    if len(described) != 1:
        raise UnknownValueError(f"this describes no value: {described}")
    ((name, content),) = described.items()
    if name == _SET:
        return frozenset([_read(member) for member in content])
    if name == _BYTES:
        return bytes.fromhex(content)
    return _maker(name)(content if isinstance(content, str | int) else [_read(member) for member in content])


@cache
def _name(kind: type) -> str:
    name = _name_of(kind)
    _maker(name)  # what could not be read back is refused when it is written
    return name


def _name_of(kind: type) -> str:
    """A class by its module, without the package's own name before it, and its name in there."""
    return f"{kind.__module__.removeprefix('kspec.')}:{kind.__qualname__}"


@cache
def _fields(kind: Any) -> tuple[str, ...]:
    fields = dataclasses.fields(kind)
    if any(not field.init for field in fields):
        raise UnknownValueError(f"{kind.__qualname__} has fields that its constructor does not take")
    return tuple(field.name for field in fields)


@cache
def _maker(name: str) -> Callable[[Any], Any]:
    """Makes a value from its fields: only classes of records and enumerations that the model has already loaded."""
    module, _, path = name.partition(":")
    kind: Any = sys.modules.get(f"kspec.{module}") or sys.modules.get(module)
    for part in path.split("."):
        kind = getattr(kind, part, None)
    if not isinstance(kind, type) or _name_of(kind) != name:
        raise UnknownValueError(f"there is no class {name}")
    if issubclass(kind, Enum):
        return kind.__getitem__
    if issubclass(kind, int) and kind.__new__ is int.__new__ and kind.__init__ is int.__init__ and kind is not int:
        return kind
    if issubclass(kind, tuple) and hasattr(kind, "_make"):
        make: Callable[[Any], Any] = kind._make
        return make
    if dataclasses.is_dataclass(kind):
        return lambda fields: kind(*fields)
    raise UnknownValueError(f"{name} is neither a record nor an enumeration nor a number")
