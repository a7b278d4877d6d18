"""The functions in which invariants are written: they mean the same for symbolic states and for a model's explored states.

`&` and `|` join Booleans of both kinds; what Python cannot express for both is here.
"""

from typing import Any

import z3

from kspec.proofs.symbolic.brokers import SymbolicSet
from kspec.proofs.symbolic.log import SymbolicLog
from kspec.proofs.symbolic.shapes import SymbolicSetOfSets
from kspec.proofs.symbolic.terms import conjunction, disjunction, negation
from kspec.proofs.symbolic.values import SymbolicBool, SymbolicEnum, SymbolicInt, SymbolicOptional, number, truth
from kspec.spec.values import NO_EPOCH

Truth = Any
"""A `bool`, or a `SymbolicBool`."""


def no(claim: Truth) -> Truth:
    """States that the claim does not hold."""
    return not claim if isinstance(claim, bool) else SymbolicBool(negation(truth(claim)))


def implies(premise: Truth, claim: Truth) -> Truth:
    """States that the claim holds if the premise does."""
    if isinstance(premise, bool):
        return claim if premise else True
    return SymbolicBool(z3.Implies(truth(premise), truth(claim)))


def all_of(*claims: Truth) -> Truth:
    """States that every claim holds."""
    if all(isinstance(claim, bool) for claim in claims):
        return all(claims)
    return SymbolicBool(conjunction([truth(claim) for claim in claims]))


def any_of(*claims: Truth) -> Truth:
    """States that some claim holds."""
    if all(isinstance(claim, bool) for claim in claims):
        return any(claims)
    return SymbolicBool(disjunction([truth(claim) for claim in claims]))


def member(broker: Any, brokers: Any) -> Truth:
    """States that a broker is in a set of brokers."""
    return SymbolicBool(brokers.has(broker)) if isinstance(brokers, SymbolicSet) else broker in brokers


def among(brokers: Any, sets: Any) -> Truth:
    """States that a set of brokers is one of these sets."""
    return SymbolicBool(sets.has(brokers)) if isinstance(sets, SymbolicSetOfSets) else brokers in sets


def holds(log: Any, offset: Any) -> Truth:
    """States that a log holds a record at `offset`."""
    if isinstance(log, SymbolicLog):
        return SymbolicBool(log.holds(number(offset)))
    return log.start_offset <= offset < log.end_offset


def epoch_at(log: Any, offset: Any) -> Any:
    """The leader epoch of the record at `offset`, where there is one."""
    return SymbolicInt(log.epoch(number(offset))) if isinstance(log, SymbolicLog) else log.epoch_at(offset)


def value_at(log: Any, offset: Any) -> Any:
    """The value of the record at `offset`, where there is one."""
    if isinstance(log, SymbolicLog):
        return SymbolicInt(log.value(number(offset)))
    return log.read(offset, 1)[0].value if log.read(offset, 1) else NO_EPOCH


def same_record(log: Any, other: Any, offset: Any) -> Truth:
    """States that two logs, which both hold a record at `offset`, hold the same record there."""
    if isinstance(log, SymbolicLog):
        return SymbolicBool(log.same_at(other, number(offset)))
    return log.read(offset, 1) == other.read(offset, 1)


def has_same_record(log: Any, other: Any, offset: Any) -> Truth:
    """States that `log` holds the same record at `offset` as `other`."""
    return all_of(holds(log, offset), same_record(log, other, offset))


def starts_at_zero(log: Any) -> Truth:
    """States that a log starts at offset 0, ends there or later, and has no epoch opened beyond its last record."""
    opened = SymbolicInt(log.opened) if isinstance(log, SymbolicLog) else log.opened_epoch
    return all_of(log.start_offset == 0, log.end_offset >= 0, opened == NO_EPOCH)


def opened_epoch(log: Any) -> Any:
    """The epoch that a log has opened beyond its last record, `NO_EPOCH` if none."""
    return SymbolicInt(log.opened) if isinstance(log, SymbolicLog) else log.opened_epoch


def is_one_of(value: Any, *members: Any) -> Truth:
    """States that a member of an enumeration is one of these."""
    if isinstance(value, SymbolicEnum):
        every: list[Any] = list(value.kind)  # type: ignore[call-overload]
        return SymbolicBool(disjunction([value.position == every.index(one) for one in members]))
    return value in members


def present(value: Any) -> Truth:
    """States that an optional value is present."""
    return SymbolicBool(value.present) if isinstance(value, SymbolicOptional) else value is not None
