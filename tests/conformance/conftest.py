"""The chosen runs and the cases, which take seconds to make: all tests that ask for them run in one process."""

from typing import NamedTuple

import pytest

from kspec.conformance.wire.cases.case import Case
from kspec.conformance.wire.cases.generation import all_cases, all_runs
from kspec.conformance.wire.choice.cover import SelectedRun
from kspec.conformance.wire.choice.weakened import RuleScore, scores
from kspec.conformance.wire.model.subjects import SUBJECTS
from kspec.spec.releases.broker import NEWEST
from kspec.spec.releases.broker_mutants import BROKER_MUTANTS


class MadeSuite(NamedTuple):
    """The chosen runs, and the case of each."""

    runs: tuple[SelectedRun, ...]
    cases: tuple[Case, ...]


@pytest.fixture(scope="session")
def made_suite() -> MadeSuite:
    return MadeSuite(all_runs(), all_cases())


@pytest.fixture(scope="session")
def rule_scores(made_suite: MadeSuite) -> list[RuleScore]:
    """The runs that tell each weakened rule, mutants and checks."""
    return scores(SUBJECTS, made_suite.runs, NEWEST, BROKER_MUTANTS)
