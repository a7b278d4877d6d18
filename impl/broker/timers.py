"""What is to be done at a time: nobody waits for it here, somebody asks what is due."""

import heapq
from collections.abc import Callable
from itertools import count
from typing import Any, Generic, TypeAlias, TypeVar

EffectT = TypeVar("EffectT")

FEW = 1_000
"""So many timers that were cancelled may stay until their time comes."""

Timer: TypeAlias = list[Any]
"""When it is due (ms), a number, and what is to be done then."""


def nothing(now: int) -> list[Any]:
    """What a timer does that was cancelled."""
    return []


class Timers(Generic[EffectT]):
    """Timers in the order of their times. Kafka: `SystemTimer`."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._numbers = count()
        self._cancelled = 0

    def __len__(self) -> int:
        return len(self._heap)

    def at(self, deadline: int, action: Callable[[int], list[EffectT]]) -> Timer:
        """Do something when the time has come (ms)."""
        timer: Timer = [deadline, next(self._numbers), action]
        heapq.heappush(self._heap, timer)
        return timer

    def cancel(self, timer: Timer) -> None:
        """Forget what was to be done. Its place goes with the others' when most are cancelled, or in its time."""
        if timer[2] is nothing:
            return
        timer[2] = nothing
        self._cancelled += 1
        if self._cancelled > max(FEW, len(self._heap) // 2):
            self._heap = [one for one in self._heap if one[2] is not nothing]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def next_deadline(self) -> int | None:
        """When `due` has something to do next (ms)."""
        return self._heap[0][0] if self._heap else None

    def due(self, now: int) -> list[EffectT]:
        """Do what is due; the effects of all of it."""
        effects: list[EffectT] = []
        while self._heap and self._heap[0][0] <= now:
            timer = heapq.heappop(self._heap)
            action, timer[2] = timer[2], nothing
            self._cancelled -= action is nothing
            effects += action(now)
        return effects
