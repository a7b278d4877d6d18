"""The controller alone, with more brokers than replicas: eligibility that outlives an assignment."""

import pytest

from kspec.model_check.core.exploration import Exploration, Limits
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.models import MODELS

SMALL = {"brokers": 4, "replicas": 2, "fencings": 1}


def explored(**given: object) -> Exploration:
    model = MODELS["controller"].build(given)
    return explore(model, model.properties, Limits(), symmetry=Symmetry(model))


def lengths(found: Exploration) -> dict[str, int]:
    """The violated properties with the states of a shortest run each."""
    return {verdict.prop.name: len(verdict.trace or ()) for verdict in found.verdicts if verdict.violated}


@pytest.mark.slow
def test_an_empty_replica_is_elected_cleanly() -> None:
    """Apache Kafka 4.4.0, the default, did so when it was executed: see docs/findings/eligible-without-assignment.md."""
    model = MODELS["controller"].build(SMALL)
    (holds,) = [prop for prop in model.properties if prop.name == "LeaderHoldsLog"]
    found = explore(model, [holds], Limits(), symmetry=Symmetry(model))
    assert lengths(found) == {"LeaderHoldsLog": 7}


@pytest.mark.slow
def test_in_next_nobody_is_eligible_without_an_assignment() -> None:
    found = explored(release="next", **SMALL)
    assert found.complete
    assert not found.violated


def test_before_eligible_leader_replicas_nobody_is_listed() -> None:
    found = explored(brokers=3, replicas=2, release="3.9", fencings=1, reassignments=1)
    assert found.complete
    assert not found.violated


def test_bounds_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="--replicas 3: must be 2 or less"):
        MODELS["controller"].build({"brokers": 2, "replicas": 3})
