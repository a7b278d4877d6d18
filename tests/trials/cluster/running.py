"""`kspec cluster` as a process of its own, started by the tests."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from kspec.trials.cluster.programs import KspecProgram
from tests.limits.turns import Turns

KSPEC = (sys.executable, "-c", "from kspec.cli.start import main; main()")
LIMIT_S = 300.0
"""An emergency stop, far away."""


def kspec(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that ends by itself."""
    return subprocess.run([*KSPEC, *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False)


def kspec_program(mutant: str | None = None) -> KspecProgram:
    """`kspec broker` as the nodes of a cluster, on all of them with one rule weakened, if a mutant is given."""
    return KspecProgram([*KSPEC, "broker"], {}, dict.fromkeys(("controller", "1", "2", "3"), mutant))


FIRST_PORT, PORTS_OF_WORKER = 12_000, 1_000
"""Below the ports that the system gives to whoever connects; each worker of pytest has ports of its own."""


def free_ports(count: int) -> int:
    """The first of some ports in a row that nobody listens on."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    begin = FIRST_PORT + worker * PORTS_OF_WORKER
    turns = Turns()
    while True:
        turns.go()
        first = random.randrange(begin, begin + PORTS_OF_WORKER - count)
        if all(is_free(port) for port in range(first, first + count)):
            return first


def is_free(port: int) -> bool:
    """Whether nobody listens on a port."""
    with socket.socket() as sock:
        try:
            sock.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    end = time.monotonic() + LIMIT_S
    turns = Turns()
    while not condition():
        turns.go()
        assert time.monotonic() < end, "it did not come to hold"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether a process runs, and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class RunningCluster:
    """The command in the foreground, until the `with` block is left: SIGTERM, exit status 0, no process left."""

    def __init__(self, folder: Path, *options: str, brokers: int = 1, combined: bool = True) -> None:
        self.folder = folder
        self.port = free_ports(2 * brokers + 6)
        self._options = ["--brokers", str(brokers), *(["--combined"] if combined else []), *options]
        self._said = folder.parent / f"{folder.name}.said"
        self.process: subprocess.Popen[str] | None = None
        self.seen: set[int] = set()

    def start(self, *, wait: bool = True) -> "RunningCluster":
        """Start it, and wait until it says that it serves."""
        command = [*KSPEC, "cluster", "--log-dir", str(self.folder), "--port", str(self.port), *self._options]
        with self._said.open("w", encoding="utf-8") as said:
            self.process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True)
        if wait:
            until(lambda: "ready " in self.said() or not self.runs())
            assert self.runs(), self.said()
        return self

    def said(self) -> str:
        """The text that it has printed."""
        return self._said.read_text(encoding="utf-8")

    def runs(self) -> bool:
        """Whether the command runs."""
        return self.process is not None and self.process.poll() is None

    def pids(self) -> dict[str, int]:
        """The processes of the nodes."""
        found: dict[str, int] = json.loads((self.folder / "pids.json").read_text(encoding="utf-8"))
        self.seen |= set(found.values())
        return found

    def kill(self, node: str) -> int:
        """Kill a node; its process id."""
        pid = self.pids()[node]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid))
        return pid

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """Ask the command to end; its exit status."""
        assert self.process is not None
        self.process.send_signal(how)
        return self.process.wait(LIMIT_S)

    def __enter__(self) -> "RunningCluster":
        return self.start()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self.runs():
            self.pids()
            status = self.end()
            assert error is not None or status == 0, self.said()
        until(lambda: not any(map(alive, self.seen)))
        assert not (self.folder / "pids.json").exists() or error is not None
