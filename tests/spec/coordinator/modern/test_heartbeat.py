"""ConsumerGroupHeartbeat: who is let in, what a member is given and when, and how it leaves."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.spec.coordinator.administration import find_coordinator
from kspec.spec.coordinator.group import GroupState, absent, exists
from kspec.spec.coordinator.loading import load, replay
from kspec.spec.coordinator.modern.reconciliation import Goal, reconcile
from kspec.spec.coordinator.modern.records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerRecordKind,
    ConsumerTombstone,
    CurrentAssignmentRecord,
    TargetEpochRecord,
    TargetRecord,
)
from kspec.spec.coordinator.modern.state import AssignedPartition, MemberState, assigned_in, places
from kspec.spec.coordinator.refusals import refuse
from kspec.spec.coordinator.runtime import activate
from kspec.spec.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kspec.spec.messages.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kspec.spec.messages.groups.find_coordinator import FindCoordinatorRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest
from kspec.spec.releases.coordinator import LATE_REQUESTS_REPAIRED
from kspec.spec.step import Reply
from kspec.spec.values import Error, Generation, GroupEpoch, MemberId, MonotonicMs, TimestampMs
from tests.spec.coordinator.modern.driver import REBALANCE_MS, ConsumerDriver, held, topics
from tests.spec.coordinator_driver import GROUP, at
from tests.times import at_ms

T = topics(a=6)


def two_members(release: str = "4.4", **settings: Any) -> ConsumerDriver:
    """Two consumers of one topic, of which the second has half of what the first had."""
    driver = ConsumerDriver(release, T, **settings)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    driver.beat("m1", 1, "a:0,1,2")
    driver.beat("m2", 2)
    return driver


def test_the_first_member_gets_everything_at_once() -> None:
    driver = ConsumerDriver(known=T)
    answer = driver.come("m1", "a")
    assert (answer.error, answer.member_id, answer.member_epoch, answer.heartbeat_interval_ms) == (
        Error.NONE,
        "m1",
        1,
        5_000,
    )
    assert answer.assignment == held("a:0,1,2,3,4,5")
    kinds = [type(record) for record in driver.log]
    assert kinds == [
        ConsumerGroupMemberRecord,
        ConsumerGroupEpochRecord,
        TargetRecord,
        TargetEpochRecord,
        CurrentAssignmentRecord,
    ]
    assert driver.group.state == GroupState.STABLE
    assert driver.beat("m1", 1, "a:0,1,2,3,4,5").assignment is None


def test_a_second_member_waits_until_the_first_has_given_up() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    joined = driver.come("m2", "a")
    assert (joined.member_epoch, joined.assignment) == (2, frozenset())
    assert driver.consumer("m2").state == MemberState.UNRELEASED_PARTITIONS
    told = driver.beat("m1", 1)
    assert (told.member_epoch, told.assignment) == (1, held("a:0,1,2"))
    assert driver.consumer("m1").state == MemberState.UNREVOKED_PARTITIONS
    assert driver.described().group_state == "Reconciling"
    assert driver.beat("m1", 1).member_epoch == 1, "who says nothing of what it owns has given up nothing"
    assert driver.beat("m1", 1, "a:0,1,2,3").member_epoch == 1
    assert driver.beat("m2", 2).assignment is None
    done = driver.beat("m1", 1, "a:0,1,2")
    assert (done.member_epoch, done.assignment) == (2, None)
    assert driver.beat("m2", 2).assignment == held("a:3,4,5")
    assert driver.group.state == GroupState.STABLE
    assert places(driver.consumer("m1").assigned) == held("a:0,1,2")


def test_a_member_that_owns_nothing_of_what_it_loses_moves_at_once() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    answer = driver.beat("m1", 1, "a:0,1")
    assert (answer.member_epoch, answer.assignment) == (2, held("a:0,1,2"))


def test_a_full_request_is_answered_in_full() -> None:
    driver = two_members()
    full = {"rebalance_timeout_ms": REBALANCE_MS, "topics": frozenset({"a"})}
    assert driver.beat("m1", 2, "a:0,1,2", **full).assignment == held("a:0,1,2")
    assert driver.beat("m1", 2, "a:0,1,2", topics=frozenset({"a"})).assignment is None
    assert driver.beat("m1", 2, None, **full).assignment is None


@pytest.mark.parametrize(
    ("epoch", "owned", "error"),
    [
        (2, None, Error.NONE),
        (3, None, Error.FENCED_MEMBER_EPOCH),
        (1, "a:0,1,2", Error.NONE),
        (1, "", Error.NONE),
        (1, None, Error.FENCED_MEMBER_EPOCH),
        (1, "a:0,3", Error.FENCED_MEMBER_EPOCH),
    ],
)
def test_an_epoch_is_the_members_or_the_one_before(epoch: int, owned: str | None, error: Error) -> None:
    driver = two_members()
    before = driver.group
    assert driver.beat("m1", epoch, owned).error == error
    if error != Error.NONE:
        assert driver.group is before


def test_two_lost_answers_fence_a_member_that_waits() -> None:
    """The previous epoch is overwritten by the same one (G3)."""
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.come("m3", "a")
    driver.beat("m1", 1)
    driver.beat("m2", 2, "")  # its answer is lost
    assert driver.consumer("m2").epoch == 3
    assert driver.beat("m2", 2, "").error == Error.NONE  # and so is this one
    assert driver.beat("m2", 2, "").error == Error.FENCED_MEMBER_EPOCH


@pytest.mark.parametrize(("release", "error"), [("4.1.1", Error.FENCED_MEMBER_EPOCH), ("4.2", Error.NONE)])
def test_a_member_may_join_again_since_4_2(release: str, error: Error) -> None:
    """KAFKA-19233."""
    driver = two_members(release)
    driver.come("m3", "a")
    answer = driver.come("m1", "a")
    assert answer.error == error
    if error == Error.NONE:
        assert (answer.member_epoch, answer.assignment) == (3, held("a:0,1"))


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"member_id": ""}, Error.INVALID_REQUEST),
        ({"member_id": "", "member_epoch": -1}, Error.INVALID_REQUEST),
        ({"member_id": "", "requires_member_id": True, "member_epoch": 0}, Error.INVALID_REQUEST),
        ({"group_id": ""}, Error.INVALID_REQUEST),
        ({"instance_id": ""}, Error.INVALID_REQUEST),
        ({"rack_id": " "}, Error.INVALID_REQUEST),
        ({"member_epoch": 0}, Error.INVALID_REQUEST),
        ({"member_epoch": 0, "rebalance_timeout_ms": 1, "topics": frozenset()}, Error.INVALID_REQUEST),
        ({"member_epoch": 0, "rebalance_timeout_ms": 1, "owned": frozenset()}, Error.INVALID_REQUEST),
        ({"member_epoch": 0, "rebalance_timeout_ms": 1, "regex": "x", "owned": held("a:1")}, Error.INVALID_REQUEST),
        ({"member_epoch": -2}, Error.INVALID_REQUEST),
        ({"member_epoch": -3}, Error.INVALID_REQUEST),
        ({"assignor": "sticky"}, Error.UNSUPPORTED_ASSIGNOR),
        ({"member_epoch": 1}, Error.GROUP_ID_NOT_FOUND),
        ({"member_epoch": -1}, Error.GROUP_ID_NOT_FOUND),
    ],
)
def test_what_is_refused_before_a_member_is_looked_for(fields: dict[str, Any], error: Error) -> None:
    request = {"group_id": GROUP, "member_id": MemberId("m"), "member_epoch": GroupEpoch(1), **fields}
    driver = ConsumerDriver(known=T)
    assert driver.send(ConsumerGroupHeartbeatRequest(**request)).error == error
    assert not driver.log


def test_the_coordinator_chooses_an_id_for_who_has_none() -> None:
    driver = ConsumerDriver(known=T)
    assert driver.come("", "a", new_member_id=MemberId("made")).member_id == "made"


def test_unknown_members_are_told_so() -> None:
    driver = two_members()
    assert driver.beat("m9", 2).error == Error.UNKNOWN_MEMBER_ID
    assert driver.beat("m9", 2, instance_id="i").error == Error.UNKNOWN_MEMBER_ID
    assert driver.go("m9") == Error.UNKNOWN_MEMBER_ID
    assert driver.go("m1", instance_id="i") == Error.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(("release", "static"), [("4.3", Error.GROUP_MAX_SIZE_REACHED), ("4.4", Error.NONE)])
def test_a_full_group_lets_in_whom_it_knows(release: str, static: Error) -> None:
    driver = ConsumerDriver(release, T, consumer_max_size=2)
    driver.come("m1", "a")
    driver.come("s1", "a", instance_id="i")
    assert driver.come("m3", "a").error == Error.GROUP_MAX_SIZE_REACHED
    assert driver.come("m1", "a").error == Error.NONE
    driver.go("s1", -2, instance_id="i")
    assert driver.come("s2", "a", instance_id="i").error == static


# ---- static members


def test_a_static_member_that_comes_back_has_its_partitions() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("s1", "a", instance_id="i")
    driver.come("m2", "a")
    assert driver.come("s2", "a", instance_id="i").error == Error.UNRELEASED_INSTANCE_ID
    assert driver.come("s1", "a", instance_id="i").error == Error.UNRELEASED_INSTANCE_ID, "its own id is no exception"
    assert driver.beat("s2", 1, instance_id="i").error == Error.FENCED_INSTANCE_ID
    driver.beat("s1", 1, instance_id="i")
    driver.beat("s1", 1, "a:0,1,2", instance_id="i")
    driver.beat("m2", 2)
    epoch = driver.consumers.epoch
    assert driver.go("s2", -2, instance_id="i") == Error.FENCED_INSTANCE_ID
    assert driver.go("s1", -2, instance_id="i") == Error.NONE
    assert driver.consumer("s1").epoch == -2
    assert {one.epoch for one in driver.consumer("s1").assigned} == {0}
    assert driver.beat("m2", 2).assignment is None, "nobody gets what it keeps"
    answer = driver.come("s2", "a", instance_id="i")
    assert (answer.member_epoch, answer.assignment) == (2, held("a:0,1,2"))
    assert driver.consumers.epoch == epoch
    assert [one.member_id for one in driver.consumers.members] == ["m2", "s2"]
    assert driver.beat("s1", 2, instance_id="i").error == Error.FENCED_INSTANCE_ID
    assert driver.go("s2", -1, instance_id="i") == Error.NONE
    assert driver.beat("m2", 2).assignment == held("a:0,1,2,3,4,5")


def test_a_static_member_gives_up_what_is_pending_when_it_leaves_for_a_while() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("s1", "a", instance_id="i")
    driver.come("m2", "a")
    driver.beat("s1", 1, instance_id="i")
    driver.go("s1", -2, instance_id="i")
    assert driver.beat("m2", 2).assignment == held("a:3,4,5")


def test_a_static_member_is_out_at_the_end_of_its_session() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("s1", "a", instance_id="i")
    driver.go("s1", -2, instance_id="i")
    driver.wait(44_999)
    assert driver.consumers.members
    driver.wait(1)
    assert not driver.consumers.members
    assert driver.group.state == GroupState.EMPTY


# ---- leaving, and time


def test_a_member_leaves_whatever_its_epoch() -> None:
    driver = two_members()
    assert driver.go("m2") == Error.NONE
    assert driver.consumers.epoch == 3
    answer = driver.beat("m1", 2)
    assert (answer.member_epoch, answer.assignment) == (3, held("a:0,1,2,3,4,5"))
    driver.go("m1")
    assert driver.group.state == GroupState.EMPTY
    assert driver.come("m1", "a").member_epoch == 5


def test_silence_ends_a_session() -> None:
    driver = two_members()
    driver.wait(20_000)
    driver.beat("m1", 2)
    driver.wait(25_000)
    assert [one.member_id for one in driver.consumers.members] == ["m1"]
    assert driver.beat("m2", 2).error == Error.UNKNOWN_MEMBER_ID


def test_who_does_not_give_up_in_time_is_out() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    driver.wait(REBALANCE_MS - 1)
    driver.beat("m1", 1)
    driver.beat("m2", 2)
    driver.wait(1)
    assert driver.beat("m1", 1).error == Error.UNKNOWN_MEMBER_ID
    assert driver.beat("m2", 2).assignment == held("a:0,1,2,3,4,5")


def test_who_gives_up_in_time_stays() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    driver.wait(REBALANCE_MS - 1)
    driver.beat("m1", 1, "a:0,1,2")
    assert driver.consumer("m1").rebalance_deadline_ms is None
    driver.wait(1)
    assert driver.beat("m1", 2).error == Error.NONE


def test_the_time_to_give_up_ends_with_its_epoch() -> None:
    driver = two_members()
    late = driver.consumer("m1")._replace(rebalance_deadline_ms=MonotonicMs(driver.now), rebalance_epoch=GroupEpoch(1))
    members = tuple(late if one.member_id == "m1" else one for one in driver.consumers.members)
    group = driver.group._replace(consumer=driver.consumers._replace(members=members))
    driver.state_of_group = driver.state_of_group._replace(latest=group)
    driver.wait(0)
    assert driver.consumer("m1").rebalance_deadline_ms is None
    assert driver.beat("m1", 2).error == Error.NONE


def test_an_event_that_the_log_refuses_is_tried_again() -> None:
    driver = two_members()
    driver.beat("m1", 2)
    driver.refuses = Error.NOT_ENOUGH_REPLICAS
    driver.wait(45_000)
    assert len(driver.consumers.members) == 2
    driver.wait(499)
    assert len(driver.consumers.members) == 2
    driver.wait(1)
    assert not driver.consumers.members


def test_a_heartbeat_that_the_log_refuses_has_not_happened() -> None:
    driver = ConsumerDriver(known=T)
    driver.refuses = Error.NOT_ENOUGH_REPLICAS
    assert driver.come("m1", "a").error == Error.COORDINATOR_NOT_AVAILABLE
    assert not exists(driver.group)
    driver.come("m1", "a")
    before = driver.group
    driver.refuses = Error.NOT_ENOUGH_REPLICAS
    driver.come("m2", "a")
    assert driver.group == before


# ---- topics, targets, assignors


def test_more_partitions_are_a_new_epoch() -> None:
    driver = two_members()
    driver.know(topics(a=8))
    assert driver.beat("m1", 2).member_epoch == 3
    assert driver.beat("m2", 2, "a:3,4,5").member_epoch == 3
    assert places(driver.consumer("m1").assigned) | places(driver.consumer("m2").assigned) == held("a:0,1,2,3,4,5,6,7")
    driver.know(topics(b=1))
    assert driver.beat("m1", 3, "").assignment == frozenset()


def test_a_topic_that_comes_later_is_assigned_then() -> None:
    driver = ConsumerDriver(known=topics())
    assert driver.come("m1", "a").assignment == frozenset()
    driver.know(T)
    assert driver.beat("m1", 1).assignment == held("a:0,1,2,3,4,5")


@pytest.mark.parametrize(("release", "epoch"), [("4.2", 3), ("4.3", 2)])
def test_targets_wait_for_each_other_since_4_3(release: str, epoch: int) -> None:
    """KIP-1263."""
    driver = ConsumerDriver(release, T, consumer_assignment_interval_ms=1_000)
    driver.now = 1
    driver.come("m1", "a")
    driver.wait(1_000)
    driver.come("m2", "a")
    driver.wait(999)
    driver.come("m3", "a")
    assert (driver.consumers.epoch, driver.consumers.assignment_epoch) == (3, epoch)
    assert driver.group.state == (GroupState.RECONCILING if epoch == 3 else GroupState.ASSIGNING)
    driver.wait(1)
    driver.beat("m2", 2)
    assert driver.consumers.assignment_epoch == 3


def test_most_members_choose_the_assignor() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    assert driver.described().assignor == "uniform"
    driver.come("m2", "a", assignor="range")
    assert driver.described().assignor == "range"
    driver.come("m3", "a", assignor="range")
    driver.beat("m2", 2, assignor="uniform")
    driver.beat("m3", 3, assignor="uniform")
    assert driver.described().assignor == "uniform"


@pytest.mark.parametrize(("release", "epoch"), [("4.3", 2), ("4.4", 3)])
def test_another_assignor_is_a_new_epoch_since_4_4(release: str, epoch: int) -> None:
    driver = ConsumerDriver(release, T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m2", 2, assignor="range")
    assert driver.consumers.epoch == epoch


def test_another_subscription_is_a_new_epoch() -> None:
    driver = ConsumerDriver(known=topics(a=2, b=2))
    driver.come("m1", "a")
    answer = driver.beat("m1", 1, "a:0,1", topics=frozenset({"a", "b"}))
    assert (answer.member_epoch, answer.assignment) == (2, held("a:0,1 b:0,1"))
    answer = driver.beat("m1", 2, "a:0,1 b:0,1", topics=frozenset({"b"}))
    assert (answer.member_epoch, answer.assignment) == (2, held("b:0,1"))
    assert driver.beat("m1", 2, "b:0,1").member_epoch == 3


@pytest.mark.parametrize(("release", "given"), [("4.1.1", "a:0,1"), ("4.2", "")])
def test_what_is_no_longer_subscribed_to_is_given_up_before_the_next_target_since_4_2(release: str, given: str) -> None:
    """A member that is stable, and for whom a new target has to wait, gives up at once what it does not subscribe to."""
    driver = ConsumerDriver(release, topics(a=2, b=2), consumer_assignment_interval_ms=10_000)
    driver.now = 1
    driver.come("m1", "a")
    rules = driver.coordinator.protocol
    driver.coordinator = driver.coordinator.__class__(
        rules.__class__(
            **{name: getattr(rules, name) for name in rules.__slots__} | {"may_assign": lambda last, interval, now: False}
        ),
        driver.coordinator.settings,
        driver.coordinator.topics,
    )
    answer = driver.beat("m1", 1, "a:0,1", topics=frozenset({"b"}))
    assert (answer.member_epoch, places(driver.consumer("m1").assigned)) == (1, held(given))
    if release == "4.2":
        assert driver.consumer("m1").state == MemberState.UNREVOKED_PARTITIONS
        assert driver.beat("m1", 1, "a:0,1", topics=frozenset({"c"})).error == Error.NONE
        driver.beat("m1", 1, "", topics=frozenset({"b"}))
        assert driver.consumer("m1").pending == ()


def test_an_unused_group_stays_for_its_offsets() -> None:
    driver = two_members()
    who = (Generation(2), MemberId("m1"))
    commit = OffsetCommitRequest(GROUP, (at("a", 0, 5),), *who, reports_missing_group=True)
    assert driver.send(commit).partitions[0].error == Error.NONE
    driver.go("m1")
    driver.go("m2")
    assert driver.group.offsets


# ---- states


def test_a_state_that_a_newer_broker_wrote_is_left_without_any_partition() -> None:
    driver = two_members()
    current = driver.consumer("m1")
    record = CurrentAssignmentRecord(
        GROUP, MemberId("m1"), current.epoch, current.previous_epoch, MemberState.UNKNOWN, current.assigned, ()
    )
    driver.log.append(record)
    driver.group = replay(driver.group, record)
    assert driver.beat("m1", 2).error == Error.FENCED_MEMBER_EPOCH
    assert driver.beat("m1", 2, "a:0").error == Error.FENCED_MEMBER_EPOCH
    assert driver.beat("m1", 2, "").error == Error.NONE
    assert driver.consumer("m1").state == MemberState.STABLE


@pytest.mark.parametrize(("release", "epoch"), [("4.1", 2), ("4.2", 1)])
def test_who_has_to_give_up_more_goes_on_in_its_epoch_since_4_2(release: str, epoch: int) -> None:
    driver = ConsumerDriver(release, T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    driver.come("m3", "a")
    assert driver.beat("m1", 1, "a:0,1,2").member_epoch == epoch
    assert driver.consumer("m1").state == MemberState.UNREVOKED_PARTITIONS


@pytest.mark.parametrize(("release", "given"), [("4.1", "a:0,1,2"), ("4.2", "a:0,1,2,3,4,5")])
def test_what_a_member_was_to_give_up_it_may_have_again_since_4_2(release: str, given: str) -> None:
    driver = ConsumerDriver(release, T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    driver.go("m2")
    driver.beat("m1", 1, "a:0,1,2")
    assert places(driver.consumer("m1").assigned) == held(given)


@pytest.mark.parametrize(("release", "previous"), [("4.2", 0), ("4.3", 1)])
def test_who_gives_up_a_topic_at_once_has_another_previous_epoch_since_4_3(release: str, previous: int) -> None:
    driver = ConsumerDriver(release, topics(a=1, b=1))
    driver.come("m1", "a", "b")
    driver.beat("m1", 1, "a:0 b:0", topics=frozenset({"a"}))
    moved = reconcile(
        driver.coordinator.protocol,
        driver.consumer("m1")._replace(state=MemberState.STABLE, epoch=GroupEpoch(1), previous_epoch=GroupEpoch(0)),
        Goal(GroupEpoch(1), held("a:0"), frozenset(), held("a:0")),
        frozenset(),
        changed=True,
    )
    assert (moved.member.previous_epoch, moved.member.assigned) == (previous, ())


def test_a_coordinator_that_takes_over_gives_everybody_time() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    driver.beat("m1", 1)
    (loaded,) = load(driver.log)
    driver.group = loaded
    driver.now = 100_000
    driver.happen(activate(driver.coordinator, driver.state_of_group, driver.position, at_ms(driver.now)))
    assert driver.consumer("m1").session_deadline_ms == driver.consumer("m2").session_deadline_ms == 145_000
    assert driver.consumer("m1").rebalance_deadline_ms == 130_000
    assert driver.consumer("m2").rebalance_deadline_ms is None


def test_requests_that_a_broker_cannot_serve_are_refused() -> None:
    refusal = refuse(ConsumerGroupDescribeRequest(GROUP), Error.NOT_COORDINATOR)
    assert refusal == Reply(ConsumerGroupDescribeResponse(Error.NOT_COORDINATOR, GROUP))
    assert find_coordinator((), FindCoordinatorRequest(GROUP)).error == Error.COORDINATOR_NOT_AVAILABLE


def test_records_of_what_is_gone_change_nothing() -> None:
    driver = two_members()
    before = driver.group
    for kind in (ConsumerRecordKind.CURRENT, ConsumerRecordKind.MEMBER, ConsumerRecordKind.PARTITION_METADATA):
        assert replay(before, ConsumerTombstone(GROUP, kind, "none")) == before
        assert replay(absent(GROUP), ConsumerTombstone(GROUP, kind, "none")) == absent(GROUP)


def test_a_load_may_find_the_next_owner_first() -> None:
    """KAFKA-19862: compaction took the record in which the first one gave the partition up."""
    place = next(iter(held("a:0")))
    later = CurrentAssignmentRecord(
        GROUP,
        MemberId("m2"),
        GroupEpoch(5),
        GroupEpoch(4),
        MemberState.STABLE,
        assigned_in(frozenset({place}), GroupEpoch(5)),
        (),
    )
    earlier = CurrentAssignmentRecord(
        GROUP,
        MemberId("m1"),
        GroupEpoch(3),
        GroupEpoch(2),
        MemberState.STABLE,
        assigned_in(frozenset({place}), GroupEpoch(3)),
        (),
    )
    gone = CurrentAssignmentRecord(GROUP, MemberId("m1"), GroupEpoch(6), GroupEpoch(3), MemberState.STABLE, (), ())
    (group,) = load((later, earlier, gone))
    assert group.consumer is not None
    assert group.consumer.owners == {AssignedPartition(place, GroupEpoch(5))}


@pytest.mark.parametrize(("release", "error"), [("4.4", Error.UNRELEASED_INSTANCE_ID), ("next", Error.NONE)])
def test_a_static_member_that_joins_again_under_its_own_id(release: str, error: Error) -> None:
    """KAFKA-19233 was repaired for members without an instance id alone."""
    driver = ConsumerDriver(release, T)
    driver.come("s1", "a", instance_id="i")
    answer = driver.come("s1", "a", instance_id="i")
    assert (answer.error, answer.assignment) == (error, held("a:0,1,2,3,4,5") if error == Error.NONE else None)
    assert driver.come("s2", "a", instance_id="i").error == Error.UNRELEASED_INSTANCE_ID


@pytest.mark.parametrize("release", ["4.0", "4.4"])
def test_a_member_that_gets_an_instance_has_no_target_at_first(release: str) -> None:
    """Nobody has had the instance. What it waits for it does not get either, until there is another target."""
    driver = ConsumerDriver(release, T)
    driver.come("m1", "a")
    driver.come("m2", "a")
    assert driver.consumer("m2").state == MemberState.UNRELEASED_PARTITIONS
    assert driver.come("m2", "a", instance_id="i").assignment == frozenset()
    assert (driver.consumer("m2").state, driver.consumer("m2").epoch) == (MemberState.STABLE, 2)
    assert driver.come("m1", "a", instance_id="j").assignment == frozenset(), "behind its target: it gives up all"
    assert driver.beat("m2", 2, "", rebalance_timeout_ms=1, topics=frozenset("a"), instance_id="i").assignment == frozenset()
    assert driver.come("m3", "a").member_epoch == 3
    assert driver.beat("m2", 2, "", instance_id="i").assignment == held("a:3,4")


def test_a_member_that_takes_a_static_place_has_to_wait_for_what_was_its_own() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("m1", "a", instance_id="i")
    driver.come("m2", "a")
    driver.beat("m1", 1, "a:0,1,2", instance_id="i")
    assert driver.beat("m2", 2).assignment == held("a:3,4,5")
    driver.go("m1", -2, instance_id="i")
    driver.beat("m2", 2, "a:3,4,5", rebalance_timeout_ms=1, topics=frozenset({"none"}))
    assert driver.come("m2", "a", instance_id="i").assignment == held("a:0,1,2"), "and not the rest, which is its own"
    assert driver.consumer("m2").state == MemberState.UNRELEASED_PARTITIONS
    assert driver.beat("m2", 3, instance_id="i").assignment == held("a:0,1,2,3,4,5")


def test_a_member_that_has_its_target_keeps_it_when_it_gets_an_instance() -> None:
    driver = two_members()
    assert driver.come("m1", "a", instance_id="i").assignment == held("a:0,1,2")


def test_a_member_that_gets_an_instance_and_reads_other_topics_has_what_is_computed() -> None:
    driver = ConsumerDriver(known=topics(a=2, b=1))
    driver.come("m1", "a")
    assert driver.come("m1", "a", "b", instance_id="i").assignment == held("a:0,1 b:0")


@pytest.mark.parametrize(("release", "epoch"), [("4.2", 0), ("4.3", 1)])
def test_a_group_begins_in_epoch_1_since_4_3(release: str, epoch: int) -> None:
    driver = ConsumerDriver(release, T, first_epoch=None)
    assert driver.come("m1").member_epoch == epoch, "nothing is read yet"
    assert driver.consumers.epoch == epoch
    assert driver.beat("m1", epoch, "", topics=frozenset({"a"}), rebalance_timeout_ms=1).member_epoch == epoch + 1
    driver = ConsumerDriver(release, T, first_epoch=None)
    assert driver.come("m1", "a").member_epoch == epoch + 1


def test_a_group_of_which_no_epoch_is_stored_is_in_that_of_its_targets() -> None:
    (group,) = load((TargetEpochRecord(GROUP, GroupEpoch(1), TimestampMs(1)),))
    assert group.consumer is not None
    assert group.consumer.epoch == 1


@pytest.mark.parametrize(("release", "epoch"), [("4.3", 1), ("4.4", 2)])
def test_targets_of_an_empty_group_are_of_its_epoch_since_4_4(release: str, epoch: int) -> None:
    driver = ConsumerDriver(release, T)
    driver.come("m1", "a")
    driver.go("m1")
    assert (driver.consumers.epoch, driver.consumers.assignment_epoch) == (2, epoch)


def late(repaired: bool) -> ConsumerDriver:
    """A group whose coordinator has the rules of 4.4, or those that late requests do no harm to."""
    driver = ConsumerDriver("4.4", T)
    if repaired:
        rules = replace(LATE_REQUESTS_REPAIRED, first_epoch=GroupEpoch(0))
        driver.coordinator = replace(driver.coordinator, protocol=rules)
    driver.come("m1", "a")
    driver.come("m2", "a")
    return driver


@pytest.mark.parametrize(("repaired", "state"), [(False, MemberState.STABLE), (True, MemberState.UNREVOKED_PARTITIONS)])
def test_a_join_that_arrives_again_gives_nothing_up_if_repaired(repaired: bool, state: MemberState) -> None:
    driver = late(repaired)
    driver.beat("m1", 1)
    assert driver.consumer("m1").state == MemberState.UNREVOKED_PARTITIONS
    driver.come("m1", "a")
    assert driver.consumer("m1").state == state


@pytest.mark.parametrize(("repaired", "error"), [(False, Error.FENCED_MEMBER_EPOCH), (True, Error.NONE)])
def test_two_lost_answers_fence_a_member_that_waits_unless_repaired(repaired: bool, error: Error) -> None:
    driver = late(repaired)
    epoch = driver.consumer("m2").epoch
    driver.come("m3", "a")
    assert [driver.beat("m2", epoch, "").error for _ in range(3)] == [Error.NONE, Error.NONE, error]
