"""A run from which a broker departs, made short: steps are left out for as long as it still departs.

Steps that are not possible without those left out go with them, so that what is tried is always a run of the model. First
halves are left out, then quarters, and in the end single steps.
"""

from collections.abc import Awaitable, Callable, Sequence

from conformance.world.runs.run import Move, Run, trace_of_moves

MOST_REPLAYS = 200
"""Replays that a run is shrunk with."""

Departs = Callable[[Run], Awaitable[int | None]]
"""At which step (from 1) the broker departs from a run in the way that is looked for; `None`: it does not."""


async def shrink(run: Run, step: int, departs: Departs, most: int = MOST_REPLAYS) -> Run:
    """A run that ends with a departure, from the run that departs at this step.

    It is minimal: leaving out any one step, and what is not possible without it, gives a run from which the broker does not
    depart that way. That is so unless the replays are used up before. A shorter run of other steps there may be.
    """
    best = cut(run, step)
    size, tries = max(len(best.moves) // 2, 1), 0
    while True:
        length = len(best.moves)
        begin = length - size
        while begin >= 0:
            moves = best.moves
            shorter = _possible(run, [*moves[:begin], *moves[begin + size :]])
            if shorter.moves:
                if tries == most:
                    return best
                tries += 1
                departing = await departs(shorter)
                best = best if departing is None else cut(shorter, departing)
            begin = min(begin, len(best.moves)) - size
        if size == 1 and len(best.moves) == length:
            return best
        size = max(size // 2, 1)


def cut(run: Run, steps: int) -> Run:
    """The first steps of a run."""
    return run._replace(trace=run.trace[: steps + 1])


def _possible(run: Run, moves: Sequence[Move]) -> Run:
    return run._replace(trace=trace_of_moves(run.model, moves, skip=True))
