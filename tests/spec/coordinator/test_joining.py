"""JoinGroup. Facts from Apache Kafka's `GroupMetadataManagerTest` and `ClassicGroupTest`."""

import pytest

from kspec.spec.coordinator.group import GroupState, select_protocol
from kspec.spec.messages.groups.join_group import GroupProtocol
from kspec.spec.values import NO_MEMBER_ID, Error, Generation
from tests.spec.coordinator_driver import DELAY_MS, RANGE, REBALANCE_MS, SESSION_MS, CoordinatorDriver, offers, subscription


def error_of(driver: CoordinatorDriver, request: int) -> Error:
    return driver.joined(request).error


def test_a_group_needs_an_id() -> None:
    driver = CoordinatorDriver()
    assert error_of(driver, driver.join(group_id="")) == Error.INVALID_GROUP_ID


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_a_session_may_be_neither_too_short_nor_too_long(timeout_ms: int) -> None:
    driver = CoordinatorDriver()
    assert error_of(driver, driver.join(session_timeout_ms=timeout_ms)) == Error.INVALID_SESSION_TIMEOUT
    assert driver.state == GroupState.DEAD


def test_an_id_is_unknown_where_there_is_no_group() -> None:
    driver = CoordinatorDriver()
    assert error_of(driver, driver.join("stranger")) == Error.UNKNOWN_MEMBER_ID
    assert driver.log == []


def test_a_new_dynamic_member_is_told_its_id_first() -> None:
    driver = CoordinatorDriver()
    first = driver.joined(driver.join(requires_member_id=True))
    assert (first.error, first.member_id) == (Error.MEMBER_ID_REQUIRED, "m1")
    assert driver.state == GroupState.EMPTY
    assert [record.group_id for record in driver.log] == ["group"]
    again = driver.join("m1", requires_member_id=True)
    assert again not in driver.answers
    assert driver.group.pending == ()
    driver.pass_time(DELAY_MS)
    assert driver.joined(again).leader == "m1"


def test_a_new_member_of_an_old_client_is_in_at_once() -> None:
    driver = CoordinatorDriver()
    number = driver.join()
    driver.pass_time(DELAY_MS)
    response = driver.joined(number)
    assert (response.error, response.generation, response.protocol_name) == (Error.NONE, 1, "range")
    assert [member.member_id for member in response.members] == ["m1"]
    assert response.members[0].metadata == subscription("topic")


def test_an_id_that_was_never_given_is_unknown() -> None:
    driver = CoordinatorDriver()
    driver.stable()
    refused = driver.joined(driver.join("stranger"))
    assert (refused.error, refused.protocol_name) == (Error.UNKNOWN_MEMBER_ID, None)


def test_a_pending_member_is_forgotten_after_its_session() -> None:
    driver = CoordinatorDriver()
    driver.join(requires_member_id=True)
    driver.pass_time(SESSION_MS)
    assert driver.group.pending == ()
    assert error_of(driver, driver.join("m1")) == Error.UNKNOWN_MEMBER_ID


def test_a_group_needs_a_protocol() -> None:
    driver = CoordinatorDriver()
    assert error_of(driver, driver.join(protocol_type="")) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(driver, driver.join(protocols=())) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.state == GroupState.EMPTY
    assert len(driver.log) == 1


def test_a_member_must_share_type_and_protocol_with_all() -> None:
    driver = CoordinatorDriver()
    driver.stable()
    assert error_of(driver, driver.join(protocol_type="connect")) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(driver, driver.join(protocols=offers("sticky"))) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert driver.state == GroupState.STABLE


def test_the_protocol_that_most_prefer_is_taken() -> None:
    driver = CoordinatorDriver()
    driver.join(protocols=offers("a", "b"))
    driver.join(protocols=offers("b", "a"))
    last = driver.join(protocols=offers("b", "a", "c"))
    driver.pass_time(DELAY_MS * 2)
    assert driver.joined(last).protocol_name == "b"
    assert select_protocol(driver.group._replace(members=())) is None


def test_a_draw_of_votes_is_decided_as_java_orders_names() -> None:
    """`new HashMap<>(…)` of these four is gone through as sticky, range, roundrobin, cooperative-sticky."""
    for first, second in (("range", "roundrobin"), ("roundrobin", "range")):
        driver = CoordinatorDriver()
        driver.join(protocols=offers(first, second))
        last = driver.join(protocols=offers(second, first))
        driver.pass_time(DELAY_MS * 2)
        assert driver.joined(last).protocol_name == "range"


def test_the_first_rebalance_waits_while_members_arrive() -> None:
    driver = CoordinatorDriver(initial_rebalance_delay_ms=DELAY_MS)
    first = driver.join()
    driver.pass_time(DELAY_MS - 1)
    second = driver.join()
    driver.pass_time(1)
    assert driver.answers == {}
    driver.pass_time(DELAY_MS)
    assert driver.joined(first).generation == driver.joined(second).generation == 1


def test_the_first_rebalance_waits_at_most_for_the_time_out() -> None:
    driver = CoordinatorDriver(initial_rebalance_delay_ms=DELAY_MS)
    numbers = [driver.join(rebalance_timeout_ms=DELAY_MS * 2)]
    for _ in range(2):
        driver.pass_time(DELAY_MS - 1)
        numbers.append(driver.join(rebalance_timeout_ms=DELAY_MS * 2))
    assert driver.answers == {}
    driver.pass_time(2)
    assert {driver.joined(number).generation for number in numbers} == {1}


def test_without_a_delay_the_first_generation_begins_when_the_time_is_looked_at() -> None:
    driver = CoordinatorDriver(initial_rebalance_delay_ms=0)
    number = driver.join()
    driver.pass_time(0)
    assert driver.joined(number).generation == 1


def test_a_new_member_makes_all_join_again() -> None:
    driver = CoordinatorDriver()
    (leader,) = driver.stable()
    new = driver.join()
    assert driver.state == GroupState.PREPARING_REBALANCE
    assert driver.heartbeat(leader) == Error.REBALANCE_IN_PROGRESS
    old = driver.join(leader)
    assert driver.joined(old).generation == driver.joined(new).generation == 2
    assert driver.joined(new).members == ()
    assert len(driver.joined(old).members) == 2


def test_who_does_not_join_again_in_time_is_out() -> None:
    driver = CoordinatorDriver()
    driver.join(rebalance_timeout_ms=SESSION_MS // 2)
    driver.pass_time(DELAY_MS)
    driver.sync("m1")
    leader = driver.group.leader
    new = driver.join(rebalance_timeout_ms=SESSION_MS // 2)
    driver.pass_time(SESSION_MS // 2 - 1)
    assert new not in driver.answers
    driver.pass_time(1)
    assert [member.member_id for member in driver.group.members] == [driver.joined(new).member_id]
    assert driver.joined(new).leader == driver.joined(new).member_id != leader


def test_a_static_member_that_does_not_join_again_stays_until_its_session_ends() -> None:
    driver = CoordinatorDriver()
    driver.stable("a", "b")
    driver.group = driver.group._replace(
        members=tuple(one._replace(session_timeout_ms=REBALANCE_MS * 2) for one in driver.group.members)
    )
    for member in driver.group.members:
        driver.heartbeat(member.member_id)
    new = driver.join()
    driver.pass_time(REBALANCE_MS)
    assert len(driver.group.members) == 3
    assert driver.joined(new).leader == driver.joined(new).member_id


def test_static_members_none_of_whom_joins_wait_once_more() -> None:
    driver = CoordinatorDriver()
    (first, second) = driver.stable("a", "b")
    for member in (first, second):
        driver.group = driver.group._replace(
            members=tuple(one._replace(session_timeout_ms=REBALANCE_MS * 9) for one in driver.group.members)
        )
        driver.heartbeat(member)
    new = driver.join()
    assert driver.leave(driver.member("m3").member_id).members[0].error == Error.NONE
    assert driver.joined(new).error == Error.UNKNOWN_MEMBER_ID
    driver.pass_time(REBALANCE_MS * 2)
    assert driver.state == GroupState.PREPARING_REBALANCE
    assert len(driver.group.members) == 2


def test_a_member_of_a_generation_gets_the_same_answer_again() -> None:
    driver = CoordinatorDriver()
    number = driver.join()
    driver.pass_time(DELAY_MS)
    again = driver.join("m1")
    assert driver.state == GroupState.COMPLETING_REBALANCE
    assert driver.joined(again) == driver.joined(number)


def test_another_subscription_while_the_assignment_is_awaited_begins_anew() -> None:
    driver = CoordinatorDriver()
    driver.join()
    driver.join()
    driver.pass_time(DELAY_MS * 2)
    waiting = driver.sync("m2")
    driver.join("m1", protocols=(GroupProtocol("range", subscription("other")),))
    assert driver.synced(waiting).error == Error.REBALANCE_IN_PROGRESS
    assert driver.state == GroupState.PREPARING_REBALANCE


def test_a_follower_that_joins_a_stable_group_again_unchanged_changes_nothing() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    response = driver.joined(driver.join(follower))
    assert (driver.state, response.generation, response.members) == (GroupState.STABLE, 1, ())
    driver.join(follower, protocols=offers("range", "sticky"))
    assert driver.state == GroupState.PREPARING_REBALANCE
    driver.join(leader)
    assert driver.group.generation == 2


def test_the_leader_of_a_stable_group_asks_for_a_rebalance_by_joining() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    driver.join(leader)
    assert driver.state == GroupState.PREPARING_REBALANCE
    driver.join(follower)
    assert driver.group.generation == 2


def test_the_first_to_join_after_all_others_have_left_is_taken() -> None:
    driver = CoordinatorDriver()
    driver.join()
    driver.leave("m1")
    assert (driver.state, driver.group.members) == (GroupState.PREPARING_REBALANCE, ())
    assert error_of(driver, driver.join(protocol_type="connect")) == Error.INCONSISTENT_GROUP_PROTOCOL
    assert error_of(driver, driver.join(protocols=())) == Error.INCONSISTENT_GROUP_PROTOCOL
    number = driver.join(protocols=offers("sticky"))
    driver.pass_time(DELAY_MS * 2)
    assert driver.joined(number).protocol_name == "sticky"


# ---- limits


def test_a_full_group_takes_nobody_in() -> None:
    driver = CoordinatorDriver(max_size=2)
    driver.stable(None, None)
    full = driver.joined(driver.join(requires_member_id=True))
    assert (full.error, full.member_id) == (Error.GROUP_MAX_SIZE_REACHED, NO_MEMBER_ID)
    assert driver.state == GroupState.STABLE


def test_during_a_rebalance_those_count_who_have_joined() -> None:
    driver = CoordinatorDriver(max_size=1)
    first = driver.join()
    assert error_of(driver, driver.join()) == Error.GROUP_MAX_SIZE_REACHED
    again = driver.join("m1")
    assert (first in driver.answers, again in driver.answers) == (False, False)


def test_a_pending_member_that_finds_no_room_is_forgotten() -> None:
    driver = CoordinatorDriver(max_size=1)
    driver.join(requires_member_id=True)
    driver.join(requires_member_id=True)
    driver.join("m1")
    assert error_of(driver, driver.join("m2")) == Error.GROUP_MAX_SIZE_REACHED
    assert driver.group.pending == ()


# ---- static members


def test_a_static_member_that_starts_again_keeps_its_place_without_a_rebalance() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable("a", "b")
    stored = len(driver.log)
    response = driver.joined(driver.join(instance_id="b", skips_assignment=True))
    assert (driver.state, response.generation, response.leader, response.skip_assignment) == (
        GroupState.STABLE,
        1,
        leader,
        False,
    )
    assert driver.member(response.member_id).assignment == f"for {follower}".encode()
    assert len(driver.log) == stored + 1
    assert driver.heartbeat(follower, instance_id="b") == Error.FENCED_INSTANCE_ID
    assert driver.heartbeat(response.member_id, instance_id="b") == Error.NONE


def test_a_static_leader_that_starts_again_is_told_to_assign_nothing() -> None:
    driver = CoordinatorDriver()
    driver.stable("a", "b")
    response = driver.joined(driver.join(instance_id="a", skips_assignment=True))
    assert (response.leader, response.skip_assignment, len(response.members)) == (response.member_id, True, 2)


def test_an_old_static_leader_is_not_told_that_it_leads() -> None:
    driver = CoordinatorDriver()
    leader, _ = driver.stable("a", "b")
    response = driver.joined(driver.join(instance_id="a"))
    assert (response.leader, response.members) == (leader, ())


def test_a_static_member_with_other_protocols_that_change_the_choice_makes_a_rebalance() -> None:
    driver = CoordinatorDriver()
    driver.join(instance_id="a", protocols=offers("range", "sticky"))
    driver.pass_time(DELAY_MS)
    driver.sync("m1", {"m1": b"all"})
    driver.join(instance_id="a", protocols=offers("sticky"))
    assert driver.group.generation == 2
    assert driver.group.protocol_name == "sticky"


def test_a_static_member_that_starts_again_while_assignments_are_awaited_makes_a_rebalance() -> None:
    driver = CoordinatorDriver()
    driver.join(instance_id="a")
    driver.join(instance_id="b")
    driver.pass_time(DELAY_MS * 2)
    waiting = driver.sync("m2")
    driver.join(instance_id="b")
    assert driver.synced(waiting).error == Error.FENCED_INSTANCE_ID
    assert driver.state == GroupState.PREPARING_REBALANCE


def test_a_static_member_that_starts_again_during_a_rebalance_fences_its_former_self() -> None:
    driver = CoordinatorDriver()
    (first, second) = driver.stable("a", "b")
    waiting = driver.join(first, instance_id="a", protocols=offers("range", "sticky"))
    driver.join(instance_id="a")
    refused = driver.joined(waiting)
    assert (refused.error, refused.member_id, refused.protocol_name) == (Error.FENCED_INSTANCE_ID, first, None)
    driver.join(second, instance_id="b")
    assert driver.group.generation == 2


def test_an_instance_id_that_nobody_has_is_unknown() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable("a")
    assert error_of(driver, driver.join(member, instance_id="b")) == Error.UNKNOWN_MEMBER_ID
    assert error_of(driver, driver.join("stranger", instance_id="a")) == Error.FENCED_INSTANCE_ID


def test_an_id_that_was_given_to_a_dynamic_member_is_no_static_ones() -> None:
    driver = CoordinatorDriver()
    driver.join(requires_member_id=True)
    assert error_of(driver, driver.join("m1", instance_id="a")) == Error.UNKNOWN_SERVER_ERROR
    assert driver.state == GroupState.EMPTY


def test_a_dynamic_leader_that_rejoins_first_keeps_leading() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    driver.join(leader)
    number = driver.join(follower)
    assert driver.joined(number).leader == leader
    assert driver.group.generation == Generation(2)
    assert driver.group.protocol_name == RANGE[0].name


@pytest.mark.parametrize(("release", "taken"), [("3.3", False), ("3.4", True), ("4.4", True)])
def test_the_time_outs_of_a_member_that_joins_again_differ_by_release(release: str, taken: bool) -> None:
    """KAFKA-14009."""
    driver = CoordinatorDriver(release)
    (leader,) = driver.stable()
    driver.join(leader, session_timeout_ms=SESSION_MS + 1, rebalance_timeout_ms=REBALANCE_MS + 1)
    member = driver.member(leader)
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (SESSION_MS + taken, REBALANCE_MS + taken)
