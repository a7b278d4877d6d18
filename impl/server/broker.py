"""A broker as a process has it: the core, its files, its sockets, its timers. Effects are carried out here alone."""

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from impl.broker.calls import AppendMetadata, Call, Drop, Effect, NoResponse, Respond, Store, StoreTogether, Then
from impl.broker.core import Core
from impl.broker.replica import Waiting
from impl.broker.replicas import MOST_THREADS, Replicas
from impl.metadata.log import MetadataLog
from impl.requests.describe import unsupported_api_versions
from impl.requests.dispatch import handlers_of
from impl.requests.groups import Groups
from impl.server.connection import Connection, configure
from impl.server.metrics import Metrics
from impl.storage import StorageError
from impl.wire.frames import API_VERSIONS, RequestHeader, framed, read_header
from impl.wire.reading import read_message
from impl.wire.values import DecodeError, Message, refused
from spec.broker.clients.versions import Verdict, judge_version
from spec.broker.effects import LogDeleted
from spec.controller.topics.cluster import NOT_STORED

LOG = logging.getLogger("kspec.broker")


def now_ms() -> int:
    """The time in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Broker:
    """The shell around the core."""

    def __init__(self, core: Core, replicas: Replicas, metadata_log: MetadataLog) -> None:
        self.core = core
        self.replicas = replicas
        self.metadata_log = metadata_log
        self.groups = Groups(core)
        self.handlers = handlers_of(core, self.groups)
        self.failure: Exception | None = None
        """Why the broker cannot go on."""
        self.on_failure: Callable[[], None] = lambda: None
        self.connections: set[Connection] = set()
        self.metrics = Metrics(core, self.connections)
        self._waiting: dict[Connection, list[Waiting]] = {}
        self.largest_frame: int = core.config["socket.request.max.bytes"]
        self._held_limit: int = core.config["queued.max.request.bytes"]
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: int | None = None
        self._listening: socket.socket | None = None

    # ---- effects

    def carry_out(self, effects: list[Effect]) -> None:
        """Carry out effects in their order, each complete before the next, with all that follows from it."""
        for number, effect in enumerate(effects):
            if isinstance(effect, Store):
                self._store(effect)
            elif isinstance(effect, StoreTogether):
                with ThreadPoolExecutor(min(MOST_THREADS, len(effect.stores))) as threads:
                    list(threads.map(self._store, effect.stores))
            elif isinstance(effect, Respond):
                self._respond(effect.call, effect.message)
            elif isinstance(effect, Then):
                self.carry_out(effect.effects())
            elif isinstance(effect, NoResponse):
                self._connection(effect.call).answer(effect.call.place, [])
            elif isinstance(effect, Drop):
                self._connection(effect.call).close()
            elif isinstance(effect, AppendMetadata):
                if not self._append_metadata(effect):
                    self._refuse(effects[number + 1 :])
                    return
                self.carry_out(self.replicas.apply(now_ms()))

    def _append_metadata(self, effect: AppendMetadata) -> bool:
        """Whether the records are stored. If not, what was decided is forgotten, and the broker ends."""
        if self.failure is None:
            try:
                stored = self.metadata_log.append(effect.records)
            except (OSError, StorageError) as error:
                LOG.critical("the metadata log cannot be written, so the broker ends: %s", error)
                self.failure = error
                self.on_failure()
            else:
                self.core.cluster.stored(stored)
                self._take_snapshot()
                return True
        self.core.cluster.not_stored()
        return False

    def _take_snapshot(self) -> None:
        """Take a snapshot of the metadata log if it has become long; without one it is only longer."""
        if self.metadata_log.size >= self.core.config["metadata.log.max.record.bytes.between.snapshots"]:
            try:
                self.metadata_log.take_snapshot(self.core.cluster.image, now_ms())
            except (OSError, StorageError) as error:
                LOG.error("no snapshot of the metadata log could be taken: %s", error)

    def _refuse(self, effects: list[Effect]) -> None:
        """Answer those who wait for a change of the metadata that was not stored."""
        for effect in effects:
            if isinstance(effect, Respond):
                self._respond(effect.call, refused(effect.message, NOT_STORED.value))

    def _store(self, effect: Store) -> None:
        replica = effect.replica
        try:
            if isinstance(effect.change, LogDeleted):
                replica.files.delete(now_ms())
            else:
                replica.files.apply(effect.change, effect.payloads, now_ms())
        except (OSError, StorageError) as error:
            LOG.error("%s-%d is offline: %s", *replica.place, error)
            replica.offline = True
            if effect.on_failure is not None:
                effect.on_failure()

    @staticmethod
    def _connection(call: Call) -> Connection:
        assert isinstance(call.peer, Connection)
        return call.peer

    def _respond(self, call: Call, message: Message) -> None:
        connection = self._connection(call)
        if not connection.closed:
            header = call.header
            assert header.api is not None
            connection.answer(call.place, framed(header.api, header.version, header.correlation, message))

    # ---- requests

    def on_frame(self, connection: Connection, frame: memoryview) -> None:
        """Read one request and answer it; what cannot be read closes the connection."""
        try:
            header = read_header(frame)
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
            LOG.warning("closing %s:%d: %s", connection.host, connection.port, error)
            connection.close()
            return
        call = self._call(connection, header, message)
        self.metrics.requests[api.name] += 1
        try:
            self.carry_out(self.handlers[api.name](call, call.received_ms))
        except Exception:
            LOG.exception("closing %s:%d: %s version %d failed", connection.host, connection.port, api.name, header.version)
            connection.close()
        if call.waiting is not None and not call.waiting.done and not connection.closed:
            self._remember_waiting(connection, call.waiting)
        self._set_timer()

    def _remember_waiting(self, connection: Connection, waiting: Waiting) -> None:
        """So that nobody looks again at a fetch whose client has gone."""
        known = [one for one in self._waiting.get(connection, ()) if not one.done]
        self._waiting[connection] = [*known, waiting]

    def _call(self, connection: Connection, header: RequestHeader, message: Message) -> Call:
        connection.last_used = time.monotonic()
        return Call(connection, connection.new_place(), header, message, now_ms())

    def may_read(self, size: int) -> bool:
        """Whether the frames of all connections together stay below the limit with this one."""
        return self._held_limit < 0 or sum(one.held_bytes for one in self.connections) + size <= self._held_limit

    def on_closed(self, connection: Connection) -> None:
        """Forget a connection, and the fetches that wait on it."""
        self.connections.discard(connection)
        for waiting in self._waiting.pop(connection, ()):
            if not waiting.done:
                self.core.stop_waiting(waiting)
        self.metrics.bytes_in += connection.bytes_in
        self.metrics.bytes_out += connection.bytes_out

    # ---- time

    def _set_timer(self) -> None:
        deadline = self.core.timers.next_deadline()
        if deadline == self._timer_at or self._loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = deadline
        if deadline is not None:
            self._timer = self._loop.call_later(max(0, deadline - now_ms()) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_at = None
        self.carry_out(self.core.timers.due(now_ms()))
        self._set_timer()

    # ---- the listener

    def listen(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        """Accept clients from now on."""
        self._loop = loop
        self._listening = sock
        loop.add_reader(sock.fileno(), self._accept)
        self._set_timer()

    def _accept(self) -> None:
        assert self._loop is not None
        assert self._listening is not None
        config = self.core.config
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
