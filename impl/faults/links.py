"""Who may reach whom: every connection to a node goes through a proxy, which knows who has opened it.

Nodes tell each other one address, so the address does not say who comes. The process at the other end of a connection
does, and the system knows it (`/proc`, Linux only). A link that is cut lets nothing through, in one direction or in both:
bytes wait until it is whole again, as the network's own repetitions would bring them. Who connects meanwhile is not
answered.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from impl.cluster.plan import HOST
from impl.faults.connections import inode_of

CLIENTS = "clients"
"""Whoever is no node."""

CHUNK = 1 << 16

Link = tuple[str, str]
"""A direction: from whom to whom."""


def owner_of(local_port: int, remote_port: int, pids: Mapping[str, int]) -> str:
    """The node whose process has the connection from one port of this machine to another; `CLIENTS`, if none has it."""
    inode = inode_of(local_port, remote_port)
    for name, pid in pids.items() if inode else ():
        try:
            files = list(os.scandir(f"/proc/{pid}/fd"))
        except OSError:
            continue
        for file in files:
            try:
                if os.readlink(file.path) == f"socket:[{inode}]":
                    return name
            except OSError:
                continue
    return CLIENTS


class Proxies(ABC):
    """A proxy for each node: the port that others are told, and the one on which it listens.

    `pids` gives the processes of the nodes that run now.
    """

    def __init__(self, ports: Mapping[str, tuple[int, int]], pids: Callable[[], Mapping[str, int]]) -> None:
        self._ports = ports
        self.pids = pids
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Listen where the nodes tell others to connect. Raises: `OSError`."""
        for name, (told, listens) in self._ports.items():
            self._servers.append(await asyncio.start_server(self._serving(name, listens), HOST, told))

    async def close(self) -> None:
        """Close the ports and all connections."""
        for server in self._servers:
            server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _serving(self, name: str, listens: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], None]:
        def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self.carry(name, listens, reader, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        return accepted

    @abstractmethod
    async def carry(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection to a node until either side closes it."""


class Links(Proxies):
    """Proxies, and which directions are cut."""

    def __init__(self, ports: Mapping[str, tuple[int, int]], pids: Callable[[], Mapping[str, int]]) -> None:
        super().__init__(ports, pids)
        self._cut: set[Link] = set()
        self._changed = asyncio.Event()

    @property
    def cut_now(self) -> frozenset[Link]:
        """The ways that nothing goes now."""
        return frozenset(self._cut)

    def cut(self, links: Iterable[Link]) -> None:
        """Nothing goes these ways from now on."""
        self._cut |= set(links)

    def mend(self, links: Iterable[Link] | None = None) -> None:
        """These ways, or all, are open again, and what has waited goes on."""
        self._cut -= set(self._cut if links is None else links)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _open_way(self, *links: Link) -> None:
        while self._cut & set(links):
            await self._changed.wait()

    async def carry(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection to a node until either side closes it."""
        both = [writer]
        try:
            _, told = writer.get_extra_info("sockname")
            _, theirs = writer.get_extra_info("peername")
            source = owner_of(theirs, told, self.pids())
            there, back = (source, name), (name, source)
            await self._open_way(there, back)
            node_reader, node_writer = await asyncio.open_connection(HOST, port)
            both.append(node_writer)
            ways = [
                asyncio.ensure_future(self._one_way(there, reader, node_writer)),
                asyncio.ensure_future(self._one_way(back, node_reader, writer)),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)
        except OSError:
            pass
        finally:
            for one in both:
                one.close()

    async def _one_way(self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes one way until they end."""
        try:
            while data := await reader.read(CHUNK):
                await self._open_way(link)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        await self._open_way(link)
