"""Runs in few lines: what changed, brokers that say the same together, the violating step marked."""

import pytest

from kspec.model_check.core.exploration import Limits, Trace
from kspec.model_check.core.model import Model, State, then, when
from kspec.model_check.engines.reference import explore
from kspec.model_check.explorer.verdicts import reasons
from kspec.model_check.traces.compact import compact_run
from tests.model_check.traces.test_traces import loss


def lines_of(columns: int, monkeypatch: pytest.MonkeyPatch, *violated: str) -> list[str]:
    """The lines of the loss of KIP-101 on a terminal of so many columns."""
    monkeypatch.setenv("COLUMNS", str(columns))
    model, trace = loss()
    return compact_run(model, trace, violated, reasons(model, violated, trace[-1].state)).splitlines()


def test_brokers_that_say_the_same_stand_together(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(100, monkeypatch)
    assert lines[:4] == [
        "    1  initial state",
        "       all brokers  log             empty",
        "                    high watermark  0",
        "       controller   partition       nobody leads, ISR {1, 2}",
    ]


def test_each_step_has_what_it_changed_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(100, monkeypatch)
    step = lines.index("    6  FollowerReplicate  follower 2, leader 1")
    assert lines[step + 1] == "       broker 2     log             empty -> m0(e0)"
    assert lines[step + 2] == "    7  LeaderIncHighWatermark  leader 1"
    assert not any("in the end" in line for line in lines)


def test_a_value_before_the_step_is_left_out_where_it_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    wide, narrow = lines_of(100, monkeypatch), lines_of(76, monkeypatch)
    said = "controller   partition       "
    assert any(line.strip() == f"{said}nobody leads, ISR {{1, 2}} -> 1 leads in epoch 0, ISR {{1, 2}}" for line in wide)
    assert any(line.strip() == f"{said}-> 1 leads in epoch 0, ISR {{1, 2}}" for line in narrow)


@pytest.mark.parametrize("columns", [50, 80, 100, 120])
def test_no_line_is_longer_than_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(map(len, lines_of(columns, monkeypatch, "CommittedOnNextLeader"))) <= columns


def test_the_violating_step_is_marked_and_says_by_which_record(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = lines_of(100, monkeypatch, "CommittedOnNextLeader")
    marked = [line for line in lines if line.startswith(">>")]
    assert [line[:12] for line in marked] == [">>  9  Becom", ">>     Commi"]
    assert lines[-2:] == [
        ">>     CommittedOnNextLeader fails here",
        "       offset 0: m0(e0) in committed 1, nothing in log of broker 2",
    ]


def test_a_run_that_violates_nothing_has_no_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not any(">>" in line for line in lines_of(100, monkeypatch))


def counting(of: int) -> tuple[Model, Trace]:
    """A model without brokers, whose only value is its controller's."""
    model = Model("counter", {})
    slot = model.slot("controller", 0)
    model.action("Count", {}, [when(lambda value: value < of, slot)], [then(slot, lambda value: value + 1, slot)])
    model.always("Few", [when(lambda value: value < of, slot)], "few are counted")
    trace = explore(model, model.properties, Limits()).verdicts[0].trace
    assert trace is not None
    return model, trace


def test_a_value_that_is_its_partys_only_one_needs_no_name() -> None:
    model, trace = counting(2)
    assert compact_run(model, trace, ["Few"]).splitlines() == [
        "    1  initial state",
        "       controller    0",
        "    2  Count",
        "       controller    0 -> 1",
        ">>  3  Count",
        "       controller    1 -> 2",
        ">>     Few fails here",
    ]


def test_a_state_that_violates_at_once_is_marked() -> None:
    model, trace = counting(0)
    assert compact_run(model, trace, ["Few"]).splitlines()[0] == ">>  1  initial state"


def test_no_record_is_named_where_none_differs() -> None:
    model, trace = counting(1)
    state: State = trace[-1].state
    assert reasons(model, ["Few", "deadlock freedom"], state) == []
