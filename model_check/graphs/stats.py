"""Statistics of a state graph: levels, actions, degrees, strongly connected components, diameter."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from kspec.model_check.graphs.graph import StateGraph, Transitions
from kspec.model_check.traces.parameters import model_as_json

MOST_STATES_FOR_DIAMETER = 5_000
"""The exact diameter needs a search from every state: beyond this many states it is left out."""

ROWS_AT_A_TIME = 256
MOST_SHOWN = 10


@dataclass(frozen=True, slots=True)
class GraphStats:
    """The numbers of `kspec stats`.

    `in_degrees[d]` states have `d` incoming transitions, `out_degrees[d]` states have `d` outgoing ones. `components` has
    the number of strongly connected components (states that can all reach each other) of each size; a run can go round
    in those of more than one state. `eccentricity` is the number of steps from the initial state to the farthest one;
    `diameter` is the largest number of steps from any state to one that it reaches, `None` if it was not computed.
    """

    graph: StateGraph
    actions: dict[str, int]
    never_taken: list[str]
    in_degrees: list[int]
    out_degrees: list[int]
    components: dict[int, int]
    self_loops: int
    eccentricity: int
    diameter: int | None

    @property
    def states_in_cycles(self) -> int:
        """The number of states that a run can return to through other states."""
        return sum(size * number for size, number in self.components.items() if size > 1)

    @property
    def deadlocks(self) -> int:
        """The number of states that no transition leaves. Transitions out of the model's constraint do not count."""
        return self.out_degrees[0]


def adjacency(transitions: Transitions) -> csr_array:
    """The graph as a matrix with its own arrays, because a matrix may reorder them."""
    ones = np.ones(len(transitions), np.int8)
    return csr_array((ones, transitions.target.copy(), transitions.first.copy()), shape=(transitions.states,) * 2)


def stats_of(graph: StateGraph) -> GraphStats:
    """Compute all statistics of a graph."""
    transitions = graph.transitions
    taken = np.bincount(transitions.action, minlength=len(graph.model.actions)).tolist()
    by_name = dict.fromkeys(graph.model.action_names, 0)
    by_label = dict.fromkeys([action.label for action in graph.model.actions], 0)
    for action, times in zip(graph.model.actions, taken, strict=False):
        by_name[action.name] += times
        by_label[action.label] += times
    matrix = adjacency(transitions)
    _, labels = connected_components(matrix, connection="strong")
    sizes, numbers = np.unique(np.bincount(labels), return_counts=True)
    return GraphStats(
        graph=graph,
        actions=by_name,
        never_taken=[label for label, times in by_label.items() if not times],
        in_degrees=np.bincount(np.bincount(transitions.target, minlength=graph.states)).tolist(),
        out_degrees=np.bincount(np.diff(transitions.first)).tolist(),
        components=dict(zip(sizes.tolist(), numbers.tolist(), strict=True)),
        self_loops=int((transitions.source == transitions.target).sum()),
        eccentricity=len(graph.levels) - 1,
        diameter=_diameter(matrix) if graph.states <= MOST_STATES_FOR_DIAMETER else None,
    )


def _diameter(matrix: csr_array) -> int:
    """The longest of all shortest paths from one state to another, where there is a path."""
    longest = 0
    states = matrix.shape[0]
    for first in range(0, states, ROWS_AT_A_TIME):
        rows = range(first, min(states, first + ROWS_AT_A_TIME))
        distances: NDArray[np.float64] = dijkstra(matrix, indices=rows, unweighted=True)
        longest = max(longest, int(distances[np.isfinite(distances)].max()))
    return longest


def stats_as_json(stats: GraphStats) -> dict[str, Any]:
    """The object that `kspec stats --json` prints; see `docs/graphs.md`."""
    graph = stats.graph
    return {
        **model_as_json(graph.model),
        "states": graph.states,
        "transitions": len(graph.transitions),
        "levels": graph.levels,
        "actions": stats.actions,
        "never_taken": stats.never_taken,
        "in_degrees": stats.in_degrees,
        "out_degrees": stats.out_degrees,
        "deadlocks": stats.deadlocks,
        "self_loops": stats.self_loops,
        "components": {str(size): number for size, number in stats.components.items()},
        "states_in_cycles": stats.states_in_cycles,
        "eccentricity": stats.eccentricity,
        "diameter": stats.diameter,
    }


def stats_as_text(stats: GraphStats) -> str:
    """The report for people."""
    graph = stats.graph
    transitions = len(graph.transitions)
    cycles = {size: number for size, number in stats.components.items() if size > 1}
    lines = [
        f"{graph.model.name}: {graph.states:,} states, {transitions:,} transitions",
        "",
        f"  the farthest state is {stats.eccentricity} steps from the initial one (depth {len(graph.levels)})",
        _diameter_in_words(stats),
        f"  strongly connected components: {sum(stats.components.values()):,}, of which {sum(cycles.values()):,} have more"
        f" than one state",
    ]
    if cycles:
        lines.append(f"    the largest has {max(cycles):,} states; {stats.states_in_cycles:,} states lie on a cycle")
    lines += [
        f"  states that nothing leaves: {stats.deadlocks:,}; transitions from a state to itself: {stats.self_loops:,}",
        "",
        "  action taken" + " " * 27 + "times    share",
    ]
    for name, times in stats.actions.items():
        share = f"{100 * times / transitions:5.1f} %" if times else "never taken"
        lines.append(f"  {name:<36} {times:>10,}  {share}")
    unused = [label for label in stats.never_taken if stats.actions[label.split("(")[0]]]
    if unused:
        lines += ["", "  taken, but never with these arguments", *(f"    {label}" for label in unused[:MOST_SHOWN])]
        lines += [f"    and {len(unused) - MOST_SHOWN} more (--json has all)"] if len(unused) > MOST_SHOWN else []
    lines += ["", *_degrees_in_words("transitions out of a state", stats.out_degrees)]
    lines += ["", *_degrees_in_words("transitions into a state", stats.in_degrees)]
    lines += ["", "  steps from the initial state, and states so far away"]
    lines += [
        f"  {depth:>6}  {size:>12,}  {_bar(size, max(graph.levels))}".rstrip() for depth, size in enumerate(graph.levels)
    ]
    return "\n".join(lines)


def _diameter_in_words(stats: GraphStats) -> str:
    if stats.diameter is None:
        return f"  diameter: at least that; computed exactly up to {MOST_STATES_FOR_DIAMETER:,} states only"
    return f"  diameter: {stats.diameter}, the longest of the shortest ways between any two states"


def _degrees_in_words(title: str, degrees: list[int]) -> list[str]:
    """A distribution: each degree with how many states have it, the rare high ones together."""
    states = sum(degrees)
    mean = sum(degree * number for degree, number in enumerate(degrees)) / states
    lines = [f"  {title}: {mean:.2f} on average, {len(degrees) - 1} at most"]
    shown = degrees[:MOST_SHOWN]
    rest = sum(degrees[MOST_SHOWN:])
    rows = [(str(degree), number) for degree, number in enumerate(shown)] + ([(f"{len(shown)}+", rest)] if rest else [])
    most = max(number for _, number in rows)
    return lines + [f"  {label:>6}  {number:>12,}  {_bar(number, most)}".rstrip() for label, number in rows]


def _bar(number: int, most: int, width: int = 40) -> str:
    return "#" * (-(-number * width // most) if number else 0)
