"""The whole reachable graph of a model, as arrays: its states, and the actions that lead from one to another."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kspec.model_check.core.display import NotebookValue
from kspec.model_check.core.model import Model, NotebookState, State
from kspec.model_check.traces.encode import as_json, state_as_json

if TYPE_CHECKING:
    import networkx


class GraphError(RuntimeError):
    """A graph that cannot be built: its exploration did not come to an end, or it does not fit into memory."""


class Transitions(NamedTuple):
    """The transitions of a graph, by source: those of state `s` are `first[s]` up to, not including, `first[s + 1]`.

    `action` is an index into the model's list of actions. Two actions may lead from one state to the same target, or back
    to the state itself: each is a separate transition.
    """

    first: NDArray[np.int64]
    target: NDArray[np.int32]
    action: NDArray[np.uint16]

    @property
    def states(self) -> int:
        return self.first.size - 1

    @property
    def source(self) -> NDArray[np.int32]:
        """The state that each transition leaves."""
        return np.repeat(np.arange(self.states, dtype=np.int32), np.diff(self.first))

    def __len__(self) -> int:
        return self.target.size


class Values(NamedTuple):
    """The values of one slot, in every state: `known[numbers[s]]` is the value in state `s`."""

    numbers: NDArray[np.uint32]
    known: list[Any]


@dataclass(frozen=True)
class StateGraph(NotebookValue):
    """States and transitions of a model. A state's id is its place in breadth-first order, so depths never decrease.

    `levels` has the number of states at each distance from state 0, the initial one; `values_of` gives a slot's values.
    """

    shown_by = "kspec.model_check.graphs.notebook:html_of_graph"

    model: Model
    levels: list[int]
    transitions: Transitions
    values_of: Callable[[int], Values]

    @property
    def states(self) -> int:
        return self.transitions.states

    @cached_property
    def depth(self) -> NDArray[np.int32]:
        """The number of steps from the initial state to each state."""
        return np.repeat(np.arange(len(self.levels), dtype=np.int32), self.levels)

    @cached_property
    def first_of_level(self) -> list[int]:
        """The first state of each level, and the number of all states."""
        return [0, *accumulate(self.levels)]

    @cached_property
    def _values(self) -> list[Values]:
        return [self.values_of(slot.position) for slot in self.model.slots]

    def state(self, number: int) -> State:
        """The state with this id."""
        return NotebookState(self.model, (values.known[values.numbers[number]] for values in self._values))

    def to_networkx(self) -> "networkx.MultiDiGraph":
        """The graph with states as nodes and transitions as edges; `networkx` must be installed (extra `graph`).

        A node is a state's id, with `depth` and the values of its slots as JSON by name; an edge has `action` and
        `arguments`, and the number of its action as key.
        """
        import networkx  # noqa: PLC0415 (not needed for anything else)

        graph = networkx.MultiDiGraph(model=self.model.name)
        depth = self.depth.tolist()
        graph.add_nodes_from(
            (number, {"depth": depth[number], **state_as_json(self.model, self.state(number))})
            for number in range(self.states)
        )
        actions = [{"action": action.name, "arguments": as_json(action.args)} for action in self.model.actions]
        transitions = self.transitions
        edges = zip(transitions.source.tolist(), transitions.target.tolist(), transitions.action.tolist(), strict=True)
        graph.add_edges_from((source, target, action, actions[action]) for source, target, action in edges)
        return graph
