"""Who starts the processes of a cluster, looks after them, and stops them in order."""

import asyncio
import contextlib
import socket
import time
from collections.abc import Callable, Sequence

from impl.cluster.folder import ClusterFolder
from impl.cluster.plan import HOST, ClusterError, Node, Program, UsageError
from impl.cluster.process import NodeProcess

POLL_S = 0.05
START_S, STOP_S = 120.0, 60.0
"""Emergency stops: a node that does not serve, or does not stop."""

QUICK_S, PAUSES_S = 5.0, (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Whoever ends within this time after its start is started again after a pause, a longer one each time."""


class Cluster:
    """The processes of a cluster. `say` takes a line about what has happened."""

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
        """Nodes that somebody wants to be down for now."""
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
        """Where clients connect."""
        return ",".join(process.node.address for process in self.brokers)

    # ---- start

    async def start(self) -> None:
        """Write the settings, start all, and wait until all serve. Whatever fails, nothing is left behind.

        Raises: `UsageError`, `ClusterError`.
        """
        self.folder.take()
        self._taken = True
        try:
            for process in self.processes.values():
                _must_be_free(process.node)
                self._write_settings(process.node)
                await asyncio.to_thread(process.program.prepare, process.node)
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
        """Start again who has ended, and who is asked for by hand; for ever."""
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
        """Stop a node in order and start it again, and wait until it serves. Raises: `ClusterError`."""
        self.held.add(name)
        try:
            await self.stop_node(self.processes[name])
            self._begin(self.processes[name])
            await self._until_it_serves(self.processes[name])
        finally:
            self.held.discard(name)

    async def until_all_serve(self) -> None:
        """Wait until all nodes serve, those that have ended meanwhile started again. Raises: `ClusterError`."""
        end = time.monotonic() + START_S
        while not all(process.serves for process in self.processes.values()):
            if time.monotonic() > end:
                dead = next(process for process in self.processes.values() if not process.serves)
                raise ClusterError(f"{dead.complaint()}; it does not serve after {START_S:g} s")
            await asyncio.sleep(POLL_S)

    # ---- end

    async def stop(self) -> bool:
        """Stop all in order: the brokers one after the other, then the controller. False, if one had to be killed.

        A controller that is down is started for that: brokers that run ask it for leave to stop.
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
        """Stop one node in order; false if it did not, and was killed."""
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
        """End all at once, if they run, and leave the folder."""
        for process in self.processes.values():
            process.kill()
        if self._taken:
            self._taken = False
            with contextlib.suppress(OSError):
                self.folder.leave()


def _must_be_free(node: Node) -> None:
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((HOST, node.port))
        except OSError as error:
            raise UsageError(f"{node} cannot listen on {HOST}:{node.port}: {error.strerror or error}") from error
