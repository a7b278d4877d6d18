"""The shell of every node around its core: connections, requests in and answers out, one timer, a listener.

A node says which APIs it offers, who handles them, and how effects are carried out.
"""

import asyncio
import logging
import socket
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, cast

from kspec.impl.broker.calls import (
    AppendMetadata,
    Aside,
    BrokerEffect,
    Call,
    DelayedOperation,
    Detain,
    Drop,
    Effect,
    EndOnError,
    FollowUp,
    GradualWork,
    InTurns,
    NoResponse,
    RequestHandler,
    Respond,
    Resume,
    Then,
    aside,
)
from kspec.impl.broker.timers import Timers
from kspec.impl.config.settings import SettingValues
from kspec.impl.metadata.files import MetadataFiles
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.metadata.records import LogRecord
from kspec.impl.requests.describe import unsupported_api_versions
from kspec.impl.server import clock
from kspec.impl.server.acceptor import Acceptor
from kspec.impl.server.divided import GradualWorks, PostponedEffects, RequestTurns
from kspec.impl.server.network.connection import Connection
from kspec.impl.storage import StorageError
from kspec.impl.wire.apis import Api
from kspec.impl.wire.frames import API_VERSIONS, RequestHeader, framed, read_header
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.values import DecodeError, Message, refused
from kspec.impl.wire.writing import Part
from kspec.spec.broker.clients.versions import VersionVerdict, judge_content, judge_version
from kspec.spec.controller.state import NOT_STORED
from kspec.spec.values import Instant, MonotonicMs

LOG = logging.getLogger("kspec.broker")


LARGE_FRAME, LARGE_PRODUCE = 64 << 10, 2 << 20
"""Bytes from which a request is read in a thread: it may name many things. In Produce most bytes are not looked at."""

PUT_OFF = frozenset({"Produce"})
"""Requests whose effects may wait for those of the next ones: nothing but files and answers depends on them."""


class NodeCore(Protocol):
    """The core of a node, as far as its shell knows it."""

    timers: Timers[Effect]

    @property
    def config(self) -> SettingValues:
        """Its settings."""

    @property
    def image(self) -> ClusterImage:
        """The image of the metadata log, as far as the node has read it."""

    def stop_waiting(self, waiting: DelayedOperation) -> None:
        """Forget a fetch whose client has gone."""


@dataclass(slots=True)
class Counts:
    """Counters of answered requests by API, and of bytes of connections that are closed."""

    requests: Counter[str] = field(default_factory=Counter)
    bytes_in: int = 0
    bytes_out: int = 0


class Shell(ABC):
    """The shell of a node. `apis`: those that it offers, by their keys. `handlers`: who answers each, by its name."""

    handlers: Mapping[str, RequestHandler]

    kind: str
    """The kind of node, for its messages."""

    def __init__(self, node: NodeCore, apis: Mapping[int, Api], metadata: MetadataFiles) -> None:
        self.node = node
        self.metadata = metadata
        self.apis = apis
        self.now: Callable[[], Instant] = clock.now
        """The time by the clocks of this process."""
        self.failure: Exception | None = None
        self.complaint = ""
        """The failure of the node in one line."""
        self.on_failure: Callable[[], None] = lambda: None
        self.acceptor = Acceptor(node.config, self)
        self.connections = self.acceptor.connections
        self.counts = Counts()
        self.largest_frame: int = node.config.number("socket.request.max.bytes")
        self._waiting: dict[Connection, list[DelayedOperation]] = {}
        self._put_off: list[Effect] | None = None
        """The effects that are postponed until all requests that arrived together are handled; none if they come singly."""
        self._snapshot_bytes: int = node.config.number("metadata.log.max.record.bytes.between.snapshots")
        self._held_limit: int = node.config.number("queued.max.request.bytes")
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop, once there is one."""
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at: MonotonicMs | None = None
        self._aside = ThreadPoolExecutor(2, "aside")
        self._turns = RequestTurns(self)
        self.works = GradualWorks(self)

    # ---- effects

    def carry_out(self, effects: list[Effect]) -> PostponedEffects | None:
        """Carry out effects in their order, each complete before the next, with all that follows from it.

        Where gradual work comes, the rest waits for it; that is returned, so that the caller may add what else has to wait.
        """
        for number, effect in enumerate(effects):
            postponed: PostponedEffects | None = None
            match effect:
                case Then():
                    postponed = self.carry_out(effect.effects())
                case Respond():
                    self.answer(effect)
                case NoResponse():
                    self.connection_of(effect.call).answer(effect.call.place, [])
                case Drop():
                    self.connection_of(effect.call).close()
                case Aside():
                    self._do_aside(effect)
                case InTurns():
                    self._turns.begin(effect)
                case Detain():
                    self.connection_of(effect.call).hold()
                case Resume():
                    self.connection_of(effect.call).release()
                case GradualWork():
                    postponed = self.works.begin(effect)
                case AppendMetadata():
                    return self._store_and_go_on(effects[number:])
                case EndOnError():
                    self.fail(effect.error, effect.what)
                case _:
                    self.carry_out_other(effect)
            if postponed is not None:
                postponed.rest.append(effects[number + 1 :])
                return postponed
        return None

    def carry_out_for(self, connection: Connection, effects: list[Effect]) -> PostponedEffects | None:
        """Carry out what a request on a connection asks for: if some of it waits, so do the next requests on it."""
        postponed = self.carry_out(effects)
        if postponed is not None:
            connection.hold()
            postponed.held.append(connection)
        return postponed

    def _do_aside(self, effect: Aside) -> None:
        """Do work in a thread, and then what follows; without an event loop at once."""
        if self.loop is None:
            self.carry_out(effect.work()(self.now()))
            return
        self._aside_for(None if effect.call is None else self.connection_of(effect.call), effect.work)

    def _aside_for(self, connection: Connection | None, work: Callable[[], FollowUp]) -> None:
        assert self.loop is not None

        def done(future: "asyncio.Future[FollowUp]") -> None:
            try:
                if not future.cancelled():
                    postponed = self.carry_out(future.result()(self.now()))
                    if postponed is not None and connection is not None:
                        connection.hold()
                        postponed.held.append(connection)
            except Exception:
                LOG.exception("work that took long has failed")
                if connection is not None:
                    connection.close()
            if connection is not None:
                connection.release()
            self.set_timer()

        if connection is not None:
            connection.hold()
        self.loop.run_in_executor(self._aside, work).add_done_callback(done)

    @abstractmethod
    def carry_out_other(self, effect: BrokerEffect) -> None:
        """Carry out an effect that only a broker has."""

    def answer(self, effect: Respond) -> None:
        """Send an answer."""
        self.respond(effect.call, effect.message, effect.is_long)

    @abstractmethod
    def append_metadata(self, records: Sequence[LogRecord]) -> list[Effect] | None:
        """Append records to the metadata log as one batch; what follows, or none if this node may not decide any more.

        Raises: `OSError`, `StorageError`.
        """

    @abstractmethod
    def metadata_stored(self, records: Sequence[LogRecord]) -> list[Effect]:
        """Records are in the log, and count from now on; what follows from that."""

    @abstractmethod
    def metadata_not_stored(self) -> None:
        """Nothing was stored: what was decided is forgotten."""

    def _store_and_go_on(self, effects: list[Effect]) -> PostponedEffects | None:
        """Store all records that are among these effects, as one batch, and carry out the others.

        So what has been decided is stored before anybody decides more, also where the first change is gradual work.
        """
        records: list[LogRecord] = []
        rest: list[Effect] = []
        for effect in effects:
            match effect:
                case AppendMetadata():
                    records += effect.records
                case _:
                    rest.append(effect)
        follows = self._append_metadata(AppendMetadata(tuple(records)))
        if follows is None:
            self.refuse(rest)
            return None
        postponed = self.carry_out(follows)
        if postponed is None:
            return self.carry_out(rest)
        postponed.rest.append(rest)
        return postponed

    def _append_metadata(self, effect: AppendMetadata) -> list[Effect] | None:
        """Store records, and tell what follows; none if that fails: what was decided is forgotten, the node ends."""
        if self.failure is None:
            try:
                follows = self.append_metadata(effect.records)
            except (OSError, StorageError) as error:
                self.fail(error)
            else:
                if follows is not None:
                    return [*self.metadata_stored(effect.records), *follows]
        self.metadata_not_stored()
        return None

    def refuse(self, effects: list[Effect]) -> None:
        """Answer those who wait for a change of the metadata that was not stored."""
        for effect in effects:
            match effect:
                case Respond():
                    self.respond(effect.call, refused(effect.message, NOT_STORED.value))
                case _:
                    pass

    def fail(self, error: Exception, what: str = "the metadata log cannot be written") -> None:
        """The node cannot go on, and ends: because of its metadata log, or of something else."""
        LOG.critical("%s, so the %s ends: %s", what, self.kind, error)
        self.failure, self.complaint = error, f"{what}: {error}"
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
            if verdict == VersionVerdict.CLOSE or api is None:
                raise DecodeError(f"API {header.key} version {header.version} is not answered")
            if verdict == VersionVerdict.ANSWER_UNSUPPORTED:
                header = header._replace(version=0)
                self.carry_out(unsupported_api_versions(self._call(connection, header, Message())))
                return
            if len(frame) >= (LARGE_PRODUCE if api.name in PUT_OFF else LARGE_FRAME) and self.loop is not None:
                self._read_aside(connection, header, api.name, memoryview(bytes(frame)))
                return
            message, _ = read_message(f"{api.name}Request", header.version, frame, header.body)
        except DecodeError as error:
            self._refuse_content(connection, error)
            return
        self.on_request(connection, header, api.name, message)

    def _refuse_content(self, connection: Connection, error: DecodeError) -> None:
        if judge_content(readable=False) == VersionVerdict.CLOSE:
            LOG.warning("closing %s:%d: %s", connection.host, connection.port, error)
            connection.close()

    def _read_aside(self, connection: Connection, header: RequestHeader, api: str, frame: memoryview) -> None:
        """Read a request that names many things in a thread, and handle it then; its connection waits."""

        def read() -> Message | DecodeError:
            try:
                return read_message(f"{api}Request", header.version, frame, header.body)[0]
            except DecodeError as error:
                return error

        def handle(found: Message | DecodeError, _: Instant) -> list[Effect]:
            if isinstance(found, DecodeError):
                self._refuse_content(connection, found)
            elif not connection.closed:
                self.on_request(connection, header, api, found)
            return []

        self._aside_for(connection, aside(None, read, handle).work)

    def on_request(self, connection: Connection, header: RequestHeader, api: str, message: Message) -> None:
        """Answer one request."""
        if self._put_off and api not in PUT_OFF:
            self.settle(connection, last=False)
        call = self._call(connection, header, message)
        self.counts.requests[api] += 1
        try:
            effects = self.handlers[api](call, call.received)
            if self._put_off is not None and api in PUT_OFF:
                self._put_off += effects
                if any(map(_takes_long, effects)):
                    self.settle(connection, last=False)
                return
            self.carry_out_for(connection, effects)
        except Exception:
            LOG.exception("closing %s:%d: %s version %d failed", connection.host, connection.port, api, header.version)
            connection.close()
        self.remember_waiting(call)
        self.set_timer()

    def remember_waiting(self, call: Call) -> None:
        """So that nobody looks again at a fetch whose client has gone."""
        waiting, connection = call.waiting, self.connection_of(call)
        if waiting is None or waiting.done or connection.closed:
            return
        known = [one for one in self._waiting.get(connection, ()) if not one.done]
        self._waiting[connection] = [*known, waiting]

    def _call(self, connection: Connection, header: RequestHeader, message: Message) -> Call:
        connection.last_used = time.monotonic()
        return Call(connection, connection.new_place(), header, message, self.now())

    @staticmethod
    def connection_of(call: Call) -> Connection:
        """The connection that a request came on."""
        return cast(Connection, call.peer)

    def respond(self, call: Call, message: Message, is_long: bool = False) -> None:
        """Send the answer of a request."""
        connection = self.connection_of(call)
        if connection.closed:
            return
        if not is_long or self.loop is None:
            connection.answer(call.place, self.parts_of(call.header, message))
            return

        def answer(parts: list[Part], _: Instant) -> list[Effect]:
            if not connection.closed:
                connection.answer(call.place, parts)
            return []

        self._do_aside(aside(call, partial(self.parts_of, call.header, message), answer))

    def parts_of(self, header: RequestHeader, message: Message) -> list[Part]:
        """The answer to a request as it is sent."""
        assert header.api is not None
        return framed(header.api, header.version, header.correlation, message)

    def may_read(self, size: int) -> bool:
        """Whether the frames of all connections together stay below the limit with this one."""
        return self._held_limit < 0 or sum(one.held_bytes for one in self.connections) + size <= self._held_limit

    def on_closed(self, connection: Connection) -> None:
        """Forget a connection, and the fetches that wait on it."""
        self.acceptor.forget(connection)
        for waiting in self._waiting.pop(connection, ()):
            if not waiting.done:
                self.node.stop_waiting(waiting)
        self.counts.bytes_in += connection.bytes_in
        self.counts.bytes_out += connection.bytes_out

    # ---- time

    def set_timer(self) -> None:
        """Wake when the core's next timer is due."""
        deadline = self.node.timers.next_deadline()
        if deadline == self._timer_at or self.loop is None:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_at = deadline
        if deadline is not None:
            self._timer = self.loop.call_later(max(0, deadline - self.now().monotonic) / 1000, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = self._timer_at = None
        self.do_what_is_due()
        self.set_timer()

    def do_what_is_due(self) -> None:
        """Do what the core has to do at this time."""
        for effects in self.node.timers.due(self.now()):
            self.carry_out(effects)

    # ---- the listener

    def use(self, loop: asyncio.AbstractEventLoop) -> None:
        """Timers run from now on."""
        self.loop = loop
        self.set_timer()

    def listen(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        """Accept clients from now on."""
        self.acceptor.start(loop, sock)
        self.use(loop)

    def stop_listening(self) -> None:
        """Accept no more clients, and close the connections of those that are there."""
        self.acceptor.stop()
        if self._timer is not None:
            self._timer.cancel()


def _takes_long(effect: Effect) -> bool:
    """Whether an effect lets its connection wait."""
    match effect:
        case Aside() | InTurns() | Detain():
            return True
        case _:
            return False
