"""Processes as the cluster of a story: a controller and brokers behind proxies."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kspec.conformance.story.cluster import PRODUCER_S, SETTINGS, TOPIC, StoryCluster, cap_answer
from kspec.conformance.story.messages import APIS, ParcelHold, StoryMessage
from kspec.conformance.story.snapshots import ReplicaSnapshot, replica_in
from kspec.impl.metadata.files import image_in
from kspec.impl.metadata.image import ClusterImage
from kspec.impl.wire.apis import CONTROLLER_APIS
from kspec.impl.wire.frames import framed, read_header
from kspec.impl.wire.reading import read_message
from kspec.impl.wire.requests import read_response
from kspec.impl.wire.values import Message
from kspec.impl.wire.writing import joined
from kspec.trials.cluster.asking import ask_once
from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import CONTROLLER, HOST, Program, UsageError, nodes_of, ports_behind
from kspec.trials.cluster.supervisor import ClusterSupervisor
from kspec.trials.cluster.waiting import within
from kspec.trials.faults.links import Links
from kspec.trials.faults.parcels import Parcel

POLL_S = 0.01

LOOKS = 20
"""Attempts to look up the process of a connection: the system's table may lack it while others come and go."""


class ProcessStoryCluster(StoryCluster):
    """Processes with logs on disk."""

    def __init__(
        self, folder: Path, port: int, brokers: int, program: Program, settings: Mapping[str, str], lag_s: float | None
    ) -> None:
        super().__init__(brokers, lag_s)
        nodes = nodes_of(folder, brokers, ports_behind(port, brokers), {**SETTINGS, **settings})
        self._cluster = ClusterSupervisor(ClusterFolder(folder), nodes, program, lambda line: None, restarts=False)
        ports = {node.name: (node.told, node.port) for node in nodes}
        self._links = Links(ports, self._pids, LOOKS)
        self._hold = ParcelHold(self.passes)
        self._links.add_hold(self._hold)
        self._producers: dict[int, asyncio.Task[None]] = {}

    # ---- start and end

    async def start_nodes(self) -> None:
        """Open the proxies, and start all processes. Raises: `UsageError`, `ClusterError`."""
        try:
            await self._links.open()
        except OSError as error:
            await self._links.close()
            raise UsageError(f"the proxies cannot listen: {error.strerror or error}") from error
        await self._cluster.start()

    async def end(self) -> None:
        """End all processes, whatever state they are in."""
        for task in self._producers.values():
            task.cancel()
        await asyncio.gather(*self._producers.values(), return_exceptions=True)
        self._cluster.kill()
        await self._links.close()

    def is_running(self, broker: int) -> bool:
        """Whether the process of a broker runs."""
        return self._cluster.processes[str(broker)].running

    def _pids(self) -> dict[str, int]:
        return {name: one.pid for name, one in self._cluster.processes.items() if one.running and one.pid is not None}

    # ---- time

    def now_s(self) -> float:
        """The time (s)."""
        return time.monotonic()

    async def within(self, seconds: float, holds: Callable[[], bool]) -> bool:
        """Whether a condition holds within so many seconds."""
        return await within(seconds, holds, POLL_S)

    # ---- messages

    @property
    def held(self) -> Sequence[Parcel]:
        """The parcels that are held now."""
        return self._hold.held

    def cap(self, message: StoryMessage, end: int) -> None:
        """Change the controller's response into an earlier one."""
        assert isinstance(message, Parcel), "between processes"
        answer = read_response("Fetch", message.version, memoryview(message.frame))[1]
        cap_answer(answer, end)
        correlation = int.from_bytes(message.frame[:4], "big")
        message.frame = joined(framed(CONTROLLER_APIS[message.key], message.version, correlation, answer))[4:]

    def request_of(self, message: StoryMessage) -> Message:
        """A request that is held, decoded."""
        assert isinstance(message, Parcel), "between processes"
        frame = memoryview(message.frame)
        header = read_header(frame, CONTROLLER_APIS)
        return read_message(f"{APIS[message.key]}Request", message.version, frame, header.body)[0]

    # ---- observations

    def image(self) -> ClusterImage:
        """The cluster image in the controller's metadata log."""
        return image_in(self._cluster.processes[CONTROLLER].node.data)

    def replica(self, broker: int) -> ReplicaSnapshot:
        """A broker's replica, in its files."""
        return replica_in(self._cluster.processes[str(broker)].node.data, TOPIC)

    # ---- clients

    async def ask_controller(self, api: str, version: int, **fields: Any) -> Message:
        """The controller's response to an administrator."""
        return await ask_once((HOST, self._cluster.processes[CONTROLLER].node.port), api, version, **fields)

    def send(self, leader: int, version: int, fields: Mapping[str, Any], number: int) -> None:
        """Send a producer's request, and note the acknowledgement whenever it comes."""
        self._producers[number] = asyncio.ensure_future(self._send(leader, version, fields, number))

    async def _send(self, leader: int, version: int, fields: Mapping[str, Any], number: int) -> None:
        place = HOST, self._cluster.processes[str(leader)].node.port
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
            self.note_response(await ask_once(place, "Produce", version, PRODUCER_S, **fields), number)
