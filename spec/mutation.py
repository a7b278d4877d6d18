"""Mutants: a protocol with one rule weakened, to show that the rule is needed; and what differs between two protocols.

A mutant is killed when the checker finds a counterexample in it. See `docs/studies/` for the runs.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import ControllerProtocol
from spec.published.versions import IsrProtocol, Protocol

AnyProtocol = TypeVar("AnyProtocol", Protocol, IsrProtocol, "ControllerProtocol", "BrokerProtocol")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A named weakening: which rule (field of the protocol) becomes which weaker function, and what that means.

    `traits`: what else the record then says, by field: what the weaker rule comes to.
    """

    name: str
    field: str
    rule: Any
    summary: str
    traits: tuple[tuple[str, Any], ...] = ()


def weaken(protocol: AnyProtocol, mutant: Mutant) -> AnyProtocol:
    """The protocol with the mutant's rule in place of its own; its name says so."""
    changes: dict[str, Any] = {
        mutant.field: mutant.rule,
        "name": f"{protocol.name} with {mutant.name}",
        **dict(mutant.traits),
    }
    return replace(protocol, **changes)


def names_of_rules(protocol: Any) -> tuple[str, ...]:
    """The fields of a protocol that are rules: functions. The others are its name, and what rules come to."""
    return tuple(field.name for field in fields(protocol) if callable(getattr(protocol, field.name)))


def changed_rules(before: Any, after: Any) -> dict[str, tuple[str, str]]:
    """Which rules differ between two versions: field to the names of the rule functions before and after.

    The two are records of one kind: `Protocol`, or a controller's.
    """
    differing = {}
    for name in names_of_rules(before):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            differing[name] = (old.__name__, new.__name__)
    return differing
