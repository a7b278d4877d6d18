"""Which property or oracle of the simulation notices a planted bug."""

from typing import Any

from tests.planted_bugs.others import OTHER_BUGS
from tests.planted_bugs.planting import PlantedBug, planted
from tests.simulation.runs import simulate
from tests.simulation.setup import Setup

SEED = 1
MOVES = 6_000
"""Moves that are made in each setup."""

BUSY_MOVES = 20_000
"""Moves that are made in a busy cluster, if nothing has noticed the bug so far."""

SETUPS = {
    "property": Setup(oracles=False),
    "oracle": Setup(),
    "oracle, unclean elections": Setup(unclean_elections=True),
    "oracle, busy": Setup(busy=True),
}
"""How the bug is looked for, in this order."""


def found_by(bug: PlantedBug, how: str, moves: int = MOVES) -> dict[str, Any] | None:
    """What fails, and after how many moves; `None` if nothing does."""
    with planted(bug):
        try:
            failure = simulate(SEED, moves, SETUPS[how]).failure
        except Exception as broken:  # a bug may break the simulation itself, which is noticed as well
            return {"name": type(broken).__name__, "moves": 0}
    return None if failure is None else {"name": failure.name, "moves": failure.all_moves}


def simulated(bug: PlantedBug) -> dict[str, Any]:
    """The property and the oracle that notice a bug, each with the number of moves; nothing where none does.

    A bug of a rule that the simulation does not call is not looked for.
    """
    if bug in OTHER_BUGS:
        return {}
    found: dict[str, Any] = {}
    by_property = found_by(bug, "property")
    by_oracle = found_by(bug, "oracle") or found_by(bug, "oracle, unclean elections")
    by_oracle = by_oracle or found_by(bug, "oracle, busy", BUSY_MOVES)
    if by_property:
        found["property"] = by_property
    if by_oracle:
        found["oracle"] = by_oracle
    return found
