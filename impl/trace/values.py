"""Values of `spec` as JSON and back. A value says its class, so that it comes back equal."""

import importlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None

PLAIN = (bool, int, float, str, type(None))


class TraceError(Exception):
    """A line that is no step."""


def name_of(thing: type | Callable[..., object]) -> str:
    """A class or function of `spec` by its module and name, without the package's own name before them."""
    return f"{thing.__module__.removeprefix('kspec.')}.{thing.__qualname__}"


@cache
def named(name: str) -> Any:
    """The class or function of this name; only those of `spec` are looked for."""
    module, _, last = name.rpartition(".")
    if not module.startswith("spec."):
        raise TraceError(f"{name} is not in spec")
    try:
        return getattr(importlib.import_module(f"kspec.{module}"), last)
    except (ImportError, AttributeError):
        raise TraceError(f"there is no {name}") from None


def encode(value: object, rules: Collection[type]) -> Json:
    """A value as JSON. Records of rules hold functions: they are named by their kind, and the header says which they are."""
    if isinstance(value, Enum):
        return {"enum": name_of(type(value)), "name": value.name}
    if isinstance(value, PLAIN):
        return value
    if type(value) in rules:
        return {"rules": type(value).__name__}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return {"value": name_of(type(value)), "fields": [encode(one, rules) for one in value]}
    if is_dataclass(value):
        return {"value": name_of(type(value)), "fields": [encode(getattr(value, one.name), rules) for one in fields(value)]}
    if isinstance(value, tuple):
        return [encode(one, rules) for one in value]
    if isinstance(value, frozenset):
        return {"set": sorted((encode(one, rules) for one in value), key=repr)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    raise TypeError(f"a {type(value).__name__} has no words in a trace")


def decode(words: Any, rules: Mapping[type, object]) -> Any:
    """The value of some JSON. Raises: `TraceError`."""
    if isinstance(words, list):
        return tuple(decode(one, rules) for one in words)
    if not isinstance(words, dict):
        return words
    if "enum" in words:
        return named(words["enum"])[words["name"]]
    if "rules" in words:
        return next(value for kind, value in rules.items() if kind.__name__ == words["rules"])
    if "set" in words:
        return frozenset(decode(one, rules) for one in words["set"])
    if "bytes" in words:
        return bytes.fromhex(words["bytes"])
    if "value" not in words:
        raise TraceError(f"no value: {words}")
    return named(words["value"])(*[decode(one, rules) for one in words["fields"]])
