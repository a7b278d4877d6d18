"""Messages to bytes: a writer for each message and version, made once from the table of fields.

Records are not copied into the message: they stand in the list of parts as they came, as bytes or as a piece of a file. The
writer of a struct is a function whose text is written here, as that of a reader is.
"""

import struct
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Protocol, TypeAlias

from kspec.impl.wire.reading import FORMATS, is_number, runs_of
from kspec.impl.wire.schema import Field, Schema, schema
from kspec.impl.wire.values import Message


class FilePiece(Protocol):
    """A piece of a file that stands in a message."""

    @property
    def length(self) -> int:
        """Its bytes."""

    def bytes(self) -> bytes:
        """Its content."""


Part: TypeAlias = bytes | bytearray | memoryview | FilePiece
"""A part of a message that is sent as it is, without being copied."""


class Parts:
    """A message under construction: the bytes so far, and before them the parts that are finished."""

    __slots__ = ("done", "tail")

    def __init__(self) -> None:
        self.done: list[Part] = []
        self.tail = bytearray()

    def add_part(self, part: Part) -> None:
        """Put bytes, or a piece of a file, behind what is there without copying them."""
        self.done += (self.tail, part)
        self.tail = bytearray()

    def finish(self) -> list[Part]:
        """All parts in order, none of them empty."""
        if not self.done and self.tail:
            return [self.tail]
        return [part for part in (*self.done, self.tail) if size_of(part)]


def joined(parts: Iterable[Part]) -> bytes:
    """The parts of a message in one piece, those that lie in files read."""
    return b"".join(bytes(part) if isinstance(part, MEMORY) else part.bytes() for part in parts)


def size_of(part: Part) -> int:
    """The bytes of a part; a piece of a file says how long it is."""
    return len(part) if isinstance(part, MEMORY) else part.length


MEMORY = (bytes, bytearray, memoryview)

Writer: TypeAlias = Callable[[Parts, Any], None]

COPIED = 2048
"""Records up to this many bytes are copied into the message: a part of their own would cost more."""


@cache
def writer_of(name: str, version: int) -> Writer:
    """The writer of a message of this version."""
    return writer_for(schema(name), version)


def writer_for(facts: Schema, version: int) -> Writer:
    """A writer made anew from the fields of a message, of any release of Kafka."""
    return _struct_writer(facts.name, facts.fields, version, version in facts.flexible)


def write_message(name: str, version: int, message: Message) -> bytes:
    """The bytes of a message."""
    parts = Parts()
    writer_of(name, version)(parts, message)
    return joined(parts.finish())


ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def unsigned_varint(value: int) -> bytes:
    """A length or tag of the compact formats."""
    if value < 0x80:
        return ONE_BYTE[value]
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)


def _struct_writer(owner: str, fields: tuple[Field, ...], version: int, flexible: bool) -> Writer:
    """A writer of these fields: the text of its function, and that compiled."""
    present = [field for field in fields if version in field.versions]
    names = frozenset(field.name for field in fields)
    known: dict[str, Any] = {"known": names, "refuse": _refuse_fields(owner, names)}
    lines = ["values = message.__dict__", "if not values.keys() <= known:", "    refuse(values)", "get = values.get"]
    for number, run in enumerate(runs_of([field for field in present if version not in field.tagged])):
        known |= {f"default_{number}_{place}": field.default for place, field in enumerate(run)}
        given = ", ".join(f"get({field.name!r}, default_{number}_{place})" for place, field in enumerate(run))
        if is_number(run[0]):
            known[f"pack_{number}"] = struct.Struct(">" + "".join(FORMATS[field.kind] for field in run)).pack
            lines.append(f"parts.tail += pack_{number}({given})")
        else:
            known[f"write_{number}"] = _field_writer(owner, run[0], version, flexible)
            lines.append(f"write_{number}(parts, {given})")
    if flexible:
        tagged = [field for field in present if version in field.tagged]
        known["write_tagged"] = _tagged_section(owner, tagged, version)
        known["tagged"] = frozenset(field.name for field in tagged)
        lines += ["if values.keys().isdisjoint(tagged):", "    parts.tail.append(0)", "else:"]
        lines += ["    write_tagged(parts, values)"]
    exec("\n    ".join(["def write(parts, message):", *lines]), known)
    made: Writer = known["write"]
    return made


def _refuse_fields(owner: str, known: frozenset[str]) -> Callable[[dict[str, Any]], None]:
    def refuse(values: dict[str, Any]) -> None:
        raise TypeError(f"{owner} has no field {', '.join(sorted(values.keys() - known))}")

    return refuse


def _tagged_section(owner: str, fields: list[Field], version: int) -> Callable[[Parts, dict[str, Any]], None]:
    writers = [
        (field.name, field.default, unsigned_varint(field.tag), _field_writer(owner, field, version, True))
        for field in sorted(fields, key=lambda field: field.tag)
    ]

    def step(parts: Parts, values: dict[str, Any]) -> None:
        given = [
            (tag, write, values[name])
            for name, default, tag, write in writers
            if name in values and not is_default(values[name], default)
        ]
        parts.tail += unsigned_varint(len(given))
        for tag, write, value in given:
            inner = Parts()
            write(inner, value)
            written = joined(inner.finish())
            parts.tail += tag
            parts.tail += unsigned_varint(len(written))
            parts.tail += written

    return step


def is_default(value: Any, default: Any) -> bool:
    """Whether a field with a tag need not be written."""
    return value == default or (default == () and isinstance(value, list) and not value)


def _field_writer(owner: str, field: Field, version: int, flexible: bool) -> Writer:
    if field.flexible is not None:
        flexible = flexible and version in field.flexible
    name = f"{owner}.{field.name}"
    nullable = version in field.nullable
    if field.is_array:
        element = _element_writer(name, field, version, flexible, False)
        return _array_writer(name, element, flexible, nullable)
    if field.kind == "struct" and nullable:
        return _nullable_struct(_struct_writer(name, field.fields, version, flexible))
    if field.kind == "struct":
        return _struct_or_defaults(_struct_writer(name, field.fields, version, flexible))
    return _element_writer(name, field, version, flexible, nullable)


def _element_writer(name: str, field: Field, version: int, flexible: bool, nullable: bool) -> Writer:
    if field.kind == "struct":
        return _struct_writer(name, field.fields, version, flexible)
    if field.kind in FORMATS:
        pack = struct.Struct(f">{FORMATS[field.kind]}").pack

        def write(parts: Parts, value: Any) -> None:
            parts.tail += pack(value)

        return write
    length = _compact_length if flexible else (_int16_length if field.kind == "string" else _int32_length)
    if field.kind == "string":
        return _text_writer(name, length, nullable)
    return _bytes_writer(name, length, nullable or field.kind == "records")


def _nullable_struct(inner: Writer) -> Writer:
    def write(parts: Parts, value: Any) -> None:
        if value is None:
            parts.tail += b"\xff"
        else:
            parts.tail += b"\x01"
            inner(parts, value)

    return write


def _struct_or_defaults(inner: Writer) -> Writer:
    def write(parts: Parts, value: Any) -> None:
        inner(parts, Message() if value is None else value)

    return write


def _compact_length(length: int) -> bytes:
    return ONE_BYTE[length + 1] if length < 0x7F else unsigned_varint(length + 1)


_int16_length = struct.Struct(">h").pack
_int32_length = struct.Struct(">i").pack

Length: TypeAlias = Callable[[int], bytes]


def _refuse_null(name: str, nullable: bool) -> None:
    if not nullable:
        raise TypeError(f"{name} must not be null")


def _text_writer(name: str, length_of: Length, nullable: bool) -> Writer:
    def write(parts: Parts, value: str | None) -> None:
        if value is None:
            _refuse_null(name, nullable)
            parts.tail += length_of(-1)
            return
        encoded = value.encode()
        parts.tail += length_of(len(encoded))
        parts.tail += encoded

    return write


def _bytes_writer(name: str, length_of: Length, nullable: bool) -> Writer:
    def write(parts: Parts, value: Any) -> None:
        if value is None:
            _refuse_null(name, nullable)
            parts.tail += length_of(-1)
            return
        size = size_of(value)
        parts.tail += length_of(size)
        if size > COPIED or not isinstance(value, MEMORY):
            parts.add_part(value)
        else:
            parts.tail += value

    return write


def _array_writer(name: str, element: Writer, flexible: bool, nullable: bool) -> Writer:
    length_of = _compact_length if flexible else _int32_length

    def write(parts: Parts, value: Any) -> None:
        if value is None:
            _refuse_null(name, nullable)
            parts.tail += length_of(-1)
            return
        parts.tail += length_of(len(value))
        for one in value:
            element(parts, one)

    return write
