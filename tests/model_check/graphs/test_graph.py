"""State graphs: edge for edge those of the model's own functions, whatever the engine's settings."""

from typing import Any

import numpy as np
import pytest

from kspec.model_check.core.exploration import Limits
from kspec.model_check.engines.compiled import search, tables
from kspec.model_check.engines.reference import explore
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.graph import GraphError
from tests.limits.marks import marked_pairs
from tests.model_check.engines.comparison import OTHERS_OF_EACH, SMALL_MODELS, model_of
from tests.model_check.graphs.graphs import assert_like_reference
from tests.model_check.toy import counters


@pytest.mark.parametrize(("name", "parameters"), marked_pairs(SMALL_MODELS, nightly=OTHERS_OF_EACH))
def test_small_models_edge_for_edge(name: str, parameters: dict[str, Any]) -> None:
    assert_like_reference(state_graph(model_of(name, parameters), 1))


@pytest.mark.parametrize(
    ("where", "setting", "value"),
    [(search, "CHUNK", 7), (search, "CHUNK_OUTPUT", 1), (search, "MISSES", 1), (tables, "KEY_BITS", 15)],
)
def test_settings_change_only_speed(where: Any, setting: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, setting, value)
    assert_like_reference(state_graph(model_of("kip-101", {"replicas": 2, "max_epoch": 1}), 2))
    assert_like_reference(state_graph(counters(cap=2), 2))


def test_workers_make_no_difference() -> None:
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 2})
    one, three = state_graph(model, 1), state_graph(model, 3)
    assert np.array_equal(one.transitions.first, three.transitions.first)
    assert np.array_equal(one.transitions.target, three.transitions.target)
    assert np.array_equal(one.transitions.action, three.transitions.action)
    assert all(one.state(number) == three.state(number) for number in range(0, one.states, 37))


def test_numbers_equal_an_exploration() -> None:
    model = model_of("kip-279", {"replicas": 2, "max_epoch": 2})
    explored, graph = explore(model, [], Limits()), state_graph(model)
    assert graph.levels == explored.levels
    assert graph.first_of_level[-1] == graph.states == explored.distinct_states
    taken = np.bincount(graph.transitions.action, minlength=len(model.actions))
    by_name = dict.fromkeys(model.action_names, 0)
    for action, times in zip(model.actions, taken.tolist(), strict=True):
        by_name[action.name] += times
    assert by_name == explored.actions
    assert len(graph.transitions) == explored.transitions


@pytest.mark.slow
def test_a_larger_graph_has_every_transition() -> None:
    graph = state_graph(model_of("kip-320", {}))
    assert (graph.states, len(graph.transitions), len(graph.levels)) == (737_794, 1_929_153, 26)
    assert np.array_equal(graph.transitions.first, np.sort(graph.transitions.first))
    # Breadth first: nothing leads more than one level down, and every state but the first is entered from the level above.
    down = graph.depth[graph.transitions.target] - graph.depth[graph.transitions.source]
    assert down.max() == 1
    assert np.array_equal(np.unique(graph.transitions.target[down == 1]), np.arange(1, graph.states))


def test_a_limit_is_an_error_not_half_a_graph() -> None:
    with pytest.raises(GraphError, match="stopped early, the limit of 100 states is reached"):
        state_graph(model_of("kip-320", {}), max_states=100)


def test_a_graph_that_does_not_fit_is_refused() -> None:
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 2})
    with pytest.raises(GraphError, match=r"the graph of 5,973 states and 11,732 transitions takes \d+ MB, 0 MB are left"):
        state_graph(model, 1, memory=200_000)


def test_networkx_has_states_as_nodes_and_transitions_as_edges() -> None:
    model = model_of("kip-320", {"replicas": 2, "max_epoch": 1})
    graph = state_graph(model)
    theirs = graph.to_networkx()
    assert theirs.number_of_nodes() == graph.states
    assert theirs.number_of_edges() == len(graph.transitions)
    assert theirs.nodes[0]["partition"] == {"leader": -1, "leader_epoch": -1, "isr": [1, 2]}
    for source, target, number, edge in theirs.edges(keys=True, data=True):
        action = model.actions[number]
        assert (edge["action"], edge["arguments"]) == (action.name, dict(action.args))
        assert action.bind()(graph.state(source)) == graph.state(target)
