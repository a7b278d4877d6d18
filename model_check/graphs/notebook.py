"""A state graph as HTML, for notebooks: its numbers, its levels, and a drawing if it is small."""

import numpy as np

from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.traces.markup import VIOLATION, Markup, element, folded, shown, table
from kspec.model_check.traces.parameters import parameters_in_words
from kspec.model_check.traces.render import action_in_words, state_in_lines

MOST_DRAWN = 120
"""States of a graph that is drawn: the lines of a larger one cannot be told apart."""

WIDEST = 720
"""Units across the drawings."""

LINE = {"fill": "none", "stroke": "currentColor", "stroke_opacity": "0.4"}
LABEL = {"text_anchor": "middle", "style": "fill: #1a1a1a", "pointer_events": "none"}
"""The looks of a transition, and of a state's number."""


def html_of_graph(graph: StateGraph) -> str:
    """The numbers of the graph, the states at each depth as bars, how often actions are taken, and a small graph itself."""
    taken = np.bincount(graph.transitions.action, minlength=len(graph.model.actions))
    by_name: dict[str, int] = {}
    for action, times in zip(graph.model.actions, taken.tolist(), strict=True):
        by_name[action.name] = by_name.get(action.name, 0) + times
    ends = int(np.count_nonzero(np.diff(graph.transitions.first) == 0))
    parts = [
        element("div", f"state graph of model {graph.model.name}", class_="title"),
        element("div", parameters_in_words(graph.model), class_="quiet"),
        element(
            "div",
            f"{graph.states:,} states, {len(graph.transitions):,} transitions, depth {len(graph.levels)};"
            f" nothing leaves {ends:,} of the states",
        ),
        _levels(graph),
        folded("transitions by action", table(("action", "times"), ((name, f"{n:,}") for name, n in by_name.items()))),
    ]
    if graph.states <= MOST_DRAWN:
        parts.append(_drawing(graph))
    return shown(*parts)


def _levels(graph: StateGraph) -> Markup:
    """The number of states at each depth, as bars."""
    width = max(2.0, min(24.0, WIDEST / len(graph.levels)))
    most, height = max(graph.levels), 80
    bars = [
        element(
            "rect",
            element("title", f"{states:,} states after {depth} steps"),
            x=f"{depth * width:.1f}",
            y=f"{height - states * height / most:.1f}",
            width=f"{width - 1:.1f}",
            height=f"{states * height / most:.1f}",
            fill="currentColor",
            fill_opacity="0.45",
        )
        for depth, states in enumerate(graph.levels)
    ]
    size = {"width": f"{width * len(graph.levels):.0f}", "height": str(height)}
    note = element("div", f"states by depth, 0 to {len(graph.levels) - 1}; {most:,} at most", class_="quiet")
    label = f"states by depth: {', '.join(map(str, graph.levels))}"
    drawn = element(
        "svg",
        *bars,
        **size,
        viewBox=f"0 0 {size['width']} {height}",
        role="img",
        aria_label=label,
    )
    return element("div", drawn, note)


def _drawing(graph: StateGraph) -> Markup:
    """The states by depth from above to below, and a line for each transition. Resting the pointer on one tells of it."""
    row, radius = 44, 9
    places = {}
    for depth, (first, many) in enumerate(zip(graph.first_of_level, graph.levels, strict=False)):
        for number in range(many):
            places[first + number] = ((number + 1) * WIDEST / (many + 1), row * (depth + 0.5))
    edges = []
    transitions = graph.transitions
    triples = zip(transitions.source.tolist(), transitions.target.tolist(), transitions.action.tolist(), strict=True)
    for source, target, number in triples:
        words = f"{source} to {target}: {action_in_words(graph.model.actions[number])}"
        (x, y), (to_x, to_y) = places[source], places[target]
        bend = 0 if to_y > y else row / 2 + radius
        path = f"M {x:.1f} {y:.1f} Q {(x + to_x) / 2 + bend:.1f} {(y + to_y) / 2:.1f} {to_x:.1f} {to_y:.1f}"
        edges.append(element("path", element("title", words), d=path, **LINE))
    stuck = np.diff(transitions.first) == 0
    nodes = []
    for number, (x, y) in places.items():
        words = "\n".join([f"state {number}", *(line.strip() for line in state_in_lines(graph.model, graph.state(number)))])
        circle = element(
            "circle",
            element("title", words),
            cx=f"{x:.1f}",
            cy=f"{y:.1f}",
            r=str(radius),
            fill="#cfe3f5",
            stroke=VIOLATION if stuck[number] else "#555",
            stroke_width="2" if stuck[number] else "1",
        )
        name = element("text", str(number), x=f"{x:.1f}", y=f"{y + 3:.1f}", **LABEL)
        nodes += [circle, name]
    height = row * len(graph.levels)
    note = element("div", "each state by its number, a thick frame where nothing leaves it", class_="quiet")
    drawn = element(
        "svg",
        *edges,
        *nodes,
        width=str(WIDEST),
        height=str(height),
        viewBox=f"0 0 {WIDEST} {height}",
        role="img",
        aria_label=f"the graph of {graph.states} states",
    )
    return element("div", drawn, note)
