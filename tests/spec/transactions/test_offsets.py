"""Offsets that are committed in a transaction: who may, and when they count."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.spec.broker.leader.verification import batch_of_offsets
from kspec.spec.coordinator.effects import PersistTransactionalOffsets
from kspec.spec.coordinator.group import Group, GroupState, Member, absent, created
from kspec.spec.coordinator.loading import is_kept, load, replay, replay_end_of_transaction
from kspec.spec.coordinator.modern.state import ClassicMetadata, ConsumerGroup, ConsumerGroupMember
from kspec.spec.coordinator.offsets import check_before_verification, check_txn_commit, handle_txn_offset_commit
from kspec.spec.coordinator.protocol import Coordinator
from kspec.spec.coordinator.records import OffsetCommitRecord
from kspec.spec.coordinator.refusals import answer_for_verification, refuse
from kspec.spec.coordinator.runtime import check_marker_of_groups, expire_offsets
from kspec.spec.messages.groups.offset_commit import OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitRequest
from kspec.spec.releases.coordinator import COORDINATOR_RELEASES
from kspec.spec.values import (
    Error,
    Generation,
    GroupEpoch,
    GroupId,
    MemberId,
    Offset,
    ProducerEpoch,
    ProducerId,
    TimestampMs,
    TransactionalId,
)
from tests.spec.coordinator_driver import CoordinatorDriver, at
from tests.times import at_ms

COORDINATOR = Coordinator(COORDINATOR_RELEASES[-1])
GROUP, PRODUCER, M = GroupId("g"), ProducerId(7), MemberId("m")
EMPTY = created(absent(GROUP), TimestampMs(0))


def request(**fields: Any) -> TxnOffsetCommitRequest:
    offsets = (OffsetToCommit("t", 0, Offset(5)),)
    asked = {"offsets": offsets, "transactional_id": TransactionalId("id"), "group_id": GROUP, "producer_id": PRODUCER}
    return TxnOffsetCommitRequest(**{**asked, "producer_epoch": ProducerEpoch(0), **fields})


def offsets_of(group: Group) -> list[int]:
    return [one.offset for one in group.offsets]


def test_they_count_when_the_transaction_is_committed() -> None:
    step = handle_txn_offset_commit(COORDINATOR, EMPTY, request(), at_ms(1))
    stored, answer = step.effects
    assert isinstance(stored, PersistTransactionalOffsets)
    assert [one.commit.offset for one in stored.commits] == [5]
    assert answer.message.partitions[0].error == Error.NONE  # type: ignore[union-attr]
    assert offsets_of(step.state) == []
    assert offsets_of(replay_end_of_transaction(step.state, PRODUCER, committed=True)) == [5]
    assert offsets_of(replay_end_of_transaction(step.state, PRODUCER, committed=False)) == []


def test_a_plain_commit_that_comes_later_stays() -> None:
    waiting = handle_txn_offset_commit(COORDINATOR, EMPTY, request(), at_ms(1)).state
    later = replay(waiting, OffsetCommitRecord(GROUP, "t", 0, Offset(3)))
    assert offsets_of(replay_end_of_transaction(later, PRODUCER, committed=True)) == [3]


def test_one_that_says_too_much_is_refused() -> None:
    long = (OffsetToCommit("t", 0, Offset(5), metadata="x" * 5000),)
    step = handle_txn_offset_commit(COORDINATOR, EMPTY, request(offsets=long), at_ms(1))
    assert step.state == EMPTY
    assert step.effects[0].message.partitions[0].error == Error.OFFSET_METADATA_TOO_LARGE  # type: ignore[union-attr]
    refused = handle_txn_offset_commit(COORDINATOR, absent(GROUP), request(generation=Generation(1)), at_ms(1))
    assert refused.effects[0].message.partitions[0].error == Error.ILLEGAL_GENERATION  # type: ignore[union-attr]


MEMBER = Member(M, None, "c", "h", 1, 1, "consumer", ())
CLASSIC = EMPTY._replace(state=GroupState.COMPLETING_REBALANCE, generation=Generation(2), members=(MEMBER,))


def consumers(**fields: Any) -> Group:
    member = ConsumerGroupMember(M, epoch=GroupEpoch(3), **fields)
    return EMPTY._replace(state=GroupState.STABLE, consumer=ConsumerGroup(members=(member,)))


@pytest.mark.parametrize(
    ("group", "fields", "error"),
    [
        (absent(GROUP), {}, Error.NONE),
        (absent(GROUP), {"generation": Generation(1), "reports_missing_group": True}, Error.GROUP_ID_NOT_FOUND),
        (EMPTY, {}, Error.NONE),
        (CLASSIC, {}, Error.NONE),
        (CLASSIC, {"generation": Generation(2), "member_id": M}, Error.NONE),
        (CLASSIC, {"generation": Generation(1), "member_id": M}, Error.ILLEGAL_GENERATION),
        (CLASSIC, {"generation": Generation(2), "member_id": MemberId("n")}, Error.UNKNOWN_MEMBER_ID),
        (consumers(), {"generation": Generation(3), "member_id": M}, Error.NONE),
        (consumers(), {"generation": Generation(2), "member_id": M}, Error.ILLEGAL_GENERATION),
        (
            consumers(),
            {"generation": Generation(2), "member_id": M, "reports_missing_group": True},
            Error.STALE_MEMBER_EPOCH,
        ),
        (
            consumers(classic=ClassicMetadata(1, ())),
            {"generation": Generation(2), "member_id": M, "reports_missing_group": True},
            Error.ILLEGAL_GENERATION,
        ),
        (consumers(), {"member_id": MemberId("n")}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_may_commit(group: Group, fields: dict[str, Any], error: Error) -> None:
    assert check_txn_commit(COORDINATOR, group, request(**fields)) == error


# ---- in the runtime: markers, reads, what ends them


def stable_fetch(driver: CoordinatorDriver, require_stable: bool = True) -> tuple[Error, int]:
    (one,) = driver.fetch(OffsetFetchPartition("topic", 0), require_stable=require_stable).partitions
    return one.error, one.offset


@pytest.mark.parametrize(("committed", "offset"), [(True, 5), (False, 3)])
def test_a_marker_decides_when_it_is_in_the_log(committed: bool, offset: int) -> None:
    driver = CoordinatorDriver()
    assert driver.commit(at("topic", 0, 3)) == [Error.NONE]
    assert driver.commit_in_transaction(7) == [Error.NONE]
    assert stable_fetch(driver) == (Error.UNSTABLE_OFFSET_COMMIT, -1)
    assert stable_fetch(driver, require_stable=False) == (Error.NONE, 3)
    driver.end_transaction(8, committed=True)
    assert stable_fetch(driver) == (Error.UNSTABLE_OFFSET_COMMIT, -1), "the marker of another producer ends nothing"
    driver.end_transaction(7, committed)
    assert stable_fetch(driver) == stable_fetch(driver, require_stable=False) == (Error.NONE, offset)
    assert driver.state_of_group.committed.offsets == load(driver.log)[0].offsets


def test_an_answer_waits_until_the_offsets_are_committed_and_a_read_until_the_marker_is() -> None:
    driver = CoordinatorDriver()
    driver.commits_at_once = False
    named = (TransactionalId("id"), GroupId("group"), PRODUCER, ProducerEpoch(0))
    driver.hand_in(1, TxnOffsetCommitRequest(*named, (at("topic", 0, 5),)))
    assert driver.replies == {}
    driver.commit_up_to(1)
    assert driver.replies[1].partitions[0].error == Error.NONE
    driver.end_transaction(PRODUCER, committed=True)
    wanted = (OffsetFetchPartition("topic", 0),)
    driver.hand_in(2, OffsetFetchRequest(GroupId("group"), wanted, require_stable=True))
    driver.hand_in(3, OffsetFetchRequest(GroupId("group"), wanted, require_stable=False))
    assert driver.replies[3].partitions[0].offset == -1, "the marker may be lost"
    assert 2 not in driver.replies
    driver.commit_up_to(2)
    assert driver.replies[2].partitions[0].offset == 5


@pytest.mark.parametrize("error", [Error.INVALID_TXN_STATE, Error.INVALID_PRODUCER_EPOCH])
def test_offsets_that_the_log_refuses_are_nowhere(error: Error) -> None:
    driver = CoordinatorDriver()
    driver.refuses = error
    assert driver.commit_in_transaction(7) == [error]
    assert driver.group.pending_offsets == ()
    assert driver.commit_in_transaction(7) == [Error.NONE]


def test_offsets_of_an_open_transaction_are_deleted_with_others() -> None:
    driver = CoordinatorDriver()
    driver.commit_in_transaction(7)
    assert driver.delete_offsets(OffsetFetchPartition("topic", 0)).error == Error.NONE
    driver.end_transaction(7, committed=True)
    assert stable_fetch(driver) == (Error.NONE, -1)
    driver.commit_in_transaction(7)
    assert driver.delete() == Error.NONE
    driver.end_transaction(7, committed=True)
    assert stable_fetch(driver) == (Error.NONE, -1)
    assert load(driver.log) == ()


def test_offsets_do_not_expire_while_a_transaction_is_open() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=10)

    def expire() -> None:
        given = (driver.coordinator, driver.state_of_group, driver.position, at_ms(driver.now))
        driver.happen(expire_offsets(*given))

    driver.commit(at("topic", 0, 3))
    driver.commit_in_transaction(7)
    driver.pass_time(20)
    expire()
    assert stable_fetch(driver, require_stable=False) == (Error.NONE, 3)
    driver.end_transaction(7, committed=False)
    expire()
    assert not is_kept(driver.group)


def test_without_a_group_id_nobody_is_meant() -> None:
    assert check_txn_commit(COORDINATOR, absent(GroupId("")), request(group_id=GroupId(""))) == Error.INVALID_GROUP_ID


@pytest.mark.parametrize(("knows", "told"), [(True, 14), (False, 15)])
def test_a_coordinator_that_loads(knows: bool, told: int) -> None:
    refused = refuse(request(knows_loading=knows), Error.COORDINATOR_LOAD_IN_PROGRESS)
    assert refused.message.partitions[0].error == Error(told)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("error", "knows", "told"),
    [
        (Error.PRODUCER_FENCED, True, Error.INVALID_PRODUCER_EPOCH),
        (Error.TRANSACTION_ABORTABLE, True, Error.TRANSACTION_ABORTABLE),
        (Error.TRANSACTION_ABORTABLE, False, Error.INVALID_TXN_STATE),
        (Error.NETWORK_EXCEPTION, True, Error.COORDINATOR_LOAD_IN_PROGRESS),
        (Error.NOT_LEADER_OR_FOLLOWER, True, Error.NOT_COORDINATOR),
        (Error.CONCURRENT_TRANSACTIONS, True, Error.CONCURRENT_TRANSACTIONS),
    ],
)
def test_who_is_told_what_the_coordinator_of_transactions_says(error: Error, knows: bool, told: Error) -> None:
    assert answer_for_verification(error, knows) == told


def test_a_marker_waits_until_the_groups_are_loaded() -> None:
    assert check_marker_of_groups(is_loaded=True) == Error.NONE
    assert check_marker_of_groups(is_loaded=False) == Error.NOT_LEADER_OR_FOLLOWER


def test_a_check_before_the_verification_is_not_one_of_what_is_written() -> None:
    """KAFKA-15784: a rebalance comes between the two."""
    early = Coordinator(replace(COORDINATOR.protocol, checks_when_written=False))
    late = request(generation=Generation(1), member_id=M)
    for coordinator, before, written in (
        (COORDINATOR, Error.NONE, Error.ILLEGAL_GENERATION),
        (early, Error.NONE, Error.NONE),
    ):
        in_time = CLASSIC._replace(generation=Generation(1))
        assert check_before_verification(coordinator, in_time, late) == before
        step = handle_txn_offset_commit(coordinator, CLASSIC, late, at_ms(1))
        assert step.effects[-1].message.partitions[0].error == written  # type: ignore[union-attr]
    assert check_before_verification(early, CLASSIC, late) == Error.ILLEGAL_GENERATION


def test_the_batch_that_is_verified_has_no_sequence_number() -> None:
    batch = batch_of_offsets(PRODUCER, ProducerEpoch(3))
    assert (batch.producer_id, batch.producer_epoch, batch.first_sequence, batch.is_transactional) == (7, 3, -1, True)
