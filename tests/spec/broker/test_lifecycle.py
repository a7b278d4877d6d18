"""A broker's own view of registration, heartbeats and shutdown (rules D4, L6, L10, L11)."""

import pytest

from kspec.spec.broker.lifecycle import (
    CleanShutdown,
    LifecycleStep,
    begin_controlled_shutdown,
    handle_broker_heartbeat_response,
    handle_broker_registration_response,
    next_communication,
    on_registration_timeout,
    set_ready_to_unfence,
    start_again,
    stop,
)
from kspec.spec.broker.rules.lifecycle import BrokerLifecycle, BrokerState
from kspec.spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from kspec.spec.releases.broker import BROKER_NEXT
from kspec.spec.releases.kraft import KRAFT_NEXT, KRAFT_RELEASES
from kspec.spec.step import SendToController, Step
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Error, Incarnation, MonotonicMs, Offset
from tests.spec.controller_driver import ControllerDriver, answer_of, cluster

NOW = MonotonicMs(0)
NEW = BrokerLifecycle(BrokerId(1), Incarnation(2), previous_broker_epoch=BrokerEpoch(5))
REGISTERED = NEW._replace(broker_epoch=BrokerEpoch(7))


def in_state(state: BrokerState) -> BrokerLifecycle:
    return REGISTERED._replace(state=state, ready_to_unfence=True)


def test_a_run_registers_until_it_is_registered() -> None:
    request = BrokerRegistrationRequest(BrokerId(1), Incarnation(2), BrokerEpoch(5))
    assert next_communication(NEW, Offset(3)) == Step(NEW, (SendToController(request),))


@pytest.mark.parametrize(
    ("lifecycle", "want_fence", "want_shutdown"),
    [
        (REGISTERED, True, False),
        (in_state(BrokerState.RUNNING), False, False),
        (in_state(BrokerState.PENDING_CONTROLLED_SHUTDOWN), False, True),
    ],
)
def test_heartbeats(lifecycle: BrokerLifecycle, want_fence: bool, want_shutdown: bool) -> None:
    request = BrokerHeartbeatRequest(BrokerId(1), BrokerEpoch(7), Offset(3), want_fence, want_shutdown)
    assert next_communication(lifecycle, Offset(3)) == Step(lifecycle, (SendToController(request),))


def test_the_first_broker_epoch_is_one() -> None:
    """Epochs are offsets of the metadata log, from 0 on: with epoch 0 a broker is registered, and sends heartbeats."""
    first = NEW._replace(broker_epoch=BrokerEpoch(0))
    heartbeat = BrokerHeartbeatRequest(BrokerId(1), BrokerEpoch(0), Offset(3), True, False)
    assert next_communication(first, Offset(3)) == Step(first, (SendToController(heartbeat),))
    assert on_registration_timeout(first) == Step(first)


@pytest.mark.parametrize(
    ("error", "incarnation", "epoch"),
    [
        pytest.param(Error.NONE, 2, 7, id="registered"),
        pytest.param(Error.DUPLICATE_BROKER_REGISTRATION, 2, NO_BROKER_EPOCH, id="refused"),
        pytest.param(Error.NONE, 1, NO_BROKER_EPOCH, id="an answer to the lifecycle before"),
    ],
)
def test_answers_to_a_registration(error: Error, incarnation: int, epoch: int) -> None:
    response = BrokerRegistrationResponse(error, Incarnation(incarnation), BrokerEpoch(7))
    lifecycle = handle_broker_registration_response(BROKER_NEXT, NEW, response, NOW).state
    assert lifecycle == NEW._replace(broker_epoch=BrokerEpoch(epoch))


@pytest.mark.parametrize(
    ("before", "response", "after"),
    [
        ("STARTING", (Error.NONE, True, True, False), "RECOVERY"),
        ("STARTING", (Error.NONE, False, True, False), "STARTING"),
        ("RECOVERY", (Error.NONE, True, False, False), "RUNNING"),
        ("RECOVERY", (Error.NONE, True, True, False), "RECOVERY"),
        ("RUNNING", (Error.NONE, True, True, False), "RUNNING"),
        ("PENDING_CONTROLLED_SHUTDOWN", (Error.NONE, True, False, False), "PENDING_CONTROLLED_SHUTDOWN"),
        ("PENDING_CONTROLLED_SHUTDOWN", (Error.NONE, True, True, True), "SHUTTING_DOWN"),
        ("PENDING_CONTROLLED_SHUTDOWN", (Error.STALE_BROKER_EPOCH, True, True, True), "PENDING_CONTROLLED_SHUTDOWN"),
    ],
)
def test_answers_to_heartbeats(before: str, response: tuple[Error, bool, bool, bool], after: str) -> None:
    step = handle_broker_heartbeat_response(
        BROKER_NEXT, in_state(BrokerState[before]), BrokerHeartbeatResponse(*response), NOW
    )
    assert step.state.state == BrokerState[after]
    assert step.effects == ((CleanShutdown(BrokerEpoch(7)),) if after == "SHUTTING_DOWN" else ())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("STARTING", "SHUTTING_DOWN"),
        ("RUNNING", "PENDING_CONTROLLED_SHUTDOWN"),
        ("PENDING_CONTROLLED_SHUTDOWN", "PENDING_CONTROLLED_SHUTDOWN"),
    ],
)
def test_leave_is_asked_for_by_who_takes_part(before: str, after: str) -> None:
    assert begin_controlled_shutdown(in_state(BrokerState[before])).state.state == BrokerState[after]


@pytest.mark.parametrize(("lifecycle", "stops"), [(NEW, True), (REGISTERED, False)])
def test_who_is_not_registered_in_time_stops(lifecycle: BrokerLifecycle, stops: bool) -> None:
    step = on_registration_timeout(lifecycle)
    assert step == (stop(lifecycle) if stops else Step(lifecycle))
    assert on_registration_timeout(step.state) == Step(step.state), "once is enough"


# ---- both sides together


def talk(driver: ControllerDriver, lifecycle: BrokerLifecycle) -> BrokerLifecycle:
    """One request of the lifecycle, with all metadata applied, and its answer."""
    (effect,) = next_communication(lifecycle, Offset(driver.image.end_offset - 1)).effects
    assert isinstance(effect, SendToController)
    message = effect.message
    if isinstance(message, BrokerRegistrationRequest):
        reply = driver.take(handle_broker_registration(driver.controller, driver.state, message, MonotonicMs(driver.now_ms)))
        return handle_broker_registration_response(BROKER_NEXT, lifecycle, answer_of(reply), NOW).state
    beat = driver.take(handle_broker_heartbeat(driver.controller, driver.state, message, MonotonicMs(driver.now_ms)))
    return handle_broker_heartbeat_response(BROKER_NEXT, lifecycle, answer_of(beat), MonotonicMs(driver.now_ms)).state


@pytest.mark.parametrize("rules", KRAFT_RELEASES, ids=lambda rules: rules.name)
def test_a_broker_comes_and_goes(rules: ControllerProtocol) -> None:
    driver = cluster(rules)
    lifecycle = BrokerLifecycle(BrokerId(4), Incarnation(1))
    states = []
    for _ in range(4):
        lifecycle = set_ready_to_unfence(talk(driver, lifecycle)).state
        states.append(lifecycle.state.name)
    assert states == ["STARTING", "RECOVERY", "RUNNING", "RUNNING"]
    lifecycle = talk(driver, begin_controlled_shutdown(lifecycle).state)
    assert lifecycle.state == BrokerState.SHUTTING_DOWN


def test_the_next_run_tells_of_a_clean_shutdown() -> None:
    """Rules D4, L10: it keeps its eligibility then, and loses it otherwise."""
    for clean in (True, False):
        driver = cluster(KRAFT_NEXT, min_isr=3, eligible_leader_replicas=True)
        lifecycle = BrokerLifecycle(
            BrokerId(2), Incarnation(1), BrokerState.RUNNING, driver.broker_epochs[2], ready_to_unfence=True
        )
        driver.expire(2)
        assert driver.partition.elr == {BrokerId(2)}
        stopped: LifecycleStep = stop(lifecycle)
        (left_behind,) = stopped.effects
        assert isinstance(left_behind, CleanShutdown)
        again = start_again(stopped.state, left_behind.broker_epoch if clean else NO_BROKER_EPOCH)
        assert talk(driver, again).broker_epoch > left_behind.broker_epoch
        assert driver.partition.elr == ({BrokerId(2)} if clean else set())
