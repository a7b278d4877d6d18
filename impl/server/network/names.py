"""Names of machines: they are looked up beside the loop, since that may take as long as the network likes."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple


class Place(NamedTuple):
    """An address that a socket can be connected to, and its family."""

    family: int
    address: Any


def literal(host: str, port: int) -> Place | None:
    """The place of a numeric address, which nobody has to be asked for; none if the host is a name."""
    with suppress(socket.gaierror):
        return _found(host, port, socket.AI_NUMERICHOST)[0]
    return None


def look_up(loop: asyncio.AbstractEventLoop, host: str, port: int, found: Callable[[list[Place]], None]) -> None:
    """Call `found` in the loop with the places of a name, in the order in which they are to be tried; none if it is unknown.

    A thread of its own asks, which the end of the process does not wait for.
    """

    def ask() -> None:
        try:
            places = _found(host, port)
        except (OSError, UnicodeError):
            places = []
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(found, places)

    Thread(target=ask, name=f"name of {host}", daemon=True).start()


def _found(host: str, port: int, flags: int = 0) -> list[Place]:
    told = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=flags)
    return [Place(family, address) for family, *_, address in told]
