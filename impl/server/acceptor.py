"""The acceptor of a node: the connections that it has accepted, and how many it accepts."""

import asyncio
import logging
import socket
from collections import Counter

from kspec.impl.config.settings import SettingValues
from kspec.impl.server.network.connection import Connection, Owner, Traffic, configure

LOG = logging.getLogger("kspec.broker")


class Acceptor:
    """The socket that clients connect to, and their connections. `owner` handles what comes on them. Kafka: `Acceptor`."""

    def __init__(self, config: SettingValues, owner: Owner) -> None:
        self._config = config
        self._owner = owner
        self.connections: set[Connection] = set()
        self._from_host: Counter[str] = Counter()
        self._traffic = Traffic()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._socket: socket.socket | None = None

    def start(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        """Accept clients from now on."""
        self._loop, self._socket = loop, sock
        loop.add_reader(sock.fileno(), self._accept)

    def _accept(self) -> None:
        assert self._loop is not None
        assert self._socket is not None
        config = self._config
        for _ in range(64):
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                LOG.warning("cannot accept a connection: %s", error)
                return
            from_same = self._from_host[address[0]]
            most, most_from_same = config.number("max.connections"), config.number("max.connections.per.ip")
            if len(self.connections) >= most or from_same >= most_from_same:
                LOG.warning("refusing %s:%d: too many connections", *address[:2])
                sock.close()
                continue
            try:
                configure(sock, config.number("socket.send.buffer.bytes"), config.number("socket.receive.buffer.bytes"))
            except OSError:
                sock.close()
                continue
            self.connections.add(Connection(self._loop, sock, self._owner, address[:2], self._traffic))
            self._from_host[address[0]] += 1

    def forget(self, connection: Connection) -> None:
        """Forget a connection that is closed."""
        if connection in self.connections:
            self.connections.discard(connection)
            self._from_host[connection.host] -= 1
            if not self._from_host[connection.host]:
                del self._from_host[connection.host]

    def stop(self) -> None:
        """Accept no more clients, and close the connections of those that are there."""
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
        for connection in list(self.connections):
            connection.close()
