"""A run retraced under other rules: where the two part, in what, and by which rules."""

from collections.abc import Sequence
from types import FunctionType
from typing import Any

from kspec.model_check.core.exploration import Trace
from kspec.model_check.core.model import Action, Model, State
from kspec.model_check.explorer.moves import rules_of_step
from kspec.model_check.explorer.rules import name_of, rule_as_json, uses_of
from kspec.model_check.explorer.run import Run
from kspec.model_check.traces.encode import as_json
from kspec.model_check.traces.render import SlotChange, action_in_words, owner, party_name
from kspec.model_check.traces.retrace import RetracedRun, retrace


def retraced(run: Run, other: Run) -> dict[str, Any]:
    """The run up to its position, taken again in another model."""
    here, found = run.trace, retrace(run.trace, run.model, other.model)
    if not found.trace:
        return {"steps": len(here) - 1, "same": False, **_other_slots(run.model, other.model)}
    _follow(other, found.trace)
    told: dict[str, Any] = {
        "steps": len(here) - 1,
        "same": found.parts_at is None,
        "words": found.words or "every step is possible, and leads to the same state",
        "parts_at": found.parts_at,
        "possible": found.state is not None,
        "differences": [difference_as_json(change) for change in found.differences],
        "address": other.address(),
        "properties": _verdicts(run, other),
    }
    if found.parts_at is not None:
        told.update(_parting(run, other, here, found, found.parts_at))
    return told


def _other_slots(model: Model, other: Model) -> dict[str, Any]:
    mine, theirs = ([slot.label for slot in one.slots] for one in (model, other))
    only_here = [label for label in mine if label not in theirs]
    only_there = [label for label in theirs if label not in mine]
    said = [
        f"{where} {', '.join(labels)}" for where, labels in (("only here", only_here), ("only there", only_there)) if labels
    ]
    words = f"the two have different slots, so they have no step in common: {'; '.join(said) or 'another order'}"
    return {"words": words, "parts_at": 1, "possible": False, "only_here": only_here, "only_there": only_there}


def _follow(other: Run, trace: Trace) -> None:
    """Take the steps of a trace of the other model there, and no more."""
    other.position = 1
    for step in other.named(trace):
        other.take(other.move(step.action, dict(step.args)), step.choice)
    del other.steps[other.position - 1 :]


def _parting(run: Run, other: Run, here: Trace, found: RetracedRun, number: int) -> dict[str, Any]:
    """The step that parts the runs: the rules that it calls here and there, and what forbids it there."""
    step, before = here[number - 1], here[number - 2].state
    assert step.action is not None
    is_possible = number <= len(found.trace)
    stuck = here[len(found.trace)].action if found.state is None else None
    told: dict[str, Any] = {"step": {"action": step.action.name, "args": as_json(step.action.args)}}
    told["step"]["words"] = action_in_words(step.action)
    there = found.trace[number - 1].action if is_possible else _counterpart(run, other, step.action)
    if stuck is not None:
        counterpart = _counterpart(run, other, stuck)
        told["stuck_at"] = len(found.trace) + 1
        told["forbidden_by"] = None if counterpart is None else _forbidden(other, counterpart, found.trace[-1].state)
    if there is not None:
        mine = rules_of_step(step.action, before)
        theirs = rules_of_step(there, found.trace[number - 2].state)
        told["rules"] = rules_apart(run, other, mine, theirs)
    return told


def _forbidden(other: Run, action: Action, state: State) -> dict[str, Any]:
    return other.obstacle(other.move(action.name, action.args), state)


def _counterpart(run: Run, other: Run, action: Action) -> Action | None:
    """The other model's action for one of this model, if it has one; the names of a family of models are known to both."""
    common = run.model.known_as.get(action.name, action.name)
    names = {common, action.name} | {own for own, known in other.model.known_as.items() if known == common}
    same = (one for one in other.model.actions if one.name in names and one.args == action.args)
    return next(same, None)


def rules_apart(run: Run, other: Run, mine: Sequence[FunctionType], theirs: Sequence[FunctionType]) -> dict[str, Any]:
    """The rules that only one side calls; `instead`: two that stand in the same field of the records of rules."""
    only_here = [rule for rule in mine if rule not in theirs]
    only_there = [rule for rule in theirs if rule not in mine]
    instead = [
        {"field": one.field, "here": name_of(rule), "there": name_of(another)}
        for rule in only_here
        for another in only_there
        for one in uses_of(rule)
        if any((one.family.name, one.field) == (use.family.name, use.field) for use in uses_of(another))
    ]
    return {
        "only_here": [rule_as_json(rule, run.entry) for rule in only_here],
        "only_there": [rule_as_json(rule, other.entry) for rule in only_there],
        "instead": instead,
    }


def difference_as_json(change: SlotChange) -> dict[str, str]:
    """A slot that differs: its words there, under the other rules, and here."""
    slot, there, here = change
    return {"slot": slot.label, "party": party_name(owner(slot)), "here": here, "there": there}


def _verdicts(run: Run, other: Run) -> list[dict[str, Any]]:
    """The properties of both that are violated at the end of either run."""
    here, there = run.watch.violated_at(run.state), other.watch.violated_at(other.state)
    both = [prop.name for prop in run.model.properties if other.model.property_named(prop.name) is not None]
    return [
        {"property": name, "here": _said(name in here), "there": _said(name in there)}
        for name in both
        if name in here or name in there
    ]


def _said(violated: bool) -> str:
    return "violated" if violated else "holds"
