"""Links between nodes: every connection to a node goes through a proxy, which knows the node that has opened it.

All nodes are given one address, so the address does not identify the sender. The process at the other end of the
connection does (`/proc`, Linux only). A link that is cut lets nothing through, in one direction or in both: messages wait
until it is mended, as TCP would retransmit them. Connections that are opened meanwhile get no answer. Messages of one API
can be held by themselves.
"""

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping

from kspec.impl.wire.requests import sent
from kspec.trials.cluster.plan import HOST
from kspec.trials.faults.connections import inode_of
from kspec.trials.faults.parcels import Parcel, ParcelLine, read_frame, with_length

CLIENTS = "clients"
"""The source of all connections that no node has opened."""

LOOKS, LOOK_S = 5, 0.01
"""Attempts to look up the process of a connection, before it counts as a client's: the table may lack it for a moment."""

Link = tuple[str, str]
"""A direction: source and target."""


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


class MessageHold(ABC):
    """Messages that do not arrive for now. `held`: the waiting ones, the oldest first.

    `arrive_late`: whether a held message arrives in the end even if its sender has closed the connection meanwhile, as a
    late copy; else it is lost then.
    """

    arrive_late: bool

    def __init__(self) -> None:
        self.held: list[Parcel] = []
        self.ended = False

    @abstractmethod
    def is_wanted(self, parcel: Parcel) -> bool:
        """Whether a message that comes is to be held."""

    def takes(self, parcel: Parcel) -> bool:
        """Whether a message is held; it is one of `held` then."""
        if self.ended or not self.is_wanted(parcel):
            return False
        self.held.append(parcel)
        return True

    def let_go(self) -> None:
        """Hold nothing any more, and let all arrive."""
        self.ended = True
        for parcel in self.held:
            parcel.release()


class Hold(MessageHold):
    """The requests of one API from `source` to `target` that do not arrive for now, or the responses to them.

    `most`: the largest number of messages held; all, if not given.
    """

    arrive_late = True

    def __init__(self, source: str, target: str, api: str, *, answers: bool, most: int | None) -> None:
        super().__init__()
        self._kind = (source, target, sent(api).key, answers)
        self._left = most

    def is_wanted(self, parcel: Parcel) -> bool:
        """Whether a message is of this kind, and no more than `most` have been."""
        if (parcel.source, parcel.target, parcel.key, parcel.is_answer) != self._kind or self._left == 0:
            return False
        if self._left is not None:
            self._left -= 1
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
        super().let_go()
        self.held.clear()


class Links:
    """A proxy for each node, the directions that are cut, and the messages that are held.

    `ports`: the advertised port of each node, and the port on which it listens. `pids` gives the processes of the nodes that
    run now. `looks`: attempts to look up the process of a connection, before it counts as a client's.
    """

    def __init__(
        self, ports: Mapping[str, tuple[int, int]], pids: Callable[[], Mapping[str, int]], looks: int = LOOKS
    ) -> None:
        self._ports = ports
        self.pids = pids
        self._looks = looks
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._cut: set[Link] = set()
        self._changed = asyncio.Event()
        self._holds: list[MessageHold] = []

    async def open(self) -> None:
        """Listen on the advertised ports. Raises: `OSError`."""
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

    def hold(self, source: str, target: str, api: str, *, answers: bool = False, most: int | None = None) -> Hold:
        """Hold what one node asks another by an API, or the answers, until it is let go."""
        hold = Hold(source, target, api, answers=answers, most=most)
        self.add_hold(hold)
        return hold

    def add_hold(self, hold: MessageHold) -> None:
        """Ask a hold about each message that comes from now on, until it has ended."""
        self._holds = [one for one in self._holds if not one.ended]
        self._holds.append(hold)

    @property
    def holds_now(self) -> int:
        """The number of holds that have not been let go."""
        return sum(not one.ended for one in self._holds)

    def let_all_go(self) -> None:
        """Hold nothing any more."""
        for one in self._holds:
            one.let_go()

    def is_cut(self, link: Link) -> bool:
        """Whether nothing goes this way now."""
        return link in self._cut

    def cut(self, links: Iterable[Link]) -> None:
        """Nothing goes these ways from now on."""
        self._cut |= set(links)

    def cut_only(self, links: Iterable[Link]) -> None:
        """Nothing goes these ways from now on, and all others are open."""
        self.mend(self._cut - set(links))
        self.cut(links)

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
            line = ParcelLine(source, name)
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
        for _ in range(self._looks):
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
                hold = next((one for one in self._holds if one.takes(parcel)), None)
                if hold is not None and not await self._arrives(parcel, hold, reader):
                    return
                writer.write(with_length(parcel.frame))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        await self._open_way(link)

    @staticmethod
    async def _arrives(parcel: Parcel, hold: MessageHold, reader: asyncio.StreamReader) -> bool:
        """Whether a held message arrives, once that is decided."""
        try:
            while not (hold.arrive_late or parcel.fate.done() or reader.at_eof()):
                await asyncio.wait([parcel.fate], timeout=LOOK_S)
            return await parcel.fate if hold.arrive_late or parcel.fate.done() else False
        finally:
            if parcel in hold.held:
                hold.held.remove(parcel)
