"""The claims about a model under an invariant, and their results."""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import z3

Status = Literal["proved", "refuted", "unknown", "stopped"]
"""The result of an obligation. `stopped`: by the clock, so that nothing is known of Z3's answer."""

GRAVEST_FIRST: tuple[Status, ...] = ("refuted", "stopped", "unknown", "proved")
"""The status of several obligations together is the first of these that any of them has."""

PATHS = "(the ways through the rules)"
"""Stands for a conjunct if the clock stopped the evaluation of an action before there were any obligations."""

INIT, PROPERTIES = "Init", "Property"
"""They stand for an action in the obligations that are about no action."""


class Obligation(NamedTuple):
    """The result of one obligation; `paths` counts the ways through the rules that it is about."""

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
    """The arbitrary brokers, and offsets or epochs, that the goal speaks of."""


def gravest(found: Iterable[Status]) -> Status:
    """The status of obligations together: proved if all are, or if there are none."""
    statuses = set(found)
    return next((status for status in GRAVEST_FIRST if status in statuses), "proved")
