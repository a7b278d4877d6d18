"""`kspec conformance run --level 1`: a cluster under faults, through a driver."""

import asyncio
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kspec.cli.common import Seconds, together, unknown
from kspec.cli.statuses import ALL_HOLD, VIOLATED, StoppedError
from kspec.cli.terminal.output import Output

if TYPE_CHECKING:
    from kspec.conformance.cluster.cases import ClusterCase
    from kspec.conformance.cluster.driver import Factory
    from kspec.conformance.cluster.results import CaseOutcome

Command = Callable[..., Any]
DRIVERS = "kspec, kspec:MUTANT, kafka:RELEASE, or FILE.py:NAME"
WORLD = "level 2 plays the rest of the world around one broker, and has its own command: kspec world cover --kafka 4.4.0"


class Files(NamedTuple):
    """Files to which results are written."""

    junit: Output
    json: Output
    html: Output


class Level(NamedTuple):
    """The options that levels above 0 have."""

    level: int
    driver: str | None
    log_dir: str | None
    port: int
    seed: int
    rounds: int | None
    minutes: float | None
    acks: str | None

    def check(self, address: str | None) -> None:
        """Refuse what does not go together. Raises: bad usage."""
        if self.level == 2:
            raise click.UsageError(WORLD)
        if self.level == 0 and address is None:
            raise click.UsageError("level 0 needs --bootstrap-server HOST:PORT")
        if self.level == 0 and self.driver is not None:
            raise click.UsageError("--driver is for --level 1")
        if self.level == 1 and address is not None:
            raise click.UsageError("level 1 starts and ends a cluster: --driver in place of --bootstrap-server")
        if self.level == 1 and self.driver is None:
            raise click.UsageError(f"level 1 needs --driver: {DRIVERS}")

    def run(self, wanted: str | None, allowed: Mapping[str, str], files: Files) -> int:
        """Run the cases; the exit status. Raises: bad usage, `StoppedError`."""
        from kspec.conformance.cluster.driver import DriverError
        from kspec.conformance.cluster.suite import LevelRun

        factory, cases = self._factory(), self._cases(wanted)
        folder = Path(self.log_dir or tempfile.mkdtemp(prefix="kspec-level-1-"))
        run, began = LevelRun(factory, folder, allowed, self._tell), time.monotonic()
        try:
            asyncio.run(run.run_cases(cases))
        except DriverError as error:
            raise StoppedError(f"{error}; see {folder}") from error
        status = self._report(run.title or str(self.driver), run.run, run.outcomes, files, time.monotonic() - began)
        if self.log_dir is None and status == ALL_HOLD:
            shutil.rmtree(folder, ignore_errors=True)
        return status

    def _report(self, title: str, run: str, outcomes: "list[CaseOutcome]", files: Files, seconds: float) -> int:
        from kspec.conformance.cluster.report import as_html, as_json, as_junit, counts_of
        from kspec.conformance.wire.run.results import Status
        from kspec.conformance.wire.run.words import counts_in_words

        files.junit.write(as_junit(outcomes, self._replay))
        files.json.write(as_json(outcomes, title, run, self._replay))
        files.html.write(as_html(outcomes, title, run, self._replay))
        click.echo(f"{title}, run {run}: {counts_in_words(counts_of(outcomes), seconds)}")
        return VIOLATED if any(one.status == Status.FAIL for one in outcomes) else ALL_HOLD

    def _tell(self, outcome: "CaseOutcome") -> None:
        from kspec.conformance.cluster.report import failure_in_words, line_of
        from kspec.conformance.wire.run.results import Status

        failed = outcome.status == Status.FAIL
        click.echo("\n".join(failure_in_words(outcome, self._replay(outcome))) if failed else line_of(outcome))

    def _replay(self, outcome: "CaseOutcome") -> str:
        acks = f" --acks {self.acks}" if self.acks else ""
        return f"kspec conformance run --level 1 --driver {self.driver} --case {outcome.name}{acks}"

    # ---- what is run, and on what

    def _cases(self, wanted: str | None) -> "Iterator[ClusterCase]":
        """The named cases, then those of seeds: as many as wanted, or as long as there is time."""
        chosen = named_cases(wanted, self.acks)
        if not chosen and self.rounds is None and self.minutes is None:
            raise click.UsageError("random cases need --rounds or --minutes, or a name such as random/seed-1")
        return self._in_turn(chosen)

    def _in_turn(self, chosen: "Sequence[ClusterCase]") -> "Iterator[ClusterCase]":
        end = None if self.minutes is None else time.monotonic() + 60 * self.minutes
        yield from (one for one in chosen if end is None or time.monotonic() < end)
        yield from self._random(end)

    def _random(self, end: float | None) -> "Iterator[ClusterCase]":
        from kspec.conformance.cluster.cases import random_case
        from kspec.trials.faults.plans.steps import ALL

        if end is None and self.rounds is None:
            return
        seeds = itertools.count(self.seed) if self.rounds is None else range(self.seed, self.seed + self.rounds)
        for seed in seeds:
            if end is not None and time.monotonic() >= end:
                return
            yield random_case(seed, self.acks or ALL)

    def _factory(self) -> "Factory":
        """The factory that starts the cluster. Raises: bad usage, `StoppedError`."""
        from kspec.conformance.cluster.driver import DriverError, factory_in
        from kspec.conformance.cluster.drivers import kafka, own
        from kspec.model_check.reports.mutants import ALL_MUTANTS

        assert self.driver is not None, "checked before"
        kind, _, which = self.driver.rpartition(":") if ":" in self.driver else (self.driver, "", "")
        if kind in ("kspec", "kafka") and sys.platform != "linux":
            raise click.UsageError("this driver needs Linux: the process of a connection is read in /proc")
        if kind == "kspec" and which and which not in ALL_MUTANTS:
            raise unknown(f"there is no mutant {which!r}", which, ALL_MUTANTS, "kspec mutants")
        try:
            if kind == "kspec":
                return own(self.port, which or None)
            if kind == "kafka" and which:
                return kafka(self.port, which)
        except DriverError as error:
            raise StoppedError(str(error)) from error
        if not kind.endswith(".py"):
            raise click.UsageError(f"there is no driver {self.driver!r}: {DRIVERS}")
        try:
            return factory_in(self.driver)
        except DriverError as error:
            raise click.UsageError(str(error)) from error


def named_cases(wanted: str | None, acks: str | None = None) -> "list[ClusterCase]":
    """The cases with a name, or whose names begin so; a seed's case by its name. Raises: bad usage."""
    from kspec.conformance.cluster.cases import RANDOM, all_cases, random_case
    from kspec.trials.faults.plans.steps import ALL

    known = [one._replace(acks=acks or one.acks) for one in all_cases()]
    if wanted is None:
        return known
    seed = wanted.removeprefix(RANDOM)
    if wanted.startswith(RANDOM) and seed.isdigit() and int(seed) > 0:
        return [random_case(int(seed), acks or ALL)]
    exact = [one for one in known if one.name == wanted]
    found = exact or [one for one in known if one.name.startswith(wanted)]
    if not found and not RANDOM.startswith(wanted):
        raise unknown(
            f"there is no case {wanted!r}", wanted, [one.name for one in known], "kspec conformance list --level 1"
        )
    return found


def level_options(command: Command) -> Command:
    """The options of levels above 0, in the argument `level`."""
    options = (
        click.option(
            "--level", type=click.IntRange(0, 2), default=0, show_default=True, help="0: one broker; 1: a cluster."
        ),
        click.option("--driver", metavar="D", help=f"Level 1: {DRIVERS}."),
        click.option("--log-dir", metavar="DIR", help="Level 1: keep the cluster's files and the histories."),
        click.option("--port", default=19192, show_default=True, metavar="PORT", help="Level 1: eight ports begin here."),
        click.option(
            "--seed", default=1, show_default=True, type=click.IntRange(1), metavar="S", help="Level 1: the first."
        ),
        click.option("--rounds", type=click.IntRange(0), metavar="N", help="Level 1: cases of seeds S, S+1, ..., besides."),
        click.option("--minutes", type=Seconds(0), metavar="M", help="Level 1: go on with cases of seeds so long."),
        click.option("--acks", type=click.Choice(["all", "1"]), help="Level 1: what producers wait for, in all cases."),
    )
    return together("level", Level._fields, Level, options)(command)
