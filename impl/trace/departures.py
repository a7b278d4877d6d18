"""Rules of a process that another release does not have, and the recorded steps that they decided."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kspec.impl.trace.steps import RecordedStep, steps_of
from kspec.impl.trace.values import TraceError
from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.mutation import differing_fields, with_field_of
from kspec.spec.quorum.protocol import QuorumProtocol


class RulesOfNode(NamedTuple):
    """The rules of a process: of its broker, of its controller, and of that as a voter."""

    broker: BrokerProtocol
    controller: ControllerProtocol
    quorum: QuorumProtocol


class RuleDeparture(NamedTuple):
    """A step that comes out otherwise by other rules: its line, its handler, and the rules that make the difference.

    A rule is named as the field of its protocol. There is none if it takes two rules together.
    """

    line: int
    handler: str
    rules: tuple[str, ...]


def departures(path: Path, own: RulesOfNode, other: RulesOfNode) -> Iterator[RuleDeparture]:
    """The steps of a trace that come out otherwise by other rules than the process had. Raises: `TraceError`."""
    changed = [*_with_one_of(own, other)]
    for step in steps_of(path):
        if _departs(step, other):
            yield RuleDeparture(step.line, step.rule, tuple(name for name, rules in changed if _departs(step, rules)))


def _with_one_of(own: RulesOfNode, other: RulesOfNode) -> Iterator[tuple[str, RulesOfNode]]:
    """A process's rules with one rule as the other has it, for each in which they differ."""
    for name in differing_fields(own.broker, other.broker):
        yield name, own._replace(broker=with_field_of(own.broker, name, other.broker))
    for name in differing_fields(own.controller, other.controller):
        yield f"controller: {name}", own._replace(controller=with_field_of(own.controller, name, other.controller))
    for name in differing_fields(own.quorum, other.quorum):
        yield f"quorum: {name}", own._replace(quorum=with_field_of(own.quorum, name, other.quorum))


def _departs(step: RecordedStep, rules: RulesOfNode) -> bool:
    try:
        outcome = step.outcome_by(rules.broker, rules.controller, rules.quorum)
    except TraceError:
        raise
    except Exception:  # rules that cannot handle a state that other rules have made
        return True
    return outcome != step.recorded
