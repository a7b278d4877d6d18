"""Drivers of clusters on this machine: this project's brokers, and Apache Kafka.

A controller and three brokers are processes, each behind a proxy that can cut links (`trials.faults.links`, Linux only).
"""

import asyncio
import contextlib
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from kspec.conformance.cluster.driver import ABILITIES, DriverError, Factory
from kspec.conformance.cluster.electing import elect_by_wire
from kspec.conformance.kafka.cluster import KafkaProgram
from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java
from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import HOST, ClusterError, Program, nodes_of, ports_behind
from kspec.trials.cluster.programs import KspecProgram
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.faults.links import Link, Links
from kspec.trials.faults.power import erase_records

BROKERS = ("1", "2", "3")
COMMAND = (sys.executable, "-c", "from kspec.cli.start import main; main()", "broker")
SETTINGS = {
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "2000",
    "offsets.topic.num.partitions": "1",
}
"""Settings of the nodes. A lag is noticed before a session ends, so a leader that does not reach its controller has time to
propose an ISR."""


class ProcessCluster:
    """A cluster of processes, as `kspec cluster` runs it."""

    abilities: Collection[str] = tuple(ABILITIES)

    def __init__(self, title: str, program: Program, folder: Path, port: int) -> None:
        self.title = title
        nodes = nodes_of(folder, len(BROKERS), ports_behind(port, len(BROKERS)), SETTINGS)
        self.brokers: Mapping[str, tuple[str, int]] = {node.name: (HOST, node.told) for node in nodes if node.is_broker}
        self._cluster = ClusterSupervisor(ClusterFolder(folder), nodes, program, lambda line: None)
        self._links = Links({node.name: (node.told, node.port) for node in nodes}, self._cluster.folder.pids)
        self._watching: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """See `ClusterDriver`, also for what follows. Raises: `DriverError`."""
        try:
            await self._links.open()
            await self._cluster.start()
        except (OSError, ClusterError) as error:
            await self.close()
            raise DriverError(f"{self.title} does not start: {error}") from error
        self._watching = asyncio.create_task(self._cluster.watch())

    async def close(self) -> None:
        """End all processes, and the proxies."""
        if self._watching is not None:
            self._watching.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watching
        self._cluster.kill()
        await self._links.close()

    async def start(self, broker: str) -> None:
        """Return the broker to the supervisor, which starts it."""
        self._cluster.held.discard(broker)

    async def stop(self, broker: str) -> None:
        """SIGTERM."""
        self._cluster.held.add(broker)
        await self._cluster.stop_node(self._cluster.processes[broker])

    async def kill(self, broker: str) -> None:
        """SIGKILL."""
        self._cluster.held.add(broker)
        self._cluster.processes[broker].kill()

    async def pause(self, broker: str) -> None:
        """SIGSTOP."""
        self._cluster.processes[broker].pause()

    async def resume(self, broker: str) -> None:
        """SIGCONT."""
        self._cluster.processes[broker].resume()

    async def partition(self, links: Collection[Link]) -> None:
        """Cut these links, and mend all others."""
        self._links.cut_only(links)

    async def elect(self, topic: str, replicas: Sequence[int]) -> None:
        """By Kafka's own requests."""
        await elect_by_wire(self.brokers, topic, replicas)

    async def erase(self, broker: str) -> None:
        """Delete all files of the broker's log directory but the one with its identity."""
        erase_records(self._cluster.processes[broker].node.data)


def own(port: int, mutant: str | None = None) -> Factory:
    """This project's brokers by the rules of `next`; with one rule weakened, if a mutant is named."""
    nodes = ("controller", *BROKERS)
    program = KspecProgram(COMMAND, dict.fromkeys(nodes, "next"), dict.fromkeys(nodes, mutant))
    title = "kspec broker" + (f" with {mutant}" if mutant else "")
    return lambda folder: ProcessCluster(title, program, folder, port)


def kafka(port: int, release: str) -> Factory:
    """Apache Kafka: `kafka.Kafka`, one process for the controller and for each broker. Raises: `DriverError`."""
    try:
        java()
        program = KafkaProgram(find_jars(release))
    except KafkaMissingError as error:
        raise DriverError(str(error)) from error
    return lambda folder: ProcessCluster(f"Apache Kafka {release}", program, folder, port)
