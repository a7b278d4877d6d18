"""Messages that stay in the process: what the other side would decode from the bytes, without the bytes.

A passer for each message and version is put together once from the table of fields, as readers and writers are. It makes a
message of its own for the receiver: fields that the version lacks have their defaults, lists are copied, records are read.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from impl.wire.reading import absent
from impl.wire.schema import Field, schema
from impl.wire.values import Message
from impl.wire.writing import MEMORY, is_default

Passer: TypeAlias = Callable[[Any], Any]


@cache
def passer_of(name: str, version: int) -> Passer:
    """What becomes of a message of this version on its way."""
    return _struct_passer(schema(name).fields, version)


def _struct_passer(fields: tuple[Field, ...], version: int) -> Passer:
    absents = {field.name: absent(field) for field in fields}
    present = [field for field in fields if version in field.versions]
    written = {field.name: field.default for field in present if version not in field.tagged}
    start = {**absents, **written}
    lacking = frozenset(absents) - {field.name for field in present}
    lacked = {name: absents[name] for name in lacking}
    passers = [(field, passer) for field in present if (passer := _field_passer(field, version)) is not None]
    always = [(field.name, passer) for field, passer in passers if version not in field.tagged]
    if_given = [(field.name, passer) for field, passer in passers if version in field.tagged]

    def passed(message: Any) -> Any:
        given = message.__dict__
        found = {**start, **given}
        if lacking and not given.keys().isdisjoint(lacking):
            found.update(lacked)
        for name, passer in always:
            found[name] = passer(found[name])
        for name, passer in if_given:  # one that is not given stays absent
            if name in given:
                found[name] = passer(found[name])
        copied = Message.__new__(Message)
        copied.__dict__ = found
        return copied

    return passed


def _field_passer(field: Field, version: int) -> Passer | None:
    """How the value of a field changes on its way; none if it does not."""
    passer = _element_passer(field, version)
    if field.is_array:
        passer = _array_passer(passer)
    elif field.kind == "struct" and version not in field.nullable:
        passer = _or_defaults(_struct_passer(field.fields, version))
    elif passer is not None:
        passer = _or_none(passer)
    if version in field.tagged:
        return _tagged_passer(field, passer)
    return passer


def _element_passer(field: Field, version: int) -> Passer | None:
    if field.kind == "struct":
        return _struct_passer(field.fields, version)
    return _bytes_passed if field.kind in ("bytes", "records") else None


def _bytes_passed(value: Any) -> memoryview:
    return memoryview(bytes(value) if isinstance(value, MEMORY) else value.bytes())


def _array_passer(element: Passer | None) -> Passer:
    if element is None:
        return lambda value: None if value is None else list(value)
    return lambda value: None if value is None else [element(one) for one in value]


def _or_none(inner: Passer) -> Passer:
    return lambda value: None if value is None else inner(value)


def _or_defaults(inner: Passer) -> Passer:
    return lambda value: inner(Message() if value is None else value)


def _tagged_passer(field: Field, inner: Passer | None) -> Passer | None:
    """A field with a tag is left out if it has its default."""
    if inner is None:
        return None
    default, left_out = field.default, absent(field)
    return lambda value: left_out if value is left_out or is_default(value, default) else inner(value)
