"""A connection to a node for Kafka's requests, one at a time."""

import asyncio
from collections.abc import Sequence

from kspec.impl.wire.requests import read_response, request_parts, sent
from kspec.impl.wire.values import DecodeError, Message
from kspec.impl.wire.writing import joined

ANSWER_S = 1.0
"""The timeout of a request (s), after which a node counts as not there."""

ASK_S = 20.0
"""The longest timeout of a request (s)."""

NOT_REACHED = (OSError, TimeoutError, asyncio.IncompleteReadError, DecodeError)
"""The exceptions of a request: the node is down or paused, or its response is malformed."""


class NodeClient:
    """A client of one node. The connection is made on demand, and made anew after a failure."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._sent = 0

    async def ask(self, name: str, version: int, **fields: object) -> Message:
        """The response to a request. Raises: those of `NOT_REACHED`."""
        try:
            return await asyncio.wait_for(self._ask(name, version, Message(**fields)), ANSWER_S)
        except BaseException:
            self.close()
            raise

    async def _ask(self, name: str, version: int, message: Message) -> Message:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._place)
        reader, writer = self._streams
        self._sent += 1
        writer.write(joined(request_parts(sent(name), version, self._sent, message)))
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        return read_response(name, version, memoryview(frame))[1]

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def ask_once(place: tuple[str, int], api: str, version: int, seconds: float = ASK_S, **fields: object) -> Message:
    """Send a request on a connection of its own. Raises: `OSError`, `TimeoutError`, `IncompleteReadError`, `DecodeError`."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection(*place)
        try:
            writer.write(joined(request_parts(sent(api), version, 1, Message(**fields))))
            frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            return read_response(api, version, memoryview(frame))[1]
        finally:
            writer.close()


def by_topic(partitions: Sequence[tuple[str, Message]]) -> dict[str, list[Message]]:
    """Partitions of requests, each with its topic, put together by topic."""
    found: dict[str, list[Message]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
