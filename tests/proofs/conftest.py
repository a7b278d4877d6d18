"""Tests of proofs need Z3; without it they are skipped, and the summary says which."""

from importlib.util import find_spec
from pathlib import Path

import pytest

WITHOUT_Z3 = ("test_lint.py", "test_without_z3.py")
"""Tests here that need no solver."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    needs_z3 = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT_Z3
    return True if needs_z3 and find_spec("z3") is None else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if find_spec("z3") is None:
        left_out = sorted(path.name for path in Path(__file__).parent.rglob("test_*.py") if path.name not in WITHOUT_Z3)
        terminalreporter.write_sep("=", "NO PROOF WAS CHECKED: Z3 is not installed", red=True)
        terminalreporter.write_line(f"left out of tests/proofs: {', '.join(left_out)}", red=True)
        terminalreporter.write_line("to check them: .venv/bin/pip install -e '.[prove]'", red=True)
