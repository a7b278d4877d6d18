"""`kspec world quorum`: one real controller among three voters, with the specification as the other two."""

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
    from kspec.conformance.quorum.power import FlushRun
    from kspec.conformance.quorum.runs import QuorumRun
    from kspec.spec.quorum.protocol import QuorumProtocol


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release under test, from 3.9.0 on.")
@click.option("--rules", metavar="RELEASE", help="Expect what this release's rules say, to see that Kafka departs.")
@click.option(
    "--traces", type=click.IntRange(1), metavar="N", help="With KIND:S, as seed:S: the walks of N seeds from S on."
)
@click.option(
    "--real", type=click.IntRange(1, 3), default=1, show_default=True, help="With a file: the server that is real."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--plain", is_flag=True, help="Print the verdicts alone, not every step.")
def quorum(
    name: str | None, kafka: str, rules: str | None, traces: int | None, real: int, as_json: bool, plain: bool
) -> int:
    """Replay runs of three voters of the metadata log, of which one is a real controller; all that have a name, or NAME.

    NAME may also be seed:N (a random walk of model quorum), changes:N (one in which voters are removed and added),
    snapshots:N (one in which voters take snapshots), or a file: ITF, or what `kspec check quorum --json` prints.
    Each message of the real one, its role, its election on the disk and its log are compared with the release's rules.

    Exit status: 0 the controller does what the rules say, whatever comes of it; 1 it does not; 2 bad usage; 3 Java, a jar,
    or a C compiler is missing.
    """
    from kspec.conformance.kafka.jars import KafkaMissingError, find_jars, java
    from kspec.conformance.quorum.session import replay_all

    expected = _rules(kafka, rules)
    runs = _runs(name, kafka, traces, real)

    def tell(report: "RunReport") -> None:
        if not as_json:
            click.echo(report.verdict if plain else "\n".join([*report.lines, ""]))

    try:
        java()
        reports = asyncio.run(replay_all(find_jars(kafka), runs, expected, tell))
    except KafkaMissingError as error:
        raise StoppedError(str(error)) from error
    _sum_up(reports, kafka, as_json)
    return ALL_HOLD if all(report.follows for report in reports) else VIOLATED


def _sum_up(reports: "list[RunReport]", kafka: str, as_json: bool) -> None:
    steps, seconds = sum(len(one.steps) for one in reports), sum(one.seconds for one in reports)
    follow, again = sum(one.follows for one in reports), sum(one.tries - 1 for one in reports)
    if as_json:
        numbers = {"steps": steps, "seconds": round(seconds, 1), "replayed_again": again}
        runs = [one.as_json() for one in reports]
        click.echo(json.dumps({"kafka": kafka, "follow": follow, **numbers, "runs": runs}))
    elif len(reports) > 1:
        click.echo(
            f"Apache Kafka {kafka}: {len(reports)} runs, {follow} as the rules say, {steps} steps in {seconds:.0f} s;"
            f" {again} replayed again because of the clock"
        )


def _rules(kafka: str, release: str | None) -> "QuorumProtocol":
    from kspec.conformance.quorum.voters import rules_of
    from kspec.spec.releases.quorum import QUORUM_RELEASES

    if re.fullmatch(r"\d+\.\d+\.\d+", kafka) is None or _numbers(kafka) < (3, 9):
        raise click.UsageError(f"--kafka {kafka}: expected a release from 3.9.0 on, such as 4.4.0")
    if release is None:
        return rules_of(kafka)
    known = {one.name: one for one in QUORUM_RELEASES}
    if release not in known:
        raise unknown(f"there are no rules {release!r}", release, known, "kspec models quorum")
    return known[release]


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))


def _runs(name: str | None, kafka: str, traces: int | None, real: int) -> "list[QuorumRun | FlushRun]":
    from kspec.conformance.kafka.run_files import NoRunInFileError
    from kspec.conformance.quorum.from_model import WALK_KINDS, read_run, walk
    from kspec.conformance.quorum.named import NAMED, for_release
    from kspec.conformance.quorum.power import FLUSH_RUNS
    from kspec.conformance.quorum.voters import rules_of

    asks_before = _numbers(kafka) >= (4, 0)
    there = {one.name: one for one in NAMED.values() if not one.since or _numbers(one.since) <= _numbers(kafka)}
    kind, _, first = (name or "").partition(":")
    if traces is not None and kind not in WALK_KINDS:
        raise click.UsageError(f"--traces goes with {', '.join(f'{one}:N' for one in WALK_KINDS)}")
    if name is None:
        return [*(for_release(one, asks_before=asks_before) for one in there.values()), *FLUSH_RUNS.values()]
    if name in FLUSH_RUNS:
        return [FLUSH_RUNS[name]]
    if name in there:
        return [for_release(there[name], asks_before=asks_before)]
    if name in NAMED:
        raise click.UsageError(f"{name} is a run of releases from {NAMED[name].since}.0 on, and not of {kafka}")
    if kind in WALK_KINDS and first.isdecimal():
        return [walk(int(first) + number, rules_of(kafka), WALK_KINDS[kind]) for number in range(traces or 1)]
    if Path(name).exists():
        try:
            return [read_run(Path(name), real)]
        except NoRunInFileError as error:
            raise click.UsageError(str(error)) from error
    raise unknown(f"there is no run and no file {name!r}", name, [*NAMED, *FLUSH_RUNS], "kspec world quorum --help")
