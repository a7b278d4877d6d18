"""The KRaft controller's handlers, step by step and at random (rules A3 to A5, A8, L1 to L12)."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spec.controller.brokers import handle_broker_heartbeat, handle_broker_registration
from spec.controller.partitions import handle_alter_partition
from spec.controller.protocol import ControllerProtocol, ControllerSettings
from spec.controller.rules.brokers import Session
from spec.controller.state import (
    AppendRecords,
    activate,
    check_append,
    refuse_as_inactive,
    session_of,
)
from spec.messages.administration.elect_leaders import ElectLeadersRequest
from spec.messages.alter_partition import AlterPartitionRequest, IsrMember
from spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from spec.messages.broker_registration import BrokerRegistrationRequest
from spec.metadata import (
    EMPTY_IMAGE,
    NOBODY,
    BrokerRegistrationChangeRecord,
    LeaderRecoveryState,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    broker_of,
    is_active,
    is_unfenced,
)
from spec.releases.kraft import (
    KRAFT_3_0,
    KRAFT_3_2,
    KRAFT_3_3,
    KRAFT_3_5,
    KRAFT_3_6,
    KRAFT_3_7,
    KRAFT_3_9,
    KRAFT_4_0,
    KRAFT_NEXT,
    KRAFT_RELEASES,
)
from spec.step import Reply
from spec.values import NO_LEADER, BrokerEpoch, BrokerId, Epoch, Error, Incarnation, Offset, PartitionEpoch
from tests.spec.controller_driver import (
    PARTITION,
    TIMEOUT_MS,
    Driver,
    Operation,
    answer_of,
    carry_out,
    cluster,
    ids,
    operations,
    order,
    records_of,
)

by_version = pytest.mark.parametrize("rules", KRAFT_RELEASES, ids=lambda rules: rules.name)


def named(value: object) -> str | None:
    """How a test calls a case: by the release, or the error."""
    return value.name if isinstance(value, ControllerProtocol | Error) else None


def state_of(driver: Driver) -> tuple[int, frozenset[BrokerId], int, int]:
    partition = driver.partition
    return partition.leader, partition.isr, partition.leader_epoch, partition.partition_epoch


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
    step = handle_alter_partition(driver.controller, old, driver.proposal(1, 2), driver.now_ms)
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
    """From a new controller's first moment on, and from a broker's registration on."""
    driver = cluster(KRAFT_NEXT)
    state = activate(Epoch(2), driver.image, 700)
    assert [session_of(state, registration.broker) for registration in driver.image.brokers] == [
        Session(BrokerId(broker), 700) for broker in (1, 2, 3)
    ]
    driver.register(4)
    assert session_of(driver.state, BrokerId(4)).last_contact_ms == driver.now_ms


@pytest.mark.parametrize(
    "request_",
    [
        AlterPartitionRequest(BrokerId(1), BrokerEpoch(0), PARTITION, Epoch(0), PartitionEpoch(0), frozenset()),
        BrokerRegistrationRequest(BrokerId(1), Incarnation(1)),
        BrokerHeartbeatRequest(BrokerId(1), BrokerEpoch(0), Offset(0)),
        ElectLeadersRequest(PARTITION),
    ],
)
def test_an_inactive_controller_refuses(request_: Any) -> None:
    state = activate(Epoch(1), EMPTY_IMAGE, 0)
    step = refuse_as_inactive(state, request_)
    assert step.state is state
    assert answer_of(step).error == Error.NOT_CONTROLLER


# ---- registration


@by_version
def test_a_new_broker_is_fenced_until_it_has_replayed_its_registration(rules: ControllerProtocol) -> None:
    """Rule L11."""
    driver = Driver(rules)
    answer = answer_of(driver.register(1))
    assert (answer.error, answer.incarnation, answer.broker_epoch) == (Error.NONE, 1, 0)
    late = answer_of(driver.heartbeat(1, offset=-1))
    assert (late.is_caught_up, late.is_fenced) == (False, True)
    assert records_of(driver.heartbeat(1)) == (BrokerRegistrationChangeRecord(BrokerId(1), BrokerEpoch(0), fenced=False),)
    assert is_active(driver.image.brokers, BrokerId(1))


@pytest.mark.parametrize(("rules", "fenced"), [(KRAFT_3_2, True), (KRAFT_3_3, False)], ids=named)
def test_up_to_3_2_a_broker_must_have_replayed_everything(rules: ControllerProtocol, fenced: bool) -> None:
    driver = Driver(rules)
    driver.register(1)
    driver.register(2)
    assert answer_of(driver.heartbeat(1, offset=0)).is_fenced is fenced


@by_version
def test_another_run_must_wait_for_the_session_to_expire(rules: ControllerProtocol) -> None:
    driver = cluster(rules)
    refused = driver.register(1)
    assert answer_of(refused).error == Error.DUPLICATE_BROKER_REGISTRATION
    assert records_of(refused) == ()
    driver.expire(1)
    assert answer_of(driver.register(1)).error == Error.NONE
    assert driver.incarnations[1] == 2


@pytest.mark.parametrize(
    ("rules", "fenced", "new_epoch"), [(KRAFT_3_6, True, True), (KRAFT_3_7, False, True), (KRAFT_3_9, False, False)]
)
def test_registering_twice(rules: ControllerProtocol, fenced: bool, new_epoch: bool) -> None:
    """Up to 3.6 a registration that is sent again fences the broker, and leaves it in the ISR."""
    driver = cluster(rules)
    before = driver.broker_epochs[1]
    driver.register(1, new_incarnation=False)
    assert (driver.broker_epochs[1] != before) is new_epoch
    assert is_unfenced(driver.image.brokers, BrokerId(1)) is not fenced
    assert BrokerId(1) in driver.partition.isr


def silent_but_not_fenced(rules: ControllerProtocol, **given_settings: Any) -> Driver:
    """Broker 2 has lost its session, the controller has not fenced it yet, and a new run of it registers."""
    driver = cluster(rules, **given_settings)
    driver.now_ms += TIMEOUT_MS + 1
    driver.register(2)
    return driver


def test_up_to_3_9_a_new_incarnation_may_inherit_a_place_in_the_isr() -> None:
    """KAFKA-18106: whoever comes back with an empty disk before it is fenced is in sync by name."""
    assert silent_but_not_fenced(KRAFT_3_9).partition.isr == ids(1, 2, 3)
    assert silent_but_not_fenced(KRAFT_4_0).partition.isr == ids(1, 3)


@pytest.mark.parametrize(
    ("rules", "clean", "elr"),
    [(KRAFT_4_0, True, NOBODY), (KRAFT_NEXT, True, ids(2)), (KRAFT_NEXT, False, NOBODY)],
    ids=named,
)
def test_a_new_incarnation_is_not_eligible_unless_the_last_one_ended_cleanly(
    rules: ControllerProtocol, clean: bool, elr: frozenset[BrokerId]
) -> None:
    """Rule L10, and the repair of KAFKA-18635."""
    driver = cluster(rules, min_isr=3, eligible_leader_replicas=True)
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
    step = handle_broker_heartbeat(driver.controller, driver.state, request, driver.now_ms)
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


def test_a_late_heartbeat_of_a_broker_that_has_stopped_makes_it_leader() -> None:
    """Unfencing asks neither whether the broker was leaving, nor lets that flag keep it from being elected."""
    driver = cluster(KRAFT_NEXT)
    driver.expire(2, 3)
    assert driver.partition.isr == ids(1)
    late = BrokerHeartbeatRequest(BrokerId(1), driver.broker_epochs[1], Offset(driver.image.end_offset))
    driver.heartbeat(1, shutdown=True)
    assert answer_of(driver.heartbeat(1)).should_shut_down
    assert driver.partition.leader == NO_LEADER
    driver.take(handle_broker_heartbeat(driver.controller, driver.state, late._replace(metadata_offset=Offset(99)), 0))
    assert driver.partition.leader == 1
    assert not is_active(driver.image.brokers, BrokerId(1))


# ---- AlterPartition


def test_a_proposal_is_taken_and_the_answer_tells_what_is() -> None:
    """Rule A5."""
    driver = cluster(KRAFT_4_0)
    answer = answer_of(driver.alter(driver.proposal(1, 2)))
    told = answer.error, answer.leader, answer.isr, answer.leader_epoch, answer.partition_epoch, answer.recovery
    assert told == (Error.NONE, *state_of(driver)[:2], 0, 1, LeaderRecoveryState.RECOVERED)
    assert state_of(driver) == (1, ids(1, 2), 0, 1)


def test_a_proposal_of_what_is_changes_nothing() -> None:
    driver = cluster(KRAFT_4_0)
    before = driver.state
    step = driver.alter(driver.proposal(1, 2, 3))
    assert (records_of(step), answer_of(step).error, step.state is before) == ((), Error.NONE, True)


@by_version
def test_a_proposal_sent_twice_is_taken_once(rules: ControllerProtocol) -> None:
    driver = cluster(rules)
    proposal = driver.proposal(1, 2)
    driver.alter(proposal)
    expected = Error.FENCED_LEADER_EPOCH if driver.partition.leader_epoch else Error.INVALID_UPDATE_VERSION
    assert answer_of(driver.alter(proposal)).error == expected
    assert driver.partition.isr == ids(1, 2)


@pytest.mark.parametrize(
    ("fields", "up_to_3_2", "since_3_3"),
    [
        ({"broker_epoch": 99, "partition_id": 9}, Error.STALE_BROKER_EPOCH, Error.STALE_BROKER_EPOCH),
        ({"partition_id": 9, "leader_epoch": 9}, Error.UNKNOWN_TOPIC_OR_PARTITION, Error.UNKNOWN_TOPIC_OR_PARTITION),
        ({"leader_epoch": 9}, Error.FENCED_LEADER_EPOCH, Error.NOT_CONTROLLER),
        ({"partition_epoch": 9}, Error.INVALID_UPDATE_VERSION, Error.NOT_CONTROLLER),
        ({"leader_epoch": -1, "partition_epoch": -1}, Error.FENCED_LEADER_EPOCH, Error.FENCED_LEADER_EPOCH),
        ({"isr": frozenset({IsrMember(BrokerId(2))})}, Error.INVALID_REQUEST, Error.INVALID_REQUEST),
    ],
)
@pytest.mark.parametrize("rules", [KRAFT_3_2, KRAFT_3_3], ids=named)
def test_errors_of_a_proposal_in_order(
    rules: ControllerProtocol, fields: dict[str, Any], up_to_3_2: Error, since_3_3: Error
) -> None:
    driver = cluster(rules)
    step = driver.alter(driver.proposal(1, 2)._replace(**fields))
    assert (answer_of(step).error, records_of(step)) == (up_to_3_2 if rules == KRAFT_3_2 else since_3_3, ())


@pytest.mark.parametrize(("rules", "error"), [(KRAFT_3_3, Error.NONE), (KRAFT_3_5, Error.INELIGIBLE_REPLICA)], ids=named)
def test_a_replica_of_another_run_is_not_admitted(rules: ControllerProtocol, error: Error) -> None:
    """Rule A4, hazard Z11: the proposal was made before broker 3 crashed and came back empty."""
    driver = cluster(rules)
    driver.alter(driver.proposal(1, 2))
    proposal = driver.proposal(1, 2, 3)
    driver.expire(3)
    driver.start(3)
    assert driver.partition.partition_epoch == proposal.partition_epoch
    assert answer_of(driver.alter(proposal)).error == error


@pytest.mark.parametrize(
    ("rules", "error"), [(KRAFT_3_2, Error.NONE), (KRAFT_3_3, Error.OPERATION_NOT_ATTEMPTED)], ids=named
)
def test_a_fenced_replica_is_not_admitted(rules: ControllerProtocol, error: Error) -> None:
    """Rule A4, hazard Z12."""
    driver = cluster(rules)
    driver.expire(3)
    proposal = driver.proposal(1, 2, 3)._replace(understands_ineligible_replica=False)
    assert answer_of(driver.alter(proposal)).error == error


def test_recovery_ends_by_a_proposal() -> None:
    driver = cluster(KRAFT_4_0, unclean_election=True)
    driver.expire(1, 2)
    driver.alter(driver.proposal(3))
    driver.expire(3)
    driver.heartbeat(2)
    assert (driver.partition.leader, driver.partition.isr) == (2, ids(2))
    assert driver.partition.recovery == LeaderRecoveryState.RECOVERING
    recovered = driver.proposal(2)._replace(recovery=LeaderRecoveryState.RECOVERED)
    assert answer_of(driver.alter(recovered)).recovery == LeaderRecoveryState.RECOVERED


# ---- elections


def test_the_preferred_leader() -> None:
    """Rule L7."""
    driver = cluster(KRAFT_4_0)
    assert answer_of(driver.elect()).error == Error.ELECTION_NOT_NEEDED
    driver.expire(1)
    assert answer_of(driver.elect()).error == Error.PREFERRED_LEADER_NOT_AVAILABLE
    assert records_of(driver.balance()) == ()
    driver.start(1)
    driver.alter(driver.proposal(1, 2, 3))
    assert answer_of(driver.elect()).error == Error.NONE
    assert state_of(driver) == (1, ids(1, 2, 3), 2, 3)


def test_leadership_is_balanced() -> None:
    driver = cluster(KRAFT_4_0)
    driver.expire(1)
    driver.start(1)
    driver.alter(driver.proposal(1, 2, 3))
    driver.balance()
    assert driver.partition.leader == 1
    assert driver.balance().effects == ()


def test_an_unclean_election_by_request() -> None:
    driver = cluster(KRAFT_4_0)
    assert answer_of(driver.elect(unclean=True)).error == Error.ELECTION_NOT_NEEDED
    driver.expire(2, 3)
    driver.expire(1)
    assert answer_of(driver.elect(unclean=True)).error == Error.ELIGIBLE_LEADERS_NOT_AVAILABLE
    driver.heartbeat(3)
    assert driver.partition.leader == NO_LEADER
    assert answer_of(driver.elect(unclean=True)).error == Error.NONE
    assert (driver.partition.leader, driver.partition.isr) == (3, ids(3))


@pytest.mark.parametrize(("allowed", "leader"), [(False, NO_LEADER), (True, 3)], ids=named)
def test_unclean_elections_by_configuration(allowed: bool, leader: int) -> None:
    driver = cluster(KRAFT_4_0)
    driver.expire(2, 3)
    driver.expire(1)
    driver.heartbeat(3)
    driver.settings = ControllerSettings(unclean_election=allowed)
    driver.elect_uncleanly()
    assert driver.partition.leader == leader


def test_elections_of_what_does_not_exist() -> None:
    assert answer_of(Driver(KRAFT_4_0).elect()).error == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("rules", "leader"), [(KRAFT_4_0, 1), (KRAFT_NEXT, NO_LEADER)], ids=named)
def test_the_last_known_leader_is_elected_though_it_is_down(rules: ControllerProtocol, leader: int) -> None:
    """Rule L9, hazard Z25: KAFKA-19522."""
    driver = cluster(rules, min_isr=2, eligible_leader_replicas=True)
    driver.expire(2, 3)
    driver.expire(1)
    assert driver.partition.last_known_elr == ids(1)
    for broker in (1, 2, 3):
        driver.register(broker)
    assert driver.partition.elr == NOBODY
    assert not is_unfenced(driver.image.brokers, BrokerId(1))
    assert driver.partition.leader == leader
    driver.heartbeat(1)
    assert (driver.partition.leader, driver.partition.isr) == (1, ids(1))


def test_eligible_replicas_save_a_partition_from_its_last_replica() -> None:
    """Rule L8, hazard Z13: the last one in sync comes back without its records; others still have them."""
    driver = cluster(KRAFT_4_0, min_isr=2, eligible_leader_replicas=True)
    driver.expire(2)
    driver.expire(3)
    assert (driver.partition.isr, driver.partition.elr) == (ids(1), ids(3))
    driver.expire(1)
    assert (driver.partition.isr, driver.partition.elr) == (NOBODY, ids(1, 3))
    driver.register(1)
    assert driver.partition.elr == ids(3)
    driver.heartbeat(1)
    driver.heartbeat(2)
    assert driver.partition.leader == NO_LEADER
    driver.heartbeat(3)
    assert (driver.partition.leader, driver.partition.isr, driver.partition.elr) == (3, ids(3), NOBODY)
    driver.alter(driver.proposal(1, 3))
    assert driver.partition.elr == NOBODY


def test_a_new_min_isr_ends_eligibility() -> None:
    driver = cluster(KRAFT_4_0, min_isr=2, eligible_leader_replicas=True)
    driver.expire(2, 3)
    driver.change_min_isr(1)
    assert (driver.partition.isr, driver.partition.elr) == (ids(1), NOBODY)
    assert driver.change_min_isr(1).effects == ()


# ---- creation, unregistration, reassignment


def test_a_new_partition_is_led_by_its_first_active_replica() -> None:
    driver = Driver(KRAFT_4_0)
    driver.start(1, 2, 3)
    driver.heartbeat(2, fence=True)
    assert answer_of(driver.create(2, 3, 1)).error == Error.NONE
    assert state_of(driver) == (3, ids(1, 3), 0, 0)


@pytest.mark.parametrize("replicas", [(), (1, 1), (1, 4), (2,)])
def test_a_new_partition_needs_replicas(replicas: tuple[int, ...]) -> None:
    driver = Driver(KRAFT_4_0)
    driver.start(1)
    driver.register(2)
    assert answer_of(driver.create(*replicas)).error == Error.INVALID_REPLICA_ASSIGNMENT


def test_a_broker_that_is_struck_off_is_nowhere() -> None:
    driver = cluster(KRAFT_4_0, min_isr=3, eligible_leader_replicas=True)
    driver.expire(2)
    assert answer_of(driver.unregister(1)).error == Error.NONE
    assert (driver.partition.leader, driver.partition.isr, driver.partition.elr) == (3, ids(3), ids(1, 2))
    assert broker_of(driver.image.brokers, BrokerId(1)) is None
    assert [session.broker for session in driver.state.sessions] == [2, 3]
    assert answer_of(driver.unregister(1)).error == Error.BROKER_ID_NOT_REGISTERED
    assert answer_of(driver.unregister(2)).error == Error.NONE
    driver.register(1)
    assert driver.partition.elr == ids(2)


def test_a_reassignment_from_begin_to_end() -> None:
    """Rules L12, A5: the proposal that ends it is taken, and costs the proposer its leadership."""
    driver = cluster(KRAFT_4_0)
    driver.start(4)
    assert answer_of(driver.reassign(4, 2)).error == Error.NONE
    partition = driver.partition
    assert (partition.replicas, partition.adding, partition.removing) == (order(4, 2, 1, 3), ids(4), ids(1, 3))
    assert state_of(driver) == (1, ids(1, 2, 3), 0, 1)
    proposal = driver.proposal(1, 2, 3, 4)
    answer = answer_of(driver.alter(proposal))
    assert (answer.error, answer.isr) == (Error.NEW_LEADER_ELECTED, NOBODY)
    assert state_of(driver) == (4, ids(2, 4), 1, 2)
    assert (driver.partition.replicas, driver.partition.adding, driver.partition.removing) == (order(4, 2), NOBODY, NOBODY)


def test_a_reassignment_that_keeps_the_leader_opens_an_epoch_when_replicas_go() -> None:
    driver = cluster(KRAFT_4_0)
    driver.reassign(1, 2)
    assert state_of(driver) == (1, ids(1, 2), 1, 1)


def test_a_reassignment_can_be_cancelled() -> None:
    driver = cluster(KRAFT_4_0)
    driver.start(4)
    assert answer_of(driver.reassign()).error == Error.NO_REASSIGNMENT_IN_PROGRESS
    driver.reassign(4, 2)
    assert answer_of(driver.reassign()).error == Error.NONE
    assert driver.partition.replicas == order(2, 1, 3)
    assert (driver.partition.adding, driver.partition.removing) == (NOBODY, NOBODY)


@pytest.mark.parametrize(("allowed", "error"), [(False, Error.INVALID_REPLICA_ASSIGNMENT), (True, Error.NONE)], ids=named)
def test_cancelling_must_not_lose_records(allowed: bool, error: Error) -> None:
    driver = cluster(KRAFT_4_0, unclean_election=allowed)
    driver.start(4, 5)
    driver.reassign(4, 5)
    driver.alter(driver.proposal(1, 4))
    driver.expire(1)
    assert driver.partition.isr == ids(4)
    assert answer_of(driver.reassign()).error == error


@pytest.mark.parametrize("replicas", [(1, 1), (1, 9)])
def test_a_reassignment_needs_known_replicas(replicas: tuple[int, ...]) -> None:
    assert answer_of(cluster(KRAFT_4_0).reassign(*replicas)).error == Error.INVALID_REPLICA_ASSIGNMENT


def test_a_reassignment_to_what_is_changes_nothing() -> None:
    driver = cluster(KRAFT_4_0)
    step = driver.reassign(1, 2, 3)
    assert (records_of(step), answer_of(step).error) == ((), Error.NONE)
    assert answer_of(Driver(KRAFT_4_0).reassign(1)).error == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(("rules", "leader", "isr"), [(KRAFT_4_0, 4, ids(4)), (KRAFT_NEXT, NO_LEADER, NOBODY)], ids=named)
def test_eligibility_that_outlives_an_assignment_elects_an_empty_replica(
    rules: ControllerProtocol, leader: int, isr: frozenset[BrokerId]
) -> None:
    """A reassignment to broker 4 is cancelled and begun again while fewer replicas than min ISR are in sync.

    Broker 4 had joined the ISR, and left it when that shrank below min ISR: it is eligible. The cancellation takes its
    replica away, with all records; its eligibility stays in 4.0. Assigned again, and empty, it is elected when the leader
    goes, without any unclean election.
    """
    driver = cluster(rules, min_isr=2, eligible_leader_replicas=True)
    driver.start(4)
    driver.reassign(4, 1, 2)
    for proposed in ((1, 3, 4), (1, 4), (1,)):
        assert answer_of(driver.alter(driver.proposal(*proposed))).error == Error.NONE
    assert driver.partition.elr == ids(4)
    assert answer_of(driver.reassign()).error == Error.NONE
    assert driver.partition.replicas == order(1, 2, 3)
    assert driver.partition.elr == (ids(4) if rules == KRAFT_4_0 else NOBODY)
    assert answer_of(driver.reassign(4, 1, 2)).error == Error.NONE
    assert driver.partition.leader == 1
    driver.expire(1)
    assert (driver.partition.leader, driver.partition.isr) == (leader, isr)
    assert driver.partition.recovery == LeaderRecoveryState.RECOVERED


def test_who_is_only_being_added_cannot_be_elected_by_the_reassignment() -> None:
    driver = cluster(KRAFT_4_0, min_isr=2, eligible_leader_replicas=True)
    driver.reassign(1)
    assert driver.partition.elr == ids(2, 3)
    driver.expire(1)
    driver.reassign(2, 3)
    assert (driver.partition.leader, driver.partition.replicas) == (NO_LEADER, order(2, 3, 1))


# ---- at random


def check(driver: Driver, before: Any) -> None:
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


def check_next(driver: Driver) -> None:
    """What only the repaired rules keep."""
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
    step = handle_broker_registration(driver.controller, driver.state, request, driver.now_ms)
    (record,) = records_of(step)
    assert isinstance(record, RegisterBrokerRecord)
    assert record.registration.broker_epoch == BrokerEpoch(driver.image.end_offset)
