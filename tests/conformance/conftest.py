"""The chosen runs and the cases, which take seconds to make: all tests that ask for them run in one process."""

from typing import NamedTuple

import pytest

from kspec.conformance.wire.cases.case import Case
from kspec.conformance.wire.cases.suite import all_cases, all_runs
from kspec.conformance.wire.choice.cover import SelectedRun


class MadeSuite(NamedTuple):
    """The chosen runs, and the case of each."""

    runs: tuple[SelectedRun, ...]
    cases: tuple[Case, ...]


@pytest.fixture(scope="session")
def made_suite() -> MadeSuite:
    return MadeSuite(all_runs(), all_cases())
