"""The run of a story: the shortest one of model `kafka` that fails by the rules of the processes; and the same by others.

The model has brokers of one release, old ones too, and a KRaft controller, as the processes have.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from kspec.conformance.story.catalogue import Story, StoryRules, controller_release
from kspec.conformance.story.errors import StoryError
from kspec.model_check.core.exploration import Limits, Trace, TraceStep
from kspec.model_check.core.model import Action, Model, when
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.compiled.search import explore
from kspec.model_check.models import MODELS
from kspec.model_check.models.kafka import build
from kspec.spec.broker.rules.fetcher import FetchState, is_fetching
from kspec.spec.releases.broker import BROKER_RELEASES


class StoryRun(NamedTuple):
    """A run of the model. `left_out`: the numbers of the steps that are not possible by its rules, with their actions."""

    model: Model
    trace: Trace
    left_out: tuple[Action, ...] = ()


def model_of(rules: StoryRules, bounds: Mapping[str, Any]) -> Model:
    """Model `kafka` by these rules. Raises: `StoryError`, if there is no such release or mutant."""
    release, mutant = rules
    kraft = controller_release(release)
    given = {**bounds, "release": kraft, **({"mutant": mutant} if mutant else {})}
    complete = dict(MODELS["kafka"].build(given).parameters)
    own = {one.name: one for one in BROKER_RELEASES}
    model = build("kafka", complete, {kraft: own[release]})
    model.actions[:] = [_as_processes_do(model, action) for action in model.actions]
    return model


def _as_processes_do(model: Model, action: Action) -> Action:
    """The action with the processes' premise: a follower that stays in a shrinking ISR must have begun to fetch."""
    if action.name != "ProposeShrink":
        return action
    brokers: int = model.parameters["brokers"]
    stay = set(range(1, brokers + 1)) - {action.args["leader"], *action.args["slow"]}  # type: ignore[misc]
    fetchers = {slot.key: slot for slot in model.slots if slot.name == "fetcher"}
    fetching = tuple(when(_is_fetching, fetchers[one]) for one in sorted(stay))
    return replace(action, guards=(*action.guards, *fetching))


def _is_fetching(fetcher: FetchState) -> bool:
    return is_fetching(fetcher)


def failing_run(story: Story) -> StoryRun:
    """The shortest run that violates the story's property by its failing rules. Raises: `StoryError`, if none does."""
    model = model_of(story.failing, story.bounds)
    prop = model.property_named(story.invariant)
    assert prop is not None, f"model kafka has no property {story.invariant}"
    (verdict,) = explore(model, [prop], Limits(), symmetry=Symmetry(model)).verdicts
    if verdict.trace is None:
        raise StoryError(f"{story.name}: {story.invariant} holds by the rules of {story.failing}: nothing to tell")
    return StoryRun(model, verdict.trace)


def same_steps(run: StoryRun, rules: StoryRules, bounds: Mapping[str, Any]) -> StoryRun:
    """The same steps by other rules. Those that are not possible by them are left out."""
    model = model_of(rules, bounds)
    by_label = {action.label: action for action in model.actions}
    trace, left_out = [TraceStep(None, model.initial)], []
    for step in run.trace[1:]:
        assert step.action is not None
        action = by_label.get(step.action.label)
        after = None if action is None else action.bind()(trace[-1].state)
        if action is None or after is None:
            left_out.append(step.action)
        else:
            trace.append(TraceStep(action, after))
    return StoryRun(model, tuple(trace), tuple(left_out))
