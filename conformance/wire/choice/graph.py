"""The graph of a subject: every state within the bounds, and what every request is answered there."""

from collections import deque
from collections.abc import Iterator
from typing import Any, NamedTuple

from conformance.wire.exchange import Exchange
from conformance.wire.model.subject import Move, Subject
from spec.broker.protocol import BrokerProtocol

State = Any


class Step(NamedTuple):
    """A move in a state, and the exchange that it is."""

    state: State
    move: Move
    exchange: Exchange

    @property
    def goal(self) -> str:
        """The kind of request and the kind of answer."""
        return f"{self.move.name}: {self.exchange.outcome}"


Run = tuple[Step, ...]


class Graph(NamedTuple):
    """The states of a subject by the step that first reached them, and for each goal the first step that meets it."""

    reached_by: dict[State, Step | None]
    goals: dict[str, Step]
    transitions: int

    def run_to(self, state: State) -> Run:
        """A shortest run to a state."""
        steps: list[Step] = []
        while (step := self.reached_by[state]) is not None:
            steps.append(step)
            state = step.state
        return tuple(reversed(steps))


def steps_from(subject: Subject, protocol: BrokerProtocol, state: State) -> Iterator[tuple[Step, State]]:
    """What may be asked in a state, with the state after it."""
    for move in subject.moves:
        taken = move.take(protocol, state)
        if taken is not None:
            yield Step(state, move, taken.exchange), taken.state


def explored(subject: Subject, protocol: BrokerProtocol) -> Graph:
    """Visit every state, level by level: so the first step that meets a goal ends a shortest run to it."""
    graph = Graph({subject.initial: None}, {}, 0)
    queue, transitions = deque([subject.initial]), 0
    while queue:
        for step, after in steps_from(subject, protocol, queue.popleft()):
            transitions += 1
            graph.goals.setdefault(step.goal, step)
            if after not in graph.reached_by:
                graph.reached_by[after] = step
                queue.append(after)
    return graph._replace(transitions=transitions)
