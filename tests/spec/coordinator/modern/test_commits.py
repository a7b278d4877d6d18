"""Offsets of consumer groups: commits and fetches by the member's epoch; looking at groups, deleting them."""

from typing import Any

import pytest

from kspec.spec.coordinator.runtime import expire_offsets
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest
from kspec.spec.messages.groups.describe_groups import DescribeGroupsRequest
from kspec.spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.offset_fetch import OffsetFetchPartition, OffsetFetchRequest
from kspec.spec.values import Error, Generation, GroupEpoch, MemberId, Offset
from tests.spec.coordinator.modern.driver import ConsumerDriver, held, topic_id, topics
from tests.spec.coordinator.modern.test_heartbeat import two_members
from tests.spec.coordinator_driver import GROUP, offers
from tests.times import at_ms

T = topics(a=6)


def commit(driver: ConsumerDriver, name: str, epoch: int, *places: int, by_id: bool = False, **fields: Any) -> list[Error]:
    identity: dict[str, Any] = {"topic_id": topic_id("a")} if by_id else {}
    offsets = tuple(OffsetToCommit("a", place, Offset(7), **identity) for place in places)
    asked = {"reports_missing_group": True, **fields}
    answer = driver.send(OffsetCommitRequest(GROUP, offsets, Generation(epoch), MemberId(name), **asked))
    return [one.error for one in answer.partitions]


def fetch(driver: ConsumerDriver, name: str | None, epoch: int) -> Error:
    wanted = (OffsetFetchPartition("a", 0),)
    member_id = None if name is None else MemberId(name)
    error = driver.send(OffsetFetchRequest(GROUP, wanted, False, member_id, epoch)).error
    assert isinstance(error, Error)
    return error


def test_a_member_commits_any_partition_in_its_epoch() -> None:
    driver = two_members()
    assert commit(driver, "m1", 2, 0, 5) == [Error.NONE, Error.NONE]
    assert commit(driver, "m1", 3, 0) == [Error.STALE_MEMBER_EPOCH]
    assert commit(driver, "m9", 2, 0) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(driver, "", -1, 0) == [Error.UNKNOWN_MEMBER_ID]
    assert commit(driver, "m1", -1, 0) == [Error.STALE_MEMBER_EPOCH]
    assert commit(driver, "m1", 2, 0, reports_missing_group=False) == [Error.UNSUPPORTED_VERSION]


@pytest.mark.parametrize(("release", "kept"), [("4.2", Error.STALE_MEMBER_EPOCH), ("4.3", Error.NONE)])
@pytest.mark.parametrize("by_id", [False, True])
def test_a_commit_on_its_way_while_the_epoch_moves(release: str, kept: Error, by_id: bool) -> None:
    """KIP-1251: for partitions that the member has had since that epoch."""
    driver = two_members(release)
    assert commit(driver, "m1", 1, 0, 5, by_id=by_id) == [kept, Error.STALE_MEMBER_EPOCH]
    assert commit(driver, "m1", 0, 0) == [Error.STALE_MEMBER_EPOCH]
    assert commit(driver, "m2", 1, 3) == [Error.STALE_MEMBER_EPOCH]
    assert {one.partition for one in driver.group.offsets} == ({0} if kept == Error.NONE else set())


def test_what_a_member_has_yet_to_give_up_it_may_commit() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.come("m1", "a")
    driver.beat("m1", driver.consumer("m1").epoch, "a:0,1,2,3,4,5")
    driver.come("m3", "a")
    driver.beat("m1", 2)
    assert held("a:2") == {one.place for one in driver.consumer("m1").pending}
    assert commit(driver, "m1", 1, 2) == [Error.NONE]


def test_an_empty_group_takes_commits_of_who_is_in_no_group() -> None:
    driver = two_members()
    driver.go("m1")
    driver.go("m2")
    assert commit(driver, "", -1, 0) == [Error.NONE]
    assert commit(driver, "m1", 2, 0) == [Error.UNKNOWN_MEMBER_ID]


def test_offsets_are_read_in_the_members_epoch_alone() -> None:
    driver = two_members()
    assert fetch(driver, None, -1) == Error.NONE
    assert fetch(driver, "m1", 2) == Error.NONE
    assert fetch(driver, "m1", 1) == Error.STALE_MEMBER_EPOCH
    assert fetch(driver, "m9", 2) == Error.UNKNOWN_MEMBER_ID
    assert fetch(driver, None, 2) == Error.UNKNOWN_MEMBER_ID


def test_offsets_of_unread_topics_expire_while_there_are_members() -> None:
    driver = two_members(offsets_retention_ms=1_000)
    assert commit(driver, "m1", 2, 0) == [Error.NONE]
    other = OffsetCommitRequest(
        GROUP, (OffsetToCommit("z", 0, Offset(1)),), Generation(2), MemberId("m1"), reports_missing_group=True
    )
    driver.send(other)
    driver.come("m3", "a")
    driver.now += 1_000
    driver.happen(expire_offsets(driver.coordinator, driver.state_of_group, driver.position, at_ms(driver.now)))
    assert [one.topic for one in driver.group.offsets] == ["a"]


def test_an_empty_group_ends_with_its_last_offset() -> None:
    driver = two_members(offsets_retention_ms=1_000)
    driver.go("m1")
    driver.go("m2")
    driver.happen(expire_offsets(driver.coordinator, driver.state_of_group, driver.position, at_ms(driver.now)))
    assert driver.group.consumer is None


def test_only_an_empty_group_can_be_deleted() -> None:
    driver = two_members()
    assert driver.send(DeleteGroupsRequest(GROUP)).error == Error.NON_EMPTY_GROUP
    driver.go("m1")
    driver.go("m2")
    assert driver.send(DeleteGroupsRequest(GROUP)).error == Error.NONE
    assert driver.described().error == Error.GROUP_ID_NOT_FOUND


def test_a_group_is_described_as_it_is_committed() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a", instance_id="i", rack_id="r")
    driver.beat("m1", 1)
    answer = driver.described()
    assert (answer.group_state, answer.group_epoch, answer.assignment_epoch) == ("Reconciling", 2, 2)
    first, second = answer.members
    assert frozenset(first.assignment) == held("a:0,1,2,3,4,5"), "a member is responsible until it has given up"
    assert frozenset(first.target) == held("a:0,1,2")
    assert (second.instance_id, second.rack_id, second.topics, second.is_classic) == ("i", "r", ("a",), False)
    assert (first.regex, second.regex) == ("", ""), "never null"
    driver.commits_at_once = False
    before = driver.described()
    driver.hand_in(driver.new_number(), ConsumerGroupHeartbeatRequest(GROUP, MemberId("m1"), GroupEpoch(-1)))
    assert driver.described() == before
    driver.know(topics())
    assert driver.described().members[0].assignment == ()


@pytest.mark.parametrize(("release", "shown"), [("4.2", "a:0,1,2"), ("4.3", "a:0,1,2,3,4,5")])
def test_what_a_member_has_to_give_up_is_described_since_4_3(release: str, shown: str) -> None:
    driver = ConsumerDriver(release, T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    assert frozenset(driver.described().members[0].assignment) == held(shown)


def test_a_consumer_group_is_listed_by_its_type_and_dead_for_older_requests() -> None:
    driver = two_members()
    assert driver.send(ListGroupsRequest(types=("Consumer",))).groups == (
        ListedGroup(GROUP, "consumer", "Stable", "consumer"),
    )
    assert driver.send(ListGroupsRequest(types=("classic",))).groups == ()
    assert driver.send(ListGroupsRequest(states=("stable",))).groups
    assert driver.send(DescribeGroupsRequest(GROUP)).group_state == "Dead"
    assert driver.send(DescribeGroupsRequest(GROUP, reports_missing_group=True)).error == Error.GROUP_ID_NOT_FOUND


def test_a_classic_group_is_no_consumer_group() -> None:
    driver = ConsumerDriver(known=T)
    driver.join(protocols=offers("range", topic="a"))
    assert driver.send(ConsumerGroupDescribeRequest(GROUP)).error == Error.GROUP_ID_NOT_FOUND
    assert driver.beat("m1", 1).error == Error.GROUP_ID_NOT_FOUND
