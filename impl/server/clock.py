"""The wall clock of a process: the time that is handed to the rules, and by which their timers are set.

A test may move it, by a file with the milliseconds that are added: eight bytes, which are read at each look.
"""

import mmap
import struct
import time
from pathlib import Path

OFFSET = struct.Struct("=q")


class WallClock:
    """Tells the time in milliseconds since 1970."""

    def __init__(self) -> None:
        self._added: mmap.mmap | None = None

    def __call__(self) -> int:
        """The time now."""
        now = time.time_ns() // 1_000_000
        return now if self._added is None else now + int(OFFSET.unpack_from(self._added)[0])

    def move_by(self, file: Path) -> None:
        """Add what a file says, from now on and whenever it changes. Raises: `OSError`, `ValueError`."""
        with file.open("rb") as stream:
            self._added = mmap.mmap(stream.fileno(), OFFSET.size, access=mmap.ACCESS_READ)


now_ms = WallClock()
"""The clock of this process."""
