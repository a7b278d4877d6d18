"""Without Z3, the summary of the tests says what was not checked."""

from pathlib import Path
from typing import Any

import pytest

from tests.proofs import conftest


class Summary:
    """The summary at the end of a test run."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def write_sep(self, separator: str, text: str, red: bool) -> None:
        self.said.append(text)

    def write_line(self, text: str, red: bool) -> None:
        self.said.append(text)


@pytest.mark.parametrize("installed", [True, False])
def test_what_is_not_checked_is_named(monkeypatch: pytest.MonkeyPatch, installed: bool) -> None:
    monkeypatch.setattr(conftest, "find_spec", lambda name: object() if installed else None)
    summary: Any = Summary()
    conftest.pytest_terminal_summary(summary)
    files = sorted(Path(__file__).parent.rglob("test_*.py"))
    left_out = sorted(path.name for path in files if conftest.pytest_ignore_collect(path))
    if installed:
        assert (summary.said, left_out) == ([], [])
    else:
        assert "NO PROOF WAS CHECKED" in summary.said[0]
        assert summary.said[1].endswith(": " + ", ".join(left_out))
        assert {"test_prove.py", "test_any_number.py"} <= set(left_out)
