"""The reference engine, on a model whose numbers can be counted by hand."""

from itertools import pairwise

import pytest

from kspec.model_check.core.exploration import Limits, Progress, Trace
from kspec.model_check.core.model import Model
from kspec.model_check.engines.reference import explore
from kspec.model_check.models import MODELS
from tests.model_check.toy import counters


def replays(model: Model, trace: Trace) -> bool:
    """Whether each step's action leads from the state before to the state after."""
    if trace[0].state != model.initial or trace[0].action is not None:
        return False
    return all(
        after.action is not None and after.action.bind()(before.state) == after.state for before, after in pairwise(trace)
    )


def test_counts_states_transitions_and_levels() -> None:
    model = counters(limit=3)
    result = explore(model, model.properties, Limits(stop_at_first=False))
    # the states are the pairs (a, b) with 0 <= b <= a <= 3; a + b is the distance from the start
    assert result.complete
    assert result.distinct_states == 10
    assert result.levels == [1, 1, 2, 2, 2, 1, 1]
    assert result.depth == 7
    assert result.actions == {"CountFirst": 6, "CountSecond": 6}
    assert result.transitions == 12


def test_counterexample_and_witness_are_shortest_and_replay() -> None:
    model = counters(limit=3)
    result = explore(model, model.properties, Limits(stop_at_first=False))
    verdicts = {verdict.prop.name: verdict for verdict in result.verdicts}
    below, witness = verdicts["FirstBelowLimit"], verdicts["SecondCounts"]
    assert below.holds is False
    assert below.trace is not None
    assert [step.state for step in below.trace] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    assert replays(model, below.trace)
    assert witness.holds is True
    assert witness.trace is not None
    assert [step.state for step in witness.trace] == [(0, 0), (1, 0), (1, 1)]
    assert verdicts["SecondNotAhead"].holds is True
    assert verdicts["SecondNotAhead"].trace is None
    assert verdicts["SecondBeyond"].holds is False
    assert verdicts["SecondBeyond"].trace is None


def test_a_sometimes_that_is_never_reached_is_no_violation() -> None:
    model = counters(limit=3)
    result = explore(model, [prop for prop in model.properties if prop.kind == "sometimes"], Limits())
    assert result.complete
    assert not result.violated


def test_stops_at_the_first_violation() -> None:
    model = counters(limit=3)
    result = explore(model, model.properties, Limits())
    assert not result.complete
    assert result.stopped_because == "a property is violated"
    verdicts = {verdict.prop.name: verdict.holds for verdict in result.verdicts}
    assert verdicts == {"FirstBelowLimit": False, "SecondNotAhead": None, "SecondCounts": True, "SecondBeyond": None}
    assert result.distinct_states == sum(result.levels) < 10


def test_deadlocks_are_reported_with_a_shortest_run() -> None:
    model = counters(limit=2)
    result = explore(model, [], Limits())
    assert result.deadlocks == 1
    assert result.deadlock_trace is not None
    assert result.deadlock_trace[-1].state == (2, 2)
    assert not result.violated
    assert explore(model, [], Limits(deadlock_is_violation=True)).violated


def test_states_outside_the_constraint_are_neither_counted_nor_left() -> None:
    model = counters(limit=3, cap=2)
    result = explore(model, [], Limits())
    assert result.distinct_states == 6
    assert result.actions == {"CountFirst": 3, "CountSecond": 3}
    assert result.deadlocks == 0  # at the cap an action is still possible: it leads outside


def test_limits_stop_and_say_why() -> None:
    by_states = explore(counters(limit=100), [], Limits(max_states=500))
    assert not by_states.complete
    assert by_states.stopped_because == "the limit of 500 states is reached"
    assert 500 <= by_states.distinct_states < 5151
    by_time = explore(counters(limit=1000), [], Limits(max_seconds=0.05))
    assert by_time.stopped_because == "the time limit of 0.05 s is reached"


def test_progress_is_reported_while_exploring() -> None:
    seen: list[Progress] = []
    explore(counters(limit=200), [], Limits(report=seen.append, report_every=0.0))
    assert len(seen) > 10
    assert [progress.distinct_states for progress in seen] == sorted(progress.distinct_states for progress in seen)


def test_an_interrupt_keeps_the_counts_so_far() -> None:
    def interrupt(progress: Progress) -> None:
        if progress.distinct_states > 1000:
            raise KeyboardInterrupt

    result = explore(counters(limit=200), [], Limits(report=interrupt, report_every=0.0))
    assert result.stopped_because == "interrupted"
    assert 1000 < result.distinct_states < 20_301


@pytest.mark.slow
def test_counterexamples_of_the_published_models_replay() -> None:
    for name in ("truncate-to-hw", "kip-101"):
        model = MODELS[name].build({"replicas": 2})
        result = explore(model, model.properties, Limits(stop_at_first=False))
        traces = [verdict.trace for verdict in result.verdicts if verdict.trace]
        assert len(traces) > 4
        assert all(replays(model, trace) for trace in traces)


@pytest.mark.slow
def test_two_runs_give_the_same_traces() -> None:
    runs = []
    for _ in range(2):
        model = MODELS["kip-101"].build({"replicas": 2})
        result = explore(model, model.properties, Limits(stop_at_first=False))
        runs.append(
            [
                [step.action.label for step in verdict.trace[1:] if step.action]
                for verdict in result.verdicts
                if verdict.trace
            ]
        )
    assert runs[0] == runs[1]
