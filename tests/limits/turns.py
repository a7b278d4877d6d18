"""No test waits without a limit: every `while` of a test takes its turns from here, and a test says so."""

import time


class Turns:
    """The turns of one loop: more than `most` of them, or more than so many seconds, are an error of the test.

    The limits are far away. A loop that comes near them waits for what never comes.
    """

    def __init__(self, most: int = 1_000_000, seconds: float = 600.0) -> None:
        self._most, self._left, self._ends, self._seconds = most, most, time.monotonic() + seconds, seconds

    def go(self) -> None:
        """Begin another turn. Raises: `AssertionError`."""
        assert self._left > 0, f"a loop has gone round {self._most:,} times, and waits on"
        assert time.monotonic() < self._ends, f"a loop has waited for {self._seconds:g} s, and waits on"
        self._left -= 1
