"""The parts of a case's requests as bytes, once the holes are known."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import crc32c

from kspec.conformance.wire.cases.suite import Json

Known = Mapping[str, Any]
"""Values that are known so far: numbers, texts and ids by the names of the holes."""

WIDTHS = {"int16": ">h", "int32": ">i", "int64": ">q"}


class UnknownHoleError(Exception):
    """Nothing has told what a request needs: the name of the hole."""

    def __init__(self, hole: str) -> None:
        super().__init__(f"no answer has told the {hole.replace('_', ' ')}")
        self.hole = hole


def filled(value: Any, known: Known) -> Any:
    """A value of a document with its holes filled, bytes as bytes."""
    if isinstance(value, list):
        return [filled(one, known) for one in value]
    if not isinstance(value, dict):
        return value
    if "hole" in value:
        return _of_hole(value, known)
    if set(value) == {"hex"}:
        return bytes.fromhex(value["hex"])
    if set(value) == {"parts"}:
        return rendered(value["parts"], known)
    return {name: filled(one, known) for name, one in value.items()}


def _of_hole(hole: Json, known: Known) -> Any:
    if hole["hole"] not in known:
        raise UnknownHoleError(hole["hole"])
    found = known[hole["hole"]]
    return found + hole["plus"] if "plus" in hole else found


def rendered(parts: Sequence[str | Json], known: Known) -> bytes:
    """Parts as bytes. Raises: `UnknownHoleError`."""
    return b"".join(_rendered(part, known) for part in parts)


def _rendered(part: str | Json, known: Known) -> bytes:
    if isinstance(part, str):
        return bytes.fromhex(part)
    if "crc32c" in part:
        inside = rendered(part["crc32c"], known)
        return struct.pack(">I", crc32c.crc32c(inside)) + inside
    value: Any = _of_hole(part, known)
    kind = part["as"]
    if kind == "uuid":
        return bytes(value)
    if kind in ("string", "compact_string"):
        text = str(value).encode()
        return (struct.pack(">h", len(text)) if kind == "string" else _varint(len(text) + 1)) + text
    return struct.pack(WIDTHS[kind], value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))
