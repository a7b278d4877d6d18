"""Offsets. Facts from Apache Kafka's `OffsetMetadataManagerTest` and `ClassicGroupTest`."""

import pytest

from kspec.spec.coordinator.deadlines import on_resignation
from kspec.spec.coordinator.group import GroupState, exists
from kspec.spec.coordinator.loading import load, replay, replay_end_of_transaction
from kspec.spec.coordinator.offsets import on_offsets_expiry, on_topic_deleted
from kspec.spec.coordinator.records import (
    EndOfTransaction,
    GroupTombstone,
    OffsetCommitRecord,
    OffsetTombstone,
    TransactionalCommit,
)
from kspec.spec.messages.groups.offset_fetch import FetchedOffset, OffsetFetchPartition
from kspec.spec.values import NO_TOPIC_ID, UNKNOWN_OFFSET, Epoch, Error, Offset, ProducerId, TimestampMs, TopicId
from tests.spec.coordinator_driver import DELAY_MS, GROUP, RANGE, SESSION_MS, CoordinatorDriver, at
from tests.times import at_ms

DAY_MS = 24 * 60 * 60 * 1000
A, B = TopicId(b"a" * 16), TopicId(b"b" * 16)
PRODUCER = ProducerId(7)


def offsets_of(driver: CoordinatorDriver) -> dict[tuple[str, int], int]:
    return {(record.topic, record.partition): record.offset for record in driver.group.offsets}


def expire(driver: CoordinatorDriver, now: int) -> None:
    driver.now = now
    driver.carry_out(on_offsets_expiry(driver.coordinator, driver.group, at_ms(now)))


# ---- commit


def test_a_consumer_without_a_group_commits_and_so_creates_one() -> None:
    driver = CoordinatorDriver()
    assert driver.commit(at("topic", 1, 5), at("topic", 0, 7)) == [Error.NONE, Error.NONE]
    assert driver.state == GroupState.EMPTY
    assert offsets_of(driver) == {("topic", 0): 7, ("topic", 1): 5}
    assert load(driver.log) == (driver.group,)


def test_a_commit_replaces_the_one_before() -> None:
    driver = CoordinatorDriver()
    driver.commit(at("topic", 0, 5))
    driver.commit(at("topic", 0, 3, leader_epoch=Epoch(4), metadata=None, topic_id=A), retention_ms=50)
    assert driver.group.offsets == (
        OffsetCommitRecord(GROUP, "topic", 0, Offset(3), Epoch(4), "", TimestampMs(0), TimestampMs(50), A),
    )


def test_a_member_commits_in_its_generation() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    assert driver.commit(member_id=member, generation=1) == [Error.NONE]
    assert driver.commit(member_id=member, generation=0) == [Error.ILLEGAL_GENERATION]
    assert driver.commit(member_id=member, generation=2) == [Error.ILLEGAL_GENERATION]
    assert driver.commit(member_id="stranger", generation=1) == [Error.UNKNOWN_MEMBER_ID]
    assert driver.commit(member_id=member, generation=1, instance_id="a") == [Error.UNKNOWN_MEMBER_ID]
    assert driver.commit(at("x", 0, 1), at("x", 1, 1)) == [Error.UNKNOWN_MEMBER_ID] * 2


def test_a_former_static_member_is_fenced() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable("a")
    driver.join(instance_id="a")
    assert driver.commit(member_id=member, generation=1, instance_id="a") == [Error.FENCED_INSTANCE_ID]


def test_a_commit_is_a_sign_of_life() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.pass_time(SESSION_MS - 1)
    driver.commit(member_id=member, generation=1)
    driver.pass_time(SESSION_MS - 1)
    assert driver.heartbeat(member) == Error.NONE


def test_a_commit_is_a_sign_of_life_also_while_others_join() -> None:
    """`OffsetMetadataManager.validateOffsetCommit`: of a group that is stable, or prepares to rebalance."""
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.pass_time(SESSION_MS - 1)
    driver.join()
    assert driver.describe().group_state == "PreparingRebalance"
    driver.commit(member_id=member, generation=1)
    driver.pass_time(2)
    assert [one.member_id for one in driver.group.members if one.member_id == member] == [member]


def test_a_member_commits_while_others_join_but_not_while_the_assignment_is_awaited() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.join()
    assert driver.describe().group_state == "PreparingRebalance"
    assert driver.commit(member_id=member, generation=1) == [Error.NONE]
    driver.join(member)
    assert driver.describe().group_state == "CompletingRebalance"
    assert driver.commit(member_id=member, generation=2) == [Error.REBALANCE_IN_PROGRESS]


@pytest.mark.parametrize(("new_client", "error"), [(True, Error.GROUP_ID_NOT_FOUND), (False, Error.ILLEGAL_GENERATION)])
def test_a_member_of_no_group_cannot_commit(new_client: bool, error: Error) -> None:
    driver = CoordinatorDriver()
    assert driver.commit(member_id="m1", generation=1, reports_missing_group=new_client) == [error]
    assert driver.log == []


def test_an_empty_group_takes_commits_of_nobody_in_particular() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.leave(member)
    assert driver.commit(at("topic", 0, 9)) == [Error.NONE]
    assert driver.commit(member_id=member, generation=2) == [Error.UNKNOWN_MEMBER_ID]


def test_metadata_has_a_limit_which_counts_as_java_counts() -> None:
    driver = CoordinatorDriver(max_metadata_size=4)
    offsets = (at("topic", 0, 1, metadata="four"), at("topic", 1, 1, metadata="fives"), at("topic", 2, 1, metadata="😀😀😀"))
    assert driver.commit(*offsets) == [Error.NONE, Error.OFFSET_METADATA_TOO_LARGE, Error.OFFSET_METADATA_TOO_LARGE]
    assert offsets_of(driver) == {("topic", 0): 1}


def test_a_commit_that_stores_nothing_is_answered_all_the_same() -> None:
    driver = CoordinatorDriver(max_metadata_size=0)
    assert driver.commit(at("topic", 0, 1, metadata="x")) == [Error.OFFSET_METADATA_TOO_LARGE]
    assert (driver.log, driver.state) == ([], GroupState.EMPTY)


# ---- fetch


def test_nothing_is_committed_in_a_group_that_does_not_exist() -> None:
    driver = CoordinatorDriver()
    answer = driver.fetch(OffsetFetchPartition("topic", 0))
    assert answer.error == Error.NONE
    assert answer.partitions == (FetchedOffset("topic", 0),)
    assert driver.fetch().partitions == ()


def test_offsets_are_fetched_in_the_order_asked_or_all() -> None:
    driver = CoordinatorDriver()
    driver.commit(at("b", 0, 5, metadata="seen", leader_epoch=Epoch(2)), at("a", 1, 6), at("a", 0, 7))
    asked = (OffsetFetchPartition("b", 0), OffsetFetchPartition("b", 1))
    assert driver.fetch(*asked).partitions == (
        FetchedOffset("b", 0, Error.NONE, Offset(5), Epoch(2), "seen"),
        FetchedOffset("b", 1, Error.NONE, UNKNOWN_OFFSET),
    )
    everything = [(one.topic, one.partition, one.offset) for one in driver.fetch().partitions]
    assert everything == [("a", 0, 7), ("a", 1, 6), ("b", 0, 5)]


@pytest.mark.parametrize(
    ("committed", "asked", "found"),
    [(A, A, 5), (A, B, -1), (NO_TOPIC_ID, A, 5), (A, NO_TOPIC_ID, 5)],
)
def test_an_offset_of_a_topic_that_was_created_again_does_not_count(committed: TopicId, asked: TopicId, found: int) -> None:
    driver = CoordinatorDriver()
    driver.commit(at("topic", 0, 5, topic_id=committed))
    (fetched,) = driver.fetch(OffsetFetchPartition("topic", 0, asked)).partitions
    assert (fetched.offset, fetched.topic_id, fetched.error) == (found, asked, Error.NONE)


def test_an_offset_of_an_open_transaction_is_unstable() -> None:
    driver = CoordinatorDriver()
    driver.commit(at("topic", 0, 5))
    record = OffsetCommitRecord(GROUP, "topic", 0, Offset(9))
    driver.group = replay(driver.group, record, PRODUCER)
    asked = OffsetFetchPartition("topic", 0)
    assert driver.fetch(asked).partitions[0].offset == 5
    assert driver.fetch(asked, require_stable=True).partitions[0].error == Error.UNSTABLE_OFFSET_COMMIT
    assert driver.fetch(require_stable=True).partitions[0].error == Error.UNSTABLE_OFFSET_COMMIT
    open_still = driver.group
    driver.group = replay_end_of_transaction(open_still, PRODUCER, committed=True)
    assert driver.fetch(asked, require_stable=True).partitions[0].offset == 9
    driver.group = replay_end_of_transaction(open_still, PRODUCER, committed=False)
    assert driver.fetch(asked, require_stable=True).partitions[0].offset == 5
    assert replay_end_of_transaction(open_still, ProducerId(8), committed=True) == open_still


def test_offsets_of_several_open_transactions_are_kept_apart() -> None:
    driver = CoordinatorDriver()
    commits = [OffsetCommitRecord(GROUP, "topic", 0, Offset(offset)) for offset in (1, 2, 3)]
    for commit, producer in zip(commits, (7, 8, 7), strict=True):
        driver.group = replay(driver.group, commit, ProducerId(producer))
    assert [(one.producer_id, one.commit.offset) for one in driver.group.pending_offsets] == [(8, 2), (7, 3)]
    driver.group = replay_end_of_transaction(driver.group, PRODUCER, committed=True)
    assert offsets_of(driver) == {("topic", 0): 3}
    assert len(driver.group.pending_offsets) == 1


# ---- delete


def test_offsets_of_topics_that_nobody_reads_are_deleted() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.commit(at("topic", 0, 1), at("old", 0, 1), member_id=member, generation=1)
    wanted = (OffsetFetchPartition("topic", 0), OffsetFetchPartition("old", 0), OffsetFetchPartition("old", 1))
    answer = driver.delete_offsets(*wanted)
    assert [one.error for one in answer.partitions] == [Error.GROUP_SUBSCRIBED_TO_TOPIC, Error.NONE, Error.NONE]
    assert offsets_of(driver) == {("topic", 0): 1}
    assert driver.log[-1] == OffsetTombstone(GROUP, "old", 0)


def test_while_the_topics_are_unknown_any_may_be_read() -> None:
    driver = CoordinatorDriver()
    driver.commit()
    driver.join()
    assert driver.delete_offsets(OffsetFetchPartition("topic", 0)).partitions[0].error == Error.GROUP_SUBSCRIBED_TO_TOPIC


def test_offsets_are_not_deleted_without_a_group_or_of_members_who_are_no_consumers() -> None:
    driver = CoordinatorDriver()
    assert driver.delete_offsets(group_id="").error == Error.INVALID_GROUP_ID
    assert driver.delete_offsets(OffsetFetchPartition("topic", 0)).error == Error.GROUP_ID_NOT_FOUND
    driver.join(protocol_type="connect")
    assert driver.delete_offsets(OffsetFetchPartition("topic", 0)).error == Error.NON_EMPTY_GROUP


def test_an_offset_of_an_open_transaction_is_deleted() -> None:
    driver = CoordinatorDriver()
    driver.commit(at("old", 0, 1))
    driver.group = replay(driver.group, OffsetCommitRecord(GROUP, "old", 1, Offset(9)), PRODUCER)
    driver.delete_offsets(OffsetFetchPartition("old", 1))
    assert driver.group.pending_offsets == ()


# ---- expiry


def test_offsets_of_consumers_without_a_group_expire_after_their_commit() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=DAY_MS)
    driver.commit(at("topic", 0, 1))
    driver.now = 10
    driver.commit(at("topic", 1, 1))
    expire(driver, DAY_MS)
    assert offsets_of(driver) == {("topic", 1): 1}
    expire(driver, DAY_MS + 10)
    assert driver.state == GroupState.DEAD
    assert driver.log[-2:] == [OffsetTombstone(GROUP, "topic", 1), GroupTombstone(GROUP)]


def test_offsets_of_a_group_expire_after_its_last_member_left() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=DAY_MS)
    (member,) = driver.stable()
    driver.commit(member_id=member, generation=1)
    driver.pass_time(SESSION_MS)
    left = driver.now
    expire(driver, left + DAY_MS - 1 - DELAY_MS)
    assert len(driver.group.offsets) == 1
    expire(driver, left + DAY_MS)
    assert driver.state == GroupState.DEAD


def test_offsets_of_topics_that_members_no_longer_read_expire() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=DAY_MS)
    (member,) = driver.stable()
    driver.commit(at("topic", 0, 1), at("old", 0, 1), member_id=member, generation=1)
    expire(driver, driver.now + DAY_MS)
    assert offsets_of(driver) == {("topic", 0): 1}


def test_nothing_expires_during_a_rebalance_or_of_other_groups() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=0)
    (member,) = driver.stable()
    driver.commit(at("old", 0, 1), member_id=member, generation=1)
    driver.join(member)
    driver.join()
    expire(driver, DAY_MS)
    assert len(driver.group.offsets) == 1
    driver = CoordinatorDriver(offsets_retention_ms=0)
    driver.commit(at("old", 0, 1))
    driver.join(protocol_type="connect")
    driver.pass_time(DELAY_MS)
    driver.sync("m1")
    expire(driver, DAY_MS)
    assert len(driver.group.offsets) == 1


def test_a_retention_that_the_client_named_holds() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=DAY_MS)
    driver.commit(at("topic", 0, 1), retention_ms=100)
    expire(driver, 99)
    assert offsets_of(driver) == {("topic", 0): 1}
    expire(driver, 100)
    assert offsets_of(driver) == {}


def test_a_retention_beyond_the_end_of_times_is_over_at_once() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=DAY_MS)
    driver.pass_time(1)
    driver.commit(at("topic", 0, 1), retention_ms=2**63 - 1)
    assert driver.group.offsets[0].expires_at_ms == -(2**63)
    expire(driver, 2)
    assert offsets_of(driver) == {}


def test_an_offset_of_an_open_transaction_does_not_expire_nor_does_its_group() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=0)
    driver.commit(at("topic", 0, 1))
    driver.group = replay(driver.group, OffsetCommitRecord(GROUP, "topic", 0, Offset(9)), PRODUCER)
    expire(driver, DAY_MS)
    assert (driver.state, len(driver.group.offsets)) == (GroupState.EMPTY, 1)


def test_a_group_that_does_not_know_since_when_it_is_empty_counts_from_the_commits() -> None:
    driver = CoordinatorDriver(offsets_retention_ms=DAY_MS)
    (member,) = driver.stable()
    driver.commit(member_id=member, generation=1)
    driver.leave(member)
    driver.group = driver.group._replace(state_since_ms=None)
    committed_at = driver.group.offsets[0].committed_at_ms
    expire(driver, committed_at + DAY_MS)
    assert driver.state == GroupState.DEAD


def test_the_offsets_of_a_deleted_topic_are_forgotten() -> None:
    driver = CoordinatorDriver()
    driver.commit(at("topic", 0, 1), at("topic", 1, 1, topic_id=A), at("topic", 2, 1, topic_id=B), at("other", 0, 1))
    driver.carry_out(on_topic_deleted(driver.coordinator, driver.group, "topic", A, at_ms(0)))
    assert offsets_of(driver) == {("topic", 2): 1, ("other", 0): 1}
    before = list(driver.log)
    driver.carry_out(on_topic_deleted(driver.coordinator, driver.group, "nowhere", A, at_ms(0)))
    assert driver.log == before


def test_a_new_coordinator_has_every_offset() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.commit(at("topic", 0, 5), member_id=member, generation=1)
    driver.carry_out(on_resignation(driver.coordinator, driver.group, at_ms(driver.now)))
    (driver.group,) = load(driver.log)
    assert offsets_of(driver) == {("topic", 0): 5}
    assert driver.commit(at("topic", 0, 6), member_id=member, generation=1) == [Error.NONE]


@pytest.mark.parametrize(
    ("release", "in_rebalance", "when_stable"),
    [("2.3", False, False), ("2.4", True, True), ("3.1", True, True), ("3.2", False, True), ("4.4", False, True)],
)
def test_what_expires_while_there_are_members_differs_by_release(
    release: str, in_rebalance: bool, when_stable: bool
) -> None:
    """KIP-496 began to let offsets expire that no member reads; up to 3.1.0 they did in a rebalance, too (KAFKA-13636)."""
    driver = CoordinatorDriver(release, offsets_retention_ms=DAY_MS)
    driver.stable()
    driver.group = replay(driver.group, OffsetCommitRecord(GROUP, "old", 0, Offset(1), committed_at_ms=TimestampMs(0)))
    before = driver.state_of_group
    driver.join(protocols=RANGE)
    assert driver.state == GroupState.PREPARING_REBALANCE
    expire(driver, DAY_MS)
    assert (driver.group.offsets == ()) == in_rebalance
    driver.state_of_group = before
    expire(driver, DAY_MS)
    assert (driver.group.offsets == ()) == when_stable


def test_a_tombstone_of_a_group_leaves_its_offsets() -> None:
    """They are there again once the group is: a coordinator of another protocol ends a classic group that way."""
    commit, ended = OffsetCommitRecord(GROUP, "topic", 0, Offset(5)), GroupTombstone(GROUP)
    (group,) = load([commit, ended])
    assert not exists(group)
    driver = CoordinatorDriver()
    driver.group = group
    assert driver.fetch(OffsetFetchPartition("topic", 0)).partitions[0].offset == UNKNOWN_OFFSET
    driver.commit(at("topic", 1, 7))
    assert [one.offset for one in driver.fetch().partitions] == [5, 7]


def test_of_an_offset_and_a_transactions_the_later_record_counts() -> None:
    """The end of a transaction may come late. **Kafka:** `OffsetMetadataManager.replayEndTransactionMarker`."""
    plain, other = (OffsetCommitRecord(GROUP, "topic", 0, Offset(offset)) for offset in (1, 2))
    first, second = (TransactionalCommit(ProducerId(producer), other) for producer in (1, 2))
    end = EndOfTransaction(ProducerId(1), committed=True)
    later = EndOfTransaction(ProducerId(2), committed=True)
    assert load([first, plain, end])[0].offsets == (plain,)
    assert load([plain, first, end])[0].offsets == (other,)
    third = TransactionalCommit(ProducerId(1), plain)
    assert load([third, second, later, end])[0].offsets == (other,)
    assert load([third, second, end, later])[0].offsets == (other,)
    assert load([plain, first, EndOfTransaction(ProducerId(1), committed=False)])[0].offsets == (plain,)
