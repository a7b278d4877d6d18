"""Symmetry: replicas are interchangeable, so states that differ only in which broker is which behave alike.

A permutation of broker ids acts on a state in two ways: slots that belong to a broker change places, and broker ids
inside values are renamed. How a value is renamed follows from the types of its fields (`BrokerId`, sets, tuples and
records of them), never from a list kept by hand. An exploration then keeps one *canonical* state of each orbit.
"""

import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import permutations
from types import NoneType, UnionType
from typing import Any, TypeAlias

from kspec.model_check.core.audit import reachable_states
from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.model import Model, Property, Slot, State
from kspec.model_check.core.preparation import at_work
from kspec.spec.values import BrokerId

Renaming: TypeAlias = Mapping[int, int]
Rename: TypeAlias = Callable[[Any, Renaming], Any]

STATES_TO_TRY = 200


MOST_BROKERS = 6
"""Of more brokers there are so many orders that renaming costs more than symmetry saves."""


class AsymmetryError(ValueError):
    """A model or a property that tells interchangeable brokers apart, or a model with too many of these brokers."""


class UnknownTypeError(TypeError):
    """A type for which no renaming of values is defined."""


def renamed(value: int, renaming: Renaming) -> int:
    """A broker's id under a renaming."""
    return renaming.get(value, value)


RENAMED: dict[Any, Rename] = {BrokerId: renamed}
"""The rule for values of a type that is a name for ids. A model adds the types whose values name its parties otherwise."""


def rename_rule(annotation: Any) -> Rename | None:
    """The rule by which values of this type are renamed, `None` if they hold no broker ids.

    Raises `UnknownTypeError` for a type that is neither a plain value, a record (`NamedTuple`, dataclass), a tuple or set of
    known types, nor a choice of types that can be told apart by the value.
    """
    if annotation in RENAMED:
        return RENAMED[annotation]
    if isinstance(annotation, typing.NewType):
        return rename_rule(annotation.__supertype__)
    if isinstance(annotation, typing.TypeVar):  # it may stand for any type: the value's own type decides
        return lambda value, renaming: rule(value, renaming) if (rule := rename_rule(type(value))) else value
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, UnionType):
        return _rule_of_choice(arguments)
    if origin is frozenset or (origin is tuple and arguments[1:] == (...,)):
        inner = rename_rule(arguments[0])
        return None if inner is None else lambda value, renaming: origin(inner(member, renaming) for member in value)
    if origin is tuple:
        return _rule_of_places([rename_rule(argument) for argument in arguments])
    if origin is not None:  # a record with parameters
        return rename_rule(origin)
    if isinstance(annotation, type):
        if issubclass(annotation, tuple) and hasattr(annotation, "_fields"):
            return _rule_of_fields(annotation, annotation._fields, lambda value, changes: value._replace(**changes))
        if is_dataclass(annotation):
            names = [field.name for field in fields(annotation)]
            return _rule_of_fields(annotation, names, lambda value, changes: replace(value, **changes))
        if issubclass(annotation, PLAIN):
            return None
    raise UnknownTypeError(f"how are values of {annotation} renamed? symmetry knows {', '.join(KNOWN)}")


PLAIN = (int, str, bytes, Enum, NoneType)
KNOWN = ("BrokerId", "numbers, text and enums", "NamedTuples and dataclasses", "tuple[…]", "frozenset[…]", "unions of these")


def _rule_of_fields(record: type, names: Iterable[str], changed: Callable[[Any, dict[str, Any]], Any]) -> Rename | None:
    hints = typing.get_type_hints(record)
    rules = {name: rule for name in names if (rule := rename_rule(hints[name]))}
    if not rules:
        return None
    return lambda value, renaming: changed(
        value, {name: rule(getattr(value, name), renaming) for name, rule in rules.items()}
    )


def _rule_of_places(rules: Sequence[Rename | None]) -> Rename | None:
    if not any(rules):
        return None
    return lambda value, renaming: tuple(
        rule(member, renaming) if rule else member for rule, member in zip(rules, value, strict=True)
    )


def _rule_of_choice(alternatives: Sequence[Any]) -> Rename | None:
    """The rule by the class of the value. The class must tell the alternatives apart if one of them holds broker ids."""
    rules = [(_class_of(alternative), rename_rule(alternative)) for alternative in alternatives]
    if not any(rule for _, rule in rules):
        return None
    if len({cls for cls, _ in rules}) < len(rules):
        raise UnknownTypeError(f"a value does not tell which of {', '.join(map(str, alternatives))} it is")
    by_class = dict(rules)

    def renamed(value: Any, renaming: Renaming) -> Any:
        rule = by_class[type(value)]
        return rule(value, renaming) if rule else value

    return renamed


def _class_of(annotation: Any) -> Any:
    """The class that values of this type have."""
    while isinstance(annotation, typing.NewType):
        annotation = annotation.__supertype__
    return typing.get_origin(annotation) or annotation


@lru_cache(maxsize=1 << 16)
def written(value: Any) -> str:
    """A value in words, the same for equal values. (`repr` writes the members of a set in any order.)"""
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(written(member) for member in value)) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(written(member) for member in value) + ")"
    return repr(value)


def _generators(brokers: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Two orders of brokers that generate all others: the first two exchanged, and all moved by one."""
    return (*brokers[1::-1], *brokers[2:]), (*brokers[1:], *brokers[:1])


def _renamed_place(slot: Slot, renaming: Renaming) -> tuple[str, int | None]:
    """A slot's new place: the slot of the same name that belongs to the broker's image, or is about its image."""
    name, key = slot.name, slot.key
    if slot.about is not None:
        name = f"{slot.family} {renaming.get(slot.about, slot.about)}"
    if slot.broker is not None and key == slot.broker:
        key = renaming.get(key, key)
    return name, key


def _rule_of(slot: Slot) -> Rename | None:
    try:
        return rename_rule(slot.holds)
    except UnknownTypeError as error:
        raise AsymmetryError(f"slot {slot.label}: {error}") from error


class Symmetry:
    """The permutations of a model's interchangeable brokers, and what they do to its states."""

    def __init__(self, model: Model) -> None:
        self.model = model
        brokers = model.interchangeable
        if len(brokers) > MOST_BROKERS:
            raise AsymmetryError(
                f"symmetry is for {MOST_BROKERS} interchangeable brokers at most: {len(brokers)} have too many orders"
            )
        self.renamings = [dict(zip(brokers, images, strict=True)) for images in permutations(brokers)]
        self.generating = sorted(
            {self.renamings.index(dict(zip(brokers, order, strict=True))) for order in _generators(brokers)}
        )
        """The numbers of two renamings from which all others are composed."""
        self.rules = [_rule_of(slot) for slot in model.slots]
        self._known: list[dict[Any, tuple[Any, ...]]] = [{} for _ in model.slots]
        places = {(slot.name, slot.key): slot.position for slot in model.slots}
        for slot in model.slots:
            for renaming in self.renamings:
                if _renamed_place(slot, renaming) not in places:
                    raise AsymmetryError(
                        f"model {model.name} has slot {slot.label}, and none like it for another of its interchangeable"
                        f" brokers {', '.join(map(str, brokers))}, so it has no symmetry to use"
                    )
        self.moves = [[places[_renamed_place(slot, renaming)] for slot in model.slots] for renaming in self.renamings]

    def images(self, state: State) -> list[State]:
        """The state under every permutation, the identity first."""
        columns = [self._renamed(position, value) for position, value in enumerate(state)]
        images = []
        for number, moves in enumerate(self.moves):
            image = list(state)
            for place, values in zip(moves, columns, strict=True):
                image[place] = values[number]
            images.append(tuple(image))
        return images

    def _renamed(self, position: int, value: Any) -> tuple[Any, ...]:
        """A slot's value under every permutation. Many states consist of few values, so each value is renamed once."""
        known = self._known[position]
        if value not in known:
            rule = self.rules[position]
            known[value] = tuple(rule(value, renaming) if rule else value for renaming in self.renamings)
        return known[value]

    def canonical(self, state: State) -> State:
        """The one state that stands for all images of this one."""
        return min(self.images(state), key=lambda image: [written(value) for value in image])

    def check(self, properties: list[Property]) -> None:
        """Make sure, on a sample of reachable states, that neither the actions nor the properties tell brokers apart.

        Raises `AsymmetryError` with the name of the model or property that does.
        """
        actions = [action.bind() for action in self.model.actions]
        bound = [(prop, prop.bind()) for prop in properties]
        for state in reachable_states(self.model, STATES_TO_TRY, seed=1):
            at_work("checking that no broker differs from another")
            images = self.images(state)
            tried = [images[number] for number in self.generating]
            for prop, holds_in in bound:
                if len({bool(holds_in(image)) for image in (state, *tried)}) > 1:
                    raise AsymmetryError(f"property {prop.name} tells brokers apart, so it cannot be checked with symmetry")
            following = {self.canonical(after) for fire in actions if (after := fire(state)) is not None}
            for image in tried:
                if {self.canonical(after) for fire in actions if (after := fire(image)) is not None} != following:
                    raise AsymmetryError(f"model {self.model.name} tells brokers apart, so it has no symmetry to use")

    def real_trace(self, states: Sequence[State]) -> Trace:
        """A run of the model that passes through the orbits of these states, one after the other."""
        state = self.model.initial
        steps = [TraceStep(None, state)]
        for wanted in map(self.canonical, states[1:]):
            for action in self.model.actions:
                after = action.bind()(state)
                if after is not None and self.canonical(after) == wanted:
                    steps.append(TraceStep(action, after))
                    state = after
                    break
            else:
                raise AssertionError("no action leads to the next orbit")
        return tuple(steps)
