"""Connections that this process opens: to the controller and to other brokers, one for each purpose.

A connection is opened with the first request, asks for the versions of the other side first, and has one request in flight
at a time. When it is lost, all requests that wait get no response.
"""

import asyncio
import errno
import logging
import socket
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from kspec.impl.broker.calls import Ask
from kspec.impl.broker.calls import ChannelKey as Name
from kspec.impl.server.network.connection import Connection, configure
from kspec.impl.server.network.names import FoundAddress, literal, look_up
from kspec.impl.wire.requests import read_response, request_parts, sent
from kspec.impl.wire.values import DecodeError, Message
from kspec.spec.values import Error

LOG = logging.getLogger("kspec.channels")

CONNECT_SECONDS = 10.0
UNKNOWN_SECONDS = 1.0
"""The time after which a name that is not known is asked for again. Kafka: `reconnect.backoff.max.ms`."""
Address = tuple[str, int]
Answered = Callable[[Ask, Message | None], None]


class Channel:
    """One connection of this process to another, with the requests that wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, name: Name, largest_frame: int, answered: Answered) -> None:
        self.name = name
        self.largest_frame = largest_frame
        self._loop = loop
        self._answered = answered
        self._waiting: deque[Ask] = deque()
        self._under_way: Ask | None = None
        self._connection: Connection | None = None
        self._connecting: socket.socket | None = None
        self._is_opening = False
        self._opening = 0
        """The number of the connection that is being opened: a name that is found later is not for it."""
        self._unknown_until = 0.0
        """The time of the loop (s) up to which the name is not asked for again; 0 if it was not unknown at last."""
        self._versions: dict[int, tuple[int, int]] = {}
        self._correlation = 0
        self._timer: asyncio.TimerHandle | None = None
        self._hello = Ask(name, "ApiVersions", Message(), lambda answer, now: [])
        """The first request of a connection, whose response the channel itself takes."""

    def ask(self, asked: Ask, address: Address | None) -> None:
        """Send a request when its turn comes. Without an address it gets no response."""
        if address is None:
            self._loop.call_soon(self._answered, asked, None)
            return
        self._waiting.append(asked)
        if self._connection is not None:
            self._next()
        elif not self._is_opening:
            self._connect(address)

    # ---- connections

    def _connect(self, address: Address) -> None:
        self._opening += 1
        self._is_opening = True
        self._wait(min(CONNECT_SECONDS, self._patience))
        numeric = literal(*address)
        if numeric is not None:
            self._try([numeric], address)
        elif self._loop.time() < self._unknown_until:
            self._loop.call_soon(self._fail)
        else:
            look_up(self._loop, *address, partial(self._named, self._opening, address))

    def _named(self, opening: int, address: Address, addresses: list[FoundAddress]) -> None:
        if opening != self._opening or not self._is_opening:
            return
        if addresses:
            self._unknown_until = 0.0
            self._try(addresses, address)
            return
        if not self._unknown_until:
            LOG.warning("the name of node %d, %s, is not known", self.name.node, address[0])
        self._unknown_until = self._loop.time() + UNKNOWN_SECONDS
        self._fail()

    def _try(self, addresses: list[FoundAddress], address: Address) -> None:
        """Connect to the first of these addresses that can be reached."""
        while addresses:
            (family, at), *addresses = addresses
            with suppress(OSError):  # a machine may be without one of the families
                sock = socket.socket(family, socket.SOCK_STREAM)
                configure(sock, -1, -1)
                if sock.connect_ex(at) in (0, errno.EINPROGRESS):
                    self._connecting = sock
                    self._loop.add_writer(sock.fileno(), self._connected, addresses, address)
                    return
                sock.close()
        self._loop.call_soon(self._fail)

    def _connected(self, others: list[FoundAddress], address: Address) -> None:
        sock, self._connecting = self._connecting, None
        assert sock is not None
        self._loop.remove_writer(sock.fileno())
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            sock.close()
            if others:
                self._try(others, address)
            else:
                self._fail()
            return
        self._stop_waiting()
        self._is_opening = False
        self._versions = {}
        self._connection = Connection(self._loop, sock, self, address)
        self._hello.timeout_ms = int(self._patience * 1000)
        self._send(self._hello, 0)

    @property
    def _patience(self) -> float:
        """The longest wait (s) of the request that comes first."""
        return self._waiting[0].timeout_ms / 1000 if self._waiting else CONNECT_SECONDS

    # ---- requests

    def _next(self) -> None:
        if self._under_way is None and self._waiting and self._versions and self._connection is not None:
            asked = self._waiting.popleft()
            version = self._version_of(asked.api)
            if version is not None and version < asked.lowest:
                self._loop.call_soon(self._answered, asked, Message(error_code=Error.UNSUPPORTED_VERSION.value))
                self._loop.call_soon(self._next)
                return
            if version is None:
                LOG.warning("node %d does not know %s", self.name.node, asked.api)
                self._loop.call_soon(self._answered, asked, None)
                self._loop.call_soon(self._next)
                return
            self._send(asked, version)

    def _version_of(self, api: str) -> int | None:
        """The highest version that both sides know."""
        facts = sent(api)
        first, last = self._versions.get(facts.key, (0, -1))
        version = min(last, facts.versions.last)
        return version if version >= max(first, facts.versions.first) else None

    def _send(self, asked: Ask, version: int) -> None:
        connection = self._connection
        assert connection is not None
        self._under_way = asked
        self._version = version
        self._correlation = (self._correlation + 1) & 0x7FFFFFFF
        self._wait(asked.timeout_ms / 1000)
        connection.send(request_parts(sent(asked.api), version, self._correlation, asked.message))

    def _wait(self, seconds: float) -> None:
        self._stop_waiting()
        self._timer = self._loop.call_later(seconds, self._on_time)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_time(self) -> None:
        self._timer = None
        LOG.info("node %d does not answer (%s)", self.name.node, self.name.purpose)
        self.close()
        self._fail()

    # ---- responses, as the owner of a connection

    def may_read(self, size: int) -> bool:
        """Allow a response of any size: its request has limits."""
        return True

    def begin(self) -> None:
        """Do nothing: responses are taken one by one."""

    def settle(self, connection: Connection, last: bool) -> None:
        """Do nothing: no work was postponed."""

    def on_frame(self, connection: Connection, frame: memoryview) -> None:
        """Take a response."""
        asked, self._under_way = self._under_way, None
        self._stop_waiting()
        try:
            if asked is None:
                raise DecodeError("a response without a request")
            correlation, message = read_response(asked.api, self._version, frame)
            if correlation != self._correlation:
                raise DecodeError(f"the answer to request {correlation}, not {self._correlation}")
        except DecodeError as error:
            LOG.warning("closing the connection to node %d: %s", self.name.node, error)
            self._under_way = asked
            connection.close()
            return
        if asked is self._hello:
            self._versions = {one.api_key: (one.min_version, one.max_version) for one in message.api_keys}
        else:
            self._answered(asked, message)
        self._next()

    def on_closed(self, connection: Connection) -> None:
        """Fail all requests: the connection is closed by the other side, or lost."""
        self._connection = None
        self._versions = {}
        self._fail()

    def _fail(self) -> None:
        """Let all waiting requests go without a response."""
        self._stop_waiting()
        self._is_opening = False
        if self._connecting is not None:
            self._loop.remove_writer(self._connecting.fileno())
            self._connecting.close()
            self._connecting = None
        under_way, self._under_way = self._under_way, None
        waiting = [one for one in (under_way, *self._waiting) if one is not None]
        self._waiting.clear()
        for asked in waiting:
            if asked is not self._hello:
                self._answered(asked, None)

    def close(self) -> None:
        """Close the connection; waiting requests get no response."""
        if self._connection is not None:
            self._connection.close()


class Channels:
    """All channels of this process. `address_of`: the present address of a node."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        address_of: Callable[[int], Address | None],
        largest_frame: int,
        answered: Answered,
    ) -> None:
        self._loop = loop
        self._address_of = address_of
        self._largest_frame = largest_frame
        self._answered = answered
        self._channels: dict[tuple[Name, Address | None], Channel] = {}

    def ask(self, asked: Ask) -> None:
        """Send a request on its channel."""
        address = self._address_of(asked.channel.node)
        key = (asked.channel, address)
        channel = self._channels.get(key)
        if channel is None:
            channel = self._channels[key] = Channel(self._loop, asked.channel, self._largest_frame, self._answered)
        channel.ask(asked, address)

    def leave(self, node: int, but: Address | None) -> None:
        """Close the connections to a node at other addresses than this one: it is somewhere else now."""
        for (name, address), channel in self._channels.items():
            if name.node == node and address != but:
                channel.close()

    def close(self) -> None:
        """Close all connections."""
        for channel in self._channels.values():
            channel.close()
