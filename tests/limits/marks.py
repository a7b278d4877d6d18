"""Marks at single parameters of a test: `slow` and `nightly`, by the parameter's value."""

import os
from collections.abc import Collection, Iterable
from typing import Any

import pytest

SLOW, NIGHTLY = pytest.mark.slow, pytest.mark.nightly

RUN_NIGHTLY = "KSPEC_NIGHTLY"
"""The variable that, set to anything, lets nightly tests run. Together they take as long as all others."""


def is_night() -> bool:
    """Whether nightly tests run, too."""
    return bool(os.environ.get(RUN_NIGHTLY))


def most_by_day(states: int) -> int | None:
    """The limit of a search whose whole space is explored by night only."""
    return None if is_night() else states


def marked(values: Iterable[Any], *, slow: Collection[Any] = (), nightly: Collection[Any] = ()) -> list[Any]:
    """The values as parameters; those in `slow` and in `nightly`, each of which must be one of them, have these marks."""
    values = list(values)
    gone = [one for one in [*slow, *nightly] if one not in values]
    if gone:
        raise ValueError(f"no parameter has the value {gone[0]!r}")
    marks = ((SLOW, slow), (NIGHTLY, nightly))
    return [pytest.param(value, marks=[mark for mark, those in marks if value in those]) for value in values]


def marked_pairs(rows: Iterable[tuple[Any, ...]], *, nightly: Collection[Any]) -> list[Any]:
    """The rows as parameters, a value for each name; those in `nightly` have this mark."""
    return [pytest.param(*row, marks=[NIGHTLY] if row in nightly else []) for row in rows]
