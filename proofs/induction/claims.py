"""What is claimed of a model under an invariant, and what becomes of a claim."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import z3

Status = Literal["proved", "refuted", "unknown", "stopped"]
"""What became of an obligation. `stopped`: by the clock, so that nothing is known of what Z3 would have answered."""

GRAVEST_FIRST: tuple[Status, ...] = ("refuted", "stopped", "unknown", "proved")
"""What is said of several obligations: the first of these that one of them is."""

PATHS = "(the ways through the rules)"
"""In place of a conjunct where the clock stopped the evaluation of an action, before there were any obligations."""

INIT, PROPERTIES = "Init", "Property"
"""What stands in the place of an action for the obligations that are about none."""


class Obligation(NamedTuple):
    """What became of one obligation; `paths` counts the ways through the rules that it is about."""

    action: str
    conjunct: str
    status: Status
    seconds: float
    paths: int


class Claim(NamedTuple):
    """Something to be proved under the invariant: that `goal` follows from `premises`. `conjunct` names it."""

    action: str
    conjunct: str
    premises: tuple[z3.BoolRef, ...]
    goal: z3.BoolRef
    paths: int
    brokers: tuple[z3.ExprRef, ...] = ()
    numbers: tuple[z3.ExprRef, ...] = ()
    """Of which brokers, and offsets or epochs, the goal speaks: any."""


def gravest(found: Iterable[Status]) -> Status:
    """What is said of obligations together: proved if all are, or if there are none."""
    statuses = set(found)
    return next((status for status in GRAVEST_FIRST if status in statuses), "proved")
