"""The metadata log: who may append to it, failover, a controller that is not active."""

from typing import Any

import pytest

from kspec.spec.controller.partitions import handle_alter_partition
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.controller.rules.brokers import BrokerSession
from kspec.spec.controller.state import AppendRecords, activate, check_active, check_append, refuse_as_inactive, session_of
from kspec.spec.messages.administration.elect_leaders import ElectLeadersRequest
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.messages.producers.allocate_producer_ids import AllocateProducerIdsRequest
from kspec.spec.metadata import EMPTY_IMAGE
from kspec.spec.releases.kraft import KRAFT_3_9, KRAFT_4_0, KRAFT_NEXT, NEWEST
from kspec.spec.step import Reply
from kspec.spec.values import BrokerEpoch, BrokerId, Epoch, Error, Incarnation, MonotonicMs, Offset, PartitionEpoch
from tests.spec.controller_driver import PARTITION, TIMEOUT_MS, answer_of, cluster, records_of

# ---- the log, and who may append to it


def test_only_the_current_controller_appends_and_only_at_the_end() -> None:
    append = AppendRecords(Epoch(2), Offset(7), ())
    assert check_append(Epoch(2), Offset(7), append) == Error.NONE
    assert check_append(Epoch(3), Offset(7), append) == Error.NOT_CONTROLLER
    assert check_append(Epoch(2), Offset(8), append) == Error.NOT_CONTROLLER


def test_a_controller_that_has_been_replaced_cannot_decide() -> None:
    """Its answer comes after its append, and the log of the next epoch takes no append of it."""
    driver = cluster(KRAFT_4_0)
    old = driver.state
    driver.fail_over()
    step = handle_alter_partition(driver.controller, old, driver.proposal(1, 2), MonotonicMs(driver.now_ms))
    append, reply = step.effects
    assert isinstance(append, AppendRecords)
    assert isinstance(reply, Reply)
    assert check_append(driver.state.controller_epoch, driver.image.end_offset, append) == Error.NOT_CONTROLLER


def test_failover_gives_every_broker_a_fresh_session() -> None:
    driver = cluster(KRAFT_4_0)
    driver.now_ms = 2 * TIMEOUT_MS
    driver.fail_over()
    assert driver.state.controller_epoch == 2
    assert records_of(driver.pass_time(TIMEOUT_MS)) == ()
    assert records_of(driver.pass_time(1)) != ()


def test_a_session_belongs_to_every_registered_broker() -> None:
    """If it is not fenced, from a new controller's first moment on, and from a broker's registration on."""
    driver = cluster(KRAFT_NEXT)
    state = activate(Epoch(2), driver.image, MonotonicMs(700))
    assert [session_of(state, registration.broker) for registration in driver.image.brokers] == [
        BrokerSession(BrokerId(broker), MonotonicMs(700)) for broker in (1, 2, 3)
    ]
    driver.register(4)
    assert session_of(driver.state, BrokerId(4)).last_contact_ms == driver.now_ms


@pytest.mark.parametrize("rules", [KRAFT_3_9, NEWEST, KRAFT_NEXT])
def test_a_broker_that_was_fenced_before_the_failover_registers_at_once(rules: ControllerProtocol) -> None:
    """**Kafka:** `ClusterControlManager.activate` notes a contact only of brokers that are not fenced."""
    driver = cluster(rules)
    driver.expire(3)
    driver.fail_over()
    assert answer_of(driver.register(3)).error == Error.NONE
    assert answer_of(driver.register(2)).error == Error.DUPLICATE_BROKER_REGISTRATION


@pytest.mark.parametrize(
    "request_",
    [
        AlterPartitionRequest(BrokerId(1), BrokerEpoch(0), PARTITION, Epoch(0), PartitionEpoch(0), frozenset()),
        BrokerRegistrationRequest(BrokerId(1), Incarnation(1)),
        BrokerHeartbeatRequest(BrokerId(1), BrokerEpoch(0), Offset(0)),
        ElectLeadersRequest(PARTITION),
        AllocateProducerIdsRequest(BrokerId(1), BrokerEpoch(0)),
    ],
)
def test_an_inactive_controller_refuses(request_: Any) -> None:
    state = activate(Epoch(1), EMPTY_IMAGE, MonotonicMs(0))
    step = refuse_as_inactive(state, request_)
    assert step.state is state
    assert answer_of(step).error == Error.NOT_CONTROLLER


def test_what_may_change_something_is_asked_of_the_active_controller() -> None:
    assert check_active(True) == Error.NONE
    assert check_active(False) == Error.NOT_CONTROLLER
