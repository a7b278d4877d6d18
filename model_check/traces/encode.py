"""Values as JSON and as words, derived from their fields: no value lists its own."""

from collections.abc import Mapping
from enum import Enum
from functools import singledispatch
from typing import Any

from model_check.core.exploration import Trace
from model_check.core.model import Model, State
from spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from spec.log.record_log import RecordLog
from spec.values import NO_EPOCH, NO_LEADER, NO_PARTITION_EPOCH, LeaderAndIsr, Record


def as_json(value: Any) -> Any:
    """A value of a slot as JSON: records of fields become objects, sets become sorted lists."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: as_json(field) for name, field in value._asdict().items()}
    if isinstance(value, frozenset):
        return sorted((as_json(member) for member in value), key=repr)
    if isinstance(value, tuple):
        return [as_json(member) for member in value]
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


def record_in_words(record: Record) -> str:
    """A record by its value and leader epoch: `m0(e1)` is the first record written, in epoch 1."""
    return f"m{record.value}(e{record.leader_epoch})"


@singledispatch
def in_words(value: Any) -> str:
    """A value as a reader of traces sees it. A model whose values read badly field by field registers words of its own."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return ", ".join(f"{name} {in_words(field)}" for name, field in value._asdict().items())
    return str(value)


@in_words.register
def _(value: frozenset) -> str:  # type: ignore[type-arg]
    return "{" + ", ".join(sorted(in_words(member) for member in value)) + "}"


@in_words.register
def _(value: Record) -> str:
    return record_in_words(value)


@in_words.register
def _(value: RecordLog) -> str:
    opened = f" +e{value.opened_epoch}" if value.opened_epoch != NO_EPOCH else ""
    return (" ".join(record_in_words(record) for record in value.records) or "empty") + opened


@in_words.register
def _(value: LeaderAndIsr) -> str:
    if value.leader == NO_LEADER and value.leader_epoch == NO_EPOCH and not value.isr:
        return "none"
    leader = "nobody leads" if value.leader == NO_LEADER else f"{value.leader} leads"
    epoch = "" if value.leader_epoch == NO_EPOCH else f" in epoch {value.leader_epoch}"
    return f"{leader}{epoch}, ISR {in_words(value.isr)}"


@in_words.register
def _(value: PartitionIsr) -> str:
    return f"ISR {in_words(value.isr)}, partition epoch {value.partition_epoch}"


@in_words.register
def _(value: LeaderIsr) -> str:
    known = f"ISR {in_words(value.isr)}, partition epoch {value.partition_epoch}"
    return known if value.pending_epoch == NO_PARTITION_EPOCH else f"{known}, pending {in_words(value.pending_isr)}"
