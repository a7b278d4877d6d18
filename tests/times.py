"""Times of tests."""

from kspec.spec.values import Instant, MonotonicMs, TimestampMs

YEAR_MS = 365 * 24 * 3_600_000


def at_ms(ms: int) -> Instant:
    """So many milliseconds by both clocks."""
    return Instant(MonotonicMs(ms), TimestampMs(ms))
