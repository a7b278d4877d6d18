"""Traces written with --trace, run through the rules again: `kspec replay`, and the record of a cluster."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from kspec.cli.broker.serve import NEXT, rules_of
from kspec.cli.statuses import ALL_HOLD, VIOLATED

if TYPE_CHECKING:
    from kspec.impl.trace.departures import RuleDeparture

STEPS = "*/steps-*.jsonl"


class ReplaySummary(NamedTuple):
    """Result of a replay: the numbers of steps and of starts, and the first step that comes out differently, in words."""

    steps: int
    starts: int
    difference: str | None

    def __str__(self) -> str:
        if self.difference is not None:
            return f"record: {self.difference}"
        return f"record: {self.steps:,} steps of {self.starts} starts, all come out as recorded"


def replay_record(folder: Path) -> ReplaySummary:
    """Run all steps in a cluster's folder again, each by the rules that its process had. Raises: `TraceError`."""
    from kspec.impl.trace.steps import has_steps, header_of, replay

    steps = starts = 0
    for file in sorted(folder.glob(STEPS)):
        starts += 1
        if not has_steps(file):
            continue
        rules = rules_of(*header_of(file))
        for difference in replay(file, rules.broker, rules.controller.protocol, rules.quorum):
            if difference is not None:
                return ReplaySummary(steps, starts, f"{file}:{difference.line}: {difference.rule} comes out differently")
            steps += 1
    return ReplaySummary(steps, starts, None)


class RuleTally(NamedTuple):
    """A rule that is not as in a release: the steps that it decided otherwise, and the first of them."""

    rule: str
    release: str
    steps: int
    first: str

    def __str__(self) -> str:
        steps = f"{self.steps:,} step{'s' if self.steps > 1 else ''}"
        return f"rule {self.rule}: not as in {self.release}, decided {steps} otherwise, first {self.first}"


def departed(files: Iterable[Path], release: str = NEXT) -> list[RuleTally]:
    """The rules by which processes departed from a release's; those that decided most steps first.

    Raises: `TraceError`; bad usage, if there is no such release.
    """
    found: dict[str, RuleTally] = {}
    for file in sorted(files):
        for line, handler, rules in _departures(file, release):
            name = " or ".join(rules) or "several together"
            before = found.get(name, RuleTally(name, release, 0, f"{file}:{line} ({handler.rpartition('.')[2]})"))
            found[name] = before._replace(steps=before.steps + 1)
    return sorted(found.values(), key=lambda one: -one.steps)


def _departures(file: Path, release: str) -> Iterator["RuleDeparture"]:
    from kspec.impl.trace.departures import RulesOfNode, departures
    from kspec.impl.trace.steps import has_steps, header_of

    other = rules_of(release, None)
    if has_steps(file):
        own = rules_of(*header_of(file))
        yield from departures(
            file,
            RulesOfNode(own.broker, own.controller.protocol, own.quorum),
            RulesOfNode(other.broker, other.controller.protocol, other.quorum),
        )


@click.command()
@click.argument("file", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--against", metavar="R", help="By the rules of this release, and name those that decide otherwise.")
def replay(file: Path, against: str | None) -> int:
    """Run the steps that `kspec broker --trace FILE` has recorded through the rules again.

    Exit status: 0 if all come out the same, 1 at the first that differs.
    """
    from kspec.impl.trace.steps import header_of
    from kspec.impl.trace.steps import replay as replay_steps
    from kspec.impl.trace.values import TraceError

    try:
        if against is not None:
            rules_named = departed([file], against)
            for rule in rules_named:
                click.echo(str(rule))
            return VIOLATED if rules_named else ALL_HOLD
        rules = rules_of(*header_of(file))
        steps = 0
        for difference in replay_steps(file, rules.broker, rules.controller.protocol, rules.quorum):
            if difference is not None:
                click.echo(f"{file}:{difference.line}: {difference.rule} comes out differently")
                click.echo(f"  recorded {json.dumps(difference.recorded)}\n  now      {json.dumps(difference.outcome)}")
                return VIOLATED
            steps += 1
    except TraceError as error:
        raise click.UsageError(str(error)) from error
    click.echo(f"{steps:,} steps, all come out as recorded")
    return ALL_HOLD
