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

from kspec.conformance.world.environment.target import WorldTarget
from kspec.conformance.world.environment.world import ENDLESS_LAG_MS, BrokerGoneError, World
from kspec.conformance.world.replay.decisions import NotReplayedError
from kspec.conformance.world.replay.not_replayed import asks_at_next_stop, not_replayed
from kspec.conformance.world.replay.replay import replay
from kspec.conformance.world.replay.verdict import RunVerdict
from kspec.conformance.world.runs.run import WorldRun

LAG_MS = 1000
"""`replica.lag.time.max.ms` where a follower is to be too slow: a second."""

CLOCK_TRIES = 3
"""The largest number of replays of a run with a lag, which depends on the broker's clock: it is repeated if it departs."""


class WorldOutcome(NamedTuple):
    """The outcome of a run: a verdict, or the reason why the world does not replay it. `tries`: the number of replays."""

    run: WorldRun
    verdict: RunVerdict | None
    not_replayed: str = ""
    seconds: float = 0.0
    tries: int = 1


Report = Callable[[WorldOutcome], None]


def needs_lag(run: WorldRun) -> bool:
    """Whether a follower is to exceed the lag of the broker under test."""
    return any(name == "ProposeShrink" and args["leader"] == run.real for name, args in run.moves)


class WorldSession:
    """A world that is opened on demand, with the settings of the run; and opened again after the broker's death."""

    def __init__(self, target: WorldTarget) -> None:
        self.target = target
        self.brokers = 0
        self._world: World | None = None
        self._replays = 0

    async def close(self) -> None:
        """End the broker, if there is one."""
        if self._world is not None:
            world, self._world = self._world, None
            await world.close()

    async def _world_for(self, lag_ms: int, asks_to_stop: bool | None) -> World:
        """The world with this lag; its broker asks its controller before it stops, or not, or either (`None`)."""
        world = self._world
        if world is None or world.lag_ms != lag_ms or asks_to_stop not in (None, world.asks_to_stop):
            await self.close()
            world = self._world = World(self.target, lag_ms=lag_ms, asks_to_stop=asks_to_stop is not False)
            self.brokers += 1
            await world.open()
        return world

    async def replay(self, run: WorldRun) -> WorldOutcome:
        """Replay one run. Raises: `BrokerGoneError`."""
        reason = not_replayed(run)
        if reason is not None:
            return WorldOutcome(run, None, reason)
        lag_ms = LAG_MS if needs_lag(run) else ENDLESS_LAG_MS
        asks_to_stop = asks_at_next_stop(run)
        await self._world_for(lag_ms, asks_to_stop)
        began = time.monotonic()
        for tries in range(1, CLOCK_TRIES + 1):
            self._replays += 1
            world = await self._world_for(lag_ms, asks_to_stop)
            try:
                verdict = await replay(world, run, f"run-{self._replays}")
            except NotReplayedError as error:
                return WorldOutcome(run, None, str(error))
            except BrokerGoneError:
                await self.close()
                raise
            if not world.process.running:
                await self.close()
            if verdict.departure is None or lag_ms == ENDLESS_LAG_MS or tries == CLOCK_TRIES:
                break
        return WorldOutcome(run, verdict, "", time.monotonic() - began, tries)


async def replay_all(target: WorldTarget, runs: Iterable[WorldRun], report: Report | None = None) -> list[WorldOutcome]:
    """Replay runs: those without a lag first, those in which the broker stops without asking last.

    The outcomes are in the order of the replays. Raises: `BrokerGoneError`.
    """
    session, found = WorldSession(target), list[WorldOutcome]()
    try:
        for run in sorted(runs, key=lambda run: (needs_lag(run), asks_at_next_stop(run) is False)):
            outcome = await session.replay(run)
            found.append(outcome)
            if report is not None:
                report(outcome)
    finally:
        await session.close()
    return found


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """A context in which SIGTERM ends the program as Ctrl-C does, so that the broker and its folder go with it."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
