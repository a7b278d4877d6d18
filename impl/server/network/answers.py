"""The answers of one connection: they leave in the order of the requests, whenever they are ready."""

from collections import deque
from typing import Any


class Answers:
    """The requests that have no answer yet, or whose answer waits for an earlier one."""

    __slots__ = ("_first_place", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[list[Any] | None] = deque()
        self._first_place = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def new_place(self) -> int:
        """A place for the answer of the request that has just come."""
        self._waiting.append(None)
        return self._first_place + len(self._waiting) - 1

    def put(self, place: int, parts: list[Any]) -> list[list[Any]]:
        """An answer is ready: those that can leave now, in their order. One without parts is none."""
        waiting = self._waiting
        waiting[place - self._first_place] = parts
        ready = []
        while waiting and (first := waiting[0]) is not None:
            ready.append(first)
            waiting.popleft()
        self._first_place += len(ready)
        return ready

    def clear(self) -> None:
        """Nobody waits any more."""
        self._waiting.clear()
