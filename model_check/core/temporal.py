"""What a model promises for runs without end: liveness properties, and the fairness that they rest on.

A run may stop at any state and stay there for ever: nothing makes a broker act. Fairness says what must happen if it stays
possible: it rules out the runs in which an action could be taken again and again, and is not.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from model_check.core.model import Action, Local

TemporalKind = Literal["eventually", "leads-to"]

Condition = tuple[tuple[Local, ...], ...]
"""A claim about one state: in one of these groups, everything holds."""


class Fairness(NamedTuple):
    """An action that is not put off for ever.

    Weak fairness: if the action stays possible from some moment on, it is taken again and again. Strong fairness: if it is
    possible again and again, it is. With `each`, this goes for each of the action's arguments by itself; without, some
    arguments being served is enough, as in TLA+ where the action quantifies over them. With `of`, it goes for each value of
    these arguments by itself, whatever the others are: each broker is served, by whichever leader.
    """

    action: str
    strong: bool
    each: bool = False
    of: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """As TLA+ writes it: `WF(BecomeLeader)`, `WF(Fetch for each follower)`, `SF(LeaderExpandIsr for each of …)`."""
        whose = " for each of its arguments" if self.each else ""
        if self.of:
            whose = f" for each {' and '.join(self.of)}"
        return f"{'SF' if self.strong else 'WF'}({self.action}{whose})"


class Case(NamedTuple):
    """One instance of a property: whenever `premise` holds, `goal` holds then or later."""

    label: str
    premise: Condition
    goal: Condition


@dataclass(frozen=True, slots=True)
class LivenessProperty:
    """A claim about all fair runs.

    `leads-to`: in every case, whenever the premise holds, the goal holds then or later. `eventually`: the goal holds at some
    time; the premise is that the run has begun. `assuming` is fairness that the property needs beyond what its model
    declares.
    """

    name: str
    kind: TemporalKind
    cases: tuple[Case, ...]
    meaning: str
    assuming: tuple[Fairness, ...] = ()


def weak(action: str, each: bool = False, of: tuple[str, ...] = ()) -> Fairness:
    """Weak fairness of an action."""
    return Fairness(action, strong=False, each=each, of=of)


def strong(action: str, each: bool = False) -> Fairness:
    """Strong fairness of an action."""
    return Fairness(action, strong=True, each=each)


def assumed(*layers: Sequence[Fairness]) -> list[Fairness]:
    """Fairness by action: what a later layer says of an action replaces what an earlier one says."""
    by_action = {fairness.action: fairness for layer in layers for fairness in layer}
    return list(by_action.values())


def groups_of(fairness: Fairness, actions: Sequence[Action]) -> list[tuple[str, list[int]]]:
    """The sets of actions, by their numbers, that are fair as a whole; each with its name."""
    chosen = [number for number, action in enumerate(actions) if action.name == fairness.action]
    if not fairness.each and not fairness.of:
        return [(fairness.label, chosen)]
    by_label: dict[str, list[int]] = {}
    for number in chosen:
        action = actions[number]
        if fairness.of:
            action = replace(action, args={name: action.args[name] for name in fairness.of})
        by_label.setdefault(f"{'SF' if fairness.strong else 'WF'}({action.label})", []).append(number)
    return list(by_label.items())
