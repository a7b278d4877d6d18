"""`kspec` in this process: as `tests.cli.test_cli` runs it in its own, without the second that a start takes."""

import sys
from typing import NamedTuple

import pytest

from kspec.cli.main import main


class CommandResult(NamedTuple):
    status: int
    stdout: str
    stderr: str

    @property
    def mistake(self) -> tuple[int, int]:
        """The exit status and the number of lines on standard error."""
        return self.status, self.stderr.count("\n")


class Command:
    """Runs `kspec` with some arguments."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> CommandResult:
        self.monkeypatch.setattr(sys, "argv", ["kspec", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capsys.readouterr()
        return CommandResult(ended.value.code if isinstance(ended.value.code, int) else 1, out, err)
