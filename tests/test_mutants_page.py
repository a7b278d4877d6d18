"""The page of mutants agrees with the data, and its table with its sections."""

import pytest

from kspec.model_check.reports.mutants import ALL_MUTANTS, HUNTS, LIVENESS_HUNTS, SECTION
from kspec.model_check.reports.sections import section_of, with_section
from tests import mutants_page
from tests.mutants_page import OVERVIEW, PAGE, columns, composed, overview

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_made_of_its_sections_and_the_data() -> None:
    """`python -m tests.mutants_page` writes it."""
    assert composed(TEXT) == TEXT


def test_the_table_has_a_row_for_each_mutant() -> None:
    rows = [line for line in section_of(TEXT, OVERVIEW).splitlines() if line.startswith("| `")]
    assert sorted(line.split("`")[3] for line in rows) == sorted(ALL_MUTANTS)
    assert {line.split("`")[1] for line in rows} == {mutant.field for mutant in ALL_MUTANTS.values()}


def test_each_column_names_mutants_only_and_is_read() -> None:
    """A table that is written in another form would leave its column empty."""
    found = columns(TEXT)
    least = {"model": 30, "liveness": 5, "proof": 25, "simulated cluster": 20, "processes": 20}
    least |= {"level 0": 5, "level 1": 10, "level 2": 20}
    assert set(found) == set(least)
    for name, caught in found.items():
        assert len(caught.keys() & ALL_MUTANTS.keys()) >= least[name], name
    for name in ("model", "liveness", "proof", "level 1", "level 2"):
        assert set(found[name]) <= set(ALL_MUTANTS), name


def test_the_model_catches_what_is_hunted() -> None:
    found = columns(TEXT)
    assert set(found["model"]) == set(HUNTS)
    assert set(found["liveness"]) == set(LIVENESS_HUNTS)


def test_a_mutant_that_nothing_catches_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants_page, "columns", lambda page: {"model": {"min-isr-of-one": "CommittedOnNextLeader"}})
    table = overview(TEXT)
    assert f"1 of {len(ALL_MUTANTS)} are caught somewhere." in table
    assert "`no-sequence-check`" in table.partition("Caught nowhere:")[2]
    assert "`min-isr-of-one`" not in table.partition("Caught nowhere:")[2]


def test_a_section_takes_the_place_of_the_one_with_its_title() -> None:
    page = "# Page\n\n## One\n\na\n\n### Part\n\n## Two\n\nb\n"
    assert section_of(page, "One") == "## One\n\na\n\n### Part\n"
    assert section_of(page, "On") == ""
    assert with_section(page, "## One\n\nc\n") == "# Page\n\n## One\n\nc\n\n## Two\n\nb\n"
    assert with_section(page, "## Three\n\nd\n") == page + "\n## Three\n\nd\n"
    assert section_of(TEXT, SECTION)
