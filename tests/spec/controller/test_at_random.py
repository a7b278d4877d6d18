"""Invariants of a controller's state after any events in any order."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kspec.spec.controller.brokers import handle_broker_registration
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.metadata import NOBODY, RegisterBrokerRecord, is_active
from kspec.spec.releases.kraft import KRAFT_3_0, KRAFT_NEXT, KRAFT_RELEASES
from kspec.spec.values import NO_LEADER, BrokerEpoch, BrokerId, Incarnation, MonotonicMs
from tests.spec.controller_driver import ControllerDriver, Operation, carry_out, cluster, operations, records_of

# ---- at random


def check(driver: ControllerDriver, before: Any) -> None:
    partition = driver.partition
    elr = driver.rules.elr_enabled(driver.settings)
    replicas = frozenset(partition.replicas)
    assert partition.isr <= replicas
    assert partition.leader == NO_LEADER or partition.leader in partition.isr, "V2"
    assert partition.isr != NOBODY or elr, "rule L5"
    assert not partition.isr & partition.elr
    assert elr or partition.elr == NOBODY
    assert partition.partition_epoch >= before.partition_epoch
    assert partition.leader_epoch >= before.leader_epoch
    if partition.leader != before.leader:
        assert partition.leader_epoch > before.leader_epoch
    if partition != before:
        assert partition.partition_epoch > before.partition_epoch
    epochs = [entry.broker_epoch for entry in driver.image.brokers]
    assert len(set(epochs)) == len(epochs)


def check_next(driver: ControllerDriver) -> None:
    """Check what only the repaired rules keep."""
    partition = driver.partition
    inactive = {broker for broker in partition.isr if not is_active(driver.image.brokers, broker)}
    elr = driver.rules.elr_enabled(driver.settings)
    assert not inactive or (not elr and partition.isr == inactive and len(inactive) == 1)
    assert partition.leader == NO_LEADER or not inactive
    assert partition.elr | partition.last_known_elr <= frozenset(partition.replicas) | {NO_LEADER}


cluster_settings = st.fixed_dictionaries(
    {
        "unclean_election": st.booleans(),
        "min_isr": st.integers(1, 3),
        "eligible_leader_replicas": st.booleans(),
        "last_known_leader": st.booleans(),
    }
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(KRAFT_RELEASES), operations, cluster_settings)
def test_whatever_happens(rules: ControllerProtocol, happens: list[Operation], given_settings: dict[str, Any]) -> None:
    driver = cluster(rules, **given_settings)
    for operation in happens:
        before = driver.partition
        carry_out(driver, operation)
        check(driver, before)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(operations, cluster_settings)
def test_whatever_happens_with_the_repaired_rules(happens: list[Operation], given_settings: dict[str, Any]) -> None:
    driver = cluster(KRAFT_NEXT, **given_settings)
    for operation in happens:
        if operation == ("reassign", ()) and driver.settings.unclean_election:
            continue  # a cancellation may then put the first replica into an empty ISR, as it is (`reverted`)
        carry_out(driver, operation)
        check_next(driver)


def test_broker_epochs_are_offsets_of_the_log() -> None:
    driver = cluster(KRAFT_3_0)
    request = BrokerRegistrationRequest(BrokerId(7), Incarnation(1))
    step = handle_broker_registration(driver.controller, driver.state, request, MonotonicMs(driver.now_ms))
    (record,) = records_of(step)
    assert isinstance(record, RegisterBrokerRecord)
    assert record.registration.broker_epoch == BrokerEpoch(driver.image.end_offset)
