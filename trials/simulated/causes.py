"""The rules that matter in a run.

The rules that repair a broken promise: the run is repeated with one rule at a time of a release without the defect. And the
mutants that would make a difference: a run with a mutant is the same up to the first call of its rule with another result. A
run without such a call need not be repeated with the mutant.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from kspec.spec.broker.protocol import BrokerProtocol
from kspec.spec.controller.protocol import ControllerProtocol
from kspec.spec.mutation import Mutant, RulesT, differing_fields, with_field_of
from kspec.spec.releases.features import release_of
from kspec.spec.releases.names import quorum_of
from kspec.trials.simulated.runs import RunOutcome, run
from kspec.trials.simulated.setup import RunSetup


def rules_that_repair(
    setup: RunSetup, outcome: RunOutcome, broker: BrokerProtocol, controller: ControllerProtocol
) -> tuple[str, ...]:
    """The rules of this broker and controller with which the run, at its length and with its faults, breaks no promise.

    All brokers get the rule. A run with another rule may take another course, so a rule in the result need not have the
    defect; if it is the only one in several seeds, it has.
    """
    return tuple(
        name
        for name, repaired in _repaired(setup, broker, controller)
        if run(repaired, outcome.steps, outcome.faults).broken is None
    )


def _repaired(setup: RunSetup, broker: BrokerProtocol, controller: ControllerProtocol) -> list[tuple[str, RunSetup]]:
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
    """The number of calls in which the rule of each mutant had another result, by the mutant's name."""

    counts: dict[str, int] = field(default_factory=dict)

    def watched(self, protocol: RulesT, mutants: Iterable[Mutant]) -> RulesT:
        """The same rules; each call of one is a call of these mutants, too. A mutant of a trait counts as different."""
        weaker: dict[str, list[Mutant]] = {}
        for mutant in mutants:
            weaker.setdefault(mutant.field if callable(mutant.rule) else "", []).append(mutant)
        for one in weaker.pop("", ()):
            self.counts[one.name] = 1
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
    setup: RunSetup,
    differences: Differences,
    of_broker: Iterable[Mutant],
    of_controller: Iterable[Mutant],
    of_transactions: Iterable[Mutant] = (),
    of_quorum: Iterable[Mutant] = (),
) -> RunSetup:
    """The same cluster, in which each call of a rule is a call of these mutants, too."""
    listed, others = tuple(of_broker), tuple(of_transactions)
    protocols = {node: differences.watched(one, listed) for node, one in setup.protocols.items()}
    protocols = {
        node: replace(one, transactions=differences.watched(one.transactions, others)) for node, one in protocols.items()
    }
    controller = replace(setup.controller, protocol=differences.watched(setup.controller.protocol, of_controller))
    quorum = setup.quorum or quorum_of(release_of(setup.controller.protocol.name))
    return replace(setup, protocols=protocols, controller=controller, quorum=differences.watched(quorum, of_quorum))
