"""Nodes whose wall clock can be moved while they run: libfaketime stands between a process and the system's clock.

Only the wall clock changes, as when an operator or a time server sets it: the monotonic clock goes on as before. Any program
can run so, Apache Kafka as well.
"""

from collections.abc import Sequence
from pathlib import Path

from kspec.trials.cluster.plan import Node, Program

LIBRARY, FOLDERS = (
    "libfaketimeMT.so.1",
    ("usr/lib/*/faketime", "usr/lib/faketime", "usr/lib64/faketime", "usr/local/lib/faketime"),
)
MISSING = f"there is no {LIBRARY}, by which clocks are moved: apt-get install libfaketime has it on Debian"
SHARED = ("dev/shm/faketime_shm_{}", "dev/shm/sem.faketime_sem_{}")
"""The library's files in shared memory for a process, which stay there if that is killed."""


def faketime_library(root: Path = Path("/")) -> Path | None:
    """The library, if it is installed."""
    return next((found for folder in FOLDERS for found in sorted(root.glob(f"{folder}/{LIBRARY}"))), None)


def with_clock(library: Path, clock: Path, command: Sequence[str]) -> list[str]:
    """A command with an offset of the wall clock from a file, which is read at each look.

    The library's "monotonic fix" is turned off: it is for old C libraries, and with later ones each thread of Python that
    waits for the interpreter's lock spins. Idle brokers needed two thirds of two cores.
    """
    return [
        "env",
        f"LD_PRELOAD={library}",
        f"FAKETIME_TIMESTAMP_FILE={clock}",
        "FAKETIME_DONT_FAKE_MONOTONIC=1",
        "FAKETIME_FORCE_MONOTONIC_FIX=0",
        "FAKETIME_NO_CACHE=1",
        "NO_FAKE_STAT=1",
        *command,
    ]


def move_clock(clock: Path, ms: int) -> None:
    """Set the offset of a process's wall clock, also while it runs. The file is replaced as a whole."""
    begun = clock.with_name(f"{clock.name}.new")
    begun.write_text(f"{ms / 1000:+.3f}\n", encoding="ascii")
    begun.replace(clock)


def forget_shared(pid: int, root: Path = Path("/")) -> None:
    """Remove the library's files of a process that was killed."""
    for name in SHARED:
        (root / name.format(pid)).unlink(missing_ok=True)


class MovableClocks:
    """A program in whose nodes the wall clock can be moved."""

    def __init__(self, program: Program, library: Path) -> None:
        self._program = program
        self._library = library
        self.ready = program.ready

    def prepare(self, node: Node) -> None:
        """Prepare the node as the program does, with a correct clock."""
        self._program.prepare(node)
        move_clock(node.clock, 0)

    def command(self, node: Node, start: int) -> Sequence[str]:
        """The program's command, with the library."""
        return with_clock(self._library, node.clock, self._program.command(node, start))
