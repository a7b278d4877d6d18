"""`kspec world`: bad usage and what is missing are one line; what needs Kafka itself is in `tests/conformance/world`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kspec.cli.main import cli
from tests.conformance.kafka.releases import NEWEST, jars_or_skip


def kspec(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["world", *arguments], standalone_mode=False)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay", "missed-epoch", "--kafka", "2.8.2"], "knows no release '2.8.2' there"),
        (["replay", "missed-epoch", "--kafka", "x"], "knows no release 'x' there"),
        (["mutants", "--kafka", "3.8.0"], "knows no release '3.8.0' there"),
    ],
)
def test_a_release_that_is_not_played(arguments: list[str], complaint: str) -> None:
    assert complaint in str(kspec(*arguments).exception)


def test_missing_jars_and_a_missing_java_are_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    found = kspec("replay", "missed-epoch")
    assert str(found.exception) == "there is no Java: install Java 17 or later, or set JAVA_HOME"
    assert getattr(found.exception, "exit_code", None) == 3
    (tmp_path / "java").touch(0o755)
    assert "neither is Maven" in str(kspec("replay", "missed-epoch").exception)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["replay", "nowhere"], "neither a finding, nor a study"),
        (["replay", "seed:1", "--control"], "--control is for findings"),
        (["replay", "missed-epoch", "--real", "9"], "the run has brokers 1 to 3"),
        (["replay", "seed:1", "--min-isr", "5"], "--min-isr 5"),
        (["mutants", "--mutant", "nobody"], "there is no mutant 'nobody'"),
    ],
)
def test_what_cannot_be_replayed(arguments: list[str], complaint: str) -> None:
    jars_or_skip(NEWEST)
    assert complaint in str(kspec(*arguments).exception)


@pytest.mark.slow
def test_a_finding_as_json() -> None:
    jars_or_skip(NEWEST)
    found = kspec("replay", "missed-epoch", "--json")
    assert found.return_value == 0
    report = json.loads(found.output)
    assert (report["verdict"], report["kafka"], report["real"]) == ("follows", NEWEST, 1)
    assert (report["acknowledged"], report["acknowledged_lost"], report["departure"]) == ([1], True, None)


WALKS = ("--elections", "1", "--brokers", "2", "--endless-lag", "--seed", "1")


@pytest.mark.slow
@pytest.mark.nightly
def test_a_departing_walk_is_shrunk_and_kept_and_replays_to_the_same_departure(tmp_path: Path) -> None:
    """The model is weakened, not Kafka: a leader counts what it sends to a follower before the follower asks for more."""
    jars_or_skip(NEWEST)
    folder = tmp_path / "kept"
    walked = kspec("walk", *WALKS, "--traces", "4", "--mutant", "count-what-is-sent", "--keep", str(folder), "--json")
    assert walked.return_value == 1
    report = json.loads(walked.output)
    (departed,) = report["departures"]
    (file,) = folder.iterdir()
    assert (file.name, departed["run"], report["depart"]) == ("seed-1-walk-2.json", "seed 1, walk 2", 1)
    kept = json.loads(file.read_text())
    assert departed["departure"]["step"] == len(kept["steps"]) < report["steps"]
    replayed = kspec("replay", str(file), "--json")
    assert replayed.return_value == 1
    again = json.loads(replayed.output)
    assert again == {**departed, "run": file.name}
    del kept["parameters"]["mutant"]
    file.write_text(json.dumps(kept))
    assert kspec("replay", str(file), "--json").return_value == 0, "by the rules of Kafka the same steps are followed"


def test_a_folder_that_cannot_be_written_is_refused_before_the_broker_starts(tmp_path: Path) -> None:
    jars_or_skip(NEWEST)
    taken = tmp_path / "file"
    taken.touch()
    for command in ("walk", "cover"):
        assert f"cannot write {taken}" in str(kspec(command, "--keep", str(taken)).exception)
