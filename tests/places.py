"""Where things are in this repository."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
DATA = REPOSITORY / "tests" / "data"

NIGHTLY = "KSPEC_NIGHTLY"
"""The variable that, set to anything, lets the tests of `nightly.txt` run."""


def nightly_tests() -> list[str]:
    """Tests that are left out of a common run, because together they take longer than all others; the summary lists them."""
    lines = (REPOSITORY / "tests" / "nightly.txt").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
