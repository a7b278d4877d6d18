"""Steps that a run of the model leaves out are prevented on a cluster, and those that it has are brought about."""

from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from kspec.conformance.cluster.driver import ELECT, KILL, PARTITION, PAUSE, needs
from kspec.conformance.cluster.translation import NotTranslatedError, schedule_of
from kspec.model_check.core.model import Model
from kspec.model_check.engines.simulation.walks import trace_of
from kspec.model_check.models import MODELS
from kspec.trials.faults.plans.steps import ClusterStep, Schedule, StepKind


@cache
def model(**parameters: Any) -> Model:
    return MODELS["kafka"].build({"release": "next", "elections": 0, **parameters})


def schedule(run: Sequence[str], **parameters: Any) -> Schedule:
    """The schedule of the run with these actions, by their labels."""
    built = model(**parameters)
    numbers = {action.label: number for number, action in enumerate(built.actions)}
    return schedule_of(built, trace_of(built, [numbers[label] for label in run]))


def links(*pairs: str) -> ClusterStep:
    """A cut: `12` is what 1 sends to 2, `c1` what the controller sends to 1."""
    named = {"c": "controller", "x": "clients"}
    return ClusterStep(
        StepKind.CUT, links=frozenset((named.get(one, one), named.get(other, other)) for one, other in map(tuple, pairs))
    )


CREATED = ("CreatePartition(leader=1)", "ReplayMetadata(broker=1, decisions=1)")
ALL = ("12", "21", "13", "31", "23", "32")
WRITE, HEALED = ClusterStep(StepKind.WRITE), ClusterStep(StepKind.CUT)


def reads(*brokers: int) -> list[str]:
    return [f"ReplayMetadata(broker={broker}, decisions=1)" for broker in brokers]


def end(last: int, *pairs: str) -> tuple[ClusterStep, ...]:
    """All others are killed; whatever the last one has not got is lost, if it comes to lead.

    `pairs`: the links that were cut before. Those of the dead stay so until it leads.
    """
    others = [ClusterStep(StepKind.KILL, broker) for broker in (1, 2, 3) if broker != last]
    of_dead = [pair for pair in pairs if set(pair) - {str(last), "c", "x"}]
    cut = () if set(of_dead) == set(pairs) else (links(*of_dead),)
    return (*others, *cut, ClusterStep(StepKind.LEAD, last), *((HEALED,) if of_dead else ()))


def test_followers_that_do_not_fetch_are_cut_off_and_the_poorest_is_left() -> None:
    found = schedule([*CREATED, "Produce(leader=1)"], acks="1")
    assert found.steps == (links(*ALL), WRITE, *end(2, *ALL))
    assert found.replicas == (1, 2, 3)
    assert found.min_isr == 2
    assert needs(found) == {PARTITION, KILL}


def test_a_follower_that_fetches_is_not_cut_off() -> None:
    run = [*CREATED, *reads(2), "Produce(leader=1)", "Fetch(follower=2, leader=1)"]
    rest = ("13", "31", "23", "32")
    assert schedule(run).steps == (links(*rest), WRITE, *end(3, *rest))


def test_a_fetch_without_an_answer_is_under_way_while_producers_send_and_its_answer_does_not_arrive() -> None:
    run = [*CREATED, *reads(2), "Produce(leader=1)", "FetchUnanswered(follower=2, leader=1)"]
    rest = ("13", "31", "23", "32")
    sent = (links("21", *rest, "x1"), ClusterStep(StepKind.SEND), links("21", *rest), ClusterStep(StepKind.SEND))
    assert schedule(run).steps[:6] == (*sent, links("12", *rest), WRITE)


def test_a_slow_follower_is_cut_off_until_it_has_left_the_isr() -> None:
    run = [*CREATED, "ProposeShrink(leader=1, slow=(3,))", "GrantIsr(leader=1)"]
    expected = (links("13", "31"), ClusterStep(StepKind.LEAVE_ISR, 3), WRITE, links(*ALL), WRITE, *end(2, *ALL))
    assert schedule(run, isr_shrinks=1).steps == expected


def test_a_leader_whose_proposal_is_not_granted_does_not_reach_the_controller() -> None:
    run = [*CREATED, "ProposeShrink(leader=1, slow=(3,))"]
    expected = (
        links("13", "31"),
        ClusterStep(StepKind.SEND),
        links("13", "31", "1c", "c1"),
        WRITE,
        *end(3, "13", "31", "1c", "c1"),
    )
    assert schedule(run, isr_shrinks=1).steps == expected


def test_a_leader_that_does_not_hear_of_its_successor_is_cut_off_from_the_controller() -> None:
    """Only if it does something in the meantime: who does nothing may as well know."""
    run = [*CREATED, "ElectPreferred(leader=2)"]
    leads = (ClusterStep(StepKind.ELECT, 2), ClusterStep(StepKind.LEAD, 2))
    assert schedule(run, elections=1).steps[:3] == (links(*ALL), *leads)
    zombie = schedule([*run, "Produce(leader=1)"], elections=1)
    assert zombie.steps[:4] == (links(*ALL, "1c", "c1"), *leads, links(*ALL))
    assert zombie.replicas == (1, 2, 3)
    assert ELECT in needs(zombie)


def test_who_is_fenced_stands_still_if_it_does_nothing_before_it_knows() -> None:
    run = [*CREATED, "Fence(broker=1, successor=3)"]
    found = schedule(run, fencings=1)
    assert found.steps[:3] == (links(*ALL), ClusterStep(StepKind.PAUSE, 1), ClusterStep(StepKind.LOSE_LEADERSHIP, 1))
    assert found.replicas == (1, 3, 2), "the successor is preferred to the one that is passed over"
    assert PAUSE in needs(found)


def test_who_is_fenced_and_goes_on_is_cut_off_from_the_controller() -> None:
    found = schedule([*CREATED, "Fence(broker=1, successor=3)", "Produce(leader=1)"], fencings=1)
    assert found.steps[:2] == (links(*ALL, "1c", "c1"), ClusterStep(StepKind.LOSE_LEADERSHIP, 1))
    assert PAUSE not in needs(found)


def test_who_stood_still_goes_on_before_it_does_something() -> None:
    run = [*CREATED, "Fence(broker=1, successor=3)", "ReplayMetadata(broker=3, decisions=2)", "Produce(leader=3)", *reads(1)]
    steps = schedule(run, fencings=1).steps
    assert steps.index(ClusterStep(StepKind.PAUSE, 1)) < steps.index(ClusterStep(StepKind.RESUME, 1)) < steps.index(WRITE)


def test_a_broker_that_dies_and_comes_back() -> None:
    run = [*CREATED, "UncleanShutdown(broker=2, kept=0, checkpointedHighWatermark=0)", "Register(broker=2, successor=2)"]
    steps = schedule(run, unclean_shutdowns=1).steps
    assert steps[:3] == (links(*ALL), ClusterStep(StepKind.KILL, 2), ClusterStep(StepKind.START, 2))


def test_a_step_without_counterpart_is_named() -> None:
    run = [*CREATED, *reads(2), "SendFetch(follower=2, leader=1)"]
    with pytest.raises(NotTranslatedError, match="SendFetch is not what a driver can bring about"):
        schedule(run, late_fetches=1)
