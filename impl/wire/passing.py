"""Messages that stay in the process: what the other side would decode from the bytes, without the bytes.

A passer for each message and version is put together once from the table of fields, as readers and writers are. It makes a
message of its own for the receiver: fields that the version lacks have their defaults, lists are copied, records are read.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from kspec.impl.wire.reading import absent
from kspec.impl.wire.schema import Field, schema
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import MEMORY, is_default

Passer: TypeAlias = Callable[[Any], Any]


@cache
def passer_of(name: str, version: int) -> Passer:
    """The function that passes on a message of this version."""
    return _struct_passer(schema(name).fields, version)


def _struct_passer(fields: tuple[Field, ...], version: int) -> Passer:
    """A passer of these fields: the text of its function, and that compiled."""
    absents = {field.name: absent(field) for field in fields}
    present = [field for field in fields if version in field.versions]
    written = {field.name: field.default for field in present if version not in field.tagged}
    lacking = frozenset(absents) - {field.name for field in present}
    known: dict[str, Any] = {"new": object.__new__, "Message": Message, "start": {**absents, **written}}
    lines = ["given = message.__dict__", "found = {**start, **given}"]
    if lacking:
        known |= {"lacking": lacking, "lacked": {name: absents[name] for name in lacking}}
        lines += ["if not lacking.isdisjoint(given):", "    found.update(lacked)"]
    for number, field in enumerate(present):
        passed, change = _passed(field, version, f"change_{number}")
        if passed is None:
            continue
        known[f"change_{number}"] = change
        taken = f"value = found[{field.name!r}]"
        if version in field.tagged:  # one that is not given stays absent
            default, left_out = f"default_{number}", f"absent_{number}"
            known |= {default: field.default, left_out: absents[field.name], "is_default": is_default}
            as_default = f"value is {left_out} or is_default(value, {default})"
            lines += [f"if {field.name!r} in given:", f"    {taken}"]
            lines += [f"    found[{field.name!r}] = {left_out} if {as_default} else {passed}"]
        else:
            lines += [taken, f"found[{field.name!r}] = {passed}"]
    lines += ["copied = new(Message)", "copied.__dict__ = found", "return copied"]
    exec("\n    ".join(["def passed(message):", *lines]), known)
    made: Passer = known["passed"]
    return made


def _passed(field: Field, version: int, change: str) -> tuple[str | None, Passer | None]:
    """The new text of a field's `value`, and the function that this calls `change`; none if it stays as it is."""
    element = _element_passer(field, version)
    if field.is_array:
        copied = "[*value]" if element is None else f"[*map({change}, value)]"
        return f"None if value is None else {copied}", element
    if element is None:
        return None, None
    if field.kind == "struct" and version not in field.nullable:
        return f"{change}(Message() if value is None else value)", element
    return f"None if value is None else {change}(value)", element


def _element_passer(field: Field, version: int) -> Passer | None:
    if field.kind == "struct":
        return _struct_passer(field.fields, version)
    return _bytes_passed if field.kind in ("bytes", "records") else None


def _bytes_passed(value: Any) -> memoryview:
    return memoryview(bytes(value) if isinstance(value, MEMORY) else value.bytes())
