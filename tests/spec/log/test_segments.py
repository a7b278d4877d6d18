"""The beginning of segments, and their deletion."""

import pytest

from kspec.spec.log.segments import (
    NO_LIMIT,
    ActiveSegment,
    IncomingBatches,
    IndexedBatch,
    Retention,
    StoredSegment,
    continues,
    dates_batch,
    deletable_segments,
    is_too_long,
    must_roll,
    names_batch,
    needs_index_entry,
    new_segment_base,
)
from kspec.spec.values import NO_TIMESTAMP, Offset, TimestampMs

ACTIVE = ActiveSegment(Offset(100), size=900, first_timestamp=1_000, created=TimestampMs(5_000))
SMALL = IncomingBatches(size=100, max_timestamp=1_500, last_offset=Offset(200))


@pytest.mark.parametrize(
    ("segment", "incoming", "now", "rolls"),
    [
        (ACTIVE, SMALL, 9_000, False),
        (ACTIVE, SMALL._replace(size=101), 9_000, True),
        (ACTIVE, SMALL._replace(max_timestamp=2_000), 9_000, False),
        (ACTIVE, SMALL._replace(max_timestamp=2_001), 9_000, True),
        (ACTIVE._replace(first_timestamp=NO_TIMESTAMP), SMALL, 6_000, False),
        (ACTIVE._replace(first_timestamp=NO_TIMESTAMP), SMALL, 6_001, True),
        (ACTIVE._replace(indexes_full=True), SMALL, 9_000, True),
        (ACTIVE, SMALL._replace(last_offset=Offset(100 + 2**31 - 1)), 9_000, False),
        (ACTIVE, SMALL._replace(last_offset=Offset(100 + 2**31)), 9_000, True),
        (ACTIVE._replace(size=0, indexes_full=True), SMALL._replace(size=5_000), 99_000, False),
        (ACTIVE._replace(size=0), SMALL._replace(last_offset=Offset(100 + 2**31)), 9_000, True),
    ],
)
def test_a_segment_is_full(segment: ActiveSegment, incoming: IncomingBatches, now: int, rolls: bool) -> None:
    assert must_roll(segment, incoming, segment_bytes=1_000, segment_ms=1_000, now=TimestampMs(now)) == rolls


def test_where_a_new_segment_begins() -> None:
    assert new_segment_base(Offset(150), SMALL, Offset(190)) == 150
    assert new_segment_base(Offset(150), SMALL._replace(last_offset=Offset(2**40)), Offset(2**40 - 5)) == 2**40 - 5
    assert continues(Offset(150), Offset(150), compacts=False)
    assert not continues(Offset(140), Offset(150), compacts=False)
    assert continues(Offset(140), Offset(150), compacts=True)


SEGMENTS = (
    StoredSegment(Offset(0), 100, 10),
    StoredSegment(Offset(10), 100, 30),
    StoredSegment(Offset(20), 100, 20),
    StoredSegment(Offset(30), 50, 40),
)


def deletable(
    retention: Retention,
    *,
    log_start: int = 0,
    high_watermark: int = 40,
    now: int = 50,
    segments: tuple[StoredSegment, ...] = SEGMENTS,
) -> int:
    return deletable_segments(segments, Offset(log_start), Offset(40), Offset(high_watermark), retention, TimestampMs(now))


def test_segments_below_the_log_start_go() -> None:
    keep = Retention(NO_LIMIT, NO_LIMIT)
    assert [deletable(keep, log_start=start) for start in (0, 9, 10, 29, 30, 40)] == [0, 0, 1, 2, 3, 3]
    assert deletable(Retention(0, 0, deletes=False), log_start=10) == 1


def test_as_many_go_as_keep_the_size() -> None:
    assert [deletable(Retention(NO_LIMIT, size)) for size in (350, 251, 250, 150, 50, 49, 0)] == [0, 0, 1, 2, 3, 3, 4]
    assert deletable(Retention(NO_LIMIT, 0), high_watermark=25) == 2


def test_old_segments_go_up_to_the_first_young_one() -> None:
    assert [deletable(Retention(age, NO_LIMIT)) for age in (41, 39, 25, 19, 9)] == [0, 1, 1, 3, 4]
    assert deletable(Retention(0, NO_LIMIT), high_watermark=39) == 3


def test_an_empty_last_segment_stays() -> None:
    segments = (*SEGMENTS[:3], StoredSegment(Offset(40), 0, 0))
    assert deletable(Retention(0, 0), segments=segments) == 3


def test_size_and_age_add_up() -> None:
    assert deletable(Retention(15, 250)) == 3


def test_index_entries() -> None:
    assert not needs_index_entry(4_096, 4_096)
    assert needs_index_entry(4_097, 4_096)


BATCH = IndexedBatch(Offset(5), Offset(7), 1_000)


@pytest.mark.parametrize(("entry", "base", "right"), [(7, 5, True), (9, 5, True), (6, 5, False), (7, 6, False)])
def test_an_entry_of_an_offset_index_names_the_last_offset_of_its_batch_or_a_later_one(
    entry: int, base: int, right: bool
) -> None:
    assert names_batch(Offset(entry), Offset(base), BATCH) == right


@pytest.mark.parametrize(
    ("timestamp", "entry", "right"),
    [(1_000, 5, True), (1_000, 7, True), (1_000, 4, False), (1_000, 8, False), (999, 7, False)],
)
def test_an_entry_of_a_time_index_has_the_largest_timestamp_of_its_batch(timestamp: int, entry: int, right: bool) -> None:
    assert dates_batch(timestamp, Offset(entry), BATCH) == right


@pytest.mark.parametrize(("gap", "long"), [(2**31 - 1, True), (2**30 - 1, False), (2**30, True)])
def test_a_gap_that_an_index_cannot_span_is_there_on_purpose(gap: int, long: bool) -> None:
    assert is_too_long(Offset(3), Offset(3 + gap)) == long
