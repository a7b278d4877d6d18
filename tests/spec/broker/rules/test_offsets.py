"""Records found by their timestamps, which may be equal, and go back."""

from kspec.spec.broker.rules.offsets import DatedRecord, first_from, with_largest_timestamp
from kspec.spec.values import Offset

RECORDS = [DatedRecord(Offset(5 + number), timestamp) for number, timestamp in enumerate((10, 30, 20, 30, 5))]


def test_the_first_record_that_is_no_older_is_found() -> None:
    found = [first_from(RECORDS, timestamp) for timestamp in (5, 10, 11, 30, 31)]
    assert [one.offset if one else None for one in found] == [5, 5, 6, 6, None]


def test_of_equal_largest_timestamps_the_first_counts() -> None:
    assert with_largest_timestamp(RECORDS) == DatedRecord(Offset(6), 30)
    assert with_largest_timestamp([]) is None
