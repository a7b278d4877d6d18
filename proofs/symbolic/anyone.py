"""Any number of brokers: their ids are whole numbers, and nothing is known of them but that -1 is not among them.

For a number N of replicas the brokers are 1 to N, and a loop over replicas runs through all of them. For any number the
model's builder gets three names instead: two different brokers that act, and one that stands for every other. Asking a rule
about that one asks it about all others.
"""

from typing import Any

import z3

from kspec.model_check.core.model import Local
from kspec.proofs.symbolic.brokers import IS_BROKER, Brokers
from kspec.proofs.symbolic.values import Name, number
from kspec.spec.values import NO_LEADER, BrokerId

ONE, ANOTHER, EVERY_OTHER = (Name(name, BrokerId) for name in ("a", "b", "every other broker"))

ANYONE = Brokers(None, (ONE, ANOTHER, EVERY_OTHER))

PREMISES = (
    z3.Not(IS_BROKER(number(NO_LEADER))),
    IS_BROKER(ONE.term),
    IS_BROKER(ANOTHER.term),
    ONE.term != ANOTHER.term,
)
"""The facts known about the brokers. There are at least two; there need not be more."""

IS_OTHER = z3.And(IS_BROKER(EVERY_OTHER.term), EVERY_OTHER.term != ONE.term, EVERY_OTHER.term != ANOTHER.term)


def speaks_of_others(local: Local) -> bool:
    """Whether a guard, a term or an effect reads a slot of the brokers that do not act."""
    keys: list[Any] = [slot.key for slot in local.slots]
    return any(key is EVERY_OTHER for key in keys)
