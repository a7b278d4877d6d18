"""Traces for people and for programs: tables, diagrams, JSON."""

import json
from functools import cache

from kspec.model_check.core.exploration import Limits, Trace
from kspec.model_check.core.model import Model
from kspec.model_check.engines.reference import explore
from kspec.model_check.explorer.marks import remarks_of
from kspec.model_check.models import MODELS
from kspec.model_check.traces.encode import as_json, in_words, state_as_json, trace_as_json
from kspec.model_check.traces.itf import as_itf
from kspec.model_check.traces.mermaid import sequence_diagram
from kspec.model_check.traces.render import parties, sequence_text, trace_table
from kspec.spec.broker.rules.isr.proposal import LeaderIsr, PartitionIsr
from kspec.spec.log.record_log import EMPTY_LOG, RecordLog
from kspec.spec.published.replica import NO_ROLE
from kspec.spec.values import NO_LEADER, BrokerId, Epoch, Error, LeaderAndIsr, Offset, PartitionEpoch, Record

ISR = frozenset({BrokerId(2), BrokerId(1)})


@cache
def loss() -> tuple[Model, Trace]:
    """KIP-101's first scenario: a follower restarts, truncates to its high watermark, and may be elected."""
    model = MODELS["truncate-to-hw"].build({"replicas": 2, "max_epoch": 1, "restarts": 1})
    claim = model.property_named("CommittedOnNextLeader")
    assert claim is not None
    trace = explore(model, [claim], Limits()).verdicts[0].trace
    assert trace is not None
    return model, trace


def test_values_in_words() -> None:
    log = RecordLog((Record(0, Epoch(0)), Record(1, Epoch(2))), opened_epoch=Epoch(3))
    assert in_words(log) == "m0(e0) m1(e2) +e3"
    assert in_words(EMPTY_LOG) == "empty"
    assert in_words(NO_ROLE) == "none"
    assert in_words(LeaderAndIsr(BrokerId(1), Epoch(4), ISR)) == "1 leads in epoch 4, ISR {1, 2}"
    assert in_words(LeaderAndIsr(NO_LEADER, Epoch(4), ISR)) == "nobody leads in epoch 4, ISR {1, 2}"
    assert in_words(PartitionIsr(ISR, PartitionEpoch(3))) == "ISR {1, 2}, partition epoch 3"
    pending = LeaderIsr(frozenset({BrokerId(1)}), PartitionEpoch(3), ISR, PartitionEpoch(3))
    assert in_words(pending) == "ISR {1}, partition epoch 3, pending {1, 2}"


def test_values_as_json() -> None:
    assert as_json(LeaderAndIsr(BrokerId(1), Epoch(4), ISR)) == {"leader": 1, "leader_epoch": 4, "isr": [1, 2]}
    assert as_json(EMPTY_LOG) == {"records": [], "start_offset": 0, "opened_epoch": -1}
    assert as_json(Error.FENCED_LEADER_EPOCH) == "FENCED_LEADER_EPOCH"
    assert as_json({"epoch": Epoch(1), "isr": (1, 2)}) == {"epoch": 1, "isr": [1, 2]}
    assert as_json(Offset(3)) == 3


def test_a_table_shows_what_changed_and_how_it_ends() -> None:
    table = trace_table(*loss()).splitlines()
    assert table[0] == "1  initial state"
    step = table.index("6  FollowerReplicate  follower 2, leader 1")
    assert table[step + 1] == "     broker 2    log             empty -> m0(e0)"
    assert table[step + 2].startswith("7  LeaderIncHighWatermark")
    assert "   in the end" in table
    assert table[-1] == "     controller  partition       1 leads in epoch 0, ISR {1, 2}"


def test_a_full_table_shows_every_slot_of_brokers_and_controller_in_every_state() -> None:
    model, trace = loss()
    table = trace_table(model, trace, full=True)
    assert table.count("broker 1    log") == len(trace)
    assert "nextRecord" not in table  # the model's bookkeeping is no broker's


def test_a_sequence_diagram_in_text_draws_each_message_once() -> None:
    model, trace = loss()
    drawing = sequence_text(model, trace).splitlines()
    assert drawing[0].split() == ["producer", "controller", "broker", "1", "broker", "2"]
    assert sum("write a record" in line for line in drawing) == 1
    assert sum(line.rstrip().endswith(">|") or ">|" in line for line in drawing) >= 5
    assert any(line.startswith(" 9 ") for line in drawing)
    assert any("restarts, with its log" in line for line in drawing)


def test_a_mermaid_diagram_names_every_party_and_ends_no_statement_early() -> None:
    model, trace = loss()
    lines = sequence_diagram(model, trace).splitlines()
    assert lines[0] == "sequenceDiagram"
    assert [line.split()[1] for line in lines if "participant" in line] == ["producer", "controller", "b1", "b2"]
    assert "    b2->>b1: Fetch" in lines
    assert not any(";" in line for line in lines)
    for line in lines[1:]:
        assert line.startswith(("    participant ", "    %% ", "    Note over ")) or "->>" in line


def test_a_diagram_has_what_became_of_records_at_the_brokers_and_marks_the_step_that_violates() -> None:
    model = MODELS["truncate-to-hw"].build({"replicas": 2, "max_epoch": 1, "restarts": 1, "acks": "all"})
    claim = model.property_named("AcknowledgedOnLeader")
    assert claim is not None
    trace = explore(model, [claim], Limits()).verdicts[0].trace
    assert trace is not None
    drawn = sequence_diagram(model, trace, remarks_of, ["AcknowledgedOnLeader", "TypeOk"])
    lines = drawn.splitlines()
    assert "    Note over b1: ▣ m0(e0) at offset 0: committed" in lines
    assert "    Note over producer: ✓ m0(e0) at offset 0: acknowledged" in lines
    assert "    Note over b2: ✕ m0(e0) at offset 0: lost" in lines
    assert "controller: acknowledged" not in drawn
    assert "producer: acknowledged" not in drawn  # it is said once, by the mark
    begins = lines.index("    rect rgba(200, 60, 20, 0.15)")
    assert lines[begins + 1] == f"    %% {len(trace)}: BecomeLeader  leader 2, epoch 1"
    assert lines[-2:] == ["    Note over producer,b2: ✕ AcknowledgedOnLeader fails here", "    end"]
    text = sequence_text(model, trace, remarks_of, ["AcknowledgedOnLeader"]).splitlines()
    assert text[-1] == ">>  AcknowledgedOnLeader fails here"
    assert sum("✕ m0(e0) at offset 0: lost" in line for line in text) == 1


def test_a_diagram_of_a_run_without_a_failure_marks_nothing() -> None:
    model, trace = loss()
    assert "rect" not in sequence_diagram(model, trace[:-1], remarks_of, ["CommittedOnNextLeader"])
    assert ">>" not in sequence_text(model, trace[:-1], remarks_of, ["CommittedOnNextLeader"])


def test_parties_appear_only_where_they_take_part() -> None:
    model, trace = loss()
    assert parties(model, trace[:2]) == ["controller", 1, 2]
    assert parties(model, trace) == ["producer", "controller", 1, 2]


def test_a_trace_as_json_is_complete_and_serialisable() -> None:
    model, trace = loss()
    steps = json.loads(json.dumps(trace_as_json(model, trace)))
    assert len(steps) == len(trace)
    assert steps[0] == {"action": None, "args": {}, "state": state_as_json(model, model.initial)}
    assert steps[4]["action"] == "LeaderWrite"
    assert steps[4]["args"] == {"leader": 1}
    assert steps[4]["state"]["log"]["1"]["records"] == [{"value": 0, "leader_epoch": 0}]


def test_an_itf_trace_keeps_sets_and_maps() -> None:
    model, trace = loss()
    document = as_itf(model, trace, "a loss")
    assert document["#meta"]["format"] == "ITF"
    assert document["vars"] == [
        "action",
        "args",
        "log",
        "highWatermark",
        "role",
        "partition",
        "nextRecord",
        "announcement",
        "restarts_left",
    ]
    state = document["states"][1]
    assert state["#meta"] == {"index": 1}
    assert state["action"] == "ControllerElectLeader"
    assert state["partition"]["isr"] == {"#set": [1, 2]}
    assert [key for key, _ in state["log"]["#map"]] == [1, 2]
    assert all(set(document["vars"]) <= set(state) for state in document["states"])
