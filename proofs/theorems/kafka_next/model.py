"""The model `messages` with its bounds lifted for a proof, and within bounds for exploration."""

from math import inf
from typing import Any

import z3

from kspec.model_check.core.model import Model
from kspec.model_check.core.parameters import resolve
from kspec.model_check.models import messages
from kspec.model_check.models.messages.board import LONG_AGO, Numbers
from kspec.model_check.models.messages.settings import PARAMETERS
from kspec.model_check.models.messages.values import FetchId, ProposalId
from kspec.model_check.models.parts import LATE
from kspec.proofs.settings import Replicas
from kspec.proofs.symbolic.logic import any_of, no
from kspec.proofs.symbolic.values import Name, SymbolicBool
from kspec.spec.values import BrokerEpoch, Epoch, Offset, PartitionEpoch

EPOCH, PARTITION_EPOCH = Name("epoch", Epoch), Name("partition epoch", PartitionEpoch)
FETCH, PROPOSAL = Name("fetch", FetchId), Name("proposal", ProposalId)


SURVIVES, CHECKPOINTED = Name("survives", Offset), Name("checkpointed", Offset)
BROKER_EPOCH = Name("broker epoch", BrokerEpoch)


NOW, CAUGHT_UP = Name("now", int), Name("caught_up", int)


NAME = "kafka-next"


def unbounded(min_isr: int, replicas: Replicas, mutant: str | None = None) -> Model:
    """The model for a proof: nothing but the number of replicas is bounded."""
    if not isinstance(replicas, int):
        raise TypeError(f"{NAME} is proved for a number of replicas, not for any")
    given = {"brokers": replicas, "values": inf, "unclean_shutdowns": inf, "min_isr": min_isr, "mutant": mutant}
    parameters = resolve(NAME, PARAMETERS, given)
    times: Any = {broker: _caught_up(broker) for broker in range(1, replicas + 1)}
    fenced: Any = {broker: _believed(broker) for broker in times}
    each = (EPOCH, PARTITION_EPOCH, FETCH, PROPOSAL, SURVIVES, CHECKPOINTED, BROKER_EPOCH, CAUGHT_UP)
    names: Any = (*([name] for name in each), NOW, times, fenced)
    return messages.build("messages", parameters, Numbers(*names))


def _believed(broker: int) -> SymbolicBool:
    return SymbolicBool(z3.Bool(f"{broker} is believed to be fenced"))


def _caught_up(broker: int) -> Name:
    return Name(f"when {broker} was caught up", int)


def as_within_bounds(replicas: int) -> tuple[SymbolicBool, ...]:
    """The bounded model's statement about time and leaders' beliefs: it is late, and nobody is believed to be fenced.

    The follower that fetches may have been caught up just now.
    """
    brokers = range(1, replicas + 1)
    lags = (_caught_up(broker) == LONG_AGO for broker in brokers)
    last = any_of(CAUGHT_UP == LONG_AGO, CAUGHT_UP == LATE)
    return NOW == LATE, last, *lags, *(no(_believed(broker)) for broker in brokers)


def bounded(min_isr: int, replicas: int, log_size: int, max_epoch: int, mutant: str | None = None) -> Model:
    """The model for exploration."""
    given = {
        "brokers": replicas,
        "min_isr": min_isr,
        "unclean_shutdowns": max_epoch,
        "values": log_size,
        "max_epoch": max_epoch,
        "max_partition_epoch": max_epoch + 1,
        "fetches": max_epoch + 1,
        "proposals": max_epoch,
        "mutant": mutant,
    }
    return messages.build("messages", resolve(NAME, PARAMETERS, given))
