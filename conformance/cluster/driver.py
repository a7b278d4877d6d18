"""The interface of a driver, which starts a cluster under test and brings faults about.

A driver is about fifty lines. One for a cluster of another program is a file of its own that is named on the command line:
`--driver FILE.py:NAME`. NAME takes a folder (`Path`) and returns the driver.
"""

import runpy
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from kspec.trials.faults.links import Link
from kspec.trials.faults.plans.steps import Schedule, StepKind

STOP, KILL, PAUSE, PARTITION, ELECT, ERASE = "stop", "kill", "pause", "partition", "elect", "erase"
ABILITIES: Mapping[str, str] = {
    STOP: "a broker is shut down in order",
    KILL: "a broker is ended without warning, as by SIGKILL",
    PAUSE: "a broker is paused, as by SIGSTOP, and resumed",
    PARTITION: "messages from one to another do not arrive: brokers, the controller, clients",
    ELECT: "the leadership of a partition goes to another replica that is in sync, without a failure",
    ERASE: "a broker that is down loses all its records, as on a new disk, and can be started again",
}
"""Abilities that a driver may have. A case that needs more than its driver can do is *not applicable*."""


NEEDS = {
    StepKind.CUT: PARTITION,
    StepKind.ELECT: ELECT,
    StepKind.KILL: KILL,
    StepKind.STOP: STOP,
    StepKind.PAUSE: PAUSE,
    StepKind.ERASE: ERASE,
}
"""The ability that a step needs."""


def needs(schedule: Schedule) -> frozenset[str]:
    """The abilities that a driver must have for the steps of a run."""
    is_used = (step.kind is not StepKind.CUT or bool(step.links) for step in schedule.steps)
    return frozenset(
        NEEDS[step.kind] for step, used in zip(schedule.steps, is_used, strict=True) if used and step.kind in NEEDS
    )


class DriverError(Exception):
    """A driver that does not exist, or whose cluster does not start: one line."""


class ClusterDriver(Protocol):
    """A cluster of three brokers. Methods return when their effect has taken place, and raise `DriverError`.

    `title`: the program with its version. `abilities`: those of `ABILITIES` that it has; methods of others are never called.
    `brokers`: host and port of each broker by its id, as clients connect to them. The ids are those on the wire.
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
        """Pause a broker."""

    async def resume(self, broker: str) -> None:
        """Resume a broker."""

    async def partition(self, links: Collection[Link]) -> None:
        """Cut exactly these links, and mend all others."""

    async def elect(self, topic: str, replicas: Sequence[int]) -> None:
        """Elect the first of these replicas of the topic's only partition, which is in sync: a preferred election."""

    async def erase(self, broker: str) -> None:
        """Delete all records of a broker that is down. It keeps its identity, as after `kafka-storage format`."""


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
