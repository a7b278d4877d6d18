"""Anomalies of a history: observations that are impossible if the cluster keeps Kafka's promises. Names are those of
Jepsen's Kafka workload.

Each anomaly has the smallest evidence: the events that show it, with polls cut down to the records that matter. The evidence
by itself is a history with this anomaly; without any one of its events it has none.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from kspec.trials.history.commits import wrong_with_commits
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    REFUSED,
    CommitEvent,
    Event,
    OwnershipEvent,
    Poll,
    RecordEvent,
    SendOutcome,
    TransactionEvent,
    to_json,
)
from kspec.trials.history.partition import ConsumerStep, PartitionHistory, Sighting, cut
from kspec.trials.history.transactions import anomalies_of_transactions, projected

MEANINGS = {
    "lost-write": "a record was acknowledged, or polled, and a reading past it does not have it",
    "duplicate": "a record lies at two offsets",
    "inconsistent-offsets": "two records were seen at one offset",
    "poll-skip": "a consumer passed over a record that is there",
    "int-poll-skip": "one poll passed over a record that is there",
    "nonmonotonic-poll": "a consumer went back without being asked to",
    "int-nonmonotonic-poll": "one poll gave an offset after a higher one",
    "nonmonotonic-send": "what a producer sent later was stored before what it sent earlier",
    "aborted-read": "a record that was refused was polled",
    "phantom": "a record was polled that no producer has sent",
    "unseen": "an acknowledged record was never polled, nor was a later one",
    "lost-commit": "no order of the commits of a group explains the committed offsets that were read",
    "torn-transaction": "a record of a transaction was polled, and another one is not there (G1b)",
    "g1c": "transactions have consumed records of one another in a circle",
    "consumed-twice": "two transactions that are committed have consumed the same record",
    "passed-over": "the committed offset is behind a record that no committed transaction has consumed",
    "unbalanced": "a snapshot of a bank has a part of a transfer",
}
"""All anomalies. `phantom`, and those from `lost-commit` on but for `g1c`, are not Jepsen's; and Jepsen finds a lost write
only before a later poll."""


class Anomaly(NamedTuple):
    """One anomaly: its name, its partition, its subject (a value, an offset, a consumer's step), and its evidence."""

    name: str
    partition: str
    subject: str
    evidence: tuple[Event, ...]

    def as_json(self) -> dict[str, Any]:
        """The anomaly in JSON."""
        return {**self._asdict(), "meaning": MEANINGS[self.name], "evidence": [to_json(event) for event in self.evidence]}


def may_be_without_waiting(anomaly: Anomaly) -> bool:
    """Whether an anomaly is within the contract of acks=1: an acknowledged record may be lost with its leader, and may be
    there twice if its producer is not idempotent. A polled record must stay, also then.
    """
    told = any(isinstance(event, SendOutcome) for event in anomaly.evidence)
    return (told and anomaly.name not in {"aborted-read", "phantom"}) or anomaly.name == "duplicate"


def anomalies_in(events: Iterable[Event]) -> list[Anomaly]:
    """All anomalies of a history, by partition and name."""
    listed = list(events)
    parted: dict[str, list[RecordEvent]] = {}
    committed: dict[str, list[CommitEvent]] = {}
    for event in listed:
        if isinstance(event, CommitEvent):
            committed.setdefault(event.partition, []).append(event)
    records = projected(listed)
    for record in records.events:
        parted.setdefault(record.partition, []).append(record)
    found = [anomaly for name in sorted(parted) for anomaly in anomalies_of_partition(name, PartitionHistory(parted[name]))]
    found = [one._replace(evidence=_original(one.evidence, records.sources)) for one in found]
    found += [anomaly for name in sorted(committed) for anomaly in _lost_commits(name, committed[name])]
    return [*found, *(Anomaly(*one) for one in anomalies_of_transactions(listed))]


def _original(evidence: tuple[Event, ...], sources: Mapping[RecordEvent, tuple[Event, ...]]) -> tuple[Event, ...]:
    """The evidence, with the events that a transaction's record was judged by, each once."""
    found = {id(one): one for event in evidence for one in _sources_of(event, sources)}
    return tuple(found.values())


def _sources_of(event: Event, sources: Mapping[RecordEvent, tuple[Event, ...]]) -> tuple[Event, ...]:
    return (event,) if isinstance(event, CommitEvent | TransactionEvent | OwnershipEvent) else sources.get(event, (event,))


def count_by_name(anomalies: Iterable[Anomaly]) -> dict[str, int]:
    """The number of anomalies of each name, in the order of `MEANINGS`."""
    found = Counter(anomaly.name for anomaly in anomalies)
    return {name: found[name] for name in MEANINGS if found[name]}


def _lost_commits(name: str, events: list[CommitEvent]) -> Iterator[Anomaly]:
    """The first anomaly of a partition's committed offset; its evidence is a minimal set of events that shows it."""
    wrong = wrong_with_commits(events)
    if wrong is None:
        return
    size = max(1, len(events) // 2)
    while True:
        before, place = len(events), 0
        while place < len(events):
            rest = events[:place] + events[place + size :]
            if wrong_with_commits(rest) == wrong:
                events = rest
            else:
                place += size
        if size == 1 and len(events) == before:
            break
        size = max(1, size // 2)
    yield Anomaly("lost-commit", name, wrong, tuple(events))


def anomalies_of_partition(name: str, history: PartitionHistory) -> Iterator[Anomaly]:
    """All anomalies of one partition."""
    for kind, found in (
        ("lost-write", _lost_writes(history)),
        ("duplicate", _duplicates(history)),
        ("inconsistent-offsets", _inconsistent_offsets(history)),
        ("nonmonotonic-send", _nonmonotonic_sends(history)),
        ("aborted-read", _aborted_reads(history)),
        ("phantom", _phantoms(history)),
        ("unseen", _unseen(history)),
    ):
        for subject, evidence in found:
            yield Anomaly(kind, name, subject, evidence)
    for step in history.steps:
        yield from _of_step(name, history, step)


Found = Iterator[tuple[str, tuple[Event, ...]]]


def _lost_writes(history: PartitionHistory) -> Found:
    """The evidence of a lost write. Jepsen's rule first: no poll has the record, and some poll has a later one.

    The evidence is a poll if there is one: a polled record must stay, whatever the producers' acks.
    """
    highest = history.highest_poll
    for value in {**history.outcomes, **history.by_value}:
        outcome = history.outcomes.get(value)
        seen = sorted(history.by_value.get(value, {}).values(), key=lambda place: place.number)
        told = outcome is not None and outcome.kind == ACKNOWLEDGED
        if told and value not in history.first_poll and seen and highest is not None and seen[0].offset < highest.offset:
            yield value, (seen[0].event, highest.event)
            continue
        shown = [*filter(None, [history.first_poll.get(value)]), *seen]
        missing = [_missing(history, value, place.event, place.offset, place.number) for place in shown]
        if outcome is not None and told and outcome.offset is None:
            missing.append(_missing(history, value, outcome, None, history.numbers[value]))
        if evidence := next(filter(None, missing), None):
            yield value, evidence


def _missing(
    history: PartitionHistory, value: str, event: Event, offset: int | None, number: int
) -> tuple[Event, ...] | None:
    """A complete reading without a record that was seen before it began, from the record's offset or an earlier one."""
    for reading in history.readings:
        begin = reading.assigned.offset
        covers = begin == 0 or (offset is not None and begin <= offset)
        if number < reading.number and covers and value not in reading.values:
            return event, reading.assigned, reading.ended
    return None


def _duplicates(history: PartitionHistory) -> Found:
    for value, places in history.by_value.items():
        if len(places) > 1:
            yield value, _two(history, *sorted(places.values(), key=lambda place: place.number)[:2])


def _inconsistent_offsets(history: PartitionHistory) -> Found:
    for offset, places in sorted(history.by_offset.items()):
        if len(places) > 1:
            yield str(offset), _two(history, *sorted(places.values(), key=lambda place: place.number)[:2])


def _two(history: PartitionHistory, first: Sighting, second: Sighting) -> tuple[Event, ...]:
    """Two places as evidence: one poll, if both are of the same poll."""
    if first.number == second.number and isinstance(first.event, Poll):
        return (cut(first.event, (first.offset, first.value), (second.offset, second.value)),)
    return first.event, second.event


def _nonmonotonic_sends(history: PartitionHistory) -> Found:
    for producer, sent in history.by_producer.items():
        told = [(one, history.outcomes[one.value]) for one in sent if one.value in history.outcomes]
        stored = [(one, outcome) for one, outcome in told if outcome.kind == ACKNOWLEDGED and outcome.offset is not None]
        for (earlier, first), (later, second) in pairwise(stored):
            assert first.offset is not None
            assert second.offset is not None
            if second.offset <= first.offset:
                yield f"{producer}: {earlier.value}, {later.value}", (earlier, later, first, second)


def _aborted_reads(history: PartitionHistory) -> Found:
    for value, place in history.first_poll.items():
        outcome = history.outcomes.get(value)
        if outcome is not None and outcome.kind == REFUSED:
            yield value, (outcome, place.event)


def _phantoms(history: PartitionHistory) -> Found:
    for value, place in history.first_poll.items():
        if value not in history.sent:
            yield value, (place.event,)


def _unseen(history: PartitionHistory) -> Found:
    lost = {value for value, _ in _lost_writes(history)}
    for value, outcome in history.outcomes.items():
        if outcome.kind == ACKNOWLEDGED and value not in history.first_poll and value not in lost:
            yield value, (outcome,)


def _of_step(name: str, history: PartitionHistory, step: ConsumerStep) -> Iterator[Anomaly]:
    place, before = step.place, step.before
    subject = f"{step.consumer}: {step.expected - 1} to {place.offset}"
    prefix = ""
    shown: tuple[Event, ...] = (before, place.event)
    if step.inside:
        assert isinstance(before, Poll)
        prefix, shown = "int-", (cut(before, *before.records, (place.offset, place.value)),)
    if place.offset < step.expected:
        yield Anomaly(f"{prefix}nonmonotonic-poll", name, subject, shown)
    elif skipped := history.known_between(step.expected, place.offset):
        yield Anomaly(f"{prefix}poll-skip", name, subject, (*shown, skipped.event))
