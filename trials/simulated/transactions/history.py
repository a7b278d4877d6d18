"""The transactions of simulated producers: what they were told of each, and what readers have read of it."""

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kspec.spec.values import Offset
from kspec.trials.simulated.history import BrokenPromiseError


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


class TransactionValue(NamedTuple):
    """A record of a transaction, and its place in the batch for one partition."""

    transaction: TransactionName
    place: int

    def to_bytes(self) -> bytes:
        """The value of the record on the wire."""
        return f"{self.transaction.producer}:{self.transaction.number}:{self.place}".encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> "TransactionValue":
        """Read the value of a record."""
        producer, number, place = map(int, text.decode().split(":"))
        return cls(TransactionName(producer, number), place)


@dataclass(slots=True)
class TransactionHistory:
    """All transactions of a run. `read`: the value that was read at an offset of a partition, by any reader."""

    outcomes: dict[TransactionName, TransactionOutcome] = field(default_factory=dict)
    acknowledged: dict[TransactionName, set[tuple[int, TransactionValue]]] = field(default_factory=dict)
    """The records of a transaction that a leader has acknowledged, with their partitions."""
    read: dict[tuple[int, Offset], TransactionValue] = field(default_factory=dict)

    def begin(self, name: TransactionName) -> None:
        """A transaction begins."""
        self.outcomes[name] = TransactionOutcome.OPEN
        self.acknowledged[name] = set()

    def see(self, partition: int, offset: Offset, value: TransactionValue) -> None:
        """A reader of what is committed has got a record. Raises: `BrokenPromiseError`.

        The transaction may be one whose producer waits for the answer, and not one that it has not asked to commit.
        """
        known = self.read.setdefault((partition, offset), value)
        if known != value:
            raise BrokenPromiseError("ConsistentRead", f"offset {offset} of partition {partition} was {known}, is {value}")
        outcome = self.outcomes.get(value.transaction)
        if outcome in (None, TransactionOutcome.OPEN, TransactionOutcome.ABORTED):
            what = f"{value} was read at offset {offset} of partition {partition}, and its transaction is {outcome}"
            raise BrokenPromiseError("OnlyCommittedIsRead", what)

    def check(self, partitions: dict[int, dict[Offset, TransactionValue]]) -> None:
        """Judge what is committed in the end: of each transaction all or nothing, and nothing twice.

        Raises: `BrokenPromiseError`.
        """
        found: dict[TransactionName, list[tuple[int, TransactionValue]]] = {}
        for partition, records in partitions.items():
            for offset, value in records.items():
                self.see(partition, offset, value)
                found.setdefault(value.transaction, []).append((partition, value))
        for (partition, offset), value in self.read.items():
            if partitions[partition].get(offset) != value:
                what = f"{value} was read at offset {offset} of partition {partition}, and is not there any more"
                raise BrokenPromiseError("ConsistentRead", what)
        for name, outcome in self.outcomes.items():
            there = found.get(name, [])
            if len(set(there)) < len(there):
                raise BrokenPromiseError("Duplicate", f"{name} has records twice: {sorted(there)}")
            missing = self.acknowledged[name] - set(there)
            if outcome == TransactionOutcome.COMMITTED and missing:
                raise BrokenPromiseError("CommittedIsKept", f"{name} is committed, and has lost {sorted(missing)}")
            if there and missing:
                raise BrokenPromiseError("OneEnd", f"{name} is torn: {sorted(missing)} are not there, {sorted(there)} are")
