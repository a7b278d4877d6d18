"""The page of transcripts and the samples in the README are what the commands print."""

import re

import pytest

from tests.cli.transcripts import PAGE, TRANSCRIPTS, Transcript, shown, told_by
from tests.places import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")

ALL = [transcript for _, transcripts in TRANSCRIPTS for transcript in transcripts]
QUICK = ("kspec models", "kspec check kip-32", "kspec prove --list")


def marks_of(command: str) -> list[pytest.MarkDecorator]:
    """Marks: `history` is also run by the test of the README."""
    if command == "kspec history":
        return [pytest.mark.slow, pytest.mark.nightly]
    return [] if command.startswith(QUICK) else [pytest.mark.slow]


def words(text: str) -> list[str]:
    """A text without its line breaks: they may depend on how many digits a number of seconds has."""
    return text.split()


@pytest.mark.parametrize(
    "transcript",
    [pytest.param(one, marks=marks_of(one.command), id=one.command.removeprefix("kspec ")) for one in ALL],
)
def test_the_page_has_what_a_command_prints(transcript: Transcript) -> None:
    """`python -m tests.cli.transcripts` writes the page anew."""
    blocks = re.findall(r"```text\n(.*?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (written,) = [block for block in blocks if block.split("\n")[0] == f"$ {transcript.command}"]
    assert words(shown(transcript)) == words(written)


def test_the_page_has_no_other_transcripts() -> None:
    commands = re.findall(r"^\$ (kspec .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert commands == [one.command for one in ALL]


@pytest.mark.slow
def test_the_readme_begins_with_what_history_prints() -> None:
    sample = re.findall(r"```\n(Is it true .*?)\n```", README, re.DOTALL)
    told, _ = told_by("kspec history")
    assert [told.split("\n\n  truncate-to-hw: ")[0]] == sample


@pytest.mark.slow
def test_the_sample_of_a_counterexample_is_what_check_prints() -> None:
    (sample,) = re.findall(r"```\n\$ (kspec check .*?)\n```", README, re.DOTALL)
    command, left_out, *lines = sample.split("\n")
    told, status = told_by(command)
    assert (left_out, status) == ("...", 1)
    assert "\n".join(lines) in told


@pytest.mark.slow
def test_run_without_arguments_ends_with_three_commands_as_its_user_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KSPEC_CALLED_AS", "./run")
    told, _ = told_by("kspec history")
    table, following = told.split("\nNext:\n")
    assert "initial state" not in table
    commands = re.findall(r"^  (\./run \S.*?)  ", following, flags=re.MULTILINE)
    assert commands == ["./run study kip-101-loss", "./run explore", "./run history --traces"]
