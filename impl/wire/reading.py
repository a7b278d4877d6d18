"""Bytes to messages: a reader for each message and version, made once from the table of fields.

A reader takes a buffer and a position, and gives a value and the position behind it. Numbers that follow each other are
unpacked together. Records and byte fields stay views into the buffer: nothing is copied.

The reader of a struct is a function whose text is written here, field by field, as `dataclasses` writes `__init__`. One that
went through a list of steps took three times as long, and every request and answer is read by one.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from kspec.impl.wire.schema import Field, Schema, schema
from kspec.impl.wire.values import DecodeError, Message

Reader: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]

FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
INT16, INT32 = struct.Struct(">h"), struct.Struct(">i")


@cache
def reader_of(name: str, version: int) -> Reader:
    """The reader of a message of this version."""
    return reader_for(schema(name), version)


def reader_for(facts: Schema, version: int) -> Reader:
    """A reader made anew from the fields of a message, of any release of Kafka."""
    return _struct_reader(facts.fields, version, version in facts.flexible)


def read_message(name: str, version: int, buffer: memoryview, position: int = 0) -> tuple[Message, int]:
    """The message that starts at `position`, and the position behind it. Raises `DecodeError`."""
    try:
        message, position = reader_of(name, version)(buffer, position)
    except (struct.error, IndexError) as error:
        raise DecodeError(f"{name} version {version} is truncated") from error
    return message, position


def read_unsigned_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """A length or tag of the compact formats, at most five bytes."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise DecodeError("a variable length number has more than five bytes")


def skip_tagged_fields(buffer: memoryview, position: int) -> int:
    """The position behind a section of tagged fields, all of them ignored."""
    return _IGNORED(buffer, position, {}) if buffer[position] else position + 1


def _struct_reader(fields: tuple[Field, ...], version: int, flexible: bool) -> Reader:
    """A reader of these fields: the text of its function, and that compiled."""
    present = [field for field in fields if version in field.versions]
    tagged = {field.tag: field for field in present if version in field.tagged}
    values = {field.name: f"absent_{number}" for number, field in enumerate(fields)}
    known: dict[str, Any] = {f"absent_{number}": absent(field) for number, field in enumerate(fields)}
    lines: list[str] = []
    for number, run in enumerate(runs_of([field for field in present if version not in field.tagged])):
        read = f"read_{number}"
        names = [f"value_{number}_{place}" for place in range(len(run))]
        values.update({field.name: name for field, name in zip(run, names, strict=True)})
        if is_number(run[0]):
            packed = struct.Struct(">" + "".join(FORMATS[field.kind] for field in run))
            known[read] = packed.unpack_from
            lines += [f"{', '.join(names)}, = {read}(buffer, position)", f"position += {packed.size}"]
        else:
            known[read] = _field_reader(run[0], version, flexible)
            lines.append(f"{names[0]}, position = {read}(buffer, position)")
    lines += ["message = new(Message)", f"message.__dict__ = {{{', '.join(f'{one!r}: {values[one]}' for one in values)}}}"]
    if flexible:
        readers = {tag: (field.name, _field_reader(field, version, flexible)) for tag, field in tagged.items()}
        known["read_tagged"] = _tagged_section(readers)
        lines += [
            "if buffer[position]:",
            "    position = read_tagged(buffer, position, message.__dict__)",
            "else:",
            "    position += 1",
        ]
    text = "\n    ".join(["def read(buffer, position):", *lines, "return message, position"])
    known |= {"Message": Message, "new": object.__new__}
    exec(text, known)
    made: Reader = known["read"]
    return made


def is_number(field: Field) -> bool:
    """Whether a field has a size of its own, and is unpacked with others."""
    return field.kind in FORMATS and not field.is_array


def runs_of(fields: list[Field]) -> list[list[Field]]:
    """The fields in their order: numbers that follow each other together, every other field by itself."""
    runs: list[list[Field]] = []
    for field in fields:
        if runs and is_number(field) and is_number(runs[-1][0]):
            runs[-1].append(field)
        else:
            runs.append([field])
    return runs


def absent(field: Field) -> Any:
    """The value of a field in a version that lacks it."""
    if field.kind == "struct" and not field.is_array and 0 not in field.nullable and field.default is None:
        return Message(**{inner.name: absent(inner) for inner in field.fields})
    return field.default


def _tagged_section(readers: dict[int, tuple[str, Reader]]) -> Callable[[memoryview, int, dict[str, Any]], int]:
    def read(buffer: memoryview, position: int, values: dict[str, Any]) -> int:
        count, position = read_unsigned_varint(buffer, position)
        for _ in range(count):
            tag, position = read_unsigned_varint(buffer, position)
            size, position = read_unsigned_varint(buffer, position)
            if position + size > len(buffer):
                raise DecodeError("a tagged field is longer than the message")
            if tag in readers:
                name, reader = readers[tag]
                values[name] = reader(buffer, position)[0]
            position += size
        return position

    return read


_IGNORED = _tagged_section({})


def _field_reader(field: Field, version: int, flexible: bool) -> Reader:
    if field.flexible is not None:
        flexible = flexible and version in field.flexible
    nullable = version in field.nullable
    if field.is_array:
        return _array_reader(_element_reader(field, version, flexible), flexible, nullable)
    if field.kind == "struct":
        inner = _struct_reader(field.fields, version, flexible)
        return _nullable_struct(inner) if nullable else inner
    return _element_reader(field, version, flexible, nullable)


def _element_reader(field: Field, version: int, flexible: bool, nullable: bool = False) -> Reader:
    if field.kind == "struct":
        return _struct_reader(field.fields, version, flexible)
    if field.kind in FORMATS:
        return _number(FORMATS[field.kind])
    length = _compact_length if flexible else (_int16_length if field.kind == "string" else _int32_length)
    if field.kind == "string":
        return _text_reader(length, nullable)
    return _bytes_reader(length, nullable or field.kind == "records")


def _number(form: str) -> Reader:
    packed = struct.Struct(f">{form}")

    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        return packed.unpack_from(buffer, position)[0], position + packed.size

    return read


def _nullable_struct(inner: Reader) -> Reader:
    def read(buffer: memoryview, position: int) -> tuple[Any, int]:
        there = struct.unpack_from(">b", buffer, position)[0]
        return inner(buffer, position + 1) if there >= 0 else (None, position + 1)

    return read


def _compact_length(buffer: memoryview, position: int) -> tuple[int, int]:
    length = buffer[position]
    if length < 0x80:  # nearly all are
        return length - 1, position + 1
    length, position = read_unsigned_varint(buffer, position)
    return length - 1, position


def _int16_length(buffer: memoryview, position: int) -> tuple[int, int]:
    return INT16.unpack_from(buffer, position)[0], position + 2


def _int32_length(buffer: memoryview, position: int) -> tuple[int, int]:
    return INT32.unpack_from(buffer, position)[0], position + 4


Length: TypeAlias = Callable[[memoryview, int], tuple[int, int]]


def _text_reader(length_of: Length, nullable: bool) -> Reader:
    def read(buffer: memoryview, position: int) -> tuple[str | None, int]:
        length, position = length_of(buffer, position)
        if length < 0:
            _refuse_null(nullable, "a string")
            return None, position
        end = position + length
        if length > 32767 or end > len(buffer):
            raise DecodeError(f"a string of {length} bytes does not fit")
        return str(buffer[position:end], "utf-8", "replace"), end

    return read


def _bytes_reader(length_of: Length, nullable: bool) -> Reader:
    def read(buffer: memoryview, position: int) -> tuple[memoryview | None, int]:
        length, position = length_of(buffer, position)
        if length < 0:
            _refuse_null(nullable, "bytes")
            return None, position
        end = position + length
        if end > len(buffer):
            raise DecodeError(f"bytes of length {length} do not fit")
        return buffer[position:end], end

    return read


def _array_reader(element: Reader, flexible: bool, nullable: bool) -> Reader:
    length_of = _compact_length if flexible else _int32_length

    def read(buffer: memoryview, position: int) -> tuple[list[Any] | None, int]:
        length, position = length_of(buffer, position)
        if length < 0:
            _refuse_null(nullable, "an array")
            return None, position
        if length > len(buffer) - position:
            raise DecodeError(f"an array of {length} elements in {len(buffer) - position} bytes")
        values = []
        for _ in range(length):
            value, position = element(buffer, position)
            values.append(value)
        return values, position

    return read


def _refuse_null(allowed: bool, what: str) -> None:
    if not allowed:
        raise DecodeError(f"{what} is null where it must not be")
