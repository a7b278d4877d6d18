"""The transactions of simulated producers: what they were told of each, and what readers have read of it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kspec.spec.values import Offset
from kspec.trials.history.anomalies import MEANINGS, anomalies_in
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    UNKNOWN,
    ConsumerAssignment,
    Event,
    PartitionEnd,
    Poll,
    SendOutcome,
    SendStart,
    TransactionEnd,
)
from kspec.trials.simulated.history import BrokenPromiseError

READER, LAST_READER = "reader", "last-reading"


class TransactionOutcome(Enum):
    """A producer's knowledge of the end of a transaction."""

    OPEN = "open"
    """It has not asked for an end that may still come."""
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """It has asked to commit, and was told nothing for sure."""


class TransactionName(NamedTuple):
    """A transaction: its producer, and its number among the producer's."""

    producer: int
    number: int

    def __str__(self) -> str:
        return f"{self.producer}:{self.number}"


class TransactionValue(NamedTuple):
    """A record of a transaction, and its place among those for one partition."""

    transaction: TransactionName
    place: int

    def __str__(self) -> str:
        return f"{self.transaction}:{self.place}"

    def to_bytes(self) -> bytes:
        """The value of the record on the wire."""
        return str(self).encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> "TransactionValue":
        """Read the value of a record."""
        producer, number, place = map(int, text.decode().split(":"))
        return cls(TransactionName(producer, number), place)


PROMISES = {
    "lost-write": "CommittedIsKept",
    "torn-transaction": "OneEnd",
    "aborted-read": "OnlyCommittedIsRead",
    "phantom": "OnlyCommittedIsRead",
    "unseen": "CommittedIsKept",
    "inconsistent-offsets": "ConsistentRead",
    "duplicate": "Duplicate",
}
"""The promise that each anomaly of the judge breaks, the worst first; another one is called by its own name."""

KINDS = {
    TransactionOutcome.OPEN: REFUSED,
    TransactionOutcome.ABORTED: REFUSED,
    TransactionOutcome.COMMITTED: ACKNOWLEDGED,
    TransactionOutcome.UNKNOWN: UNKNOWN,
}


@dataclass(slots=True)
class TransactionHistory:
    """All transactions of a run, as the events of a history. `outcomes`: what their producers know of them by now."""

    outcomes: dict[TransactionName, TransactionOutcome] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    read: dict[tuple[int, Offset], TransactionValue] = field(default_factory=dict)
    """The first value that any reader got at an offset of a partition."""

    def begin(self, name: TransactionName) -> None:
        """A transaction begins."""
        self.outcomes[name] = TransactionOutcome.OPEN

    def send(self, partition: int, value: TransactionValue) -> None:
        """A producer sends a record for the first time."""
        name = str(value.transaction)
        self.events.append(SendStart(str(value.transaction.producer), str(partition), str(value), transaction=name))

    def acknowledge(self, partition: int, offset: Offset, value: TransactionValue) -> None:
        """A leader has acknowledged a record."""
        name = str(value.transaction)
        self.events.append(SendOutcome(str(partition), str(value), ACKNOWLEDGED, offset, transaction=name))

    def see(self, partition: int, offset: Offset, value: TransactionValue) -> None:
        """A reader of what is committed has got a record. Raises: `BrokenPromiseError`.

        The transaction may be one whose producer waits for the answer, and not one that it has not asked to commit.
        """
        known = self.read.setdefault((partition, offset), value)
        if known is value or known != value:
            self.events.append(Poll(READER, str(partition), ((offset, str(value)),)))
        if known != value:
            raise BrokenPromiseError("ConsistentRead", f"offset {offset} of partition {partition} was {known}, is {value}")
        outcome = self.outcomes.get(value.transaction)
        if outcome in (None, TransactionOutcome.OPEN, TransactionOutcome.ABORTED):
            what = f"{value} was read at offset {offset} of partition {partition}, and its transaction is {outcome}"
            raise BrokenPromiseError("OnlyCommittedIsRead", what)

    def check(self, partitions: dict[int, dict[Offset, TransactionValue]]) -> None:
        """Judge what is committed in the end, by the judge of all histories. Raises: `BrokenPromiseError`."""
        ends = [TransactionEnd(str(name.producer), str(name), KINDS[outcome]) for name, outcome in self.outcomes.items()]
        last: list[Event] = []
        for partition, records in partitions.items():
            polled = tuple((offset, str(value)) for offset, value in sorted(records.items()))
            last.append(ConsumerAssignment(LAST_READER, str(partition), 0))
            last += [Poll(LAST_READER, str(partition), polled)] if polled else []
            last.append(PartitionEnd(LAST_READER, str(partition), max(records, default=-1) + 1))
        found = anomalies_in([*self.events, *ends, *last])
        order = list(PROMISES)
        for one in sorted(found, key=lambda one: order.index(one.name) if one.name in order else len(order)):
            at = f" in partition {one.partition}" if one.partition else ""
            raise BrokenPromiseError(PROMISES.get(one.name, one.name), f"{one.subject}{at}: {MEANINGS[one.name]}")
