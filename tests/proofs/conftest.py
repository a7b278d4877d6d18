"""Tests of proofs need Z3; without it they are skipped, and the summary says so in one line."""

from importlib.util import find_spec
from pathlib import Path

import pytest

WITHOUT_Z3 = ("test_lint.py",)
"""Tests here that need no solver."""


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    needs_z3 = collection_path.name.startswith("test_") and collection_path.name not in WITHOUT_Z3
    return True if needs_z3 and find_spec("z3") is None else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if find_spec("z3") is None:
        terminalreporter.write_sep(
            "=", "SKIPPED tests/proofs: Z3 is not installed (pip install 'kafka-replication-spec[prove]')", red=True
        )
