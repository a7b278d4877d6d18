"""The clocks of a process, and the one place where a broker or a controller asks what time it is."""

import time

from kspec.spec.values import Instant, MonotonicMs, TimestampMs

LONG_BEFORE_MS = 1 << 40
"""From how long before the machine was started its monotonic clock is counted: 34 years. The system counts from the start
itself; but Kafka's rules take 0 for long ago.
"""


def now() -> Instant:
    """The time by both clocks of this process."""
    return Instant(MonotonicMs(LONG_BEFORE_MS + time.monotonic_ns() // 1_000_000), TimestampMs(time.time_ns() // 1_000_000))
