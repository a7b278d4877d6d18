"""Progress on standard error."""

import io
import time

import pytest

from kspec.cli.terminal import progress
from kspec.model_check.core.exploration import Progress
from kspec.model_check.core.preparation import COMPILING


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Texts of a terminal's line, one after the other."""
    said: list[str] = []
    monkeypatch.setattr(progress.ProgressLine, "show", lambda line, text: said.append(text))
    return said


def test_compiling_is_told_before_it_begins(shown: list[str]) -> None:
    progress.ProgressLine(Terminal()).prepare(COMPILING)
    assert shown == [COMPILING]


def test_short_preparations_are_not_told_and_long_ones_with_their_seconds(
    shown: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    line = progress.ProgressLine(Terminal())
    for doing in ("building the model", "preparing tables"):
        for _ in range(3):
            line.prepare(doing)
            clock[0] += 0.1
    assert shown == []
    clock[0] += 2
    line.prepare("preparing tables")
    assert shown == ["preparing tables (2 s)"]


def test_the_rate_is_that_since_the_last_report(shown: list[str]) -> None:
    """Seconds of compiling, and of exploring another model before, do not make it `0 states/s`."""
    line = progress.ProgressLine(Terminal())
    line.report(Progress(3, 100, 200, 50, seconds=20.0))
    line.report(Progress(4, 50_100, 100_200, 50, seconds=20.5))
    line.report(Progress(1, 4, 5, 2, seconds=0.5))
    assert "states/s" not in shown[0]
    assert shown[1] == "level 4: 50,100 distinct states, 100,200 transitions, 50 to expand in this level, 100,000 states/s"
    assert "states/s" not in shown[2]
