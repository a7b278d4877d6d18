"""A connection to a node by Kafka's requests, one at a time: what is seen of a cluster is what its nodes answer."""

import asyncio
import struct
from collections.abc import Sequence
from typing import Any

from impl.wire.apis import APIS
from impl.wire.reading import read_message
from impl.wire.values import DecodeError, Message
from impl.wire.writing import write_message

KEYS = {api.name: api for api in APIS.values()}
CLIENT_ID = b"kspec-cluster"
ANSWER_S = 1.0
"""Who does not answer within this time (s) is shown as not there."""

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
        api = KEYS[name]
        head = struct.pack(">hhih", api.key, version, self._sent, len(CLIENT_ID)) + CLIENT_ID
        flexible = version in api.flexible
        body = head + (b"\0" if flexible else b"") + write_message(f"{name}Request", version, message)
        writer.write(struct.pack(">i", len(body)) + body)
        (length,) = struct.unpack(">i", await reader.readexactly(4))
        frame = await reader.readexactly(length)
        answer, _ = read_message(f"{name}Response", version, memoryview(frame), 5 if flexible else 4)
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def by_topic(partitions: Sequence[tuple[str, Message]]) -> dict[str, list[Message]]:
    """Partitions of requests, each with its topic, put together by topic."""
    found: dict[str, list[Message]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
