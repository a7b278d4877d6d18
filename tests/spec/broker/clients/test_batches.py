"""Refusals of producers' batches, from their headers."""

from typing import Any

import pytest

from kspec.spec.broker.clients.batches import (
    Framing,
    ProduceTerms,
    ReceivedBatch,
    answered_log_start,
    check_all_framings,
    check_batch_of_request,
    check_framing,
    check_one_producer,
    check_received_batch,
    check_request_records,
    check_transactional,
    fails_as_a_whole,
    of_copies,
)
from kspec.spec.values import Error, Offset, ProducerEpoch, ProducerId

GOOD = ReceivedBatch(
    size=100,
    magic=2,
    base_offset=0,
    last_offset_delta=1,
    record_count=2,
    codec=0,
    control=False,
    transactional=False,
    producer_id=ProducerId(-1),
    base_sequence=-1,
    max_timestamp=1000,
    intact=True,
    more=False,
)


@pytest.mark.parametrize(
    ("length", "magic", "whole", "error"),
    [
        (None, 0, False, Error.INVALID_RECORD),
        (13, 2, True, Error.CORRUPT_MESSAGE),
        (-1, 2, True, Error.CORRUPT_MESSAGE),
        (60, 9, True, Error.CORRUPT_MESSAGE),
        (60, -1, True, Error.CORRUPT_MESSAGE),
        (60, 1, True, Error.INVALID_RECORD),
        (60, 2, False, Error.INVALID_RECORD),
        (60, 2, True, Error.NONE),
    ],
)
def test_records_begin_with_a_whole_batch(length: int | None, magic: int, whole: bool, error: Error) -> None:
    assert check_framing(length, magic, whole) == error


def test_a_request_has_one_batch_and_old_ones_no_zstd() -> None:
    assert check_request_records(3, GOOD) == Error.NONE
    assert check_request_records(6, GOOD._replace(codec=4)) == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert check_request_records(6, GOOD._replace(codec=7)) == Error.UNKNOWN_SERVER_ERROR
    assert check_request_records(7, GOOD._replace(codec=4)) == Error.NONE
    assert check_request_records(9, GOOD._replace(more=True)) == Error.INVALID_RECORD
    assert check_request_records(9, GOOD._replace(behind=Error.CORRUPT_MESSAGE)) == Error.CORRUPT_MESSAGE


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, Error.NONE),
        ({"base_offset": 77}, Error.INVALID_RECORD),
        ({"size": 1001}, Error.MESSAGE_TOO_LARGE),
        ({"intact": False}, Error.CORRUPT_MESSAGE),
        ({"codec": 7}, Error.UNKNOWN_SERVER_ERROR),
        ({"last_offset_delta": 9}, Error.INVALID_RECORD),
        ({"last_offset_delta": -1, "record_count": 0}, Error.INVALID_RECORD),
        ({"record_count": -2}, Error.INVALID_RECORD),
        ({"control": True}, Error.INVALID_RECORD),
        ({"producer_id": ProducerId(4)}, Error.INVALID_RECORD),
        ({"producer_id": ProducerId(-4)}, Error.NONE),
        ({"producer_id": ProducerId(4), "base_sequence": 0}, Error.NONE),
        ({"base_offset": 1, "size": 5000, "intact": False}, Error.INVALID_RECORD),
        ({"size": 5000, "intact": False}, Error.MESSAGE_TOO_LARGE),
    ],
)
def test_the_first_error_of_a_batch_counts(change: dict[str, Any], error: Error) -> None:
    assert check_received_batch(GOOD._replace(**change), max_size=1000) == error


def test_a_transactional_batch_needs_a_transaction() -> None:
    assert check_transactional(False, False) == Error.NONE
    assert check_transactional(True, False) == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert check_transactional(True, True) == Error.NONE


def test_all_transactional_batches_of_a_request_are_of_one_producer() -> None:
    one, other = (ProducerId(1), ProducerEpoch(0)), (ProducerId(1), ProducerEpoch(1))
    assert check_one_producer({one}) == check_one_producer(set()) == Error.NONE
    assert check_one_producer({one, other}) == Error.INVALID_PRODUCER_ID_MAPPING


def test_most_errors_of_the_log_come_with_its_start() -> None:
    assert answered_log_start(Error.NONE, Offset(3)) == 3
    assert answered_log_start(Error.INVALID_RECORD, Offset(3)) == 3
    assert answered_log_start(Error.CORRUPT_MESSAGE, Offset(3)) == -1


@pytest.mark.parametrize(
    ("terms", "change", "internal", "error"),
    [
        (ProduceTerms(9, -1, False), {}, False, Error.NONE),
        (ProduceTerms(6, 7, False), {"codec": 4, "transactional": True}, True, Error.UNSUPPORTED_COMPRESSION_TYPE),
        (ProduceTerms(9, 7, False), {"transactional": True}, True, Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ProduceTerms(9, 7, True), {"transactional": True}, True, Error.INVALID_REQUIRED_ACKS),
        (ProduceTerms(9, 7, False), {}, True, Error.INVALID_REQUIRED_ACKS),
        (ProduceTerms(9, 1, False), {}, True, Error.INVALID_TOPIC_EXCEPTION),
    ],
)
def test_the_first_error_before_any_log_is_asked(
    terms: ProduceTerms, change: dict[str, Any], internal: bool, error: Error
) -> None:
    assert check_batch_of_request(terms, GOOD._replace(**change), internal) == error


def test_bytes_that_are_no_batch_fail_the_whole_request() -> None:
    good, cut = Framing(60, 2, True, False), Framing(60, 2, False, False)
    transactional = Framing(60, 2, True, True)
    assert check_all_framings([], False) == Error.NONE
    assert check_all_framings([good, cut, Framing(None, 2, False, False), Framing(60, 1, True, False)], False) == Error.NONE
    assert check_all_framings([good, Framing(13, 2, True, False)], False) == Error.CORRUPT_MESSAGE
    assert check_all_framings([good, Framing(60, 3, True, False)], False) == Error.CORRUPT_MESSAGE
    assert check_all_framings([Framing(2**31 - 13, 2, False, False)], False) == Error.NONE
    assert check_all_framings([Framing(2**31 - 12, 2, False, False)], False) == Error.UNKNOWN_SERVER_ERROR
    assert check_all_framings([good, transactional], False) == Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert check_all_framings([good, transactional, Framing(13, 2, True, False)], True) == Error.NONE


def test_a_batch_that_fails_its_whole_request() -> None:
    assert not fails_as_a_whole(9, GOOD)
    assert fails_as_a_whole(6, GOOD._replace(codec=5))
    assert not fails_as_a_whole(7, GOOD._replace(codec=5))
    assert fails_as_a_whole(9, GOOD._replace(size=50))
    assert not fails_as_a_whole(9, GOOD._replace(size=51))
    assert not fails_as_a_whole(9, GOOD._replace(size=50, more=True))
    assert fails_as_a_whole(9, GOOD._replace(behind=Error.UNKNOWN_SERVER_ERROR))
    assert not fails_as_a_whole(9, GOOD._replace(behind=Error.CORRUPT_MESSAGE))


@pytest.mark.parametrize(
    ("errors", "chosen", "error"),
    [
        ([Error.NONE], 0, Error.NONE),
        ([Error.NONE, Error.NONE], 1, Error.NONE),
        ([Error.INVALID_RECORD, Error.NONE], 1, Error.INVALID_RECORD),
        ([Error.NONE, Error.INVALID_RECORD], 0, Error.INVALID_RECORD),
        ([Error.CORRUPT_MESSAGE, Error.INVALID_RECORD], None, Error.INVALID_RECORD),
    ],
)
def test_of_batches_for_the_same_partition_the_last_right_one_is_appended(
    errors: list[Error], chosen: int | None, error: Error
) -> None:
    assert of_copies(errors) == (chosen, error)
