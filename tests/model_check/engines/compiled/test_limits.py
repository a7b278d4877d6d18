"""Limits, progress, interruption and the memory guard of the compiled engine."""

import signal
from pathlib import Path

import pytest

from kspec.model_check.core.exploration import Limits, Progress
from kspec.model_check.engines import reference
from kspec.model_check.engines.compiled import explore, search, store
from tests.model_check.engines.comparison import assert_replays, model_of, numbers_of

PARAMETERS = {"replicas": 2, "max_epoch": 2}


def test_stops_at_the_first_violation() -> None:
    model = model_of("truncate-to-hw", PARAMETERS)
    properties = [prop for prop in model.properties if prop.name == "WeakIsr"]
    found = explore(model, properties, Limits(), 1)
    expected = reference.explore(model, properties, Limits())
    assert found.stopped_because == expected.stopped_because == "a property is violated"
    (verdict,) = found.verdicts
    assert verdict.trace is not None
    assert verdict.trace != ()
    assert len(verdict.trace) == len(expected.verdicts[0].trace or ())
    assert_replays(model, verdict.trace)


def test_violated_at_the_start() -> None:
    model = model_of("kip-320", PARAMETERS)
    properties = [prop for prop in model.properties if prop.name == "LeaderInIsr"]
    found = explore(model, properties, Limits(), 1)
    assert found.violated
    assert numbers_of(found)["verdicts"] == {"LeaderInIsr": (False, 1)}


@pytest.mark.parametrize("most", [1, 100, 1000])
def test_a_limit_on_states(most: int) -> None:
    model = model_of("kip-320", PARAMETERS)
    found = explore(model, model.properties, Limits(stop_at_first=False, max_states=most), 1)
    assert found.stopped_because == f"the limit of {most:,} states is reached"
    assert most <= found.distinct_states <= most + 1000
    assert not found.complete
    assert all(verdict.holds is not True for verdict in found.verdicts if verdict.prop.kind == "always")


def test_a_limit_on_time() -> None:
    model = model_of("kip-320", PARAMETERS)
    found = explore(model, [], Limits(stop_at_first=False, max_seconds=0), 1)
    assert found.stopped_because == "the time limit of 0 s is reached"


def test_reports_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BLOCK", 256)
    reports: list[Progress] = []
    model = model_of("kip-320", PARAMETERS)
    found = explore(model, [], Limits(stop_at_first=False, report=reports.append, report_every=0), 1)
    assert [report.distinct_states for report in reports] == sorted(report.distinct_states for report in reports)
    assert reports[-1].distinct_states <= found.distinct_states
    assert {report.level for report in reports} == set(range(1, found.depth + 1))


@pytest.mark.parametrize("raised", [False, True])
def test_interruption_leaves_consistent_counts(raised: bool) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.distinct_states > 500:
            if raised:
                raise KeyboardInterrupt
            signal.raise_signal(signal.SIGINT)

    model, before = model_of("kip-320", PARAMETERS), signal.getsignal(signal.SIGINT)
    found = explore(model, model.properties, Limits(stop_at_first=False, report=interrupt, report_every=0), 2)
    assert found.stopped_because == "interrupted"
    whole = reference.explore(model, [], Limits(stop_at_first=False))
    assert 500 < found.distinct_states < whole.distinct_states
    assert found.levels[:-1] == whole.levels[: len(found.levels) - 1]
    assert signal.getsignal(signal.SIGINT) is before


def test_stops_before_memory_runs_out() -> None:
    model = model_of("kip-320", PARAMETERS)
    found = explore(model, [], Limits(stop_at_first=False), 1, memory=40_000)
    assert found.stopped_because is not None
    assert "memory" in found.stopped_because
    assert 1 < found.distinct_states < 5_973


def test_stops_when_the_system_has_no_memory_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "available_memory", lambda: 1 << 20)
    found = explore(model_of("kip-320", PARAMETERS), [], Limits(stop_at_first=False), 1)
    assert found.stopped_because == "memory is nearly exhausted: 1 MB are left"


def test_memory_of_a_control_group(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Files that the group has read or written do not count as memory in use: they are given up when it is needed."""
    monkeypatch.setattr(store, "CONTROL_GROUP", tmp_path)
    whole = store.available_memory()
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("900000\n")
    assert store.available_memory() > whole // 2
    (tmp_path / "memory.max").write_text("1000000\n")
    assert store.available_memory() == 100_000
    assert store.physical_memory() == 1_000_000
    (tmp_path / "memory.stat").write_text("anon 300000\nfile 600000\ninactive_file 550000\nactive_file 50000\n")
    assert store.available_memory() == 650_000
