"""`kspec matrix`: verdicts by release and configuration, what a release changed, and which runs it removed."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kspec.model_check.core.exploration import TraceStep
from kspec.model_check.models import MODELS
from kspec.model_check.reports import matrix
from kspec.model_check.reports.matrix import Cell, ExplorationExtent, Row, ViolatingRun, verdict_in_words
from kspec.model_check.reports.matrix_pages import matrix_page, page_name, release_page
from tests.model_check.commands import Command
from tests.places import DOCS

SHRINK = {"an ISR shrink": {"brokers": 3, "elections": 0, "isr_shrinks": 1}}
FAST_CHANGES = {"two brokers, three records": {"brokers": 2, "values": 3, "elections": 2}}
PAGES = DOCS / "releases"

EMERGENCY_S = 3600.0
"""The longest time of an exploration, which should have ended long before: then its page says so, and the test fails."""


def explore(
    monkeypatch: pytest.MonkeyPatch, configurations: Mapping[str, Any], *names: str, limit: float = EMERGENCY_S
) -> list[Row]:
    monkeypatch.setattr(matrix, "CONFIGURATIONS", configurations)
    return list(matrix.rows(names, limit))


@pytest.mark.slow
def test_kip_279_removes_a_run_and_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after, earlier, same = explore(monkeypatch, FAST_CHANGES, "1.1", "2.0", "2.2", "2.3")
    assert same.same_as == "2.2"
    assert same.cells == earlier.cells
    assert verdict_in_words(before.verdict("LogMatching")) == "violated (14)"
    assert after.verdict("LogMatching") == Cell(True)
    assert {(run.row, run.steps) for run in after.runs} == {("1.1", 13)}, "this run of 1.1 is still possible"
    assert after.explored == {"two brokers, three records": ExplorationExtent(4_371, 23, True)}
    page = release_page(before, after)
    assert "- broker: KIP-279: the answer names the largest epoch" in page
    assert "| broker | `epoch_lookup` | `look_up_end_only` | `look_up_within_history` |" in page
    assert "| `LogMatching` | violated (14) | holds |" in page
    assert "[run 2 of 1.1](1.1.md#run-2) (two brokers, three records, 14 steps). Step " in page
    assert "and nothing is violated in the end." in page
    assert "[**13**](1.1.md#run-1)" in page
    assert "No rule that the model looks at differs from [2.2](2.2.md)" in release_page(earlier, same)
    index = matrix_page([before, after, earlier, same])
    assert "| [2.2](2.2.md) to [2.3](2.3.md) | holds |" in index
    assert "In all releases these hold: `TypeOk`, `LeaderInIsr`, `QuorumSuperset`" in index


@pytest.mark.slow
def test_a_row_as_line_json_and_pages(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(matrix, "CONFIGURATIONS", SHRINK)
    done = command("matrix", "--release", "next", "--release", "4.0", "--quiet", "--write", str(tmp_path))
    assert done.status == 0
    lines = re.sub(r"\n {5,}", " ", done.stdout).splitlines()  # a narrow terminal makes two lines of one
    assert [line.split()[0] for line in lines[:2]] == ["4.0", "next"], "in the order of history"
    assert "QuorumSuperset (9)" in lines[0]
    assert "all hold" in lines[1]
    following = (tmp_path / "next.md").read_text()
    assert "| broker | `announced_isr` | `apply_partition` | `apply_news` |" in following
    assert "| `QuorumSuperset` | violated (9) | holds |" in following
    first = (tmp_path / "4.0.md").read_text()
    assert "### Run 1" in first
    assert "kspec check kafka --release 4.0 --brokers 3 --elections 0 --isr-shrinks 1 --symmetry --invariant" in first
    listed = json.loads(command("matrix", "--release", "next", "--quiet", "--json").stdout)
    (release,) = listed["releases"]
    assert {cell["holds"] for cell in release["properties"]} == {True}
    explored = release["explored"]["an ISR shrink"]
    assert explored["complete"]
    assert explored["states"] > explored["depth"] > 10


def test_what_is_not_exhausted_is_open(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = explore(monkeypatch, SHRINK, "next", limit=1e-6)
    assert row.verdict("QuorumSuperset") == Cell(None)
    assert "nothing found; the rest is open" in matrix.line(row)
    page = release_page(None, row)
    assert "| `QuorumSuperset` | open |" in page
    assert ", stopped after " in page
    assert "| [next](next.md) | open |" in matrix_page([row])


def test_the_shortest_run_of_all_configurations_counts() -> None:
    model = MODELS["kafka"].build({})
    step = TraceStep(None, model.initial)
    longer, shorter = (ViolatingRun("4.0", "a fencing", {}, number, model, (step,) * number) for number in (5, 4))
    cells = {"one": {"P": Cell(False, longer), "Q": Cell(True)}, "other": {"P": Cell(False, shorter), "Q": Cell(None)}}
    row = Row("4.0", "4.0", cells, {})
    assert row.verdict("P", ("one", "other")) == Cell(False, shorter)
    assert row.verdict("P", ("one",)) == Cell(False, longer)
    assert row.verdict("Q", ("one", "other")) == Cell(None)
    assert row.verdict("Q", ()) is None


def test_mixed_versions_have_the_configurations_of_three_brokers() -> None:
    assert "two brokers, three records" not in matrix.configurations_of("2.0,2.1,2.1")
    assert list(matrix.configurations_of("next")) == list(matrix.CONFIGURATIONS)


def test_releases_without_changed_rules_are_the_same_model() -> None:
    assert matrix.rules_in("2.5") == matrix.rules_in("2.6")
    assert matrix.rules_in("2.0") != matrix.rules_in("2.1")
    assert matrix.changed_rules("2.5", "2.6") == []
    assert {(rule.party, rule.name) for rule in matrix.changed_rules("3.7", "3.8")} == {
        ("controller", "complete_reassignment"),
        ("controller", "register_again"),
    }


def test_unknown_versions_are_told_in_one_line(command: Command) -> None:
    assert command("matrix", "--release", "5.0").mistake == (2, 1)


def test_every_version_has_a_page() -> None:
    pages = {page.name for page in PAGES.glob("*.md")}
    assert pages == {"README.md", *map(page_name, matrix.ROWS)}


@pytest.mark.slow
def test_the_verdicts_in_the_docs_are_those_that_the_matrix_finds() -> None:
    (after,) = matrix.rows(["next"], EMERGENCY_S)
    written = (PAGES / "next.md").read_text().partition("## Verdicts\n")[2]
    assert written == release_page(None, after).partition("## Verdicts\n")[2]
    assert all(explored.complete for explored in after.explored.values())
    assert not after.runs
