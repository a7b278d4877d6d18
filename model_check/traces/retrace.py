"""A run of one model replayed, step by step, in another model with other rules."""

from typing import NamedTuple

from kspec.model_check.core.exploration import NotebookTrace, Trace, TraceStep
from kspec.model_check.core.model import Model, State
from kspec.model_check.traces.render import SlotChange, changes, field_name, party_name, steps


class RetracedRun(NamedTuple):
    """A run's end under other rules: `state` is the last state, `None` if one of its steps is not possible there.

    `words` say where the two runs diverge, and are empty if they never do. `parts_at` is the number of that step,
    `differences` are the slots after it: the value under the other rules, then that of the run. `trace` is the run under
    the other rules, as far as it goes.
    """

    words: str
    state: State | None
    parts_at: int | None = None
    differences: tuple[SlotChange, ...] = ()
    trace: Trace = ()


def retrace(trace: Trace, model: Model, other: Model) -> RetracedRun:
    """Replay the steps of a run of `model` in `other`, and say where the two runs diverge.

    A step is the same action with the same arguments, under the other model's name for it. Models with different slots
    have no step in common.
    """
    if [slot.label for slot in model.slots] != [slot.label for slot in other.slots]:
        return RetracedRun("Its controller is of another kind.", None)
    names = names_in(model, other)
    state, words = other.initial, ""
    parts_at: int | None = None
    differences: tuple[SlotChange, ...] = ()
    taken = [TraceStep(None, state)]
    for number, _, after in steps(trace):
        assert after.action is not None
        name, args = names.get(after.action.name, after.action.name), after.action.args
        step = f"tep {number} ({after.action.label})"
        actions = [action for action in other.actions if action.name == name and action.args == args]
        successors = [(action, found) for action in actions if (found := action.bind()(state)) is not None]
        if not successors:
            gone = f"{words}, and s{step} is then not possible." if words else f"S{step} is not possible."
            return RetracedRun(gone, None, parts_at or number, differences, NotebookTrace(other, taken))
        same = next((one for one in successors if one[1] == after.state), None)
        action, state = same or successors[0]
        if not words and not same:
            parts_at, differences = number, tuple(changes(other, state, after.state))
            difference = _in_words(differences)
            words = f"S{step} leads elsewhere{f': {difference}' if difference else ''}"
        taken.append(TraceStep(action, state))
    return RetracedRun(words, state, parts_at, differences, NotebookTrace(other, taken))


def names_in(model: Model, other: Model) -> dict[str, str]:
    """The other model's names for the actions of this one, where the names differ."""
    there = {common: name for name, common in other.known_as.items()}
    return {name: there[common] for name, common in model.known_as.items() if common in there}


def _in_words(differences: tuple[SlotChange, ...]) -> str:
    return ", ".join(
        f"{field_name(slot)}{'' if slot.broker is None else f' of {party_name(slot.broker)}'} is `{now}`, not `{then}`"
        for slot, now, then in differences
    )
