"""Mutants: a protocol with one rule weakened, to show that the rule is needed.

A mutant is killed when the checker finds a counterexample in it. See `docs/studies/` for the runs.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from spec.alter_partition import committed_isr, propose_as_if_granted
from spec.fetch import fetch_without_fencing
from spec.high_watermark import replicated_by_offset
from spec.isr import join_at_high_watermark
from spec.protocol import IsrProtocol, Protocol
from spec.truncation import answer_anyone

if TYPE_CHECKING:  # a model that is checked needs neither
    from spec.broker_protocol import BrokerProtocol
    from spec.controller_protocol import ControllerProtocol

AnyProtocol = TypeVar("AnyProtocol", Protocol, IsrProtocol, "ControllerProtocol", "BrokerProtocol")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A named weakening: which rule (field of the protocol) becomes which weaker function, and what that means."""

    name: str
    field: str
    rule: Any
    summary: str


MUTANTS = (
    Mutant(
        "unfenced-truncation",
        "truncation_fencing",
        answer_anyone,
        "a follower finds its truncation offset from any replica, in whatever epoch that is",
    ),
    Mutant(
        "unfenced-fetch",
        "fetch_fencing",
        fetch_without_fencing,
        "a leader serves followers of any epoch",
    ),
    Mutant(
        "high-watermark-without-epoch",
        "has_replicated",
        replicated_by_offset,
        "a leader counts fetches made in another epoch",
    ),
    Mutant(
        "join-before-epoch-start",
        "may_join",
        join_at_high_watermark,
        "a follower joins the ISR before the high watermark has reached the leader's epoch",
    ),
)

ISR_MUTANTS = (
    Mutant(
        "high-watermark-over-committed-isr",
        "counted_isr",
        committed_isr,
        "the high watermark does not wait for replicas whose admission is pending",
    ),
    Mutant(
        "shrink-before-confirmation",
        "propose",
        propose_as_if_granted,
        "the leader behaves as if its proposal had been granted",
    ),
)


def weaken(protocol: AnyProtocol, mutant: Mutant) -> AnyProtocol:
    """The protocol with the mutant's rule in place of its own; its name says so."""
    changes: dict[str, Any] = {mutant.field: mutant.rule, "name": f"{protocol.name} with {mutant.name}"}
    return replace(protocol, **changes)
