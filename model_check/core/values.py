"""Values of slots, as engines need them to tell them apart: equal exactly when they are the same.

States are found again by comparing them, and Python calls values of different types equal: `1 == True == 1.0`, and named
tuples of two classes with the same fields. A rule can tell them apart. So a slot in which both come up is refused, by every
engine, in the same words.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from operator import attrgetter
from typing import Any

from kspec.model_check.core.model import Action, Model, ModelError, State

_PLAIN = frozenset({int, str, bool, bytes, type(None)})


def alike(one: Any, other: Any) -> bool:
    """Whether two equal values have the same type, and so have all their parts."""
    return one is other or _difference(one, other) is None


def _difference(one: Any, other: Any) -> tuple[Any, Any] | None:
    """The innermost parts of two equal values whose types differ; `None` if there are none."""
    kind = type(one)
    if kind is not type(other):
        return one, other
    if kind in _PLAIN:
        return None if one == other else (one, other)
    if issubclass(kind, tuple):
        pairs: Any = zip(one, other, strict=True)
    elif issubclass(kind, frozenset):
        kinds = set(map(type, one))
        if len(kinds) < 2 and kinds <= _PLAIN and kinds == set(map(type, other)):  # nearly always
            return None
        members = {member: member for member in other}
        pairs = [(member, members[member]) for member in one]
    elif is_dataclass(kind):
        parts = _fields_of(kind)
        pairs = zip(parts(one), parts(other), strict=True)
    elif kind is float:  # 0.0 == -0.0
        return None if repr(one) == repr(other) else (one, other)
    else:
        return None if one == other else (one, other)
    for first, second in pairs:
        if first is not second and (found := _difference(first, second)) is not None:
            return found
    return None


@cache
def _fields_of(record: Any) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives the values of a dataclass's fields."""
    names = [field.name for field in fields(record)]
    if len(names) < 2:
        return lambda value: tuple(getattr(value, name) for name in names)
    values: Callable[[Any], tuple[Any, ...]] = attrgetter(*names)
    return values


def unlike(where: str, one: Any, other: Any) -> ModelError:
    """Says that two values of a slot are equal, though their types differ."""
    first, second = _difference(one, other) or (one, other)
    kinds = [type(part).__qualname__ for part in (first, second)]
    if kinds[0] == kinds[1]:
        kinds = [f"{type(part).__module__}.{type(part).__qualname__}" for part in (first, second)]
    whole = "" if first is one else f" (in {one!r} and {other!r})"
    return ModelError(
        f"{where} holds {first!r} ({kinds[0]}) and {second!r} ({kinds[1]}){whole}: Python calls them equal, so states with"
        " one cannot be told from states with the other; let a slot's values have one type"
    )


def check_value(where: str, value: Any) -> None:
    """Refuse, with `ModelError`, a value that can never be found again because it is equal to nothing but itself."""
    if isinstance(value, tuple | frozenset):
        for member in value:
            if type(member) not in _PLAIN:
                check_value(where, member)
    elif isinstance(value, Iterator):
        raise ModelError(
            f"{where} holds {_short(value)}, which is used up when it is read; let the rule return a tuple of its members"
        )
    elif value != value:  # noqa: PLR0124 (nan)
        raise ModelError(f"{where} holds {value!r}, which is not equal to itself: a state with it is never found again")


def not_hashable(where: str, value: Any) -> ModelError:
    """Says that a value cannot be a slot's."""
    return ModelError(
        f"{where} holds {_short(value)} ({type(value).__qualname__}), which is not hashable: values are numbers, text,"
        " tuples, frozensets, and frozen records of these"
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def groups_of_slots(model: Model) -> list[str]:
    """For each slot, the name of the slots that hold values like its own: its family's, if it is of or about a broker."""
    alone = [slot.broker is None and slot.about is None for slot in model.slots]
    return [slot.label if by_itself else f"{slot.family}[…]" for slot, by_itself in zip(model.slots, alone, strict=True)]


class KnownValues:
    """The values that slots have held: refuses, with `ModelError`, one that is equal to another and unlike it."""

    def __init__(self, model: Model) -> None:
        self._names = [f"model {model.name}: slot {name}" for name in groups_of_slots(model)]
        known: dict[str, dict[Any, Any]] = {}
        self._known = [known.setdefault(name, {}) for name in self._names]
        self._take(model.initial, range(len(model.slots)))

    def watched(self, action: Action, skip: int = 0) -> Callable[[State], State | None]:
        """The action as `Action.bind` gives it; the values that it writes are noted."""
        fire, written = action.bind(skip), [slot.position for slot in action.writes]

        def fire_and_note(state: State) -> State | None:
            successor = fire(state)
            if successor is not None:
                self._take(successor, written)
            return successor

        return fire_and_note

    def _take(self, state: State, positions: Iterable[int]) -> None:
        """Note the values of a state at these positions."""
        for position in positions:
            value, known = state[position], self._known[position]
            try:
                first = known.get(value, known)
            except TypeError as error:
                raise not_hashable(self._names[position], value) from error
            if first is known:
                check_value(self._names[position], value)
                known[value] = value
            elif first is not value and not alike(first, value):
                raise unlike(self._names[position], first, value)
