"""Tests that are left out of a common run, because together they take longer than all others; the summary lists them."""

from tests.places import REPOSITORY

NIGHTLY = "KSPEC_NIGHTLY"
"""The variable that, set to anything, lets them run."""

LIST = REPOSITORY / "tests" / "nightly.txt"


def nightly_tests() -> list[str]:
    """Their names, as pytest has them."""
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]
