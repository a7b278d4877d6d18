"""Transactions in a history: the fate of their records, for the judge of a partition, and anomalies of several partitions.

A record of a transaction counts as its transaction ends: acknowledged with a commit, refused with an abort, and unknown
where the end is. So each partition is judged as without transactions: a committed record that is missing is a `lost-write`,
one of an aborted transaction that was polled an `aborted-read` (G1a). What is left spans partitions: a transaction of which
a part is read and a part is not (G1b), transactions that read from one another (G1c), an input that two transactions have
consumed, or none, and a bank's snapshot with one side of a transfer.

Writes of two producers may lie in one order in one partition and in the other order in another: Kafka orders those of one
producer alone, and `nonmonotonic-send` is its G0.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    UNKNOWN,
    ConsumedTo,
    ConsumerAssignment,
    Consumption,
    Event,
    PartitionEnd,
    Poll,
    RecordEvent,
    SendOutcome,
    SendStart,
    Snapshot,
    TransactionEnd,
)
from kspec.trials.history.partition import cut

TransactionName = str
Found = tuple[str, str, str, tuple[Event, ...]]
"""The name of an anomaly, its partition if it has one, its subject, and its evidence."""


class ProjectedHistory(NamedTuple):
    """A history as judges of single partitions take it. `sources`: for an event that stands for others, these."""

    events: list[RecordEvent]
    sources: dict[RecordEvent, tuple[Event, ...]]


def projected(events: Sequence[Event]) -> ProjectedHistory:
    """The same records, each with the fate of its transaction."""
    ends = {event.transaction: event for event in events if isinstance(event, TransactionEnd)}
    made = ProjectedHistory([], {})
    held: dict[TransactionName, list[SendOutcome]] = {}
    refused: dict[TransactionName, list[SendStart]] = {}
    ended: set[TransactionName] = set()

    def tell(told: RecordEvent, *sources: Event) -> None:
        made.sources[told] = sources
        made.events.append(told)

    for event in events:
        match event:
            case TransactionEnd() if event == ends[event.transaction]:
                ended.add(event.transaction)
                for outcome in held.pop(event.transaction, ()):
                    tell(outcome, outcome, event)
                for start in refused.pop(event.transaction, ()):
                    tell(SendOutcome(start.partition, start.value, REFUSED), start, event)
            case SendStart(transaction=str(name)):
                made.events.append(event)
                if name in ends and ends[name].kind == REFUSED:
                    if name in ended:
                        tell(SendOutcome(event.partition, event.value, REFUSED), event, ends[name])
                    else:
                        refused.setdefault(name, []).append(event)
            case SendOutcome(transaction=str(name)):
                end = ends.get(name)
                if end is None or end.kind == UNKNOWN:
                    tell(replace(event, kind=UNKNOWN, offset=None), event)
                elif end.kind == ACKNOWLEDGED and name in ended:
                    tell(event, event, end)
                elif end.kind == ACKNOWLEDGED:
                    held.setdefault(name, []).append(event)
            case Consumption():
                tell(Poll(event.transaction, event.partition, ((event.offset, event.value),), event.ms), event)
            case SendStart() | SendOutcome() | ConsumerAssignment() | Poll() | PartitionEnd():
                made.events.append(event)
    return made


Place = tuple[str, str]
"""A partition and a value in it."""


class _TransactionIndex:
    """The transactions of a history, looked up by name and by record."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.starts: dict[Place, SendStart] = {}
        self.stored: dict[TransactionName, list[SendOutcome]] = {}
        self.polls: dict[Place, Poll] = {}
        """The first poll of each record."""
        self.numbers: dict[Place, int] = {}
        self.consumed: dict[Place, list[Consumption]] = {}
        self.ends: dict[TransactionName, TransactionEnd] = {}
        self.readings: dict[str, list[tuple[int, ConsumerAssignment, PartitionEnd]]] = {}
        """Complete readings of each partition from its start, with the number at which they begin."""
        self.consumed_to: list[ConsumedTo] = []
        assigned: dict[tuple[str, str], tuple[int, ConsumerAssignment]] = {}
        for number, event in enumerate(events):
            match event:
                case SendStart():
                    self.starts.setdefault((event.partition, event.value), event)
                case SendOutcome(transaction=str(writer), kind="acknowledged"):
                    self.stored.setdefault(writer, []).append(event)
                case Poll():
                    for offset, value in event.records:
                        place = event.partition, value
                        if place not in self.polls:
                            self.polls[place] = cut(event, (offset, value))
                            self.numbers[place] = number
                case Consumption():
                    self.consumed.setdefault((event.partition, event.value), []).append(event)
                case TransactionEnd():
                    self.ends[event.transaction] = event
                case ConsumerAssignment():
                    assigned[event.consumer, event.partition] = number, event
                case PartitionEnd():
                    begun = assigned.pop((event.consumer, event.partition), None)
                    if begun is not None and begun[1].offset == 0:
                        self.readings.setdefault(event.partition, []).append((*begun, event))
                case ConsumedTo():
                    self.consumed_to.append(event)
        self.read: dict[TransactionName, list[Place]] = {}
        """The records of each transaction that were polled, in the order of their polls."""
        for place in self.polls:
            if place in self.starts and (name := self.starts[place].transaction) is not None:
                self.read.setdefault(name, []).append(place)

    def counts_by(self, name: TransactionName) -> tuple[Event, ...]:
        """The evidence that a transaction is committed; none if there is none."""
        end = self.ends.get(name)
        if end is not None and end.kind == ACKNOWLEDGED:
            return (end,)
        read = self.read.get(name)
        return (self.starts[read[0]], self.polls[read[0]]) if read else ()


def anomalies_of_transactions(events: Sequence[Event]) -> Iterator[Found]:
    """The anomalies of transactions that no single partition shows."""
    index = _TransactionIndex(events)
    yield from _torn(index)
    yield from _read_from_one_another(index)
    yield from _consumed_twice(index)
    yield from _passed_over(index)
    yield from _unbalanced(events)


def _torn(index: _TransactionIndex) -> Iterator[Found]:
    """G1b: a record was polled, and a complete reading that began later lacks another stored record of its transaction."""
    for name, read in index.read.items():
        first = read[0]
        for other in index.stored.get(name, ()):
            if (other.partition, other.value) in index.polls:
                continue
            for begin, assigned, ended in index.readings.get(other.partition, ()):
                if index.numbers[first] < begin:
                    evidence = index.starts[first], index.polls[first], other, assigned, ended
                    yield "torn-transaction", "", f"{name}: {first[1]} without {other.value}", evidence
                    break


def _read_from_one_another(index: _TransactionIndex) -> Iterator[Found]:
    """G1c: the shortest circle of transactions of which each has consumed a record of the one before."""
    follows: dict[TransactionName, dict[TransactionName, tuple[SendStart, Consumption]]] = {}
    for place, consumed in index.consumed.items():
        start = index.starts.get(place)
        for one in consumed:
            if start is not None and start.transaction is not None:
                follows.setdefault(start.transaction, {}).setdefault(one.transaction, (start, one))
    told: set[TransactionName] = set()
    for name in follows:
        circle = _way_back(follows, name)
        if circle and told.isdisjoint(circle):
            told |= set(circle)
            edges = [follows[one][other] for one, other in zip(circle, [*circle[1:], name], strict=True)]
            yield "g1c", "", " ".join(sorted(circle)), tuple(event for edge in edges for event in edge)


def _way_back(follows: Mapping[TransactionName, Iterable[TransactionName]], name: TransactionName) -> list[TransactionName]:
    """The shortest way from a transaction to itself; empty if there is none."""
    before: dict[TransactionName, TransactionName] = {}
    waiting = deque([name])
    while waiting:
        one = waiting.popleft()
        for other in follows.get(one, ()):
            if other == name:
                way = [one]
                while way[-1] != name:
                    way.append(before[way[-1]])
                return way[::-1]
            if other not in before:
                before[other] = one
                waiting.append(other)
    return []


def _consumed_twice(index: _TransactionIndex) -> Iterator[Found]:
    for (partition, value), consumed in index.consumed.items():
        first: dict[TransactionName, Consumption] = {}
        for one in consumed:
            first.setdefault(one.transaction, one)
        counting = [(one, why) for name, one in first.items() if (why := index.counts_by(name))]
        for (one, why), (other, reason) in pairwise(counting):
            yield "consumed-twice", partition, value, (one, *why, other, *reason)


def _passed_over(index: _TransactionIndex) -> Iterator[Found]:
    for end in index.consumed_to:
        for (partition, value), poll in index.polls.items():
            if partition != end.partition or poll.records[0][0] >= end.offset:
                continue
            if not any(index.counts_by(one.transaction) for one in index.consumed.get((partition, value), ())):
                yield "passed-over", partition, value, (poll, end)


# ---- a bank


class BankEntry(NamedTuple):
    """One side of a transfer, as the value of a record: the sums of all sides of a transaction are 0."""

    transaction: TransactionName
    account: int
    amount: int

    def __str__(self) -> str:
        return f"{self.transaction}|{self.account}|{self.amount}"

    @classmethod
    def of(cls, value: str) -> "BankEntry":
        """The entry of a value. Raises: `ValueError`."""
        transaction, account, amount = value.split("|")
        return cls(transaction, int(account), int(amount))


def _unbalanced(events: Sequence[Event]) -> Iterator[Found]:
    """A transaction of which a snapshot has a part that is no sum of 0."""
    polled: dict[tuple[str, str], list[tuple[int, str, Poll]]] = {}
    taken: dict[tuple[str, str], int] = {}
    open_ones: dict[tuple[str, TransactionName], tuple[int, list[Poll]]] = {}
    """Transactions whose entries up to here make no sum of 0, by their reader."""
    for event in events:
        match event:
            case ConsumerAssignment():
                polled.pop((event.consumer, event.partition), None)
                taken.pop((event.consumer, event.partition), None)
            case Poll():
                known = polled.setdefault((event.consumer, event.partition), [])
                known += [(offset, value, event) for offset, value in event.records]
            case Snapshot(consumer, ends):
                for partition, end in ends:
                    known, at = polled.get((consumer, partition), []), taken.get((consumer, partition), 0)
                    while at < len(known) and known[at][0] < end:
                        offset, value, poll = known[at]
                        at += 1
                        entry = BankEntry.of(value)
                        total, polls = open_ones.pop((consumer, entry.transaction), (0, []))
                        polls = [*polls, cut(poll, (offset, value))]
                        if total + entry.amount:
                            open_ones[consumer, entry.transaction] = total + entry.amount, polls
                    taken[consumer, partition] = at
                for (who, name), (total, polls) in list(open_ones.items()):
                    if who == consumer:
                        del open_ones[who, name]
                        yield "unbalanced", "", f"{name}: {total}", (*polls, event)
