"""The fields that `docs/formats.md` tells of are those that `kspec world --json` prints and `--keep` writes."""

import json
import re
from collections.abc import Coroutine
from typing import Any

import pytest
from click.testing import CliRunner

from kspec.cli.main import cli
from kspec.cli.world import commands
from kspec.cli.world.tested import TargetOptions
from kspec.conformance.kafka.jars import Jars
from kspec.conformance.mirror.comparing import Difference
from kspec.conformance.mirror.named import NAMED
from kspec.conformance.mirror.replay import MirrorDeparture, ReplayedStep, ReplayResult
from kspec.conformance.mirror.runs import run_as_json
from kspec.conformance.mirror.session import replayed_as_json
from kspec.conformance.world.choice import cover
from kspec.conformance.world.environment.target import WorldTarget
from kspec.conformance.world.replay.verdict import BrokerDeparture, RunVerdict
from kspec.conformance.world.runs.run import WorldRun, model_for, walk
from kspec.conformance.world.session import WorldOutcome
from tests.places import DOCS

PAGE = (DOCS / "formats.md").read_text(encoding="utf-8")


def row(heading: str, field: str) -> str:
    """The row of a field in the first table behind a text."""
    return dict(rows(heading))[field]


def rows(heading: str) -> list[tuple[str, str]]:
    assert PAGE.count(heading) == 1
    table = re.search(r"(?:^\|.*\n)+", PAGE.partition(heading)[2], re.MULTILINE)
    assert table
    cells = [line.split("|")[1:3] for line in table[0].splitlines()[2:]]
    return [(name, meaning) for names, meaning in cells for name in re.findall(r"`(\w+)`", names)]


def fields(heading: str) -> set[str]:
    """The fields in the first table behind a text."""
    return {name for name, _ in rows(heading)}


def made_run() -> WorldRun:
    model = model_for("4.4.0", {"elections": 0, "endless_lag": True})
    return walk(model, 1, 0, 5, "walk 0")


def departed() -> WorldOutcome:
    verdict = RunVerdict(
        "4.4.0", "walk 0", 1, 2, BrokerDeparture(3, "Fetch(follower=2, leader=1)", "the log", "m1/0", "nothing", "a rule")
    )
    return WorldOutcome(made_run(), verdict)


def printed(monkeypatch: pytest.MonkeyPatch, found: object, *arguments: str) -> dict[str, Any]:
    """Output of a command if the replays come out like this."""

    def come_out(work: Coroutine[Any, Any, Any]) -> object:
        work.close()
        return found

    monkeypatch.setattr(commands, "run_to_end", come_out)
    monkeypatch.setattr(TargetOptions, "found", lambda tested: WorldTarget(Jars(tested.kafka, ())))
    monkeypatch.setattr(cover, "covering_runs", lambda _: iter([cover.CoveringRun(made_run(), (("a goal",),))]))
    output = CliRunner().invoke(cli, ["world", *arguments, "--json"], standalone_mode=False, catch_exceptions=False).output
    report: dict[str, Any] = json.loads(output)
    return report


def test_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    report = printed(monkeypatch, [departed()], "replay", "seed:1")
    heading = "`kspec world replay RUN --json`; the other"
    assert set(report) == fields(heading)
    assert set(report["departure"]) <= set(re.findall(r"`(\w+)`", row(heading, "departure")))
    assert set(printed(monkeypatch, [departed()] * 2, "replay", "seed:1", "--times", "2")) - set(report) == {"times"}


@pytest.mark.parametrize(
    ("command", "found"),
    [("cover", [departed()]), ("walk", ([departed()], [departed()])), ("mutants", {"no-epoch-entry": departed()})],
)
def test_the_other_commands(command: str, found: object, monkeypatch: pytest.MonkeyPatch) -> None:
    report = printed(monkeypatch, found, command)
    assert set(report) == fields(f"`kspec world {command} --json`:")


def test_a_kept_run() -> None:
    assert set(made_run().as_json()) == fields("`--keep DIR` of `walk` and `cover`")
    assert all(set(step) == {"action", "args"} for step in made_run().as_json()["steps"])


def test_the_mirror() -> None:
    run = next(iter(NAMED.values()))()
    departure = MirrorDeparture(2, "a move", Difference("answer", "this", "that", "a rule"))
    report = replayed_as_json(
        ReplayResult(run, "4.4.0", "4.4", (ReplayedStep(1, "a move", "an answer", ("a record",)),), departure)
    )
    heading = "`kspec world mirror RUN --json`"
    assert set(report) == fields(heading)
    for field, part in (("steps", report["steps"][0]), ("departure", report["departure"])):
        assert set(part) == set(re.findall(r"`(\w+)`", row(heading, field))) - {"null"}
    kept = PAGE.partition("`--keep DIR` of `mirror`")[2].partition("A step is")[0]
    assert set(run_as_json(run)) == set(re.findall(r"`(\w+)`", kept))
