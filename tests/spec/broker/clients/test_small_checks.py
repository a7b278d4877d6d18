"""Checks of a request that need no state: each at the value where its answer changes."""

import pytest

from kspec.spec.broker.clients.metadata_requests import check_leader
from kspec.spec.broker.clients.named_partitions import check_named_once
from kspec.spec.broker.clients.offset_requests import OffsetQuestion, check_question
from kspec.spec.broker.rules.reading import unreadable
from kspec.spec.values import NO_LEADER, BrokerId, Error


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (check_leader(NO_LEADER), Error.LEADER_NOT_AVAILABLE),
        (check_leader(BrokerId(0)), Error.NONE),
        (check_named_once(1), Error.NONE),
        (check_named_once(2), Error.INVALID_REQUEST),
        (check_question(OffsetQuestion.UNSUPPORTED, Error.NONE), Error.UNSUPPORTED_VERSION),
        (check_question(OffsetQuestion.UNSUPPORTED, Error.NOT_LEADER_OR_FOLLOWER), Error.UNSUPPORTED_VERSION),
        (check_question(OffsetQuestion.BY_TIMESTAMP, Error.NONE), Error.NONE),
        (check_question(OffsetQuestion.BY_TIMESTAMP, Error.NOT_LEADER_OR_FOLLOWER), Error.NOT_LEADER_OR_FOLLOWER),
        (unreadable(True), Error.CORRUPT_MESSAGE),
        (unreadable(False), Error.KAFKA_STORAGE_ERROR),
    ],
)
def test_an_answer_is_the_error_that_kafka_gives(answer: Error, error: Error) -> None:
    assert answer == error
