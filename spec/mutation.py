"""Mutants (a protocol with one rule weakened, to show that the rule is needed), and the difference of two protocols.

A mutant is caught when the checker finds a counterexample in it. See `docs/studies/` for the runs.
"""

from dataclasses import Field, dataclass, fields, replace
from typing import Any, ClassVar, Protocol, TypeVar


class RuleRecord(Protocol):
    """A record of rules: a dataclass whose fields are functions, and a name."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def name(self) -> str:
        """The release or version whose rules these are."""


RulesT = TypeVar("RulesT", bound=RuleRecord)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A named weakening: which rule (field of the protocol) becomes which weaker function, and what that means.

    `traits`: the values of the record's other fields that go with the weaker rule, by field.
    """

    name: str
    field: str
    rule: Any
    summary: str
    traits: tuple[tuple[str, Any], ...] = ()


def weaken(protocol: RulesT, mutant: Mutant) -> RulesT:
    """The protocol with the mutant's rule in place of its own. Its name contains the mutant's name."""
    changes: dict[str, Any] = {
        mutant.field: mutant.rule,
        "name": f"{protocol.name} with {mutant.name}",
        **dict(mutant.traits),
    }
    return replace(protocol, **changes)


def differing_fields(one: RuleRecord, other: RuleRecord) -> tuple[str, ...]:
    """The rules and traits in which two protocols of one kind differ, by the names of their fields."""
    names = [field.name for field in fields(one) if field.name != "name"]
    return tuple(name for name in names if getattr(one, name) != getattr(other, name))


def with_field_of(protocol: RulesT, name: str, other: RulesT) -> RulesT:
    """The protocol with one rule or trait as another has it."""
    changed: dict[str, Any] = {name: getattr(other, name)}
    return replace(protocol, **changed)


def names_of_rules(protocol: RuleRecord) -> tuple[str, ...]:
    """The fields of a protocol that are rules, which are functions. The other fields are its name and its traits."""
    return tuple(field.name for field in fields(protocol) if _is_rule(getattr(protocol, field.name)))


def _is_rule(value: Any) -> bool:
    return value is None or callable(value)


def changed_rules(before: RuleRecord, after: RuleRecord) -> dict[str, tuple[str, str]]:
    """The rules that differ between two versions: field to the names of the rule functions before and after.

    The two are records of one kind.
    """
    differing = {}
    for name in names_of_rules(before):
        old, new = getattr(before, name), getattr(after, name)
        if old != new:
            differing[name] = (_name(old), _name(new))
    return differing


def _name(rule: Any) -> str:
    return "none" if rule is None else str(rule.__name__)
