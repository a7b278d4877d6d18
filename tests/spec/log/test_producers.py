"""State of producers, by which their next batch is judged, and the time when it is forgotten."""

import pytest

from kspec.spec.log.producers import (
    ProducerBatch,
    ProducerEntry,
    check_batch,
    check_known_producer,
    duplicate_of,
    duplicate_of_last,
    entry_of,
    forget,
    forget_deleted,
    is_expired,
    rebuilt_from,
)
from kspec.spec.values import Error, Offset, ProducerEpoch, ProducerId, TimestampMs


def test_a_producer_expires_when_it_has_been_silent_for_the_whole_time() -> None:
    assert not is_expired(1_000, False, TimestampMs(1_999), 1_000)
    assert is_expired(1_000, False, TimestampMs(2_000), 1_000)
    assert not is_expired(1_000, True, TimestampMs(9_000), 1_000), "its transaction is open"


def test_a_producer_that_is_forgotten_leaves_the_others() -> None:
    known = rebuilt_from(tuple(ProducerBatch(ProducerId(one), ProducerEpoch(0), 0, 1, Offset(one)) for one in (1, 2, 3)))
    assert [entry.producer_id for entry in forget(known, (ProducerId(2), ProducerId(9)))] == [1, 3]
    assert forget(known, ()) == known


def batch(producer: int, epoch: int, first: int, count: int = 1, offset: int = 0) -> ProducerBatch:
    return ProducerBatch(ProducerId(producer), ProducerEpoch(epoch), first, count, Offset(offset))


TWO = rebuilt_from((batch(1, 3, 0, 2), batch(1, 3, 2, 3, 2), batch(5, 0, 7, 1, 5)))
UNKNOWN, KNOWN = entry_of(TWO, ProducerId(3)), entry_of(TWO, ProducerId(1))


def test_each_producer_has_its_own_entry() -> None:
    assert [entry.producer_id for entry in TWO] == [1, 5]
    for producer in (0, 3, 9):
        assert entry_of(TWO, ProducerId(producer)) == ProducerEntry(ProducerId(producer))
    assert (KNOWN.producer_epoch, KNOWN.last_sequence) == (3, 4)
    assert entry_of(TWO, ProducerId(5)).last_sequence == 7


@pytest.mark.parametrize(
    ("sent", "found"),
    [
        (batch(1, 3, 0, 2), 0),
        (batch(1, 3, 2, 3), 2),
        (batch(1, 3, 2, 2), None),
        (batch(1, 3, 3, 2), None),
        (batch(1, 2, 2, 3), None),
        (batch(1, 4, 2, 3), None),
    ],
)
def test_a_duplicate_has_the_same_epoch_and_both_sequence_numbers(sent: ProducerBatch, found: int | None) -> None:
    """`ProducerStateEntry.findDuplicateBatch`, `batchWithSequenceRange`."""
    known = duplicate_of(KNOWN, sent)
    assert (None if known is None else known.base_offset) == found
    of_last = duplicate_of_last(KNOWN, sent)
    assert (None if of_last is None else of_last.base_offset) == (found if found == 2 else None)


@pytest.mark.parametrize(
    ("epoch", "first", "error"),
    [
        (3, 5, Error.NONE),
        (3, 4, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (3, 6, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (4, 0, Error.NONE),
        (4, 5, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (4, 1, Error.OUT_OF_ORDER_SEQUENCE_NUMBER),
        (2, 5, Error.INVALID_PRODUCER_EPOCH),
        (2, 0, Error.INVALID_PRODUCER_EPOCH),
    ],
)
def test_the_next_batch_of_a_known_producer(epoch: int, first: int, error: Error) -> None:
    """`ProducerAppendInfo.checkProducerEpoch`, `checkSequence`."""
    assert check_batch(KNOWN, batch(1, epoch, first)) == error
    assert check_known_producer(KNOWN, batch(1, epoch, first)) == error


@pytest.mark.parametrize(
    ("first", "error"), [(0, Error.NONE), (1, Error.UNKNOWN_PRODUCER_ID), (5, Error.UNKNOWN_PRODUCER_ID)]
)
def test_an_unknown_producer_began_at_0_before_kip_360(first: int, error: Error) -> None:
    """`ProducerAppendInfo.checkSequence` of 1.0 to 2.4; since 2.5 it may begin anywhere."""
    assert check_known_producer(UNKNOWN, batch(3, 0, first)) == error
    assert check_batch(UNKNOWN, batch(3, 0, first)) == Error.NONE


@pytest.mark.parametrize(("start", "left"), [(0, [1, 5]), (4, [1, 5]), (5, [5]), (6, [])])
def test_a_producer_without_records_was_forgotten_up_to_2_3(start: int, left: list[int]) -> None:
    """`ProducerStateManager.isProducerRetained`: the last record of producer 1 has offset 4, that of producer 5 offset 5."""
    assert [entry.producer_id for entry in forget_deleted(TWO, Offset(start))] == left
