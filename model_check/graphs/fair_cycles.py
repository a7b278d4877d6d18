"""Infinite fair runs in a graph that never leave a set of states.

An infinite run finally stays in one strongly connected component, or stutters in one state, which is always allowed.
Such a component holds a fair run unless some fairness condition rules it out:

- weak: the action is possible in all states of the component and is not taken inside. No part of it holds a fair run either;
- strong: the action is possible in some state and is not taken inside. A run may avoid these states, so they are
  removed. The rest falls into smaller components, which are examined in turn (as Emerson and Lei decide emptiness of
  Streett automata).

As in TLA+, only a step that changes the state makes an action count as taken or as possible.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from kspec.model_check.graphs.graph import Transitions

Flags = NDArray[np.bool_]
Ids = NDArray[np.int64]

COMPONENTS_TRIED = 64
"""The shortest lasso is searched for in this many of the nearest components that hold fair runs."""


class Constraint(NamedTuple):
    """Fairness of one set of actions in a graph: which transitions take it, and in which states it is possible."""

    label: str
    strong: bool
    taken: Flags
    possible: Flags


class Circuit(NamedTuple):
    """A fair run: transitions from the initial state to the loop, and those of the loop (none if the run stutters).

    From its state number `since` on, the run stays in the requested set of states.
    """

    prefix: list[int]
    loop: list[int]
    since: int


class Paths:
    """A graph, prepared for queries about its paths."""

    def __init__(self, transitions: Transitions, depth: NDArray[np.int32]) -> None:
        self.first, self.target, self.source = transitions.first, transitions.target, transitions.source
        self.action = transitions.action
        self.depth = depth
        self.changes = self.source != self.target

    def constraint(self, label: str, strong: bool, actions: list[int]) -> Constraint:
        """Fairness of these actions together."""
        taken = np.isin(self.action, actions) & self.changes
        possible = np.zeros(self.first.size - 1, np.bool_)
        possible[self.source[taken]] = True
        return Constraint(label, strong, taken, possible)

    def fair_circuit(self, starts: Flags, inside: Flags, constraints: list[Constraint]) -> Circuit | None:
        """A short fair run that reaches one of `starts` and stays `inside` from then on; `None` if there is none."""
        distance = self._distances(starts & inside, inside)
        best: Circuit | None = None
        still = distance >= 0
        for constraint in constraints:
            still &= ~constraint.possible
        if still.any():
            nearest = np.flatnonzero(still)[np.argmin(distance[still])]
            best = self._with_prefix(int(nearest), [], starts & inside, inside, distance)
        components = list(self._fair_components(distance >= 0, constraints))
        entries = [(int(distance[nodes].min()), number) for number, nodes in enumerate(components)]
        for steps, number in sorted(entries)[:COMPONENTS_TRIED]:
            if best is not None and steps + 2 >= len(best.prefix) + len(best.loop):
                break
            nodes = components[number]
            entry = int(nodes[np.argmin(distance[nodes])])
            loop = self._loop(set(nodes.tolist()), entry, constraints)
            if best is None or steps + len(loop) < len(best.prefix) + len(best.loop):
                best = self._with_prefix(entry, loop, starts & inside, inside, distance)
        return best

    # ---- paths

    def _distances(self, starts: Flags, inside: Flags) -> NDArray[np.int32]:
        """Steps from the initial state through one of `starts` and then only inside; -1 where no such path leads."""
        distance = np.full(inside.size, -1, np.int32)
        waiting = np.flatnonzero(starts)
        depths = self.depth[waiting]
        frontier, steps, begun = np.empty(0, np.int64), 0, 0
        while frontier.size or begun < waiting.size:
            if not frontier.size:
                steps = int(depths[begun])
            joining = int(np.searchsorted(depths, steps, side="right"))
            fresh = waiting[begun:joining]
            begun = joining
            frontier = np.union1d(frontier, fresh[distance[fresh] < 0])
            distance[frontier] = steps
            reached = np.unique(self.target[self._leaving(frontier)])
            frontier = reached[inside[reached] & (distance[reached] < 0)].astype(np.int64)
            steps += 1
        return distance

    def _leaving(self, states: Ids) -> Ids:
        """The transitions out of some states."""
        begin, sizes = self.first[states], np.diff(self.first)[states]
        before = np.cumsum(sizes) - sizes
        return np.repeat(begin - before, sizes) + np.arange(int(sizes.sum()))

    def _with_prefix(
        self, entry: int, loop: list[int], starts: Flags, inside: Flags, distance: NDArray[np.int32]
    ) -> Circuit:
        """The run that takes a shortest path to the entry of this loop and then goes round it."""
        prefix: list[int] = []
        state = entry

        def back(steps: NDArray[np.int32]) -> int:
            coming = np.flatnonzero(self.target == state)
            prefix.insert(0, int(coming[steps[self.source[coming]] == steps[state] - 1][0]))
            return int(self.source[prefix[0]])

        while not starts[state]:
            state = back(distance)
        while self.depth[state] > 0:
            state = back(self.depth)
        passed = [*self.source[prefix].tolist(), entry]
        outside = [place for place, state in enumerate(passed) if not inside[state]]
        first_inside = outside[-1] + 1 if outside else 0
        since = next(place for place in range(first_inside, len(passed)) if starts[passed[place]])
        return Circuit(prefix, loop, since)

    # ---- components

    def _fair_components(self, inside: Flags, constraints: list[Constraint]) -> Iterator[Ids]:
        """Strongly connected sets of more than one state in which some fair run visits all states."""
        alive = inside.copy()
        while True:
            edges = np.flatnonzero(alive[self.source] & alive[self.target] & self.changes)
            nodes = np.unique(self.source[edges])
            if not nodes.size:
                return
            labels = self._components(nodes, edges)
            edges = edges[labels[self.source[edges]] == labels[self.target[edges]]]
            nodes = np.unique(self.source[edges])
            if not nodes.size:
                return
            number_of = labels[nodes]
            sizes = np.bincount(number_of)
            fair, hopeless, leaving = sizes > 1, sizes <= 1, np.zeros(inside.size, np.bool_)
            for constraint in constraints:
                taken = edges[constraint.taken[edges]]
                lacking = np.bincount(labels[self.source[taken]], minlength=sizes.size) == 0
                possible = np.bincount(number_of[constraint.possible[nodes]], minlength=sizes.size)
                if constraint.strong:
                    broken = lacking & (possible > 0)
                    leaving[nodes[broken[number_of] & constraint.possible[nodes]]] = True
                else:
                    broken = lacking & (possible == sizes)
                    hopeless |= broken
                fair &= ~broken
            by_label = np.argsort(number_of, kind="stable")
            ends = np.cumsum(sizes)
            for label in np.flatnonzero(fair):
                yield nodes[by_label[ends[label] - sizes[label] : ends[label]]].astype(np.int64)
            alive = np.zeros(inside.size, np.bool_)
            alive[nodes[~fair[number_of] & ~hopeless[number_of]]] = True
            alive &= ~leaving

    def _components(self, nodes: NDArray[np.int32], edges: Ids) -> NDArray[np.int32]:
        """The number of each node's strongly connected component; -1 for all other states."""
        place = np.full(self.first.size - 1, -1, np.int32)
        place[nodes] = np.arange(nodes.size, dtype=np.int32)
        ends = place[self.target[edges]]
        known = ends >= 0
        rows, columns = place[self.source[edges[known]]], ends[known]
        matrix = csr_array((np.ones(rows.size, np.int8), (rows, columns)), shape=(nodes.size, nodes.size))
        _, numbers = connected_components(matrix, connection="strong")
        labels = np.full(self.first.size - 1, -1, np.int32)
        labels[nodes] = numbers
        return labels

    def _loop(self, nodes: set[int], entry: int, constraints: list[Constraint]) -> list[int]:
        """A path from a state of a fair component back to it that satisfies all fairness, short if possible."""
        weak = [constraint for constraint in constraints if not constraint.strong]
        loop = self._round(nodes, entry, weak)
        if loop and self._is_fair(loop, constraints):
            return loop
        needed = [constraint for constraint in constraints if constraint.strong and constraint.possible[list(nodes)].any()]
        loop = self._round(nodes, entry, [*weak, *needed])
        assert self._is_fair(loop, constraints), "a fair component without a fair loop"
        return loop

    def _is_fair(self, loop: list[int], constraints: list[Constraint]) -> bool:
        states = self.source[loop]
        for constraint in constraints:
            if constraint.taken[loop].any():
                continue
            possible = constraint.possible[states]
            if possible.any() if constraint.strong else possible.all():
                return False
        return True

    def _round(self, nodes: set[int], entry: int, wanted: list[Constraint]) -> list[int]:
        """A loop from the entry, by the nearest step that takes, or state that excuses, each wanted constraint."""

        def excused(constraint: Constraint, state: int) -> bool:
            return not constraint.strong and not constraint.possible[state]

        def useful(step: int) -> bool:
            return any(item.taken[step] or excused(item, int(self.target[step])) for item in open_ones)

        open_ones = [item for item in wanted if not excused(item, entry)]
        loop: list[int] = []
        state = entry
        while open_ones:
            way = self._way(nodes, state, useful)
            loop += way
            state = int(self.target[way[-1]])
            visited = self.target[way].tolist()
            open_ones = [
                item
                for item in open_ones
                if not item.taken[way].any() and not any(excused(item, passed) for passed in visited)
            ]
        if state != entry or not loop:
            loop += self._way(nodes, state, lambda step: self.target[step] == entry)
        return loop

    def _way(self, nodes: set[int], state: int, ends: Callable[[int], bool]) -> list[int]:
        """A shortest path inside, of at least one step, whose last step satisfies `ends`."""
        reached: dict[int, int] = {}
        frontier = [state]
        while frontier:
            following = []
            for source in frontier:
                for step in range(int(self.first[source]), int(self.first[source + 1])):
                    target = int(self.target[step])
                    if target not in nodes or not self.changes[step]:
                        continue
                    if ends(step):
                        way = [step]
                        while (before := int(self.source[way[-1]])) != state:
                            way.append(reached[before])
                        return way[::-1]
                    if target not in reached and target != state:
                        reached[target] = step
                        following.append(target)
            frontier = following
        raise AssertionError("a strongly connected component is not connected")
