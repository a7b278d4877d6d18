"""A run leaves as a file and comes back as the same run; what is no trace is refused in one line."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.model_check.explorer.asking import JsonExplorer
from tests.model_check.explorer.test_explorer_page import PAGE

LOSS = json.loads(PAGE.split("```json message\n")[3].partition("```")[0])["address"]


def opened() -> JsonExplorer:
    page = JsonExplorer()
    page.view("open", address=LOSS)
    return page


@pytest.mark.parametrize("kind", ["itf", "json"])
def test_a_written_run_is_read_as_the_same_run(kind: str) -> None:
    page = opened()
    written = json.loads(page.ask("export", **{"as": kind})["text"])
    again = JsonExplorer().view("import", trace=written)
    assert again["changed"] is None
    assert again["address"] == page.view("view")["address"]


def test_a_report_of_kspec_check_is_read_by_its_first_counterexample() -> None:
    trace = json.loads(opened().ask("export", **{"as": "json"})["text"])
    steps = trace.pop("trace")
    trace["properties"] = [{"kind": "sometimes", "trace": steps[:3]}, {"kind": "always", "trace": steps}]
    assert JsonExplorer().view("import", trace=trace)["length"] == 11


def test_the_snippet_replays_the_run(tmp_path: Path) -> None:
    snippet = tmp_path / "run.py"
    snippet.write_text(opened().ask("export", **{"as": "python"})["text"], encoding="utf-8")
    said = subprocess.run([sys.executable, snippet], capture_output=True, text=True, timeout=60, check=True).stdout
    assert "11 BecomeLeader {'leader': 2, 'epoch': 1}" in said
    assert said.rstrip().endswith("violated: AcknowledgedOnLeader")


def test_a_diagram_and_a_command_line_are_texts() -> None:
    page = opened()
    assert page.ask("export", **{"as": "mermaid"})["text"].startswith("sequenceDiagram\n")
    address = page.view("view")["address"]
    assert page.ask("export", **{"as": "command"})["text"] == f"kspec explore '{address}'\n"
    assert page.error("export", **{"as": "pdf"}) == (
        "bad-message",
        "a run is exported as itf, mermaid, json, python, command, not 'pdf'",
    )


def test_a_trace_of_other_rules_says_where_it_stops() -> None:
    written = json.loads(opened().ask("export", **{"as": "itf"})["text"])
    written["states"][2]["args"] = {"leader": 2, "epoch": 0}
    view = JsonExplorer().view("import", trace=written)
    assert (view["length"], view["changed"]["at"], view["changed"]["kind"]) == (2, 3, "not-enabled")


def test_a_step_that_leads_elsewhere_than_in_the_file_is_told() -> None:
    written = json.loads(opened().ask("export", **{"as": "itf"})["text"])
    written["states"][5]["highWatermark"] = 7
    view = JsonExplorer().view("import", trace=written)
    assert view["length"] == 11
    assert view["changed"] == {"at": 6, "words": "step 6 of the trace leads to another state than in the file"}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({}, "it has no model and parameters"),
        ({"#meta": {}, "states": []}, "the #meta of this ITF file has no model"),
        ({"model": "kip-101", "parameters": {}}, "it has no trace"),
        ({"model": "kip-101", "parameters": {}, "trace": [1]}, "state 1 does not say by which action"),
        (
            {"model": "kip-101", "parameters": {}, "trace": [{"action": None}, {"action": "x", "args": 1}]},
            "state 2 does not",
        ),
    ],
)
def test_what_is_no_trace_is_refused(document: Any, words: str) -> None:
    kind, said = JsonExplorer().error("import", trace=document)
    assert kind == "bad-trace"
    assert words in said
