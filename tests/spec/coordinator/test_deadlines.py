"""Changes without a message. Facts from Apache Kafka's `GroupMetadataManagerTest`."""

from kspec.spec.coordinator.deadlines import next_deadline, on_activation, on_deadline, on_resignation
from kspec.spec.coordinator.effects import AnswerMember, PersistRecords
from kspec.spec.coordinator.group import GroupState, GroupStep, absent
from kspec.spec.coordinator.loading import load
from kspec.spec.coordinator.rebalance import then
from kspec.spec.coordinator.records import OffsetTombstone
from kspec.spec.messages.groups.sync_group import SyncGroupResponse
from kspec.spec.step import Step
from kspec.spec.values import Error, RequestNumber
from tests.limits.turns import Turns
from tests.spec.coordinator_driver import DELAY_MS, GROUP, REBALANCE_MS, SESSION_MS, CoordinatorDriver
from tests.times import at_ms


def jump(driver: CoordinatorDriver, milliseconds: int) -> None:
    """Look at the time only after so long."""
    driver.now += milliseconds
    driver.carry_out(on_deadline(driver.coordinator, driver.group, at_ms(driver.now)))


def test_a_group_without_members_has_no_deadline() -> None:
    driver = CoordinatorDriver()
    assert next_deadline(driver.group) is None
    driver.commit()
    assert next_deadline(driver.group) is None


def test_nothing_is_due_before_its_time() -> None:
    driver = CoordinatorDriver()
    driver.stable(None, "a")
    driver.join()
    driver.join(requires_member_id=True)
    assert on_deadline(driver.coordinator, driver.group, at_ms(driver.now)).state == driver.group


def test_a_silent_member_is_out_after_its_session() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    driver.pass_time(SESSION_MS - 1)
    driver.heartbeat(leader)
    driver.pass_time(1)
    assert [member.member_id for member in driver.group.members] == [leader]
    assert driver.state == GroupState.PREPARING_REBALANCE
    assert driver.heartbeat(follower) == Error.UNKNOWN_MEMBER_ID


def test_a_member_that_waits_for_an_answer_is_not_silent() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    waiting = driver.join(leader)
    turns = Turns(10_000)
    while driver.now < DELAY_MS * 2 + SESSION_MS * 2:
        turns.go()
        driver.heartbeat(follower)
        driver.pass_time(SESSION_MS // 2)
    assert driver.member(leader).join_request == waiting
    assert driver.member(leader).session_deadline_ms is None
    driver.join(follower)
    assert driver.joined(waiting).generation == 2
    assert driver.member(leader).session_deadline_ms is not None


def test_a_new_member_waits_five_minutes_at_most() -> None:
    driver = CoordinatorDriver(new_member_timeout_ms=SESSION_MS)
    (member,) = driver.stable()
    waiting = driver.join(rebalance_timeout_ms=SESSION_MS * 9)
    for _ in range(3):
        driver.heartbeat(member)
        driver.pass_time(SESSION_MS // 2)
    assert driver.joined(waiting).error == Error.UNKNOWN_MEMBER_ID
    assert driver.state == GroupState.PREPARING_REBALANCE


def test_the_last_that_was_awaited_is_out_and_the_rebalance_ends() -> None:
    driver = CoordinatorDriver()
    leader, follower = driver.stable(None, None)
    waiting = driver.join(leader)
    driver.pass_time(SESSION_MS)
    assert driver.joined(waiting).generation == 2
    assert driver.heartbeat(follower) == Error.UNKNOWN_MEMBER_ID


def test_a_pending_member_that_does_not_come_holds_a_rebalance_up_for_its_session() -> None:
    driver = CoordinatorDriver()
    (leader,) = driver.stable()
    driver.join(requires_member_id=True)
    waiting = driver.join(leader)
    assert waiting not in driver.answers
    driver.pass_time(SESSION_MS)
    assert driver.joined(waiting).generation == 2


def test_who_does_not_ask_for_its_assignment_is_out() -> None:
    driver = CoordinatorDriver()
    driver.join(session_timeout_ms=REBALANCE_MS * 2)
    driver.join(session_timeout_ms=REBALANCE_MS * 2)
    driver.pass_time(DELAY_MS * 2)
    waiting = driver.sync("m2")
    driver.pass_time(REBALANCE_MS)
    assert driver.synced(waiting).error == Error.REBALANCE_IN_PROGRESS
    assert [member.member_id for member in driver.group.members] == ["m2"]
    assert (driver.state, driver.group.leader) == (GroupState.PREPARING_REBALANCE, "m2")


def test_a_member_that_leaves_before_the_first_generation() -> None:
    driver = CoordinatorDriver(new_member_timeout_ms=DELAY_MS - 1)
    waiting = driver.join()
    driver.pass_time(DELAY_MS)
    assert driver.joined(waiting).error == Error.UNKNOWN_MEMBER_ID
    assert (driver.state, driver.group.generation) == (GroupState.EMPTY, 1)


def test_deadlines_that_have_passed_together_happen_in_their_order() -> None:
    driver = CoordinatorDriver()
    driver.stable(None, None)
    driver.now += SESSION_MS * 10
    driver.carry_out(on_deadline(driver.coordinator, driver.group, at_ms(driver.now)))
    assert (driver.state, driver.group.members) == (GroupState.EMPTY, ())


def test_a_deadline_that_another_one_has_made_void_does_nothing() -> None:
    driver = CoordinatorDriver()
    leader, _ = driver.stable(None, None)
    waiting = driver.join(leader)
    jump(driver, REBALANCE_MS * 2)  # the other's session, then the end of the joining
    assert driver.joined(waiting).generation == driver.group.generation == 2
    jump(driver, SESSION_MS)  # the leader's session; the time to ask for assignments ends later
    assert (driver.state, driver.group.generation) == (GroupState.EMPTY, 3)


def test_who_is_out_for_not_asking_is_not_out_again_when_its_session_ends() -> None:
    driver = CoordinatorDriver()
    driver.join(session_timeout_ms=REBALANCE_MS * 2)
    driver.pass_time(DELAY_MS)
    jump(driver, REBALANCE_MS * 3)
    assert (driver.state, driver.group.generation, driver.group.members) == (GroupState.EMPTY, 2, ())


def test_the_end_of_syncing_is_void_once_a_member_is_out() -> None:
    driver = CoordinatorDriver()
    driver.join(rebalance_timeout_ms=REBALANCE_MS)
    driver.join(rebalance_timeout_ms=REBALANCE_MS)
    driver.pass_time(DELAY_MS * 2)
    waiting = driver.sync("m2")
    jump(driver, REBALANCE_MS * 2)
    assert driver.synced(waiting).error == Error.REBALANCE_IN_PROGRESS
    assert [member.member_id for member in driver.group.members] == ["m2"]


def test_what_two_steps_store_comes_first_in_its_order() -> None:
    tombstones = [OffsetTombstone(GROUP, "topic", partition) for partition in range(2)]
    answer = AnswerMember(RequestNumber(1), SyncGroupResponse(Error.NONE))
    first: GroupStep = Step(absent(GROUP), (PersistRecords((tombstones[0],)), answer))
    second: GroupStep = Step(absent(GROUP), (PersistRecords((tombstones[1],)), answer))
    assert then(first, lambda _: second).effects == (PersistRecords(tuple(tombstones)), answer, answer)
    assert then(Step(absent(GROUP)), lambda _: first) == first


# ---- a coordinator begins and ends


def test_sessions_begin_anew_with_a_new_coordinator() -> None:
    driver = CoordinatorDriver()
    (member,) = driver.stable()
    (loaded,) = load(driver.log)
    assert next_deadline(loaded) is None
    driver.group = on_activation(driver.coordinator, loaded, at_ms(1_000_000)).state
    assert next_deadline(driver.group) == 1_000_000 + SESSION_MS
    driver.now = 1_000_000
    assert driver.heartbeat(member) == Error.NONE


def test_a_group_that_has_become_too_large_rebalances_when_loaded() -> None:
    driver = CoordinatorDriver()
    driver.stable(None, None)
    (loaded,) = load(driver.log)
    small = CoordinatorDriver(max_size=1)
    assert on_activation(small.coordinator, loaded, at_ms(0)).state.state == GroupState.PREPARING_REBALANCE


def test_a_coordinator_that_ends_answers_who_waits() -> None:
    driver = CoordinatorDriver()
    joining = driver.join()
    driver.carry_out(on_resignation(driver.coordinator, driver.group, at_ms(driver.now)))
    assert (driver.joined(joining).error, driver.joined(joining).member_id) == (Error.NOT_COORDINATOR, "m1")
    assert driver.state == GroupState.DEAD
    driver = CoordinatorDriver()
    driver.join()
    driver.join()
    driver.pass_time(DELAY_MS * 2)
    syncing = driver.sync("m2")
    driver.carry_out(on_resignation(driver.coordinator, driver.group, at_ms(driver.now)))
    assert driver.synced(syncing).error == Error.NOT_COORDINATOR
