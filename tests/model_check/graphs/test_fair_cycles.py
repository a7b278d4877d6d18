"""Fair runs in random graphs: found where a search through all sets of states finds one, and only there."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kspec.model_check.graphs.fair_cycles import Circuit, Constraint, Paths
from kspec.model_check.graphs.graph import Transitions
from tests.limits.turns import Turns


class Question(NamedTuple):
    """Edges are (source, action, target); fairness is (strong, actions)."""

    states: int
    edges: list[tuple[int, int, int]]
    starts: set[int]
    inside: set[int]
    fairness: list[tuple[bool, set[int]]]


@st.composite
def questions(draw: st.DrawFn) -> Question:
    states = draw(st.integers(1, 6))
    state, action = st.integers(0, states - 1), st.integers(0, 2)
    edges = draw(st.lists(st.tuples(state, action, state), unique=True, max_size=14))
    fairness = st.tuples(st.booleans(), st.sets(action, min_size=1, max_size=2))
    return numbered(
        Question(states, edges, draw(st.sets(state)), draw(st.sets(state)), draw(st.lists(fairness, max_size=3)))
    )


def numbered(question: Question) -> Question:
    """Only what is reachable, in breadth-first order, as in a state graph."""
    order = [0]
    for state in order:
        order += sorted({target for source, _, target in question.edges if source == state and target not in order})
    number = {state: place for place, state in enumerate(order)}
    edges = sorted((number[a], action, number[b]) for a, action, b in question.edges if a in number)
    starts, inside = ({number[state] for state in some if state in number} for some in (question.starts, question.inside))
    return Question(len(order), edges, starts, inside, question.fairness)


def found(question: Question) -> tuple[Paths, list[Constraint], Circuit | None]:
    sources = np.array([source for source, _, _ in question.edges], np.int64)
    first = np.searchsorted(sources, np.arange(question.states + 1)).astype(np.int64)
    targets = np.array([target for _, _, target in question.edges], np.int32)
    actions = np.array([action for _, action, _ in question.edges], np.uint16)
    depth = np.full(question.states, -1, np.int32)
    depth[0] = 0
    for state in range(question.states):  # in breadth-first order, so a state's depth is known when its turn comes
        for source, _, target in question.edges:
            if source == state and depth[target] < 0:
                depth[target] = depth[state] + 1
    paths = Paths(Transitions(first, targets, actions), depth)
    constraints = [paths.constraint(str(some), strong, sorted(some)) for strong, some in question.fairness]
    flags = [np.isin(np.arange(question.states), sorted(some)) for some in (question.starts, question.inside)]
    return paths, constraints, paths.fair_circuit(flags[0], flags[1], constraints)


def reachable(question: Question, sources: set[int], inside: set[int]) -> set[int]:
    seen = sources & inside
    turns = Turns()
    while True:
        turns.go()
        more = {b for a, _, b in question.edges if a in seen and b in inside} - seen
        if not more:
            return seen
        seen |= more


def can_be_fair(question: Question, visited: set[int]) -> bool:
    """Whether a run that visits just these states for ever, and takes every step between them, is fair."""
    if any(reachable(question, {state}, visited) != visited for state in visited):
        return False
    moves = [(a, action, b) for a, action, b in question.edges if a != b]
    for strong, actions in question.fairness:
        if any(a in visited and b in visited and action in actions for a, action, b in moves):
            continue
        possible = {a for a, action, _ in moves if action in actions}
        if (visited & possible) if strong else visited <= possible:
            return False
    return True


def exists(question: Question) -> bool:
    """By trying every set of states: one that a run can visit for ever, fairly, having come from a start."""
    near = reachable(question, question.starts, question.inside)
    return any(
        can_be_fair(question, set(chosen)) for size in range(1, len(near) + 1) for chosen in combinations(sorted(near), size)
    )


# Two states, each with one action; a third one that is possible in the first only.
BLINKING = ([(0, 0, 1), (1, 1, 0), (0, 2, 2)], {0}, {0, 1})


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(questions())
@example(Question(3, *BLINKING, [(False, {2}), (True, {0}), (True, {1})]))
@example(Question(3, *BLINKING, [(True, {2}), (True, {0}), (True, {1})]))
@example(Question(1, [(0, 0, 0)], {0}, {0}, [(True, {0})]))
def test_like_a_search_through_all_sets(question: Question) -> None:
    paths, _, circuit = found(question)
    assert (circuit is not None) == exists(question)
    if circuit is None:
        return
    # And what was found is a run of the graph, inside after a start, and fair.
    ways = [*circuit.prefix, *circuit.loop]
    states = [0, *(int(paths.target[way]) for way in ways)]
    assert all(int(paths.source[way]) == state for way, state in zip(ways, states, strict=False))
    turning = len(circuit.prefix)
    assert states[-1] == states[turning]
    assert states[circuit.since] in question.starts
    assert circuit.since <= turning
    assert set(states[circuit.since :]) <= question.inside
    visited, taken = set(states[turning:]), {int(paths.action[way]) for way in circuit.loop if paths.changes[way]}
    for strong, actions in question.fairness:
        possible = {a for a, action, b in question.edges if action in actions and a != b}
        assert taken & actions or not (visited & possible if strong else visited <= possible)


@pytest.mark.parametrize(("strong", "expected"), [(False, True), (True, False)])
def test_strong_fairness_forbids_what_weak_fairness_allows(strong: bool, expected: bool) -> None:
    question = Question(3, *BLINKING, [(strong, {2}), (False, {0}), (False, {1})])
    assert (found(question)[2] is not None) == expected


def test_standing_still_needs_no_fair_action_possible() -> None:
    circuit = found(Question(2, [(0, 0, 1)], {0}, {0, 1}, [(False, {0})]))[2]
    assert circuit == Circuit(prefix=[0], loop=[], since=0)
    assert found(Question(2, [(0, 0, 1)], {0}, {0, 1}, []))[2] == Circuit(prefix=[], loop=[], since=0)
    assert found(Question(2, [(0, 0, 1)], {0}, {0}, [(False, {0})]))[2] is None


def test_a_loop_goes_where_fairness_sends_it() -> None:
    """From one state two actions lead away, and back: a run may use one of them for ever, unless both are fair."""
    both_ways = [(0, 1, 1), (0, 2, 2), (1, 0, 0), (2, 0, 0)]

    def actions_of(fairness: list[tuple[bool, set[int]]]) -> list[int]:
        paths, _, circuit = found(Question(3, both_ways, {0}, {0, 1, 2}, fairness))
        assert circuit is not None
        return [int(paths.action[way]) for way in circuit.loop]

    assert actions_of([(True, {0}), (True, {1, 2})]) in ([1, 0], [2, 0])
    assert actions_of([(True, {0}), (True, {2})]) == [2, 0]
    assert sorted(actions_of([(True, {0}), (True, {1}), (True, {2})])) == [0, 0, 1, 2]
    assert actions_of([(False, {0}), (False, {1}), (False, {2})]) in ([1, 0], [2, 0])
