"""Conditions on a lasso, without the checker: a run of the model's own functions, bad from some state on, and fair."""

from itertools import pairwise

from kspec.model_check.core.model import Action, Condition, Fairness, LivenessProperty, Model, State
from kspec.model_check.graphs.liveness import Lasso


def holds(condition: Condition, state: State) -> bool:
    return any(all(term.bind()(state) for term in group) for group in condition)


def successors(model: Model, state: State, actions: list[int]) -> list[State]:
    """The states to which these actions lead from a state, if they are other states of the model."""
    found = [model.actions[number].bind()(state) for number in actions]
    within = [term.bind() for term in model.constraint]
    return [other for other in found if other is not None and other != state and all(term(other) for term in within)]


def _served(fairness: Fairness, action: Action) -> str:
    """The party that an action serves, of those that this fairness is about."""
    names = action.args if fairness.each else fairness.of
    return str({name: action.args[name] for name in names})


def assert_fair_violation(model: Model, prop: LivenessProperty, fairness: list[Fairness], lasso: Lasso) -> None:
    states = [step.state for step in lasso.steps]
    assert states[0] == model.initial
    for before, step in pairwise([*lasso.steps, *([lasso.closing] if lasso.closing else [])]):
        assert step.action in model.actions
        assert step.action is not None
        assert step.action.bind()(before.state) == step.state
    loop = states[lasso.loop_start :]
    assert loop
    if lasso.closing:
        assert lasso.closing.state == loop[0]
    else:
        assert len(loop) == 1
    (case,) = [case for case in prop.cases if case.label == lasso.case]
    assert prop.kind == "eventually" or holds(case.premise, states[lasso.since])
    assert prop.kind == "leads-to" or lasso.since == 0
    assert lasso.since <= lasso.loop_start
    assert not any(holds(case.goal, state) for state in states[lasso.since :])
    taken = [
        step.action
        for before, step in pairwise([*lasso.steps[lasso.loop_start :], *([lasso.closing] if lasso.closing else [])])
        if before.state != step.state
    ]
    for one in fairness:
        named = [number for number, action in enumerate(model.actions) if action.name == one.action]
        served = {number: _served(one, model.actions[number]) for number in named}
        for chosen in set(served.values()):
            together = [number for number in named if served[number] == chosen]
            if any(model.actions[number] in taken for number in together):
                continue
            possible = [bool(successors(model, state, together)) for state in loop]
            assert not any(possible) if one.strong else not all(possible), f"{one.label}: {chosen}"
