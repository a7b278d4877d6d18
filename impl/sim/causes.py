"""Which rule a broken promise is about: the run again, with one rule at a time as a release without the defect has it."""

from dataclasses import fields, replace
from typing import Any

from impl.sim.runs import Outcome, run
from impl.sim.setup import Setup
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import ControllerProtocol


def rules_that_repair(
    setup: Setup, outcome: Outcome, broker: BrokerProtocol, controller: ControllerProtocol
) -> tuple[str, ...]:
    """The rules of this broker and controller with which the run, at its length and with its faults, breaks no promise.

    All brokers get the rule. A run with another rule may take another course, so a rule that is named has not always the
    defect; where one rule alone is named in several seeds, it has.
    """
    return tuple(
        name
        for name, repaired in _repaired(setup, broker, controller)
        if run(repaired, outcome.steps, outcome.faults).broken is None
    )


def _repaired(setup: Setup, broker: BrokerProtocol, controller: ControllerProtocol) -> list[tuple[str, Setup]]:
    """The setup with one rule replaced, for each rule that is another there."""
    found = []
    some_broker = next(iter(setup.protocols.values()))
    for name in _differing(some_broker, broker):
        protocols = {node: _with(one, name, broker) for node, one in setup.protocols.items()}
        found.append((name, replace(setup, protocols=protocols)))
    for name in _differing(setup.controller.protocol, controller):
        rules = replace(setup.controller, protocol=_with(setup.controller.protocol, name, controller))
        found.append((f"controller: {name}", replace(setup, controller=rules)))
    return found


def _differing(one: Any, other: Any) -> list[str]:
    names = [field.name for field in fields(one) if field.name != "name"]
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _with(protocol: Any, name: str, other: Any) -> Any:
    changed: dict[str, Any] = {name: getattr(other, name)}
    return replace(protocol, **changed)
