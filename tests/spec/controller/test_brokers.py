"""Handlers of the controller for brokers: registration, heartbeats, fencing, shutdown."""

from typing import Any

import pytest

from kspec.spec.controller.brokers import handle_broker_heartbeat
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.controller.state import session_of
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.metadata import NOBODY, BrokerRegistrationChangeRecord, PartitionChangeRecord, is_active, is_unfenced
from kspec.spec.releases.kraft import (
    KRAFT_3_0,
    KRAFT_3_2,
    KRAFT_3_3,
    KRAFT_3_4,
    KRAFT_3_5,
    KRAFT_3_6,
    KRAFT_3_8,
    KRAFT_3_9,
    KRAFT_4_0,
    KRAFT_NEXT,
    NEWEST,
)
from kspec.spec.values import NO_LEADER, BrokerEpoch, BrokerId, Error, MonotonicMs, Offset
from tests.spec.controller_driver import (
    TIMEOUT_MS,
    ControllerDriver,
    answer_of,
    by_version,
    cluster,
    ids,
    named,
    records_of,
    state_of,
)

# ---- registration


@by_version
def test_a_new_broker_is_fenced_until_it_has_replayed_its_registration(rules: ControllerProtocol) -> None:
    """Rule L11."""
    driver = ControllerDriver(rules)
    answer = answer_of(driver.register(1))
    assert (answer.error, answer.incarnation, answer.broker_epoch) == (Error.NONE, 1, 0)
    late = answer_of(driver.heartbeat(1, offset=-1))
    assert (late.is_caught_up, late.is_fenced) == (False, True)
    assert records_of(driver.heartbeat(1)) == (BrokerRegistrationChangeRecord(BrokerId(1), BrokerEpoch(0), fenced=False),)
    assert is_active(driver.image.brokers, BrokerId(1))


@pytest.mark.parametrize(("rules", "fenced"), [(KRAFT_3_2, True), (KRAFT_3_3, False)], ids=named)
def test_up_to_3_2_a_broker_must_have_replayed_everything(rules: ControllerProtocol, fenced: bool) -> None:
    driver = ControllerDriver(rules)
    driver.register(1)
    driver.register(2)
    assert answer_of(driver.heartbeat(1, offset=0)).is_fenced is fenced


@by_version
def test_another_incarnation_must_wait_for_the_session_to_expire(rules: ControllerProtocol) -> None:
    driver = cluster(rules)
    refused = driver.register(1)
    assert answer_of(refused).error == Error.DUPLICATE_BROKER_REGISTRATION
    assert records_of(refused) == ()
    driver.expire(1)
    assert answer_of(driver.register(1)).error == Error.NONE
    assert driver.incarnations[1] == 2


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        (KRAFT_3_9, Error.NONE),
        (KRAFT_4_0, Error.DUPLICATE_BROKER_REGISTRATION),
        (NEWEST, Error.DUPLICATE_BROKER_REGISTRATION),
        (KRAFT_NEXT, Error.NONE),
    ],
    ids=named,
)
def test_whether_another_incarnation_waits_for_heartbeats_of_a_fenced_one(rules: ControllerProtocol, error: Error) -> None:
    """Executed on Kafka 3.9.2, 4.0.0 and 4.4.0. One that has sent no heartbeat yet keeps nobody waiting."""
    driver = cluster(rules)
    driver.heartbeat(1, fence=True)
    assert answer_of(driver.register(1)).error == error
    driver.now_ms += TIMEOUT_MS + 1
    assert answer_of(driver.register(1)).error == Error.NONE
    assert answer_of(driver.register(1)).error == Error.NONE


@pytest.mark.parametrize(
    ("rules", "fenced", "new_epoch"), [(KRAFT_3_6, True, True), (KRAFT_3_8, False, True), (KRAFT_3_9, False, False)]
)
def test_registering_twice(rules: ControllerProtocol, fenced: bool, new_epoch: bool) -> None:
    """Up to 3.6 a registration that is sent again fences the broker, and leaves it in the ISR."""
    driver = cluster(rules)
    before = driver.broker_epochs[1]
    driver.register(1, new_incarnation=False)
    assert (driver.broker_epochs[1] != before) is new_epoch
    assert is_unfenced(driver.image.brokers, BrokerId(1)) is not fenced
    assert BrokerId(1) in driver.partition.isr


def silent_but_not_fenced(rules: ControllerProtocol, **given_settings: Any) -> ControllerDriver:
    """Broker 2 has lost its session, the controller has not fenced it yet, and a new run of it registers."""
    driver = cluster(rules, **given_settings)
    driver.now_ms += TIMEOUT_MS + 1
    driver.register(2)
    return driver


def test_up_to_3_9_a_new_incarnation_may_inherit_a_place_in_the_isr() -> None:
    """KAFKA-18106: whoever comes back with an empty disk before it is fenced is in sync by name."""
    assert silent_but_not_fenced(KRAFT_3_9).partition.isr == ids(1, 2, 3)
    assert silent_but_not_fenced(KRAFT_4_0).partition.isr == ids(1, 3)


@pytest.mark.parametrize(("clean", "elr"), [(True, ids(2)), (False, NOBODY)], ids=named)
def test_a_new_incarnation_is_not_eligible_unless_the_last_one_ended_cleanly(clean: bool, elr: frozenset[BrokerId]) -> None:
    """Rule L10, and KAFKA-18635."""
    driver = cluster(KRAFT_4_0, min_isr=3, eligible_leader_replicas=True)
    driver.expire(2)
    assert driver.partition.elr == ids(2)
    driver.register(2, clean=clean)
    assert driver.partition.elr == elr


def test_without_eligible_leaders_a_new_incarnation_leaves_the_isr_as_if_fenced() -> None:
    driver = silent_but_not_fenced(KRAFT_NEXT)
    assert state_of(driver) == (1, ids(1, 3), 0, 1)


# ---- heartbeats, fencing, shutdown


def test_heartbeats_of_another_run_are_refused() -> None:
    driver = cluster(KRAFT_4_0)
    request = BrokerHeartbeatRequest(BrokerId(1), BrokerEpoch(99), Offset(0))
    step = handle_broker_heartbeat(driver.controller, driver.state, request, MonotonicMs(driver.now_ms))
    assert (step.state is driver.state, answer_of(step).error) == (True, Error.STALE_BROKER_EPOCH)
    assert answer_of(driver.heartbeat(4)).error == Error.STALE_BROKER_EPOCH


@pytest.mark.parametrize(("rules", "epoch"), [(KRAFT_3_5, 1), (KRAFT_3_6, 0)])
def test_fencing_a_follower(rules: ControllerProtocol, epoch: int) -> None:
    """Rules L6, A8: it leaves the ISR; up to 3.5 that opens a leader epoch."""
    driver = cluster(rules)
    driver.expire(3)
    assert state_of(driver) == (1, ids(1, 2), epoch, 1)
    assert not is_unfenced(driver.image.brokers, BrokerId(3))


@by_version
def test_fencing_the_leader(rules: ControllerProtocol) -> None:
    driver = cluster(rules)
    driver.expire(1)
    assert state_of(driver) == (2, ids(2, 3), 1, 1)
    driver.expire(2, 3)
    assert driver.partition.leader == NO_LEADER
    assert len(driver.partition.isr) == 1


def test_the_longest_silent_broker_is_fenced_first_one_at_a_tick() -> None:
    driver = cluster(KRAFT_4_0)
    driver.now_ms = 10
    driver.heartbeat(1)
    changed = [records_of(driver.pass_time(2 * TIMEOUT_MS))[-1], records_of(driver.pass_time(0))[-1]]
    fenced = [record.broker for record in changed if isinstance(record, BrokerRegistrationChangeRecord)]
    assert fenced == [2, 3]
    assert driver.pass_time(0).effects != ()
    assert driver.pass_time(0).effects == ()


def test_a_broker_may_ask_to_be_fenced_and_comes_back() -> None:
    driver = cluster(KRAFT_4_0)
    driver.expire(2, 3)
    assert answer_of(driver.heartbeat(1, fence=True)).is_fenced
    assert driver.partition.leader == NO_LEADER
    last_in_sync = driver.partition.isr
    driver.heartbeat(2)
    assert driver.partition.leader == NO_LEADER
    driver.heartbeat(1)
    assert (driver.partition.leader, driver.partition.isr) == (1, last_in_sync)


def test_controlled_shutdown_ends_when_others_have_replayed_its_beginning() -> None:
    """Rule L6."""
    driver = cluster(KRAFT_3_3)
    begin = driver.heartbeat(1, shutdown=True)
    assert records_of(begin)[0] == BrokerRegistrationChangeRecord(
        BrokerId(1), driver.broker_epochs[1], in_controlled_shutdown=True
    )
    assert state_of(driver) == (2, ids(2, 3), 1, 1)
    assert not answer_of(driver.heartbeat(1, shutdown=True)).should_shut_down
    driver.heartbeat(2)
    assert not answer_of(driver.heartbeat(1, shutdown=True)).should_shut_down
    driver.heartbeat(3)
    answer = answer_of(driver.heartbeat(1, shutdown=True))
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert not is_unfenced(driver.image.brokers, BrokerId(1))
    assert answer_of(driver.heartbeat(1, shutdown=True)).should_shut_down


@pytest.mark.parametrize(
    ("rules", "ends"), [(KRAFT_3_0, False), (KRAFT_3_3, False), (KRAFT_3_4, True), (NEWEST, True)], ids=named
)
def test_up_to_3_3_a_controlled_shutdown_may_never_end_on_a_log_that_grows(rules: ControllerProtocol, ends: bool) -> None:
    """KAFKA-14292. The others replay all records, and tell of all but the last: each round is like the one before.

    So the round can be repeated for ever, and every broker replays, sends heartbeats and is answered again and again.
    """
    driver = cluster(rules)
    seen: list[tuple[int, ...]] = []
    for stranger in range(10, 15):
        driver.register(stranger)
        answer = answer_of(driver.heartbeat(1, shutdown=True))
        for other in (2, 3):
            driver.heartbeat(other, offset=driver.image.end_offset - 2)
        last = driver.image.end_offset - 1
        waiting, *others = (session_of(driver.state, BrokerId(broker)) for broker in (1, 2, 3))
        seen.append((waiting.controlled_shutdown_offset - last, *(session.metadata_offset - last for session in others)))
        assert answer.error == Error.NONE
    assert answer.should_shut_down == ends
    assert (seen[1:] == [(0, -1, -1)] * 4) != ends


def test_up_to_3_2_the_metadata_do_not_tell_of_a_controlled_shutdown() -> None:
    driver = cluster(KRAFT_3_2)
    assert all(isinstance(record, PartitionChangeRecord) for record in records_of(driver.heartbeat(1, shutdown=True)))
    assert driver.partition.isr == ids(2, 3)
    assert answer_of(driver.alter(driver.proposal(1, 2, 3))).error == Error.NONE
    assert driver.partition.isr == ids(1, 2, 3)


def test_a_broker_that_leads_nothing_shuts_down_at_once() -> None:
    driver = cluster(KRAFT_4_0)
    assert answer_of(driver.heartbeat(3, shutdown=True)).should_shut_down
    assert driver.partition.isr == ids(1, 2)


def test_a_broker_silent_in_controlled_shutdown_is_fenced_and_may_then_stop_at_once() -> None:
    driver = cluster(KRAFT_4_0)
    driver.heartbeat(1, shutdown=True)
    driver.expire(1)
    assert not is_unfenced(driver.image.brokers, BrokerId(1))
    assert answer_of(driver.heartbeat(1)).should_shut_down


@pytest.mark.parametrize("rules", [NEWEST, KRAFT_NEXT], ids=named)
def test_a_late_heartbeat_of_a_broker_that_has_stopped_makes_it_leader_but_in_next(rules: ControllerProtocol) -> None:
    """Unfencing asks neither whether the broker was leaving, nor lets that flag keep it from being elected."""
    driver = cluster(rules)
    driver.expire(2, 3)
    assert driver.partition.isr == ids(1)
    late = BrokerHeartbeatRequest(BrokerId(1), driver.broker_epochs[1], Offset(driver.image.end_offset))
    driver.heartbeat(1, shutdown=True)
    assert answer_of(driver.heartbeat(1)).should_shut_down
    assert driver.partition.leader == NO_LEADER
    driver.take(
        handle_broker_heartbeat(driver.controller, driver.state, late._replace(metadata_offset=Offset(99)), MonotonicMs(0))
    )
    assert driver.partition.leader == (NO_LEADER if rules is KRAFT_NEXT else 1)
    assert not is_active(driver.image.brokers, BrokerId(1))


@pytest.mark.parametrize("rules", [NEWEST, KRAFT_NEXT], ids=named)
def test_late_heartbeats_unfence_a_broker_that_stops_and_elect_it_but_in_next(rules: ControllerProtocol) -> None:
    """The broker in controlled shutdown is fenced, and by a heartbeat of before unfenced again. See
    docs/findings/stopping-broker-is-elected.md.
    """
    driver = cluster(rules, replicas=2, min_isr=1)
    driver.expire(2)
    assert (driver.partition.leader, driver.partition.isr) == (1, ids(1))
    driver.heartbeat(1, shutdown=True)
    assert driver.partition.leader == NO_LEADER
    driver.leaving.clear()  # the next two heartbeats were sent before, and arrive now
    driver.heartbeat(1)
    registration = driver.image.brokers[0]
    assert (registration.fenced, registration.in_controlled_shutdown) == (True, True)
    driver.heartbeat(1)
    registration = driver.image.brokers[0]
    stays = rules is KRAFT_NEXT
    assert (registration.fenced, registration.in_controlled_shutdown) == (stays, True)
    assert driver.partition.leader == (NO_LEADER if stays else 1)
