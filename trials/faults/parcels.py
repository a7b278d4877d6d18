"""Requests and answers on their way between processes, as a proxy sees them: how long each is, and of which API."""

import asyncio
from collections import deque
from dataclasses import dataclass, field

LENGTH = 4


@dataclass(eq=False)
class Parcel:
    """A request on its way from `source` to `target`, or the answer on its way back. `frame`: without its length.

    `fate`: whether it arrives; if it does not, its connection is lost.
    """

    source: str
    target: str
    key: int
    version: int
    frame: bytes
    is_answer: bool = False
    fate: asyncio.Future[bool] = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def release(self) -> None:
        """Let it arrive."""
        if not self.fate.done():
            self.fate.set_result(True)

    def lose(self) -> None:
        """Lose it, and the connection on which it is."""
        if not self.fate.done():
            self.fate.set_result(False)


class ParcelLine:
    """The parcels of one connection, which `source` has opened to `target`."""

    def __init__(self, source: str, target: str) -> None:
        self.source = source
        self.target = target
        self._asked: deque[tuple[int, int]] = deque()

    def request(self, frame: bytes) -> Parcel:
        """A request that comes."""
        key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        self._asked.append((key, version))
        return Parcel(self.source, self.target, key, version, frame)

    def answer(self, frame: bytes) -> Parcel:
        """The answer to the oldest request of the connection: a node answers in order."""
        return Parcel(self.source, self.target, *self._asked.popleft(), frame, is_answer=True)


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    """The next message, without its length. Raises: `IncompleteReadError`, if there is none."""
    length = await reader.readexactly(LENGTH)
    return await reader.readexactly(int.from_bytes(length, "big"))


def with_length(frame: bytes) -> bytes:
    """A message with its length before it."""
    return len(frame).to_bytes(LENGTH, "big") + frame
