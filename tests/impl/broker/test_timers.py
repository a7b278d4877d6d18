"""Timers: in order, once, and without what was cancelled; when a connection counts as idle."""

import asyncio
import socket
import time
from collections.abc import Callable
from typing import Any, cast

from kspec.impl.broker.timers import FEW, Timers
from kspec.impl.server.network.connection import Connection
from kspec.spec.values import Instant, MonotonicMs
from tests.times import at_ms


def telling(name: str) -> Callable[[Instant], list[str]]:
    return lambda now: [f"{name} at {now.monotonic}"]


def done(timers: Timers[str], now: Instant) -> list[str]:
    return [effect for effects in timers.due(now) for effect in effects]


def test_what_is_due_is_done_once_and_in_order() -> None:
    timers: Timers[str] = Timers()
    assert timers.next_deadline() is None
    for deadline, name in ((30, "c"), (10, "a"), (20, "b"), (10, "after a")):
        timers.at(MonotonicMs(deadline), telling(name))
    assert timers.next_deadline() == 10
    assert done(timers, at_ms(9)) == []
    assert done(timers, at_ms(20)) == ["a at 20", "after a at 20", "b at 20"]
    assert done(timers, at_ms(20)) == []
    assert done(timers, at_ms(99)) == ["c at 99"]


def test_who_is_asked_next_knows_what_came_of_the_one_before() -> None:
    """Two decisions that are due at the same time are not both made on what was known before the first."""
    timers: Timers[int] = Timers()
    known = [0]
    for _ in range(3):
        timers.at(MonotonicMs(1), lambda now: [known[-1] + 1])
    for effects in timers.due(at_ms(1)):
        known += effects
    assert known == [0, 1, 2, 3]


def test_what_is_cancelled_is_not_done_and_does_not_pile_up() -> None:
    timers: Timers[str] = Timers()
    kept = [timers.at(MonotonicMs(number), telling(str(number))) for number in range(3)]
    timers.cancel(kept[1])
    timers.cancel(kept[1])
    assert done(timers, at_ms(1)) == ["0 at 1"]
    timers.cancel(kept[0])
    for number in range(10 * FEW):
        timers.cancel(timers.at(MonotonicMs(2**40 + number), telling("never")))
        assert len(timers) <= FEW + 2
    assert done(timers, at_ms(2)) == ["2 at 2"]


def test_a_connection_that_has_not_asked_yet_is_not_idle() -> None:
    """It is closed after `connections.max.idle.ms` from its start on, and not before: a monotonic clock begins anywhere."""
    loop = asyncio.new_event_loop()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        before = time.monotonic()
        connection = Connection(loop, client, cast(Any, None), ("127.0.0.1", 1))
        assert before <= connection.last_used <= time.monotonic()
    loop.close()
