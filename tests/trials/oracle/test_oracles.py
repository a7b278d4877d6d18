"""Oracles agree with every step of simulated clusters, and disagree as soon as a rule is another one."""

from dataclasses import replace

import pytest

from kspec.trials.simulated.history import PROMISES
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup
from tests.limits.marks import marked
from tests.trials.oracle.listening import ORACLES, OracledCluster
from tests.trials.simulated.hunting import setup_of, setup_of_next


def contradicted(setup: RunSetup, steps: int) -> RunOutcome | None:
    """The run, if an oracle says that a step is wrong."""
    outcome = run(setup, steps, kind=OracledCluster)
    return outcome if outcome.broken is not None and outcome.broken.name in ORACLES else None


@pytest.mark.parametrize("seed", [1, 6, 11, 40])
def test_every_step_is_as_expected(seed: int) -> None:
    assert run(setup_of_next(seed), 1_500, kind=OracledCluster).broken is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", marked(range(18, 30), nightly=range(21, 30)))
def test_every_step_is_as_expected_in_more_clusters(seed: int) -> None:
    assert run(setup_of_next(seed), 2_000, kind=OracledCluster).broken is None


@pytest.mark.parametrize("seed", [2, 3])
def test_every_step_is_as_expected_where_any_replica_may_be_elected(seed: int) -> None:
    """Records may be lost there, so nothing else is looked at."""
    assert contradicted(replace(setup_of_next(seed), unclean_elections=True), 1_500) is None


NOTICED = {
    "count-what-is-sent": 1,
    "truncate-to-high-watermark": 1,
    "no-divergence-check": 6,
    "take-answer-of-other-epoch": 3,
}
"""Weakened rules, and seeds in which an oracle notices them."""


@pytest.mark.parametrize("name", NOTICED)
def test_another_rule_is_noticed(name: str) -> None:
    assert contradicted(setup_of(name, NOTICED[name]), 1_500) is not None


def test_oracles_have_names_of_their_own() -> None:
    assert len(set(ORACLES)) == len(ORACLES)
    assert not set(ORACLES) & set(PROMISES)
