"""The chapters of docs/story/: each run does what the prose below it claims."""

import re
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.site.places import pages
from kspec.cli.site.starting_points import CHAPTERS, STORY, index
from kspec.cli.site.timeline import timeline_page
from kspec.model_check.explorer import Explorer
from kspec.model_check.reports.mutants import HUNTS, options
from kspec.model_check.reports.studies import STUDIES
from tests.places import DOCS, REPOSITORY

FENCE = re.compile(r"^```run (\S+)\n(.*?)\n```\n\n([^\n]*)", re.MULTILINE | re.DOTALL)
CLAIM = re.compile(r"^\*(\d+) steps?; in the end `(\w+)` (fails|holds)\.\*$")

RUNS: dict[str, dict[str, Any]] = {run["name"]: run for group in index()["groups"] for run in group["runs"]}
BY_NAME = {study.name: study for study in STUDIES}
TOLD = [
    (chapter, *found)
    for chapter in CHAPTERS.values()
    for found in FENCE.findall((DOCS / "story" / f"{chapter}.md").read_text(encoding="utf-8"))
]


def test_there_are_six_chapters_which_tell_all_runs_of_the_story() -> None:
    assert sorted(path.stem for path in (DOCS / "story").glob("*.md")) == sorted([*CHAPTERS.values(), "README"])
    assert sorted(name for _, name, _, _ in TOLD) == sorted(name for run in STORY for name in (run, f"{run}-repaired"))


@pytest.mark.parametrize(("chapter", "name", "command", "claim"), TOLD, ids=lambda value: value if "-" in value else None)
def test_a_run_does_what_its_chapter_claims(chapter: str, name: str, command: str, claim: str) -> None:
    found = CLAIM.match(claim)
    assert found is not None, f"{chapter}: below {name} stands no claim"
    view = Explorer().answer({"do": "open", "address": RUNS[name]["address"]})
    assert view["changed"] is None
    assert view["position"] - 1 == int(found[1])
    verdicts = {told["property"]: told["verdict"] for told in view["properties"]}
    assert verdicts[found[2]] == {"fails": "violated", "holds": "holds"}[found[3]]
    assert (found[3] == "holds") == name.endswith("-repaired")


@pytest.mark.parametrize("chapter", CHAPTERS.values())
def test_a_chapter_says_first_why_it_was_needed(chapter: str) -> None:
    text = (DOCS / "story" / f"{chapter}.md").read_text(encoding="utf-8")
    reasons = re.findall(r"^\*\*Why [^*]+\.\*\* (.*?)\n\n", text, re.MULTILINE | re.DOTALL)
    assert reasons
    for reason in reasons:
        assert len(re.findall(r"\.(?:\s|$)", reason)) == 2, reason
    assert text.index("**Why") < text.index("```run")


def test_each_run_that_a_page_shows_is_in_the_index() -> None:
    for page in pages(REPOSITORY):
        for name in re.findall(r"^```run (\S+)$", (REPOSITORY / page).read_text(encoding="utf-8"), re.MULTILINE):
            assert name in RUNS, f"{page} shows {name}"


@pytest.mark.parametrize(("chapter", "name", "command", "claim"), TOLD, ids=lambda value: value if "-" in value else None)
def test_the_command_of_a_run_is_that_of_its_study(chapter: str, name: str, command: str, claim: str) -> None:
    source = STORY[name.removesuffix("-repaired")]
    if source in BY_NAME:
        study = BY_NAME[source]
        expected = (f"kspec study {source}", study.repaired.command(study.invariant))
    else:
        expected = (f"kspec mutants {source}", f"kspec check kafka {' '.join(options(HUNTS[source]))} --symmetry")
    assert command == expected[name.endswith("-repaired")]


def test_the_timeline_is_the_one_that_the_command_writes() -> None:
    assert (DOCS / "timeline.md").read_text(encoding="utf-8") == timeline_page()


def test_pages_of_a_folder_that_is_being_written_are_not_pages(tmp_path: Path) -> None:
    (tmp_path / "docs" / ".unfinished-x").mkdir(parents=True)
    (tmp_path / "docs" / ".unfinished-x" / "a.md").write_text("# A\n")
    (tmp_path / "docs" / "b.md").write_text("# B\n")
    assert [str(page) for page in pages(tmp_path)] == ["docs/b.md"]
