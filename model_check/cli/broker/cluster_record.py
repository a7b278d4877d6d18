"""The record that a cluster's processes have written with --trace, run through the rules again."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from model_check.cli.broker.serve import NEXT, rules_of

if TYPE_CHECKING:
    from impl.trace.departures import Departure

STEPS = "*/steps-*.jsonl"


class Record(NamedTuple):
    """What came of it: how many steps of how many starts, and the first step that comes out differently, in words."""

    steps: int
    starts: int
    difference: str | None

    def __str__(self) -> str:
        if self.difference is not None:
            return f"record: {self.difference}"
        return f"record: {self.steps:,} steps of {self.starts} starts, all come out as recorded"


def replay_record(folder: Path) -> Record:
    """Run all steps in a cluster's folder again, each by the rules that its process had. Raises: `TraceError`."""
    from impl.trace.steps import has_steps, header_of, replay

    steps = starts = 0
    for file in sorted(folder.glob(STEPS)):
        starts += 1
        if not has_steps(file):
            continue
        rules = rules_of(*header_of(file))
        for difference in replay(file, rules.broker, rules.controller.protocol):
            if difference is not None:
                return Record(steps, starts, f"{file}:{difference.line}: {difference.rule} comes out differently")
            steps += 1
    return Record(steps, starts, None)


class Departed(NamedTuple):
    """A rule that is not as in a release: the steps that it decided otherwise, and the first of them."""

    rule: str
    release: str
    steps: int
    first: str

    def __str__(self) -> str:
        steps = f"{self.steps:,} step{'s' if self.steps > 1 else ''}"
        return f"rule {self.rule}: not as in {self.release}, decided {steps} otherwise, first {self.first}"


def departed(files: Iterable[Path], release: str = NEXT) -> list[Departed]:
    """The rules by which processes departed from a release's; those that decided most steps first.

    Raises: `TraceError`; bad usage, if there is no such release.
    """
    found: dict[str, Departed] = {}
    for file in sorted(files):
        for line, handler, rules in _departures(file, release):
            name = " or ".join(rules) or "several together"
            before = found.get(name, Departed(name, release, 0, f"{file}:{line} ({handler.rpartition('.')[2]})"))
            found[name] = before._replace(steps=before.steps + 1)
    return sorted(found.values(), key=lambda one: -one.steps)


def _departures(file: Path, release: str) -> Iterator["Departure"]:
    from impl.trace.departures import RulesOfNode, departures
    from impl.trace.steps import has_steps, header_of

    other = rules_of(release, None)
    if has_steps(file):
        own = rules_of(*header_of(file))
        yield from departures(
            file, RulesOfNode(own.broker, own.controller.protocol), RulesOfNode(other.broker, other.controller.protocol)
        )
