"""The supervisor of a cluster's processes, which starts them, restarts them when they end, and shuts them down."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Sequence

from kspec.trials.cluster.folder import ClusterFolder
from kspec.trials.cluster.plan import HOST, ClusterError, Node, Program, UsageError
from kspec.trials.cluster.process import NodeProcess

POLL_S = 0.05
START_S, STOP_S = 120.0, 60.0
"""The longest waits (s): for a node that starts, and for one that shuts down."""

QUICK_S, PAUSES_S = 5.0, (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""The time within which an end counts as quick, and the pauses before the next start after each quick end (s)."""


class ClusterSupervisor:
    """The processes of a cluster. `say` takes a line about each event."""

    def __init__(
        self,
        folder: ClusterFolder,
        nodes: Sequence[Node],
        program: Program,
        say: Callable[[str], None],
        *,
        restarts: bool = True,
    ) -> None:
        self.folder = folder
        self.say = say
        self.restarts = restarts
        self.held: set[str] = set()
        """Nodes that are to stay down for now."""
        self.processes = {node.name: NodeProcess(node, program) for node in nodes}
        self._started_at: dict[str, float] = {}
        self._again_at: dict[str, float] = {}
        self._quick_ends: dict[str, int] = {}
        self._asked: set[str] = set()
        self._pids: dict[str, int] = {}
        self._taken = False

    @property
    def brokers(self) -> list[NodeProcess]:
        """The brokers, in the order of their ids."""
        return [process for process in self.processes.values() if process.node.is_broker]

    @property
    def addresses(self) -> str:
        """The addresses to which clients connect."""
        return ",".join(process.node.address for process in self.brokers)

    # ---- start

    async def start(self) -> None:
        """Write the settings, start all nodes, and wait until all serve. A failure leaves no process behind.

        Raises: `UsageError`, `ClusterError`.
        """
        self.folder.take()
        self._taken = True
        try:
            known = self.folder.nodes()
            for process in self.processes.values():
                _must_be_free(process.node)
                _must_not_be_emptied(process.node, known)
            for process in self.processes.values():
                self._write_settings(process.node)
            prepared = (asyncio.to_thread(one.program.prepare, one.node) for one in self.processes.values())
            await asyncio.gather(*prepared)
            self.folder.write_nodes(known | self.processes.keys())
            controllers = [process for process in self.processes.values() if not process.node.is_broker]
            for together in (controllers, self.brokers):
                for process in together:
                    self._begin(process)
                for process in together:
                    await self._until_it_serves(process)
        except BaseException:
            self.kill()
            raise

    def _write_settings(self, node: Node) -> None:
        node.folder.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{name}={value}\n" for name, value in node.properties.items())
        node.file.write_text(text, encoding="utf-8")

    def _begin(self, process: NodeProcess) -> None:
        process.start()
        self._started_at[process.node.name] = time.monotonic()
        self._note_pids()

    async def _until_it_serves(self, process: NodeProcess) -> None:
        end = time.monotonic() + START_S
        while not process.serves:
            if not process.running:
                raise (UsageError if process.status == 2 else ClusterError)(process.complaint())
            if time.monotonic() > end:
                raise ClusterError(f"{process.node} does not serve after {START_S:g} s; see {process.output}")
            await asyncio.sleep(POLL_S)

    def _note_pids(self) -> None:
        pids = {name: process.pid for name, process in self.processes.items() if process.running}
        known = {name: pid for name, pid in sorted(pids.items()) if pid is not None}
        if known != self._pids:
            self._pids = known
            self.folder.write_pids(known)

    # ---- while it runs

    async def watch(self) -> None:
        """Start nodes that have ended, and those with a request to be started; for ever."""
        ended: set[str] = set()
        while True:
            for name, process in self.processes.items():
                if process.running:
                    ended.discard(name)
                    continue
                if name not in ended:
                    ended.add(name)
                    self._has_ended(name, process)
                if self.restarts and name not in self.held and time.monotonic() >= self._again_at[name]:
                    self._begin(process)
                    ended.discard(name)
            self._note_pids()
            self._look_for_requests()
            await asyncio.sleep(POLL_S)

    def _has_ended(self, name: str, process: NodeProcess) -> None:
        lived = time.monotonic() - self._started_at.get(name, 0.0)
        self._quick_ends[name] = self._quick_ends.get(name, 0) + 1 if lived < QUICK_S else 0
        self._again_at[name] = time.monotonic() + PAUSES_S[min(self._quick_ends[name], len(PAUSES_S) - 1)]
        if name not in self.held:
            self.say(f"{process.complaint()}{'; it is started again' if self.restarts else ''}")

    def _look_for_requests(self) -> None:
        for name in self.folder.requests():
            process = self.processes.get(name)
            if process is None:
                self.folder.answer(name, f"there is no node {name!r}; nodes: {', '.join(self.processes)}")
            elif name in self._asked:
                if process.serves:
                    self.folder.answer(name, f"ready {process.node.address}")
                elif not process.running:
                    self.folder.answer(name, process.complaint())
                else:
                    continue
                self._asked.discard(name)
            elif process.running:
                self.folder.answer(name, f"{process.node} runs already")
            else:
                self._begin(process)
                self._asked.add(name)

    async def restart(self, name: str) -> None:
        """Shut a node down and start it again, and wait until it serves. Raises: `ClusterError`."""
        self.held.add(name)
        try:
            await self.stop_node(self.processes[name])
            self._begin(self.processes[name])
            await self._until_it_serves(self.processes[name])
        finally:
            self.held.discard(name)

    async def until_all_serve(self) -> None:
        """Wait until all nodes serve; those that have ended meanwhile are started again. Raises: `ClusterError`."""
        end = time.monotonic() + START_S
        while not all(process.serves for process in self.processes.values()):
            if time.monotonic() > end:
                dead = next(process for process in self.processes.values() if not process.serves)
                raise ClusterError(f"{dead.complaint()}; it does not serve after {START_S:g} s")
            await asyncio.sleep(POLL_S)

    # ---- end

    async def stop(self) -> bool:
        """Shut all nodes down: the brokers one after the other, then the controller. False, if one had to be killed.

        A controller that is down is started for that: a controlled shutdown of brokers needs it.
        """
        in_order = True
        try:
            controllers = [process for process in self.processes.values() if not process.node.is_broker]
            if any(process.running for process in self.brokers):
                for process in controllers:
                    if not process.running:
                        self._begin(process)
            for process in (*self.brokers, *controllers):
                in_order &= await self.stop_node(process)
                self._note_pids()
        finally:
            self.kill()
        return in_order

    async def stop_node(self, process: NodeProcess) -> bool:
        """Shut one node down; false if it did not end, and was killed."""
        if not process.running:
            return True
        process.terminate()
        end = time.monotonic() + STOP_S
        while process.running and time.monotonic() < end:
            await asyncio.sleep(POLL_S)
        if process.running:
            process.kill()
            self.say(f"{process.node} did not stop within {STOP_S:g} s, and was killed; see {process.output}")
            return False
        return True

    def kill(self) -> None:
        """Kill all nodes, and release the folder."""
        for process in self.processes.values():
            process.kill()
        if self._taken:
            self._taken = False
            with contextlib.suppress(OSError):
                self.folder.leave()


def _must_not_be_emptied(node: Node, known: set[str]) -> None:
    """Check that a formatted node still has its log: with an empty one it would lead, and the others would truncate.

    Raises: `UsageError`.
    """
    if node.name in known and not node.is_formatted:
        raise UsageError(
            f"{node} was in this cluster before, and {node.data} is not formatted: its records are lost; "
            f"to begin without any: kspec storage format -c {node.file} -t {node.properties['cluster.id']}"
        )


def _must_be_free(node: Node) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, node.port))
        except OSError as error:
            raise UsageError(f"{node} cannot listen on {HOST}:{node.port}: {error.strerror or error}") from error
