"""Controlled shutdown on a log that grows (KAFKA-14292): up to 3.3 it may never end, though every broker does its part."""

import pytest

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.liveness import check_liveness
from kspec.model_check.models import MODELS
from tests.limits.marks import marked
from tests.model_check.commands import Command
from tests.model_check.graphs.lassos import assert_fair_violation


def lasso_of(**given: object) -> tuple[int, list[str]] | None:
    """The state where the loop of a violating run begins, counted from 0, and the actions in it; checked to be fair."""
    model = MODELS["shutdown"].build(given)
    (prop,) = model.liveness
    (verdict,) = check_liveness(state_graph(model, 1), [prop]).verdicts
    assert verdict.met
    if verdict.lasso is None:
        return None
    assert_fair_violation(model, prop, model.fairness, verdict.lasso)
    assert verdict.lasso.closing is not None
    steps = [*verdict.lasso.steps[verdict.lasso.loop_start + 1 :], verdict.lasso.closing]
    return verdict.lasso.loop_start, [step.action.name for step in steps if step.action is not None]


@pytest.mark.parametrize("release", ["3.0", "3.2", "3.3"])
def test_up_to_3_3_each_heartbeat_of_the_stopping_broker_puts_the_end_off(release: str) -> None:
    found = lasso_of(release=release)
    assert found is not None
    start, loop = found
    assert start == 1
    assert set(loop) == {"Heartbeat", "Replay", "WriteRecord"}


@pytest.mark.parametrize("release", ["3.4", "3.9", "4.4", "next"])
def test_since_3_4_it_ends_in_all_fair_runs(release: str) -> None:
    assert lasso_of(release=release) is None


@pytest.mark.parametrize("brokers", marked([2, 3], nightly=[3]))
def test_two_brokers_that_shut_down_at_a_time_do_not_wait_for_each_other(brokers: int) -> None:
    assert lasso_of(release="3.4", shutdowns=2, brokers=brokers) is None
    assert lasso_of(release="3.3", shutdowns=2, brokers=brokers) is not None


def test_up_to_3_3_it_ends_where_nothing_is_written_while_somebody_is_behind() -> None:
    assert lasso_of(release="3.3", lag=1) is None


def test_a_broker_whose_shutdown_has_ended_leads_nothing() -> None:
    model = MODELS["shutdown"].build({"release": "3.3", "brokers": 2, "shutdowns": 2, "lag": 1})
    found = explore(model, model.properties, Limits())
    assert found.complete
    assert {verdict.prop.name: verdict.holds for verdict in found.verdicts} == {
        "StoppedLeadsNothing": True,
        "LeaderIsActive": True,
        "ShutdownIsOver": True,
    }


@pytest.mark.parametrize(("release", "late", "steps"), [("3.3", 1, 4), ("4.4", 1, 4), ("4.4", 0, None), ("next", 2, None)])
def test_a_late_heartbeat_makes_a_stopping_broker_lead(release: str, late: int, steps: int | None) -> None:
    given = {"release": release, "brokers": 2, "shutdowns": 2, "lag": 1, "late_heartbeats": late}
    model = MODELS["shutdown"].build(given)
    verdict = next(one for one in explore(model, model.properties, Limits()).verdicts if one.prop.name == "LeaderIsActive")
    assert (len(verdict.trace) - 1 if verdict.violated and verdict.trace else None) == steps


def test_a_broker_that_nobody_hears_of_late_stops_as_before() -> None:
    """Late heartbeats are taken only of a broker that has begun to stop."""
    model = MODELS["shutdown"].build({"release": "4.4", "brokers": 2, "shutdowns": 1, "late_heartbeats": 1})
    late = [action for action in model.actions if action.name == "LateHeartbeat"]
    assert [action.args["broker"] for action in late] == [1]
    assert all(action.bind()(model.initial) is None for action in late)


def test_bounds_that_do_not_go_together() -> None:
    with pytest.raises(ValueError, match="--shutdowns 3: must be 2 or less"):
        MODELS["shutdown"].build({"brokers": 2, "shutdowns": 3})


def test_the_lasso_is_told_in_words(command: Command) -> None:
    told = command("liveness", "shutdown", "--release", "3.3").stdout
    assert "ShutdownEnds  VIOLATED" in told
    told = " ".join(told.split())
    assert "2 leads in epoch 1, ISR {2, 3}, partition epoch 1, shutting down {1}, leaving {1}" in told
    assert "lacks 2, by its heartbeat 2, waits until others lack 1 ->" in told
