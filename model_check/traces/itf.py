"""Traces in the Informal Trace Format (ITF), which Apalache, Quint and the ITF viewers read.

See `docs/formats.md`. Sets, tuples and maps keep their types: `{"#set": …}`, `{"#tup": …}`, `{"#map": …}`.
"""

from enum import Enum
from typing import Any

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Model, State
from kspec.model_check.traces.encode import fields_of
from kspec.model_check.traces.parameters import model_as_json


def as_itf(model: Model, trace: Trace, description: str) -> dict[str, Any]:
    """An ITF document: one variable for each slot name, and the action taken with its arguments.

    Its `#meta` has the model and all its parameters, so that the run can be taken again.
    """
    names = list(dict.fromkeys(slot.name for slot in model.slots))
    states = []
    for index, step in enumerate(trace):
        action = step.action
        args = {name: _encode(value) for name, value in action.args.items()} if action else {}
        states.append(
            {
                "#meta": {"index": index},
                "action": action.name if action else "init",
                "args": args,
                **variables_of(model, step.state),
            }
        )
    return {
        "#meta": {
            "format": "ITF",
            "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
            "description": description,
            **model_as_json(model),
        },
        "params": [],
        "vars": ["action", "args", *names],
        "states": states,
    }


def variables_of(model: Model, state: State) -> dict[str, Any]:
    """A state by variables: slots with a key are a map."""
    variables: dict[str, Any] = {}
    for slot, value in zip(model.slots, state, strict=True):
        if slot.key is None:
            variables[slot.name] = _encode(value)
        else:
            variables.setdefault(slot.name, {"#map": []})["#map"].append([slot.key, _encode(value)])
    return variables


def _encode(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.name
    if (record := fields_of(value)) is not None:
        return {name: _encode(field) for name, field in record.items()}
    if isinstance(value, frozenset):
        return {"#set": sorted((_encode(member) for member in value), key=repr)}
    if isinstance(value, tuple):
        return [_encode(member) for member in value]
    if isinstance(value, bytes):
        return value.hex()
    return value
