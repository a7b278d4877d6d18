"""Many runs, one after the other, on as few broker processes as possible.

A run on its own topic leaves nothing behind, so one process serves all runs that need the same settings: those without a
shrink of the ISR have an endless lag, and those with one need a clock that runs.
"""

import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NamedTuple

from conformance.world.play.decisions import UnplayedError
from conformance.world.play.replay import replay
from conformance.world.play.unplayed import asks_at_next_stop, unplayed
from conformance.world.play.verdict import Verdict
from conformance.world.runs.run import Run
from conformance.world.stage.target import Target
from conformance.world.stage.world import ENDLESS_LAG_MS, BrokerGoneError, World

LAG_MS = 1000
"""`replica.lag.time.max.ms` where a follower is to be too slow: a second."""

CLOCK_TRIES = 3
"""A run with a lag depends on the broker's clock; one that departs is played again, this often in all."""


class Outcome(NamedTuple):
    """What has become of a run: a verdict, or the reason why the world does not play it. `tries`: how often."""

    run: Run
    verdict: Verdict | None
    unplayed: str = ""
    seconds: float = 0.0
    tries: int = 1


Report = Callable[[Outcome], None]


def needs_lag(run: Run) -> bool:
    """Whether the broker under test is to find a follower too slow."""
    return any(name == "ProposeShrink" and args["leader"] == run.real for name, args in run.moves)


class Session:
    """A world that is opened when it is needed, with the settings of the run; and opened again after the broker's death."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.brokers = 0
        self._world: World | None = None
        self._played = 0

    async def close(self) -> None:
        """End the broker, if there is one."""
        if self._world is not None:
            world, self._world = self._world, None
            await world.close()

    async def _world_for(self, lag_ms: int, asks_to_stop: bool | None) -> World:
        """The world with this lag, whose broker asks its controller before it stops, or not, or either (`None`)."""
        world = self._world
        if world is None or world.lag_ms != lag_ms or asks_to_stop not in (None, world.asks_to_stop):
            await self.close()
            world = self._world = World(self.target, lag_ms=lag_ms, asks_to_stop=asks_to_stop is not False)
            self.brokers += 1
            await world.open()
        return world

    async def play(self, run: Run) -> Outcome:
        """Play one run. Raises: `BrokerGoneError`."""
        reason = unplayed(run)
        if reason is not None:
            return Outcome(run, None, reason)
        lag_ms = LAG_MS if needs_lag(run) else ENDLESS_LAG_MS
        asks_to_stop = asks_at_next_stop(run)
        await self._world_for(lag_ms, asks_to_stop)
        began = time.monotonic()
        for tries in range(1, CLOCK_TRIES + 1):
            self._played += 1
            world = await self._world_for(lag_ms, asks_to_stop)
            try:
                verdict = await replay(world, run, f"run-{self._played}")
            except UnplayedError as error:
                return Outcome(run, None, str(error))
            except BrokerGoneError:
                await self.close()
                raise
            if not world.process.running:
                await self.close()
            if verdict.departure is None or lag_ms == ENDLESS_LAG_MS or tries == CLOCK_TRIES:
                break
        return Outcome(run, verdict, "", time.monotonic() - began, tries)


async def play_all(target: Target, runs: Iterable[Run], report: Report | None = None) -> list[Outcome]:
    """Play runs: those without a lag first, those in which the broker stops without asking last.

    The outcomes are in the order of playing. Raises: `BrokerGoneError`.
    """
    session, found = Session(target), list[Outcome]()
    try:
        for run in sorted(runs, key=lambda run: (needs_lag(run), asks_at_next_stop(run) is False)):
            outcome = await session.play(run)
            found.append(outcome)
            if report is not None:
                report(outcome)
    finally:
        await session.close()
    return found


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM ends a program as Ctrl-C does, so that the broker and its folder go with it."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
