"""The processor time of a cluster's processes, those that have ended included."""

import asyncio
import contextlib
import os
from pathlib import Path

from kspec.trials.cluster.supervisor import ClusterSupervisor

SAMPLE_S = 0.2
"""The interval of samples (s): what a process takes between the last one and its death is not counted."""


class CpuMeter:
    """The processor time (s) of all processes of a cluster since the meter's beginning. Linux."""

    def __init__(self, cluster: ClusterSupervisor) -> None:
        self._cluster = cluster
        self._ticks: dict[tuple[str, int], int] = {}
        self._before = sum(self._sample().values())

    def _sample(self) -> dict[tuple[str, int], int]:
        for name, process in self._cluster.processes.items():
            if process.pid is not None and process.running:
                with contextlib.suppress(OSError):
                    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
                    self._ticks[name, process.pid] = int(fields[11]) + int(fields[12])
        return self._ticks

    async def run(self) -> None:
        """Take samples, for ever."""
        while True:
            self._sample()
            await asyncio.sleep(SAMPLE_S)

    @property
    def seconds(self) -> float:
        """The processor time so far."""
        return (sum(self._sample().values()) - self._before) / os.sysconf("SC_CLK_TCK")
