"""`kspec conformance`: cases of level 0, written as files or run against an address."""

import asyncio
import json
import re
import secrets
import shlex
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from model_check.cli.common import unknown
from model_check.cli.conformance.choosing import chosen, scored
from model_check.cli.conformance.levels import Files, Level, level_options, named_cases
from model_check.cli.conformance.matrix import matrix
from model_check.cli.statuses import ALL_HOLD, VIOLATED, StoppedError
from model_check.cli.terminal.output import Output, OutputFolder
from model_check.core.files import write_whole

if TYPE_CHECKING:
    from conformance.wire.run.results import Result

Json = Any


@click.group()
def conformance() -> None:
    """Cases drawn from models of one broker: what is answered is what the rules answer.

    They need a broker that listens, and nothing else of it. See docs/conformance.md.
    """


conformance.add_command(matrix)


@conformance.command()
@click.option("--out", "folder", required=True, metavar="DIR", help="The folder for the files; it need not exist.")
def generate(folder: str) -> int:
    """Write the cases as JSON files that need no Python: docs/conformance-format.md says what is in them."""
    from conformance.wire.cases.document import index_of
    from conformance.wire.cases.suite import all_cases, all_documents

    documents = all_documents()
    with OutputFolder(folder).opened() as place:
        for document in documents:
            write_whole(place / file_of(document["name"]), json.dumps(document, indent=1) + "\n")
        index = index_of(all_cases(), [file_of(document["name"]) for document in documents])
        write_whole(place / "index.json", json.dumps(index) + "\n")
    click.echo(f"{folder}: {len(documents)} cases and index.json")
    return ALL_HOLD


def file_of(name: str) -> str:
    """The name of a case's file."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()) + ".json"


@conformance.command("list")
@click.option("--case", "wanted", metavar="NAME", help="Those whose names begin with this.")
@click.option("--level", type=click.IntRange(0, 1), default=0, show_default=True, help="0: one broker; 1: a cluster.")
def list_cases(wanted: str | None, level: int) -> int:
    """Name the cases, each with what it does."""
    if level:
        for case in named_cases(wanted):
            click.echo(f"{case.name}\n    {case.title}")
        return ALL_HOLD
    for document in chosen(wanted):
        click.echo(f"{document['name']}\n    {document['title']}")
    return ALL_HOLD


@conformance.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def score(as_json: bool) -> int:
    """Weaken one rule after the other, and say which cases tell it.

    Mutants are the weakened rules of `kspec broker --mutant`; checks that all releases have are turned off one by one.
    """
    found = scored()
    if as_json:
        click.echo(json.dumps({one.name: {"cases": names, "reason": one.reason} for one, names in found}))
        return ALL_HOLD
    for one, names in found:
        told = f"{len(names):3} cases, such as {min(names, key=len)}" if names else one.reason
        click.echo(f"{one.name}\n    {told}")
    click.echo(f"{sum(bool(names) for _, names in found)} of {len(found)} are told")
    return ALL_HOLD


def _check_release(release: str | None) -> None:
    from spec.releases.names import RELEASES

    if release is not None and release not in RELEASES:
        raise unknown(f"there is no release {release!r}", release, RELEASES, f"one of {', '.join(RELEASES)}")


def _allowed(file: str | None) -> dict[str, str]:
    """The failures that are allowed: a name on each line, and after a space the reason."""
    if file is None:
        return {}
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise click.UsageError(f"{file}: {error.strerror}") from error
    entries = [line.split(maxsplit=1) for line in lines if line.strip() and not line.startswith("#")]
    for name, *reason in entries:
        if not reason:
            raise click.UsageError(f"{file}: case {name} is allowed to fail, and no reason is given")
    return {name: reason.strip() for name, reason in entries}


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise click.UsageError(f"{text!r} is no HOST:PORT")
    return host.strip("[]"), int(port)


@conformance.command()
@click.option("--bootstrap-server", "address", metavar="HOST:PORT", help="The broker under test.")
@click.option("--case", "wanted", metavar="NAME", help="This case, or those whose names begin with it.")
@click.option("--release", metavar="R", help="Leave out what holds only from a later release of Kafka on.")
@click.option("--allow", metavar="FILE", help="Failures that are known: a name and a reason on each line.")
@click.option("--restart", metavar="COMMAND", help="A shell command that restarts the broker: for older leader epochs.")
@click.option(
    "--versions",
    default="newest",
    show_default=True,
    type=click.Choice(["newest", "oldest", "all"]),
    help="Which versions of the requests: of those that both sides know.",
)
@click.option("--timeout", default=10.0, show_default=True, type=click.FloatRange(0.1), metavar="S", help="For each step.")
@click.option("--together", default=8, show_default=True, type=click.IntRange(1), metavar="N", help="Cases at a time.")
@click.option("--keep-topics", is_flag=True, help="Do not delete the run's topics at the end.")
@click.option("--junit", metavar="FILE", help="Write the results for continuous integration.")
@click.option("--json", "json_file", metavar="FILE", help="Write the results for programs.")
@click.option("--html", "html_file", metavar="FILE", help="Write the results for people.")
@level_options
def run(
    address: str | None,
    wanted: str | None,
    release: str | None,
    allow: str | None,
    restart: str | None,
    versions: str,
    timeout: float,
    together: int,
    keep_topics: bool,
    junit: str | None,
    json_file: str | None,
    html_file: str | None,
    level: Level,
) -> int:
    """Run the cases against a broker, or with --level 1 a cluster under faults.

    Exit status: 0 all pass, are allowed, or cannot be run there; 1 some fail; 2 bad usage; 3 the target has died or does
    not speak the protocol.
    """
    from conformance.wire.run.files import as_html, as_json, as_junit, counts_of
    from conformance.wire.run.results import Status
    from conformance.wire.run.runner import (
        Naming,
        Suite,
        SuiteRun,
        TargetGoneError,
        clean_up,
        find_target,
    )
    from conformance.wire.run.versions import Choice, in_versions
    from conformance.wire.run.words import counts_in_words, failure_in_words

    level.check(address)
    allowed = _allowed(allow)
    outputs = [Output(file) for file in (junit, json_file, html_file)]
    if address is None:
        return level.run(wanted, allowed, Files(*outputs))
    host, port = _address(address)
    _check_release(release)
    naming = Naming(secrets.token_hex(3))
    if wanted is not None:
        chosen(wanted, release)

    def replay(result: "Result") -> str:
        given = f" --restart {shlex.quote(restart)}" if restart else ""
        given += f" --versions {versions}" if result.case_name != result.name else ""
        return f"kspec conformance run --bootstrap-server {address} --case {result.case_name}{given}"

    def tell(result: "Result") -> None:
        if result.status == Status.FAIL:
            click.echo("\n".join(failure_in_words(result, replay(result))))

    async def work() -> "list[Result]":
        target = await find_target(host, port, timeout)
        cases = in_versions(chosen(wanted, release), Choice(versions), target.offered)
        again = _restarting(restart, host, port, timeout) if restart else None
        try:
            return await SuiteRun(target, Suite(cases, together, allowed, again), naming, tell).run()
        finally:
            if not keep_topics:
                await clean_up(target, naming, len(cases))

    began = time.monotonic()
    try:
        results = asyncio.run(work())
    except TargetGoneError as error:
        raise StoppedError(str(error)) from error
    outputs[0].write(as_junit(results, replay))
    outputs[1].write(as_json(results, address, naming.run, replay))
    outputs[2].write(as_html(results, address, naming.run, replay))
    click.echo(f"{address}, run {naming.run}: {counts_in_words(counts_of(results), time.monotonic() - began)}")
    _tell_skipped(results)
    return VIOLATED if any(one.status == Status.FAIL for one in results) else ALL_HOLD


def _tell_skipped(results: "list[Result]") -> None:
    """Why cases were not run: each reason once, with how many there are."""
    from conformance.wire.run.results import Status

    for status in (Status.NOT_SUPPORTED, Status.NOT_APPLICABLE, Status.ALLOWED):
        reasons = [one.reason for one in results if one.status == status]
        for reason in dict.fromkeys(reasons):
            click.echo(f"  {reasons.count(reason)} {status.value}: {reason}")


def _restarting(command: str, host: str, port: int, timeout: float) -> Callable[[], Awaitable[None]]:
    """What restarts the target, and waits until it answers again."""
    from conformance.wire.run.restarting import restarted_by

    return lambda: restarted_by(command, host, port, timeout)
