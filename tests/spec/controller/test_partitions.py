"""Handlers of the controller for partitions: proposals, elections, creation, reassignment."""

from typing import Any

import pytest

from kspec.spec.controller.partitions import on_min_isr_change
from kspec.spec.controller.protocol import ControllerProtocol, ControllerSettings, PartitionSettings, settings_of
from kspec.spec.messages.alter_partition import IsrMember
from kspec.spec.metadata import NOBODY, LeaderRecoveryState, broker_of, is_unfenced
from kspec.spec.releases.kraft import KRAFT_3_2, KRAFT_3_3, KRAFT_3_5, KRAFT_4_0, KRAFT_4_3, KRAFT_NEXT
from kspec.spec.values import NO_LEADER, BrokerId, Error, MonotonicMs, PartitionId, next_partition_epoch
from tests.spec.controller_driver import (
    PARTITION,
    ControllerDriver,
    answer_of,
    by_version,
    cluster,
    ids,
    named,
    order,
    records_of,
    state_of,
)

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
        ({"isr": (IsrMember(BrokerId(1)), IsrMember(BrokerId(1)))}, Error.INVALID_REQUEST, Error.INVALID_REQUEST),
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


@pytest.mark.parametrize(
    ("rules", "error"), [(KRAFT_4_0, Error.NONE), (KRAFT_NEXT, Error.INVALID_UPDATE_VERSION)], ids=named
)
def test_a_second_copy_of_a_refused_proposal(rules: ControllerProtocol, error: Error) -> None:
    """Broker 3 is fenced when the first copy arrives, and unfenced when the second does."""
    driver = cluster(rules)
    driver.alter(driver.proposal(1, 2))
    proposal = driver.proposal(1, 2, 3)
    driver.expire(3)
    assert answer_of(driver.alter(proposal)).error == Error.INELIGIBLE_REPLICA
    driver.heartbeat(3)
    assert answer_of(driver.alter(proposal)).error == error


def test_a_refusal_for_good_changes_the_partition_epoch_alone() -> None:
    driver = cluster(KRAFT_NEXT)
    driver.alter(driver.proposal(1, 2))
    driver.expire(3)
    before = driver.partition
    driver.alter(driver.proposal(1, 2, 3))
    assert driver.partition == before._replace(partition_epoch=next_partition_epoch(before.partition_epoch))
    driver.alter(driver.proposal(1, 2, 3)._replace(broker=BrokerId(2)))
    assert driver.partition.partition_epoch == before.partition_epoch + 1, "other refusals write nothing"


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


@pytest.mark.parametrize(("of_topic", "leader"), [(False, NO_LEADER), (True, 3)], ids=named)
def test_a_topic_s_own_settings_stand_before_the_cluster_s(of_topic: bool, leader: int) -> None:
    driver = cluster(KRAFT_4_0)
    driver.expire(2, 3)
    driver.expire(1)
    driver.heartbeat(3)
    own = PartitionSettings(PARTITION, 2, of_topic)
    driver.settings = ControllerSettings(unclean_election=not of_topic, of_topics=(own,))
    assert settings_of(driver.settings, PARTITION) == ControllerSettings(2, of_topic)
    assert settings_of(driver.settings, PartitionId(9)).unclean_election is not of_topic
    driver.elect_uncleanly()
    assert driver.partition.leader == leader


def test_a_change_of_min_isr_concerns_the_partitions_of_its_topic() -> None:
    driver = cluster(KRAFT_4_0, min_isr=2, eligible_leader_replicas=True)
    driver.expire(2, 3)
    assert driver.partition.elr != NOBODY
    for partitions, eligible in ((frozenset({PartitionId(9)}), True), (frozenset({PARTITION}), False)):
        driver.take(on_min_isr_change(driver.controller, driver.state, MonotonicMs(driver.now_ms), partitions))
        assert (driver.partition.elr != NOBODY) is eligible


def test_elections_of_what_does_not_exist() -> None:
    assert answer_of(ControllerDriver(KRAFT_4_0).elect()).error == Error.UNKNOWN_TOPIC_OR_PARTITION


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
    driver = ControllerDriver(KRAFT_4_0)
    driver.start(1, 2, 3)
    driver.heartbeat(2, fence=True)
    assert answer_of(driver.create(2, 3, 1)).topics[0].error == Error.NONE
    assert state_of(driver) == (3, ids(1, 3), 0, 0)


@pytest.mark.parametrize("replicas", [(), (1, 1), (1, 4), (2,)])
def test_a_new_partition_needs_replicas(replicas: tuple[int, ...]) -> None:
    driver = ControllerDriver(KRAFT_4_0)
    driver.start(1)
    driver.register(2)
    assert answer_of(driver.create(*replicas)).topics[0].error == Error.INVALID_REPLICA_ASSIGNMENT


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
    assert answer_of(ControllerDriver(KRAFT_4_0).reassign(1)).error == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("rules", "leader", "isr"), [(KRAFT_4_0, 4, ids(4)), (KRAFT_4_3, 4, ids(4)), (KRAFT_NEXT, NO_LEADER, NOBODY)], ids=named
)
def test_eligibility_that_outlives_an_assignment_elects_an_empty_replica(
    rules: ControllerProtocol, leader: int, isr: frozenset[BrokerId]
) -> None:
    """A reassignment to brokers 4 and 5 is cancelled and begun again while fewer replicas than min ISR are in sync.

    Broker 4 had joined the ISR, and left it when that shrank below min ISR: it is eligible. The cancellation takes its
    replica away, with all records; its eligibility stays in 4.0 to 4.4. Assigned again, and empty, it is elected when the
    leader goes, without any unclean election.
    """
    driver = cluster(rules, min_isr=2, eligible_leader_replicas=True)
    driver.start(4)
    driver.start(5)
    driver.reassign(4, 5, 1)
    for proposed in ((1, 3, 4), (1, 4), (1,)):
        assert answer_of(driver.alter(driver.proposal(*proposed))).error == Error.NONE
    assert driver.partition.elr == ids(4)
    assert answer_of(driver.reassign()).error == Error.NONE
    assert driver.partition.replicas == order(1, 2, 3)
    assert driver.partition.elr == (NOBODY if rules == KRAFT_NEXT else ids(4))
    assert answer_of(driver.reassign(4, 5, 1)).error == Error.NONE
    assert driver.partition.leader == 1
    driver.expire(1)
    assert (driver.partition.leader, driver.partition.isr) == (leader, isr)
    assert driver.partition.recovery == LeaderRecoveryState.RECOVERED


def test_who_is_only_being_added_cannot_be_elected_by_the_reassignment() -> None:
    driver = cluster(KRAFT_4_0, min_isr=2, eligible_leader_replicas=True)
    driver.reassign(1)
    assert driver.partition.elr == ids(2, 3)
    driver.expire(1)
    refused = driver.reassign(2, 3)
    assert answer_of(refused).error == Error.UNKNOWN_SERVER_ERROR, "executed on Kafka 4.4.0"
    assert (driver.partition.leader, driver.partition.replicas) == (NO_LEADER, order(1))
