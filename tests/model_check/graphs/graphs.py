"""A model's graph built from nothing but the actions' functions: what the graphs of the compiled engine must equal."""

from collections import Counter

from kspec.model_check.core.model import Model, State
from kspec.model_check.graphs.graph import StateGraph

Edge = tuple[State, int, State]


def reference_graph(model: Model) -> tuple[dict[State, int], Counter[Edge]]:
    """Every reachable state with its depth, and every transition: source, number of the action, target."""
    actions = [action.bind() for action in model.actions]
    within = [term.bind() for term in model.constraint]
    depths = {model.initial: 0}
    edges: Counter[Edge] = Counter()
    frontier = [model.initial]
    for state in frontier:
        for number, fire in enumerate(actions):
            successor = fire(state)
            if successor is None or not all(term(successor) for term in within):
                continue
            edges[state, number, successor] += 1
            if successor not in depths:
                depths[successor] = depths[state] + 1
                frontier.append(successor)
    return depths, edges


def assert_like_reference(graph: StateGraph) -> None:
    """The same states at the same depths, and the same transitions one by one."""
    depths, edges = reference_graph(graph.model)
    states = [graph.state(number) for number in range(graph.states)]
    assert states[0] == graph.model.initial
    assert len(set(states)) == len(states)
    assert dict(zip(states, graph.depth.tolist(), strict=True)) == depths
    transitions = graph.transitions
    sources, targets, actions = transitions.source.tolist(), transitions.target.tolist(), transitions.action.tolist()
    found = Counter(
        (states[source], action, states[target]) for source, action, target in zip(sources, actions, targets, strict=True)
    )
    assert found == edges
