"""Looking at groups, deleting them, finding their coordinator; what is refused."""

import pytest

from kspec.spec.coordinator.administration import find_coordinator
from kspec.spec.coordinator.effects import AnswerMember
from kspec.spec.coordinator.group import GroupState, is_subscribed
from kspec.spec.coordinator.loading import load, replay
from kspec.spec.coordinator.protocol import CoordinatorSettings
from kspec.spec.coordinator.records import GroupTombstone, OffsetCommitRecord, OffsetTombstone
from kspec.spec.coordinator.refusals import GroupRequest, answer_for_append, on_records_refused, refuse
from kspec.spec.coordinator.rules.hashing import in_java_order, java_hash, partition_for
from kspec.spec.coordinator.rules.subscription import subscribed_topics
from kspec.spec.messages.groups.delete_groups import DeleteGroupsRequest
from kspec.spec.messages.groups.describe_groups import DescribedMember, DescribeGroupsRequest
from kspec.spec.messages.groups.find_coordinator import FindCoordinatorRequest
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinGroupRequest
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest
from kspec.spec.messages.groups.list_groups import ListedGroup, ListGroupsRequest
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetCommitResponse, PartitionError
from kspec.spec.messages.groups.offset_delete import OffsetDeleteRequest
from kspec.spec.messages.groups.offset_fetch import OffsetFetchRequest
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest
from kspec.spec.messages.transactions.txn_offset_commit import TxnOffsetCommitResponse
from kspec.spec.step import Reply
from kspec.spec.values import NO_LEADER, BrokerId, Error, Generation, GroupId, MemberId, Offset, ProducerId, RequestNumber
from tests.spec.coordinator_driver import DELAY_MS, GROUP, CoordinatorDriver, at, subscription
from tests.times import at_ms

# ---- hashes and subscriptions: what Java says (`"…".hashCode()`, `Utils.abs(…) % 50`)


@pytest.mark.parametrize(
    ("text", "hashed", "partition"),
    [
        ("group", 98629247, 47),
        ("my-group", -1906497762, 12),
        ("polygenelubricants", -2147483648, 0),
        ("", 0, 0),
        ("ключ", 33309882, 32),
        ("😀x", 54959989, 39),
    ],
)
def test_the_hash_of_a_string_is_javas(text: str, hashed: int, partition: int) -> None:
    assert java_hash(text) == hashed % 2**32
    assert partition_for(text, 50) == partition


def test_names_in_the_order_of_javas_table() -> None:
    names = ("range", "roundrobin", "sticky", "cooperative-sticky")
    assert in_java_order(names) == ("sticky", "range", "roundrobin", "cooperative-sticky")


def test_a_subscription_is_read() -> None:
    assert subscribed_topics(subscription("a", "längst")) == frozenset({"a", "längst"})
    assert subscribed_topics(b"\0\3" + subscription("a")[2:] + b"more") == frozenset({"a"})
    assert subscribed_topics(subscription("a")[:-4] + b"\0\0\0\2hi") == frozenset({"a"})


@pytest.mark.parametrize("cut", range(len(subscription("a"))))
def test_a_subscription_that_is_cut_cannot_be_read(cut: int) -> None:
    assert subscribed_topics(subscription("a")[:cut]) is None


@pytest.mark.parametrize(
    "data",
    [b"\xff\xff" + subscription("a")[2:], b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0\0\1\xff\xff\xff\xff\xff\xff"],
)
def test_other_bytes_are_no_subscription(data: bytes) -> None:
    assert subscribed_topics(data) is None


def test_a_group_whose_subscriptions_cannot_be_read_may_read_any_topic() -> None:
    driver = CoordinatorDriver()
    driver.stable()
    assert is_subscribed(driver.group, "topic")
    assert not is_subscribed(driver.group, "other")
    driver = CoordinatorDriver()
    driver.join(protocols=(GroupProtocol("range", b"?"),))
    driver.pass_time(DELAY_MS)
    assert driver.group.subscribed is None
    assert is_subscribed(driver.group, "other")


# ---- FindCoordinator


def test_the_coordinator_leads_the_partition_of_the_group() -> None:
    leaders = tuple(BrokerId(number) for number in range(50))
    assert find_coordinator(leaders, FindCoordinatorRequest(GROUP)).coordinator == 47
    assert find_coordinator((NO_LEADER,), FindCoordinatorRequest(GROUP)).error == Error.COORDINATOR_NOT_AVAILABLE
    assert find_coordinator((), FindCoordinatorRequest(GROUP)).error == Error.COORDINATOR_NOT_AVAILABLE


# ---- DescribeGroups, ListGroups


def test_a_stable_group_is_described_with_what_members_said() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, "a")
    answer = driver.describe()
    assert (answer.error, answer.group_state, answer.protocol_type, answer.protocol_name) == (
        Error.NONE,
        "Stable",
        "consumer",
        "range",
    )
    metadata = subscription("topic")
    assert answer.members == (
        DescribedMember(leader, None, "client", "/127.0.0.1", metadata, f"for {leader}".encode()),
        DescribedMember(follower, "a", "client", "/127.0.0.1", metadata, f"for {follower}".encode()),
    )
    driver.join()
    answer = driver.describe()
    assert (answer.group_state, answer.protocol_name, answer.members[0].metadata) == ("PreparingRebalance", "", b"")


def test_a_group_that_does_not_exist_is_dead() -> None:
    driver = CoordinatorDriver()
    assert (driver.describe().error, driver.describe().group_state) == (Error.NONE, "Dead")
    assert driver.describe(reports_missing_group=True).error == Error.GROUP_ID_NOT_FOUND


def test_groups_are_listed_by_state_and_type() -> None:
    driver = CoordinatorDriver()
    assert driver.listed() == ()
    driver.stable()
    entry = ListedGroup(GROUP, "consumer", "Stable", "classic")
    assert driver.listed() == driver.listed(["stable", "Empty"], ["Classic"]) == (entry,)
    assert driver.listed([" STABLE "]) == (entry,)
    assert driver.listed(["Empty"]) == driver.listed((), ["consumer"]) == ()


# ---- DeleteGroups


def test_an_empty_group_is_deleted_with_its_offsets() -> None:
    driver = CoordinatorDriver()
    assert driver.delete() == Error.GROUP_ID_NOT_FOUND
    driver.commit(at("b", 0, 1), at("a", 0, 1))
    driver.group = replay(driver.group, OffsetCommitRecord(GROUP, "c", 0, Offset(1)), ProducerId(1))
    assert driver.delete() == Error.NONE
    assert driver.state == GroupState.DEAD
    tombstones = [OffsetTombstone(GROUP, topic, 0) for topic in "abc"]
    assert driver.log[-4:] == [*tombstones, GroupTombstone(GROUP)]
    assert load(driver.log) == ()


def test_a_group_with_members_is_not_deleted() -> None:
    driver = CoordinatorDriver()
    driver.stable()
    assert driver.delete() == Error.NON_EMPTY_GROUP
    assert driver.state == GroupState.STABLE


# ---- refusals

NOBODY = MemberId("m1")
JOIN = JoinGroupRequest(RequestNumber(9), GROUP, NOBODY, None, "c", "h", 1, 1, "consumer", ())
REQUESTS: tuple[GroupRequest, ...] = (
    LeaveGroupRequest(GROUP, ()),
    OffsetFetchRequest(GROUP, None),
    OffsetDeleteRequest(GROUP, ()),
    DescribeGroupsRequest(GROUP),
    ListGroupsRequest(),
    DeleteGroupsRequest(GROUP),
)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: type(request).__name__)
def test_a_request_is_refused_with_the_error(request_: GroupRequest) -> None:
    answer = refuse(request_, Error.NOT_COORDINATOR)
    assert isinstance(answer, Reply)
    assert not isinstance(answer.message, (OffsetCommitResponse, TxnOffsetCommitResponse))
    assert answer.message.error == Error.NOT_COORDINATOR


TOLD = {
    Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
    Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE,
    Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
    Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
    Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
    Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
}
"""The cases of `CoordinatorOperationExceptionHelper.handleOperationException`; any other error is told as it is."""


@pytest.mark.parametrize("error", Error)
def test_what_a_client_is_told_when_the_log_refuses(error: Error) -> None:
    assert answer_for_append(error) == TOLD.get(error, error)


def test_times_that_nobody_sets_are_kafkas() -> None:
    """`GroupCoordinatorConfig`; `CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS`."""
    settings = CoordinatorSettings()
    assert settings.min_session_timeout_ms == 6_000
    assert settings.max_session_timeout_ms == 1_800_000
    assert settings.new_member_timeout_ms == 300_000
    assert settings.offsets_retention_ms == 604_800_000
    assert settings.retention_check_interval_ms == 600_000


def test_joins_and_syncs_are_refused_by_their_numbers() -> None:
    for request in (JOIN, SyncGroupRequest(RequestNumber(9), GROUP, Generation(1), NOBODY)):
        answer = refuse(request, Error.COORDINATOR_LOAD_IN_PROGRESS)
        assert isinstance(answer, AnswerMember)
        assert (answer.request, answer.response.error) == (9, Error.COORDINATOR_LOAD_IN_PROGRESS)


def test_a_commit_is_refused_for_each_partition() -> None:
    answer = refuse(OffsetCommitRequest(GROUP, (at("a", 1, 2),)), Error.NOT_COORDINATOR)
    assert answer == Reply(OffsetCommitResponse((PartitionError("a", 1, Error.NOT_COORDINATOR),)))


def test_a_heartbeat_during_a_load_succeeds() -> None:
    heartbeat = HeartbeatRequest(GROUP, Generation(1), NOBODY)
    assert refuse(heartbeat, Error.COORDINATOR_LOAD_IN_PROGRESS) == Reply(HeartbeatResponse(Error.NONE))
    assert refuse(heartbeat, Error.NOT_COORDINATOR) == Reply(HeartbeatResponse(Error.NOT_COORDINATOR))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (Error.NOT_ENOUGH_REPLICAS, Error.COORDINATOR_NOT_AVAILABLE),
        (Error.KAFKA_STORAGE_ERROR, Error.NOT_COORDINATOR),
        (Error.MESSAGE_TOO_LARGE, Error.UNKNOWN_SERVER_ERROR),
        (Error.STALE_BROKER_EPOCH, Error.STALE_BROKER_EPOCH),
    ],
)
def test_what_clients_are_told_of_a_log_that_refuses(error: Error, told: Error) -> None:
    assert answer_for_append(error) == told


def test_an_assignment_that_cannot_be_stored_is_nobodys() -> None:
    driver = CoordinatorDriver()
    driver.join()
    driver.join()
    driver.pass_time(DELAY_MS * 2)
    waiting = driver.sync("m2")
    request = SyncGroupRequest(
        RequestNumber(99),
        GROUP,
        driver.group.generation,
        MemberId("m1"),
        assignments=(MemberAssignment(MemberId("m1"), b"all"),),
    )
    driver.carry_out(
        on_records_refused(driver.coordinator, driver.group, request, Error.NOT_LEADER_OR_FOLLOWER, at_ms(driver.now))
    )
    assert driver.synced(99).error == driver.synced(waiting).error == Error.NOT_COORDINATOR
    assert driver.state == GroupState.PREPARING_REBALANCE


def test_another_request_that_cannot_be_stored_changes_nothing() -> None:
    driver = CoordinatorDriver()
    step = on_records_refused(driver.coordinator, driver.group, JOIN, Error.NOT_ENOUGH_REPLICAS, at_ms(0))
    assert step.state == driver.group
    driver.carry_out(step)
    assert driver.joined(9).error == Error.COORDINATOR_NOT_AVAILABLE


def test_the_groups_of_a_log_are_loaded_each_for_itself() -> None:
    other = OffsetCommitRecord(GroupId("other"), "t", 0, Offset(1))
    driver = CoordinatorDriver()
    driver.stable()
    groups = load([*driver.log, other])
    assert [group.group_id for group in groups] == [GROUP, "other"]
