"""The fields of Kafka's messages: names, types, and the versions that have them.

The table is `messages.json`, one line for each message. `python -m kspec.impl.wire.from_jars JAR...` writes it, from the
schemas that Kafka's own jars carry. Only facts are taken: names, types, versions, defaults.
"""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("messages.json")
FOREVER = 32767


class Versions(NamedTuple):
    """A range of versions, both ends included; empty if `last` is below `first`."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NEVER = Versions(0, -1)


def versions_of(text: str) -> Versions:
    """Kafka's way to write a range: `3`, `0-12`, `9+`, `none`."""
    if text in {"", "none"}:
        return NEVER
    if text.endswith("+"):
        return Versions(int(text[:-1]), FOREVER)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


class Field(NamedTuple):
    """One field. `kind` is a primitive type or `struct`; `is_array` makes a list of it. `tag` is -1 unless it is tagged."""

    name: str
    kind: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int
    tagged: Versions
    default: Any
    fields: tuple["Field", ...]
    flexible: Versions | None = None


class Schema(NamedTuple):
    """One message: its API key (or record type), the versions there are, those with compact lengths, its fields."""

    name: str
    key: int
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


def snake_case(name: str) -> str:
    """Kafka's `TransactionalId` as `transactional_id`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


NUMBERS = ("int8", "int16", "uint16", "int32", "uint32", "int64")


def _default(kind: str, is_array: bool, text: Any) -> Any:
    if text in {"null", None} and text is not None:
        return None
    if is_array:
        return ()
    if kind in NUMBERS:
        return int(str(text or "0"), 0)
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "float64":
        return float(text or 0)
    return {"string": text or "", "bytes": b"", "uuid": NO_UUID, "struct": None}.get(kind)


NO_UUID = bytes(16)
"""Kafka: `Uuid.ZERO_UUID`."""


def _field(entry: dict[str, Any]) -> Field:
    kind = entry["type"]
    is_array = kind.startswith("[]")
    kind = kind.removeprefix("[]")
    return Field(
        entry["name"],
        kind,
        is_array,
        versions_of(entry["versions"]),
        versions_of(entry.get("nullable", "none")),
        entry.get("tag", -1),
        versions_of(entry.get("tagged", "none")),
        _default(kind, is_array, entry.get("default")),
        tuple(map(_field, entry.get("fields", ()))),
        versions_of(entry["flexible"]) if "flexible" in entry else None,
    )


@cache
def _lines() -> dict[str, str]:
    """The table's lines by the messages' names; a line is read when its message is asked for."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    return {line[len('{"name":"') :].partition('"')[0]: line for line in lines}


def names() -> tuple[str, ...]:
    """The messages that the table has, such as `FetchRequest`."""
    return tuple(_lines())


@cache
def schema(name: str) -> Schema:
    """The fields of a message, such as `FetchRequest`."""
    return schema_of(json.loads(_lines()[name]))


def schema_of(entry: dict[str, Any]) -> Schema:
    """The fields of a message from its line of the table."""
    return Schema(
        entry["name"],
        entry["key"],
        versions_of(entry["versions"]),
        versions_of(entry["flexible"]),
        tuple(map(_field, entry["fields"])),
    )
