"""Random walks over plain states: the definition of a walk. It is short because it is the oracle for the compiled walks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kspec.model_check.core.exploration import Trace, TraceStep
from kspec.model_check.core.model import Model, Property
from kspec.model_check.engines.simulation.generator import Stream


class End(IntEnum):
    """The reason why a walk ended."""

    DEPTH = 1
    STUCK = 2
    VIOLATED = 3


class Walk(NamedTuple):
    """A walk: the numbers of its actions in `Model.actions`, why it ended, and what its states show about the properties.

    `violated` are the `always` properties that its last state violates, `reached` the `sometimes` that some state
    reaches; both are numbers of the properties asked for.
    """

    actions: tuple[int, ...]
    end: End
    violated: frozenset[int]
    reached: frozenset[int]


def instance_weights(model: Model, weights: Mapping[str, int]) -> list[int]:
    """The weight of each action instance: that of its name, 1 unless given."""
    return [weights.get(action.name, 1) for action in model.actions]


def walks(
    model: Model, properties: Sequence[Property], seed: int, numbers: Iterable[int], depth: int, weights: Mapping[str, int]
) -> Iterator[Walk]:
    """Walk from the initial state, up to `depth` steps, once for each walk number.

    Each step is drawn among the action instances that are enabled and lead to a state within the model's constraint, in
    the order of the model, by weight. A walk ends where there is nothing to draw from, or where an `always` property is
    violated.
    """
    weight_of = instance_weights(model, weights)
    actions = [(number, action.bind()) for number, action in enumerate(model.actions) if weight_of[number]]
    always = [(number, prop.bind()) for number, prop in enumerate(properties) if prop.kind == "always"]
    sometimes = [(number, prop.bind()) for number, prop in enumerate(properties) if prop.kind == "sometimes"]
    constraint = [term.bind() for term in model.constraint]
    for number in numbers:
        stream, state = Stream(seed, number), model.initial
        taken, reached = list[int](), set[int]()
        while True:
            reached.update(prop for prop, holds in sometimes if holds(state))
            violated = frozenset(prop for prop, holds in always if not holds(state))
            if violated or len(taken) == depth:
                end = End.VIOLATED if violated else End.DEPTH
                break
            successors = [(action, after) for action, fire in actions if (after := fire(state)) is not None]
            enabled = [entry for entry in successors if all(within(entry[1]) for within in constraint)]
            if not enabled:
                end = End.STUCK
                break
            left = stream.below(sum(weight_of[action] for action, _ in enabled))
            for action, state in enabled:  # noqa: B007 (where the weights are used up)
                left -= weight_of[action]
                if left < 0:
                    break
            taken.append(action)
        yield Walk(tuple(taken), end, violated, frozenset(reached))


def trace_of(model: Model, actions: Iterable[int]) -> Trace:
    """The states that these actions lead through, from the initial one; each must be enabled."""
    trace = [TraceStep(None, model.initial)]
    for number in actions:
        action = model.actions[number]
        successor = action.bind()(trace[-1].state)
        assert successor is not None, f"{action.label} is not enabled"
        trace.append(TraceStep(action, successor))
    return tuple(trace)
