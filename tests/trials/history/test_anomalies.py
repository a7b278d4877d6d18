"""The checker of histories: against definitions, with planted anomalies, and its evidence against itself."""

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.trials.history.anomalies import MEANINGS, anomalies_in, count_by_name, may_be_without_waiting
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
)
from tests.trials.history.oracle import anomalies_by_definition

OFFSETS, VALUES = st.integers(0, 4), st.sampled_from("abcd")
WHO = st.sampled_from(["one", "two"])
RECORDS = st.lists(st.tuples(OFFSETS, VALUES), min_size=1, max_size=3).map(tuple)
EVENTS = st.one_of(
    st.builds(ConsumerAssignment, WHO, st.just("t-0"), OFFSETS),
    st.builds(Poll, WHO, st.just("t-0"), RECORDS),
    st.builds(PartitionEnd, WHO, st.just("t-0"), OFFSETS),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Any events at all, but each value is sent at most once and has one outcome, behind it."""
    events: list[Event] = draw(st.lists(EVENTS, max_size=6))
    for value in draw(st.sets(VALUES)):
        kind = draw(st.sampled_from([ACKNOWLEDGED, ACKNOWLEDGED, ACKNOWLEDGED, REFUSED, UNKNOWN]))
        offset = draw(st.none() | OFFSETS) if kind == ACKNOWLEDGED else None
        first = draw(st.integers(0, len(events)))
        events.insert(first, SendStart(draw(WHO), "t-0", value))
        events.insert(draw(st.integers(first + 1, len(events))), SendOutcome("t-0", value, kind, offset))
    return events


def found_in(events: Sequence[Event]) -> set[tuple[str, str]]:
    return {(anomaly.name, anomaly.subject) for anomaly in anomalies_in(events)}


@pytest.mark.slow
@settings(max_examples=800, deadline=None)
@given(histories())
def test_the_checker_finds_what_the_definitions_say(events: list[Event]) -> None:
    assert found_in(events) == anomalies_by_definition(events)


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(histories())
def test_evidence_shows_its_anomaly_and_no_event_of_it_can_be_left_out(events: list[Event]) -> None:
    for anomaly in anomalies_in(events):
        assert any(one.name == anomaly.name for one in anomalies_in(anomaly.evidence)), anomaly
        for number in range(len(anomaly.evidence)):
            rest = [*anomaly.evidence[:number], *anomaly.evidence[number + 1 :]]
            assert not any((one.name, one.subject) == (anomaly.name, anomaly.subject) for one in anomalies_in(rest)), anomaly


def sound_history(seed: int, records: int = 60) -> list[Event]:
    """Two producers and two consumers of a log that keeps everything; some sends fail, some are not answered."""
    choose = random.Random(seed)
    log: list[str] = []
    events: list[Event] = [ConsumerAssignment(name, "t-0", 0) for name in ("one", "two")]
    at = {"one": 0, "two": 0}
    for number in range(records):
        value = f"p{number % 2}-{number}"
        events.append(SendStart(f"p{number % 2}", "t-0", value))
        fate = choose.random()
        if fate < 0.9:
            log.append(value)
        if fate < 0.8:
            events.append(SendOutcome("t-0", value, ACKNOWLEDGED, len(log) - 1))
        else:
            events.append(SendOutcome("t-0", value, UNKNOWN if fate < 0.95 else REFUSED))
        reader = choose.choice(["one", "two"])
        until = choose.randint(at[reader], len(log))
        if until > at[reader]:
            events.append(Poll(reader, "t-0", tuple(enumerate(log))[at[reader] : until]))
            at[reader] = until
    events += [
        ConsumerAssignment("last", "t-0", 0),
        Poll("last", "t-0", tuple(enumerate(log))),
        PartitionEnd("last", "t-0", len(log)),
    ]
    return events


def without_value(events: Sequence[Event], value: str) -> list[Event]:
    """Nobody polls this value."""
    kept: list[Event] = []
    for event in events:
        if isinstance(event, Poll):
            event = replace(event, records=tuple(one for one in event.records if one[1] != value))  # noqa: PLW2901
        kept.append(event)
    return [event for event in kept if not isinstance(event, Poll) or event.records]


@pytest.mark.parametrize("seed", range(20))
def test_a_cluster_that_keeps_everything_has_no_anomaly(seed: int) -> None:
    assert anomalies_in(sound_history(seed)) == []


@pytest.mark.parametrize("seed", range(20))
def test_planted_anomalies_are_found(seed: int) -> None:
    choose = random.Random(seed)
    events = sound_history(seed)
    acknowledged = [e for e in events if isinstance(e, SendOutcome) and e.kind == ACKNOWLEDGED]
    victim = choose.choice(acknowledged[:-1])
    assert ("lost-write", victim.value) in found_in(without_value(events, victim.value))

    last, ended = events[-2:]
    assert isinstance(last, Poll)
    assert isinstance(ended, PartitionEnd)
    tail = [*events[:-2], replace(last, records=last.records[:-5]), replace(ended, offset=ended.offset - 5)]
    assert "lost-write" in count_by_name(anomalies_in(tail)), "the log has lost its tail, and nothing was written since"

    again = replace(last, records=(*last.records, (ended.offset, victim.value)))
    assert found_in([*events[:-2], again, ended]) == {("duplicate", victim.value)}

    assert victim.offset is not None
    other = tuple((o, "p0-other" if o == victim.offset else v) for o, v in last.records)
    assert ("inconsistent-offsets", str(victim.offset)) in found_in([*events[:-2], replace(last, records=other), ended])
    assert ("phantom", "p0-other") in found_in([*events[:-2], replace(last, records=other), ended])

    half = len(last.records) // 2
    back: list[Event] = [replace(last, records=last.records[:half]), replace(last, records=last.records[half - 1 :])]
    assert found_in([*events[:-2], *back, ended]) == {("nonmonotonic-poll", f"last: {half - 1} to {half - 1}")}
    skipping: list[Event] = [replace(last, records=last.records[:half]), replace(last, records=last.records[half + 1 :])]
    assert ("poll-skip", f"last: {half - 1} to {half + 1}") in found_in([*events[:-2], *skipping, ended])

    refused = [replace(e, kind=REFUSED, offset=None) if e == victim else e for e in events]
    assert found_in(refused) == {("aborted-read", victim.value)}


def test_what_acks_1_may_lose_and_what_it_may_not() -> None:
    stored = SendOutcome("t-0", "a", ACKNOWLEDGED, 0)
    reading: list[Event] = [ConsumerAssignment("c", "t-0", 0), PartitionEnd("c", "t-0", 0)]
    (lost,) = anomalies_in([SendStart("p", "t-0", "a"), stored, *reading])
    assert (lost.name, may_be_without_waiting(lost)) == ("lost-write", True)
    polled: list[Event] = [ConsumerAssignment("d", "t-0", 0), Poll("d", "t-0", ((0, "a"),))]
    for told in ([], [stored]):
        (lost,) = anomalies_in([SendStart("p", "t-0", "a"), *told, *polled, *reading])
        assert (lost.name, may_be_without_waiting(lost)) == ("lost-write", False), "what was polled stays"
        assert isinstance(lost.evidence[0], Poll)


def test_each_name_has_a_meaning_and_an_order() -> None:
    events = sound_history(1)
    victim = next(e for e in events if isinstance(e, SendOutcome) and e.kind == ACKNOWLEDGED)
    found = anomalies_in([*without_value(events, victim.value), Poll("new", "t-0", ((999, "who"),))])
    assert list(count_by_name(found)) == [name for name in MEANINGS if name in count_by_name(found)]
    assert found[0].as_json()["meaning"] == MEANINGS[found[0].name]
