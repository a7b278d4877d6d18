"""The fairness that liveness properties rely on: short ways to declare it, combine it, and apply it to a list of actions.

A run may stop at any state and stay there for ever: nothing makes a broker act. Fairness says what must happen if it stays
possible: it rules out the runs in which an action could be taken again and again but is not.
"""

from collections.abc import Sequence
from dataclasses import replace

from kspec.model_check.core.model import Action, Fairness


def weak(action: str, each: bool = False, of: tuple[str, ...] = ()) -> Fairness:
    """Weak fairness of an action."""
    return Fairness(action, strong=False, each=each, of=of)


def strong(action: str, each: bool = False) -> Fairness:
    """Strong fairness of an action."""
    return Fairness(action, strong=True, each=each)


def assumed(*layers: Sequence[Fairness]) -> list[Fairness]:
    """Fairness by action: a later layer replaces what an earlier one says about the same action."""
    by_action = {fairness.action: fairness for layer in layers for fairness in layer}
    return list(by_action.values())


def groups_of(fairness: Fairness, actions: Sequence[Action]) -> list[tuple[str, list[int]]]:
    """The sets of actions (by number) to which the fairness applies as a whole, each with its name."""
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
