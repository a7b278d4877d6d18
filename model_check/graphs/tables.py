"""State graphs as tables: Parquet files of states and of transitions. `docs/graphs.md` has the schema."""

import json
import typing
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from kspec.model_check.core.model import Slot
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.traces.columns import arrow_type, column_name, model_as_metadata, slot_type
from kspec.model_check.traces.encode import as_json

ROWS_PER_GROUP = 1 << 17
GROUPS_PER_FILE = 32

Id = pyarrow.int64()


def write_tables(graph: StateGraph, folder: Path) -> None:
    """Write the folders `states` and `transitions`, each with one or more files."""
    described = model_as_metadata(graph.model)
    schema, columns = _states(graph, described)
    _write(folder / "states", schema, columns, graph.states)
    schema, columns = _transitions(graph, described)
    _write(folder / "transitions", schema, columns, len(graph.transitions))


Columns = dict[str, typing.Callable[[slice], pyarrow.Array]]
"""For each column, a function that gives its content for some rows."""


def _states(graph: StateGraph, described: dict[str, str]) -> tuple[pyarrow.Schema, Columns]:
    fields = [("id", Id), ("depth", pyarrow.int32())]
    columns: Columns = {
        "id": lambda rows: pyarrow.array(range(rows.start, rows.stop), Id),
        "depth": lambda rows: pyarrow.array(graph.depth[rows]),
    }
    for slot in graph.model.slots:
        fields.append((column_name(slot), slot_type(slot)))
        columns[column_name(slot)] = _slot_column(graph, slot)
    return pyarrow.schema(fields, described), columns


def _slot_column(graph: StateGraph, slot: Slot) -> typing.Callable[[slice], pyarrow.Array]:
    values, kind = graph.values_of(slot.position), arrow_type(slot.holds)
    encoded = [as_json(value) for value in values.known]
    known = pyarrow.array([json.dumps(value) for value in encoded] if kind is None else encoded, slot_type(slot))
    return lambda rows: known.take(pyarrow.array(values.numbers[rows]))


def _transitions(graph: StateGraph, described: dict[str, str]) -> tuple[pyarrow.Schema, Columns]:
    transitions, source = graph.transitions, graph.transitions.source
    word = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    schema = pyarrow.schema([("source", Id), ("action", word), ("arguments", word), ("target", Id)], described)
    names = [action.name for action in graph.model.actions]
    arguments = [json.dumps(as_json(action.args)) for action in graph.model.actions]
    return schema, {
        "source": lambda rows: pyarrow.array(source[rows]).cast(Id),
        "action": lambda rows: _words(transitions.action[rows], names),
        "arguments": lambda rows: _words(transitions.action[rows], arguments),
        "target": lambda rows: pyarrow.array(transitions.target[rows]).cast(Id),
    }


def _words(numbers: Any, words: list[str]) -> pyarrow.Array:
    """A column of words, given by their numbers. A word that occurs twice in the list counts as one."""
    known = list(dict.fromkeys(words))
    places = pyarrow.array([known.index(word) for word in words], pyarrow.int32())
    return pyarrow.DictionaryArray.from_arrays(places.take(pyarrow.array(numbers)), known)


def _write(folder: Path, schema: pyarrow.Schema, columns: Columns, rows: int) -> None:
    folder.mkdir(parents=True)
    rows_per_file = ROWS_PER_GROUP * GROUPS_PER_FILE
    for number, first in enumerate(range(0, max(rows, 1), rows_per_file)):
        with pyarrow.parquet.ParquetWriter(folder / f"part-{number:05}.parquet", schema, compression="zstd") as writer:
            for begin in range(first, min(rows, first + rows_per_file), ROWS_PER_GROUP):
                chosen = slice(begin, min(rows, begin + ROWS_PER_GROUP))
                content = [columns[name](chosen) for name in schema.names]
                writer.write_table(pyarrow.Table.from_arrays(content, schema=schema))
