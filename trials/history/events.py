"""Observations of a cluster's clients, as events in the order of observation, and their form in JSON.

A history is a file with one event in each line. Values are unique in a partition: each has its producer's name and a number.
Times are milliseconds since the beginning; no verdict depends on them.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, TypeAlias, get_args

ACKNOWLEDGED, REFUSED, UNKNOWN = "acknowledged", "refused", "unknown"
"""The fate of a record: it was stored; it was certainly not stored; it may have been stored."""


class HistoryError(Exception):
    """A file that is no history: the place of the mistake in one line."""


@dataclass(frozen=True, slots=True)
class SendStart:
    """The beginning of a send. A producer's records to one partition are to be stored in the order of these events."""

    producer: str
    partition: str
    value: str
    ms: int = 0
    transaction: str | None = None
    """The transaction to which the record belongs, if to one; its name is unique. Its partitions are read by those who read
    what is committed."""


@dataclass(frozen=True, slots=True)
class SendOutcome:
    """The response to a producer. `offset`: of the stored record, if the response has it; `error`: Kafka's."""

    partition: str
    value: str
    kind: str
    offset: int | None = None
    error: str | None = None
    ms: int = 0
    transaction: str | None = None


@dataclass(frozen=True, slots=True)
class ConsumerAssignment:
    """A consumer's assignment or seek to an offset of a partition: its earlier polls no longer matter to its order."""

    consumer: str
    partition: str
    offset: int
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Poll:
    """The records of a partition that one poll gave a consumer, each with its offset, in this order."""

    consumer: str
    partition: str
    records: tuple[tuple[int, str], ...]
    ms: int = 0


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The end of a partition up to which a consumer has read: no visible record has this offset or a higher one."""

    consumer: str
    partition: str
    offset: int
    ms: int = 0


@dataclass(frozen=True, slots=True)
class CommitStart:
    """The beginning of a commit of an offset that no client has committed yet. `key`: `GROUP/TOPIC-N`."""

    client: str
    partition: str
    offset: int
    ms: int = 0


@dataclass(frozen=True, slots=True)
class CommitOutcome:
    """The response to a commit: its fate as that of a record; `error`: Kafka's."""

    partition: str
    offset: int
    kind: str
    error: str | None = None
    ms: int = 0


@dataclass(frozen=True, slots=True)
class OffsetFetchStart:
    """The beginning of an OffsetFetch. A client has one in flight at a time; after a lost response it has a new name."""

    client: str
    partition: str
    ms: int = 0


@dataclass(frozen=True, slots=True)
class OffsetFetchOutcome:
    """The response to an OffsetFetch: -1 if no offset is committed."""

    client: str
    partition: str
    offset: int
    ms: int = 0


@dataclass(frozen=True, slots=True)
class TransactionEnd:
    """The end of a transaction as its producer knows it: committed (acknowledged), aborted or never asked to commit
    (refused), unknown. `began`: the time of its beginning.
    """

    producer: str
    transaction: str
    kind: str
    error: str | None = None
    began: int = 0
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Consumption:
    """A record that a transaction has consumed: it commits the offset behind it together with what it writes."""

    transaction: str
    partition: str
    offset: int
    value: str
    ms: int = 0


@dataclass(frozen=True, slots=True)
class ConsumedTo:
    """The offset up to which the transactions of a group have consumed a partition, when none is open any more."""

    partition: str
    offset: int
    ms: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of a bank: all that a consumer has polled below these offsets of the partitions."""

    consumer: str
    ends: tuple[tuple[str, int], ...]
    ms: int = 0


@dataclass(frozen=True, slots=True)
class OwnershipStart:
    """From here on a member of a group holds a partition for its own. `key`: `GROUP/TOPIC-N`."""

    client: str
    partition: str
    ms: int = 0


@dataclass(frozen=True, slots=True)
class OwnershipEnd:
    """The member has given the partition up."""

    client: str
    partition: str
    ms: int = 0


RecordEvent: TypeAlias = SendStart | SendOutcome | ConsumerAssignment | Poll | PartitionEnd
CommitEvent: TypeAlias = CommitStart | CommitOutcome | OffsetFetchStart | OffsetFetchOutcome
TransactionEvent: TypeAlias = TransactionEnd | Consumption | ConsumedTo | Snapshot
OwnershipEvent: TypeAlias = OwnershipStart | OwnershipEnd
Event: TypeAlias = RecordEvent | CommitEvent | TransactionEvent | OwnershipEvent
EVENTS: tuple[type[Event], ...] = (
    *get_args(RecordEvent),
    *get_args(CommitEvent),
    *get_args(TransactionEvent),
    *get_args(OwnershipEvent),
)
KINDS: dict[str, type[Event]] = {
    "sent": SendStart,
    "outcome": SendOutcome,
    "assigned": ConsumerAssignment,
    "polled": Poll,
    "ended": PartitionEnd,
    "commitsent": CommitStart,
    "commitoutcome": CommitOutcome,
    "offsetfetchsent": OffsetFetchStart,
    "offsetfetchoutcome": OffsetFetchOutcome,
    "transactionended": TransactionEnd,
    "consumed": Consumption,
    "consumedto": ConsumedTo,
    "snapshot": Snapshot,
    "owned": OwnershipStart,
    "gaveup": OwnershipEnd,
}
"""The events by their names in JSON."""
NAMES: dict[type[Event], str] = {kind: name for name, kind in KINDS.items()}
OUTCOMES = (SendOutcome, CommitOutcome, TransactionEnd)


def to_json(event: Event) -> dict[str, Any]:
    """An event in JSON; unknown fields are left out."""
    fields = {name: value for name, value in asdict(event).items() if value is not None}
    return {"event": NAMES[type(event)], **fields}


def from_json(fields: Any) -> Event:
    """The event. Raises: `HistoryError`."""
    try:
        given = dict(fields)
        kind = KINDS[given.pop("event")]
        if kind is Poll:
            given["records"] = tuple((int(offset), str(value)) for offset, value in given["records"])
        if kind is Snapshot:
            given["ends"] = tuple((str(partition), int(offset)) for partition, offset in given["ends"])
        event = kind(**given)
    except (KeyError, TypeError, ValueError) as error:
        raise HistoryError(f"no event: {json.dumps(fields)[:200]}") from error
    if isinstance(event, OUTCOMES) and event.kind not in (ACKNOWLEDGED, REFUSED, UNKNOWN):
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
