"""Sessions, registration, and a broker's way in and out (rules L6, L10, L11)."""

import pytest

from kspec.spec.controller.rules.brokers import (
    BrokerSession,
    ControlState,
    IncarnationChange,
    caught_up_with_all,
    caught_up_with_registration,
    check_broker_epoch,
    check_registration,
    current_control_state,
    have_replayed,
    heartbeats_are_contact,
    is_fenced_state,
    is_shutting_down,
    is_valid_session,
    is_valid_session_fenced_or_not,
    marks_shutdown_never,
    marks_shutdown_once,
    new_incarnation_is_clean_if_it_says_so,
    new_incarnation_is_ignored,
    new_registration,
    next_control_state,
    register_again_anew,
    register_again_as_is,
    register_again_with_new_epoch,
    registration_is_contact,
)
from kspec.spec.messages.broker_heartbeat import BrokerHeartbeatRequest
from kspec.spec.messages.broker_registration import BrokerRegistrationRequest
from kspec.spec.metadata import BrokerRegistration, MetadataImage
from kspec.spec.values import NO_BROKER_EPOCH, BrokerEpoch, BrokerId, Error, Incarnation, MonotonicMs, Offset

FENCED, UNFENCED = ControlState.FENCED, ControlState.UNFENCED
LEAVING, STOPS = ControlState.CONTROLLED_SHUTDOWN, ControlState.SHUTDOWN_NOW
RUN = BrokerRegistration(BrokerId(1), BrokerEpoch(10), Incarnation(1), fenced=False, registered_at=Offset(10))
LATER = MonotonicMs(5000)
SESSION = BrokerSession(BrokerId(1), MonotonicMs(1000))


def registration(incarnation: int, previous: int = NO_BROKER_EPOCH) -> BrokerRegistrationRequest:
    return BrokerRegistrationRequest(BrokerId(1), Incarnation(incarnation), BrokerEpoch(previous))


@pytest.mark.parametrize(("fenced", "now_ms", "valid"), [(False, 10_000, True), (False, 10_001, False), (True, 1000, False)])
def test_sessions(fenced: bool, now_ms: int, valid: bool) -> None:
    assert is_valid_session(SESSION, fenced, MonotonicMs(now_ms), timeout_ms=9000) is valid


@pytest.mark.parametrize(("fenced", "now_ms", "valid"), [(True, 10_000, True), (False, 10_000, True), (True, 10_001, False)])
def test_since_4_0_a_session_lasts_fenced_or_not(fenced: bool, now_ms: int, valid: bool) -> None:
    assert is_valid_session_fenced_or_not(SESSION, fenced, MonotonicMs(now_ms), timeout_ms=9000) is valid


def test_since_4_0_a_registration_is_no_sign_of_life() -> None:
    assert registration_is_contact(SESSION, False, LATER) == registration_is_contact(None, False, LATER) == LATER
    assert heartbeats_are_contact(SESSION, True, LATER) == SESSION.last_contact_ms
    never = heartbeats_are_contact(SESSION, False, LATER)
    assert never == heartbeats_are_contact(None, False, LATER)
    assert not is_valid_session_fenced_or_not(SESSION._replace(last_contact_ms=never), True, MonotonicMs(0), timeout_ms=9000)


@pytest.mark.parametrize(
    ("existing", "epoch", "error"),
    [(RUN, 10, Error.NONE), (RUN, 9, Error.STALE_BROKER_EPOCH), (None, 10, Error.STALE_BROKER_EPOCH)],
)
def test_requests_name_their_run(existing: BrokerRegistration | None, epoch: int, error: Error) -> None:
    assert check_broker_epoch(existing, BrokerEpoch(epoch)) == error


@pytest.mark.parametrize(
    ("existing", "incarnation", "alive", "duplicate"),
    [
        pytest.param(None, 1, False, False, id="new broker"),
        pytest.param(RUN, 1, True, False, id="the same run"),
        pytest.param(RUN, 2, True, True, id="another run, the first alive"),
        pytest.param(RUN, 2, False, False, id="another run, the first silent"),
    ],
)
def test_one_run_at_a_time(existing: BrokerRegistration | None, incarnation: int, alive: bool, duplicate: bool) -> None:
    error = check_registration(existing, registration(incarnation), alive)
    assert error == (Error.DUPLICATE_BROKER_REGISTRATION if duplicate else Error.NONE)


def test_registering_twice() -> None:
    again = registration(1), BrokerEpoch(20)
    assert register_again_anew(RUN, *again) == new_registration(*again)
    assert new_registration(*again) == BrokerRegistration(BrokerId(1), BrokerEpoch(20), Incarnation(1), fenced=True)
    assert register_again_with_new_epoch(RUN, *again) == RUN._replace(broker_epoch=BrokerEpoch(20))
    assert register_again_as_is(RUN, *again) == RUN


@pytest.mark.parametrize(
    ("existing", "previous", "elr", "departure"),
    [
        pytest.param(RUN, 10, True, IncarnationChange.LIKE_FENCING, id="clean"),
        pytest.param(RUN, 9, True, IncarnationChange.UNCLEAN, id="clean, but another run since"),
        pytest.param(RUN, -1, True, IncarnationChange.UNCLEAN, id="unclean"),
        pytest.param(None, -1, True, IncarnationChange.UNCLEAN, id="never seen"),
        pytest.param(RUN, -1, False, IncarnationChange.LIKE_FENCING, id="no eligible leaders"),
    ],
)
def test_what_a_new_run_ends(
    existing: BrokerRegistration | None, previous: int, elr: bool, departure: IncarnationChange
) -> None:
    arguments = existing, registration(2, previous), elr
    assert new_incarnation_is_ignored(*arguments) == IncarnationChange.IGNORED
    assert new_incarnation_is_clean_if_it_says_so(*arguments) == departure


@pytest.mark.parametrize(("offset", "all_of_it", "registered"), [(9, False, False), (10, False, True), (14, True, True)])
def test_catching_up(offset: int, all_of_it: bool, registered: bool) -> None:
    image = MetadataImage(Offset(15), (RUN,))
    assert caught_up_with_all(image, RUN, Offset(offset)) is all_of_it
    assert caught_up_with_registration(image, RUN, Offset(offset)) is registered


def test_where_a_broker_is() -> None:
    leaving = SESSION._replace(controlled_shutdown_offset=Offset(3))
    assert not is_shutting_down(SESSION)
    assert is_shutting_down(leaving)
    assert current_control_state(RUN, SESSION) == UNFENCED
    assert current_control_state(RUN._replace(fenced=True), SESSION) == FENCED
    assert current_control_state(RUN, leaving) == LEAVING
    assert [state for state in ControlState if is_fenced_state(state)] == [FENCED, STOPS]


@pytest.mark.parametrize(
    ("current", "fence", "shutdown", "caught_up", "leads", "others", "following"),
    [
        (FENCED, False, True, True, False, True, STOPS),
        (FENCED, False, False, True, False, True, UNFENCED),
        (FENCED, False, False, False, False, True, FENCED),
        (FENCED, True, False, True, False, True, FENCED),
        (UNFENCED, False, False, True, True, True, UNFENCED),
        (UNFENCED, True, False, True, True, True, FENCED),
        (UNFENCED, True, True, True, True, True, STOPS),
        (UNFENCED, False, True, True, True, True, LEAVING),
        (UNFENCED, False, True, True, False, False, STOPS),
        (LEAVING, False, True, True, True, True, LEAVING),
        (LEAVING, False, True, True, False, False, LEAVING),
        (LEAVING, False, True, True, False, True, STOPS),
        (LEAVING, True, False, True, True, True, LEAVING),
    ],
)
def test_the_way_in_and_out(
    current: ControlState,
    fence: bool,
    shutdown: bool,
    caught_up: bool,
    leads: bool,
    others: bool,
    following: ControlState,
) -> None:
    request = BrokerHeartbeatRequest(BrokerId(1), BrokerEpoch(10), Offset(0), fence, shutdown)
    assert next_control_state(current, request, caught_up, leads, others) == following


def test_who_must_have_replayed_before_a_shutdown_ends() -> None:
    """Only active brokers count: neither fenced ones nor those that shut down themselves."""
    fenced = RUN._replace(broker=BrokerId(2), fenced=True)
    leaving = RUN._replace(broker=BrokerId(3))
    image = MetadataImage(Offset(20), (RUN, fenced, leaving))
    sessions = (
        SESSION._replace(metadata_offset=Offset(5)),
        BrokerSession(BrokerId(2), MonotonicMs(0), Offset(1)),
        BrokerSession(BrokerId(3), MonotonicMs(0), Offset(2), Offset(4)),
    )
    assert have_replayed(sessions, image, Offset(5))
    assert not have_replayed(sessions, image, Offset(6))
    assert have_replayed((), image, Offset(6))


def test_what_the_metadata_say_of_a_shutdown() -> None:
    assert not marks_shutdown_never(RUN)
    assert marks_shutdown_once(RUN)
    assert not marks_shutdown_once(RUN._replace(in_controlled_shutdown=True))
