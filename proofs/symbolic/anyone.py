"""Any number of brokers: their ids are some whole numbers, of which nothing is known but that -1 is not among them.

For a number N of replicas the brokers are 1 to N, and a loop over replicas is walked through. For any number the model's
builder gets three names instead: two different brokers that act, and one that stands for every other. What a rule is asked
about that one, it is asked about all others.
"""

from typing import Any

import z3

from model_check.core.model import Local
from proofs.symbolic.brokers import IS_BROKER, Brokers
from proofs.symbolic.values import Name, number
from spec.values import NO_LEADER, BrokerId

ONE, ANOTHER, EVERY_OTHER = (Name(name, BrokerId) for name in ("a", "b", "every other broker"))

ANYONE = Brokers(None, (ONE, ANOTHER, EVERY_OTHER))

PREMISES = (
    z3.Not(IS_BROKER(number(NO_LEADER))),
    IS_BROKER(ONE.term),
    IS_BROKER(ANOTHER.term),
    ONE.term != ANOTHER.term,
)
"""What is known of the brokers. There are at least two; there need be no other."""

IS_OTHER = z3.And(IS_BROKER(EVERY_OTHER.term), EVERY_OTHER.term != ONE.term, EVERY_OTHER.term != ANOTHER.term)


def speaks_of_others(local: Local) -> bool:
    """Whether a guard, a term or an effect reads a slot of the brokers that do not act."""
    keys: list[Any] = [slot.key for slot in local.slots]
    return any(key is EVERY_OTHER for key in keys)
