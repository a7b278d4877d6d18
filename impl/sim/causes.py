"""Which rule a broken promise is about: the run again, with one rule at a time as a release without the defect has it."""

from dataclasses import replace

from impl.sim.runs import Outcome, run
from impl.sim.setup import Setup
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import ControllerProtocol
from spec.mutation import differing_fields, with_field_of


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
    for name in differing_fields(some_broker, broker):
        protocols = {node: with_field_of(one, name, broker) for node, one in setup.protocols.items()}
        found.append((name, replace(setup, protocols=protocols)))
    for name in differing_fields(setup.controller.protocol, controller):
        rules = replace(setup.controller, protocol=with_field_of(setup.controller.protocol, name, controller))
        found.append((f"controller: {name}", replace(setup, controller=rules)))
    return found
