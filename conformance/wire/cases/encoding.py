"""Requests as bytes with holes: parts, one after the other, which need nobody who knows the schemas."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kspec.conformance.wire.exchange import ChecksummedBytes, Hole, NumberHole, RecordParts, RequestFields
from kspec.impl.wire.apis import LAST_STABLE
from kspec.impl.wire.requests import CLIENT_ID, sent
from kspec.impl.wire.schema import Field, Versions, schema
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import write_message

WIDTHS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q"}
NUMBER_MARKS = {"int16": 0x5A17, "int32": 0x5AC31700, "int64": 0x5AC3170000C3A500}
"""Numbers that stand for holes while a message is written: no request has them."""

CORRELATION = NumberHole(Hole("correlation_id"), "int32")

Part = Any
"""Bytes; `NumberHole`, a hole of this kind (also `string`, `compact_string`, `uuid`); `ChecksummedBytes`."""


class _Marks:
    """Values that stand for the holes of one request, and the parts that come in their places."""

    def __init__(self, flexible: bool) -> None:
        self.flexible = flexible
        self.places: list[tuple[bytes, tuple[Part, ...]]] = []

    def mark(self, hole: Hole, kind: str) -> Any:
        """A value in place of a hole."""
        number = len(self.places)
        if kind == "string":
            text = f"<<hole {number:04}>>"
            length = bytes([len(text) + 1]) if self.flexible else struct.pack(">h", len(text))
            part = NumberHole(hole, "compact_string" if self.flexible else "string")
            self.places.append((length + text.encode(), (part,)))
            return text
        if kind == "uuid":
            mark = f"<<uuid {number:07}>>".encode()
            self.places.append((mark, (NumberHole(hole, "uuid"),)))
            return mark
        value = NUMBER_MARKS[kind] + number
        self.places.append((struct.pack(WIDTHS[kind], value), (NumberHole(hole, kind),)))
        return value

    def mark_records(self, records: RecordParts) -> bytes:
        """Bytes in place of records, as many."""
        size = size_of(records.parts)
        if size < 16:
            return b"".join(records.parts)
        mark = f"<<records {len(self.places):05}".encode().ljust(size, b"\xa5")
        self.places.append((mark, records.parts))
        return mark

    def split(self, body: bytes) -> tuple[Part, ...]:
        """The body with the parts in place of the marks."""
        found = []
        for mark, parts in self.places:
            assert body.count(mark) == 1, f"the mark {mark!r} is {body.count(mark)} times in {body!r}"
            found.append((body.index(mark), mark, parts))
        result: list[Part] = []
        position = 0
        for at, mark, parts in sorted(found, key=lambda entry: entry[0]):
            result += [body[position:at], *parts]
            position = at + len(mark)
        return tuple(part for part in (*result, body[position:]) if part != b"")


def size_of(parts: Sequence[Part]) -> int:
    """The bytes that parts of a fixed width will have."""
    return sum(map(_size, parts))


def _size(part: Part) -> int:
    if isinstance(part, ChecksummedBytes):
        return 4 + size_of(part.parts)
    return struct.calcsize(WIDTHS[part.width]) if isinstance(part, NumberHole) else len(part)


def _marked(fields: tuple[Field, ...], values: Mapping[str, Any], version: int, marks: _Marks) -> Message:
    """The fields of one version, with marks in place of holes."""
    found = {}
    for field in fields:
        if field.name in values and version in field.versions:
            found[field.name] = _marked_value(field, values[field.name], version, marks)
    return Message(**found)


def _marked_value(field: Field, value: Any, version: int, marks: _Marks) -> Any:
    if field.is_array and value is not None:
        return [_marked_value(field._replace(is_array=False), one, version, marks) for one in value]
    if isinstance(value, Hole):
        return marks.mark(value, field.kind)
    if isinstance(value, RecordParts):
        return marks.mark_records(value)
    return _marked(field.fields, value, version, marks) if field.kind == "struct" and value is not None else value


def check_names(fields: tuple[Field, ...], values: Mapping[str, Any], owner: str) -> None:
    """Every field that is given is one of the schema."""
    known = {field.name: field for field in fields}
    for name, value in values.items():
        assert name in known, f"{owner} has no field {name}"
        inside = value if isinstance(value, list) else [value]
        for one in inside:
            if isinstance(one, dict):
                check_names(known[name].fields, one, f"{owner}.{name}")


def versions_of(request: RequestFields) -> Versions:
    """The versions in which a request can be written, as far as Kafka offers them."""
    known = sent(request.api).versions
    last = min(known.last, LAST_STABLE.get(request.api, known.last))
    return Versions(max(known.first, request.versions.first), min(last, request.versions.last))


def parts_of(request: RequestFields, version: int, client_id: bytes = CLIENT_ID) -> tuple[Part, ...]:
    """A request with its header, without its length."""
    if request.raw is not None:
        return request.raw
    api = sent(request.api)
    flexible = version in api.flexible_request
    facts = schema(f"{request.api}Request")
    check_names(facts.fields, request.fields, facts.name)
    marks = _Marks(flexible)
    body = write_message(facts.name, version, _marked(facts.fields, request.fields, version, marks))
    start = struct.pack(">hh", api.key, version)
    client = struct.pack(">h", len(client_id)) + client_id + (b"\0" if flexible else b"")
    return tuple(_joined((start, CORRELATION, client, *marks.split(body))))


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    """The same with stretches of bytes as one part each."""
    pending = b""
    for part in parts:
        if isinstance(part, bytes):
            pending += part
        else:
            if pending:
                yield pending
            pending = b""
            yield part
    if pending:
        yield pending
