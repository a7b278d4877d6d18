"""Random walks on a real broker; one from which it departs is shrunk, so that what is kept is short and replays."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from conformance.world.choice.cover import REAL, WALK_BOUNDS
from conformance.world.choice.shrinking import shrink
from conformance.world.play.unplayed import unplayed
from conformance.world.runs.run import Run, model_for, walk
from conformance.world.session import Outcome, Session
from conformance.world.stage.world import BrokerGoneError


async def walked(
    session: Session, kafka: str, seed: int, traces: int, depth: int, parameters: Mapping[str, Any]
) -> AsyncIterator[Outcome]:
    """Replay walks of the simulator, each with another of its brokers as the real one. Raises: `BrokerGoneError`.

    A walk goes as far as the world plays it.
    """
    model = model_for(kafka, parameters or WALK_BOUNDS)
    brokers = model.parameters["brokers"]
    for number in range(traces):
        run = walk(model, seed, number, depth, f"seed {seed}, walk {number}")
        yield await session.play(as_far_as_played(run._replace(real=REAL + number % brokers)))


def as_far_as_played(run: Run) -> Run:
    """The run up to the first step that the world does not play."""
    trace = run.trace
    while unplayed(run._replace(trace=trace)) is not None:
        trace = trace[:-1]
    return run._replace(trace=trace)


async def shrunk(session: Session, outcome: Outcome) -> Outcome:
    """The same departure at the end of a run that is as short as leaving steps out makes it.

    The same: the same thing is not what was expected. A run that ends the broker, or is not played, does not count.
    """
    assert outcome.verdict is not None, "a run that was played"
    assert outcome.verdict.departure is not None, "a departure to be shrunk"
    what, best = outcome.verdict.departure.what, outcome

    async def departs(run: Run) -> int | None:
        nonlocal best
        try:
            tried = await session.play(run)
        except BrokerGoneError:
            return None
        if tried.verdict is None or tried.verdict.departure is None or tried.verdict.departure.what != what:
            return None
        best = tried
        return tried.verdict.departure.step

    shortest = await shrink(outcome.run, outcome.verdict.departure.step, departs)
    return best._replace(run=shortest)
