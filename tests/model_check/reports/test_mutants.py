"""`kspec mutants`: every mutant is caught or known not to be; the page says what was found."""

import json
import re
from pathlib import Path

import pytest

from kspec.cli.site.starting_points import index
from kspec.cli.statuses import VIOLATED
from kspec.model_check.reports import mutants
from kspec.model_check.reports.sections import section_of
from tests.limits.marks import marked, marked_pairs
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import assert_replays
from tests.model_check.models.kafka.test_kafka import explored, kafka
from tests.places import DOCS

PAGE = section_of((DOCS / "mutants.md").read_text(encoding="utf-8"), mutants.SECTION)
ROWS = re.findall(r"^\| `([\w-]+)` .*\| ([\w, ]+) \| (\d+) \|$", PAGE, re.MULTILINE)
CAUGHT = {name: (set(properties.split(", ")), int(steps)) for name, properties, steps in ROWS if name in mutants.HUNTS}
"""The page's entries of the caught ones: the properties that fail, and the steps of a shortest run.

The page is written by `kspec mutants --write docs/mutants.md`.
"""

QUICK = sorted(CAUGHT, key=lambda name: CAUGHT[name][1])[:6]
LATER = set(CAUGHT) - set(QUICK)
"""Those that do not die soonest are hunted by night. By day another test steps each mutant's run as it is kept."""


@pytest.mark.parametrize("name", marked(CAUGHT, slow=LATER, nightly=LATER))
def test_a_mutant_is_caught(name: str) -> None:
    found = mutants.hunt(name)
    properties, steps = CAUGHT[name]
    assert set(found.caught_by) == properties
    assert min(found.caught_by.values()) == steps


def test_the_kept_run_of_a_mutant_is_one_that_the_page_tells_of() -> None:
    runs = {run["name"]: run for group in index()["groups"] for run in group["runs"]}
    for name, (properties, steps) in CAUGHT.items():
        kept = runs[f"mutant-{name}"]
        assert set(kept["fails"]) & properties, name
        assert kept["steps"] == steps, name


def test_every_mutant_that_is_hunted_is_known_to_die() -> None:
    assert set(CAUGHT) == set(mutants.HUNTS)
    assert set(mutants.BESIDE) <= {*mutants.HUNTS, *mutants.LIVENESS_HUNTS}


@pytest.mark.slow
@pytest.mark.parametrize(("name", "other"), marked_pairs([*mutants.BESIDE.items()], nightly=[*mutants.BESIDE.items()][:-1]))
def test_a_mutant_beside_which_another_is_caught_does_no_harm_alone(name: str, other: str) -> None:
    bounds = mutants.HUNTS[name] if name in mutants.HUNTS else mutants.LIVENESS_HUNTS[name].bounds
    found = explored(kafka(**bounds, mutant=other))
    assert found.complete
    assert not found.violated


@pytest.mark.slow
def test_an_answer_does_harm_because_it_is_late() -> None:
    found = mutants.explore_mutant("take-answer-of-other-offset", mutants.LATE_ANSWER)
    trace = next(verdict.trace for verdict in found.verdicts if verdict.violated)
    assert trace is not None
    assert_replays(found.model, trace)
    late = ["SendFetch", "HandleLateFetch", "TakeLateAnswer"]
    assert [step.action.name for step in trace if step.action and step.action.name in late] == late
    in_time = kafka(mutant="take-answer-of-other-offset", **{**mutants.LATE_ANSWER, "late_fetches": 0})
    assert not [slot for slot in in_time.slots if slot.name == "lateFetch"]
    assert not explored(in_time).violated


@pytest.mark.slow
@pytest.mark.parametrize(
    "bounds",
    [
        mutants.ONE_ELECTION,
        mutants.TWO_VALUES,
        pytest.param(mutants.OLD_BASE, marks=pytest.mark.nightly),
        pytest.param(mutants.HUNTS["take-old-announcement"], marks=pytest.mark.nightly),
        pytest.param(mutants.ONE_SHRINK, marks=pytest.mark.nightly),
        {**mutants.ONE_SHRINK, "brokers": 2, "min_isr": 1},
        pytest.param({"elections": 0, "unclean_shutdowns": 1}, marks=pytest.mark.nightly),
        {"brokers": 2, "elections": 0, "unclean_shutdowns": 1},
        {"elections": 1, "late_fetches": 1},
        {"elections": 1, "values": 2, "retries": 1},
        pytest.param({"elections": 0, "unclean_shutdowns": 1, "late_registrations": 1}, marks=pytest.mark.nightly),
        {"brokers": 2, "elections": 0, "unclean_shutdowns": 1, "late_registrations": 1},
        pytest.param(mutants.HUNTS["act-before-registration"], marks=pytest.mark.nightly),
        mutants.HUNTS["refusal-without-trace"],
    ],
    ids=str,
)
def test_what_a_mutant_violates_holds_in_the_repaired_version(bounds: dict[str, int]) -> None:
    found = explored(kafka(**bounds))
    assert found.complete
    assert not found.violated


def test_every_mutant_is_hunted_or_known_not_to_be_caught() -> None:
    known = [*mutants.HUNTS, *mutants.LIVENESS_HUNTS, *mutants.NOT_CAUGHT]
    assert set(known) == set(mutants.ALL_MUTANTS)
    assert len(known) == len(mutants.ALL_MUTANTS)


def test_hunts_as_lines_json_and_page(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "mutants.md"
    done = command("mutants", "min-isr-of-one", "diverging-before-start", "--quiet", "--write", str(page))
    assert done.status == 0
    assert "CommittedOnNextLeader fails after 6 steps" in done.stdout
    assert "1 of 2 are caught" in done.stdout
    assert "| `min-isr-of-one` | `min_isr` |" in page.read_text()
    page.write_text(f"# Page\n\n## Before\n\na\n\n## {mutants.SECTION}\n\nold\n\n## After\n\nb\n")
    assert command("mutants", "min-isr-of-one", "--quiet", "--write", str(page)).status == 0
    assert re.findall("^## (.*)$", page.read_text(), re.MULTILINE) == ["Before", mutants.SECTION, "After"]
    assert "old" not in page.read_text()
    listed = json.loads(command("mutants", "min-isr-of-one", "--quiet", "--json").stdout)
    assert listed["caught"] == 1
    assert listed["mutants"][0]["caught_by"][0] == {"property": "CommittedOnNextLeader", "steps": 6}


def test_a_mutant_that_should_die_and_does_not_is_a_failure(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "HUNTS", {"diverging-before-start": mutants.ONE_ELECTION})
    done = command("mutants", "diverging-before-start", "--quiet")
    assert done.status == VIOLATED
    assert "nothing fails within its bounds" in " ".join(done.stdout.split())


def test_unknown_names_are_told_in_one_line(command: Command) -> None:
    assert command("mutants", "nonsense").mistake == (2, 1)
