"""What every node has around its core: connections, requests in and answers out, one timer, a listener.

A node says which APIs it offers, who handles them, and how effects are carried out.
"""

import asyncio
import logging
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from impl.broker.calls import AppendMetadata, Call, Drop, Effect, NoResponse, Respond, Then
from impl.broker.replica import Waiting
from impl.broker.timers import Timers
from impl.metadata.files import MetadataFiles
from impl.metadata.image import ClusterImage
from impl.metadata.log import MetadataLog
from impl.metadata.records import LogRecord
from impl.requests.describe import unsupported_api_versions
from impl.server.clock import now_ms
from impl.server.network.connection import Connection, configure
from impl.storage import StorageError
from impl.wire.apis import Api
from impl.wire.frames import API_VERSIONS, RequestHeader, framed, read_header
from impl.wire.reading import read_message
from impl.wire.values import DecodeError, Message, refused
from spec.broker.clients.versions import Verdict, judge_content, judge_version
from spec.controller.topics.cluster import NOT_STORED

LOG = logging.getLogger("kspec.broker")


PUT_OFF = frozenset({"Produce"})
"""Requests whose effects may wait for those of the next ones: nothing but files and answers depends on them."""


class Settings(Protocol):
    """The settings of a node."""

    def __getitem__(self, name: str) -> Any: ...


class NodeCore(Protocol):
    """The core of a node, as far as its shell knows it."""

    timers: Timers[Effect]

    @property
    def config(self) -> Settings:
        """Its settings."""

    @property
    def image(self) -> ClusterImage:
        """What the metadata log says, as far as the node has read it."""

    def stop_waiting(self, waiting: Waiting) -> None:
        """Forget a fetch whose client has gone."""


@dataclass(slots=True)
class Counts:
    """What is counted while requests are answered: requests by API, and bytes of connections that are closed."""

    requests: Counter[str] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0


class Shell(ABC):
    """The shell of a node. `apis`: those that it offers, by their keys. `handlers`: who answers each, by its name."""

    handlers: Mapping[str, Callable[[Call, int], list[Effect]]]

    kind: str
    """What the node is, for its messages."""

    def __init__(self, node: NodeCore, apis: Mapping[int, Api], metadata: MetadataFiles) -> None:
        self.node = node
        self.metadata = metadata
        self.apis = apis
        self.now: Callable[[], int] = now_ms
        """The time in milliseconds since 1970."""
        self.failure: Exception | None = None
        """Why the node cannot go on."""
        self.on_failure: Callable[[], None] = lambda: None
        self.connections: set[Connection] = set()
        self.counts = Counts()
        self.largest_frame: int = node.config["socket.request.max.bytes"]
        self._waiting: dict[Connection, list[Waiting]] = {}
        self._put_off: list[Effect] | None = None
        """What is to be done when all requests are handled that came together; none where they come one by one."""
        self._snapshot_bytes: int = node.config["metadata.log.max.record.bytes.between.snapshots"]
        self._held_limit: int = node.config["queued.max.request.bytes"]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None
        self._listening: socket.socket | None = None

    # ---- effects

    def carry_out(self, effects: list[Effect]) -> None:
        """Carry out effects in their order, each complete before the next, with all that follows from it."""
        for number, effect in enumerate(effects):
            if isinstance(effect, Then):
                self.carry_out(effect.effects())
            elif isinstance(effect, Respond):
                self.respond(effect.call, effect.message)
            elif isinstance(effect, NoResponse):
                self.connection_of(effect.call).answer(effect.call.place, [])
            elif isinstance(effect, Drop):
                self.connection_of(effect.call).close()
            elif isinstance(effect, AppendMetadata):
                if not self._append_metadata(effect):
                    self._refuse(effects[number + 1 :])
                    return
            else:
                self.carry_out_other(effect)

    @abstractmethod
    def carry_out_other(self, effect: Effect) -> None:
        """Carry out an effect that only this kind of node has."""

    @abstractmethod
    def metadata_stored(self, records: list[LogRecord]) -> list[Effect]:
        """Records are on the disk, and count from now on; what follows from that."""

    @abstractmethod
    def metadata_not_stored(self) -> None:
        """Nothing was stored: what was decided is forgotten."""

    def _append_metadata(self, effect: AppendMetadata) -> bool:
        """Whether the records are stored. If not, what was decided is forgotten, and the node ends."""
        log = self.metadata
        assert isinstance(log, MetadataLog)
        if self.failure is None:
            try:
                stored = log.append(effect.records, self.now())
            except (OSError, StorageError) as error:
                self.fail(error)
            else:
                follows = self.metadata_stored(stored)
                self.take_snapshot()
                self.carry_out(follows)
                return True
        self.metadata_not_stored()
        return False

    def _refuse(self, effects: list[Effect]) -> None:
        """Answer those who wait for a change of the metadata that was not stored."""
        for effect in effects:
            if isinstance(effect, Respond):
                self.respond(effect.call, refused(effect.message, NOT_STORED.value))

    def fail(self, error: Exception, what: str = "the metadata log cannot be written") -> None:
        """The node cannot go on, and ends: because of its metadata log, or of something else."""
        LOG.critical("%s, so the %s ends: %s", what, self.kind, error)
        self.failure = error
        self.on_failure()

    def take_snapshot(self) -> None:
        """Take a snapshot of the metadata log if it has become long and all of it is read; without one it is longer."""
        files, image = self.metadata, self.node.image
        if files.size < self._snapshot_bytes or image.spec.end_offset != files.end_offset:
            return
        try:
            files.take_snapshot(image, self.now())
        except (OSError, StorageError) as error:
            LOG.error("no snapshot of the metadata log could be taken: %s", error)

    # ---- requests

    def begin(self) -> None:
        """Requests follow that came together on one connection."""
        self._put_off = []

    def settle(self, connection: Connection, last: bool) -> None:
        """Carry out what was put off; if that fails, the connection of the requests is closed."""
        effects, self._put_off = self._put_off, None if last else []
        if effects:
            try:
                self.carry_out(self.together(effects))
            except Exception:
                LOG.exception("closing %s:%d: what its requests asked for failed", connection.host, connection.port)
                connection.close()
        self.set_timer()

    def together(self, effects: list[Effect]) -> list[Effect]:
        """Effects of several requests in an order in which they are cheaper; those of each request keep theirs."""
        return effects

    def on_frame(self, connection: Connection, frame: memoryview) -> None:
        """Read one request and answer it; what cannot be read closes the connection."""
        try:
            header = read_header(frame, self.apis)
            api = header.api
            first, last = api.known if api is not None else (0, -1)
            verdict = judge_version(api is not None, header.key == API_VERSIONS, header.version, first, last)
            if verdict == Verdict.CLOSE or api is None:
                raise DecodeError(f"API {header.key} version {header.version} is not answered")
            if verdict == Verdict.ANSWER_UNSUPPORTED:
                header = header._replace(version=0)
                self.carry_out(unsupported_api_versions(self._call(connection, header, Message())))
                return
            message, _ = read_message(f"{api.name}Request", header.version, frame, header.body)
        except DecodeError as error:
            if judge_content(readable=False) == Verdict.CLOSE:
                LOG.warning("closing %s:%d: %s", connection.host, connection.port, error)
                connection.close()
            return
        self.on_request(connection, header, api.name, message)

    def on_request(self, connection: Connection, header: RequestHeader, api: str, message: Message) -> None:
        """Answer one request."""
        if self._put_off and api not in PUT_OFF:
            self.settle(connection, last=False)
        call = self._call(connection, header, message)
        self.counts.requests[api] += 1
        try:
            effects = self.handlers[api](call, call.received_ms)
            if self._put_off is not None and api in PUT_OFF:
                self._put_off += effects
                return
            self.carry_out(effects)
        except Exception:
            LOG.exception("closing %s:%d: %s version %d failed", connection.host, connection.port, api, header.version)
            connection.close()
        if call.waiting is not None and not call.waiting.done and not connection.closed:
            self._remember_waiting(connection, call.waiting)
        self.set_timer()

    def _remember_waiting(self, connection: Connection, waiting: Waiting) -> None:
        """So that nobody looks again at a fetch whose client has gone."""
        known = [one for one in self._waiting.get(connection, ()) if not one.done]
        self._waiting[connection] = [*known, waiting]

    def _call(self, connection: Connection, header: RequestHeader, message: Message) -> Call:
        connection.last_used = time.monotonic()
        return Call(connection, connection.new_place(), header, message, self.now())

    @staticmethod
    def connection_of(call: Call) -> Connection:
        """The connection that a request came on."""
        return cast(Connection, call.peer)

    def respond(self, call: Call, message: Message) -> None:
        """Send the answer of a request."""
        connection = self.connection_of(call)
        if not connection.closed:
            connection.answer(call.place, self.parts_of(call.header, message))

    def parts_of(self, header: RequestHeader, message: Message) -> list[Any]:
        """The answer to a request as it is sent."""
        assert header.api is not None
        return framed(header.api, header.version, header.correlation, message)

    def may_read(self, size: int) -> bool:
        """Whether the frames of all connections together stay below the limit with this one."""
        return self._held_limit < 0 or sum(one.held_bytes for one in self.connections) + size <= self._held_limit

    def on_closed(self, connection: Connection) -> None:
        """Forget a connection, and the fetches that wait on it."""
        self.connections.discard(connection)
        for waiting in self._waiting.pop(connection, ()):
            if not waiting.done:
                self.node.stop_waiting(waiting)
        self.counts.bytes_in += connection.bytes_in
        self.counts.bytes_out += connection.bytes_out

    # ---- time

    def set_timer(self) -> None:
        """Wake when the core's next timer is due."""
        deadline = self.node.timers.next_deadline()
        if deadline == self._timer_at or self._loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = deadline
        if deadline is not None:
            self._timer = self._loop.call_later(max(0, deadline - self.now()) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_at = None
        self.carry_out(self.node.timers.due(self.now()))
        self.set_timer()

    # ---- the listener

    def use(self, loop: asyncio.AbstractEventLoop) -> None:
        """Timers run from now on."""
        self._loop = loop
        self.set_timer()

    def listen(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        """Accept clients from now on."""
        self._listening = sock
        loop.add_reader(sock.fileno(), self._accept)
        self.use(loop)

    def _accept(self) -> None:
        assert self._loop is not None
        assert self._listening is not None
        config = self.node.config
        for _ in range(64):
            try:
                sock, address = self._listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                LOG.warning("cannot accept a connection: %s", error)
                return
            from_same = sum(one.host == address[0] for one in self.connections)
            if len(self.connections) >= config["max.connections"] or from_same >= config["max.connections.per.ip"]:
                LOG.warning("refusing %s:%d: too many connections", *address[:2])
                sock.close()
                continue
            try:
                configure(sock, config["socket.send.buffer.bytes"], config["socket.receive.buffer.bytes"])
            except OSError:
                sock.close()
                continue
            self.connections.add(Connection(self._loop, sock, self, address[:2]))

    def stop_listening(self) -> None:
        """Accept no more clients, and close the connections of those that are there."""
        if self._listening is not None and self._loop is not None:
            self._loop.remove_reader(self._listening.fileno())
            self._listening.close()
            self._listening = None
        for connection in list(self.connections):
            connection.close()
        if self._timer is not None:
            self._timer.cancel()
