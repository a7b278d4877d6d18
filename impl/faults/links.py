"""Who may reach whom: every connection to a node goes through a proxy, which knows who has opened it.

Nodes tell each other one address, so the address does not say who comes. The process at the other end of a connection
does, and the system knows it (`/proc`, Linux only). A link that is cut lets nothing through, in one direction or in both:
messages wait until it is whole again, as the network's own repetitions would bring them. Who connects meanwhile is not
answered. Messages of one API can be held by themselves.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from impl.cluster.plan import HOST
from impl.faults.connections import inode_of
from impl.faults.parcels import Line, Parcel, read_frame, with_length
from impl.wire.requests import sent

CLIENTS = "clients"
"""Whoever is no node."""

LOOKS, LOOK_S = 5, 0.01
"""How often it is looked up who has opened a connection, before nobody known has: a table may miss one for a moment."""

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


class Hold:
    """Messages of one kind that do not arrive for now. `held`: those that wait, the oldest first.

    It is about what `source` asks `target` by an API, or about the answers to that. `most`: how many it takes; all, if not
    given. What has waited arrives in the end, even if its sender has gone meanwhile: a late copy.
    """

    def __init__(self, source: str, target: str, api: str, *, answers: bool, most: int | None) -> None:
        self.held: list[Parcel] = []
        self.ended = False
        self._kind = (source, target, sent(api).key, answers)
        self._left = most

    def takes(self, parcel: Parcel) -> bool:
        """Whether a message is held; it is one of `held` then."""
        kind = (parcel.source, parcel.target, parcel.key, parcel.is_answer)
        if self.ended or kind != self._kind or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
        self.held.append(parcel)
        return True

    def release_one(self) -> None:
        """Let the oldest one arrive; the others go on waiting."""
        if self.held:
            self.held.pop(0).release()

    def lose(self) -> None:
        """Lose those that wait, with their connections; the next ones are held."""
        while self.held:
            self.held.pop(0).lose()

    def let_go(self) -> None:
        """Hold nothing any more, and let all arrive."""
        self.ended = True
        while self.held:
            self.release_one()


class Links(Proxies):
    """Proxies, which directions are cut, and what is held."""

    def __init__(self, ports: Mapping[str, tuple[int, int]], pids: Callable[[], Mapping[str, int]]) -> None:
        super().__init__(ports, pids)
        self._cut: set[Link] = set()
        self._changed = asyncio.Event()
        self._holds: list[Hold] = []

    def hold(self, source: str, target: str, api: str, *, answers: bool = False, most: int | None = None) -> Hold:
        """Hold what one node asks another by an API, or the answers, until it is let go."""
        self._holds = [one for one in self._holds if not one.ended]
        self._holds.append(Hold(source, target, api, answers=answers, most=most))
        return self._holds[-1]

    @property
    def holds_now(self) -> int:
        """How many holds have not been let go."""
        return sum(not one.ended for one in self._holds)

    def let_all_go(self) -> None:
        """Hold nothing any more."""
        for one in self._holds:
            one.let_go()

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
            source = await self._owner(theirs, told)
            there, back = (source, name), (name, source)
            await self._open_way(there, back)
            node_reader, node_writer = await asyncio.open_connection(HOST, port)
            both.append(node_writer)
            line = Line(source, name)
            ways = [
                asyncio.ensure_future(self._one_way(there, reader, node_writer, line.request)),
                asyncio.ensure_future(self._one_way(back, node_reader, writer, line.answer)),
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

    async def _owner(self, theirs: int, told: int) -> str:
        for _ in range(LOOKS):
            source = owner_of(theirs, told, self.pids())
            if source != CLIENTS:
                return source
            await asyncio.sleep(LOOK_S)
        return CLIENTS

    async def _one_way(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parcel_of: Callable[[bytes], Parcel]
    ) -> None:
        """Carry messages one way until they end, or one is lost."""
        try:
            while True:
                parcel = parcel_of(await read_frame(reader))
                await self._open_way(link)
                if any(hold.takes(parcel) for hold in self._holds) and not await parcel.fate:
                    return
                writer.write(with_length(parcel.frame))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        await self._open_way(link)
