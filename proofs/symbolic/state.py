"""A symbolic state of a model: unknown values in its slots, for any number of epochs."""

from collections.abc import Callable, Mapping
from typing import Any

import z3

from kspec.model_check.core.model import Model, Slot
from kspec.proofs.symbolic.brokers import Brokers
from kspec.proofs.symbolic.shapes import Shape, Unknown, shape_of
from kspec.proofs.symbolic.values import Kind, Name, number
from kspec.spec.values import BrokerId

Key = Any
"""A slot's key: a broker's id, an epoch (which may be symbolic), or `None`."""


class UnknownSlotError(LookupError):
    """A theorem reads a slot that its model does not have: one of the two uses another name for it."""


def terms(key: Key) -> tuple[Any, ...]:
    """A slot's key as Z3 terms."""
    return () if key is None else (number(key),)


class SymbolicState:
    """Values by slot name and key. Slots of one name are one function of the key, so that the key may be symbolic."""

    def __init__(self, shapes: Mapping[str, Shape], families: Mapping[str, Callable[[Key], Any]]) -> None:
        self.shapes, self.families = shapes, families
        self.known: dict[tuple[str, Any], Any] = {}

    def at(self, name: str, key: Key = None) -> Any:
        """The value of the slot `name` with this key."""
        if name not in self.families:
            raise UnknownSlotError(f"the model has no slot {name!r}; it has {', '.join(sorted(self.families))}")
        place = (name, key if isinstance(key, int | None) else number(key).get_id())
        if place not in self.known:
            self.known[place] = (self.families[name](key), key)
        return self.known[place][0]

    def with_writes(self, writes: Mapping[tuple[str, Key], Any]) -> "SymbolicState":
        """The state in which these slots have new values."""
        families = dict(self.families)
        for (name, key), value in writes.items():
            families[name] = _overlay(families[name], self.shapes[name], key, value)
        return SymbolicState(self.shapes, families)


def _overlay(before: Callable[[Key], Any], shape: Shape, written: Key, value: Any) -> Callable[[Key], Any]:
    def at(key: Key) -> Any:
        if isinstance(key, int) and isinstance(written, int):
            return value if key == written else before(key)
        if key is written:
            return value
        if isinstance(key, Name) and isinstance(written, Name):
            return before(key)  # two names are two different brokers or epochs
        return shape.either(z3.simplify(number(key) == number(written)), value, before(key))

    return at


def shapes_of(model: Model, brokers: Brokers) -> dict[str, Shape]:
    """The shape of each slot name."""
    return {slot.name: shape_of(slot.holds, brokers) for slot in model.slots}


def unknown_state(model: Model, shapes: Mapping[str, Shape], prefix: str = "") -> SymbolicState:
    """An unknown state."""

    def family(slot: Slot) -> Callable[[Key], Any]:
        column: Unknown = shapes[slot.name].unknown(prefix + slot.name, 0 if slot.key is None else 1)
        return lambda key: column(*terms(key))

    return SymbolicState(shapes, {slot.name: family(slot) for slot in model.slots})


def kinds_of_arguments(model: Model, shapes: Mapping[str, Shape]) -> dict[str, tuple[Kind, ...]]:
    """The kinds of the arguments of the Z3 functions that make up an unknown state, by name."""
    return {
        function: (*_kind_of_key(slot), *kinds)
        for slot in model.slots
        for function, kinds in shapes[slot.name].arguments(slot.name).items()
    }


def _kind_of_key(slot: Slot) -> tuple[Kind, ...]:
    """A key is a broker, or else a name, which says what it is about."""
    key: Any = slot.key
    if key is None:
        return ()
    return (key.kind,) if isinstance(key, Name) else (BrokerId,)


def initial_state(model: Model, shapes: Mapping[str, Shape]) -> SymbolicState:
    """The initial state: all slots with the same name start with the same value, whatever their key."""
    values: dict[str, Any] = {}
    for slot, value in zip(model.slots, model.initial, strict=True):
        assert values.setdefault(slot.name, value) == value, f"slots {slot.name} start with different values"
    lifted = {name: shapes[name].lift(value) for name, value in values.items()}
    return SymbolicState(shapes, {name: lambda key, value=value: value for name, value in lifted.items()})  # type: ignore[misc]
