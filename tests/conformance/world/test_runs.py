"""Runs and where they come from: findings that are kept, files, seeds, controls."""

import json
from pathlib import Path

import pytest

from kspec.conformance.world.runs.findings import FINDINGS, control_of, finding_run
from kspec.conformance.world.runs.run import (
    NoRunError,
    WorldRun,
    first_leader,
    load_run,
    metadata_at_once,
    model_for,
    release_of,
    slot_of,
    trace_of_moves,
    with_real_broker,
)
from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.reference import explore
from kspec.model_check.reports.report import exploration_as_json
from kspec.model_check.traces.itf import as_itf

SMALL = {"elections": 0, "endless_lag": True}


def is_lost(run: WorldRun) -> bool:
    """Whether the real broker ends without a record that was acknowledged."""
    last = run.trace[-1].state
    told = {placed.record for placed in slot_of(run.model, last, "clients").told}
    return bool(told - set(slot_of(run.model, last, "log", run.real).log.records))


def violates(run: WorldRun, name: str) -> bool:
    prop = run.model.property_named(name)
    assert prop is not None
    holds = prop.bind()
    return not all(holds(step.state) for step in run.trace)


@pytest.mark.parametrize("kafka", ["4.4.0", "3.9.2"])
@pytest.mark.parametrize("name", FINDINGS)
def test_a_kept_finding_is_a_run_to_the_loss_and_its_control_is_not(name: str, kafka: str) -> None:
    run, control = finding_run(name, kafka), control_of(name, kafka)
    assert violates(run, FINDINGS[name].invariant)
    assert is_lost(run)
    assert not violates(control, FINDINGS[name].invariant)
    assert not is_lost(control)
    produced = [move for move in control.moves if move[0] == "Produce"]
    assert produced, "the control writes the same record"


def test_the_release_of_a_version() -> None:
    named = {"4.4.0": "4.4", "3.9.2": "3.9.1", "3.9.0": "3.9", "4.0.0": "4.0", "4.1.2": "4.1.1", "4.1.0": "4.1"}
    assert {kafka: release_of(kafka) for kafka in named} == named
    with pytest.raises(NoRunError, match=r"knows no release '3\.8\.1' there"):
        release_of("3.8.1")


def walk_of(seed: int) -> WorldRun:
    return load_run(f"seed:{seed}", "4.4.0", SMALL)


def test_the_same_seed_gives_the_same_walk() -> None:
    assert walk_of(3).moves == walk_of(3).moves != walk_of(4).moves
    assert walk_of(3).real == first_leader(walk_of(3).moves)


def test_a_kept_run_an_itf_file_and_a_report_replay(tmp_path: Path) -> None:
    run = walk_of(3)
    kept, itf, report = tmp_path / "kept.json", tmp_path / "itf.json", tmp_path / "report.json"
    kept.write_text(json.dumps(run.as_json()))
    assert load_run(str(kept), "4.4.0", {}).moves == run.moves
    itf.write_text(json.dumps(as_itf(run.model, run.trace, "a walk")))
    assert load_run(str(itf), "4.4.0", SMALL).moves == run.moves
    prop = run.model.property_named("SomeAcknowledged") or run.model.properties[0]
    found = explore(run.model, [prop], Limits(max_states=2000))
    report.write_text(json.dumps(exploration_as_json(found)))
    (verdict,) = found.verdicts
    if verdict.trace is None:
        with pytest.raises(NoRunError, match="no property there has a run"):
            load_run(str(report), "4.4.0", {})
    else:
        assert len(load_run(str(report), "4.4.0", {}).moves) == len(verdict.trace) - 1


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("nowhere", "neither a finding, nor a study, nor a file"),
        ("seed:x", "the seed is a number"),
        ("fenced-replica", "is of a weakened rule"),
        ("diverging-epochs", "neither|whose fetches are no messages"),
    ],
)
def test_what_is_no_run(source: str, complaint: str) -> None:
    with pytest.raises(NoRunError, match=complaint):
        load_run(source, "4.4.0", {})


def test_a_file_without_a_run(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text("{}")
    with pytest.raises(NoRunError, match="holds no run"):
        load_run(str(file), "4.4.0", {})
    file.write_text("[")
    with pytest.raises(NoRunError, match=r"run\.json"):
        load_run(str(file), "4.4.0", {})


def test_a_step_that_is_not_possible() -> None:
    model = model_for("4.4.0", SMALL)
    moves = [
        ("CreatePartition", {"leader": 1}),
        ("Produce", {"leader": 1}),
        ("ReplayMetadata", {"broker": 1, "decisions": 1}),
    ]
    with pytest.raises(NoRunError, match=r"step 2 .* is not possible by the rules of 4\.4"):
        trace_of_moves(model, moves)
    assert [step.action.name for step in trace_of_moves(model, moves, skip=True) if step.action] == [
        "CreatePartition",
        "ReplayMetadata",
    ]


def test_who_is_real() -> None:
    run = walk_of(3)
    assert with_real_broker(run, 2).real == 2
    assert with_real_broker(run, None) is run
    with pytest.raises(NoRunError, match="the run has brokers 1 to 3"):
        with_real_broker(run, 4)


def test_the_control_reads_each_decision_at_once() -> None:
    control = metadata_at_once(finding_run("forgotten-proposal", "4.4.0"))
    for step in control.trace[2:]:
        reads = step.action is not None and step.action.name == "ReplayMetadata"
        assert reads or len(slot_of(control.model, step.state, "metadata", control.real)) <= 2
