"""A broker in this process that answers ApiVersions, takes liberties with frames, and ends at some of them."""

import asyncio
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from kspec.conformance.wire.run.runner import RunTarget, find_target

HOST = "127.0.0.1"
NO_API, NEGATIVE_API, ALTER_PARTITION, METADATA, API_VERSIONS = 999, -1, 56, 3, 18


class FrailBroker:
    """Ends at requests of the APIs in `ends_at`; of those in `together` only if they are there at the same time."""

    def __init__(self, ends_at: set[int], together: set[int] | None = None, port: int = 0) -> None:
        self.starts = 0
        self._port = port
        self._ends_at = ends_at
        self._together = together or set()
        self._seen: set[int] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def start(self) -> RunTarget:
        """Start it, on another port each time unless it was given one; the target that it is then."""
        self.starts += 1
        self._seen.clear()
        self._server = await asyncio.start_server(self._serve, HOST, self._port)
        return await find_target(HOST, self._server.sockets[0].getsockname()[1], 2.0)

    def end(self) -> None:
        """End it: nobody is answered any more."""
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(asyncio.IncompleteReadError, OSError):
            await self._answer_all(reader, writer)
        writer.close()

    async def _answer_all(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(1000):
            (size,) = struct.unpack(">i", await reader.readexactly(4))
            if size < 8:
                return
            key, version, correlation = struct.unpack_from(">hhi", await reader.readexactly(size))
            self._seen.add(key)
            if key in self._ends_at or (self._together and self._together <= self._seen):
                self.end()
            if key != API_VERSIONS:
                await asyncio.sleep(0.3)
                self._seen.discard(key)
                return
            error = 0 if version < 5 else 35
            apis = b"".join(struct.pack(">hhh", one, 0, 5) for one in (METADATA, API_VERSIONS)[bool(error) :])
            body = struct.pack(">ihi", correlation, error, len(apis) // 6) + apis
            writer.write(struct.pack(">i", len(body)) + body)


class StartedFrailBroker(NamedTuple):
    """A broker in a thread: its port, which it keeps, and what starts it again."""

    port: int
    start_again: Callable[[], object]


@contextmanager
def started(ends_at: set[int]) -> Iterator[StartedFrailBroker]:
    """A frail broker in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    first = FrailBroker(ends_at)
    port = asyncio.run_coroutine_threadsafe(first.start(), loop).result(60).port
    brokers = [first, again := FrailBroker(ends_at, port=port)]
    try:
        yield StartedFrailBroker(port, lambda: asyncio.run_coroutine_threadsafe(again.start(), loop).result(60))
    finally:
        for one in brokers:
            loop.call_soon_threadsafe(one.end)
        loop.call_soon_threadsafe(loop.call_later, 0.2, loop.stop)  # when the connections are over
        thread.join(60)
