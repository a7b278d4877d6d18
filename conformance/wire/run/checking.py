"""Whether an answer is as a case expects it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from kspec.conformance.wire.cases.suite import Json
from kspec.conformance.wire.run.rendering import Known, UnknownHoleError, filled
from kspec.impl.records.batch import InvalidBatchError, headers
from kspec.impl.records.compression import CompressionError
from kspec.impl.records.record import RecordError, records_of
from kspec.impl.wire.values import Message

NOTHING: Mapping[str, Any] = MappingProxyType({})
CONTENTS = ("values", "times", "keys")
"""The fields of records that a case may look at."""

PATH_STEPS = re.compile(r"\[([^\]]*)\]|([a-z_0-9]+)")
"""The text between brackets, or the name of a field."""


def at(message: Message, path: str, known: Known = NOTHING) -> Any:
    """The field of an answer at a path.

    Raises: `LookupError`, if a list is too short, has no such entry, or there is nothing inside; that is a `KeyError` if a
    message lacks a field, which only a tagged one may be; `UnknownHoleError`.
    """
    found: Any = message
    for inside, name in PATH_STEPS.findall(path):
        if name:
            if not isinstance(found, Message):
                raise LookupError(path)
            found = found.__dict__[name]
        elif found is None:
            raise LookupError(path)
        else:
            found = _of_list(found, inside, known)
    return found


def _of_list(entries: Sequence[Any], inside: str, known: Known) -> Any:
    """An entry of a list by its place or a field, or how many there are, of all or of those with a field."""
    if "=" not in inside:
        return len(entries) if inside == "#" else entries[int(inside)]
    field, _, value = inside.removeprefix("#").partition("=")
    wanted = _wanted(value, known)
    having = [one for one in entries if _plain(one.__dict__[field]) == wanted]
    return len(having) if inside.startswith("#") else having[0]


def _wanted(value: str, known: Known) -> Any:
    """The value of a field by which an entry is chosen: a hole, a text, or a number."""
    if value.startswith("@"):
        return filled({"hole": value[1:]}, known)
    return value[1:-1] if value.startswith("'") else int(value)


def differences(expected: list[Json], version: int, answer: Message, known: Known) -> list[str]:
    """Differences from what is expected, one line each; nothing if there are none."""
    return [line for one in expected if _applies(one, version) for line in _differences(one, answer, known)]


def liberties(expected: list[Json], version: int, answer: Message, known: Known) -> list[str]:
    """Fields that are unlike Apache Kafka's, as the protocol leaves it free: what is there, and the sentence that does."""
    return [line for one in expected if _applies(one, version) for line in _liberties(one, answer, known)]


def _liberties(constraint: Json, answer: Message, known: Known) -> Iterator[str]:
    if "free" not in constraint:
        return
    try:
        found = at(answer, constraint["path"], known)
    except (LookupError, TypeError, UnknownHoleError):
        return
    allowed = [filled(one, known) for one in constraint["one_of"]]
    if _plain(found) not in allowed and is_free(constraint["free"], _plain(found)):
        path, why = constraint["path"], constraint["free"]["why"]
        yield f"{path}: {shown(found)}, where Apache Kafka has {' or '.join(map(shown, allowed))}: {why}"


def is_free(free: Json, found: Any) -> bool:
    """Whether the protocol leaves a value free."""
    return found in free["one_of"] if "one_of" in free else found not in free["none_of"]


def _applies(constraint: Json, version: int) -> bool:
    first, last = constraint.get("versions", (version, version))
    return bool(first <= version <= last)


def _differences(constraint: Json, answer: Message, known: Known) -> Iterator[str]:
    path = constraint["path"]
    try:
        found = at(answer, path, known)
    except UnknownHoleError as error:
        yield f"{path}: {error}"
        return
    except (LookupError, TypeError) as error:
        if not (isinstance(error, KeyError) and _may_be_absent(constraint)):
            yield f"{path}: there is none"
        return
    try:
        yield from _compared(constraint, path, found, known)
    except UnknownHoleError as error:
        yield f"{path}: {shown(found)}, and {error}"


def _may_be_absent(constraint: Json) -> bool:
    """Whether a field may be missing from a message: a tagged field that has its default. An entry of a list may not."""
    return bool(constraint.get("one_of") == [-1])


def _compared(constraint: Json, path: str, found: Any, known: Known) -> Iterator[str]:
    if "one_of" in constraint:
        allowed = [filled(one, known) for one in constraint["one_of"]]
        if _plain(found) not in allowed and not ("free" in constraint and is_free(constraint["free"], _plain(found))):
            yield f"{path}: {shown(found)}, not {' or '.join(map(shown, allowed))}"
    elif "at_least" in constraint:
        least = filled(constraint["at_least"], known)
        if not isinstance(found, int) or found < least:
            yield f"{path}: {found}, not at least {least}"
    elif "none_of" in constraint:
        if _plain(found) in [filled(one, known) for one in constraint["none_of"]]:
            yield f"{path}: {shown(found)}, as before"
    elif "not_empty" in constraint:
        if found in (0, -1, "", None, b"", bytes(16)):
            yield f"{path}: {shown(found)}, not something of its own"
    else:
        wanted = constraint["records"]
        yield from _records(path, found, wanted["offsets"], filled(wanted["leader_epochs"], known))
        if any(name in wanted for name in CONTENTS):
            yield from _contents(path, found, wanted, known)


def _records(path: str, found: Any, offsets: list[int], epochs: list[int]) -> Iterator[str]:
    try:
        batches = list(headers(bytes(found or b"")))
    except InvalidBatchError as error:
        yield f"{path}: {error}"
        return
    first = offsets[0] if offsets else 0
    covered = {offset: one for one in batches for offset in range(max(one.base_offset, first), one.next_offset)}
    if list(covered) != offsets:
        yield f"{path}: the records at {list(covered)}, not at {offsets}"
        return
    carried = [one.leader_epoch for one in covered.values()]
    if carried != epochs:
        yield f"{path}: leader epochs {carried}, not {epochs}"


def _contents(path: str, found: Any, wanted: Json, known: Known) -> Iterator[str]:
    """The differences of the records themselves: their values, timestamps and keys. Null is for anything."""
    content = memoryview(bytes(found or b""))
    try:
        batches = [(one, content[one.position : one.position + one.size]) for one in headers(content)]
        records = [(header, record) for header, batch in batches for record in records_of(batch)]
    except (InvalidBatchError, RecordError, CompressionError) as error:
        yield f"{path}: {error}"
        return
    there = [(header, record) for header, record in records if record.offset in wanted["offsets"]]
    times = [header.max_timestamp if header.log_append_time else record.timestamp for header, record in there]
    values = [bytes(record.value or b"") for _, record in there]
    keys = [bytes(record.key or b"") for _, record in there]
    found_in: tuple[list[Any], ...] = (values, times, keys)
    for name, seen in zip(CONTENTS, found_in, strict=True):
        expected: list[Any] = filled(wanted[name], known) if name in wanted else seen
        if len(seen) != len(expected) or any(one not in (None, other) for one, other in zip(expected, seen, strict=True)):
            yield f"{path}: {name} {list(map(shown, seen))}, not {list(map(shown, expected))}"


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (memoryview, bytearray)) else value


def shown(value: Any) -> str:
    """A value as it is told in a difference."""
    value = _plain(value)
    return value.hex() if isinstance(value, bytes) else repr(value)


def kept(kept: Json, version: int, answer: Message, known: Known) -> dict[str, Any]:
    """The values that later requests need of an answer, as far as this version of it has them."""
    found = {}
    for name, where in kept.items():
        first, last = where.get("versions", (version, version))
        if first <= version <= last:
            found[name] = _plain(at(answer, where["path"], known))
    return found
