"""`kspec world groups`: late requests and lost answers of a consumer group, on one real broker."""

import asyncio
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kspec.cli.common import unknown
from kspec.cli.statuses import ALL_HOLD, VIOLATED, StoppedError

if TYPE_CHECKING:
    from kspec.conformance.targets.drivers import TargetDriver
    from kspec.conformance.wire.model.groups.late_requests import LateRequests, StepTaken
    from kspec.conformance.wire.run.results import Result

SECONDS = 30.0
"""The longest wait for an answer."""


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--kafka", default="4.4.0", show_default=True, metavar="V", help="The release under test, or its rules.")
@click.option(
    "--target",
    type=click.Choice(["kafka", "kspec"]),
    default="kafka",
    show_default=True,
    help="Apache Kafka, or this project's broker, which has the newest rules.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def groups(name: str | None, kafka: str, target: str, as_json: bool) -> int:
    """Send requests of a consumer group's members (KIP-848) late or twice to a real broker; all of them, or NAME.

    Each answer is compared with that of the release's rules, and what the clients believe to own is told beside.

    Exit status: 0 the broker answers as the rules say, whatever comes of it; 1 it does not; 2 bad usage, 3 no answer.
    """
    from kspec.conformance.wire.model.groups.late_requests import CANDIDATES, run_in
    from kspec.spec.releases.broker import NEWEST

    known = [one.name for one in CANDIDATES]
    if name is not None and name not in known:
        raise unknown(f"there is no run {name!r} of a group", name, known, "kspec world groups --help")
    driver, release = _driver(kafka, target)
    chosen = [one for one in CANDIDATES if name in {None, one.name}]
    runs = [run_in(one, NEWEST, release) for one in chosen]
    with tempfile.TemporaryDirectory(prefix="kspec-groups-") as folder, driver.start(Path(folder) / "broker") as broker:
        results = asyncio.run(_results(broker.port, chosen, runs, release))
    told = [_told(*one, f"{driver.name} {driver.version}") for one in zip(chosen, runs, results, strict=True)]
    if as_json:
        click.echo(json.dumps({"target": driver.name, "version": driver.version, "runs": told}))
    else:
        for one in told:
            click.echo("".join(f"{line}\n" for line in one["lines"]))
    return ALL_HOLD if all(one["follows"] for one in told) else VIOLATED


def _driver(kafka: str, target: str) -> "tuple[TargetDriver, str]":
    from kspec.conformance.targets import drivers
    from kspec.spec.releases.names import NEWEST_RELEASE, RELEASES

    release = ".".join(kafka.split(".")[:2])
    if release not in RELEASES or RELEASES.index(release) < RELEASES.index("4.0"):
        raise click.UsageError(f"--kafka is a release from 4.0.0 on, the first with KIP-848, not {kafka!r}")
    try:
        return (drivers.own(), NEWEST_RELEASE) if target == "kspec" else (drivers.kafka(kafka, release), release)
    except drivers.MissingError as error:
        raise StoppedError(str(error)) from error


async def _results(port: int, chosen: "list[LateRequests]", runs: "list[list[StepTaken]]", release: str) -> "list[Result]":
    from kspec.conformance.kafka.process import HOST
    from kspec.conformance.wire.cases.case import case_of
    from kspec.conformance.wire.cases.document import document_of
    from kspec.conformance.wire.model.groups.late_requests import as_chosen
    from kspec.conformance.wire.run.runner import CaseRun, TargetGoneError, find_target
    from kspec.conformance.wire.run.suite_run import NameSpace
    from kspec.spec.releases.broker import NEWEST

    async def never() -> None:
        raise AssertionError("no run restarts the broker")

    try:
        target = await find_target(HOST, port, SECONDS)
        found = []
        for number, (candidate, run) in enumerate(zip(chosen, runs, strict=True)):
            case = document_of(case_of(as_chosen(candidate, run), NEWEST, (), candidate.name), release)
            found.append(await CaseRun(target, case, NameSpace("late").of_case(number), never).run())
    except TargetGoneError as gone:
        raise StoppedError(str(gone)) from gone
    return found


def _told(candidate: "LateRequests", run: "list[StepTaken]", result: "Result", target: str) -> dict[str, Any]:
    """A run as JSON, with the lines that are printed of it."""
    from kspec.conformance.wire.run.results import Status

    follows, shown = result.status == Status.PASS, candidate.holds(run)
    lines = [f"{candidate.name}: {candidate.words}"]
    for number, one in enumerate(run, start=1):
        owned = ", ".join(f"{client} owns {_partitions(places)}" for client, places in sorted(one.view.items()))
        fate = f"; {one.step.fate.value}" if one.step.fate.name != "TAKES" else ""
        lines.append(f"{number:3}  {one.step.move.words}: {one.taken.exchange.outcome}{fate} | {owned}")
    verdict = f"{'CONFIRMED' if shown else 'refuted'}: {candidate.claim}" + ("" if shown else " at no time")
    ending = f"follows all {len(run)} steps; {verdict}" if follows else f"departs: {result.reason}"
    lines.append(f"{target}, {candidate.name}: {ending}")
    confirmed = {"confirmed": shown} if follows else {}
    return {"name": candidate.name, "follows": follows, **confirmed, "claim": candidate.claim, "lines": lines}


def _partitions(places: Any) -> str:
    return ", ".join(str(place.partition) for place in sorted(places)) or "nothing"
