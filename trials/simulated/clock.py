"""Virtual time: the events to come, in their order. No event waits in real time; the time jumps from one to the next."""

from collections.abc import Callable, Coroutine, Generator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

from kspec.spec.values import Instant, MonotonicMs, TimestampMs

Given = TypeVarTuple("Given")
Result = TypeVar("Result")

START_MS = 1_700_000_000_000
"""The beginning of each run (ms since 1970)."""

EVEN = 1_000
"""The rate of a correct clock: milliseconds in a second."""

LONG_BEFORE_MS, YEAR_MS = 1 << 40, 365 * 24 * 3_600_000
"""The origin of monotonic clocks: at least so long before the run, up to a year more, another one in each process."""


class VirtualClock:
    """The time in milliseconds, and the events to come. Those of the same time happen in the order of their creation."""

    def __init__(self, start_ms: int = START_MS) -> None:
        self.now_ms = start_ms
        self._events: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._numbers = count()

    def at(self, time_ms: int, event: Callable[[*Given], None], *given: *Given) -> None:
        """Schedule an event at a time, or now if that has passed."""
        now_ms = self.now_ms
        heappush(self._events, (time_ms if time_ms > now_ms else now_ms, next(self._numbers), event, given))

    def new_number(self) -> int:
        """A place among the events of the same time, for an event that may be scheduled later."""
        return next(self._numbers)

    def at_place(self, time_ms: int, number: int, event: Callable[[*Given], None], *given: *Given) -> None:
        """Schedule an event at a time to come, in its reserved place."""
        heappush(self._events, (time_ms, number, event, given))

    def after(self, delay_ms: int, event: Callable[[*Given], None], *given: *Given) -> None:
        """Schedule an event after a while."""
        self.at(self.now_ms + delay_ms, event, *given)

    def next_event(self) -> bool:
        """Run the next event; whether there was one."""
        if not self._events:
            return False
        self.now_ms, _, event, given = heappop(self._events)
        event(*given)
        return True


class ClockFace:
    """One clock of a node, as a function of the true time: its reading when it was last set, and its rate since."""

    def __init__(self, true_ms: int, shows_ms: int) -> None:
        self._true_ms = true_ms
        self._shows_ms = shows_ms
        self._rate = EVEN

    def at(self, true_ms: int) -> int:
        """The reading of the clock at a time."""
        return self._shows_ms + (true_ms - self._true_ms) * self._rate // EVEN

    def set(self, true_ms: int, shows_ms: int, rate: int = EVEN) -> None:
        """Set the reading and the rate (ms in a second)."""
        self._true_ms, self._shows_ms, self._rate = true_ms, shows_ms, rate

    def when(self, shows_ms: int) -> int:
        """The first true time at which its reading is this or later."""
        return self._true_ms - (self._shows_ms - shows_ms) * EVEN // self._rate


class NodeClock:
    """The two clocks of a node: a wall clock, which may be set, and a monotonic one, which may be fast or slow."""

    def __init__(self, clock: VirtualClock, node_id: int) -> None:
        self._clock = clock
        self._node_id = node_id
        self._wall = ClockFace(clock.now_ms, clock.now_ms)
        self._even = ClockFace(clock.now_ms, 0)
        self.boot(0)

    def boot(self, incarnation: int) -> None:
        """Begin a new process, whose monotonic clock has another origin. The rate is that of the machine."""
        begins_ms = LONG_BEFORE_MS + Random(f"clock {self._node_id} {incarnation}").randrange(YEAR_MS)
        self._even.set(self._clock.now_ms, begins_ms)

    def __call__(self) -> Instant:
        """The time by both clocks."""
        true_ms = self._clock.now_ms
        return Instant(MonotonicMs(self._even.at(true_ms)), TimestampMs(self._wall.at(true_ms)))

    def set_wall(self, ahead_ms: int, rate: int = EVEN) -> None:
        """Set the wall clock to so far ahead of the true time, and its rate (ms in a second)."""
        self._wall.set(self._clock.now_ms, self._clock.now_ms + ahead_ms, rate)

    def set_rate(self, rate: int) -> None:
        """Set the rate of the monotonic clock (ms in a second); it does not jump."""
        self._even.set(self._clock.now_ms, self._even.at(self._clock.now_ms), rate)

    def when(self, deadline: MonotonicMs) -> int:
        """The true time of a deadline of this process."""
        return self._even.when(deadline)


# ---- waits of what directs a simulated cluster

LOOK_MS = 20
"""The interval of looks whether a condition holds: as on processes, messages of that moment arrive before the next step."""


class VirtualWait(NamedTuple):
    """A wait for a condition, or until a time. The clock goes on meanwhile. It gives whether the condition holds."""

    until_ms: int
    holds: Callable[[], bool]

    def __await__(self) -> Generator["VirtualWait", bool, bool]:
        return (yield self)


def carried_out(steps: Coroutine[Any, bool | None, Result], clock: VirtualClock, next_event: Callable[[], object]) -> Result:
    """The result of a coroutine that waits by `VirtualWait` alone; while it waits, events happen."""
    result: bool | None = None
    while True:
        try:
            wait: VirtualWait = steps.send(result)
        except StopIteration as end:
            found: Result = end.value
            return found
        result = wait.holds()
        while not result and clock.now_ms < wait.until_ms:
            _pass(min(LOOK_MS, wait.until_ms - clock.now_ms), clock, next_event)
            result = wait.holds()


def _pass(time_ms: int, clock: VirtualClock, next_event: Callable[[], object]) -> None:
    """Let the events of a time happen."""
    is_over = list[bool]()
    clock.after(time_ms, is_over.append, True)
    while not is_over:
        next_event()
