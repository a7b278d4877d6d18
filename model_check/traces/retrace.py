"""A run of one model replayed, step by step, in another model with other rules."""

from typing import NamedTuple

from model_check.core.exploration import Trace
from model_check.core.model import Model, State
from model_check.traces.render import changes, field_name, steps


class Retraced(NamedTuple):
    """Where a run leads under other rules: `state` is the last state, `None` if one of its steps is not possible there.

    `words` say where the two runs diverge, and are empty if they never do.
    """

    words: str
    state: State | None


def retrace(trace: Trace, model: Model, other: Model) -> Retraced:
    """Replay the steps of a run of `model` in `other`, and say where the two runs diverge.

    A step is the same action with the same arguments, under the other model's name for it. Models with different slots
    have no step in common.
    """
    if [slot.label for slot in model.slots] != [slot.label for slot in other.slots]:
        return Retraced("Its controller is of another kind.", None)
    names = _names_in(model, other)
    state, words = other.initial, ""
    for number, _, after in steps(trace):
        assert after.action is not None
        name, args = names.get(after.action.name, after.action.name), after.action.args
        step = f"tep {number} ({after.action.label})"
        actions = [action.bind() for action in other.actions if action.name == name and action.args == args]
        successors = [successor for fire in actions if (successor := fire(state)) is not None]
        if not successors:
            gone = f"{words}, and s{step} is then not possible." if words else f"S{step} is not possible."
            return Retraced(gone, None)
        if not words and after.state not in successors:
            difference = _difference(other, successors[0], after.state)
            words = f"S{step} leads elsewhere{f': {difference}' if difference else ''}"
        state = after.state if after.state in successors else successors[0]
    return Retraced(words, state)


def _names_in(model: Model, other: Model) -> dict[str, str]:
    """The other model's names for the actions of this one, where the names differ."""
    there = {common: name for name, common in other.known_as.items()}
    return {name: there[common] for name, common in model.known_as.items() if common in there}


def _difference(model: Model, there: State, here: State) -> str:
    return ", ".join(
        f"{field_name(slot)}{'' if slot.broker is None else f' of broker {slot.broker}'} is `{now}`, not `{then}`"
        for slot, now, then in changes(model, there, here)
    )
