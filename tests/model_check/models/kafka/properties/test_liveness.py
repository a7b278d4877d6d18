"""Liveness of the model `kafka`: holds in the repaired release, violated by mutants and releases, by runs that are fair."""

from functools import cache
from typing import Any

import pytest

from kspec.model_check.core.temporal import assumed
from kspec.model_check.graphs.edges import state_graph
from kspec.model_check.graphs.graph import StateGraph
from kspec.model_check.graphs.liveness import check_liveness
from kspec.model_check.models.kafka.properties.liveness import HEALING
from kspec.model_check.reports import mutants
from tests.counts import count_of
from tests.limits.marks import marked
from tests.model_check.commands import Command
from tests.model_check.graphs.lassos import assert_fair_violation
from tests.model_check.models.kafka.test_kafka import kafka

Lengths = dict[str, tuple[int, int]]
"""Of each violated property: states of the run, and of its loop (0 if it stands still)."""

PROPERTIES = [
    "BrokerComesBack",
    "LeaderTakesOffice",
    "IsrChangeCompletes",
    "WriteIsAnswered",
    "AcknowledgedIsReplicated",
    "ActiveReplicaJoinsIsr",
    "IsrIsWholeAgain",
]

DISTURBANCES = {
    "FailOver",
    "ExpireSession",
    "Fence",
    "ProposeShrink",
    "ElectPreferred",
    "Reassign",
    "CancelReassignment",
    "RegisterAgain",
    "RegisterEarlier",
} | {
    "UncleanShutdown",
    "BeginShutdown",
    "StopAtOnce",
    "StopUnheard",
    "StartOnLateAnswer",
    "SendFetch",
    "Start",
    "SendProposalAgain",
    "HandleLateProposal",
}
LOSSES = {"HandleRequestUnanswered", "HandleStrayRequest", "WriteIsrUnconfirmed"} | {
    "FetchUnanswered",
    "GrantIsrUnanswered",
    "LoseConnection",
    "TakeAnswerReadLate",
}
CLIENTS = {"CreatePartition", "Produce", "ProduceAgain"}


@cache
def graph_of(parameters: tuple[tuple[str, Any], ...]) -> StateGraph:
    return state_graph(kafka(**dict(parameters)), 1)


def broken(graph: StateGraph, *without: str) -> Lengths:
    """Liveness properties that are violated if these actions need not be fair; each run is checked to be one, and fair."""
    model = graph.model
    fairness = [one for one in assumed(model.fairness) if one.action not in without]
    found: Lengths = {}
    for verdict in check_liveness(graph, model.liveness, lambda prop: fairness).verdicts:
        if lasso := verdict.lasso:
            assert_fair_violation(model, verdict.prop, fairness, lasso)
            found[verdict.prop.name] = len(lasso.steps), len(lasso.steps) - lasso.loop_start if lasso.closing else 0
    return found


def of(**parameters: Any) -> tuple[tuple[str, Any], ...]:
    return tuple(parameters.items())


KEPT: list[Any] = [
    pytest.param(of(brokers=2, elections=2), id="elections"),
    pytest.param(of(brokers=2, min_isr=1, isr_shrinks=1), id="an ISR shrink"),
    pytest.param(of(brokers=2, elections=0, fencings=1), id="a fencing"),
    pytest.param(of(brokers=2, elections=0, unclean_shutdowns=1), id="a power loss"),
    pytest.param(of(brokers=2, elections=0, clean_shutdowns=1), id="a clean stop"),
    pytest.param(of(elections=1, isr_shrinks=1), id="three brokers, an ISR shrink", marks=pytest.mark.nightly),
    pytest.param(of(elections=1, fencings=1), id="three brokers, a fencing", marks=pytest.mark.nightly),
    pytest.param(of(elections=0, unclean_shutdowns=1), id="three brokers, a power loss", marks=pytest.mark.nightly),
    pytest.param(of(elections=0, clean_shutdowns=1), id="three brokers, a clean stop", marks=pytest.mark.nightly),
]


@pytest.mark.parametrize("parameters", KEPT)
def test_the_repaired_version_satisfies_its_properties(parameters: tuple[tuple[str, Any], ...]) -> None:
    graph = graph_of(parameters)
    assert graph.states == count_of("kafka", **dict(parameters)).states
    assert broken(graph) == {}


@pytest.mark.slow
def test_every_property_is_due_somewhere() -> None:
    graph = graph_of(of(brokers=2, min_isr=1, elections=0, clean_shutdowns=1))
    assert [prop.name for prop in graph.model.liveness] == PROPERTIES
    assert all(verdict.met for verdict in check_liveness(graph, graph.model.liveness).verdicts)


EVERYTHING = {
    "isr_shrinks": 1,
    "fencings": 1,
    "clean_shutdowns": 1,
    "unclean_shutdowns": 1,
    "reassignments": 1,
    "late_fetches": 1,
    "retries": 1,
    "unclean": True,
}
ONLY_KRAFT = {"late_registrations": 1, "earlier_registrations": 1, "slow_registrations": 1, "late_proposals": 1}
ONLY_ZOOKEEPER = {"failovers": 1, "lost_confirmations": 1}


def test_what_is_not_fair_is_a_disturbance_a_loss_or_what_clients_do() -> None:
    models = [
        kafka(release="3.0", **EVERYTHING, **ONLY_KRAFT),
        kafka(release="next", elections=0, fencings=1),
        kafka(release="2.6", **EVERYTHING, **ONLY_ZOOKEEPER),
        kafka(release="2.7", **EVERYTHING),
        kafka(release="2.7", without_reduction="lone-truncation"),
    ]
    for model in models:
        unfair = set(model.action_names) - {fairness.action for fairness in model.fairness}
        assert unfair == (DISTURBANCES | LOSSES | CLIENTS) & set(model.action_names)
    known = {name for model in models for name in model.action_names}
    assert {fairness.action for fairness in HEALING} == known - DISTURBANCES - LOSSES - CLIENTS


SLOW = set(mutants.LIVENESS_HUNTS) - {"truncate-only-if-longer"}


@pytest.mark.parametrize("name", marked(mutants.LIVENESS_HUNTS, slow=SLOW, nightly=["last-known-leader-while-down"]))
def test_a_mutant_that_costs_progress_violates_a_property_that_the_repaired_version_satisfies(name: str) -> None:
    hunt = mutants.LIVENESS_HUNTS[name]
    assert hunt.prop in broken(graph_of(of(**hunt.bounds, mutant=mutants.weakened(name))), *hunt.without)
    repaired = graph_of(of(**hunt.bounds))
    assert hunt.prop not in broken(repaired, *hunt.without)
    verdicts = check_liveness(repaired, [prop for prop in repaired.model.liveness if prop.name == hunt.prop]).verdicts
    assert all(verdict.met for verdict in verdicts)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.6", {"BrokerComesBack": (6, 0)}),
        ("3.8", {"BrokerComesBack": (5, 0), "WriteIsAnswered": (6, 0)}),
        ("3.9", {}),
    ],
)
def test_a_registration_that_arrives_late_keeps_a_broker_away_for_ever(release: str, expected: Lengths) -> None:
    """KAFKA-16952: the controller gives the broker an epoch that it never hears of, and refuses its heartbeats.

    Up to 3.7.0 a second registration fences the broker, and it leaves the ISR.
    """
    assert broken(graph_of(of(release=release, brokers=2, elections=0, late_registrations=1))) == expected


AN_EARLIER_ONE = {
    "brokers": 2,
    "min_isr": 1,
    "values": 0,
    "elections": 0,
    "unclean_shutdowns": 1,
    "earlier_registrations": 1,
}


@pytest.mark.parametrize("release", ["3.0", "3.9", "4.4", "next"])
def test_a_registration_of_the_incarnation_before_keeps_a_broker_away_for_ever(release: str) -> None:
    """The session of the present incarnation does not protect it before its first heartbeat, in no release."""
    graph = graph_of(of(release=release, **AN_EARLIER_ONE))
    assert broken(graph)["BrokerComesBack"] == (5, 0)
    (prop,) = (prop for prop in graph.model.liveness if prop.name == "BrokerComesBack")
    lasso = check_liveness(graph, [prop]).verdicts[0].lasso
    assert lasso is not None
    assert "RegisterEarlier" in [step.action.name for step in lasso.steps if step.action is not None]


def test_an_incarnation_that_has_sent_a_heartbeat_and_the_first_one_have_nothing_to_fear() -> None:
    """Without a restart there is no incarnation before; and a broker that is heard has a session."""
    model = kafka(release="4.4", **AN_EARLIER_ONE)
    possible, state = [], model.initial
    for name in ("UncleanShutdown", "Register", "TakeFirstImage", "Unfence"):
        taken = next(action for action in model.actions if action.name == name and action.args["broker"] == 1)
        after = taken.bind()(state)
        assert after is not None, name
        state = after
        late = [action.bind()(state) for action in model.actions if action.name == "RegisterEarlier"]
        possible.append([one is not None for one in late])
    assert possible == [[False, False], [True, False], [False, False], [False, False]]


REASSIGNED = {"values": 0, "elections": 0, "reassignments": 3}


@pytest.mark.slow
@pytest.mark.parametrize(("release", "expected"), [("4.2", {}), ("4.4", {"ReassignmentEnds": (12, 0)}), ("next", {})])
def test_a_reassignment_that_takes_an_added_replica_back_never_ends_since_4_3(release: str, expected: Lengths) -> None:
    """KAFKA-19975 waits for all replicas that are added, also for one that is to be removed again."""
    assert broken(graph_of(of(release=release, **REASSIGNED))) == expected


def test_reassignments_end_is_asked_where_there_are_some() -> None:
    assert "ReassignmentEnds" not in [prop.name for prop in kafka(elections=0).liveness]
    assert "ReassignmentEnds" in [prop.name for prop in kafka(elections=0, reassignments=1).liveness]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "expected"), [("2.1", {"WriteIsAnswered": (17, 0)}), ("2.6", {"WriteIsAnswered": (17, 0)}), ("2.7", {})]
)
def test_an_epoch_opened_in_vain_stops_a_follower_for_ever(release: str, expected: Lengths) -> None:
    """KAFKA-10706: the follower asks where that epoch ends, cuts nothing, and asks again."""
    assert broken(graph_of(of(release=release, brokers=2, min_isr=1, values=3, elections=3))) == expected


AWAY_AND_BACK = {"brokers": 2, "elections": 0, "unclean_shutdowns": 1}


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("2.1", {"BrokerComesBack": 7, "LeaderTakesOffice": 7, "WriteIsAnswered": 8, "AcknowledgedIsReplicated": 10}),
        ("2.2", {}),
        ("2.8", {}),
    ],
)
def test_a_quick_restart_goes_unnoticed_up_to_2_1(release: str, expected: dict[str, int]) -> None:
    """KAFKA-1120: the controller looks too late to see that the broker was away, so nobody tells it what to do (KIP-380)."""
    found = broken(graph_of(of(release=release, **AWAY_AND_BACK)))
    assert {name: states for name, (states, _) in found.items()} == expected


@pytest.mark.parametrize(
    "release", [pytest.param("0.10", marks=pytest.mark.slow), "2.6", pytest.param("2.8", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(
    "bounds",
    [
        {"elections": 2},
        {"elections": 0, "min_isr": 1, "isr_shrinks": 1},
        {"elections": 0, "fencings": 1},
        {"elections": 1, "failovers": 1},
    ],
    ids=str,
)
def test_liveness_holds_with_zookeeper(release: str, bounds: dict[str, int]) -> None:
    assert broken(graph_of(of(release=release, brokers=2, **bounds))) == {}


@pytest.mark.parametrize("release", ["2.6", "2.8"])
def test_liveness_holds_with_zookeeper_after_a_clean_stop(release: str) -> None:
    assert broken(graph_of(of(release=release, brokers=2, elections=0, clean_shutdowns=1))) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("release", "bounds"),
    [
        ("2.6", {"isr_shrinks": 1}),
        pytest.param("2.8", {"isr_shrinks": 1}, marks=pytest.mark.nightly),
        pytest.param("2.6", {"fencings": 1}, marks=pytest.mark.nightly),
        ("2.8", {"fencings": 1}),
        pytest.param("2.6", {"clean_shutdowns": 1}, marks=pytest.mark.nightly),
    ],
    ids=str,
)
def test_liveness_holds_with_zookeeper_and_three_brokers(release: str, bounds: dict[str, int]) -> None:
    assert broken(graph_of(of(release=release, elections=0, **bounds))) == {}


def test_a_leader_with_an_epoch_that_is_not_its_own_asks_for_an_isr_for_ever() -> None:
    """KAFKA-16952: each proposal is refused as that of an earlier run, and made again."""
    found = broken(graph_of(of(release="3.8", brokers=2, min_isr=1, elections=0, isr_shrinks=1, late_registrations=1)))
    assert found["IsrChangeCompletes"] == (8, 2)


@pytest.mark.slow
def test_a_hunt_for_a_liveness_property_as_line_json_and_page(command: Command) -> None:
    found = mutants.hunt("await-ineligible")
    assert (found.caught_by, found.loop, found.without) == ({"WriteIsAnswered": 5}, 0, ("Register",))
    assert "WriteIsAnswered fails in an infinite run of 5 steps" in " ".join(mutants.line(found).split())
    (listed,) = mutants.as_json([found])["mutants"]
    assert (listed["caught"], listed["loop"], listed["without"]) == (True, 0, ["Register"])
    page = mutants.as_markdown([found])
    assert "--clean-shutdowns 1 --endless-lag --without Register` | liveness property WriteIsAnswered | 5 |" in page
