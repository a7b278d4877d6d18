"""A connection to the target, with a time limit for every answer. Nothing that comes is trusted."""

import asyncio
import struct
from types import TracebackType
from typing import Self

MOST_BYTES = 64 << 20
"""The longest answer that is read."""

LENGTH = struct.Struct(">i")


class NoAnswerError(Exception):
    """No answer that can be read: one line that says what came instead."""


class ClosedError(NoAnswerError):
    """The target has closed the connection, or does not take one."""


class SlowError(NoAnswerError):
    """Nothing came within the time limit."""


class ClientConnection:
    """One connection of a client. Answers come in the order of the requests."""

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._address = (host, port)
        self._seconds = seconds
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._correlation = 0

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect. Raises: `NoAnswerError`."""
        try:
            self._streams = await asyncio.wait_for(asyncio.open_connection(*self._address), self._seconds)
        except TimeoutError:
            raise SlowError(f"it does not take a connection within {self._seconds:g} s") from None
        except OSError as error:
            raise ClosedError(f"it does not take a connection: {error.strerror or error}") from None

    async def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None

    def next_correlation(self) -> int:
        """The number of the next request."""
        self._correlation += 1
        return self._correlation

    async def send(self, data: bytes) -> None:
        """Send bytes. Raises: `NoAnswerError`."""
        assert self._streams is not None, "the connection is open"
        try:
            self._streams[1].write(data)
            await asyncio.wait_for(self._streams[1].drain(), self._seconds)
        except TimeoutError:
            raise SlowError(f"it does not read a request within {self._seconds:g} s") from None
        except OSError:
            raise ClosedError("it has closed the connection") from None

    async def receive(self, correlation: int, seconds: float | None = None) -> bytes:
        """The next frame, without its length. Raises: `NoAnswerError`, also if it answers another request."""
        seconds = self._seconds if seconds is None else seconds
        try:
            frame = await asyncio.wait_for(self._frame(), seconds)
        except TimeoutError:
            raise SlowError(f"it does not answer within {seconds:g} s") from None
        except (asyncio.IncompleteReadError, OSError):
            raise ClosedError("it has closed the connection") from None
        if len(frame) < LENGTH.size:
            raise NoAnswerError(f"it answers {len(frame)} bytes, which are no answer")
        (answered,) = LENGTH.unpack_from(frame)
        if answered != correlation:
            raise NoAnswerError(f"it answers with correlation id {answered}, not {correlation}")
        return frame

    async def _frame(self) -> bytes:
        assert self._streams is not None, "the connection is open"
        (length,) = LENGTH.unpack(await self._streams[0].readexactly(LENGTH.size))
        if not 0 <= length <= MOST_BYTES:
            raise NoAnswerError(f"it announces an answer of {length} bytes")
        return await self._streams[0].readexactly(length)

    async def wait_for_end(self) -> None:
        """Wait until the target closes the connection. Raises: `NoAnswerError` if it answers, `SlowError` if neither."""
        assert self._streams is not None, "the connection is open"
        try:
            found = await asyncio.wait_for(self._streams[0].read(1), self._seconds)
        except TimeoutError:
            raise SlowError(f"it does not close the connection within {self._seconds:g} s") from None
        except OSError:
            return
        if found:
            raise NoAnswerError("it answers, and does not close the connection")
