"""The graph of a subject: every state within the bounds, and what every request is answered there."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.conformance.wire.exchange import Exchange
from kspec.conformance.wire.model.subject import Move, Subject
from kspec.model_check.search.ways import Ways
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.mutation import names_of_rules

State = Any


class GraphStep(NamedTuple):
    """A move in a state, and the exchange that it is."""

    state: State
    move: Move
    exchange: Exchange

    @property
    def goal(self) -> str:
        """The kind of request and the kind of answer."""
        return f"{self.move.name}: {self.exchange.outcome}"


Run = tuple[GraphStep, ...]


def looks_after(subject: Subject, run: Run, protocol: BrokerProtocol) -> Run:
    """The looks that end a run: those at what its last request has left, unless that is such a look itself."""
    last = run[-1]
    after = last.move.take(protocol, last.state)
    if after is None:
        return ()
    steps = []
    for look in subject.looks:
        taken = look.take(protocol, after.state) if look.name != last.move.name else None
        if taken is not None:
            steps.append(GraphStep(after.state, look, taken.exchange))
    return tuple(steps)


class MoveAnswer(NamedTuple):
    """A request's step from a state with the state after it, none if it is not possible, and the rules that this asked."""

    move: Move
    step: GraphStep | None
    after: State
    rules: frozenset[str]


class AnswerBook:
    """The answers to every request in every state of a subject, by the rules of one release. Each is found once."""

    def __init__(self, subject: Subject, protocol: BrokerProtocol) -> None:
        self.protocol, self._subject = protocol, subject
        self._asked: set[str] = set()
        self._known: dict[State, tuple[MoveAnswer, ...]] = {}
        watched: dict[str, Any] = {name: self._noting(name, getattr(protocol, name)) for name in names_of_rules(protocol)}
        self._watched = replace(protocol, **watched)

    def _noting(self, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*given: Any) -> Any:
            self._asked.add(name)
            return rule(*given)

        return ask

    def at(self, state: State) -> tuple[MoveAnswer, ...]:
        """The answers in a state, in the order of the subject's moves."""
        if state not in self._known:
            self._known[state] = tuple(self._answer(move, state) for move in self._subject.moves)
        return self._known[state]

    def _answer(self, move: Move, state: State) -> MoveAnswer:
        self._asked.clear()
        return MoveAnswer(move, *step_from(move, self._watched, state), frozenset(self._asked))

    @property
    def rules_asked(self) -> frozenset[str]:
        """The rules that some of these answers depend on."""
        return frozenset[str]().union(*(one.rules for answers in self._known.values() for one in answers))


def step_from(move: Move, protocol: BrokerProtocol, state: State) -> tuple[GraphStep | None, State]:
    """The step that a request is in a state, and the state after it; none where it is not possible."""
    taken = move.take(protocol, state)
    return (None, None) if taken is None else (GraphStep(state, move, taken.exchange), taken.state)


class Graph(NamedTuple):
    """The states of a subject with the ways to them, for each goal the first step that meets it, and all answers."""

    ways: Ways[State, GraphStep]
    goals: dict[str, GraphStep]
    transitions: int
    book: AnswerBook

    def run_to(self, state: State) -> Run:
        """A shortest run to a state."""
        return tuple(self.ways.to(state))

    @property
    def rules_asked(self) -> frozenset[str]:
        """The rules of a release that the subject's answers depend on at all: no other mutant can show itself there."""
        return self.book.rules_asked


class GraphSummary(NamedTuple):
    """The part of a graph that is remembered: its goals, and the rules that its answers depend on."""

    goals: frozenset[str]
    rules_asked: frozenset[str]


_summaries: dict[tuple[int, int], tuple[Subject, BrokerProtocol, GraphSummary]] = {}
"""By the identities of a subject and a protocol, which are kept beside: neither can be hashed."""


def summary_of(subject: Subject, protocol: BrokerProtocol) -> GraphSummary:
    """The summary of a subject's graph, which is explored if it has not been so far."""
    key = id(subject), id(protocol)
    if key not in _summaries:
        explored(subject, protocol)
    return _summaries[key][2]


def explored(subject: Subject, protocol: BrokerProtocol) -> Graph:
    """Visit every state, level by level: so the first step that meets a goal ends a shortest run to it."""
    graph, transitions = Graph(Ways(subject.initial), {}, 0, AnswerBook(subject, protocol)), 0
    for state in graph.ways.places(subject.most_moves):
        for answer in graph.book.at(state):
            if answer.step is not None:
                transitions += 1
                if subject.is_goal(answer.move.name):
                    graph.goals.setdefault(answer.step.goal, answer.step)
                graph.ways.reach(state, answer.step, answer.after)
    summary = GraphSummary(frozenset(graph.goals), graph.rules_asked)
    _summaries[id(subject), id(protocol)] = subject, protocol, summary
    return graph._replace(transitions=transitions)
