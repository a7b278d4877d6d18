"""The rules of replication throttles: which replicas, how many bytes, and who is held back."""

import pytest

from kspec.spec.broker.rules.throttling import (
    Quota,
    Sample,
    count,
    is_exceeded,
    lag_of,
    may_hold_back,
    names_replica,
    rate_in_force,
)
from kspec.spec.values import BrokerId, MonotonicMs, Offset

QUOTA = Quota(rate=1_000, window_ms=1_000, windows=11)
ONE = BrokerId(1)


@pytest.mark.parametrize(
    ("replicas", "named"),
    [("*", True), ("0:1", True), ("3:2, 0:1", True), ("0:2,1:1", False), ("0:11", False), ("", False)],
)
def test_a_list_names_replicas_by_partition_and_broker(replicas: str, named: bool) -> None:
    assert names_replica(replicas, 0, ONE) == named


@pytest.mark.parametrize(
    ("of_broker", "of_all", "rate"), [(1, 2, 1), (0, 2, 0), (None, 2, 2), (None, 0, 0), (None, None, 3), (1, None, 1)]
)
def test_a_brokers_own_rate_goes_before_that_of_all_and_both_before_the_one_at_the_start(
    of_broker: int | None, of_all: int | None, rate: int
) -> None:
    assert rate_in_force(of_broker, of_all, at_start=3) == rate


def test_bytes_of_a_window_are_one_sample() -> None:
    samples = count(QUOTA, count(QUOTA, (), 10, MonotonicMs(5_000)), 20, MonotonicMs(5_999))
    assert samples == (Sample(MonotonicMs(5_000), 30),)
    assert count(QUOTA, samples, 5, MonotonicMs(6_000)) == (Sample(MonotonicMs(5_000), 30), Sample(MonotonicMs(6_000), 5))


def test_bytes_are_counted_in_the_present_sample_and_older_ones_stay() -> None:
    samples = count(QUOTA, count(QUOTA, (), 10, MonotonicMs(0)), 20, MonotonicMs(1_000))
    assert count(QUOTA, samples, 5, MonotonicMs(1_001)) == (Sample(MonotonicMs(0), 10), Sample(MonotonicMs(1_000), 25))


def test_a_sample_counts_as_long_as_all_windows_last() -> None:
    samples = count(QUOTA, (), 10, MonotonicMs(0))
    assert count(QUOTA, samples, 1, MonotonicMs(10_999)) == (Sample(MonotonicMs(0), 10), Sample(MonotonicMs(10_999), 1))
    assert count(QUOTA, samples, 1, MonotonicMs(11_000)) == (Sample(MonotonicMs(11_000), 1),)


@pytest.mark.parametrize(("size", "now", "exceeded"), [(1_000, 0, False), (1_001, 0, True), (1_001, 1_001, False)])
def test_a_rate_is_measured_over_a_window_at_least(size: int, now: int, exceeded: bool) -> None:
    assert is_exceeded(QUOTA, count(QUOTA, (), size, MonotonicMs(0)), MonotonicMs(now)) == exceeded


def test_nothing_counted_is_nothing_exceeded_even_at_rate_0() -> None:
    assert not is_exceeded(QUOTA._replace(rate=0), (), MonotonicMs(0))
    assert is_exceeded(QUOTA._replace(rate=0), count(QUOTA, (), 1, MonotonicMs(0)), MonotonicMs(0))


def test_a_debt_is_paid_by_waiting() -> None:
    """Five seconds' worth of bytes at once: for five seconds nothing more, then again."""
    samples = count(QUOTA, (), 5_000, MonotonicMs(0))
    assert [is_exceeded(QUOTA, samples, MonotonicMs(now)) for now in (0, 4_999, 5_000, 10_999)] == [True, True, False, False]


def test_only_a_follower_with_a_lag_is_held_back() -> None:
    assert lag_of(Offset(7), Offset(5)) == 2
    assert lag_of(Offset(5), Offset(7)) == 0
    assert may_hold_back(throttled=True, quota_exceeded=True, lag=2)
    assert may_hold_back(throttled=True, quota_exceeded=True, lag=None)
    assert not may_hold_back(throttled=True, quota_exceeded=True, lag=0)
    assert not may_hold_back(throttled=False, quota_exceeded=True, lag=2)
    assert not may_hold_back(throttled=True, quota_exceeded=False, lag=2)
