"""The model `kafka` up to 2.8, whose controller works on ZooKeeper: what it counts, and what it finds in releases."""

from typing import Any

import pytest

from kspec.model_check.core.audit import audit
from kspec.model_check.core.exploration import Limits, Trace
from kspec.model_check.core.model import Model
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines import compiled, reference
from kspec.model_check.models.kafka.board import Board
from kspec.model_check.models.kafka.party import PartyState
from kspec.model_check.models.kafka.reductions import order_for
from kspec.model_check.models.kafka.settings import controller_of, releases_of, rules_of
from kspec.model_check.models.kafka.values import (
    FIRST_CONTROLLER,
    NO_EXCHANGE,
    NO_TOPIC,
    Inbox,
    Order,
    Process,
    RequestKind,
    RequestState,
    TopicRegistration,
    ZkCluster,
)
from kspec.model_check.models.kafka.zookeeper.brokers import BrokerAfterRequest, handled
from kspec.model_check.models.kafka.zookeeper.state import ZkDecision, order_of, with_mail
from kspec.model_check.traces.encode import in_words
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.metadata import BrokerRegistration
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Incarnation,
    PartitionEpoch,
    PartitionId,
)
from kspec.spec.zookeeper.protocol import LiveBroker, ZkController
from tests.model_check.engines.comparison import assert_replays, numbers_of
from tests.model_check.models.kafka.test_kafka import explored, kafka, steps, violated

slow, nightly = pytest.mark.slow, pytest.mark.nightly

SMALL: list[Any] = [
    {"brokers": 2, "release": "2.6", "min_isr": 1, "elections": 1, "isr_shrinks": 1, "lost_confirmations": 1},
    pytest.param({"brokers": 2, "release": "2.8", "elections": 0, "fencings": 1}, marks=slow),
    pytest.param({"brokers": 2, "release": "2.6,2.7", "min_isr": 1, "elections": 1, "isr_shrinks": 1}, marks=slow),
    {"brokers": 2, "release": "2.6", "elections": 0, "failovers": 1},
    pytest.param({"brokers": 2, "release": "2.1", "elections": 0, "unclean_shutdowns": 1}, marks=slow),
    pytest.param({"brokers": 2, "release": "2.2", "elections": 0, "unclean_shutdowns": 1}, marks=nightly),
    pytest.param({"brokers": 2, "release": "2.7", "min_isr": 1, "elections": 1, "isr_shrinks": 1}, marks=slow),
    pytest.param(
        {"brokers": 2, "release": "2.8", "elections": 0, "values": 0, "fencings": 1, "failovers": 1}, marks=nightly
    ),
    pytest.param(
        {"brokers": 2, "release": "0.10", "min_isr": 1, "elections": 0, "values": 0, "clean_shutdowns": 1}, marks=slow
    ),
    pytest.param({"brokers": 3, "release": "2.0,2.1,2.1", "elections": 1}, marks=nightly),
]


@pytest.mark.parametrize("parameters", SMALL, ids=str)
def test_the_compiled_engine_counts_as_the_reference_engine(parameters: dict[str, Any]) -> None:
    model = kafka(**parameters)
    limits = Limits(stop_at_first=False, max_states=3000)
    expected = numbers_of(reference.explore(model, model.properties, limits))
    if not expected["complete"]:
        pytest.fail("too big to compare: make the bounds smaller")
    assert numbers_of(compiled.explore(model, model.properties, limits)) == expected


EVERYTHING = {"isr_shrinks": 1, "fencings": 2, "clean_shutdowns": 1, "unclean_shutdowns": 1, "failovers": 1}


@slow
@pytest.mark.parametrize(
    ("release", "more"), [("2.6", {"lost_confirmations": 1, "reassignments": 1}), ("2.8", {"unclean": True})]
)
def test_actions_read_and_write_what_they_declare_and_tell_no_brokers_apart(release: str, more: dict[str, Any]) -> None:
    model = kafka(release=release, **EVERYTHING, **more)
    assert audit(model, 15, seed=1, unused=False).findings == []
    Symmetry(model).check(model.properties)


# ---- what holds, and since when


HOLDS: list[Any] = [
    pytest.param("2.1", {"elections": 1, "isr_shrinks": 1}, 5_026, marks=slow),
    ("2.6", {"elections": 1, "isr_shrinks": 1}, 5_026),
    ("2.7", {"elections": 1, "isr_shrinks": 1}, 9_558),
    ("2.6", {"brokers": 2, "elections": 1, "fencings": 1}, 1_609),
    ("2.8", {"brokers": 2, "elections": 1, "fencings": 1}, 1_581),
    ("2.6", {"brokers": 2, "elections": 1, "unclean_shutdowns": 1}, 5_016),
    ("2.6", {"elections": 0, "reassignments": 1}, 2_606),
    pytest.param("2.6", {"elections": 1, "fencings": 1}, 40_148, marks=nightly),
    pytest.param("2.8", {"elections": 1, "fencings": 1}, 40_235, marks=nightly),
    pytest.param("2.6", {"elections": 2, "values": 2}, 26_235, marks=slow),
    pytest.param("2.6", {"elections": 1, "unclean_shutdowns": 1}, 187_064, marks=nightly),
    pytest.param("2.6", {"elections": 0, "reassignments": 2}, 40_351, marks=nightly),
]


@pytest.mark.slow
@pytest.mark.parametrize(("release", "bounds", "states"), HOLDS)
def test_all_properties_hold(release: str, bounds: dict[str, int], states: int) -> None:
    found = explored(kafka(release=release, **bounds), everything=True)
    assert found.complete
    assert not violated(found)
    assert found.distinct_states == states
    assert all(verdict.holds for verdict in found.verdicts)


@pytest.mark.parametrize(("release", "lost"), [("2.1", 10), ("2.2", None)])
def test_a_broker_that_is_back_before_it_is_missed_keeps_its_place_up_to_2_1(release: str, lost: int | None) -> None:
    """KAFKA-1120: it may have lost its records. Since 2.2 its broker epoch tells the controller (KIP-380)."""
    found = explored(kafka(release=release, brokers=2, elections=0, unclean_shutdowns=1), everything=True)
    assert violated(found).get("AcknowledgedOnLeader") == lost
    assert violated(found).get("UncleanExclusion") == (4 if lost else None)


def trace_of(model: Model, name: str) -> Trace:
    prop = model.property_named(name)
    assert prop is not None
    found = compiled.explore(model, [prop], Limits(), symmetry=Symmetry(model))
    (verdict,) = found.verdicts
    assert verdict.trace is not None
    assert_replays(model, verdict.trace)
    return verdict.trace


@slow
@pytest.mark.parametrize("release", ["2.1", "2.8"])
def test_an_epoch_is_missed_if_the_controller_is_replaced_before_it_has_told_of_it(release: str) -> None:
    """The leader is told of the epoch in which it leads again, and not of the one in between; both elections are clean."""
    trace = trace_of(kafka(release=release, elections=2, failovers=1), "AcknowledgedOnNextLeader")
    assert len(trace) == 19
    assert sum(step.startswith("ElectPreferred") for step in steps(trace)) == 2
    assert sum(step.startswith("FailOver") for step in steps(trace)) == 1


def test_a_write_whose_confirmation_is_lost_loses_an_acknowledged_record() -> None:
    """The leader takes an ISR for not written that is written, since another election has followed."""
    trace = trace_of(kafka(release="2.6", isr_shrinks=1, lost_confirmations=1), "AcknowledgedOnNextLeader")
    assert len(trace) == 14
    wrote = [step.split("(")[0] for step in steps(trace) if step.startswith("WriteIsr")]
    assert wrote == ["WriteIsr", "WriteIsrUnconfirmed", "WriteIsrAgain"]


def test_a_confirmation_that_is_lost_does_no_harm_while_nobody_else_writes() -> None:
    found = explored(kafka(release="2.6", elections=0, isr_shrinks=1, lost_confirmations=1), everything=True)
    assert found.complete
    assert not violated(found)


def test_while_a_leader_writes_the_isr_it_does_nothing_else() -> None:
    model = kafka(release="2.6", brokers=2, min_isr=1, isr_shrinks=1, lost_confirmations=1)
    trace = trace_of(model, "CommittedOnNextLeader")
    exchange = next(slot for slot in model.slots if slot.label == "alterPartition[1]")
    writing = [
        step.state for step in trace if step.state[exchange.position].state in (RequestState.SENT, RequestState.WRITTEN)
    ]
    assert len(writing) > 1
    for state in writing:
        enabled = {action.label for action in model.actions if action.bind()(state) is not None}
        assert enabled & {"WriteIsr(leader=1)", "WriteIsrAgain(leader=1)"}
        assert not enabled & {"Produce(leader=1)", "ProposeShrink(leader=1, slow=(2,))", "HandleRequest(broker=1)"}
        assert not any(label.startswith(("Fetch", "AskLeader")) and "leader=1" in label for label in enabled)


def test_in_a_mixed_cluster_isrs_are_changed_as_in_the_oldest_version() -> None:
    def asks(release: str) -> set[str]:
        return set(kafka(release=release, brokers=2, isr_shrinks=1).action_names) & {"WriteIsr", "GrantIsr"}

    assert (asks("2.6,2.7"), asks("2.7,2.8"), asks("2.6"), asks("3.0,3.1")) == (
        {"WriteIsr"},
        {"GrantIsr"},
        {"WriteIsr"},
        {"GrantIsr"},
    )


@pytest.mark.parametrize(
    ("release", "controller"),
    [
        ("0.10", "0.10"),
        ("1.0", "0.10"),
        ("2.0", "1.1"),
        ("2.0,2.8,2.8", "1.1"),
        ("2.1", "2.1"),
        ("2.8", "2.2"),
        ("3.1", "3.0"),
    ],
)
def test_the_controller_is_that_of_the_oldest_version(release: str, controller: str) -> None:
    parameters = dict(kafka(release=release).parameters)
    control = controller_of(releases_of(parameters), parameters)
    assert (control.protocol.name, isinstance(control, ZkController)) == (controller, release != "3.1")


# ---- requests


ONE, TWO = BrokerId(1), BrokerId(2)
IDS = frozenset({ONE, TWO})


def announced(leader: int, epoch: int, controller: int = 0) -> Order:
    """The part of an announcement that broker 2 keeps."""
    return order_for(TWO, announcement(leader, epoch, controller))


def announcement(leader: int, epoch: int, controller: int = 0) -> Order:
    role = BrokerId(leader), Epoch(epoch), IDS, PartitionEpoch(epoch)
    request = LeaderAndIsrRequest(Epoch(controller), NO_BROKER_EPOCH, PartitionId(0), *role, (ONE, TWO))
    return order_of(request)


def decision(*orders: Order, **fields: Any) -> ZkDecision:
    return ZkDecision(ZkCluster(NO_TOPIC, frozenset()), tuple((TWO, order) for order in orders), **fields)


def test_a_follower_is_told_who_leads_and_a_leader_everything() -> None:
    assert announced(1, 3).topic == NO_TOPIC._replace(replicas=frozenset({TWO}), leader=ONE, leader_epoch=Epoch(3))
    assert announced(2, 3).topic == announcement(2, 3).topic == TopicRegistration(IDS, IDS, TWO, Epoch(3), PartitionEpoch(3))
    stop = StopReplicaRequest(Epoch(1), NO_BROKER_EPOCH, PartitionId(0), Epoch(3), delete=True)
    assert order_of(stop).told == RequestKind.GIVE_UP


def test_requests_wait_in_order_and_repetitions_are_left_out() -> None:
    first, second = announced(1, 0), announced(2, 1)
    inbox = with_mail(TWO, Inbox((first,)), decision(first, second, second))
    assert inbox.orders == (first, second)
    assert with_mail(ONE, Inbox((first,)), decision(second)).orders == (first,)


def test_without_reductions_a_request_is_kept_whole_and_as_often_as_it_is_sent() -> None:
    whole = announcement(1, 0)
    inbox = with_mail(TWO, Inbox(()), decision(whole, whole), frozenset())
    assert inbox.orders == (whole, whole)
    assert with_mail(TWO, Inbox(()), decision(whole, whole)).orders == (announced(1, 0),)


def test_what_waits_is_lost_with_the_connection() -> None:
    first, second = announced(1, 0), announced(2, 1)
    inbox = with_mail(TWO, Inbox((first,)), decision(second, closed=frozenset({TWO})))
    assert inbox == Inbox((second,))


def test_of_a_controller_that_is_replaced_one_request_may_still_arrive() -> None:
    first, second, again = announced(1, 0), announced(2, 1), announced(2, 1, controller=1)
    inbox = with_mail(TWO, Inbox((first, second)), decision(again, replaced=True))
    assert inbox == Inbox((again,), (first,))
    assert with_mail(TWO, Inbox((), (first,)), decision(again, replaced=True)) == Inbox((again,), (first,))


def test_a_request_of_a_controller_that_was_replaced_is_refused_once_the_next_one_was_heard() -> None:
    parameters = dict(kafka(release="2.6", brokers=2, failovers=1).parameters)
    releases = releases_of(parameters)
    board = Board("kafka", rules_of(releases, parameters), controller_of(releases, parameters), parameters)
    held = PartyState(*(board.model.initial[slot.position] for slot in board.held(TWO)))
    process = board.model.initial[board.slots.process[2].position]
    refused = handled(board, TWO, announced(1, 1), Epoch(1), process, held)
    assert refused == BrokerAfterRequest(Epoch(1), process, held)
    obeyed = handled(board, TWO, announced(1, 1), FIRST_CONTROLLER, process, held)
    assert (obeyed.controller_epoch, obeyed.held.role.leader_epoch) == (0, 1)


def test_late_requests_of_the_controller_before_are_among_what_is_explored() -> None:
    found = explored(kafka(release="2.6", brokers=2, elections=1, failovers=1), everything=True)
    assert found.complete
    assert not violated(found)
    assert found.actions["HandleStrayRequest"] > 0


# ---- words


RUNS = BrokerLifecycle(ONE, Incarnation(1), BrokerState.RUNNING, BrokerEpoch(1))
REGISTERED = BrokerRegistration(ONE, BrokerEpoch(1), Incarnation(1), fenced=False)
GONE = BrokerRegistration(TWO, BrokerEpoch(2), Incarnation(1), fenced=True)
KNOWN = frozenset({LiveBroker(ONE, NO_BROKER_EPOCH), LiveBroker(TWO, NO_BROKER_EPOCH)})


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (ZkCluster(NO_TOPIC, frozenset({REGISTERED}), live=frozenset({LiveBroker(ONE, NO_BROKER_EPOCH)})), "no partition"),
        (
            ZkCluster(NO_TOPIC, frozenset({REGISTERED, GONE}), frozenset({ONE}), KNOWN, Epoch(1)),
            "no partition, without a session {2}, broker epoch of 2 is 2, the controller has not noticed {2}, leaving {1},"
            " controller epoch 1",
        ),
        (Inbox(), "none"),
        (
            Inbox(
                (announced(1, 0), announced(2, 1, controller=1)),
                (Order(RequestKind.STOP_FETCHING, Epoch(0), BrokerEpoch(2), NO_TOPIC),),
            ),
            "1 leads in epoch 0; then 2 leads in epoch 1, ISR {1, 2}, partition epoch 1 (of controller epoch 1);"
            " still under way: stop fetching (to broker epoch 2)",
        ),
        (Inbox((Order(RequestKind.GIVE_UP, Epoch(0), NO_BROKER_EPOCH, NO_TOPIC),)), "give the replica up"),
        (
            NO_EXCHANGE._replace(state=RequestState.WRITTEN),
            "ISR {} on partition epoch -1 is written, and the confirmation lost",
        ),
        (Process(True, RUNS, published=True), "up"),
    ],
)
def test_in_words(value: Any, words: str) -> None:
    assert in_words(value) == words
