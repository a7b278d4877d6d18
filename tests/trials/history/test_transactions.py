"""Transactions in histories: the judge against definitions, with planted anomalies, and its evidence against itself."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.trials.history.anomalies import anomalies_in
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
    SendOutcome,
    SendStart,
    Snapshot,
    TransactionEnd,
)
from kspec.trials.history.transactions import BankEntry

KINDS = {"committed": ACKNOWLEDGED, "aborted": REFUSED, "unknown": UNKNOWN}


def written(name: str, *records: tuple[str, int, str], end: str = "committed") -> list[Event]:
    """A transaction that writes records, each with its partition and offset, and ends."""
    told: list[Event] = []
    for partition, offset, value in records:
        told.append(SendStart("p", partition, value, transaction=name))
        told.append(SendOutcome(partition, value, ACKNOWLEDGED, offset, transaction=name))
    return [*told, TransactionEnd("p", name, KINDS[end])]


def reading(partition: str, *records: tuple[int, str], who: str = "last") -> list[Event]:
    """A reading of a whole partition."""
    end = max((offset for offset, _ in records), default=-1) + 1
    polls = [Poll(who, partition, records)] if records else []
    return [ConsumerAssignment(who, partition, 0), *polls, PartitionEnd(who, partition, end)]


def found_in(events: Sequence[Event]) -> set[tuple[str, str]]:
    return {(anomaly.name, anomaly.subject) for anomaly in anomalies_in(events)}


BOTH = ("a", 0, "x"), ("b", 0, "y")


@pytest.mark.parametrize(
    ("end", "of_a", "of_b", "expected"),
    [
        ("committed", [(0, "x")], [(0, "y")], set()),
        ("committed", [(0, "x")], [], {("lost-write", "y"), ("torn-transaction", "t: x without y")}),
        ("committed", [], [], {("lost-write", "x"), ("lost-write", "y")}),
        ("aborted", [], [], set()),
        ("aborted", [(0, "x")], [(0, "y")], {("aborted-read", "x"), ("aborted-read", "y")}),
        ("unknown", [], [], set()),
        ("unknown", [(0, "x")], [(0, "y")], set()),
        ("unknown", [(0, "x")], [], {("torn-transaction", "t: x without y")}),
        ("committed", [(0, "x"), (3, "x")], [(0, "y")], {("duplicate", "x")}),
    ],
)
def test_what_is_read_of_a_transaction_is_all_or_nothing(
    end: str, of_a: list[tuple[int, str]], of_b: list[tuple[int, str]], expected: set[tuple[str, str]]
) -> None:
    assert found_in([*written("t", *BOTH, end=end), *reading("a", *of_a), *reading("b", *of_b)]) == expected


def test_a_reading_that_began_before_the_commit_may_lack_its_records() -> None:
    first, *others = written("t", ("a", 0, "x"))
    assert found_in([first, others[0], *reading("a"), *others[1:], *reading("a", (0, "x"))]) == set()
    assert found_in([first, *others, *reading("a")]) == {("lost-write", "x")}


def test_markers_and_aborted_records_are_passed_over() -> None:
    told = [*written("t", ("a", 0, "x")), *written("u", ("a", 2, "y"), end="aborted"), *written("v", ("a", 4, "z"))]
    assert found_in([*told, *reading("a", (0, "x"), (4, "z"))]) == set()


def test_transactions_that_read_from_one_another_are_a_circle() -> None:
    writes = [*written("t", ("a", 0, "x")), *written("u", ("b", 0, "y"))]
    one = Consumption("u", "a", 0, "x")
    assert found_in([*writes, one]) == {("unseen", "y")}
    assert ("g1c", "t u") in found_in([*writes, one, Consumption("t", "b", 0, "y")])
    assert ("g1c", "t") in found_in([*writes, Consumption("t", "a", 0, "x")])


def test_who_consumes_what_is_aborted_has_read_it() -> None:
    told = written("t", ("a", 0, "x"), end="aborted")
    assert found_in([*told, Consumption("u", "a", 0, "x")]) == {("aborted-read", "x")}


@pytest.mark.parametrize(("end", "twice"), [("committed", True), ("aborted", False), ("unknown", False)])
def test_an_input_is_consumed_once(end: str, twice: bool) -> None:
    told: list[Event] = [
        *written("in", ("a", 0, "x")),
        Consumption("t", "a", 0, "x"),
        *written("t", ("b", 0, "t-x")),
        Consumption("u", "a", 0, "x"),
        *written("u", ("b", 2, "u-x"), end=end),
    ]
    assert found_in(told) & {("consumed-twice", "x")} == ({("consumed-twice", "x")} if twice else set())
    read = [*told, *reading("b", (0, "t-x"), (2, "u-x"))]
    assert ("consumed-twice", "x") in found_in(read), "what is read counts as committed"


def test_the_committed_offset_is_behind_what_was_consumed() -> None:
    told = [*written("in", ("a", 0, "x"), ("a", 1, "y")), *reading("a", (0, "x"), (1, "y")), Consumption("t", "a", 0, "x")]
    done = [*told, TransactionEnd("p", "t", ACKNOWLEDGED)]
    assert found_in([*done, ConsumedTo("a", 1)]) == set()
    assert found_in([*done, ConsumedTo("a", 2)]) == {("passed-over", "y")}
    assert found_in([*told, TransactionEnd("p", "t", REFUSED), ConsumedTo("a", 1)]) == {("passed-over", "x")}


def test_a_snapshot_of_a_bank_has_both_sides_of_each_transfer() -> None:
    sides = [str(BankEntry("t", 1, -5)), str(BankEntry("t", 2, 5)), str(BankEntry("u", 1, -7)), str(BankEntry("u", 2, 7))]
    assert [str(BankEntry.of(one)) for one in sides] == sides
    polls = [Poll("c", "a", ((0, sides[0]), (1, sides[2]))), Poll("c", "b", ((0, sides[1]), (1, sides[3])))]
    writes = [
        *written("t", ("a", 0, sides[0]), ("b", 0, sides[1])),
        *written("u", ("a", 1, sides[2]), ("b", 1, sides[3])),
    ]

    def snapshot(a: int, b: int) -> Event:
        return Snapshot("c", (("a", a), ("b", b)))

    assert found_in([*writes, *polls, snapshot(1, 1), snapshot(2, 2)]) == set()
    assert found_in([*writes, *polls, snapshot(2, 1)]) == {("unbalanced", "u: -7")}
    assert found_in([*writes, *polls, snapshot(0, 1), snapshot(2, 2)]) == {("unbalanced", "t: 5")} | {
        ("unbalanced", "t: -5")
    }


# ---- histories of many transactions


def sound_history(seed: int, transactions: int = 30) -> list[Event]:
    """Transactions over three partitions; each third is aborted, and some are not answered."""
    choose = random.Random(seed)
    logs: dict[str, list[str | None]] = {"a": [], "b": [], "c": []}
    events: list[Event] = []
    for number in range(transactions):
        name, fate = f"t{number}", choose.choice(["committed", "committed", "aborted", "unknown"])
        commits = fate == "committed" or (fate == "unknown" and choose.random() < 0.5)
        for partition in choose.sample(list(logs), 2):
            value = f"{name}-{partition}"
            events.append(SendStart("p", partition, value, transaction=name))
            events.append(SendOutcome(partition, value, ACKNOWLEDGED, len(logs[partition]), transaction=name))
            logs[partition] += [value if commits else None, None]
        events.append(TransactionEnd("p", name, KINDS[fate]))
    for partition, log in logs.items():
        records = tuple((offset, value) for offset, value in enumerate(log) if value is not None)
        events += [*reading(partition, *records, who="last")]
    return events


@pytest.mark.parametrize("seed", range(20))
def test_a_cluster_that_keeps_transactions_has_no_anomaly_and_planted_ones_are_found(seed: int) -> None:
    events, choose = sound_history(seed), random.Random(seed)
    assert anomalies_in(events) == []
    ends = [event for event in events if isinstance(event, TransactionEnd) and event.kind == ACKNOWLEDGED]
    victim = choose.choice(ends)
    aborted = [replace(event, kind=REFUSED) if event == victim else event for event in events]
    read = {("aborted-read", event.value) for event in events if isinstance(event, SendOutcome) and _is_of(event, victim)}
    assert found_in(aborted) == read
    place = next(n for n, event in enumerate(events) if isinstance(event, Poll) and any(_named(event, victim)))
    poll = events[place]
    assert isinstance(poll, Poll)
    lost = [one for one in poll.records if one[1].startswith(f"{victim.transaction}-")]
    without = list(events)
    without[place] = replace(poll, records=tuple(one for one in poll.records if one not in lost))
    assert ("lost-write", lost[0][1]) in found_in(without)


def _is_of(event: SendOutcome, end: TransactionEnd) -> bool:
    return event.transaction == end.transaction


def _named(poll: Poll, end: TransactionEnd) -> list[str]:
    return [value for _, value in poll.records if value.startswith(f"{end.transaction}-")]


# ---- evidence

NAMES, PLACES, VALUES, OFFSETS = st.sampled_from("tu"), st.sampled_from("ab"), st.sampled_from("xy"), st.integers(0, 2)
EVENTS = st.one_of(
    st.builds(ConsumerAssignment, st.just("c"), PLACES, st.just(0)),
    st.builds(lambda place, record: Poll("c", place, (record,)), PLACES, st.tuples(OFFSETS, VALUES)),
    st.builds(PartitionEnd, st.just("c"), PLACES, OFFSETS),
    st.builds(Consumption, NAMES, PLACES, OFFSETS, VALUES),
    st.builds(ConsumedTo, PLACES, OFFSETS),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Any events at all, and two transactions that write some of the values and end."""
    events: list[Event] = draw(st.lists(EVENTS, max_size=7))
    for name in "tu":
        told: list[Event] = []
        for value in draw(st.sets(VALUES)):
            start = SendStart("p", draw(PLACES), value, transaction=name)
            if not any(isinstance(one, SendStart) and one.value == value for one in events):
                told += [
                    start,
                    SendOutcome(start.partition, value, ACKNOWLEDGED, draw(st.none() | OFFSETS), transaction=name),
                ]
        told += [TransactionEnd("p", name, draw(st.sampled_from([ACKNOWLEDGED, REFUSED, UNKNOWN])))]
        at = 0
        for event in told:
            at = draw(st.integers(at, len(events)))
            events.insert(at, event)
            at += 1
    return [replace(event, ms=number) for number, event in enumerate(events)]


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(histories())
def test_evidence_shows_its_anomaly_and_no_event_of_it_can_be_left_out(events: list[Event]) -> None:
    for anomaly in anomalies_in(events):
        assert any(one.name == anomaly.name for one in anomalies_in(anomaly.evidence)), anomaly
        for number in range(len(anomaly.evidence)):
            rest = [*anomaly.evidence[:number], *anomaly.evidence[number + 1 :]]
            assert not any((one.name, one.subject) == (anomaly.name, anomaly.subject) for one in anomalies_in(rest)), anomaly
