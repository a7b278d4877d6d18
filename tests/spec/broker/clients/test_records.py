"""Refusals of batches because of the records in them, and the form in which others are stored."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kspec.spec.broker.clients.batches import BatchLimits
from kspec.spec.broker.clients.records import (
    RecordFault,
    RecordsChecked,
    StoredTimes,
    check_records,
    check_stored_size,
    error_of_faults,
    is_rewritten,
    is_skimmed,
    may_have_faults,
    record_fault,
    stored_codec,
    stored_times,
)
from kspec.spec.log.found_records import FoundRecord, ReaderEnding, RecordsFound
from kspec.spec.values import Error, TimestampMs
from tests.spec.broker.clients.test_batches import GOOD

NOW = TimestampMs(100_000)
LIMITS = BatchLimits(1000, before_max=500, after_max=50)
COMPACTED, STAMPED = LIMITS._replace(compacted=True), LIMITS._replace(create_time=False)
FOUND = RecordsFound(ReaderEnding.COMPLETE, 2, oldest=NOW, newest=NOW)
RECORD = FoundRecord(0, 0, NOW, True)
NO_KEY, RANGE, BY_PRODUCER = RecordFault.NO_KEY, RecordFault.TIMESTAMP_OUT_OF_RANGE, RecordFault.STAMPED_BY_PRODUCER


def nobody_asks() -> Iterable[FoundRecord]:
    raise AssertionError("the records are not looked at one by one")


@pytest.mark.parametrize(
    ("batch", "found", "limits", "error"),
    [
        ({}, {}, {}, Error.NONE),
        ({}, {"reading": ReaderEnding.MALFORMED}, {}, Error.INVALID_RECORD),
        ({}, {"reading": ReaderEnding.UNREADABLE}, {}, Error.UNKNOWN_SERVER_ERROR),
        ({}, {"shortest": -1, "longest": 9999}, {"max_decompressed": 100}, Error.NONE),
        ({"codec": 1}, {"shortest": -1, "longest": 10}, {}, Error.INVALID_RECORD),
        ({"codec": 1}, {"longest": 100}, {"max_decompressed": 100}, Error.NONE),
        ({"codec": 1}, {"longest": 101}, {"max_decompressed": 100}, Error.INVALID_RECORD),
        ({}, {"without_key": 2}, {}, Error.NONE),
        ({}, {"consecutive": False}, {}, Error.NONE),
        ({"codec": 1}, {"consecutive": False}, {}, Error.UNKNOWN_SERVER_ERROR),
        ({"codec": 1}, {"consecutive": False}, {"stored_codec": 1}, Error.UNKNOWN_SERVER_ERROR),
        ({"codec": 1}, {"consecutive": False}, {"stored_codec": 0}, Error.NONE),
        ({"codec": 1}, {"record_count": 2**18}, {"stored_codec": 0}, Error.NONE),
        ({"codec": 1}, {"record_count": 2**18 + 1}, {"stored_codec": 0}, Error.UNKNOWN_SERVER_ERROR),
        ({"codec": 1}, {"record_count": 2**18 + 1}, {}, Error.NONE),
        ({}, {"consecutive": False}, {"stored_codec": 4}, Error.NONE),
        ({}, {"oldest": -5, "newest": -5}, {"before_max": 2**63 - 1}, Error.NONE),
        ({}, {"oldest": -5, "newest": -5}, {"before_max": 2**63 - 1, "stored_codec": 4}, Error.UNKNOWN_SERVER_ERROR),
    ],
)
def test_all_records_together(batch: dict[str, Any], found: dict[str, Any], limits: dict[str, Any], error: Error) -> None:
    given_limits = LIMITS._replace(**limits)
    checked = check_records(GOOD._replace(**batch), FOUND._replace(**found), given_limits, NOW, nobody_asks)
    assert checked == RecordsChecked(error)


@pytest.mark.parametrize(
    ("record", "stamped", "limits", "fault"),
    [
        (RECORD, False, LIMITS, None),
        (RECORD._replace(has_key=False), False, LIMITS, None),
        (RECORD._replace(has_key=False), False, COMPACTED, NO_KEY),
        (RECORD._replace(timestamp=NOW - 500), False, LIMITS, None),
        (RECORD._replace(timestamp=NOW - 501), False, LIMITS, RANGE),
        (RECORD._replace(timestamp=NOW + 50), False, LIMITS, None),
        (RECORD._replace(timestamp=NOW + 51), False, LIMITS, RANGE),
        (RECORD._replace(timestamp=NOW + 51), False, STAMPED, None),
        (RECORD._replace(timestamp=NOW + 51, has_key=False), False, COMPACTED, NO_KEY),
        (RECORD._replace(timestamp=-1), False, LIMITS, None),
        (RECORD._replace(timestamp=-2), False, LIMITS, RANGE),
        (RECORD, True, LIMITS, RANGE),
        (RECORD, True, STAMPED, BY_PRODUCER),
    ],
)
def test_one_record(record: FoundRecord, stamped: bool, limits: BatchLimits, fault: RecordFault | None) -> None:
    assert record_fault(GOOD._replace(stamped=stamped, max_timestamp=1000), record, limits, NOW) == fault


def test_a_batch_stamped_by_its_producer_has_one_time() -> None:
    stamped = GOOD._replace(stamped=True, max_timestamp=NOW)
    assert check_records(stamped, FOUND._replace(oldest=0, newest=0), LIMITS, NOW, lambda: [RECORD]) == (Error.NONE, ())
    timeless = GOOD._replace(stamped=True, max_timestamp=-1)
    assert record_fault(timeless, RECORD, LIMITS, NOW) == BY_PRODUCER
    assert record_fault(timeless._replace(max_timestamp=NOW), RECORD._replace(timestamp=3), LIMITS, NOW) is None


def test_a_time_counts_before_a_key() -> None:
    assert error_of_faults([]) == Error.NONE
    assert error_of_faults([NO_KEY, NO_KEY]) == Error.INVALID_RECORD
    assert error_of_faults([NO_KEY, RANGE]) == Error.INVALID_TIMESTAMP
    assert error_of_faults([BY_PRODUCER]) == Error.INVALID_TIMESTAMP


RECORDS = st.lists(
    st.tuples(st.sampled_from([-5, -1, 0, NOW - 501, NOW - 500, NOW, NOW + 50, NOW + 51]), st.booleans()),
    min_size=1,
    max_size=4,
)


@given(
    RECORDS, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([-1, 3, NOW]), st.sampled_from([500, 2**63 - 1])
)
def test_looking_at_all_together_hides_no_fault(
    records: list[tuple[int, bool]], stamped: bool, compacted: bool, create_time: bool, largest: int, before_max: int
) -> None:
    """Whether records have to be looked at one by one is told from all together, and no refused one is missed."""
    each = [FoundRecord(place, place, time, has_key) for place, (time, has_key) in enumerate(records)]
    times = [time for time, _ in records if time != -1] or [-1]
    found = RecordsFound(
        ReaderEnding.COMPLETE,
        len(each),
        sum(not has_key for _, has_key in records),
        sum(time == -1 for time, _ in records),
        min(times),
        max(times),
    )
    batch = GOOD._replace(stamped=stamped, max_timestamp=largest)
    limits = LIMITS._replace(compacted=compacted, create_time=create_time, before_max=before_max)
    faults = tuple((one, fault) for one in each if (fault := record_fault(batch, one, limits, NOW)) is not None)
    expected = error_of_faults(fault for _, fault in faults)
    assert check_records(batch, found, limits, NOW, lambda: each) == RecordsChecked(expected, faults)


def test_the_codec_of_a_stored_batch() -> None:
    assert [stored_codec(1, None), stored_codec(1, 0), stored_codec(0, 4)] == [1, 0, 4]
    assert [is_skimmed(0, None), is_skimmed(1, None), is_skimmed(1, 1), is_skimmed(1, 4)] == [False, True, True, False]
    assert not is_rewritten(GOOD, LIMITS)
    assert is_rewritten(GOOD, LIMITS._replace(stored_codec=3))


def test_the_size_of_a_stored_batch() -> None:
    limits = LIMITS._replace(segment_size=2000)
    assert check_stored_size(1500, False, limits) == Error.NONE
    assert check_stored_size(1000, True, limits) == Error.NONE
    assert check_stored_size(1001, True, limits) == Error.MESSAGE_TOO_LARGE
    assert check_stored_size(2001, False, limits) == Error.RECORD_LIST_TOO_LARGE


def test_the_times_of_a_stored_batch() -> None:
    newest = FOUND._replace(newest=NOW + 7)
    assert stored_times(GOOD, newest, LIMITS, NOW) == StoredTimes(False, NOW + 7)
    assert stored_times(GOOD, newest, STAMPED, NOW) == StoredTimes(True, NOW)
    assert stored_times(GOOD, FOUND._replace(oldest=-9, newest=-5), LIMITS, NOW) == StoredTimes(False, -1)
    assert stored_times(GOOD._replace(stamped=True, max_timestamp=3), newest, LIMITS, NOW) == StoredTimes(False, 3)


@pytest.mark.parametrize(
    ("times", "may"),
    [((-1, -1), False), ((-1, NOW + 50), False), ((-1, NOW + 51), True), ((NOW - 500, -1), False), ((NOW - 501, -1), True)],
)
def test_records_without_a_time_are_not_too_far(times: tuple[int, int], may: bool) -> None:
    oldest, newest = times
    assert may_have_faults(GOOD, FOUND._replace(oldest=oldest, newest=newest), LIMITS, NOW) == may
