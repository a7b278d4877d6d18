"""What clients of a cluster saw, as events in the order in which they saw it, and their form in JSON.

A history is a file with one event in each line. Values are unique in a partition: a producer puts its name and a number into
each record. Times are milliseconds since the history began; no verdict depends on them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, TypeAlias

ACKNOWLEDGED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"
"""What became of a record: it was stored; it was certainly not stored; nobody knows."""


class HistoryError(Exception):
    """A file that is no history: one line that says where."""


@dataclass(frozen=True, slots=True)
class Sent:
    """A producer begins to send a record. What it sends to one partition it wants stored in this order."""

    producer: str
    partition: str
    value: str
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the producer was told. `offset` is where the record was stored, if that was said; `error` is Kafka's."""

    partition: str
    value: str
    kind: str
    offset: int | None = None
    error: str | None = None
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Assigned:
    """A consumer begins to read a partition at an offset, or goes there: what it polled before binds it no more."""

    consumer: str
    partition: str
    offset: int
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Polled:
    """One poll gave a consumer these records of a partition, each with its offset, in this order."""

    consumer: str
    partition: str
    records: tuple[tuple[int, str], ...]
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Ended:
    """A consumer has read a partition up to its end: no record that a client may see has this offset or a higher one."""

    consumer: str
    partition: str
    offset: int
    ms: int = 0


Event: TypeAlias = Sent | Outcome | Assigned | Polled | Ended
KINDS: dict[str, type[Event]] = {kind.__name__.lower(): kind for kind in (Sent, Outcome, Assigned, Polled, Ended)}


def to_json(event: Event) -> dict[str, Any]:
    """An event as JSON has it; what is not known is left out."""
    fields = {name: value for name, value in asdict(event).items() if value is not None}
    return {"event": type(event).__name__.lower(), **fields}


def from_json(fields: Any) -> Event:
    """The event. Raises: `HistoryError`."""
    try:
        given = dict(fields)
        kind = KINDS[given.pop("event")]
        if kind is Polled:
            given["records"] = tuple((int(offset), str(value)) for offset, value in given["records"])
        event = kind(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"no event: {json.dumps(fields)[:200]}") from error
    if isinstance(event, Outcome) and event.kind not in (ACKNOWLEDGED, REFUSED, UNKNOWN):
        raise HistoryError(f"no outcome: {event.kind!r}")
    return event


def write_history(events: Iterable[Event], stream: TextIO) -> None:
    """Write a history, one event in a line."""
    for event in events:
        stream.write(json.dumps(to_json(event), separators=(",", ":")) + "\n")


def read_history(file: Path) -> Iterator[Event]:
    """The events of a file. Raises: `HistoryError`."""
    try:
        with file.open(encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    yield from_json(json.loads(line))
                except (ValueError, HistoryError) as error:
                    raise HistoryError(f"{file}:{number}: {error}") from error
    except OSError as error:
        raise HistoryError(f"cannot read {file}: {error.strerror or error}") from error
