"""Commits in histories: evidence is a history with the anomaly, and nothing of it can be left out."""

from io import StringIO
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kspec.trials.history.anomalies import anomalies_in
from kspec.trials.history.events import (
    ACKNOWLEDGED,
    UNKNOWN,
    CommitOutcome,
    CommitStart,
    Event,
    OffsetFetchOutcome,
    OffsetFetchStart,
    read_history,
    write_history,
)

PARTITION = "group/t-0"
LOST: list[Event] = [
    CommitStart("a", PARTITION, 1),
    CommitOutcome(PARTITION, 1, ACKNOWLEDGED),
    OffsetFetchStart("b", PARTITION),
    OffsetFetchOutcome("b", PARTITION, -1),
]


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Commits and readings of two clients, each with one request at a time, in any order and with any answers."""
    events: list[Event] = []
    offset, under_way = 0, {"a": None, "b": None}  # type: int, dict[str, Event | None]
    for _ in range(draw(st.integers(0, 14))):
        client = draw(st.sampled_from(["a", "b"]))
        request = under_way[client]
        if request is None:
            offset += 1
            commit = CommitStart(client, PARTITION, offset)
            request = under_way[client] = commit if draw(st.booleans()) else OffsetFetchStart(client, PARTITION)
            events.append(request)
        else:
            under_way[client] = None
            if isinstance(request, CommitStart):
                events.append(CommitOutcome(PARTITION, request.offset, draw(st.sampled_from([ACKNOWLEDGED, UNKNOWN]))))
            else:
                events.append(OffsetFetchOutcome(client, PARTITION, draw(st.integers(-1, offset))))
    return events


@given(histories())
@settings(max_examples=400, deadline=None)
def test_evidence_shows_its_anomaly_and_no_event_of_it_can_be_left_out(events: list[Event]) -> None:
    for anomaly in anomalies_in(events):
        assert anomaly.name == "lost-commit"
        assert [one.subject for one in anomalies_in(anomaly.evidence)] == [anomaly.subject]
        for number in range(len(anomaly.evidence)):
            rest = [*anomaly.evidence[:number], *anomaly.evidence[number + 1 :]]
            assert all(one.subject != anomaly.subject for one in anomalies_in(rest))


def test_a_lost_commit_is_found_among_many_others() -> None:
    many: list[Event] = []
    for offset in range(10, 400):
        many += [CommitStart("c", PARTITION, offset), CommitOutcome(PARTITION, offset, ACKNOWLEDGED)]
    (found,) = anomalies_in([*many, *LOST])
    assert found.name == "lost-commit"
    assert len(found.evidence) == len(LOST)


def test_a_commit_that_is_read_is_not_lost() -> None:
    assert anomalies_in([*LOST[:-1], OffsetFetchOutcome("b", PARTITION, 1)]) == []


def test_commits_are_kept_in_the_file_of_a_history(tmp_path: Path) -> None:
    stream = StringIO()
    write_history(LOST, stream)
    file = tmp_path / "history.jsonl"
    file.write_text(stream.getvalue(), encoding="utf-8")
    assert list(read_history(file)) == LOST
