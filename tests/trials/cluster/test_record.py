"""The record of a cluster's processes."""

from pathlib import Path

from kspec.cli.broker.recorded import replay_record
from kspec.impl.trace.steps import TraceWriter


def test_a_process_that_ended_before_its_first_line_has_made_no_step(tmp_path: Path) -> None:
    for node, text in (("1", ""), ("2", "{"), ("3", '{"release":"next"')):
        (tmp_path / node).mkdir()
        (tmp_path / node / "steps-1.jsonl").write_text(text, encoding="utf-8")
    TraceWriter(tmp_path / "1" / "steps-2.jsonl", "next", None).close()
    assert str(replay_record(tmp_path)) == "record: 0 steps of 4 starts, all come out as recorded"
