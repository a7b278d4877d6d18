"""Bytes to messages: a reader for each message and version, put together once from the table of fields.

A reader takes a buffer and a position, and gives a value and the position behind it. Numbers that follow each other are
unpacked together. Records and byte fields stay views into the buffer: nothing is copied.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from impl.wire.schema import Field, Schema, schema
from impl.wire.values import DecodeError, Message

Reader: TypeAlias = Callable[[memoryview, int], tuple[Any, int]]
Step: TypeAlias = Callable[[memoryview, int, list[Any]], int]

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
    return _tagged_section({})(buffer, position, [])


def _struct_reader(fields: tuple[Field, ...], version: int, flexible: bool) -> Reader:
    present = [field for field in fields if version in field.versions]
    plain = [field for field in present if version not in field.tagged]
    tagged = {field.tag: field for field in present if version in field.tagged}
    steps: list[Step] = []
    run: list[Field] = []
    for field in (*plain, None):
        if field is not None and field.kind in FORMATS and not field.is_array:
            run.append(field)
            continue
        if run:
            steps.append(_numbers("".join(FORMATS[one.kind] for one in run)))
            run = []
        if field is not None:
            steps.append(_appending(_field_reader(field, version, flexible)))
    if flexible:
        steps.append(_tagged_section({tag: _field_reader(field, version, flexible) for tag, field in tagged.items()}))
    names = [field.name for field in plain]
    by_tag = {tag: field.name for tag, field in tagged.items()}
    defaults = {field.name: absent(field) for field in fields}

    def read(buffer: memoryview, position: int) -> tuple[Message, int]:
        values: list[Any] = []
        for step in steps:
            position = step(buffer, position, values)
        message = Message.__new__(Message)
        found = message.__dict__
        found.update(defaults)
        if flexible and len(values) > len(names):
            found.update({by_tag[tag]: value for tag, value in values[len(names) :]})
        found.update(zip(names, values, strict=False))
        return message, position

    return read


def absent(field: Field) -> Any:
    """What a field is in a version that lacks it."""
    if field.kind == "struct" and not field.is_array and 0 not in field.nullable and field.default is None:
        return Message(**{inner.name: absent(inner) for inner in field.fields})
    return field.default


def _numbers(formats: str) -> Step:
    packed = struct.Struct(f">{formats}")
    unpack, size = packed.unpack_from, packed.size

    def step(buffer: memoryview, position: int, values: list[Any]) -> int:
        values.extend(unpack(buffer, position))
        return position + size

    return step


def _appending(read: Reader) -> Step:
    def step(buffer: memoryview, position: int, values: list[Any]) -> int:
        value, position = read(buffer, position)
        values.append(value)
        return position

    return step


def _tagged_section(readers: dict[int, Reader]) -> Step:
    def step(buffer: memoryview, position: int, values: list[Any]) -> int:
        count, position = read_unsigned_varint(buffer, position)
        for _ in range(count):
            tag, position = read_unsigned_varint(buffer, position)
            size, position = read_unsigned_varint(buffer, position)
            if position + size > len(buffer):
                raise DecodeError("a tagged field is longer than the message")
            if tag in readers:
                values.append((tag, readers[tag](buffer, position)[0]))
            position += size
        return position

    return step


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
