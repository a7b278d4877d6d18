"""One value of each class that the broker's side of the specification has, made from the types of its fields."""

import types
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, NewType, TypeVar, Union, get_args, get_origin, get_type_hints

from kspec import spec
from kspec.spec.log.record_log import EMPTY_LOG

FOLDERS = ("broker", "log", "messages", "zookeeper/broker.py")
"""The place of the broker's side in `spec/`."""


def sample(hint: Any) -> Any:
    """Some value of a type: for a record of fields, one with a sample in each."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, Union):
        return sample(arguments[0])
    if isinstance(hint, NewType):
        return sample(hint.__supertype__)
    if origin is Callable or getattr(hint, "_is_protocol", False):
        return sample
    if isinstance(hint, TypeVar):
        return EMPTY_LOG
    kind = origin or hint
    if issubclass(kind, Enum):
        return next(iter(kind))
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        names = [field.name for field in fields(kind)] if is_dataclass(kind) else kind._fields
        return kind(**{name: sample(hints[name]) for name in names})
    return kind()


def _modules() -> Iterator[str]:
    top = Path(spec.__path__[0])
    for folder in FOLDERS:
        place = top / folder
        for file in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            yield ".".join(("kspec", "spec", *file.relative_to(top).with_suffix("").parts))


def _classes() -> list[type]:
    found = [
        value
        for module in _modules()
        for value in vars(import_module(module)).values()
        if isinstance(value, type) and value.__module__ == module
    ]
    return [cls for cls in found if not getattr(cls, "_is_protocol", False) and not issubclass(cls, Enum)]


BROKER_VALUES: tuple[Any, ...] = tuple(sample(cls) for cls in _classes())
