"""Where a weakened rule would have said something else: in the run of a seed by the rules as they are.

A mutant takes the same course as the run, up to the first question to which its rule has another answer. A run in which
there is none need not be repeated with the mutant.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from impl.sim.setup import Setup
from spec.mutation import Mutant, RulesT


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
