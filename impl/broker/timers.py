"""Timers: nobody waits for them here, somebody asks what is due."""

import heapq
from collections.abc import Callable, Iterator
from itertools import count
from typing import Generic, TypeVar

from kspec.spec.values import Instant, MonotonicMs

EffectT = TypeVar("EffectT")

FEW = 1_000
"""So many timers that were cancelled may stay until their time comes."""


class Timer(Generic[EffectT]):
    """An action for which a time has been set; none once it was done, or cancelled."""

    __slots__ = ("action",)

    def __init__(self, action: Callable[[Instant], list[EffectT]]) -> None:
        self.action: Callable[[Instant], list[EffectT]] | None = action


class Timers(Generic[EffectT]):
    """Timers in the order of their times. Kafka: `SystemTimer`."""

    def __init__(self) -> None:
        self._heap: list[tuple[MonotonicMs, int, Timer[EffectT]]] = []
        """Each with its time and its number: of the same time the first one comes first."""
        self._numbers = count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, deadline: MonotonicMs, action: Callable[[Instant], list[EffectT]]) -> Timer[EffectT]:
        """Do something when the time has come (ms)."""
        timer = Timer(action)
        heapq.heappush(self._heap, (deadline, next(self._numbers), timer))
        return timer

    def cancel(self, timer: Timer[EffectT]) -> None:
        """Forget what was to be done. Its place goes with the others' when most are cancelled, or in its time."""
        if timer.action is None:
            return
        timer.action = None
        self._cancelled += 1
        if self._cancelled > max(FEW, len(self._heap) // 2):
            self._heap = [one for one in self._heap if one[2].action is not None]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def next_deadline(self) -> MonotonicMs | None:
        """The time at which `due` has something to do next (ms)."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: Instant) -> Iterator[list[EffectT]]:
        """Do what is due, one after the other; the effects of each are to be carried out before the next one is asked.

        So whoever decides something because the time has come knows what others have decided at the same time.
        """
        while self._heap and self._heap[0][0] <= now.monotonic:
            _, _, timer = heapq.heappop(self._heap)
            action, timer.action = timer.action, None
            if action is None:
                self._cancelled -= 1
                yield []
            else:
                yield action(now)
