"""Shrinking of a run from which a broker departs: steps are left out for as long as it still departs.

Steps that are not possible without those left out go with them, so each attempt is a run of the model.
"""

from collections.abc import Awaitable, Callable, Sequence

from kspec.conformance.world.runs.run import Move, WorldRun, trace_of_moves
from kspec.model_check.search.shrinking import Shrinker

MOST_REPLAYS = 200
"""The limit of replays for a run."""

Departs = Callable[[WorldRun], Awaitable[int | None]]
"""A function from a run to the step (from 1) at which the broker departs in the same way; `None`: it does not."""


async def shrink(run: WorldRun, step: int, departs: Departs, most: int = MOST_REPLAYS) -> WorldRun:
    """A shorter run that ends with the departure, from the run that departs at this step.

    It is minimal, unless the replays are used up before: from a run without any one of its steps, and without those that are
    not possible then, the broker does not depart in that way. A shorter run of other steps may exist.
    """
    best, tries = cut(run, step), 0
    shrinking = Shrinker(best.moves)
    for begin, end in shrinking.ranges():
        shorter = _possible(run, [*shrinking.best[:begin], *shrinking.best[end:]])
        if not shorter.moves:
            continue
        if tries == most:
            break
        tries += 1
        departing = await departs(shorter)
        if departing is not None:
            best = cut(shorter, departing)
            shrinking.best = best.moves
    return best


def cut(run: WorldRun, steps: int) -> WorldRun:
    """The first steps of a run."""
    return run._replace(trace=run.trace[: steps + 1])


def _possible(run: WorldRun, moves: Sequence[Move]) -> WorldRun:
    return run._replace(trace=trace_of_moves(run.model, moves, skip=True))
