"""`kspec mutants`: every mutant dies or is known to survive; the page says what was found."""

import json
from pathlib import Path

import pytest

from model_check import mutants
from model_check.cli_common import VIOLATED
from tests.model_check.commands import Command
from tests.model_check.test_kafka import explored, kafka

QUICK = {
    "forget-proposal-on-old-news": ("QuorumSuperset", 9),
    "min-isr-of-one": ("CommittedOnNextLeader", 6),
    "shrink-before-confirmation": ("QuorumSuperset", 3),
    "unclean-replica-keeps-its-place": ("UncleanExclusion", 3),
}
"""Mutants that die within a second each, with the property and the steps."""


@pytest.mark.parametrize("name", QUICK)
def test_a_mutant_dies(name: str) -> None:
    found = mutants.hunt(name)
    expected, steps = QUICK[name]
    assert found.killed_by[expected] == steps


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in mutants.HUNTS if name not in QUICK])
def test_a_mutant_dies_in_its_bounds(name: str) -> None:
    assert mutants.hunt(name).killed


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    [mutants.ONE_ELECTION, mutants.TWO_VALUES, mutants.ONE_SHRINK, {"elections": 0, "unclean_shutdowns": 1}],
    ids=str,
)
def test_what_kills_a_mutant_holds_in_the_repaired_version(bounds: dict[str, int]) -> None:
    found = explored(kafka(**bounds))
    assert found.complete
    assert not found.violated


def test_every_mutant_is_hunted_or_known_to_survive() -> None:
    assert set(mutants.HUNTS) | set(mutants.SURVIVORS) == set(mutants.ALL_MUTANTS)
    assert not set(mutants.HUNTS) & set(mutants.SURVIVORS)


def test_hunts_as_lines_json_and_page(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "mutants.md"
    done = command("mutants", "min-isr-of-one", "await-ineligible", "--quiet", "--write", str(page))
    assert done.status == 0
    assert "CommittedOnNextLeader fails after 6 steps" in done.stdout
    assert "1 of 2 die" in done.stdout
    assert "| `min-isr-of-one` | `min_isr` |" in page.read_text()
    listed = json.loads(command("mutants", "min-isr-of-one", "--quiet", "--json").stdout)
    assert listed["killed"] == 1
    assert listed["mutants"][0]["killed_by"][0] == {"property": "CommittedOnNextLeader", "steps": 6}


def test_a_mutant_that_should_die_and_does_not_is_a_failure(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "HUNTS", {"await-ineligible": mutants.ONE_ELECTION})
    done = command("mutants", "await-ineligible", "--quiet")
    assert done.status == VIOLATED
    assert "nothing fails within its bounds" in done.stdout


def test_unknown_names_are_told_in_one_line(command: Command) -> None:
    assert command("mutants", "nonsense").mistake == (2, 1)
