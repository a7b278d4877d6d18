"""The limit on a proof or on the search for a counterexample: in Z3's own units, not in seconds.

Z3 counts its work, some two to four million units in a second. With a limit in units an answer is the same on every
machine, even if it is slow or busy. Python's work between the questions is bounded in steps, each of which costs units, too.

The clock only stops questions that hang. Their obligations are neither proved nor unknown: they are reported as stopped by
the clock.
"""

from time import monotonic

import z3

EMERGENCY_S = 600.0
"""After so many seconds the clock stops a question to Z3: a hundred times as long as any takes."""

EMERGENCY_OF_RUNS_S = 7_200.0
"""The limit in seconds for a question about all runs of a length; some of these take minutes."""

MOST_UNITS = 2**32 - 1
"""The largest limit that Z3 takes for a question."""


class StoppedByClockError(Exception):
    """Z3 worked on one question for so long that the clock stopped it. That says nothing about the answer."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"the clock stopped Z3 after {seconds:g} s; on a faster machine it may have an answer")


class Effort:
    """A budget of Z3's units for several questions. `seconds`: when the clock stops one of them.

    What a part of an effort spends is spent from the whole, too.
    """

    def __init__(self, units: int, seconds: float = EMERGENCY_S, whole: "Effort | None" = None) -> None:
        self._units, self.seconds, self.whole = units, seconds, whole

    @property
    def left(self) -> int:
        """The number of units that are left, of this part and of the whole."""
        return self._units if self.whole is None else min(self._units, self.whole.left)

    def part(self, units: int) -> "Effort":
        """A part of so many units, or of all that is left if that is less."""
        return Effort(units, self.seconds, self)

    def spend(self, units: int) -> None:
        """Subtract units that were spent."""
        self._units -= units
        if self.whole is not None:
            self.whole.spend(units)

    def ask(self, solver: z3.Solver, *assumed: z3.BoolRef) -> z3.CheckSatResult:
        """Z3's answer: `unknown` if it takes more units than are left. Raises `StoppedByClockError` if it takes too long."""
        if self.left <= 0:
            return z3.unknown
        solver.set("rlimit", min(self.left, MOST_UNITS))
        solver.set("timeout", max(int(self.seconds * 1000), 1))
        before, started = _spent(solver), monotonic()
        answer = solver.check(*assumed)
        self.spend(_spent(solver) - before)
        if answer == z3.unknown and monotonic() - started >= self.seconds:
            raise StoppedByClockError(self.seconds)
        return answer


def _spent(solver: z3.Solver) -> int:
    """The number of units that Z3 has spent so far, on whatever it was asked."""
    return int(solver.statistics().get_key_value("rlimit count"))
