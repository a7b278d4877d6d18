"""`kspec world transactions`: runs of model `transactions` on one real broker."""

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kspec.cli.common import unknown
from kspec.cli.statuses import ALL_HOLD, VIOLATED, StoppedError

if TYPE_CHECKING:
    from kspec.conformance.kafka.reports import RunReport
    from kspec.conformance.transactions.clusters import ClusterObservation
    from kspec.conformance.transactions.observations import TransactionObservation
    from kspec.conformance.transactions.runs import FoundRun, Rules
    from kspec.conformance.transactions.session import TransactionsRun

FIRST_RELEASE = (3, 9)


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release under test, from 3.9.0 on.")
@click.option(
    "--transaction-version",
    "levels",
    type=click.IntRange(0, 2),
    multiple=True,
    metavar="N",
    help="transaction.version of the cluster and its producers; may be repeated (1 and 2; 0 before 4.0).",
)
@click.option("--rules", metavar="RELEASE", help="Expect what this release's rules say, to see that Kafka departs.")
@click.option("--mutant", metavar="NAME", help="Expect what the rules say with one of them weakened.")
@click.option("--traces", type=click.IntRange(1), metavar="N", help="With seed:S: the walks of N seeds from S on.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plain", is_flag=True, help="Print the verdicts alone, not every step.")
def transactions(
    name: str | None,
    kafka: str,
    levels: tuple[int, ...],
    rules: str | None,
    mutant: str | None,
    traces: int | None,
    as_json: bool,
    plain: bool,
) -> int:
    """Replay runs of transactions on a real broker, which coordinates and leads; all that have a name, or NAME.

    NAME may also be seed:N (a random walk of model transactions), or a file: ITF, or what `kspec check transactions --json`
    prints. Each answer, the state of the transactional id, the logs, how far they are stable, what is read as committed and
    the committed offset of the group are compared with the release's rules.

    Exit status: 0 the broker does what the rules say, whatever comes of it; 1 it does not; 2 bad usage; 3 Java or a jar is
    missing, or the broker does not answer.
    """
    from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java
    from kspec.conformance.transactions.session import replay_all

    chosen = _levels(kafka, levels)
    runs: list[tuple[int, TransactionsRun]] = [*_observations(name, kafka, chosen)]
    if not runs or name is None:
        runs = [*_runs(name, _rules(kafka, rules, mutant), chosen, traces), *runs]

    def tell(report: "RunReport") -> None:
        if not as_json:
            click.echo(report.verdict if plain else "\n".join([*report.lines, ""]))

    try:
        java()
        reports = asyncio.run(replay_all(find_jars(kafka), runs, tell))
    except (KafkaMissingError, ConnectionError, TimeoutError) as error:
        raise StoppedError(str(error) or f"Kafka {kafka} does not answer") from error
    steps, seconds = sum(len(one.steps) for one in reports), sum(one.seconds for one in reports)
    follow = sum(one.follows for one in reports)
    if as_json:
        told = [one.as_json() | {"transaction_version": level} for one, (level, _) in zip(reports, runs, strict=True)]
        numbers = {"steps": steps, "seconds": round(seconds, 1)}
        click.echo(json.dumps({"kafka": kafka, "follow": follow, **numbers, "runs": told}))
    elif len(reports) > 1:
        click.echo(f"Apache Kafka {kafka}: {len(reports)} runs, {follow} as the rules say, {steps} steps in {seconds:.0f} s")
    return ALL_HOLD if follow == len(reports) else VIOLATED


def _levels(kafka: str, levels: tuple[int, ...]) -> tuple[int, ...]:
    from kspec.conformance.transactions.prompt import has_versions

    if re.fullmatch(r"\d+\.\d+\.\d+", kafka) is None or tuple(map(int, kafka.split(".")[:2])) < FIRST_RELEASE:
        raise click.UsageError(f"--kafka {kafka}: expected a release from 3.9.0 on, such as 4.4.0")
    if not has_versions(kafka):
        if any(levels):
            raise click.UsageError(f"--transaction-version: the clusters of {kafka} have version 0 alone")
        return (0,)
    return tuple(dict.fromkeys(levels)) or (1, 2)


def _rules(kafka: str, release: str | None, mutant: str | None) -> "Rules":
    from kspec.conformance.transactions.prompt import release_of
    from kspec.spec.releases.transactions.history import TRANSACTION_RELEASES
    from kspec.spec.releases.transactions.mutants import TRANSACTION_MUTANTS

    releases, mutants = [one.name for one in TRANSACTION_RELEASES], [one.name for one in TRANSACTION_MUTANTS]
    if release is not None and release not in releases:
        raise unknown(f"there are no rules {release!r}", release, releases, "kspec models transactions")
    if mutant is not None and mutant not in mutants:
        raise unknown(f"there is no mutant {mutant!r}", mutant, mutants, "kspec models transactions")
    return {"release": release or release_of(kafka), "mutant": mutant}


def _observations(
    name: str | None, kafka: str, levels: tuple[int, ...]
) -> "list[tuple[int, TransactionObservation | ClusterObservation]]":
    """The observations with this name, or all, in those versions of transactions in which they are made."""
    from kspec.conformance.transactions.session import OBSERVED

    there = [one for one in OBSERVED.values() if name in (None, one.name)]
    for one in there:
        if name is not None and one.since > tuple(map(int, kafka.split(".")[:2])):
            raise click.UsageError(f"{name} is a run of releases from {'.'.join(map(str, one.since))}.0 on")
    chosen = [one for one in there if one.since <= tuple(map(int, kafka.split(".")[:2]))]
    found = [(level, one) for level in levels for one in chosen if level in one.levels]
    if chosen and name is not None and not found:
        versions = " or ".join(map(str, chosen[0].levels))
        raise click.UsageError(f"{name} is a run of transaction.version {versions}")
    return found


def _runs(name: str | None, rules: "Rules", levels: tuple[int, ...], traces: int | None) -> "list[tuple[int, FoundRun]]":
    from kspec.conformance.kafka.run_files import NoRunInFileError
    from kspec.conformance.transactions.prompt import NoTransactionsRunError
    from kspec.conformance.transactions.runs import CANDIDATES, NAMED, found_run, run_in_file, walk
    from kspec.conformance.transactions.session import OBSERVED

    if traces is not None and (name is None or not name.startswith("seed:")):
        raise click.UsageError("--traces goes with seed:N")
    if name is None:
        return [(level, found_run(one, rules, level)) for level in levels for one in CANDIDATES if level in one.levels]
    if name in NAMED:
        there = [level for level in levels if level in NAMED[name].levels]
        try:
            return [(level, found_run(NAMED[name], rules, level)) for level in there or levels]
        except NoTransactionsRunError as error:
            raise click.UsageError(str(error)) from error
    first = name.removeprefix("seed:")
    if first != name and first.isdecimal():
        seeds = range(int(first), int(first) + (traces or 1))
        return [(level, walk(seed, rules, level)) for level in levels for seed in seeds]
    if Path(name).exists():
        try:
            found = run_in_file(Path(name), rules)
        except NoRunInFileError as error:
            raise click.UsageError(str(error)) from error
        return [(found.run.levels[0], found)]
    raise unknown(f"there is no run and no file {name!r}", name, [*NAMED, *OBSERVED], "kspec world transactions --help")
