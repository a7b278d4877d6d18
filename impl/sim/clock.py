"""Virtual time: what is to happen, in its order. Nothing waits; the time jumps from one event to the next."""

from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any

Event = Callable[..., None]
"""It happens with what was given for it."""

START_MS = 1_700_000_000_000
"""When each run begins (ms since 1970)."""


class Clock:
    """The time in milliseconds, and the events to come. Those of the same time happen in the order of their making."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self.now_ms = start_ms
        self._events: list[tuple[int, int, Event, tuple[Any, ...]]] = []
        self._numbers = count()

    def at(self, time_ms: int, event: Event, *given: Any) -> None:
        """Let something happen at a time, or now if that is over."""
        now_ms = self.now_ms
        heappush(self._events, (time_ms if time_ms > now_ms else now_ms, next(self._numbers), event, given))

    def new_number(self) -> int:
        """The place, among those of the same time, of an event that may be set later."""
        return next(self._numbers)

    def at_place(self, time_ms: int, number: int, event: Event, *given: Any) -> None:
        """Let something happen at a time to come, in the place that was kept for it."""
        heappush(self._events, (time_ms, number, event, given))

    def after(self, delay_ms: int, event: Event, *given: Any) -> None:
        """Let something happen after a while."""
        self.at(self.now_ms + delay_ms, event, *given)

    def next_event(self) -> bool:
        """Let the next event happen; whether there was one."""
        if not self._events:
            return False
        self.now_ms, _, event, given = heappop(self._events)
        event(*given)
        return True
