"""Histories as files."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given

from kspec.trials.history.__main__ import main
from kspec.trials.history.events import Event, HistoryError, from_json, read_history, to_json, write_history
from tests.trials.history.test_anomalies import histories, sound_history


@given(histories())
def test_events_survive_json(events: list[Event]) -> None:
    assert [from_json(json.loads(json.dumps(to_json(event)))) for event in events] == events


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    events = sound_history(3)
    file = tmp_path / "history.jsonl"
    with file.open("w", encoding="utf-8") as stream:
        write_history(events, stream)
    assert list(read_history(file)) == events


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"event":"seen"}',
        '{"event":"sent","producer":"p"}',
        '{"event":"polled","consumer":"c","partition":"t-0","records":[[1]]}',
        '{"event":"outcome","partition":"t-0","value":"a","kind":"maybe"}',
    ],
)
def test_what_is_no_event_is_one_line(line: str, tmp_path: Path) -> None:
    stream = io.StringIO()
    write_history(sound_history(1)[:2], stream)
    (tmp_path / "file").write_text(stream.getvalue() + line + "\n", encoding="utf-8")
    with pytest.raises(HistoryError, match=r"file:3: "):
        list(read_history(tmp_path / "file"))
    with pytest.raises(HistoryError, match="cannot read"):
        list(read_history(tmp_path / "nowhere"))


def test_files_are_judged_by_a_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound, lossy = tmp_path / "sound.jsonl", tmp_path / "lossy.jsonl"
    events = sound_history(4)
    for file, some in ((sound, events), (lossy, events[:-2] + events[-1:])):
        with file.open("w", encoding="utf-8") as stream:
            write_history(some, stream)
    assert main([str(sound)]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(sound), "counts": {}, "anomalies": []}
    assert main([str(lossy)]) == 1
    assert set(json.loads(capsys.readouterr().out)["counts"]) == {"lost-write"}
    assert main([str(tmp_path / "nowhere")]) == 2
    assert "cannot read" in capsys.readouterr().err
