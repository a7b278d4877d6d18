"""Names of machines: they are looked up beside the loop, since that may take as long as the network likes."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import NamedTuple


class FoundAddress(NamedTuple):
    """An address that a socket can be connected to, and its family."""

    family: int
    address: tuple[object, ...]


def literal(host: str, port: int) -> FoundAddress | None:
    """The address if it is numeric, so that nobody has to be asked for it; none if the host is a name."""
    with suppress(OSError, ValueError):  # UnicodeError: a name that cannot be one
        return _found(host, port, socket.AI_NUMERICHOST)[0]
    return None


def look_up(loop: asyncio.AbstractEventLoop, host: str, port: int, found: Callable[[list[FoundAddress]], None]) -> None:
    """Call `found` in the loop with the addresses of a name, in the order in which to try them; none if it is not known.

    A thread of its own asks, which the end of the process does not wait for.
    """

    def ask() -> None:
        try:
            addresses = _found(host, port)
        except (OSError, ValueError):
            addresses = []
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(found, addresses)

    Thread(target=ask, name=f"name of {host}", daemon=True).start()


def _found(host: str, port: int, flags: int = 0) -> list[FoundAddress]:
    told = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [FoundAddress(family, address) for family, *_, address in told]
