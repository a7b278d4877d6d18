"""Which rules matter in a run.

Those that a broken promise is about: the run again, with one rule at a time as a release without the defect has it. And
those whose weakening would make a difference: a mutant takes the same course as the run, up to the first question to which
its rule has another answer. A run in which there is none need not be repeated with the mutant.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from impl.sim.runs import Outcome, run
from impl.sim.setup import Setup
from spec.broker.protocol import BrokerProtocol
from spec.controller.protocol import ControllerProtocol
from spec.mutation import Mutant, RulesT, differing_fields, with_field_of


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


@dataclass(slots=True)
class Differences:
    """How often the rule of each mutant had another answer, by the mutant's name."""

    counts: dict[str, int] = field(default_factory=dict)

    def watched(self, protocol: RulesT, mutants: Iterable[Mutant]) -> RulesT:
        """The same rules; with each question that is asked of them, these mutants are asked, too."""
        weaker: dict[str, list[Mutant]] = {}
        for mutant in mutants:
            weaker.setdefault(mutant.field, []).append(mutant)
        changes: dict[str, Any] = {name: self._watched(getattr(protocol, name), others) for name, others in weaker.items()}
        return replace(protocol, **changes)

    def _watched(self, rule: Callable[..., Any], mutants: list[Mutant]) -> Callable[..., Any]:
        counts = self.counts

        def ask(*given: Any) -> Any:
            answer = rule(*given)
            for mutant in mutants:
                if mutant.rule(*given) != answer:
                    counts[mutant.name] = counts.get(mutant.name, 0) + 1
            return answer

        return ask


def watched_setup(
    setup: Setup, differences: Differences, of_broker: Iterable[Mutant], of_controller: Iterable[Mutant]
) -> Setup:
    """The same cluster, in which these mutants are asked with every question to a rule."""
    listed = tuple(of_broker)
    protocols = {node: differences.watched(one, listed) for node, one in setup.protocols.items()}
    controller = replace(setup.controller, protocol=differences.watched(setup.controller.protocol, of_controller))
    return replace(setup, protocols=protocols, controller=controller)
