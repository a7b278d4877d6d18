"""The times that all runners keep to, in milliseconds."""

from typing import NamedTuple


class RunnerTiming(NamedTuple):
    """Times of a runner.

    `retry_pause_ms`: between an answer with an error that is retried and the next try. There are as many tries as the limit
    of a step has room for. `later_pause_ms`: after a request that is answered later, so that other clients' requests come
    after it. `quiet_ms`: how long an answer that must not come is waited for at the end. `step_ms`: the limit of a step,
    unless the user sets another one.
    """

    retry_pause_ms: int = 50
    later_pause_ms: int = 100
    quiet_ms: int = 300
    step_ms: int = 10_000


TIMING = RunnerTiming()
