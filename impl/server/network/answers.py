"""The responses of one connection, which are sent in the order of the requests, whenever they are ready."""

from collections import deque

from kspec.impl.wire.writing import Part


class Answers:
    """The requests without a response, or whose response waits for an earlier one."""

    __slots__ = ("_first_place", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[list[Part] | None] = deque()
        self._first_place = 0

    def __len__(self) -> int:
        return len(self._waiting)

    def new_place(self) -> int:
        """A place for the response to the request that has just arrived."""
        self._waiting.append(None)
        return self._first_place + len(self._waiting) - 1

    def put(self, place: int, parts: list[Part]) -> list[list[Part]]:
        """Take a response; all responses that can be sent now, in their order. One without parts is none."""
        waiting = self._waiting
        waiting[place - self._first_place] = parts
        ready = []
        while waiting and (first := waiting[0]) is not None:
            ready.append(first)
            waiting.popleft()
        self._first_place += len(ready)
        return ready

    def clear(self) -> None:
        """Drop all requests."""
        self._waiting.clear()
