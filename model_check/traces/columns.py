"""A model's slots as columns of Arrow tables."""

import json
import typing
from enum import Enum
from typing import Any

import pyarrow

from kspec.model_check.core.model import Model, Slot
from kspec.model_check.traces.parameters import model_as_json


def column_name(slot: Slot) -> str:
    """The column of a slot: `partition`, or with its key `log_1`."""
    return slot.name if slot.key is None else f"{slot.name}_{slot.key}"


def arrow_type(annotation: Any) -> pyarrow.DataType | None:
    """The type of a column for values of this type, as `as_json` encodes them; `None` if values can be of several kinds."""
    annotation = getattr(annotation, "__supertype__", annotation)  # a broker id is an int
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (frozenset, tuple) and (origin is frozenset or arguments[1:] == (...,)):
        inner = arrow_type(arguments[0])
        return None if inner is None else pyarrow.list_(inner)
    if not isinstance(annotation, type):
        return None
    if issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
        hints = typing.get_type_hints(annotation)
        fields = [(name, arrow_type(hints[name])) for name in annotation._fields]
        return None if any(inner is None for _, inner in fields) else pyarrow.struct(fields)
    if issubclass(annotation, Enum | str):
        return pyarrow.string()
    if issubclass(annotation, bool):
        return pyarrow.bool_()
    return pyarrow.int64() if issubclass(annotation, int) else None


def slot_type(slot: Slot) -> pyarrow.DataType:
    """The type of a slot's column: that of its values, or JSON text where no single type fits all of them."""
    return arrow_type(slot.holds) or pyarrow.string()


def model_as_metadata(model: Model) -> dict[str, str]:
    """The metadata about the model in the files of all tables."""
    described = model_as_json(model)
    return {f"kspec.{name}": said if isinstance(said, str) else json.dumps(said) for name, said in described.items()}
