"""Up to where a log has to be committed until nothing of a group waits, and what a refused append leaves as it is."""

from kspec.spec.coordinator.effects import AnswerRequest
from kspec.spec.coordinator.group import new_group
from kspec.spec.coordinator.refusals import on_assignment_not_committed
from kspec.spec.coordinator.runtime import (
    UncommittedWrite,
    WaitingAnswer,
    on_committed,
    on_event_refused,
    unknown_group,
    waits_for,
)
from kspec.spec.messages.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kspec.spec.messages.groups.sync_group import SyncGroupRequest
from kspec.spec.step import Step
from kspec.spec.values import Error, Generation, GroupId, MemberId, MonotonicMs, Offset, RequestNumber, TimestampMs
from tests.spec.coordinator_driver import CoordinatorDriver
from tests.times import at_ms

NOTHING = unknown_group(GroupId("g"))
WRITES = (UncommittedWrite(Offset(3), ()), UncommittedWrite(Offset(5), ()))
REQUEST = HeartbeatRequest(GroupId("g"), Generation(1), MemberId("m"), None)


def waiting(until: int) -> tuple[WaitingAnswer, ...]:
    return (WaitingAnswer(RequestNumber(1), REQUEST, Offset(until), MonotonicMs(0)),)


def test_a_group_waits_for_its_last_record_and_its_last_answer() -> None:
    assert waits_for(NOTHING) == 0
    assert waits_for(NOTHING._replace(writes=WRITES)) == 5
    assert waits_for(NOTHING._replace(waiting=waiting(4))) == 4
    assert waits_for(NOTHING._replace(writes=WRITES, waiting=waiting(4))) == 5
    assert waits_for(NOTHING._replace(writes=WRITES, waiting=waiting(7))) == 7


def test_an_answer_may_wait_for_the_record_of_another_group() -> None:
    """The log is that of several groups: an answer is given when it is committed so far, though its group wrote nothing."""
    coordinator, answer = CoordinatorDriver().coordinator, HeartbeatResponse(Error.NONE)
    state = NOTHING._replace(waiting=(waiting(4)[0]._replace(answer=answer),))
    assert on_committed(coordinator, state, Offset(3), at_ms(0)) == Step(state)
    assert on_committed(coordinator, state, Offset(4), at_ms(0)) == Step(NOTHING, (AnswerRequest(RequestNumber(1), answer),))


def test_an_assignment_for_which_nobody_waits_any_more_changes_nothing() -> None:
    coordinator, group = CoordinatorDriver().coordinator, new_group(GroupId("g"), TimestampMs(0))
    request = SyncGroupRequest(RequestNumber(1), GroupId("g"), Generation(1), MemberId("m"), None, None, None)
    step = on_assignment_not_committed(coordinator, group, request, Error.NOT_COORDINATOR, at_ms(0))
    assert step == Step(group)


def test_a_group_that_an_event_has_made_or_removed_is_as_before_if_the_log_refuses_it() -> None:
    coordinator, made = CoordinatorDriver().coordinator, NOTHING._replace(latest=new_group(GroupId("g"), TimestampMs(0)))
    assert on_event_refused(coordinator, NOTHING, made, at_ms(0)) is NOTHING
    assert on_event_refused(coordinator, made, NOTHING, at_ms(0)) is made
    assert on_event_refused(coordinator, made, made, at_ms(0)) == made
