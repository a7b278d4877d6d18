"""What is asked of a cluster under test: to start, and to suffer faults.

A driver is about fifty lines. Whoever has a cluster of another program writes one, in a file of his own, and names it on the
command line: `--driver FILE.py:NAME`. NAME takes a folder (`Path`) and gives the driver.
"""

import runpy
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

CONTROLLER, CLIENTS = "controller", "clients"
"""Ends of a link that are no brokers: the active controller; producers and consumers."""

Link = tuple[str, str]
"""A direction: from whom to whom. What is sent this way does not arrive while it is cut."""

STOP, KILL, PAUSE, PARTITION, ELECT, ERASE = "stop", "kill", "pause", "partition", "elect", "erase"
ABILITIES: Mapping[str, str] = {
    STOP: "a broker is shut down in order",
    KILL: "a broker is ended without warning, as by SIGKILL",
    PAUSE: "a broker stands still, as by SIGSTOP, and goes on",
    PARTITION: "what one sends to another does not arrive: brokers, the controller, clients",
    ELECT: "the leadership of a partition goes to another replica that is in sync, without a failure",
    ERASE: "a broker that is down loses all its records, as on a new disk, and can be started again",
}
"""What a driver may be able to do. A case that needs more than its driver can do is *not applicable*."""


class DriverError(Exception):
    """There is no such driver, or its cluster does not start: one line."""


class ClusterDriver(Protocol):
    """A cluster of three brokers. Methods wait until what they do is done, and raise `DriverError`.

    `title`: what runs, with its version. `abilities`: those of `ABILITIES` that it has; methods of others are never called.
    `brokers`: host and port of each broker by its id, as clients know them. The ids are those on the wire.
    """

    title: str
    abilities: Collection[str]
    brokers: Mapping[str, tuple[str, int]]

    async def open(self) -> None:
        """Start the cluster, with nothing in its logs, and wait until all brokers serve."""

    async def close(self) -> None:
        """End the cluster, whatever state it is in."""

    async def start(self, broker: str) -> None:
        """Start a broker that was stopped or killed. It need not serve yet."""

    async def stop(self, broker: str) -> None:
        """Shut a broker down in order. It stays down until it is started."""

    async def kill(self, broker: str) -> None:
        """End a broker without warning. It stays down until it is started."""

    async def pause(self, broker: str) -> None:
        """Let a broker stand still."""

    async def resume(self, broker: str) -> None:
        """Let it go on."""

    async def partition(self, links: Collection[Link]) -> None:
        """From now on exactly these links are cut; none: everybody reaches everybody."""

    async def elect(self, topic: str, replicas: Sequence[int]) -> None:
        """Let the first of these replicas of the topic's only partition lead, which is in sync: preferred election."""

    async def erase(self, broker: str) -> None:
        """Take all records from a broker that is down. It keeps its identity, as after `kafka-storage format`."""


Factory = Callable[[Path], ClusterDriver]


def factory_in(text: str) -> Factory:
    """The driver that FILE.py:NAME names. Raises: `DriverError`."""
    file, _, name = text.rpartition(":")
    try:
        found = runpy.run_path(file).get(name)
    except Exception as error:
        raise DriverError(f"{file}: {type(error).__name__}: {' '.join(str(error).split())}") from error
    if not callable(found):
        raise DriverError(f"{file} has no driver {name!r}")
    factory: Factory = found
    return factory
