"""The injector of faults into a cluster of processes, which also undoes them."""

import asyncio
import resource
from collections.abc import Coroutine, Sequence

from kspec.trials.cluster.clocks import move_clock
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.faults.kinds import KINDS, ProcessFault
from kspec.trials.faults.links import Links


class FaultInjector:
    """The injector of faults into a cluster and its links."""

    def __init__(self, cluster: ClusterSupervisor, links: Links) -> None:
        self.cluster = cluster
        self.links = links
        self._group = asyncio.TaskGroup()

    async def carry_out(self, faults: Sequence[ProcessFault]) -> None:
        """Inject all faults, each at its time, and undo each at its end."""
        self._group = asyncio.TaskGroup()
        try:
            async with self._group:
                for fault in faults:
                    self.begin(self._at_its_time(fault))
        finally:
            self.heal()

    def begin(self, work: Coroutine[None, None, None]) -> None:
        """Begin with something that is part of the faults: they are over when it is."""
        self._group.create_task(work)

    async def _at_its_time(self, planned: ProcessFault) -> None:
        await asyncio.sleep(planned.at)
        fault = KINDS[planned.kind](self, planned)
        if fault.act() and fault.is_undone:
            await asyncio.sleep(planned.seconds)
            fault.undo()

    def heal(self) -> None:
        """Undo all faults."""
        self.links.mend()
        self.links.let_all_go()
        self.cluster.held.clear()
        for process in self.cluster.processes.values():
            if process.node.clock.exists():
                move_clock(process.node.clock, 0)
            process.limit_files(resource.RLIM_INFINITY)
            if process.paused:
                process.resume()
