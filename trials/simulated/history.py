"""The responses that clients got, and violations of Kafka's promises to its clients in them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from kspec.spec.claims import claim
from kspec.spec.values import Offset


class BrokenPromiseError(Exception):
    """A broken promise: its name, and the violation in words."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name}: {what}")
        self.name, self.what = name, what


PROMISES = {
    name: claim(name, "clusters")
    for name in (
        "TypeOk",
        "HighWatermarkGrows",
        "LeaderEpochGrows",
        "ProposalAsksForChange",
        "FencedIsNotStopping",
        "HighWatermarkFromLeader",
        "LogMatching",
        "ConsistentRead",
        "EpochsOfLog",
        "StrongIsr",
        "QuorumSuperset",
        "LeaderCompleteness",
        "CommittedOnNextLeader",
        "AcknowledgedOnNextLeader",
        "AcknowledgedIsCommitted",
        "AcknowledgedByEnough",
        "LeaderInIsr",
        "IsrIsAssigned",
        "LeaderIsActive",
        "PartitionEpochGrows",
        "UncleanExclusion",
        "PersistRebuildsLog",
        "PersistBeforeSend",
        "WaitingIsAnswered",
        "OfflineIsIdle",
        "MetadataLogIsState",
        "AnswerAfterAppend",
        "StoppingLeadsNothing",
        "OthersKnowOfStop",
        "UnfencedByRequest",
        "LowWatermark",
        "LatestOffset",
        "NoTruncation",
        "LostWrite",
        "Duplicate",
        "Reordered",
        "LostCommit",
        "FencedCommit",
        "OneAssignment",
        "Diverged",
        "ElectionSafety",
        "VotesOnce",
        "CommittedIsFinal",
        "CommittedOnNewestLeader",
        "RemovedLeaderResigns",
        "NoIllegalState",
        "NeverReady",
    )
}
"""Each promise by its name. A property that models have, too, has the models' name."""


class Value(NamedTuple):
    """A record: its producer, and its number among the producer's records."""

    producer: int
    number: int

    def to_bytes(self) -> bytes:
        """The value of a record on the wire."""
        return f"{self.producer}:{self.number}".encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> "Value":
        """Read the value of a record."""
        producer, _, number = text.decode().partition(":")
        return cls(int(producer), int(number))


@dataclass(slots=True)
class ClientPartitionHistory:
    """A partition's history by its clients' responses."""

    keeps: bool = True
    """Whether anything is promised to its clients."""
    deletes: bool = False
    """Whether records are deleted from its start."""
    acknowledged: dict[Value, Offset] = field(default_factory=dict)
    end_of_acknowledged: int = 0
    """The offset after the last acknowledged record."""
    read: dict[Offset, Value] = field(default_factory=dict)
    ends_read: dict[int, int] = field(default_factory=dict)
    """The end of what consumers have read, by the leader epoch in which they read it."""
    places: dict[Value, Offset] = field(default_factory=dict)
    """The offset at which each record was read."""
    starts_at_append: dict[int, int] = field(default_factory=dict)
    """The leader's log start when it appended at an offset, where records were deleted before; the largest one."""
    on_acknowledged: Callable[[int], None] = lambda end_offset: None
    """A listener that gets the new end of acknowledged records."""

    def acknowledge(self, first: Offset, values: Iterable[Value]) -> None:
        """Note an acknowledgement: these records are in the log from this offset on."""
        for offset, value in enumerate(values, start=first):
            self.acknowledged[value] = Offset(offset)
            self.end_of_acknowledged = max(self.end_of_acknowledged, offset + 1)
            self.on_acknowledged(offset + 1)

    def append(self, first: Offset, end: Offset, log_start: Offset) -> None:
        """Note that a leader has appended from `first` up to `end`, when its log started at `log_start`."""
        if self.deletes and log_start > 0:
            for offset in range(first, end):
                self.starts_at_append[offset] = max(log_start, self.starts_at_append.get(offset, 0))

    def see(self, offset: Offset, value: Value) -> None:
        """Note a record that a consumer has read. Raises: `BrokenPromiseError`.

        It may be read at two offsets only if the first copy was deleted when a leader appended the second. A leader that has
        rebuilt the state of producers from its log knows no batch below its log start, and appends a retry of it.
        """
        if not self.keeps:
            return
        known = self.read.setdefault(offset, value)
        if known != value:
            what = f"a consumer read {value} at offset {offset}, where another had read {known}"
            raise BrokenPromiseError("ConsistentRead", what)
        place = self.places.setdefault(value, offset)
        first, second = sorted((place, offset))
        if first != second and first >= self.starts_at_append.get(second, 0):
            raise BrokenPromiseError("Duplicate", f"a consumer read {value} at offsets {place} and {offset}")

    def read_to(self, end_offset: Offset, leader_epoch: int) -> None:
        """Note that a consumer has read up to an offset, from the leader of an epoch."""
        self.ends_read[leader_epoch] = max(end_offset, self.ends_read.get(leader_epoch, 0))

    def end_of_read(self, leader_epoch: int) -> Offset:
        """The end of what any consumer has read from the leader of this epoch or of an earlier one."""
        return Offset(max((end for epoch, end in self.ends_read.items() if epoch <= leader_epoch), default=0))

    def see_latest(self, known: Offset, latest: Offset) -> None:
        """Note the latest offset in a response; before the request, consumers had read up to `known`.

        Raises: `BrokenPromiseError`.
        """
        if self.keeps and latest < known:
            what = f"consumers have read up to {known}, and then a later leader says that the log ends at {latest}"
            raise BrokenPromiseError("LatestOffset", what)

    def see_end(self, position: Offset, epoch: int, end_offset: Offset, end_epoch: int) -> None:
        """Note an epoch's end in a response to a consumer that has read up to a position, last in an epoch.

        The consumer counts its position as truncated if the leader does not know that epoch, or has less of it.

        **Kafka:** `SubscriptionState.maybeCompleteValidation`. Raises: `BrokenPromiseError`.
        """
        if self.keeps and (end_epoch < epoch or end_offset < position):
            what = f"a consumer has read up to {position}, last in epoch {epoch}"
            raise BrokenPromiseError("NoTruncation", f"{what}, and is told that epoch {end_epoch} ends at {end_offset}")

    def check_log(self, name: str, start: Offset, log: list[tuple[Offset, Value]]) -> None:
        """A log in the end, held against what clients know. What is below its start is deleted, where that may be.

        Raises: `BrokenPromiseError`.
        """
        if not self.keeps:
            return
        by_offset = dict(log)
        start = start if self.deletes else Offset(0)
        for value, offset in self.acknowledged.items():
            if offset < start:
                continue
            found = by_offset.get(offset)
            if found != value:
                raise BrokenPromiseError("LostWrite", f"{name} has {found} at offset {offset}, acknowledged was {value}")
        for offset, value in self.read.items():
            if offset < start:
                continue
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
