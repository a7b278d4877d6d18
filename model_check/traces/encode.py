"""Values as JSON and as words, derived from their fields. No type of value lists its own fields."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import singledispatch
from typing import Any

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Model, State


def fields_of(value: Any) -> dict[str, Any] | None:
    """The fields of a record by name, if the value is one: a named tuple or a dataclass."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        named: dict[str, Any] = value._asdict()
        return named
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    return None


def as_json(value: Any) -> Any:
    """A value of a slot as JSON: records of fields become objects, sets become sorted lists."""
    if isinstance(value, Enum):
        return value.name
    if (record := fields_of(value)) is not None:
        return {name: as_json(field) for name, field in record.items()}
    if isinstance(value, frozenset):
        return sorted((as_json(member) for member in value), key=repr)
    if isinstance(value, tuple):
        return [as_json(member) for member in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(key): as_json(member) for key, member in value.items()}
    return value


def state_as_json(model: Model, state: State) -> dict[str, Any]:
    """A state by slot name; slots with keys become objects by key."""
    described: dict[str, Any] = {}
    for slot, value in zip(model.slots, state, strict=True):
        if slot.key is None:
            described[slot.name] = as_json(value)
        else:
            described.setdefault(slot.name, {})[str(slot.key)] = as_json(value)
    return described


def trace_as_json(model: Model, trace: Trace) -> list[dict[str, Any]]:
    """A trace as a list of `action` (`null` for the initial state), `args` and `state`."""
    return [
        {
            "action": step.action.name if step.action else None,
            "args": as_json(step.action.args) if step.action else {},
            "state": state_as_json(model, step.state),
        }
        for step in trace
    ]


@singledispatch
def in_words(value: Any) -> str:
    """A value as a reader of traces sees it. A model registers its own words for values that are hard to read by field."""
    if (record := fields_of(value)) is not None:
        return ", ".join(f"{name} {in_words(field)}" for name, field in record.items())
    return str(value)


@in_words.register
def _(value: frozenset) -> str:  # type: ignore[type-arg]
    return "{" + ", ".join(sorted(in_words(member) for member in value)) + "}"
