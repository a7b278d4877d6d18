"""Fetch sessions, versions, and what timestamps ask for."""

import pytest

from kspec.spec.broker.clients.fetch_sessions import (
    GREATEST_EPOCH,
    NOTHING_SENT,
    FetchContext,
    SentPartition,
    after_sending,
    check_session,
    context_of,
    is_news,
    may_evict,
    next_session_epoch,
)
from kspec.spec.broker.clients.metadata_requests import (
    Cursor,
    check_cursor,
    check_missing_topic,
    check_named_topics,
    counts_by_id,
    entries_that_count,
    page_size,
)
from kspec.spec.broker.clients.named_partitions import NO_TOPIC, check_isolation_level, check_named_partition
from kspec.spec.broker.clients.offset_requests import UNREADABLE, OffsetQuestion, judge_timestamp
from kspec.spec.broker.clients.versions import VersionVerdict, check_frame_size, judge_content, judge_version
from kspec.spec.broker.rules.produce import check_required_acks
from kspec.spec.values import Error, MonotonicMs, Offset


def test_the_session_epoch_says_what_a_fetch_is() -> None:
    assert context_of(-1) == FetchContext.SESSIONLESS
    assert context_of(0) == FetchContext.FULL
    assert context_of(5) == FetchContext.INCREMENTAL


def test_a_session_goes_on_only_with_the_epoch_that_it_expects() -> None:
    assert check_session(3, 3, True, True) == Error.NONE
    assert check_session(None, 3, True, True) == Error.FETCH_SESSION_ID_NOT_FOUND
    assert check_session(3, 7, True, True) == Error.INVALID_FETCH_SESSION_EPOCH
    assert check_session(3, 3, True, False) == Error.FETCH_SESSION_TOPIC_ID_ERROR


def test_session_epochs_begin_again_at_1() -> None:
    assert [next_session_epoch(epoch) for epoch in (-1, 0, 1, GREATEST_EPOCH)] == [-1, 1, 2, 1]


def test_what_a_client_knows_is_not_told_again() -> None:
    sent = after_sending(Error.NONE, Offset(5), Offset(2))
    assert sent == SentPartition(Offset(5), Offset(2))
    assert not is_news(sent, Error.NONE, False, False, Offset(5), Offset(2))
    assert is_news(sent, Error.NONE, True, False, Offset(5), Offset(2))
    assert is_news(sent, Error.NONE, False, True, Offset(5), Offset(2))
    assert is_news(sent, Error.NONE, False, False, Offset(6), Offset(2))
    assert is_news(sent, Error.NONE, False, False, Offset(5), Offset(3))
    assert is_news(sent, Error.NOT_LEADER_OR_FOLLOWER, False, False, Offset(5), Offset(2))
    assert after_sending(Error.NOT_LEADER_OR_FOLLOWER, Offset(5), Offset(2)).high_watermark == -1
    assert is_news(NOTHING_SENT, Error.NONE, False, False, Offset(0), Offset(0))


def test_an_idle_or_a_smaller_session_makes_room() -> None:
    assert may_evict(last_used=MonotonicMs(0), size=9, now=MonotonicMs(101), least_age=100, new_size=1)
    assert may_evict(last_used=MonotonicMs(100), size=1, now=MonotonicMs(101), least_age=100, new_size=2)
    assert not may_evict(last_used=MonotonicMs(100), size=2, now=MonotonicMs(101), least_age=100, new_size=2)


@pytest.mark.parametrize(
    ("timestamp", "version", "question"),
    [
        (-1, 1, OffsetQuestion.LATEST),
        (-2, 1, OffsetQuestion.EARLIEST),
        (-3, 6, OffsetQuestion.UNSUPPORTED),
        (-3, 7, OffsetQuestion.LARGEST_TIMESTAMP),
        (-4, 7, OffsetQuestion.UNSUPPORTED),
        (-4, 8, OffsetQuestion.EARLIEST),
        (-5, 9, OffsetQuestion.NOTHING),
        (-6, 10, OffsetQuestion.UNSUPPORTED),
        (-6, 11, OffsetQuestion.NOTHING),
        (0, 1, OffsetQuestion.BY_TIMESTAMP),
    ],
)
def test_negative_timestamps_have_a_meaning(timestamp: int, version: int, question: OffsetQuestion) -> None:
    assert judge_timestamp(timestamp, version) == question


def test_only_api_versions_may_be_of_an_unknown_version() -> None:
    assert judge_version(True, False, 3, 2, 5) == VersionVerdict.ANSWER
    assert judge_version(True, False, 6, 2, 5) == VersionVerdict.CLOSE
    assert judge_version(True, True, 6, 0, 5) == VersionVerdict.ANSWER_UNSUPPORTED
    assert judge_version(False, False, 0, 0, 5) == VersionVerdict.CLOSE
    assert [check_frame_size(size, 10) for size in (-1, 0, 10, 11)] == [False, True, True, False]


def test_acks_are_0_1_or_all() -> None:
    assert [check_required_acks(acks).name for acks in (-1, 0, 1)] == ["NONE"] * 3
    assert check_required_acks(2) == Error.INVALID_REQUIRED_ACKS


def test_a_topic_is_named_by_its_id_only_where_brokers_take_that() -> None:
    named, by_id, both, neither = (True, False), (False, True), (True, True), (False, False)
    assert check_named_topics(12, (named, by_id, both, neither)) == Error.NONE
    assert check_named_topics(11, ()) == Error.NONE
    assert check_named_topics(9, (named, named)) == Error.NONE
    for wrong in (by_id, both, neither):
        assert check_named_topics(11, (named, wrong)) == Error.INVALID_REQUEST


def test_a_topic_that_there_is_not_is_told_by_how_it_was_named() -> None:
    assert check_missing_topic(by_id=True, has_valid_name=True) == Error.UNKNOWN_TOPIC_ID
    assert check_missing_topic(by_id=False, has_valid_name=True) == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert check_missing_topic(by_id=False, has_valid_name=False) == Error.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("by_id", [False, True])
def test_a_partition_is_one_of_its_topic(by_id: bool) -> None:
    assert [check_named_partition(2, index, by_id) for index in (0, 1)] == [Error.NONE] * 2
    assert [check_named_partition(2, index, by_id) for index in (-1, 2)] == [Error.UNKNOWN_TOPIC_OR_PARTITION] * 2
    missing = Error.UNKNOWN_TOPIC_ID if by_id else Error.UNKNOWN_TOPIC_OR_PARTITION
    assert check_named_partition(NO_TOPIC, 0, by_id) == missing


def test_there_are_two_isolation_levels() -> None:
    assert [check_isolation_level(level) for level in (0, 1)] == [Error.NONE] * 2
    assert [check_isolation_level(level) for level in (-1, 2, 9)] == [Error.UNKNOWN_SERVER_ERROR] * 3


def test_a_request_that_cannot_be_read_closes_its_connection() -> None:
    assert judge_content(readable=True) == VersionVerdict.ANSWER
    assert judge_content(readable=False) == VersionVerdict.CLOSE


def test_records_that_cannot_be_read_have_no_timestamps() -> None:
    assert UNREADABLE.error == Error.INVALID_RECORD


def test_a_page_begins_at_a_topic_that_is_asked_for() -> None:
    assert check_cursor({"a"}, None) == Error.NONE
    assert check_cursor({"a", "b"}, Cursor("b", 0)) == Error.NONE
    assert check_cursor(set(), Cursor("anything", 3)) == Error.NONE
    assert check_cursor({"a"}, Cursor("b", 0)) == Error.INVALID_REQUEST
    assert check_cursor({"a"}, Cursor("a", -1)) == Error.INVALID_REQUEST


def test_a_page_has_a_partition_at_least() -> None:
    assert [page_size(wanted, 2_000) for wanted in (-1, 0, 1, 5, 3_000)] == [1, 1, 1, 5, 2_000]


def test_one_id_makes_a_request_one_by_ids() -> None:
    assert not counts_by_id(())
    assert not counts_by_id(((True, False), (True, False)))
    assert counts_by_id(((True, False), (True, True)))


def test_entries_without_an_id_do_not_count_beside_one_with_an_id() -> None:
    by_name, by_id, of_none = (True, False), (False, True), (False, False)
    assert entries_that_count((by_name, by_name)) == (0, 1)
    assert entries_that_count((by_name, by_id, of_none, by_id)) == (1, 3)
