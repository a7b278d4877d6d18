"""Runs of model `controller` as moves."""

import json
from pathlib import Path

import pytest

from kspec.conformance.mirror.from_model import ModelAction, UnusableRunError, model_for, read_run, run_of_model, walk
from kspec.conformance.mirror.moves import CreatePartition, Heartbeat, Propose, Reassign
from kspec.conformance.mirror.named import NAMED
from kspec.conformance.mirror.runs import rules_of, run_as_json
from kspec.model_check.core.exploration import TraceStep
from kspec.model_check.traces.itf import as_itf
from kspec.spec.values import BrokerId

RULES = rules_of("4.4.0")
SMALL = {"brokers": 3, "replicas": 3, "reassignments": 1, "fencings": 2}

ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)

ELECTED = [
    ModelAction("CreatePartition", {"replicas": (1, 2, 3)}),
    ModelAction("Fence", {"broker": 1, "successor": 3}),
    ModelAction("AlterIsr", {"member": 2, "successor": 3}),
]


def test_each_step_becomes_a_move_with_the_partition_after_it() -> None:
    run = run_of_model("elected", ELECTED, RULES, SMALL)
    assert [step.move for step in run.steps if step.of] == [
        CreatePartition((ONE, TWO, THREE)),
        Heartbeat(ONE, want_fence=True),
        Propose((TWO,)),
    ]
    leaders = [step.after.leader for step in run.steps if step.after is not None]
    assert leaders == [1, 3, 3]


def test_another_preferred_replica_is_a_reassignment_before() -> None:
    """1, 2 and 3 in this order would elect 2; the model's step elects 3."""
    run = run_of_model("elected", ELECTED, RULES, SMALL)
    (reordered,) = [step.move for step in run.steps if not step.of]
    assert isinstance(reordered, Reassign)
    assert sorted(reordered.replicas) == [1, 2, 3]
    assert reordered.replicas.index(3) < reordered.replicas.index(2)


def test_a_step_that_the_rules_do_not_take() -> None:
    with pytest.raises(UnusableRunError, match=r"step 2, Unfence.* is not possible with the rules of 4\.3"):
        run_of_model("odd", [ELECTED[0], ModelAction("Unfence", {"broker": 1, "successor": 1})], RULES, SMALL)


def test_walks_are_runs_and_the_same_seed_is_the_same_walk() -> None:
    run = walk(5, RULES, SMALL)
    assert run == walk(5, RULES, SMALL)
    assert len(run.steps) > 5


def test_files_of_each_kind(tmp_path: Path) -> None:
    model = model_for(RULES, SMALL)
    trace = [TraceStep(None, model.initial)]
    for taking in ELECTED:
        (action,) = [one for one in model.actions if (one.name, dict(one.args)) == (taking.name, dict(taking.args))]
        after = action.bind()(trace[-1].state)
        assert after is not None
        trace.append(TraceStep(action, after))
    itf = tmp_path / "trace.itf.json"
    itf.write_text(json.dumps(as_itf(model, tuple(trace), "three steps")))
    wanted = run_of_model("trace.itf.json", ELECTED, RULES, SMALL)
    assert read_run(itf, RULES, SMALL) == wanted
    steps = [{"action": None, "args": {}}, *({"action": one.name, "args": one.args} for one in ELECTED)]
    bounds = {"brokers": 3, "replicas": 3, "reassignments": 1, "fencings": 2, "release": "next", "mutant": None}
    checked = tmp_path / "checked.json"
    checked.write_text(
        json.dumps({"model": "controller", "parameters": bounds, "properties": [{"name": "P", "trace": steps}]})
    )
    assert read_run(checked, RULES, {}).steps == wanted.steps
    ours = tmp_path / "ours.json"
    ours.write_text(json.dumps(run_as_json(NAMED["elections"]())))
    assert read_run(ours, RULES, {}) == NAMED["elections"]()


@pytest.mark.parametrize("content", ["{}", "[]", "no JSON", '{"model": "controller", "properties": []}', '{"steps": [{}]}'])
def test_what_is_no_run_is_one_line(tmp_path: Path, content: str) -> None:
    file = tmp_path / "odd.json"
    file.write_text(content)
    with pytest.raises(UnusableRunError) as raised:
        read_run(file, RULES, {})
    assert "\n" not in str(raised.value)
