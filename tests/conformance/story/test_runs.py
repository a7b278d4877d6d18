"""The runs that stories go through, as the checker finds them, and simulated clusters in them."""

from dataclasses import replace

import pytest

from kspec.cli.broker.serve import rules_of
from kspec.conformance.story.catalogue import STORIES, StoryRules
from kspec.conformance.story.errors import StoryError
from kspec.conformance.story.runs import StoryRun, failing_run, model_of, same_steps
from kspec.conformance.story.steps import STEP_FUNCTIONS
from kspec.conformance.story.story_run import StoryEnding, run_simulated
from tests.limits.marks import marked


def holds(run: StoryRun, invariant: str) -> bool:
    prop = run.model.property_named(invariant)
    assert prop is not None
    return all(prop.bind()(step.state) for step in run.trace)


def ended(run: StoryRun, rules: StoryRules) -> StoryEnding:
    return run_simulated(run, rules_of(*rules), lambda text: None)


FOUND_SOON = ("kip-101-divergence", "acks-1", "diverging-fetch", "rolled-back-proposal")
"""Stories whose runs the checker finds in a second."""


@pytest.mark.parametrize("name", marked(tuple(STORIES), nightly=tuple(name for name in STORIES if name not in FOUND_SOON)))
def test_a_simulated_cluster_fails_as_the_run_does_and_not_by_repaired_rules(name: str) -> None:
    story = STORIES[name]
    run = failing_run(story)
    assert {step.action.name for step in run.trace if step.action is not None} <= STEP_FUNCTIONS.keys()
    assert not holds(run, story.invariant)
    assert story.invariant in ended(run, story.failing).wrong
    repaired = same_steps(run, story.repaired, story.repaired_bounds)
    assert holds(repaired, story.invariant)
    ending = ended(repaired, story.repaired)
    assert (ending.wrong, ending.wrong_when_settled) == ({}, {})


def test_a_cluster_that_departs_from_the_run_ends_the_story() -> None:
    for name, difference in [
        ("kip-101-divergence", "broker 2 asks broker 1 by OffsetForLeaderEpoch, not by Fetch"),
        ("rolled-back-proposal", r"broker 1 has .*high_watermark=0\), where the model has .*high_watermark=1\)"),
    ]:
        story = STORIES[name]
        with pytest.raises(StoryError, match=rf"^step \d+, .*: {difference}$"):
            ended(failing_run(story), story.repaired)


def test_old_brokers_have_the_oldest_kraft_controller() -> None:
    story = STORIES["kip-101-loss"]
    model = model_of(story.failing, story.bounds)
    assert model.parameters["release"] == "3.0"
    assert "controller" in {slot.name for slot in model.slots}


@pytest.mark.slow
def test_rules_by_which_nothing_fails_have_no_story() -> None:
    with pytest.raises(StoryError, match=r"AcknowledgedOnLeader holds by the rules of release 0\.11"):
        failing_run(replace(STORIES["kip-101-loss"], failing=StoryRules("0.11")))


@pytest.mark.nightly
def test_a_follower_that_stays_in_an_isr_that_shrinks_has_begun_to_follow() -> None:
    story = STORIES["forgotten-proposal"]
    run = failing_run(story)
    actions = [step.action for step in run.trace if step.action is not None]
    shrink = next(number for number, action in enumerate(actions) if action.name == "ProposeShrink")
    slow = actions[shrink].args["slow"]
    assert isinstance(slow, tuple)
    reading = {action.args["broker"] for action in actions[:shrink] if action.name == "ReplayMetadata"}
    assert {1, 2, 3} - {actions[shrink].args["leader"], *slow} <= reading
