"""A broker of the ZooKeeper era: the controller's requests, and its own writes."""

import pytest

from kspec.spec.broker.effects import LogDeleted, Persist
from kspec.spec.broker.leader.isr import consider_shrinking, handle_alter_partition_response
from kspec.spec.broker.rules.fetcher import NOT_FETCHING
from kspec.spec.broker.rules.isr.request import WriteIsr
from kspec.spec.log.record_log import RecordLog
from kspec.spec.messages.administration.error_response import ErrorResponse
from kspec.spec.messages.alter_partition import AlterPartitionRequest
from kspec.spec.messages.zookeeper_era.leader_and_isr import LeaderAndIsrRequest
from kspec.spec.messages.zookeeper_era.stop_replica import StopReplicaRequest
from kspec.spec.releases.broker import BROKER_2_1, BROKER_2_6
from kspec.spec.step import Reply
from kspec.spec.values import (
    NO_BROKER_EPOCH,
    NO_LEADER,
    BrokerEpoch,
    BrokerId,
    Epoch,
    Error,
    LeaderAndIsr,
    MonotonicMs,
    PartitionEpoch,
    PartitionId,
)
from kspec.spec.zookeeper.broker import ZkReplica, handle_leader_and_isr, handle_stop_replica, outcome_of, write_of
from tests.spec.broker_driver import EPOCH, EVERYBODY, NOW, OTHER, SELF, broker, fetched, follower, leader, log_of, run_of

CONTROLLER = Epoch(3)
OLD = broker(BROKER_2_6)


def replica(leads: bool = False) -> ZkReplica[RecordLog]:
    return ZkReplica(CONTROLLER, leader(log_of(5, 5), 1) if leads else follower(log_of(5, 5), 1))


def announcement(
    leads: BrokerId, epoch: int, controller: int = CONTROLLER, run: int = NO_BROKER_EPOCH
) -> LeaderAndIsrRequest:
    return LeaderAndIsrRequest(
        Epoch(controller),
        BrokerEpoch(run),
        PartitionId(0),
        leads,
        Epoch(epoch),
        frozenset(EVERYBODY),
        PartitionEpoch(8),
        EVERYBODY,
    )


def answer(error: Error) -> Reply[ErrorResponse]:
    return Reply(ErrorResponse(error))


@pytest.mark.parametrize("leads", [SELF, OTHER])
def test_an_announcement_of_a_later_epoch_is_obeyed(leads: BrokerId) -> None:
    step = handle_leader_and_isr(OLD, replica(), announcement(leads, 6, controller=4), NOW)
    assert (step.state.partition.leader, step.state.partition.leader_epoch) == (leads, 6)
    assert (step.state.controller_epoch, step.effects[-1]) == (4, answer(Error.NONE))


def test_that_nobody_leads_changes_nothing_but_which_controller_is_known() -> None:
    """Kafka looks for the leader among the brokers that are alive, and finds none: role, epoch and fetcher stay."""
    step = handle_leader_and_isr(OLD, replica(), announcement(NO_LEADER, 6, controller=4), NOW)
    assert step.state == replica()._replace(controller_epoch=Epoch(4))
    assert step.effects == (answer(Error.NONE),)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (announcement(SELF, 6, controller=2), Error.STALE_CONTROLLER_EPOCH),
        (announcement(SELF, 6, run=run_of(SELF) - 1), Error.STALE_BROKER_EPOCH),
        (announcement(SELF, EPOCH), Error.STALE_CONTROLLER_EPOCH),
    ],
)
def test_what_is_not_meant_for_this_run_or_no_news_is_refused(request_: LeaderAndIsrRequest, error: Error) -> None:
    step = handle_leader_and_isr(OLD, replica(), request_, NOW)
    assert step == (replica(), (answer(error),))


def test_a_replica_is_stopped_or_given_up() -> None:
    request = StopReplicaRequest(CONTROLLER, NO_BROKER_EPOCH, PartitionId(0), EPOCH, delete=False)
    stopped = handle_stop_replica(OLD, replica(), request, NOW)
    assert (stopped.state.partition.fetcher, stopped.effects) == (NOT_FETCHING, (answer(Error.NONE),))
    assert stopped.state.partition.local == replica().partition.local
    gone = handle_stop_replica(OLD, replica(), request._replace(delete=True), NOW)
    assert gone.effects == (Persist(LogDeleted()), answer(Error.NONE))
    stale = handle_stop_replica(OLD, replica(), request._replace(controller_epoch=Epoch(1)), NOW)
    assert stale == (replica(), (answer(Error.STALE_CONTROLLER_EPOCH),))


def shrinking() -> tuple[ZkReplica[RecordLog], AlterPartitionRequest]:
    partition = leader(log_of(5, 5), 1, follower_ends={OTHER: fetched(2)})
    step = consider_shrinking(broker(BROKER_2_1), partition, MonotonicMs(10**9))
    (effect,) = step.effects
    assert isinstance(effect, WriteIsr)
    return ZkReplica(CONTROLLER, step.state), effect.request


@pytest.mark.parametrize(("written", "isr", "version"), [(True, {SELF, OTHER}, 8), (False, set(EVERYBODY), 7)])
def test_an_isr_is_what_was_written(written: bool, isr: set[BrokerId], version: int) -> None:
    before, request = shrinking()
    write = write_of(before, request)
    assert write.state == LeaderAndIsr(SELF, EPOCH, frozenset({SELF, OTHER}))
    assert (write.controller_epoch, write.expected_partition_epoch) == (CONTROLLER, 7)
    response = outcome_of(request, write, written)
    after = handle_alter_partition_response(broker(BROKER_2_1), before.partition, request, response, NOW).state
    assert (after.isr.isr == isr, after.isr.partition_epoch, len(after.isr.pending_isr)) == (True, version, 0)
