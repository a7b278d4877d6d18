"""The session of the side that fetches."""

from kspec.spec.broker.clients.fetch_sessions import (
    FIRST_EPOCH,
    NO_SESSION,
    ClientSession,
    after_answer,
    after_no_answer,
    waits_after,
)
from kspec.spec.values import Error


def test_a_client_goes_on_with_its_session_while_answers_come() -> None:
    session = ClientSession()
    session = after_answer(session, Error.NONE, 7)
    assert session == ClientSession(7, 1)
    assert after_answer(session, Error.NONE, 7) == ClientSession(7, 2)
    assert after_answer(session, Error.NONE, NO_SESSION) == ClientSession()


def test_after_an_error_or_without_an_answer_a_client_names_all_partitions_again() -> None:
    session = ClientSession(7, 3)
    assert after_answer(session, Error.FETCH_SESSION_ID_NOT_FOUND, 0) == ClientSession()
    assert after_answer(session, Error.INVALID_FETCH_SESSION_EPOCH, 0) == ClientSession(7, FIRST_EPOCH)
    assert after_no_answer(session) == ClientSession(7, FIRST_EPOCH)


def test_a_session_that_has_ended_is_begun_anew_at_once() -> None:
    assert not waits_after(Error.FETCH_SESSION_ID_NOT_FOUND)
    assert not waits_after(Error.INVALID_FETCH_SESSION_EPOCH)
    assert waits_after(Error.FETCH_SESSION_TOPIC_ID_ERROR)
