"""State graphs as files: Parquet, GraphML and DOT."""

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kspec.model_check.core.model import State
from kspec.model_check.extras import need
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.traces.encode import in_words
from kspec.model_check.traces.render import action_in_words, field_name, owner, party_name

if TYPE_CHECKING:
    import graphviz

MOST_STATES_AS_GRAPHML = 100_000
"""Beyond this many, programs that read GraphML run out of memory, and a drawing shows nothing."""

MOST_STATES_AS_DOT = 500
"""Beyond this many, Graphviz takes minutes and a drawing cannot be read."""


class GraphFileError(ValueError):
    """A file that cannot be written, or a format that does not suit this graph."""


class Format(NamedTuple):
    """A file format: the libraries that it needs, the most states that it is meant for, and the function that writes it."""

    libraries: tuple[str, ...]
    most_states: int | None
    write: Callable[[StateGraph, Path], None]


def format_of(path: Path, name: str | None) -> str:
    """The format by name or, without one, by the file's suffix."""
    chosen = name or path.suffix.lstrip(".").lower()
    if chosen not in FORMATS:
        known = ", ".join(FORMATS)
        if name:
            raise GraphFileError(f"there is no format {name!r}; formats: {known}")
        raise GraphFileError(f"{path} does not tell the format: end it with .{', .'.join(FORMATS)}, or give --format")
    return chosen


def prepare(path: Path, name: str) -> None:
    """Make sure that the graph can be written once it exists."""
    need(FORMATS[name].libraries, f"--format {name}")
    if name == "parquet" and path.exists():
        raise GraphFileError(f"{path} exists already: remove it, or choose another name")
    if not os.access(path.parent, os.W_OK):
        raise GraphFileError(f"cannot write {path}: {path.parent} is not a folder that can be written to")
    if path.is_dir():
        raise GraphFileError(f"cannot write {path}: it is a folder")


def most_states(name: str) -> int | None:
    """The most states that a format is meant for; `None` for any number."""
    return FORMATS[name].most_states


def too_large(name: str) -> GraphFileError:
    """The error for a graph with more states than a format is meant for."""
    most = most_states(name) or 0
    better = [other for other, form in FORMATS.items() if form.most_states is None or form.most_states > most]
    return GraphFileError(
        f"--format {name} is for {most:,} states at most, and this graph has more: use --format {' or '.join(better)},"
        " or smaller bounds"
    )


def write_graph(graph: StateGraph, path: Path, name: str) -> None:
    """Write a graph. The file or folder appears under its name only when it is complete."""
    most = most_states(name)
    if most is not None and graph.states > most:
        raise too_large(name)
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        FORMATS[name].write(graph, folder / path.name)
        os.replace(folder / path.name, path)
    except OSError as error:
        raise GraphFileError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write_parquet(graph: StateGraph, path: Path) -> None:
    from kspec.model_check.graphs.tables import write_tables  # noqa: PLC0415

    write_tables(graph, path)


def _write_graphml(graph: StateGraph, path: Path) -> None:
    import networkx  # noqa: PLC0415 (needs the extra)

    theirs = networkx.MultiDiGraph(model=graph.model.name)
    depth = graph.depth.tolist()
    for number in range(graph.states):
        theirs.add_node(number, depth=depth[number], **_slots(graph, graph.state(number)))
    actions = [{"action": action.name, "label": action_in_words(action)} for action in graph.model.actions]
    transitions = graph.transitions
    ends = zip(transitions.source.tolist(), transitions.target.tolist(), transitions.action.tolist(), strict=True)
    for number, (source, target, action) in enumerate(ends):
        theirs.add_edge(source, target, number, **actions[action])
    networkx.write_graphml(theirs, path, prettyprint=False)


def _slots(graph: StateGraph, state: State) -> dict[str, Any]:
    return {
        slot.label: value if type(value) is int else in_words(value)
        for slot, value in zip(graph.model.slots, state, strict=True)
    }


def _write_dot(graph: StateGraph, path: Path) -> None:
    path.write_text(as_dot(graph).source, encoding="utf-8")


def as_dot(graph: StateGraph) -> "graphviz.Digraph":
    """A drawing: states of one depth side by side, and states without outgoing transitions with a double frame."""
    import graphviz  # noqa: PLC0415 (needs the extra)

    drawing = graphviz.Digraph(
        graph.model.name,
        graph_attr={"rankdir": "TB"},
        node_attr={"shape": "box", "fontname": "sans-serif", "fontsize": "10"},
        edge_attr={"fontname": "sans-serif", "fontsize": "9"},
    )
    first = graph.transitions.first
    for depth, size in enumerate(graph.levels):
        with drawing.subgraph() as level:
            level.attr(rank="same")
            for number in range(graph.first_of_level[depth], graph.first_of_level[depth] + size):
                last = first[number] == first[number + 1]
                level.node(str(number), _label(graph, number), peripheries="2" if last else "1")
    transitions = graph.transitions
    for source, target, action in zip(transitions.source, transitions.target, transitions.action, strict=True):
        drawing.edge(str(source), str(target), graphviz.escape(action_in_words(graph.model.actions[action])))
    return drawing


def _label(graph: StateGraph, number: int) -> str:
    """The text in a state's box: what each party holds, one line for each party."""
    import graphviz  # noqa: PLC0415 (needs the extra)

    held: dict[str, list[str]] = {}
    for slot, value in zip(graph.model.slots, graph.state(number), strict=True):
        if not slot.bookkeeping:
            held.setdefault(party_name(owner(slot)), []).append(f"{field_name(slot)} {in_words(value)}")
    lines = [f"state {number}", *(f"{party}: {'; '.join(texts)}" for party, texts in held.items())]
    return "".join(f"{graphviz.escape(line)}\\l" for line in lines)


FORMATS = {
    "parquet": Format(("pyarrow",), None, _write_parquet),
    "graphml": Format(("networkx",), MOST_STATES_AS_GRAPHML, _write_graphml),
    "dot": Format(("graphviz",), MOST_STATES_AS_DOT, _write_dot),
}
