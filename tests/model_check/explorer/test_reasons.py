"""The records by which a property fails, as a run that violates it is printed."""

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.explorer.verdicts import reasons
from kspec.model_check.models import MODELS


def test_what_was_committed_is_held_against_the_log_of_a_voter() -> None:
    model = MODELS["quorum"].build({"servers": 1, "power_losses": 1})
    prop = model.property_named("CommittedOnNewestLeader")
    assert prop is not None
    (verdict,) = explore(model, [prop], Limits()).verdicts
    assert verdict.trace is not None
    found = reasons(model, [prop.name], verdict.trace[-1].state)
    assert found == ["offset 1: m-1(e2) in server of broker 1, m0(e1) in committed"]
