"""A catalogue of mutants: of one model, each with the bounds in which a property fails, or a reason why none does."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from kspec.model_check.core.exploration import Limits, Progress, uninterrupted
from kspec.model_check.core.symmetry import Symmetry
from kspec.model_check.engines.explorer import explorer
from kspec.model_check.models import MODELS
from kspec.model_check.reports.mutants import Hunt, LivenessHunt, hunt_infinite_run, table_of_hunts
from kspec.spec.mutation import Mutant


@dataclass(frozen=True)
class MutantCatalogue:
    """The mutants of a model, and where each is caught.

    - `hunted`: of mutants that violate a property of states, the bounds, the property, and the steps of the shortest run;
    - `hunted_for_ever`: of mutants with which `liveness` may never come about, the bounds;
    - `not_caught`: the reason, of each that no run of the model tells apart by what it violates;
    - `title`, `about`: of the section of the page of mutants.
    """

    model: str
    mutants: Mapping[str, Mutant]
    hunted: Mapping[str, tuple[Mapping[str, Any], str, int]]
    not_caught: Mapping[str, str]
    title: str
    about: str
    hunted_for_ever: Mapping[str, Mapping[str, Any]]
    liveness: str = ""
    symmetry: bool = False

    def is_listed(self, name: str) -> bool:
        """Whether a hunt, or a reason why none catches it, is listed for a mutant."""
        return name in self.hunted or name in self.hunted_for_ever or name in self.not_caught

    def hunt(self, name: str, report: Callable[[Progress], None] | None = None) -> Hunt:
        """Explore one mutant up to a violation of the property that is known to fail.

        One that is not caught is not explored.
        """
        mutant = self.mutants[name]
        if name in self.hunted_for_ever:
            return hunt_infinite_run(mutant, LivenessHunt(self.hunted_for_ever[name], self.liveness), report, self.model)
        if name not in self.hunted:
            return Hunt(mutant, {}, {}, 0, 0.0, self.not_caught[name])
        bounds, prop, _ = self.hunted[name]
        entry, began = MODELS[self.model], monotonic()
        model = entry.build({**bounds, "mutant": name})
        properties = [one for one in model.properties if one.name == prop]
        search = explorer(symmetry=Symmetry(model) if self.symmetry else None)
        result = uninterrupted(search(model, properties, Limits(report=report)))
        found = {verdict.prop.name: len(verdict.trace or ()) - 1 for verdict in result.verdicts if verdict.violated}
        return Hunt(mutant, bounds, found, result.distinct_states, monotonic() - began)

    def hunts(self, names: tuple[str, ...], report: Callable[[Progress], None] | None = None) -> Iterator[Hunt]:
        """The hunts for these mutants, or for all, one after the other."""
        for name in names or tuple(self.mutants):
            yield self.hunt(name, report)

    def as_markdown(self, done: list[Hunt]) -> str:
        """The section of `docs/mutants.md` about the model."""
        caught = [entry for entry in done if entry.caught]
        lines = [
            f"## {self.title}",
            "",
            self.about,
            f"Written by `kspec mutants --model {self.model} --write docs/mutants.md`, which leaves the other sections.",
            "",
            f"{len(caught)} of {len(done)} are caught.",
            "",
            *table_of_hunts(done),
        ]
        return "\n".join(lines) + "\n"
