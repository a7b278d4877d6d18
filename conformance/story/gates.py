"""Gates between processes: every request and every answer between two nodes can be held, let through, changed or lost.

Each node listens behind a gate, and the others are told the gate's port. A gate reads only how long a message is, and of
which API; who has opened a connection is known by its process (`impl.faults.links`, Linux only).
"""

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from conformance.story.words import StoryError
from impl.cluster.plan import HOST, UsageError
from impl.cluster.waiting import within
from impl.faults.links import CLIENTS, Proxies, owner_of
from impl.faults.parcels import Line, Parcel, read_frame, with_length

PATIENCE_S = 60.0
"""An emergency stop: what does not come within this time does not come."""

POLL_S = 0.01
LOOKS = 20
"""How often it is looked up who has opened a connection, before nobody known has."""


Passes = Callable[[Parcel], bool]


class Gates(Proxies):
    """The gates of all nodes. `passes` says of each parcel, when it comes, whether it arrives at once; others are held.

    It may change the frame of a parcel. `ports`: for each node the port that the others are told, and its own.
    """

    def __init__(self, ports: Mapping[str, tuple[int, int]], pids: Callable[[], Mapping[str, int]], passes: Passes) -> None:
        super().__init__(ports, pids)
        self._passes = passes
        self.held: list[Parcel] = []

    async def open(self) -> None:
        """Listen where the nodes tell others to connect. Raises: `UsageError`."""
        try:
            await super().open()
        except OSError as error:
            await self.close()
            raise UsageError(f"the gates cannot listen: {error.strerror or error}") from error

    # ---- who plays

    def waiting(self, wanted: Passes) -> list[Parcel]:
        """The parcels of a kind that are held now."""
        return [parcel for parcel in self.held if wanted(parcel)]

    async def until_held(self, wanted: Passes, what: str) -> Parcel:
        """The first parcel of a kind that is held, once there is one. Raises: `StoryError`."""
        await until(lambda: bool(self.waiting(wanted)), what)
        return self.waiting(wanted)[0]

    def lose(self, wanted: Passes) -> None:
        """Lose all parcels of a kind that are held."""
        for parcel in self.waiting(wanted):
            parcel.lose()

    def look_again(self) -> None:
        """Let those through that may pass by now."""
        for parcel in self.waiting(self._passes):
            parcel.release()

    # ---- connections

    async def carry(self, name: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection until either side closes it, or a parcel on it is lost."""
        writers, ways = [writer], []
        try:
            _, told = writer.get_extra_info("sockname")
            _, theirs = writer.get_extra_info("peername")
            source = await self._owner(theirs, told)
            node_reader, node_writer = await asyncio.open_connection(HOST, port)
            writers.append(node_writer)
            line = Line(source, name)
            ways = [
                asyncio.ensure_future(self._way(reader, node_writer, line.request)),
                asyncio.ensure_future(self._way(node_reader, writer, line.answer)),
            ]
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for one in writers:
                one.close()

    async def _owner(self, theirs: int, told: int) -> str:
        """The node that has opened a connection. The system's table of connections may miss one while others come and go."""
        for _ in range(LOOKS):
            source = owner_of(theirs, told, self.pids())
            if source != CLIENTS:
                return source
            await asyncio.sleep(POLL_S)
        return CLIENTS

    async def _way(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, parcel_of: Callable[[bytes], Parcel]
    ) -> None:
        """Carry the parcels of one direction, one after the other, until one is lost or there are no more."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            while True:
                parcel = parcel_of(await read_frame(reader))
                if not await self._arrives(parcel, reader):
                    return
                writer.write(with_length(parcel.frame))
                await writer.drain()

    async def _arrives(self, parcel: Parcel, reader: asyncio.StreamReader) -> bool:
        """Whether a parcel arrives, once that is known. One whose sender is gone does not."""
        if self._passes(parcel):
            return True
        self.held.append(parcel)
        try:
            while not parcel.fate.done() and not reader.at_eof():
                await asyncio.wait([parcel.fate], timeout=POLL_S)
            return parcel.fate.done() and parcel.fate.result()
        finally:
            self.held.remove(parcel)


async def until(holds: Callable[[], bool], what: str, seconds: float = PATIENCE_S) -> None:
    """Wait until something holds. Raises: `StoryError`, after a long time."""
    if not await within(seconds, holds, POLL_S):
        raise StoryError(f"{what}: not within {seconds:g} s")
