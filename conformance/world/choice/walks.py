"""Random walks on a real broker; one from which it departs is shrunk, so that what is kept is short and replays."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from conformance.world.choice.cover import REAL, WALK_BOUNDS
from conformance.world.play.replay import unplayed
from conformance.world.runs.run import Move, NoRunError, Run, model_for, trace_of_moves, walk
from conformance.world.session import Outcome, Session

MOST_REPLAYS = 200
"""Replays that a run is shrunk with."""


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
    """The shortest run that is found, by leaving steps out, from which the broker departs as well.

    Steps that are not possible without those left out go with them.
    """
    assert outcome.verdict is not None, "a run that was played"
    assert outcome.verdict.departure is not None, "a departure to be shrunk"
    best = await _departing(session, outcome.run, outcome.run.moves[: outcome.verdict.departure.step]) or outcome
    size, replays = max(len(best.run.moves) // 2, 1), 0
    while replays < MOST_REPLAYS:
        before = len(best.run.moves)
        begin = before - size
        while begin >= 0 and replays < MOST_REPLAYS:
            moves = best.run.moves
            replays += 1
            shorter = await _departing(session, best.run, [*moves[:begin], *moves[begin + size :]])
            best = shorter or best
            begin = min(begin, len(best.run.moves)) - size
        if size > 1:
            size //= 2
        elif len(best.run.moves) == before:
            break
    return best


async def _departing(session: Session, run: Run, moves: list[Move]) -> Outcome | None:
    """The outcome of these steps, if the broker departs from them, and they are fewer."""
    try:
        trace = trace_of_moves(run.model, moves, skip=True)
    except NoRunError:
        return None
    outcome = await session.play(run._replace(trace=trace))
    if outcome.verdict is None or outcome.verdict.departure is None:
        return None
    return outcome._replace(run=outcome.run._replace(trace=trace[: outcome.verdict.departure.step + 1]))
