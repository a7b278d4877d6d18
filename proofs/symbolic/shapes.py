"""Representations of a type's values in Z3: derived from the types of their fields, never listed by hand.

A `Shape` makes an unknown value of its type (new Z3 functions of the value's key), lifts a Python value, chooses between
two values, compares them, and reads a value back from a Z3 model.
"""

import typing
from collections.abc import Callable, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Any

import z3

from kspec.proofs.symbolic.brokers import Brokers, SymbolicSet
from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.paths import decide
from kspec.proofs.symbolic.terms import choice, conjunction, disjunction
from kspec.proofs.symbolic.values import Kind, SymbolicBool, SymbolicEnum, SymbolicInt, SymbolicOptional, number, truth
from kspec.spec.log.record_log import RecordLog
from kspec.spec.values import BrokerId, Epoch, Offset, Record

Keys = tuple[Any, ...]
"""Identifies one of many values of a kind: empty if there is only one value, or a broker, or an epoch."""

LEAST = -2
"""The least number that has a meaning: `NEVER_FETCHED`."""

Unknown = Callable[..., Any]
"""A family of values: one for each key."""


class TermKey:
    """A simplified term as a key: equal to another term that is written the same way.

    The term is kept. Its id alone would not be a key: Z3 reuses the id of a term that is gone.
    """

    __slots__ = ("term",)

    def __init__(self, term: Any) -> None:
        self.term: z3.ExprRef = z3.simplify(number(term) if isinstance(term, int) else term)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TermKey) and bool(self.term.eq(other.term))

    def __hash__(self) -> int:
        return int(self.term.hash())


class Shape:
    """The prover's knowledge of a type. This class is for whole numbers; the others override it."""

    def unknown(self, name: str, keys: int) -> Unknown:
        """Unknown values of this type, one for each `keys` numbers."""
        column = _column(name, keys, z3.IntSort())
        return lambda *key: SymbolicInt(column(*key))

    def arguments(self, name: str) -> dict[str, tuple[Kind, ...]]:
        """The kinds of the arguments, after the key, of the Z3 functions that `unknown` makes, by name."""
        return {name: ()}

    def lift(self, value: Any) -> Any:
        """A Python value as a symbolic one; symbolic values stay as they are."""
        return SymbolicInt(number(value))

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        """If-then-else of two lifted values."""
        return SymbolicInt(choice(condition, then.term, otherwise.term))

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        """States that two lifted values are the same."""
        return one.term == other.term

    def is_value(self, unknown: Any, value: Any) -> z3.BoolRef:
        """States that an unknown value is this Python value."""
        return self.equal(unknown, self.lift(value))

    def outline(self, value: Any) -> Any:
        """The terms of a lifted value as a key: the same for values that are written the same way."""
        return TermKey(value.term)

    def small(self, value: Any, most: int) -> z3.BoolRef:
        """States that nothing in a lifted value is above `most`, so that it is readable. Numbers below 0 mean nothing."""
        return z3.And(value.term >= LEAST, value.term <= most)

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        """The Python value of a lifted value in a model of Z3."""
        return model.eval(value.term, model_completion=True).as_long()


class TruthShape(Shape):
    """A Boolean."""

    def small(self, value: Any, most: int) -> z3.BoolRef:
        return z3.BoolVal(True)

    def unknown(self, name: str, keys: int) -> Unknown:
        column = _column(name, keys, z3.BoolSort())
        return lambda *key: SymbolicBool(column(*key))

    def lift(self, value: Any) -> Any:
        return SymbolicBool(truth(value))

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        return SymbolicBool(choice(condition, then.term, otherwise.term))

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        return one.term == other.term

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        return z3.is_true(model.eval(value.term, model_completion=True))


class EnumShape(Shape):
    """A member of an enumeration."""

    def __init__(self, kind: type[Enum]) -> None:
        self.kind, self.members = kind, list(kind)

    def outline(self, value: Any) -> Any:
        return TermKey(value.position)

    def small(self, value: Any, most: int) -> z3.BoolRef:
        return z3.And(value.position >= 0, value.position < len(self.members))

    def unknown(self, name: str, keys: int) -> Unknown:
        column = _column(name, keys, z3.IntSort())
        return lambda *key: SymbolicEnum(self.kind, column(*key))

    def lift(self, value: Any) -> Any:
        return value if isinstance(value, SymbolicEnum) else SymbolicEnum(self.kind, z3.IntVal(self.members.index(value)))

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        return SymbolicEnum(self.kind, choice(condition, then.position, otherwise.position))

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        return one.position == other.position

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        return self.members[model.eval(value.position, model_completion=True).as_long() % len(self.members)]


class OptionalShape(Shape):
    """A value or `None`."""

    def __init__(self, inner: Shape) -> None:
        self.inner = inner

    def outline(self, value: Any) -> Any:
        return TermKey(value.present), None if value.value is None else self.inner.outline(value.value)

    def small(self, value: Any, most: int) -> z3.BoolRef:
        return z3.BoolVal(True) if value.value is None else self.inner.small(value.value, most)

    def unknown(self, name: str, keys: int) -> Unknown:
        present, inner = _column(f"{name}?", keys, z3.BoolSort()), self.inner.unknown(name, keys)
        return lambda *key: SymbolicOptional(present(*key), inner(*key))

    def arguments(self, name: str) -> dict[str, tuple[Kind, ...]]:
        return {f"{name}?": (), **self.inner.arguments(name)}

    def lift(self, value: Any) -> Any:
        if isinstance(value, SymbolicOptional):
            return value
        if value is None:
            return SymbolicOptional(z3.BoolVal(False), None)
        return SymbolicOptional(z3.BoolVal(True), self.inner.lift(value))

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        values = [value for value in (then.value, otherwise.value) if value is not None]
        merged = self.inner.either(condition, *values) if len(values) == 2 else values[0] if values else None
        return SymbolicOptional(choice(condition, then.present, otherwise.present), merged)

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        same = one.present == other.present
        if one.value is None or other.value is None:
            return same
        return z3.And(same, z3.Implies(one.present, self.inner.equal(one.value, other.value)))

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        present = z3.is_true(model.eval(value.present, model_completion=True))
        return self.inner.read(model, value.value) if present else None


class SetShape(Shape):
    """A set of brokers."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers

    def outline(self, value: Any) -> Any:
        return tuple(TermKey(value.has(broker)) for broker in _known_ids(self.brokers))

    def small(self, value: Any, most: int) -> z3.BoolRef:
        return z3.BoolVal(True)

    def unknown(self, name: str, keys: int) -> Unknown:
        column = _column(name, keys + 1, z3.BoolSort())

        def holds(key: Keys, broker: Any) -> z3.BoolRef:
            return conjunction([self.brokers.exists(broker), column(*key, broker)])

        return lambda *key: SymbolicSet(self.brokers, lambda broker: holds(key, broker))

    def arguments(self, name: str) -> dict[str, tuple[Kind, ...]]:
        return {name: (BrokerId,)}

    def lift(self, value: Any) -> Any:
        return SymbolicSet.of(value, self.brokers)

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        if then is otherwise:
            return then
        if self.brokers.ids is None:
            return SymbolicSet(self.brokers, lambda broker: choice(condition, then.has(broker), otherwise.has(broker)))
        flags = {broker: choice(condition, then.has(broker), otherwise.has(broker)) for broker in self.brokers.ids}

        def has(broker: Any) -> z3.BoolRef:
            if isinstance(broker, int):
                return flags.get(broker, z3.BoolVal(False))
            return disjunction([conjunction([broker == known, flag]) for known, flag in flags.items()])

        return SymbolicSet(self.brokers, has)

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        return (one == other).term

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        ids = self.brokers.ids or ()
        return frozenset(broker for broker in ids if z3.is_true(model.eval(value.has(broker), model_completion=True)))


class RecordShape(Shape):
    """A record of fields."""

    def __init__(self, cls: Any, fields: dict[str, Shape]) -> None:
        self.cls, self.fields = cls, fields

    def is_value(self, unknown: Any, value: Any) -> z3.BoolRef:
        return conjunction(
            [shape.is_value(getattr(unknown, field), getattr(value, field)) for field, shape in self.fields.items()]
        )

    def outline(self, value: Any) -> Any:
        return tuple(shape.outline(getattr(value, field)) for field, shape in self.fields.items())

    def small(self, value: Any, most: int) -> z3.BoolRef:
        return conjunction([shape.small(getattr(value, field), most) for field, shape in self.fields.items()])

    def unknown(self, name: str, keys: int) -> Unknown:
        columns = {field: shape.unknown(f"{name}.{field}", keys) for field, shape in self.fields.items()}
        return lambda *key: self.cls(**{field: column(*key) for field, column in columns.items()})

    def arguments(self, name: str) -> dict[str, tuple[Kind, ...]]:
        of_fields = (shape.arguments(f"{name}.{field}") for field, shape in self.fields.items())
        return {function: kinds for of_field in of_fields for function, kinds in of_field.items()}

    def lift(self, value: Any) -> Any:
        return self.cls(**{field: shape.lift(getattr(value, field)) for field, shape in self.fields.items()})

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        return self.cls(
            **{
                field: shape.either(condition, getattr(then, field), getattr(otherwise, field))
                for field, shape in self.fields.items()
            }
        )

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        return conjunction([shape.equal(getattr(one, field), getattr(other, field)) for field, shape in self.fields.items()])

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        return self.cls(**{field: shape.read(model, getattr(value, field)) for field, shape in self.fields.items()})


_ANYWHERE = z3.Int("anywhere in a log")


class LogShape(Shape):
    """A log."""

    def is_value(self, unknown: Any, value: Any) -> z3.BoolRef:
        known = SymbolicLog.of(value)
        parts = [unknown.start == known.start, unknown.end == known.end, unknown.opened == known.opened]
        for offset, record in enumerate(value.records, start=value.start_offset):
            at = z3.IntVal(offset)
            parts += [unknown.epoch(at) == record.leader_epoch, unknown.value(at) == record.value]
        return z3.And(*parts)

    def outline(self, value: Any) -> Any:
        terms = (value.start, value.end, value.epoch(_ANYWHERE), value.value(_ANYWHERE), value.opened)
        return tuple(map(TermKey, terms))

    def small(self, value: Any, most: int) -> z3.BoolRef:
        ends = z3.And(value.start >= 0, value.end >= value.start, value.end <= most)
        records = []
        for offset in map(z3.IntVal, range(-1, most + 3)):
            columns = value.epoch(offset), value.value(offset)
            inside = z3.And(*(z3.And(number >= -1, number <= most) for number in columns))
            records.append(z3.If(value.holds(offset), inside, z3.And(*(number == -1 for number in columns))))
        return z3.And(ends, value.opened >= -1, value.opened <= most, *records)

    def unknown(self, name: str, keys: int) -> Unknown:
        start, end, opened = (_column(f"{name}.{part}", keys, z3.IntSort()) for part in ("start", "end", "opened"))
        epoch, value = (_column(f"{name}.{part}", keys + 1, z3.IntSort()) for part in ("epoch", "value"))

        def log(*key: Any) -> SymbolicLog:
            return SymbolicLog(
                start(*key),
                end(*key),
                lambda offset: epoch(*key, offset),
                lambda offset: value(*key, offset),
                opened(*key),
            )

        return log

    def arguments(self, name: str) -> dict[str, tuple[Kind, ...]]:
        ends = {f"{name}.{part}": () for part in ("start", "end", "opened")}
        return ends | {f"{name}.{part}": (Offset,) for part in ("epoch", "value")}

    def lift(self, value: Any) -> Any:
        return SymbolicLog.of(value)

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        def column(one: Any, other: Any) -> Any:
            if one is other or one(_ANYWHERE).eq(other(_ANYWHERE)):
                return one
            return lambda offset: choice(condition, one(offset), other(offset))

        return SymbolicLog(
            choice(condition, then.start, otherwise.start),
            choice(condition, then.end, otherwise.end),
            column(then.epoch, otherwise.epoch),
            column(then.value, otherwise.value),
            choice(condition, then.opened, otherwise.opened),
        )

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        return (one == other).term

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        def at(term: Any) -> int:
            return int(model.eval(number(term), model_completion=True).as_long())

        start, end = at(value.start), at(value.end)
        records = tuple(
            Record(at(value.value(z3.IntVal(o))), Epoch(at(value.epoch(z3.IntVal(o))))) for o in range(start, end)
        )
        return RecordLog(records, Offset(start), Epoch(at(value.opened)))


class SetOfSetsShape(Shape):
    """A set of sets of brokers, such as the ISRs in messages: for each set of brokers, whether it is in the set."""

    def __init__(self, brokers: Brokers) -> None:
        self.brokers = brokers

    def outline(self, value: Any) -> Any:
        flags = [z3.Bool(f"broker {broker} in") for broker in _known_ids(self.brokers)]
        return TermKey(value.holds(flags))

    def small(self, value: Any, most: int) -> z3.BoolRef:
        return z3.BoolVal(True)

    def unknown(self, name: str, keys: int) -> Unknown:
        ids = _known_ids(self.brokers)
        sorts = [z3.IntSort()] * keys + [z3.BoolSort()] * len(ids)
        column = z3.Function(name, *sorts, z3.BoolSort())
        return lambda *key: SymbolicSetOfSets(self.brokers, lambda flags: column(*map(number, key), *flags))

    def lift(self, value: Any) -> Any:
        return SymbolicSetOfSets.of(value, self.brokers)

    def either(self, condition: z3.BoolRef, then: Any, otherwise: Any) -> Any:
        return SymbolicSetOfSets(self.brokers, lambda flags: choice(condition, then.holds(flags), otherwise.holds(flags)))

    def equal(self, one: Any, other: Any) -> z3.BoolRef:
        flags = [z3.Bool(f"broker {broker} in") for broker in _known_ids(self.brokers)]
        return z3.ForAll(flags, one.holds(flags) == other.holds(flags))

    def read(self, model: z3.ModelRef, value: Any) -> Any:
        ids = _known_ids(self.brokers)
        found = set()
        for number_of_set in range(2 ** len(ids)):
            flags = [z3.BoolVal(bool(number_of_set >> position & 1)) for position in range(len(ids))]
            if z3.is_true(model.eval(value.holds(flags), model_completion=True)):
                found.add(frozenset(broker for broker, flag in zip(ids, flags, strict=True) if z3.is_true(flag)))
        return frozenset(found)


class SymbolicSetOfSets:
    """A set of sets of brokers. A set of brokers is given by one Boolean for each broker."""

    __slots__ = ("brokers", "holds")

    def __init__(self, brokers: Brokers, holds: Callable[[Sequence[z3.BoolRef]], z3.BoolRef]) -> None:
        self.brokers, self.holds = brokers, holds

    @classmethod
    def of(cls, value: Any, brokers: Brokers) -> "SymbolicSetOfSets":
        """A set of sets as a symbolic one."""
        if isinstance(value, SymbolicSetOfSets):
            return value
        members = [SymbolicSet.of(member, brokers) for member in value]
        return cls(brokers, lambda flags: z3.Or([_is_set(member, brokers, flags) for member in members]))

    def has(self, member: Any) -> z3.BoolRef:
        """A formula: a set of brokers is one of these sets."""
        wanted = SymbolicSet.of(member, self.brokers)
        return self.holds([wanted.has(broker) for broker in _known_ids(self.brokers)])

    def __contains__(self, member: Any) -> bool:
        return decide(self.has(member))

    def __or__(self, other: Any) -> "SymbolicSetOfSets":
        right = SymbolicSetOfSets.of(other, self.brokers)
        return SymbolicSetOfSets(self.brokers, lambda flags: z3.Or(self.holds(flags), right.holds(flags)))

    __ror__ = __or__


def _is_set(member: SymbolicSet, brokers: Brokers, flags: Sequence[z3.BoolRef]) -> z3.BoolRef:
    return conjunction([flag == member.has(broker) for broker, flag in zip(_known_ids(brokers), flags, strict=True)])


def _known_ids(brokers: Brokers) -> Sequence[int]:
    if brokers.ids is None:
        raise TypeError("sets of sets need a known number of brokers")
    return brokers.ids


def _column(name: str, keys: int, sort: z3.SortRef) -> Callable[..., Any]:
    if keys == 0:
        constant = z3.Const(name, sort)
        return lambda: constant
    function = z3.Function(name, *[z3.IntSort()] * keys, sort)
    return lambda *key: function(*map(number, key))


INT = Shape()


def shape_of(annotation: Any, brokers: Brokers) -> Shape:
    """The shape of a type."""
    while hasattr(annotation, "__supertype__"):
        annotation = annotation.__supertype__
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is int:
        return INT
    if annotation is bool:
        return TruthShape()
    if annotation is RecordLog:
        return LogShape()
    if origin is frozenset and arguments == (BrokerId,):
        return SetShape(brokers)
    if origin is frozenset and arguments == (frozenset[BrokerId],):
        return SetOfSetsShape(brokers)
    if origin in (typing.Union, UnionType) and NoneType in arguments and len(arguments) == 2:
        return OptionalShape(shape_of(next(argument for argument in arguments if argument is not NoneType), brokers))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return EnumShape(annotation)
    if isinstance(annotation, type) and hasattr(annotation, "_fields"):
        hints = typing.get_type_hints(annotation)
        return RecordShape(annotation, {field: shape_of(hints[field], brokers) for field in annotation._fields})
    raise TypeError(f"values of type {annotation} have no symbolic form yet; proofs/symbolic/shapes.py has those that do")


def in_model(value: Any, model: z3.ModelRef) -> Any:
    """The Python value in a model of Z3 of any symbolic value, or of a tuple that contains some."""
    if isinstance(value, SymbolicBool):
        return TruthShape().read(model, value)
    if isinstance(value, SymbolicInt):
        return INT.read(model, value)
    if isinstance(value, SymbolicLog):
        return LogShape().read(model, value)
    if isinstance(value, SymbolicSet | SymbolicSetOfSets):
        shape = SetShape(value.brokers) if isinstance(value, SymbolicSet) else SetOfSetsShape(value.brokers)
        return shape.read(model, value)
    if isinstance(value, tuple):
        fields = [in_model(field, model) for field in value]
        return type(value)(*fields) if hasattr(value, "_fields") else tuple(fields)
    return value


def plain(value: Any) -> Any:
    """A value as a Python function expects it. This decides whether it is absent, and which member of an enum it is."""
    if isinstance(value, SymbolicOptional):
        return plain(value.value) if decide(value.present) else None
    if isinstance(value, SymbolicEnum):
        members: list[Any] = list(value.kind)  # type: ignore[call-overload]
        named = (member for position, member in enumerate(members[:-1]) if decide(value.position == position))
        return next(named, members[-1])
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(plain(field) for field in value))
    return value
