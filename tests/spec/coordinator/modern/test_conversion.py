"""Members of both protocols in one group, and groups that change from one to the other."""

from dataclasses import replace
from typing import Any

import pytest

from kspec.spec.coordinator.group import GroupState
from kspec.spec.coordinator.loading import load
from kspec.spec.coordinator.modern.state import MemberState, places
from kspec.spec.coordinator.protocol import MigrationPolicy
from kspec.spec.coordinator.rules.consumer_protocol import read_assignment, read_subscription, write_assignment
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest
from kspec.spec.messages.groups.join_group import GroupProtocol, JoinGroupResponse
from kspec.spec.messages.groups.leave_group import LeaveGroupRequest, LeftMember, MemberIdentity
from kspec.spec.messages.groups.offset_commit import OffsetCommitRequest, OffsetToCommit
from kspec.spec.messages.groups.sync_group import MemberAssignment, SyncGroupRequest, SyncGroupResponse
from kspec.spec.values import NO_MEMBER_ID, Error, Generation, MemberId, Offset, RequestNumber
from tests.spec.coordinator.modern.driver import ConsumerDriver, classic, held, topics
from tests.spec.coordinator_driver import GROUP, REBALANCE_MS, SESSION_MS

T = topics(a=4)
ALL = frozenset(("a", index) for index in range(4))


def classic_group(release: str = "4.4", instance: str | None = None, **settings: Any) -> ConsumerDriver:
    """A stable classic group of one consumer `m1` that has all."""
    driver = ConsumerDriver(release, T, **settings)
    driver.join(instance_id=instance, protocols=classic("a"))
    driver.pass_time(1)
    driver.sync("m1", {"m1": write_assignment(1, ALL)})
    assert driver.group.state == GroupState.STABLE
    return driver


def joined(driver: ConsumerDriver, name: str, owned: str = "", **changes: Any) -> JoinGroupResponse:
    """The answer to the JoinGroup of a member."""
    return driver.joined(driver.join(name, **{"protocols": classic("a", owned=owned), **changes}))


def synced(driver: ConsumerDriver, name: str, generation: int, **changes: Any) -> SyncGroupResponse:
    """The answer to a SyncGroup."""
    return driver.synced(driver.sync(name, generation=Generation(generation), **changes))


def parts(text: str) -> frozenset[tuple[str, int]]:
    return frozenset(("a", place.partition) for place in held(text))


def beat(driver: ConsumerDriver, name: str, generation: int, instance: str | None = None) -> Error:
    error = driver.send(HeartbeatRequest(GROUP, Generation(generation), MemberId(name), instance)).error
    assert isinstance(error, Error)
    return error


def test_a_consumer_makes_a_classic_group_its_own() -> None:
    driver = classic_group()
    driver.commit(OffsetToCommit("a", 0, Offset(5)), member_id="m1", generation=Generation(1))
    answer = driver.come("n", "a")
    assert (answer.error, answer.member_epoch, answer.assignment) == (Error.NONE, 2, frozenset())
    old = driver.consumer("m1")
    assert (old.epoch, places(old.assigned)) == (1, held("a:0,1,2,3"))
    assert old.classic is not None
    assert driver.group.offsets, "offsets stay"
    assert beat(driver, "m1", 1) == Error.REBALANCE_IN_PROGRESS
    assert joined(driver, "m1", "a:0,1,2,3").generation == 1
    assert driver.consumer("m1").state == MemberState.UNREVOKED_PARTITIONS
    answer_to_sync = synced(driver, "m1", 1)
    given = read_assignment(answer_to_sync.assignment)
    assert given is not None
    assert given.partitions == parts("a:0,1")
    assert beat(driver, "m1", 1) == Error.REBALANCE_IN_PROGRESS
    again = joined(driver, "m1", "a:0,1")
    assert (again.generation, again.leader, again.protocol_type, again.protocol_name, again.members) == (
        2,
        "",
        "consumer",
        "range",
        (),
    )
    assert beat(driver, "m1", 2) == Error.NONE
    assert driver.beat("n", 2).assignment == held("a:2,3")
    assert driver.described().members[0].is_classic
    assert driver.commit(OffsetToCommit("a", 0, Offset(6)), member_id="m1", generation=Generation(2)) == [Error.NONE]
    assert driver.commit(OffsetToCommit("a", 0, Offset(6)), member_id="m1", generation=Generation(3)) == [
        Error.ILLEGAL_GENERATION
    ]


def test_who_waits_is_told_to_join_again() -> None:
    driver = classic_group()
    number = driver.join(protocols=classic("a"))
    assert number not in driver.answers
    driver.come("n", "a")
    assert driver.joined(number).error == Error.REBALANCE_IN_PROGRESS
    driver = classic_group()
    driver.join(protocols=classic("a"))
    driver.join("m1", protocols=classic("a"))
    waits = driver.sync("m2")
    driver.come("n", "a")
    assert driver.synced(waits).error == Error.REBALANCE_IN_PROGRESS


def test_a_member_that_never_had_an_assignment_has_nothing() -> None:
    driver = classic_group()
    driver.join(protocols=classic("a"))
    driver.come("n", "a")
    assert driver.consumer("m2").assigned == ()


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        (MigrationPolicy.BIDIRECTIONAL, False),
        (MigrationPolicy.UPGRADE, False),
        (MigrationPolicy.DOWNGRADE, True),
        (MigrationPolicy.DISABLED, True),
    ],
)
def test_a_policy_says_whether_a_group_with_members_may_change(policy: MigrationPolicy, refused: bool) -> None:
    driver = classic_group(migration=policy)
    assert (driver.come("n", "a").error == Error.GROUP_ID_NOT_FOUND) == refused
    assert (driver.group.consumer is None) == refused


def test_an_empty_classic_group_may_always_change() -> None:
    driver = classic_group(migration=MigrationPolicy.DISABLED)
    driver.send(LeaveGroupRequest(GROUP, (MemberIdentity(MemberId("m1")),)))
    assert driver.come("n", "a").member_epoch == 1
    driver = ConsumerDriver(known=T)
    driver.send(OffsetCommitRequest(GROUP, (OffsetToCommit("a", 0, Offset(5)),)))
    assert driver.come("n", "a").member_epoch == 1
    assert driver.group.offsets


@pytest.mark.parametrize(
    ("protocol_type", "protocols", "assignment"),
    [
        ("connect", classic("a"), b""),
        ("consumer", (GroupProtocol("range", b"?"),), b""),
        ("consumer", classic("a"), b"?"),
        ("consumer", classic("a"), write_assignment(0, ALL)[:-4] + b"\0\0\0\1!"),
    ],
)
def test_what_cannot_be_read_or_would_be_lost_keeps_a_group_classic(
    protocol_type: str, protocols: tuple[GroupProtocol, ...], assignment: bytes
) -> None:
    driver = ConsumerDriver(known=T)
    driver.join(protocol_type=protocol_type, protocols=protocols)
    driver.pass_time(1)
    driver.send(
        SyncGroupRequest(
            RequestNumber(99),
            GROUP,
            Generation(1),
            MemberId("m1"),
            None,
            None,
            None,
            (MemberAssignment(MemberId("m1"), assignment),),
        )
    )
    assert driver.come("n", "a").error == Error.GROUP_ID_NOT_FOUND


def test_a_group_that_is_too_large_stays_classic() -> None:
    driver = classic_group(consumer_max_size=0)
    assert driver.come("n", "a").error == Error.GROUP_ID_NOT_FOUND


# ---- members of the classic protocol


def mixed(release: str = "4.4", **settings: Any) -> ConsumerDriver:
    """A consumer `n`, and a member `m1` of the classic protocol that has joined, has synced, and has half."""
    driver = ConsumerDriver(release, T, **settings)
    driver.come("n", "a")
    joined(driver, "", protocols=classic("a"))
    driver.beat("n", 1)
    driver.beat("n", 1, "a:0,1")
    driver.beat("n", 2)
    generation = driver.consumer("m1").epoch
    synced(driver, "m1", generation)
    return driver


def test_a_member_of_the_classic_protocol_joins_a_consumer_group() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("n", "a")
    told = joined(driver, "", requires_member_id=True)
    assert (told.error, told.member_id) == (Error.MEMBER_ID_REQUIRED, "m1")
    answer = joined(driver, "m1", requires_member_id=True)
    assert (answer.error, answer.generation) == (Error.NONE, 2)
    assert synced(driver, "m1", 2).assignment == write_assignment(1, frozenset())
    assert beat(driver, "m1", 2) == Error.NONE, "what it is to have is still another's"
    driver.beat("n", 1)
    driver.beat("n", 1, "a:0,1")
    assert beat(driver, "m1", 2) == Error.REBALANCE_IN_PROGRESS, "and now it is free"
    assert joined(driver, "m1").generation == 2
    given = read_assignment(synced(driver, "m1", 2).assignment)
    assert given is not None
    assert len(given.partitions) == 2


def test_an_answer_waits_for_its_records() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("n", "a")
    driver.commits_at_once = False
    number = driver.join(protocols=classic("a"))
    assert number not in driver.answers
    syncing = driver.sync("m1", generation=Generation(2))
    assert syncing not in driver.answers
    driver.commit_up_to(len(driver.log))
    assert driver.joined(number).error == driver.synced(syncing).error == Error.NONE


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"protocol_type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": ()}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": classic("a", protocol="other")}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocols": (GroupProtocol("range", b"?"),)}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "m9", "instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_not_let_in(changes: dict[str, Any], error: Error) -> None:
    driver = mixed()
    given = {"member_id": "", "protocols": classic("a"), **changes}
    assert driver.joined(driver.join(**given)).error == error


def test_a_subscription_that_cannot_be_read_was_an_internal_error_up_to_4_3() -> None:
    driver = mixed("4.3")
    assert joined(driver, "", protocols=(GroupProtocol("range", b"?"),)).error == Error.UNKNOWN_SERVER_ERROR


def test_a_full_group_and_a_policy_refuse() -> None:
    driver = mixed(consumer_max_size=2)
    assert joined(driver, "").error == Error.GROUP_MAX_SIZE_REACHED
    driver = ConsumerDriver(known=T, migration=MigrationPolicy.DISABLED)
    driver.come("n", "a")
    refused = joined(driver, "")
    assert (refused.error, refused.member_id) == (Error.INCONSISTENT_GROUP_PROTOCOL, NO_MEMBER_ID)


@pytest.mark.parametrize(
    ("name", "generation", "changes", "error"),
    [
        ("m1", 2, {}, Error.NONE),
        ("m1", 1, {}, Error.ILLEGAL_GENERATION),
        ("m9", 2, {}, Error.UNKNOWN_MEMBER_ID),
        ("n", 2, {}, Error.UNKNOWN_MEMBER_ID),
        ("m1", 2, {"instance_id": "i"}, Error.UNKNOWN_MEMBER_ID),
        ("m1", 2, {"protocol_type": "connect"}, Error.INCONSISTENT_GROUP_PROTOCOL),
        ("m1", 2, {"protocol_name": "sticky"}, Error.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_who_gets_an_assignment(name: str, generation: int, changes: dict[str, Any], error: Error) -> None:
    given = {"instance_id": None, "protocol_type": None, "protocol_name": None, **changes}
    driver = mixed()
    assert synced(driver, name, generation, **given).error == error
    if "protocol" not in str(changes):
        assert beat(driver, name, generation, given["instance_id"]) in (error, Error.REBALANCE_IN_PROGRESS)


def test_a_newer_target_comes_before_an_assignment() -> None:
    driver = mixed()
    driver.come("n2", "a")
    assert synced(driver, "m1", 2).error == Error.REBALANCE_IN_PROGRESS
    due = driver.consumer("m1").join_deadline_ms
    driver.now += 1
    assert beat(driver, "m1", 2) == Error.REBALANCE_IN_PROGRESS
    assert driver.consumer("m1").join_deadline_ms == due


def test_who_does_not_join_or_ask_in_time_is_out() -> None:
    driver = mixed()
    driver.come("n2", "a")
    beat(driver, "m1", 2)
    for _ in range(4):
        driver.wait(REBALANCE_MS // 4)
        if driver.now < REBALANCE_MS:
            beat(driver, "m1", 2)
            driver.beat("n", driver.consumer("n").epoch, "a:0")
            driver.beat("n2", driver.consumer("n2").epoch)
    assert "m1" not in [one.member_id for one in driver.consumers.members]
    driver = ConsumerDriver(known=T)
    driver.come("n", "a")
    joined(driver, "", session_timeout_ms=60_000)
    driver.wait(REBALANCE_MS)
    assert [one.member_id for one in driver.consumers.members] == ["n"]


def test_a_member_has_the_session_that_it_asked_for() -> None:
    driver = mixed()
    driver.wait(SESSION_MS - 1)
    assert len(driver.consumers.members) == 2
    driver.wait(1)
    assert [one.member_id for one in driver.consumers.members] == ["n"]


def test_members_leave_together() -> None:
    driver = mixed()
    joined(driver, "", instance_id="i")
    identities = (
        MemberIdentity(MemberId("m1")),
        MemberIdentity(MemberId("m9")),
        MemberIdentity(NO_MEMBER_ID, "i"),
        MemberIdentity(MemberId("m1"), "i"),
        MemberIdentity(NO_MEMBER_ID, "none"),
    )
    epoch = driver.consumers.epoch
    answer = driver.send(LeaveGroupRequest(GROUP, identities))
    unknown = Error.UNKNOWN_MEMBER_ID
    assert answer.members == (
        LeftMember(Error.NONE, MemberId("m1")),
        LeftMember(unknown, MemberId("m9")),
        LeftMember(Error.NONE, NO_MEMBER_ID, "i"),
        LeftMember(Error.FENCED_INSTANCE_ID, MemberId("m1"), "i"),
        LeftMember(unknown, NO_MEMBER_ID, "none"),
    )
    assert driver.consumers.epoch == epoch + 1
    before = driver.group
    driver.send(LeaveGroupRequest(GROUP, (MemberIdentity(MemberId("m9")),)))
    assert driver.group is before


def test_an_administrator_removes_members_of_the_newer_protocol() -> None:
    """By LeaveGroup, whether they are static or not; the answer names them as the request does."""
    driver = ConsumerDriver(known=T)
    driver.come("n", "a")
    driver.come("s", "a", instance_id="i")
    answer = driver.send(LeaveGroupRequest(GROUP, (MemberIdentity(NO_MEMBER_ID, "i"),)))
    assert answer.members == (LeftMember(Error.NONE, NO_MEMBER_ID, "i"),)
    assert [one.member_id for one in driver.consumers.members] == ["n"]
    answer = driver.send(LeaveGroupRequest(GROUP, (MemberIdentity(MemberId("n")),)))
    assert answer.members == (LeftMember(Error.NONE, MemberId("n")),)
    assert driver.consumers.members == ()


def test_a_static_member_changes_the_protocol_without_leaving() -> None:
    """KAFKA-17228."""
    driver = classic_group(instance="i")
    answer = driver.come("n", "a", instance_id="i")
    assert (answer.error, answer.member_epoch, answer.assignment) == (Error.NONE, 1, held("a:0,1,2,3"))
    assert driver.consumer("n").classic is None
    assert [one.member_id for one in driver.consumers.members] == ["n"]


@pytest.mark.parametrize(("release", "error"), [("4.2", Error.REBALANCE_IN_PROGRESS), ("4.3", Error.NONE)])
def test_who_has_to_join_again_before_there_are_targets_up_to_4_2(release: str, error: Error) -> None:
    driver = mixed(release)
    assert joined(driver, "m1", "").generation == 2
    assert synced(driver, "m1", 2).error == beat(driver, "m1", 2) == Error.NONE
    rules = replace(driver.coordinator.protocol, may_assign=lambda last, interval, now: False)
    driver.coordinator = replace(driver.coordinator, protocol=rules)
    driver.come("n2", "a")
    assert synced(driver, "m1", 2).error == beat(driver, "m1", 2) == error


# ---- back


def test_the_last_consumer_leaves_a_classic_group_behind() -> None:
    driver = mixed()
    driver.go("n")
    group = driver.group
    assert (group.consumer, group.state, group.generation) == (None, GroupState.PREPARING_REBALANCE, 2)
    assert [one.member_id for one in group.members] == ["m1"]
    assignment = read_assignment(group.members[0].assignment)
    assert assignment is not None
    assert len(assignment.partitions) == 2
    (loaded,) = load(driver.log)
    assert (loaded.generation, loaded.consumer, len(loaded.members)) == (2, None, 1)
    assert driver.joined(driver.join("m1", protocols=classic("a"))).generation == 3


@pytest.mark.parametrize("policy", [MigrationPolicy.UPGRADE, MigrationPolicy.DISABLED])
def test_without_leave_of_the_policy_it_stays_a_consumer_group(policy: MigrationPolicy) -> None:
    driver = mixed()
    settings = driver.coordinator.settings
    changed = {name: getattr(settings, name) for name in settings.__slots__} | {"migration": policy}
    driver.coordinator = driver.coordinator.__class__(driver.coordinator.protocol, settings.__class__(**changed), T)
    driver.go("n")
    assert [one.member_id for one in driver.consumers.members] == ["m1"]


def test_a_static_member_takes_the_group_back() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("n", "a", instance_id="i")
    answer = joined(driver, "", instance_id="i")
    assert (answer.error, answer.generation) == (Error.NONE, 1)
    assert (driver.group.consumer, driver.group.state) == (None, GroupState.STABLE)
    given = read_assignment(driver.group.members[0].assignment)
    assert given is not None
    assert given.partitions == ALL


LAST = [
    ("4.0", 2, GroupState.STABLE),
    ("4.1", 0, GroupState.PREPARING_REBALANCE),
    ("4.2", 0, GroupState.PREPARING_REBALANCE),
    ("4.4", 0, GroupState.PREPARING_REBALANCE),
]


@pytest.mark.parametrize(("release", "told", "state"), LAST)
def test_the_last_consumer_reads_other_topics_when_it_becomes_classic(release: str, told: int, state: GroupState) -> None:
    """Up to 4.1.0 it is told an epoch that the classic group does not have."""
    driver = ConsumerDriver(release, topics(a=4, b=2))
    driver.come("n", "a", instance_id="i")
    answer = joined(driver, "", instance_id="i", protocols=classic("a", "b", owned="a:0,1,2,3"))
    assert (answer.error, answer.generation) == (Error.NONE, told)
    group = driver.group
    assert (group.consumer, group.state, group.generation) == (None, state, 1)
    given = read_assignment(group.members[0].assignment)
    assert given is not None
    assert given.partitions == ALL, "what it had before"
    assert synced(driver, answer.member_id, answer.generation, instance_id="i").error == Error.ILLEGAL_GENERATION
    (loaded,) = load(driver.log)
    assert (loaded.consumer, loaded.generation) == (None, 1)
    assert [one.member_id for one in loaded.members] == [answer.member_id]


@pytest.mark.parametrize(
    ("release", "told", "state"), [("4.2", 1, GroupState.STABLE), ("4.3", 0, GroupState.PREPARING_REBALANCE)]
)
def test_a_group_that_becomes_classic_without_new_targets_rebalances_since_4_3(
    release: str, told: int, state: GroupState
) -> None:
    driver = ConsumerDriver(release, T)
    driver.come("n", "a", instance_id="i")
    driver.know(topics(a=5))
    answer = joined(driver, "", instance_id="i", protocols=classic("a", owned="a:0,1,2,3"))
    assert (answer.error, answer.generation) == (Error.NONE, told)
    assert (driver.group.consumer, driver.group.state) == (None, state)


def test_the_last_consumer_becomes_classic_under_its_own_id() -> None:
    driver = mixed()
    driver.go("n")
    driver = ConsumerDriver(known=T)
    driver.come("n", "a", instance_id="i")
    first = joined(driver, "")
    assert (first.error, first.generation) == (Error.NONE, 2)
    answer = joined(driver, "n", "a:0,1,2,3", instance_id="i")
    assert (answer.error, answer.generation) == (Error.NONE, 1), "it has to give up two partitions first"
    group = driver.group
    assert (group.consumer, group.state, group.generation) == (None, GroupState.STABLE, 2)
    assert [one.member_id for one in group.members] == [first.member_id, "n"]
    assert group.leader == first.member_id


def test_a_static_member_is_not_the_last_while_another_reads_by_the_newer_protocol() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("n", "a", instance_id="i")
    driver.come("n2", "a")
    joined(driver, "", instance_id="i")
    assert len(driver.consumers.members) == 2


def test_a_classic_member_has_the_layout_of_the_protocol_that_is_chosen() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("n", "a", instance_id="i")
    driver.come("n2", "a")
    both = (*classic("a", protocol="roundrobin", layout=0), *classic("a", layout=1))
    joined(driver, "", instance_id="i", protocols=classic("a"))
    joined(driver, "", protocols=both)
    driver.go("n2")
    assert driver.group.protocol_name == "range"
    assert {one.assignment[:2] for one in driver.group.members} == {b"\0\1"}


def test_a_static_member_of_the_classic_protocol_is_replaced_by_another() -> None:
    driver = mixed()
    first = joined(driver, "", instance_id="i")
    assert joined(driver, first.member_id, instance_id="i").error == Error.NONE
    second = joined(driver, "", instance_id="i")
    assert joined(driver, first.member_id, instance_id="i").error == Error.FENCED_INSTANCE_ID
    assert beat(driver, first.member_id, second.generation, "i") == Error.FENCED_INSTANCE_ID
    assert second.member_id in [one.member_id for one in driver.consumers.members]


def test_an_empty_consumer_group_gives_way_to_a_classic_one() -> None:
    driver = ConsumerDriver(known=T)
    driver.come("n", "a")
    driver.go("n")
    assert joined(driver, "m9").error == Error.UNKNOWN_MEMBER_ID
    assert driver.group.consumer is not None
    assert joined(driver, "", requires_member_id=True).error == Error.MEMBER_ID_REQUIRED
    assert driver.described().error == Error.GROUP_ID_NOT_FOUND
    assert driver.group.state == GroupState.EMPTY
    (loaded,) = load(driver.log)
    assert loaded.consumer is None


# ---- bytes


@pytest.mark.parametrize("layout", [0, 1])
def test_a_subscription_is_read(layout: int) -> None:
    (protocol,) = classic("a", "b", owned="a:0,2 b:1", layout=layout)
    found = read_subscription(protocol.metadata)
    assert found is not None
    assert (found.layout, found.topics) == (layout, frozenset({"a", "b"}))
    assert found.owned == (set() if layout == 0 else {("a", 0), ("a", 2), ("b", 1)})
    for cut in range(len(protocol.metadata)):
        assert read_subscription(protocol.metadata[:cut]) is None
    assert read_subscription(protocol.metadata + b"more") == found


def test_an_assignment_is_read_and_written() -> None:
    data = write_assignment(3, frozenset({("a", 2), ("a", 0), ("b", 1)}))
    found = read_assignment(data)
    assert found is not None
    assert (found.partitions, found.user_data) == (frozenset({("a", 2), ("a", 0), ("b", 1)}), b"")
    for cut in range(len(data)):
        assert read_assignment(data[:cut]) is None
    assert read_assignment(b"\xff\xff" + data[2:]) is None
