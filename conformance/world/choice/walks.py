"""Random walks on a real broker; one from which it departs is shrunk, so that the kept run is short, and replays."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from kspec.conformance.world.choice.cover import REAL, WALK_BOUNDS
from kspec.conformance.world.choice.shrinking import shrink
from kspec.conformance.world.environment.world import BrokerGoneError
from kspec.conformance.world.replay.not_replayed import not_replayed
from kspec.conformance.world.runs.run import WorldRun, model_for, walk
from kspec.conformance.world.session import WorldOutcome, WorldSession


async def walked(
    session: WorldSession, kafka: str, seed: int, traces: int, depth: int, parameters: Mapping[str, Any]
) -> AsyncIterator[WorldOutcome]:
    """Replay walks of the simulator, each with another of its brokers as the real one. Raises: `BrokerGoneError`.

    A walk goes up to the first step that the world does not replay.
    """
    model = model_for(kafka, parameters or WALK_BOUNDS)
    brokers = model.parameters["brokers"]
    for number in range(traces):
        run = walk(model, seed, number, depth, f"seed {seed}, walk {number}")
        yield await session.replay(as_far_as_replayed(run._replace(real=REAL + number % brokers)))


def as_far_as_replayed(run: WorldRun) -> WorldRun:
    """The run up to the first step that the world does not replay."""
    trace = run.trace
    while not_replayed(run._replace(trace=trace)) is not None:
        trace = trace[:-1]
    return run._replace(trace=trace)


async def shrunk(session: WorldSession, outcome: WorldOutcome) -> WorldOutcome:
    """The same departure at the end of a run from which no step can be left out.

    A departure is the same if it is of the same subject. A run that ends the broker, or is not replayed, does not count.
    """
    assert outcome.verdict is not None, "a run that was replayed"
    assert outcome.verdict.departure is not None, "a departure to be shrunk"
    what, best = outcome.verdict.departure.what, outcome

    async def departs(run: WorldRun) -> int | None:
        nonlocal best
        try:
            tried = await session.replay(run)
        except BrokerGoneError:
            return None
        if tried.verdict is None or tried.verdict.departure is None or tried.verdict.departure.what != what:
            return None
        best = tried
        return tried.verdict.departure.step

    shortest = await shrink(outcome.run, outcome.verdict.departure.step, departs)
    return best._replace(run=shortest)
