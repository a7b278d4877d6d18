"""Faults carried out on a cluster, and undone."""

import asyncio
import contextlib
import resource
from collections.abc import Sequence

from impl.cluster.plan import ClusterError
from impl.cluster.supervisor import Cluster
from impl.faults.links import Links
from impl.faults.schedule import Fault

NOTHING_MORE = 1
"""The size (bytes) that no file may exceed while the disk is full."""


class Faulty:
    """A cluster with its links, and the faults that are upon it."""

    def __init__(self, cluster: Cluster, links: Links) -> None:
        self._cluster = cluster
        self._links = links

    async def carry_out(self, faults: Sequence[Fault]) -> None:
        """Carry out all faults, each at its time, and undo each when it has lasted. Raises: `ClusterError`."""
        try:
            async with asyncio.TaskGroup() as group:
                for fault in faults:
                    group.create_task(self._at_its_time(fault))
        finally:
            self.heal()

    async def _at_its_time(self, fault: Fault) -> None:
        await asyncio.sleep(fault.at)
        match fault.kind:
            case "kill":
                await self._kill(fault)
            case "pause":
                process = self._cluster.processes[fault.node]
                process.pause()
                await asyncio.sleep(fault.seconds)
                process.resume()
            case "cut" | "one-way":
                self._links.cut(fault.links)
                await asyncio.sleep(fault.seconds)
                self._links.mend(fault.links)
            case "disk":
                await self._fill_disk(fault)
            case "clock":
                node = self._cluster.processes[fault.node].node
                node.move_clock(round(fault.jump * 1000))
                await asyncio.sleep(fault.seconds)
                node.move_clock(0)
            case _:
                await self._roll()

    async def _kill(self, fault: Fault) -> None:
        self._cluster.held.add(fault.node)
        self._cluster.processes[fault.node].kill()
        await asyncio.sleep(fault.seconds)
        self._cluster.held.discard(fault.node)

    async def _fill_disk(self, fault: Fault) -> None:
        process = self._cluster.processes[fault.node]
        self._cluster.held.add(fault.node)
        process.limit_files(NOTHING_MORE)
        await asyncio.sleep(fault.seconds)
        process.limit_files(resource.RLIM_INFINITY)
        process.kill()
        self._cluster.held.discard(fault.node)

    async def _roll(self) -> None:
        for process in self._cluster.brokers:
            if process.serves and process.node.name not in self._cluster.held:
                with contextlib.suppress(ClusterError):  # another fault came between: it is started again as after any end
                    await self._cluster.restart(process.node.name)

    def heal(self) -> None:
        """Undo all faults."""
        self._links.mend()
        self._links.let_all_go()
        self._cluster.held.clear()
        for process in self._cluster.processes.values():
            if process.node.clock.exists():
                process.node.move_clock(0)
            process.limit_files(resource.RLIM_INFINITY)
            if process.paused:
                process.resume()
