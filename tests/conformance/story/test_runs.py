"""The runs that stories go through, as the checker finds them by the rules of the processes."""

from dataclasses import replace

import pytest

from conformance.story.acts import ACTS
from conformance.story.catalogue import STORIES, Rules
from conformance.story.runs import Run, failing_run, model_of, same_steps
from conformance.story.words import StoryError

pytestmark = pytest.mark.slow


def holds(run: Run, invariant: str) -> bool:
    prop = run.model.property_named(invariant)
    assert prop is not None
    return all(prop.bind()(step.state) for step in run.trace)


@pytest.mark.parametrize(
    "name", ["kip-101-loss", "kip-101-divergence", "kip-279-fast-leader-changes", "acks-1", "below-min-isr"]
)
def test_a_run_consists_of_steps_that_processes_take_and_fails_by_its_own_rules_alone(name: str) -> None:
    story = STORIES[name]
    run = failing_run(story)
    assert {step.action.name for step in run.trace if step.action is not None} <= ACTS.keys()
    assert not holds(run, story.invariant)
    assert holds(same_steps(run, story.repaired, story.repaired_bounds), story.invariant)


def test_old_brokers_have_the_oldest_kraft_controller() -> None:
    story = STORIES["kip-101-loss"]
    model = model_of(story.failing, story.bounds)
    assert model.parameters["release"] == "3.0"
    assert "controller" in {slot.name for slot in model.slots}


def test_rules_by_which_nothing_fails_have_no_story() -> None:
    with pytest.raises(StoryError, match=r"AcknowledgedOnLeader holds by the rules of release 0\.11"):
        failing_run(replace(STORIES["kip-101-loss"], failing=Rules("0.11")))


def test_a_follower_that_stays_in_an_isr_that_shrinks_has_begun_to_follow() -> None:
    story = STORIES["forgotten-proposal"]
    run = failing_run(story)
    actions = [step.action for step in run.trace if step.action is not None]
    shrink = next(number for number, action in enumerate(actions) if action.name == "ProposeShrink")
    slow = actions[shrink].args["slow"]
    assert isinstance(slow, tuple)
    reading = {action.args["broker"] for action in actions[:shrink] if action.name == "ReplayMetadata"}
    assert {1, 2, 3} - {actions[shrink].args["leader"], *slow} <= reading
