"""Deleting records from the start of a log (rules R)."""

from kspec.spec.broker.effects import LogStartMoved, Persist
from kspec.spec.broker.leader.deletion import (
    answer_deletion,
    apply_retention,
    delete_records,
    handle_delete_records,
    low_watermark_of,
)
from kspec.spec.broker.rules.offsets import is_deleted
from kspec.spec.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kspec.spec.values import Error, Offset
from tests.spec.broker_driver import NOW, OTHER, SELF, THIRD, broker, fetched, follower, leader, log_of, registered, reply

# ---- deleting: R1, R2


def test_records_are_deleted_up_to_the_high_watermark_at_most() -> None:
    ends = {OTHER: fetched(3), THIRD: fetched(3)}
    partition = leader(log_of(5, 5, 5), 2, follower_ends=ends)
    step = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(-1)), NOW)
    assert step.effects[0] == Persist(LogStartMoved(Offset(2)))
    assert reply(step) == DeleteRecordsResponse(Error.NONE, Offset(2), Offset(0))
    assert step.state.local.log.start_offset == 2
    for offset in (3, -2):
        refused = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(offset)), NOW)
        assert (refused.state, reply(refused).error) == (partition, Error.OFFSET_OUT_OF_RANGE)


def test_a_deletion_is_done_when_no_live_replica_has_the_records() -> None:
    partition = leader(log_of(5, 5, 5), 2, follower_ends={OTHER: fetched(3, start=2), THIRD: fetched(3)})
    step = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(2)), NOW)
    assert not is_deleted(reply(step), low_watermark_of(broker(), step.state))
    third_is_down = (registered(SELF), registered(OTHER), registered(THIRD, fenced=True))
    assert is_deleted(reply(step), low_watermark_of(broker(brokers=third_is_down), step.state))


def test_a_client_waits_for_live_followers_and_is_told_if_the_leader_resigns() -> None:
    partition = leader(log_of(5, 5, 5), 2, follower_ends={OTHER: fetched(3, start=2), THIRD: fetched(3)})
    step = handle_delete_records(broker(), partition, DeleteRecordsRequest(Offset(2)), NOW)
    done = reply(step)
    assert answer_deletion(broker(), step.state, done) == DeleteRecordsResponse(
        Error.REQUEST_TIMED_OUT, Offset(2), Offset(0)
    )
    third_is_down = broker(brokers=(registered(SELF), registered(OTHER), registered(THIRD, fenced=True)))
    assert answer_deletion(third_is_down, step.state, done) == DeleteRecordsResponse(Error.NONE, Offset(2), Offset(2))
    assert answer_deletion(broker(), follower(log_of(5), 1), done).error == Error.NOT_LEADER_OR_FOLLOWER


def test_who_may_not_delete() -> None:
    compacted = broker(settings=broker().settings._replace(deletes_records=False))
    assert (
        reply(handle_delete_records(compacted, leader(log_of(5), 1), DeleteRecordsRequest(Offset(1)), NOW)).error
        == Error.POLICY_VIOLATION
    )
    assert (
        reply(handle_delete_records(broker(), follower(log_of(5), 1), DeleteRecordsRequest(Offset(1)), NOW)).error
        == Error.NOT_LEADER_OR_FOLLOWER
    )


def test_the_start_never_moves_back() -> None:
    partition = leader(log_of(5, 5, 5).start_at(Offset(2)), 3)
    assert delete_records(partition, Offset(1)) == (partition, ())


def test_retention_keeps_what_is_not_committed() -> None:
    step = apply_retention(follower(log_of(5, 5, 5), 2), Offset(3))
    assert (step.state.local.log.start_offset, step.effects) == (2, (Persist(LogStartMoved(Offset(2))),))
