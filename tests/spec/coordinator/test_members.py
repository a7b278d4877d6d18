"""SyncGroup, Heartbeat and LeaveGroup. Facts from Apache Kafka's `GroupMetadataManagerTest`."""

from typing import Any

import pytest

from kspec.spec.coordinator.group import GroupState
from kspec.spec.coordinator.members import check_sync_request, handle_heartbeat, handle_leave_group
from kspec.spec.coordinator.records import GroupMetadataRecord
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, MemberIdentity, single_error
from kspec.spec.messages.groups.sync_group import SyncGroupRequest
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, GroupId, MemberId, RequestNumber
from tests.spec.coordinator_driver import DELAY_MS, SESSION_MS, CoordinatorDriver
from tests.times import at_ms


def awaiting_assignment(members: int = 2) -> CoordinatorDriver:
    """A group whose members have joined a generation, and none has asked for its assignment."""
    driver = CoordinatorDriver()
    for _ in range(members):
        driver.join()
    driver.pass_time(DELAY_MS * 2)
    assert driver.state == GroupState.COMPLETING_REBALANCE
    return driver


# ---- SyncGroup


@pytest.mark.parametrize(("kind", "name", "is_right"), [("a", "b", True), (None, "b", False), ("a", None, False)])
def test_a_member_of_a_version_that_names_protocols_has_to_name_them(
    kind: str | None, name: str | None, is_right: bool
) -> None:
    request = SyncGroupRequest(RequestNumber(1), GroupId("g"), Generation(1), MemberId("m"), None, kind, name)
    assert check_sync_request(request, names_protocols=False) == Error.NONE
    assert (check_sync_request(request, names_protocols=True) == Error.NONE) is is_right


def test_a_follower_waits_for_the_leader() -> None:
    driver = awaiting_assignment()
    follower = driver.sync("m2")
    assert follower not in driver.answers
    leader = driver.sync("m1", {"m1": b"one", "m2": b"two"})
    assert driver.synced(leader).assignment == b"one"
    assert driver.synced(follower).assignment == b"two"
    assert (driver.synced(leader).protocol_type, driver.synced(leader).protocol_name) == ("consumer", "range")
    assert driver.state == GroupState.STABLE


def test_an_assignment_is_stored() -> None:
    driver = awaiting_assignment()
    driver.sync("m1", {"m1": b"one", "m2": b"two"})
    record = driver.log[-1]
    assert isinstance(record, GroupMetadataRecord)
    assert (record.generation, record.leader, record.protocol_name) == (1, "m1", "range")
    assert [member.assignment for member in record.members] == [b"one", b"two"]
    assert record.state_since_ms == DELAY_MS * 2


def test_a_member_that_the_leader_forgot_gets_nothing() -> None:
    driver = awaiting_assignment()
    driver.sync("m1", {"stranger": b"?"})
    assert driver.synced(driver.sync("m2")).assignment == b""


def test_a_follower_of_a_stable_group_gets_its_assignment_at_once() -> None:
    driver = awaiting_assignment()
    driver.sync("m1", {"m2": b"two"})
    assert driver.group.sync_deadline_ms is not None
    assert driver.synced(driver.sync("m2")).assignment == b"two"
    assert driver.group.sync_deadline_ms is None


@pytest.mark.parametrize(
    ("member", "changes", "error"),
    [
        ("m1", {"group_id": GroupId("")}, Error.INVALID_GROUP_ID),
        ("stranger", {}, Error.UNKNOWN_MEMBER_ID),
        ("m1", {"instance_id": "a"}, Error.UNKNOWN_MEMBER_ID),
        ("m1", {"generation": 0}, Error.ILLEGAL_GENERATION),
        ("m1", {"generation": 2}, Error.ILLEGAL_GENERATION),
        ("m1", {"protocol_type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ("m1", {"protocol_name": "sticky"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ("m1", {"protocol_type": "consumer", "protocol_name": "range"}, Error.NONE),
    ],
)
def test_who_may_ask_for_an_assignment(member: str, changes: dict[str, Any], error: Error) -> None:
    driver = awaiting_assignment()
    assert driver.synced(driver.sync(member, **changes)).error == error


def test_there_is_no_assignment_without_a_group_or_during_a_rebalance() -> None:
    driver = CoordinatorDriver()
    assert driver.synced(driver.sync("m1")).error == Error.UNKNOWN_MEMBER_ID
    driver = awaiting_assignment()
    driver.join()
    assert driver.synced(driver.sync("m1")).error == Error.REBALANCE_IN_PROGRESS


# ---- Heartbeat


def test_a_heartbeat_keeps_a_member() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    for _ in range(5):
        driver.pass_time(SESSION_MS - 1)
        assert driver.heartbeat(member) == Error.NONE
    driver.pass_time(SESSION_MS)
    assert driver.group.members == ()


def test_who_may_send_a_heartbeat() -> None:
    driver = CoordinatorDriver()
    assert driver.heartbeat("m1") == Error.UNKNOWN_MEMBER_ID
    (member,) = driver.stable("a")
    assert driver.heartbeat("stranger") == Error.UNKNOWN_MEMBER_ID
    assert driver.heartbeat(member, generation=0) == Error.ILLEGAL_GENERATION
    assert driver.heartbeat(member, generation=2) == Error.ILLEGAL_GENERATION
    assert driver.heartbeat("stranger", instance_id="a") == Error.FENCED_INSTANCE_ID
    assert driver.heartbeat(member, instance_id="b") == Error.UNKNOWN_MEMBER_ID
    assert driver.heartbeat(member) == Error.NONE


def test_a_heartbeat_needs_a_group() -> None:
    driver = CoordinatorDriver()
    request = HeartbeatRequest(GroupId(""), driver.group.generation, MemberId("m1"))
    reply = driver.carry_out(handle_heartbeat(driver.coordinator, driver.group, request, at_ms(0)))
    assert reply.error == Error.INVALID_GROUP_ID


def test_a_heartbeat_while_the_assignment_is_awaited_succeeds() -> None:
    driver = awaiting_assignment()
    assert driver.heartbeat("m2") == Error.NONE


# ---- LeaveGroup


def test_the_last_member_leaves_an_empty_group_with_a_new_generation() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    assert single_error(driver.leave(member)) == Error.NONE
    assert (driver.state, driver.group.generation, driver.group.leader) == (GroupState.EMPTY, 2, None)
    record = driver.log[-1]
    assert isinstance(record, GroupMetadataRecord)
    assert (record.generation, record.members, record.protocol_type, record.protocol_name) == (2, (), "consumer", None)


def test_when_one_leaves_the_others_rebalance() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    driver.leave(leader)
    assert (driver.state, driver.group.leader) == (GroupState.PREPARING_REBALANCE, follower)
    assert driver.joined(driver.join(follower)).leader == follower


def test_strangers_do_not_leave() -> None:
    driver = CoordinatorDriver()
    assert [member.error for member in driver.leave("m1", "m2").members] == [Error.UNKNOWN_MEMBER_ID] * 2
    driver.stable()
    assert single_error(driver.leave("stranger")) == Error.UNKNOWN_MEMBER_ID
    assert driver.state == GroupState.STABLE


def test_leaving_needs_a_group() -> None:
    driver = CoordinatorDriver()
    request = LeaveGroupRequest(GroupId(""), (MemberIdentity(MemberId("m1")),))
    reply = driver.carry_out(handle_leave_group(driver.coordinator, driver.group, request, at_ms(0)))
    assert single_error(reply) == Error.INVALID_GROUP_ID


def test_static_members_leave_by_their_instance_ids() -> None:
    driver = CoordinatorDriver()
    driver.stable("a", "b", "c")
    answer = driver.leave(
        MemberIdentity(NO_MEMBER_ID, "a"),
        MemberIdentity(NO_MEMBER_ID, "stranger"),
        MemberIdentity(NO_MEMBER_ID),
        MemberIdentity(MemberId("stranger"), "b"),
        MemberIdentity(driver.group.members[2].member_id, "c"),
    )
    assert [member.error for member in answer.members] == [
        Error.NONE,
        Error.UNKNOWN_MEMBER_ID,
        Error.UNKNOWN_MEMBER_ID,
        Error.FENCED_INSTANCE_ID,
        Error.NONE,
    ]
    assert [member.instance_id for member in driver.group.members] == ["b"]
    assert single_error(answer) == Error.UNKNOWN_MEMBER_ID


def test_a_pending_member_leaves() -> None:
    driver = CoordinatorDriver()
    driver.join(requires_member_id=True)
    assert single_error(driver.leave("m1")) == Error.NONE
    assert driver.group.pending == ()


def test_a_rebalance_goes_on_without_the_pending_member_that_left() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    driver.join(requires_member_id=True)
    number = driver.join(member)
    assert number not in driver.answers
    driver.leave("m2")
    assert driver.joined(number).generation == 2


def test_what_a_leaving_member_waits_for_is_answered() -> None:
    driver = awaiting_assignment()
    waiting = driver.sync("m2")
    driver.leave("m2")
    assert driver.synced(waiting).error == Error.UNKNOWN_MEMBER_ID
    joining = driver.join()
    driver.leave("m3")
    assert driver.joined(joining).error == Error.UNKNOWN_MEMBER_ID


# ---- an assignment on its way into the log


def in_flight() -> tuple[CoordinatorDriver, int, int]:
    """Two members; the leader's assignment is in the log, and the followers do not have it yet. Both wait."""
    driver = CoordinatorDriver()
    driver.join()
    driver.join()
    driver.pass_time(DELAY_MS * 2)
    driver.commits_at_once = False
    waiting = driver.sync("m2")
    leading = driver.sync("m1", {"m1": b"one", "m2": b"two"})
    assert not {waiting, leading} & set(driver.answers)
    return driver, leading, waiting


def test_an_assignment_is_handed_out_when_it_is_committed() -> None:
    driver, leading, waiting = in_flight()
    assert [driver.state] == [GroupState.COMPLETING_REBALANCE]
    driver.commit_up_to(len(driver.log))
    assert (driver.synced(leading).assignment, driver.synced(waiting).assignment) == (b"one", b"two")
    assert driver.state == GroupState.STABLE


def test_an_assignment_that_is_committed_after_the_next_rebalance_has_begun_is_nobodys() -> None:
    driver, leading, waiting = in_flight()
    driver.join()
    assert driver.synced(leading).error == driver.synced(waiting).error == Error.REBALANCE_IN_PROGRESS
    driver.commit_up_to(len(driver.log))
    assert [driver.state] == [GroupState.PREPARING_REBALANCE]
    for member in ("m1", "m2"):
        driver.join(member)
    assert driver.state == GroupState.COMPLETING_REBALANCE
    assert driver.group.generation == 2


def test_an_assignment_of_the_generation_before_is_not_handed_out_in_the_next() -> None:
    driver, *_ = in_flight()
    for member in ("", "m1", "m2"):
        driver.join(member)
    assert driver.group.generation == 2
    later = driver.sync("m2")
    driver.commit_up_to(len(driver.log))
    assert later not in driver.answers
    assert driver.state == GroupState.COMPLETING_REBALANCE


def test_members_join_again_if_an_assignment_is_not_committed_in_time() -> None:
    driver, leading, waiting = in_flight()
    driver.pass_time(driver.coordinator.settings.commit_timeout_ms)
    assert driver.synced(leading).error == driver.synced(waiting).error == Error.COORDINATOR_NOT_AVAILABLE
    assert [driver.state] == [GroupState.PREPARING_REBALANCE]
    driver.commit_up_to(len(driver.log))
    assert driver.state == GroupState.PREPARING_REBALANCE
