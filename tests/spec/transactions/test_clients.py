"""Errors as producers take them, and the numbers of their records."""

import pytest

from kspec.spec.log.producers import LAST_SEQUENCE
from kspec.spec.messages.produce import ACKS_NONE
from kspec.spec.transactions.clients import (
    RETRIABLE,
    ErrorMeaning,
    ProducerNumbers,
    is_done_when_sent,
    meaning_for_records,
    meaning_for_transaction,
    numbered_anew,
    numbered_behind,
    sends_again,
)
from kspec.spec.values import LAST_PRODUCER_EPOCH, Error, ProducerEpoch, ProducerId

ID, FRESH = ProducerId(3), ProducerId(4)


def test_a_producer_with_retries_sends_again_what_goes_away_by_itself() -> None:
    for error in Error:
        assert sends_again(error, retries=True) is (error in RETRIABLE)
        assert not sends_again(error, retries=False)


@pytest.mark.parametrize(
    ("error", "records", "transaction"),
    [
        (Error.NONE, ErrorMeaning.DONE, ErrorMeaning.DONE),
        (Error.NOT_COORDINATOR, ErrorMeaning.AGAIN, ErrorMeaning.AGAIN),
        (Error.INVALID_PRODUCER_EPOCH, ErrorMeaning.ABORT, ErrorMeaning.FATAL),
        (Error.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorMeaning.ABORT, ErrorMeaning.FATAL),
        (Error.TRANSACTION_ABORTABLE, ErrorMeaning.ABORT, ErrorMeaning.ABORT),
        (Error.PRODUCER_FENCED, ErrorMeaning.FATAL, ErrorMeaning.FATAL),
        (Error.INVALID_TXN_STATE, ErrorMeaning.FATAL, ErrorMeaning.FATAL),
    ],
)
def test_the_meaning_of_an_error(error: Error, records: ErrorMeaning, transaction: ErrorMeaning) -> None:
    assert meaning_for_records(error) == records
    assert meaning_for_transaction(error) == transaction


def test_nobody_waits_for_an_answer_without_acknowledgements() -> None:
    assert is_done_when_sent(ACKS_NONE)
    assert not any(is_done_when_sent(acks) for acks in (1, -1))


def test_numbers_go_on_behind_a_record_and_begin_anew_after_a_failure() -> None:
    second = numbered_behind(ProducerNumbers(ID))
    assert second == ProducerNumbers(ID, ProducerEpoch(0), 1)
    assert numbered_anew(second, FRESH) == ProducerNumbers(ID, ProducerEpoch(1), 0)
    assert numbered_behind(ProducerNumbers(ID, sequence=LAST_SEQUENCE)).sequence == 0
    last = ProducerNumbers(ID, LAST_PRODUCER_EPOCH, 7)
    assert numbered_anew(last, FRESH) == ProducerNumbers(FRESH, ProducerEpoch(0), 0)
    before = ProducerNumbers(ID, ProducerEpoch(LAST_PRODUCER_EPOCH - 1), 7)
    assert numbered_anew(before, FRESH) == ProducerNumbers(ID, LAST_PRODUCER_EPOCH, 0)
