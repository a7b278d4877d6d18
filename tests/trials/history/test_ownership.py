"""Owners of partitions, and the times for which two had one at once."""

from io import StringIO

from kspec.trials.history.anomalies import anomalies_in
from kspec.trials.history.events import Event, OwnershipEnd, OwnershipStart, from_json, to_json, write_history
from kspec.trials.history.ownership import SharedTime, owners_at_the_end, shared_times

P, Q = "g/t-0", "g/t-1"


def test_the_time_for_which_two_hold_a_partition_is_told() -> None:
    events: list[Event] = [
        OwnershipStart("a", P, 10),
        OwnershipStart("b", P, 30),
        OwnershipStart("b", P, 35),
        OwnershipEnd("c", P, 40),
        OwnershipEnd("a", P, 50),
        OwnershipStart("a", Q, 50),
        OwnershipEnd("a", Q, 60),
        OwnershipStart("b", Q, 60),
    ]
    (shared,) = shared_times(events, 100)
    assert shared == SharedTime(P, ("a", "b"), 30, 50)
    assert shared.took == 20
    assert owners_at_the_end(events) == {P: {"b"}, Q: {"b"}}
    assert anomalies_in(events) == []


def test_who_never_gives_up_a_partition_shares_it_until_the_end() -> None:
    events = [OwnershipStart("a", P, 10), OwnershipStart("b", P, 30)]
    assert shared_times(events, 100) == [SharedTime(P, ("a", "b"), 30, 100)]


def test_ownership_is_written_and_read() -> None:
    events: list[Event] = [OwnershipStart("a", P, 1), OwnershipEnd("a", P, 2)]
    assert [from_json(to_json(event)) for event in events] == events
    stream = StringIO()
    write_history(events, stream)
    assert stream.getvalue().count("\n") == 2
