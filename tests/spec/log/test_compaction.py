"""Records that compaction keeps."""

import pytest

from kspec.spec.log.compaction import (
    DirtySegment,
    EmptyBatch,
    SegmentSize,
    empty_batch,
    first_dirty_offset,
    first_uncleanable_offset,
    group,
    group_by_offsets_of_all,
    is_cleanable,
    keeps_record,
    new_delete_horizon,
)
from kspec.spec.values import UNKNOWN_OFFSET, Offset, TimestampMs


def test_where_the_dirty_part_begins() -> None:
    assert [first_dirty_offset(Offset(offset), Offset(5), Offset(20)) for offset in (-1, 4, 5, 20, 21)] == [5, 5, 5, 20, 5]


@pytest.mark.parametrize(
    ("stable_end", "lag", "end"), [(100, 0, 30), (25, 0, 25), (100, 10, 30), (100, 11, 20), (100, 21, 10), (5, 21, 5)]
)
def test_where_the_cleanable_part_ends(stable_end: int, lag: int, end: int) -> None:
    dirty = [DirtySegment(Offset(10), 80), DirtySegment(Offset(20), 90)]
    assert first_uncleanable_offset(Offset(stable_end), Offset(30), dirty, lag, now=TimestampMs(100)) == end


@pytest.mark.parametrize(
    ("clean", "dirty", "oldest", "worth"),
    [(50, 50, 100, False), (49, 51, 100, True), (0, 0, 0, False), (99, 1, 40, False), (99, 1, 39, True), (99, 1, -1, False)],
)
def test_a_log_is_worth_compacting(clean: int, dirty: int, oldest: int, worth: bool) -> None:
    assert is_cleanable(clean, dirty, 0.5, oldest, max_lag=60, now=TimestampMs(100)) == worth


@pytest.mark.parametrize(
    ("offset", "latest", "key", "value", "horizon", "stays"),
    [
        (5, 5, True, True, -1, True),
        (5, 6, True, True, -1, False),
        (5, UNKNOWN_OFFSET, True, True, -1, True),
        (5, UNKNOWN_OFFSET, False, True, -1, False),
        (10, 99, False, False, 0, True),
        (5, 5, True, False, -1, True),
        (5, 5, True, False, 101, True),
        (5, 5, True, False, 100, False),
        (5, 5, True, True, 100, True),
    ],
)
def test_a_record_stays(offset: int, latest: int, key: bool, value: bool, horizon: int, stays: bool) -> None:
    assert keeps_record(Offset(offset), Offset(latest), key, value, Offset(10), horizon, now=TimestampMs(100)) == stays


def test_an_empty_batch_stays_for_its_producer_and_before_what_is_not_compacted() -> None:
    assert empty_batch(Offset(5), Offset(5), Offset(9)) is EmptyBatch.STAYS
    assert empty_batch(Offset(5), Offset(6), Offset(9)) is EmptyBatch.GOES
    assert empty_batch(Offset(8), UNKNOWN_OFFSET, Offset(9)) is EmptyBatch.STAYS
    assert empty_batch(Offset(7), UNKNOWN_OFFSET, Offset(9)) is EmptyBatch.GOES
    assert empty_batch(Offset(-1), UNKNOWN_OFFSET, Offset(9)) is EmptyBatch.GOES


def test_the_delete_horizon_is_set_once() -> None:
    assert new_delete_horizon(-1, True, TimestampMs(100), 50) == 150
    assert new_delete_horizon(120, True, TimestampMs(100), 50) == 120
    assert new_delete_horizon(-1, False, TimestampMs(100), 50) == -1


def test_segments_are_grouped_by_size_entries_and_offsets() -> None:
    def sizes(*wanted: tuple[int, int, int]) -> tuple[SegmentSize, ...]:
        ends = [end for end, _, _ in wanted]
        return tuple(
            SegmentSize(Offset(start), Offset(end), size, entries)
            for start, (end, size, entries) in zip([0, *ends], wanted, strict=False)
        )

    assert group((), 100, 10, 1_000) == ()
    assert group(sizes((10, 60, 1), (20, 40, 1), (30, 1, 1)), 100, 10, 1_000) == (2, 1)
    assert group(sizes((10, 10, 6), (20, 10, 5), (30, 10, 5)), 100, 10, 1_000) == (1, 2)
    assert group(sizes((500, 10, 1), (1_002, 10, 1), (1_003, 10, 1)), 100, 10, 1_000) == (1, 2)
    assert group(sizes((500, 10, 1), (1_002, 0, 0)), 100, 10, 1_000) == (2,)
    assert group_by_offsets_of_all(sizes((500, 10, 1), (1_002, 0, 0)), 100, 10, 1_000) == (1, 1)
    assert group_by_offsets_of_all(sizes((500, 10, 1), (1_001, 0, 0)), 100, 10, 1_000) == (2,)
    assert group(sizes((10, 200, 1), (20, 1, 1)), 100, 10, 1_000) == (1, 1)
