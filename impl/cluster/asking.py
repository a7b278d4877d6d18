"""A connection to a node by Kafka's requests, one at a time: what is seen of a cluster is what its nodes answer."""

import asyncio
from collections.abc import Sequence
from typing import Any

from impl.wire.requests import read_response, request_parts, sent
from impl.wire.values import DecodeError, Message

ANSWER_S = 1.0
"""Who does not answer within this time (s) is shown as not there."""

ASK_S = 20.0
"""An emergency stop: who does not answer within this time does not answer."""

NOT_REACHED = (OSError, TimeoutError, asyncio.IncompleteReadError, DecodeError)
"""What asking may raise: the node is not there, stands still, or answers something else."""


class Asking:
    """Asks one node. The connection is made when it is needed, and made anew after a failure."""

    def __init__(self, host: str, port: int) -> None:
        self._place = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._sent = 0

    async def ask(self, name: str, version: int, **fields: Any) -> Message:
        """The answer to a request. Raises: what `NOT_REACHED` lists."""
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
        writer.writelines(request_parts(sent(name), version, self._sent, message))
        frame = await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
        return read_response(name, version, memoryview(frame))[1]

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def ask_once(place: tuple[str, int], api: str, version: int, seconds: float = ASK_S, **fields: Any) -> Message:
    """Ask a node on a connection of its own. Raises: `OSError`, `TimeoutError`, `IncompleteReadError`, `DecodeError`."""
    async with asyncio.timeout(seconds):
        reader, writer = await asyncio.open_connection(*place)
        try:
            writer.writelines(request_parts(sent(api), version, 1, Message(**fields)))
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
