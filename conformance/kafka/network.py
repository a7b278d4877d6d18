"""Connections to a node of Kafka, and listeners that stand in for one."""

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from kspec.conformance.kafka.codec import Codec, DecodedRequest
from kspec.conformance.kafka.process import HOST
from kspec.impl.wire.values import Message

CLIENT_ID = "kspec"
ANSWER_SECONDS = 30.0


class ArrivedRequest:
    """A request that has arrived at a listener, to be answered now or later, once or never."""

    def __init__(self, codec: Codec, node: int, request: DecodedRequest, writer: asyncio.StreamWriter) -> None:
        self.node = node
        self.request = request
        self._codec = codec
        self._writer = writer

    @property
    def api(self) -> str:
        """The name of its API."""
        return self.request.api

    @property
    def version(self) -> int:
        """The version of its API."""
        return self.request.version

    @property
    def message(self) -> Message:
        """Its fields."""
        return self.request.message

    @property
    def lost(self) -> bool:
        """Whether its connection is closed, so that nobody hears an answer."""
        return self._writer.is_closing()

    def answer(self, message: Message) -> None:
        """Send an answer; it is lost if the connection is closed."""
        if not self.lost:
            self._writer.write(self._codec.response(self.api, self.version, self.request.correlation, message))

    def close(self) -> None:
        """Close the connection on which it came."""
        self._writer.close()


Handler: TypeAlias = Callable[[ArrivedRequest], Awaitable[Message | None]]
"""Handles a request: its answer, or `None` if it is answered later or never."""


class NodeStandIn:
    """Stands in for a node: decodes each request, and lets a handler answer, one after the other on each connection."""

    def __init__(self, codec: Codec, node: int, handler: Handler) -> None:
        self.node = node
        self.port = 0
        self.failure: BaseException | None = None
        self._codec = codec
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def open(self) -> None:
        """Listen on a port of loopback that was free."""
        self._server = await asyncio.start_server(self._serve, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Close the port and all connections."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                request = self._codec.read_request(await reader.readexactly(length))
                arrived = ArrivedRequest(self._codec, self.node, request, writer)
                answer = await self._handler(arrived)
                if answer is not None:
                    arrived.answer(answer)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._tasks.discard(task)
            writer.close()


def api_versions(codec: Codec) -> Message:
    """The answer of a listener to ApiVersions: all APIs of the release, in all versions, and both versions of KRaft."""
    keys = [
        Message(api_key=key, min_version=codec.versions(api).first, max_version=codec.versions(api).last)
        for api, key in sorted(codec.apis.items(), key=lambda item: item[1])
    ]
    features = [Message(name="kraft.version", min_version=0, max_version=1)]
    return Message(error_code=0, api_keys=keys, supported_features=features)


class NodeConnection:
    """A connection to a node: requests may be sent one after the other without waiting for answers."""

    def __init__(self, codec: Codec, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._codec = codec
        self._reader = reader
        self._writer = writer
        self._sent = 0
        self._waiting: dict[int, tuple[asyncio.Future[Message], str, int]] = {}
        self._task = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, codec: Codec, port: int) -> "NodeConnection":
        """Connect to a port of loopback. Raises: `ConnectionError`."""
        reader, writer = await asyncio.open_connection(HOST, port)
        return cls(codec, reader, writer)

    async def close(self) -> None:
        """Close the connection."""
        self._task.cancel()
        self._writer.close()
        await asyncio.gather(self._task, return_exceptions=True)

    def send(self, api: str, version: int, message: Message) -> asyncio.Future[Message]:
        """Send a request; the answer comes in the future, or a `ConnectionError`."""
        self._sent += 1
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting[self._sent] = (future, api, version)
        if self._task.done():
            self._lose()
        else:
            self._writer.write(self._codec.request(api, version, self._sent, CLIENT_ID, message))
        return future

    async def ask(self, api: str, version: int, message: Message, seconds: float = ANSWER_SECONDS) -> Message:
        """Send a request and wait for its answer. Raises: `ConnectionError`, `TimeoutError`."""
        return await asyncio.wait_for(self.send(api, version, message), seconds)

    async def _receive(self) -> None:
        try:
            while True:
                (length,) = struct.unpack(">i", await self._reader.readexactly(4))
                frame = await self._reader.readexactly(length)
                (correlation,) = struct.unpack_from(">i", frame)
                future, api, version = self._waiting.pop(correlation)
                if not future.done():
                    future.set_result(self._codec.read_response(api, version, frame))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._lose()

    def _lose(self) -> None:
        for future, _, _ in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionError("the connection is closed"))
                future.exception()
        self._waiting.clear()
