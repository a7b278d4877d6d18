"""The answers of one connection: they leave in the order of the requests, whenever they are ready."""

from collections import deque
from collections.abc import Iterator
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

    def put(self, place: int, parts: list[Any]) -> Iterator[list[Any]]:
        """An answer is ready: those that can leave now, in their order. One without parts is none."""
        self._waiting[place - self._first_place] = parts
        while self._waiting and (ready := self._waiting[0]) is not None:
            self._first_place += 1
            self._waiting.popleft()
            yield ready

    def clear(self) -> None:
        """Nobody waits any more."""
        self._waiting.clear()
