"""The end of a simulated cluster's run as a recording and as a page; it is the run that the command has told."""

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from kspec.cli.explorer.recording import is_recording
from tests.cli.explorer.test_one_file import unfolded
from tests.model_check.commands import Command

BROKEN = [
    *("simulate-cluster", "--controllers", "1", "--seed", "1", "--steps", "3500"),
    *("--mutant", "unclean-replica-keeps-its-place", "--no-shrink"),
]


@pytest.mark.slow
def test_a_seed_that_fails_is_a_recording_that_ends_with_the_failure(command: Command, tmp_path: Path) -> None:
    file, page = tmp_path / "run.json", tmp_path / "run.html"
    done = command(*BROKEN, "--recording", str(file), "--html", str(page))
    assert (done.status, done.stderr) == (1, "")
    told = json.loads(file.read_text())
    assert is_recording(told)
    views: list[dict[str, Any]] = unfolded(told)["views"]
    last = views[-1]
    (failing,) = (one for one in last["properties"] if one["verdict"] == "violated")
    assert (failing["property"], failing["first_at"]) == ("UncleanExclusion", len(views))
    steps = re.search(r"seed 1: ([\d,]+) steps", done.stdout)
    assert steps
    assert last["run"]["words"].startswith(f"{steps[1]} steps of handlers")  # it is the same run
    assert [view["position"] for view in views] == list(range(1, len(views) + 1))
    for before, after in itertools.pairwise(views):
        assert before["state"] != after["state"] or any(event.get("at") == "faults" for event in after["step"]["events"])
    assert any(event.get("to") == "controller" for step in last["steps"] for event in step["events"])
    assert any(mark["kind"] == "acknowledged" for step in last["steps"] for mark in step["marks"])
    brokers = last["state"]["brokers"]
    leader = next(one for one in brokers if one["role"]["is"] == "leader")
    assert leader["log"]["records"][-1]["offset"] == leader["log"]["end"] - 1
    assert leader["log"]["records"][0]["offset"] == leader["log"]["records_from"]
    assert last["state"]["controller"]["partition"]["leader"] == leader["broker"]
    assert "<title>A run of simulated cluster, seed 1</title>" in page.read_text()
    assert page.stat().st_size < 1_000_000


def test_a_seed_that_holds_shows_its_last_steps(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    done = command("simulate-cluster", "--seed", "3", "--steps", "300", "--recording", str(file), "--quiet")
    assert (done.status, done.stderr) == (0, "")
    views = unfolded(json.loads(file.read_text()))["views"]
    assert all(one["verdict"] == "holds" for view in views for one in view["properties"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--plan", "missed-epoch", "--html", "-"], "not --plan or --roll-every"),
        (["--roll-every", "5", "--recording", "-"], "not --plan or --roll-every"),
        (["--html", "/nowhere/run.html"], "cannot write /nowhere/run.html"),
        (["--json", "--recording", "-"], "both write to standard output"),
    ],
)
def test_bad_usage_is_one_line(command: Command, options: list[str], words: str) -> None:
    done = command("simulate-cluster", *options)
    assert done.mistake == (2, 1)
    assert words in done.stderr
