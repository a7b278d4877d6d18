"""A log with its high watermark: how a follower's moves, and what truncation makes of it."""

import pytest
from hypothesis import given

from kspec.spec.log.local_log import follower_high_watermark, high_watermark_after_truncation
from kspec.spec.log.record_log import RecordLog
from kspec.spec.values import Epoch, Offset, Record
from tests.spec.strategies import offsets, record_logs

LOG = RecordLog((Record(1, Epoch(3)), Record(2, Epoch(3)), Record(3, Epoch(5))))


@pytest.mark.parametrize(("leaders", "own"), [(0, 0), (2, 2), (3, 3), (4, 3)])
def test_a_followers_is_the_leaders_as_far_as_its_log_goes(leaders: int, own: int) -> None:
    assert follower_high_watermark(LOG, Offset(leaders)) == own


@pytest.mark.parametrize(("high_watermark", "end", "after"), [(2, 3, 2), (2, 2, 2), (2, 1, 1), (2, 0, 0), (0, 3, 0)])
def test_truncation_lowers_it_to_the_log_end_at_most(high_watermark: int, end: int, after: int) -> None:
    assert high_watermark_after_truncation(Offset(high_watermark), Offset(end)) == after


@given(record_logs(), offsets, offsets)
def test_a_truncated_log_never_ends_before_its_high_watermark(
    log: RecordLog, high_watermark: Offset, offset: Offset
) -> None:
    truncated = log.truncate_to(offset)
    after = high_watermark_after_truncation(high_watermark, truncated.end_offset)
    assert after <= truncated.end_offset
    assert after <= high_watermark


def test_a_follower_whose_log_starts_later_does_not_take_a_high_watermark_before_its_start() -> None:
    log = RecordLog((), Offset(5))
    assert follower_high_watermark(log, Offset(3)) == 5
