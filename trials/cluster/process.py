"""One node as a process, which can be started, shut down, killed and paused. It ends with its parent process."""

import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

from kspec.trials.cluster.clocks import forget_shared
from kspec.trials.cluster.plan import Node, Program

END_WITH_PARENT = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(1, 9)\n"  # PR_SET_PDEATHSIG, SIGKILL: whatever becomes of who has started it
    "sys.exit(1) if os.getppid() != int(sys.argv[1]) else os.execvp(sys.argv[2], sys.argv[2:])\n"
)


class NodeProcess:
    """One node with its incarnations. Each has an output file of its own in the node's folder."""

    def __init__(self, node: Node, program: Program) -> None:
        self.node = node
        self.program = program
        self.starts = _starts_before(node.folder)
        self.paused = False
        self._process: subprocess.Popen[bytes] | None = None
        self._serves = False

    @property
    def pid(self) -> int | None:
        """Its process id, until it is known to have ended."""
        return self._process.pid if self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def status(self) -> int | None:
        """The exit status of the incarnation that has ended; minus the signal, if one has ended it."""
        return None if self._process is None else self._process.poll()

    @property
    def output(self) -> Path:
        """The output file of the present incarnation."""
        return self.node.folder / f"output-{self.starts}.txt"

    @property
    def serves(self) -> bool:
        """Whether the present incarnation serves, by its output."""
        if not self._serves and self._process is not None and self.output.exists():
            text = self.output.read_text(encoding="utf-8", errors="replace")
            self._serves = re.search(self.program.ready, text, re.MULTILINE) is not None
        return self._serves and self.running

    def start(self) -> None:
        """Start the process without waiting. Raises: `OSError`."""
        assert not self.running, "it runs already"
        self.starts += 1
        self.paused = self._serves = False
        command = list(self.program.command(self.node, self.starts))
        if sys.platform == "linux":
            command = [sys.executable, "-ISc", END_WITH_PARENT, str(os.getpid()), *command]
        with self.output.open("wb") as output:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def pause(self) -> None:
        """Pause the process, as a machine that hangs."""
        self.paused = True
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume the process."""
        self.paused = False
        self.send(signal.SIGCONT)

    def limit_files(self, size: int) -> None:
        """Limit the size of its files (bytes): a write behind it is an error, as on a full disk."""
        if self.running and self.pid is not None:
            _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, hard))

    def terminate(self) -> None:
        """Ask the process to shut down, without waiting. A paused one is resumed for it."""
        self.send(signal.SIGTERM)
        self.resume()

    def kill(self) -> None:
        """Kill the process, and wait for its end."""
        self.send(signal.SIGKILL)
        self.paused = False
        if self._process is not None:
            self._process.wait()
            forget_shared(self._process.pid)

    def how_it_ended(self) -> str:
        """The way in which it has ended, in a few words."""
        status = self.status
        if status is None:
            return "runs"
        return f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"

    def complaint(self) -> str:
        """The way in which it has ended, and the reason in its output: the last line, or the last one of an error."""
        if self.status is None or self.status < 0:
            return f"{self.node} {self.how_it_ended()}"
        text = self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        own = [line.removeprefix("kspec: ") for line in lines if line.startswith("kspec: ")]
        errors = [line for line in lines if "ERROR" in line or "FATAL" in line or "Exception" in line]
        told = (own or errors or lines)[-1:]
        return f"{self.node} {self.how_it_ended()}{''.join(f': {line}' for line in told)}"


def _starts_before(folder: Path) -> int:
    """The number of incarnations that were in the folder: their outputs are kept."""
    found = [re.fullmatch(r"output-(\d+)\.txt", path.name) for path in folder.glob("output-*.txt")]
    return max((int(one[1]) for one in found if one), default=0)
