"""What clients were told, and what is wrong with it: the promises of Kafka to those who use it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from spec.values import Offset


class BrokenPromiseError(Exception):
    """A promise is broken: which one, and how."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name, self.what = name, what


PROMISES = {
    "TypeOk": "log start, high watermark and log end are in this order",
    "HighWatermarkGrows": "the high watermark of a leader never goes back",
    "LeaderEpochGrows": "a running replica never goes back to an earlier leader epoch, nor a leader to an earlier ISR",
    "HighWatermarkFromLeader": "a follower's high watermark is not above every leader's",
    "LogMatching": "a follower's log below its high watermark is that of the leaders which committed it, epoch by epoch",
    "ConsistentRead": "no two leaders, and no two consumers, ever see different records at the same offset",
    "StrongIsr": "every record below the leader's high watermark is on every member of the controller's ISR",
    "QuorumSuperset": "the true leader's maximal ISR contains the controller's ISR",
    "LeaderCompleteness": "the true leader holds every record below any leader's high watermark",
    "CommittedOnNextLeader": "a record below any leader's high watermark is on every possible next leader",
    "AcknowledgedOnNextLeader": "an acknowledged record is on each leader that is elected, and on every possible next one",
    "AcknowledgedIsCommitted": "a record that is acknowledged is below some leader's high watermark",
    "AcknowledgedByEnough": "a record that is acknowledged is on min.insync.replicas brokers",
    "LeaderInIsr": "the controller's leader is in its ISR, or there is none",
    "IsrIsAssigned": "ISR and eligible leader replicas are replicas, and none is both",
    "LeaderIsActive": "a new leader is neither fenced nor shutting down",
    "PartitionEpochGrows": "each change of a partition has a later partition epoch, a new leader a later leader epoch",
    "UncleanExclusion": "a broker that lost records is neither in the ISR nor eligible when it has registered again",
    "LatestOffset": "the latest offset that a leader tells is not before what consumers have read from it or earlier ones",
    "NoTruncation": "a consumer that asks is never told that what it has read is not in the log any more",
    "LostWrite": "a record that was acknowledged is in the log in the end, where the answer said",
    "Duplicate": "a record of an idempotent producer is in the log once",
    "Reordered": "the records of an idempotent producer are in the log in the order in which they were sent",
    "Diverged": "in the end all replicas of a partition hold the same records",
    "NeverReady": "without faults all replicas are in sync again, and writes go through",
}
"""Each promise by its name. Those that models have, too, have the models' names."""


class Value(NamedTuple):
    """A record: whose, and which of theirs."""

    producer: int
    number: int

    def to_bytes(self) -> bytes:
        """As a record has it."""
        return f"{self.producer}:{self.number}".encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> "Value":
        """From a record."""
        producer, _, number = text.decode().partition(":")
        return cls(int(producer), int(number))


@dataclass(slots=True)
class PartitionHistory:
    """What clients know of one partition."""

    acknowledged: dict[Value, Offset] = field(default_factory=dict)
    end_of_acknowledged: int = 0
    """After the last acknowledged record."""
    read: dict[Offset, Value] = field(default_factory=dict)
    ends_read: dict[int, int] = field(default_factory=dict)
    """Up to where consumers have read, by the leader epoch in which."""
    places: dict[Value, Offset] = field(default_factory=dict)
    """Where each record was read."""
    on_acknowledged: Callable[[int], None] = lambda end_offset: None
    """Told where acknowledged records end."""

    def acknowledge(self, first: Offset, values: Iterable[Value]) -> None:
        """A producer was told that its records are in the log from this offset on."""
        for offset, value in enumerate(values, start=first):
            self.acknowledged[value] = Offset(offset)
            self.end_of_acknowledged = max(self.end_of_acknowledged, offset + 1)
            self.on_acknowledged(offset + 1)

    def see(self, offset: Offset, value: Value) -> None:
        """A consumer has read a record. Raises: `BrokenPromiseError`."""
        known = self.read.setdefault(offset, value)
        if known != value:
            what = f"a consumer read {value} at offset {offset}, where another had read {known}"
            raise BrokenPromiseError("ConsistentRead", what)
        place = self.places.setdefault(value, offset)
        if place != offset:
            raise BrokenPromiseError("Duplicate", f"a consumer read {value} at offsets {place} and {offset}")

    def read_to(self, end_offset: Offset, leader_epoch: int) -> None:
        """A consumer has read up to an offset, from the leader of an epoch."""
        self.ends_read[leader_epoch] = max(end_offset, self.ends_read.get(leader_epoch, 0))

    def end_of_read(self, leader_epoch: int) -> Offset:
        """Up to where any consumer has read from the leader of this epoch or of an earlier one."""
        return Offset(max((end for epoch, end in self.ends_read.items() if epoch <= leader_epoch), default=0))

    def see_latest(self, known: Offset, latest: Offset) -> None:
        """A consumer is told where the log ends; before it asked, consumers had read up to `known`.

        Raises: `BrokenPromiseError`.
        """
        if latest < known:
            what = f"consumers have read up to {known}, and then a later leader says that the log ends at {latest}"
            raise BrokenPromiseError("LatestOffset", what)

    def see_end(self, position: Offset, epoch: int, end_offset: Offset, end_epoch: int) -> None:
        """A consumer that has read up to a position, last in an epoch, is told where that epoch ends.

        It takes its position for truncated if the leader does not know that epoch, or knows less of it.

        **Kafka:** `SubscriptionState.maybeCompleteValidation`. Raises: `BrokenPromiseError`.
        """
        if end_epoch < epoch or end_offset < position:
            what = f"a consumer has read up to {position}, last in epoch {epoch}"
            raise BrokenPromiseError("NoTruncation", f"{what}, and is told that epoch {end_epoch} ends at {end_offset}")

    def check_log(self, name: str, log: list[tuple[Offset, Value]]) -> None:
        """A log in the end, held against what clients know. Raises: `BrokenPromiseError`."""
        by_offset = dict(log)
        for value, offset in self.acknowledged.items():
            found = by_offset.get(offset)
            if found != value:
                raise BrokenPromiseError("LostWrite", f"{name} has {found} at offset {offset}, acknowledged was {value}")
        for offset, value in self.read.items():
            found = by_offset.get(offset)
            if found != value:
                raise BrokenPromiseError("ConsistentRead", f"{name} has {found} at offset {offset}, read was {value}")
        last: dict[int, int] = {}
        for offset, value in log:
            before = last.get(value.producer, -1)
            if value.number == before:
                raise BrokenPromiseError("Duplicate", f"{name} has {value} twice, again at offset {offset}")
            if value.number < before:
                raise BrokenPromiseError("Reordered", f"{name} has {value} at offset {offset}, after number {before}")
            last[value.producer] = value.number
