"""State graphs in files: read back by the libraries that their users read them with."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import pyarrow
import pyarrow.parquet
import pytest

from kspec.model_check import extras
from kspec.model_check.graphs import files as graph_files
from kspec.model_check.graphs import tables as graph_tables
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.files import GraphFileError, as_dot, write_graph
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.traces.columns import arrow_type, column_name
from kspec.model_check.traces.encode import as_json
from kspec.spec.log.record_log import RecordLog
from kspec.spec.values import BrokerId, Error
from tests.model_check.commands import Command
from tests.model_check.engines.comparison import model_of

TINY = {"replicas": 2, "max_epoch": 0}


@pytest.fixture(scope="module")
def graph() -> StateGraph:
    return state_graph(model_of("kip-320", TINY), 1)


def read(folder: Path) -> list[dict[str, Any]]:
    table: list[dict[str, Any]] = pyarrow.parquet.read_table(folder).to_pylist()
    return table


def test_tables_hold_every_state_slot_by_slot_and_every_transition(
    graph: StateGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_tables, "ROWS_PER_GROUP", 7)
    monkeypatch.setattr(graph_tables, "GROUPS_PER_FILE", 3)
    folder = tmp_path / "graph.parquet"
    write_graph(graph, folder, "parquet")
    assert len(list((folder / "states").iterdir())) == -(-graph.states // 21)
    states = read(folder / "states")
    assert [row["id"] for row in states] == list(range(graph.states))
    for row in states:
        state = graph.state(row["id"])
        assert row["depth"] == graph.depth[row["id"]]
        for slot, value in zip(graph.model.slots, state, strict=True):
            assert row[column_name(slot)] == as_json(value)
    moves = read(folder / "transitions")
    assert len(moves) == len(graph.transitions)
    for row in moves:
        taken = [
            action
            for action in graph.model.actions
            if action.name == row["action"] and as_json(action.args) == json.loads(row["arguments"])
        ]
        assert graph.state(row["target"]) in [action.bind()(graph.state(row["source"])) for action in taken]


def test_tables_say_what_they_are_and_their_columns_do_not_depend_on_what_is_reached(
    graph: StateGraph, tmp_path: Path
) -> None:
    write_graph(graph, tmp_path / "a", "parquet")
    write_graph(state_graph(model_of("kip-320", {**TINY, "max_records": 0})), tmp_path / "b", "parquet")
    schemas = [pyarrow.parquet.read_schema(tmp_path / name / "states" / "part-00000.parquet") for name in "ab"]
    assert schemas[0] == schemas[1]
    assert schemas[0].field("log_1").type == arrow_type(RecordLog)
    assert schemas[0].metadata[b"kspec.model"] == b"kip-320"
    assert json.loads(schemas[0].metadata[b"kspec.parameters"])["max-epoch"] == 0


class MixedState(NamedTuple):
    either: int | frozenset[int]


def test_types_of_columns() -> None:
    sets = frozenset[frozenset[BrokerId]]
    assert arrow_type(sets) == pyarrow.list_(pyarrow.list_(pyarrow.int64()))
    assert arrow_type(Error) == arrow_type(str) == pyarrow.string()
    assert arrow_type(bool) == pyarrow.bool_()
    assert arrow_type(MixedState) is None
    assert arrow_type(tuple[int, str]) is None


def test_graphml_is_read_back(graph: StateGraph, tmp_path: Path) -> None:
    write_graph(graph, tmp_path / "graph.graphml", "graphml")
    theirs = networkx.read_graphml(tmp_path / "graph.graphml")
    assert (theirs.number_of_nodes(), theirs.number_of_edges()) == (graph.states, len(graph.transitions))
    assert theirs.nodes["0"]["partition"] == "nobody leads, ISR {1, 2}"
    assert theirs.nodes["0"]["highWatermark[1]"] == 0
    assert max(depth for _, depth in theirs.nodes(data="depth")) == len(graph.levels) - 1
    assert {label for *_, label in theirs.edges(data="action")} == set(graph.model.action_names)


def test_a_drawing_has_every_state_and_transition(graph: StateGraph) -> None:
    lines = as_dot(graph).source.splitlines()
    assert sum(" -> " in line for line in lines) == len(graph.transitions)
    assert sum("peripheries=" in line for line in lines) == graph.states
    assert sum("peripheries=2" in line for line in lines) == 8
    assert '\\lcontroller: partition nobody leads, ISR {1, 2}\\l" peripheries=1]' in lines[6]


def test_a_graph_too_large_for_a_format_is_refused(
    graph: StateGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = {**graph_files.FORMATS, "dot": graph_files.FORMATS["dot"]._replace(most_states=92)}
    monkeypatch.setattr(graph_files, "FORMATS", forms)
    with pytest.raises(GraphFileError, match=r"for 92 states at most.*--format parquet or graphml, or smaller bounds"):
        write_graph(graph, tmp_path / "graph.dot", "dot")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written_leaves_nothing_behind(graph: StateGraph, tmp_path: Path) -> None:
    (tmp_path / "graph.dot").mkdir()
    (tmp_path / "graph.dot" / "mine").touch()
    with pytest.raises(GraphFileError, match=r"cannot write .*graph\.dot"):
        write_graph(graph, tmp_path / "graph.dot", "dot")
    assert [path.name for path in tmp_path.iterdir()] == ["graph.dot"]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(extras.MissingExtraError, match=r"kspec graph needs nothing_such; .*\[graph\]"):
        extras.need(("json", "nothing_such"), "kspec graph")


def test_the_command_writes_once_and_tells_mistakes_in_a_line(command: Command, tmp_path: Path) -> None:
    arguments = ("graph", "kip-320", "--replicas", "2", "--max-epoch", "0", "--out", str(tmp_path / "g.parquet"))
    assert command(*arguments) == (0, f"{tmp_path}/g.parquet: 93 states, 168 transitions\n", "")
    assert {path.name for path in (tmp_path / "g.parquet").iterdir()} == {"states", "transitions"}
    done = command(*arguments)
    assert done.mistake == (2, 1)
    assert "exists already" in done.stderr
    for wrong, part in (
        (("--out", "graph.txt"), "end it with .parquet, .graphml, .dot, or give --format"),
        (("--out", "graph.txt", "--format", "txt"), "there is no format 'txt'; formats: parquet, graphml, dot"),
        (("--out", str(tmp_path / "g.dot")), "--format dot is for 500 states at most"),
        (("--out", "/nowhere/g.dot"), "/nowhere is not a folder that can be written to"),
    ):
        done = command("graph", "kip-320", *wrong)
        assert done.mistake == (2, 1)
        assert part in done.stderr
    done = command("graph", "kip-320", "--out", str(tmp_path / "h.parquet"), "--max-states", "50")
    assert done.mistake == (3, 1)
    assert "the limit of 50 states is reached" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["g.parquet"]
